/* options_man.c: the table of sections; see options_man.h. */
#include "offline/commands/options_man.h"

#include <stddef.h>
#include <string.h>

#define RUN_EXITS                                                                                                                       \
    "The command's own; a command that a signal ends, ends this process in the same way.\n"                                            \
    "\n"                                                                                                                               \
    "  125  remat itself failed: a setting that is none, no library beside it, no simulated GPU\n"                                     \
    "  126  the command cannot be run\n"                                                                                               \
    "  127  the command was not found\n"

#define FILE_EXITS                                                                                                                      \
    "  0  fine\n"                                                                                                                      \
    "  1  output that cannot be written, or a failure of remat's\n"                                                                    \
    "  2  bad input or usage: one line names file, line and column\n"

#define RUN_ENVIRONMENT                                                                                                                 \
    "  REMAT_SIMGPU=1     on a machine without a GPU, load the simulated one (pip install 'remat[sim]')\n"                             \
    "  REMAT_LOG          error, warn, info or debug; with ,doors counters of the driver calls at exit\n"                              \
    "  REMAT_DISABLE=1    leave the program alone\n"                                                                                   \
    "  REMAT_GROUP_DIR    the folder of the groups' ledgers\n"                                                                         \
    "  REMAT_STATUS_DIR   the folder of the pages that remat status reads\n"                                                           \
    "  TMPDIR             where a running program's plans are made\n"                                                                  \
    "  RANK               what %r stands for in names of files; else SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK\n"                  \
    "\n"                                                                                                                               \
    "LD_PRELOAD, PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF are set for the command, on top of what they hold.\n"

#define RUN_FILES                                                                                                                       \
    "  /etc/remat.conf                the machine's maxima, remat.conf(5)\n"                                                           \
    "  ../lib/remat/libremat.so       what is preloaded, by the place of the remat executable\n"                                       \
    "  ../lib/remat/remat-milp.so     CBC, loaded when a solver asks for it\n"                                                         \
    "  ../lib/remat/simgpu/           the simulated GPU\n"                                                                             \
    "  /run/remat/UID, /run/user/UID, /dev/shm/remat-UID, /tmp/remat-UID\n"                                                            \
    "                                 ledgers of groups and pages of running programs: the first that is fit\n"                        \
    "  $XDG_CACHE_HOME/remat, else $HOME/.cache/remat\n"                                                                                \
    "                                 what earlier runs found out: remat-known(1)\n"                                                   \
    "  $TMPDIR/remat-plan-PID-XXXXXX  a running program's trace and plan, while they are made\n"

static const struct options_man table[] = {
    {"run",
     "Within half of the device's memory, with what came of it in a file, and the iteration that was recorded in another:\n\n"
     "  remat run --limit 50% --stats stats.json --trace-out trace.json -- python train.py\n\n"
     "Two programs that share 4 GiB as they need them:\n\n"
     "  remat run --group ours --group-limit 4G -- python train.py\n",
     RUN_EXITS, RUN_ENVIRONMENT, RUN_FILES},
    {"trace", "The last of two iterations that are recorded, with nothing evicted:\n\n  remat trace -o trace.json --iterations 2 -- python train.py\n", RUN_EXITS,
     RUN_ENVIRONMENT, RUN_FILES},
    {"plan", "A plan for 60 % of the trace's peak, made in two seconds at most:\n\n  remat plan trace.json --limit 60% --time-limit 2 -o plan.json\n",
     FILE_EXITS "  3  no plan meets the limit: the line names the floor and the op that sets it\n", NULL, NULL},
    {"sweep", "Two solvers at three limits, as a table and as a picture:\n\n"
              "  remat sweep trace.json --limits 90%,75%,60% --solvers mincut,dtr --time-limit 1\n"
              "  remat sweep trace.json --limits 90%,75%,60% --solvers mincut,dtr --time-limit 1 --plot sweep.svg\n",
     FILE_EXITS, NULL, NULL},
    {"advise", "Of the trace that a run left, or of a program:\n\n  remat advise trace.json\n", FILE_EXITS, RUN_ENVIRONMENT, RUN_FILES},
    {"fit", "The largest batch of a program of the source tree that trains within 24 MiB:\n\n"
            "  remat fit --limit 24M --vary '--batch {}' -- build/workloads/mlp --iters 8\n",
     "  0  found\n  1  the program could not be recorded\n  2  bad usage\n  3  none found\n", RUN_ENVIRONMENT, RUN_FILES},
    {"check", "Whether a plan keeps within its own limit, whoever made it:\n\n  remat check trace.json plan.json\n",
     "  0  the plan is good\n  1  it breaks a rule or its limit\n  2  a file cannot be read\n", NULL, NULL},
    {"report", "Memory over one iteration, natively and under a plan:\n\n  remat report trace.json plan.json -o memory.html\n", FILE_EXITS, NULL, NULL},
    {"export", "For ui.perfetto.dev; as a database:\n\n"
               "  remat export trace.json plan.json --format perfetto -o timeline.json\n"
               "  remat export trace.json --format sqlite -o trace.db\n",
     FILE_EXITS, NULL, NULL},
    {"solve", "In the source tree, a chain of layers as the Rotor paper has them:\n\n  remat solve tests/golden/chain.json --solver chain\n",
     FILE_EXITS "  3  infeasible\n", NULL, NULL},
    {"status", "Who pays most; for Prometheus, by way of its node exporter's text file collector; for scripts:\n\n"
               "  remat status --sort price\n  remat status --prometheus >remat.prom\n  remat status --json\n",
     FILE_EXITS, "  REMAT_STATUS_DIR  the folder of the pages, instead of those below\n",
     "  /run/remat/UID, /run/user/UID, /dev/shm/remat-UID, /tmp/remat-UID\n"
     "                    a page a process, taken away by the next look after its end\n"},
    {"known", "What is known, as a table and for scripts:\n\n  remat known list\n  remat known list --json\n",
     "  0  done\n  1  a folder or file that cannot be read or written\n  2  bad usage, or a file that is damaged or of another version of remat\n",
     "  REMAT_CACHE  the folder, instead of those below\n",
     "  $XDG_CACHE_HOME/remat, else $HOME/.cache/remat\n"
     "                    facts of each image of kernels, and plans\n"},
    {"doctor", "What to do before the first run:\n\n  remat doctor --self-test\n", "  0  a program can be run under remat here\n  1  something stands in the way\n", RUN_ENVIRONMENT,
     RUN_FILES},
};

static const struct options_man any = {"", "", FILE_EXITS, NULL, NULL};

const struct options_man *options_man(const char *command)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].command, command))
            return &table[i];
    return &any;
}
