/* cmd_run.c: `remat run`: a program in less GPU memory. */
#include "offline/commands/cli.h"
#include "offline/commands/launch.h"

#include <stdio.h>

static const char more[] =
    "\n"
    "The command runs in this process: signals and exit status are its own. remat itself exits with 125 when it\n"
    "failed, 126 when the command could not be run, 127 when it was not found.\n"
    "\n"
    "SIZE: bytes, or with K M G T (KiB MiB GiB TiB), all binary. PCT: of the device's memory, as 50%.\n"
    "Without --limit nothing is evicted; memory is watched, and --trace-out and --stats work.\n"
    "\n"
    "policies  auto    swap at first, then the best plan found (the default)\n"
    "          plan    as auto; with --plan the given plan and no other\n"
    "          dtr     evict by DTR's rule, rebuild on demand, never plan\n"
    "          swap    copies to pinned host memory alone\n"
    "          off     leave the program alone; with --trace-out, record it\n"
    "verify    compare rebuilt tensors with saved copies bit for bit: off (after the rehearsal), sample, always\n"
    "\n"
    "Environment set for the command: LD_PRELOAD (libremat.so first), PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF\n"
    "(backend:cudaMallocAsync; settings that backend cannot have are left out with a warning), and one REMAT_* variable\n"
    "for each option. Read from yours:\n"
    "  REMAT_SIMGPU=1   on a machine without a GPU, load the simulated one\n"
    "  REMAT_LOG        error, warn, info or debug; with ,doors counters of the driver calls at exit\n"
    "  REMAT_CACHE      folder of plans and learnt effects (default ~/.cache/remat)\n"
    "  REMAT_DISABLE=1  leave the program alone\n";

int cmd_run(int argc, char **argv)
{
    struct launch_settings s = {0};
    const struct cli_option table[] = {
        {"limit", 0, "SIZE|PCT", &s.limit, "device memory the program may use, at any instant"},
        {"policy", 0, "POLICY", &s.policy, "auto, plan, dtr, swap or off (default auto)"},
        {"plan", 0, "FILE", &s.plan, "a plan-1 file to follow instead of planning"},
        {"solver", 0, "NAME", &s.solver, "solver that makes the plan (default auto)"},
        {"trace-out", 0, "FILE", &s.trace_out, "write the recorded iteration, an opgraph-1 file"},
        {"host-swap", 0, "SIZE", &s.host_swap, "pinned host memory the fallback may use"},
        {"verify", 0, "WHEN", &s.verify, "off, sample or always"},
        {"stats", 0, "FILE", &s.stats, "write statistics at exit, a JSON object"},
        {0},
    };
    size_t n;
    int split = launch_split(argc, argv);
    int rc = cli_parse(split, argv, "run [options] -- CMD...", table, NULL, 0, &n);
    if (rc > 0)
        fputs(more, stdout);
    if (rc)
        return rc > 0 ? CLI_OK : LAUNCH_FAILED;
    s.command = split < argc ? argv + split + 1 : NULL;
    return launch(&s);
}
