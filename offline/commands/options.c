/* options.c: the table of commands and options; see options.h. */
#include "offline/commands/options.h"

#include <string.h>

#define SOLVERS "auto|best|chain|chain-float|mincut|anneal|milp|chen-sqrt|chen-greedy|revolve|dtr|none"

static const struct option_row run_rows[] = {
    {"limit", 0, "SIZE|PCT", NULL, NULL, "device memory the program may use, at any instant"},
    {"policy", 0, "POLICY", "auto|plan|dtr|swap|off", "auto", "how the limit is kept; see below"},
    {"plan", 0, "FILE", NULL, NULL, "a plan-1 file to follow instead of planning; where it cannot be followed, another is made"},
    {"plan-only", 0, NULL, NULL, NULL, "with --plan: where it cannot be followed, end the program with status 125"},
    {"solver", 0, "NAME|exec:CMD", SOLVERS, "best", "solver that makes the plan"},
    {"trace-out", 0, "FILE", NULL, NULL, "write the recorded iteration, an opgraph-1 file"},
    {"host-swap", 0, "SIZE", NULL, "half of what the host has free, all runs together", "pinned host memory the fallback may use"},
    {"verify", 0, "WHEN", "off|sample|always", "sample", "compare rebuilt tensors with what they were"},
    {"rehearse", 0, "HOW", "mapped|unmapped", "mapped", "unmapped: until a plan is in force, a kernel that touches an evicted tensor unseen faults and is named (slow)"},
    {"allocator", 0, "HOW", "async|each", "async; the program's own under --policy off", "how PyTorch takes memory; see below"},
    {"nvtx", 0, NULL, NULL, NULL, "make ranges for NVIDIA's profilers: modes, iterations, replays, swaps"},
    {"stats", 0, "FILE", NULL, NULL, "write statistics, a JSON object, however the program ends"},
    {"no-cache", 0, NULL, NULL, NULL, "use nothing that earlier runs found out, and keep nothing for later ones"},
    {"quiet", 0, NULL, NULL, NULL, "warnings alone: no lines of what goes on, and none at the end"},
    {"group", 0, "NAME", NULL, NULL, "share one limit with the other processes of this group"},
    {"group-limit", 0, "SIZE|PCT", NULL, "as its first member said", "device memory of the whole group, at any instant"},
    {"guarantee", 0, "SIZE", NULL, "an equal part of what is left", "of the group's memory, what this program always gets when it asks"},
    {0}};

static const char run_more[] =
    "The command runs in this process: signals and exit status are its own. remat itself exits with 125 when it failed, 126 "
    "when the command could not be run, 127 when it was not found.\n"
    "\n"
    "SIZE: bytes, or with K M G T (KiB MiB GiB TiB), all binary. PCT: of the device's memory, as 50%. Without --limit nothing "
    "is evicted; memory is watched, and --trace-out and --stats work.\n"
    "\n"
    "Groups: all processes of a group together stay within its limit; one may grow while others are small, and gives back when another "
    "asks for what it is guaranteed. A killed process's share is free at once. The first member fixes the limit for as long as the group has "
    "members; each device has a budget of its own. Only processes of one user meet in a group; REMAT_GROUP_DIR names another folder of ledgers.\n"
    "\n"
    "FILE: %p in it is the process id, %r the rank (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or PMI_RANK, else 0), %% a percent sign. A second process of the "
    "same run never writes over a file: it gets a number appended, and says so.\n"
    "\n"
    "Policies:\n"
    "\n"
    "  auto  swap at first, then the best plan found\n"
    "  plan  as auto; with --plan the given plan and no other\n"
    "  dtr   as auto, with the plans of the dtr solver\n"
    "  swap  copies to pinned host memory alone\n"
    "  off   leave the program alone; with --trace-out, record it\n"
    "\n"
    "Allocators of PyTorch:\n"
    "\n"
    "  async  its cudaMallocAsync backend; has no memory history, no snapshots, no MemPool, sends no tensor to another process\n"
    "  each   its own allocator without its cache: memory of its own for each tensor; slower, lacks none of that but the sending\n"
    "\n"
    "With each, cuMemAlloc's memory is managed in any program.\n"
    "\n"
    "Environment set for the command: LD_PRELOAD (libremat.so first), PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF "
    "(backend:cudaMallocAsync; settings that backend cannot have are left out with a warning), with --allocator each "
    "PYTORCH_NO_CUDA_MEMORY_CACHING, and one REMAT_* variable for each option. Read from yours:\n"
    "\n"
    "  REMAT_SIMGPU=1   on a machine without a GPU, load the simulated one\n"
    "  REMAT_LOG        error, warn, info or debug; with ,doors counters of the driver calls at exit\n"
    "  REMAT_QUIET=1    as --quiet\n"
    "  REMAT_CACHE      folder of what earlier runs found out (else $XDG_CACHE_HOME/remat, else $HOME/.cache/remat); off: as --no-cache\n"
    "  REMAT_DISABLE=1  leave the program alone\n";

static const struct option_row trace_rows[] = {
    {"output", 'o', "FILE", NULL, NULL, "the trace (required)"},
    {"iterations", 0, "N", NULL, "1", "iterations to record before learning stops"},
    {"stats", 0, "FILE", NULL, NULL, "write statistics, a JSON object, however the program ends"},
    {0}};

static const char trace_more[] =
    "Learns which kernel reads and writes which tensor and writes the last iteration recorded to FILE. The program runs on to "
    "its end. Nothing is evicted. An iteration is known by its repetition, so let the program run ten or so; one that never "
    "repeats itself leaves no FILE.\n"
    "\n"
    "File names, exit status and environment: as remat run --help says.\n";

#define PLAN_EXITS                                                                                                            \
    "Exit status: 0 fine; 1 output that cannot be written, or a failure of remat's; 2 bad input or usage; 3 no plan meets the " \
    "limit (the line names the floor and the op that sets it).\n"

static const struct option_row plan_rows[] = {
    {"limit", 0, "SIZE|PCT", NULL, NULL, "memory limit; a percentage is of the trace's unconstrained peak (required)"},
    {"solver", 0, "NAME|exec:CMD", SOLVERS, "auto", "who makes the plan"},
    {"offload", 0, NULL, NULL, NULL, "allow copies to the host, as without this option"},
    {"no-offload", 0, NULL, NULL, NULL, "no copies to the host: recompute alone"},
    {"time-limit", 0, "SEC", NULL, "the solver's own", "wall-clock seconds the solver may take"},
    {"seed", 0, "N", NULL, "1", "seed of randomized solvers"},
    {"output", 'o', "PLAN", NULL, NULL, "write the plan here (- for standard output)"},
    {"json", 0, NULL, NULL, NULL, "print the result as one JSON object"},
    {"verbose", 'v', NULL, NULL, NULL, "what the solver says of its work, on standard error"},
    {0}};

static const char plan_more[] =
    "TRACE may be - for standard input. SIZE: bytes, or with K M G T (KiB MiB GiB TiB), all binary.\n"
    "\n"
    "Solver exec:CMD is a program of your own: the shell runs CMD with the trace as standard input, and it prints the plan (docs/formats.md).\n"
    "\n" PLAN_EXITS;

static const struct option_row sweep_rows[] = {
    {"limits", 0, "LIST", NULL, "100%,90%,...,30%", "limits, separated by commas; percentages are of the unconstrained peak"},
    {"solvers", 0, "LIST", NULL, "all", "solvers, separated by commas; exec:CMD, without a comma in it, is one of your own"},
    {"time-limit", 0, "SEC", NULL, "20 s for all; with --solvers 3 each", "wall-clock seconds for each plan"},
    {"seed", 0, "N", NULL, "1", "seed of randomized solvers"},
    {"offload", 0, NULL, NULL, NULL, "allow copies to the host, as without this option"},
    {"no-offload", 0, NULL, NULL, NULL, "no copies to the host: recompute alone"},
    {"csv", 0, NULL, NULL, NULL, "print comma-separated values"},
    {"json", 0, NULL, NULL, NULL, "print one JSON object"},
    {"plot", 0, "OUT.svg", NULL, NULL, "draw memory against overhead, a line a solver, the proved bound under them (- for standard output, instead of the table)"},
    {0}};

static const char sweep_more[] = "TRACE may be - for standard input. A row a limit and solver; \"no plan\" and \"no time\" are rows "
                                 "too, and no failure.\n";

static const struct option_row advise_rows[] = {
    {"time-limit", 0, "SEC", NULL, "12", "wall-clock seconds for all prices together"},
    {"wait", 0, "SEC", NULL, "600", "seconds that the command may run before an iteration of it is known; 0: as long as it does"},
    {"json", 0, NULL, NULL, NULL, "one JSON object"},
    {0},
};

static const char advise_more[] =
    "What limits cost, down to the floor and the op that sets it; the knee, below which a point of memory costs more than a point of time; where the "
    "memory is at its peak, by kind, module and line; what would help most. Prices are those of `remat run`; a percentage is of what the program takes by itself.\n"
    "\n"
    "With a command: it runs, is recorded as by `remat trace`, and is ended as soon as one iteration is known. What it prints goes to standard error.\n";

static const struct option_row fit_rows[] = {
    {"limit", 0, "SIZE", NULL, NULL, "device memory the program may use (required)"},
    {"vary", 0, "TEXT", NULL, NULL, "words to put behind the command, {} being the number (required)"},
    {"from", 0, "N", NULL, "8", "the number to record at first; the second time it is twice that"},
    {"wait", 0, "SEC", NULL, "600", "seconds that the command may run before an iteration of it is known; 0: as long as it does"},
    {"json", 0, NULL, NULL, NULL, "one JSON object"},
    {0}};

static const char fit_more[] =
    "The largest number that trains under the limit, as in `remat fit --limit 24G --vary '--batch {}' -- python train.py`: predicted from two recorded "
    "iterations, tried by one run under the limit, which is ended once its iteration is known.\n"
    "\n"
    "Exit status: 0 found; 1 the program could not be recorded; 2 bad usage; 3 none found.\n";

static const struct option_row check_rows[] = {
    {"limit", 0, "SIZE|PCT", NULL, "the plan's own", "hold the plan to this limit"},
    {0}};

static const char check_more[] = "TRACE or PLAN may be - for standard input. Prints one JSON object: ok, peak_bytes, ns, overhead, "
                                 "replays, offloads, and error, the first broken rule.\n"
                                 "\n"
                                 "Exit status: 0 the plan is good; 1 it breaks a rule or its limit; 2 a file cannot be read.\n";

static const struct option_row report_rows[] = {{"output", 'o', "OUT", NULL, NULL, "the page to write (- for standard output; required)"},
                                                {"time-limit", 0, "SEC", NULL, "6", "wall-clock seconds for the curve of prices; 0: no curve"},
                                                {0}};

static const char report_more[] =
    "One self-contained HTML file: a block for each tensor over the ops of one iteration, as the program is and under each PLAN, with the stack that made it; "
    "memory by module and source line, of the backward pass by the line of its forward op; what less memory costs; what is evicted and replayed; the largest "
    "tensors. Nothing is fetched from elsewhere.\n";

static const struct option_row export_rows[] = {
    {"format", 0, "FORMAT", "perfetto|sqlite|dot|memory-viz", NULL, "what to write (required); memory_viz is memory-viz"},
    {"output", 'o', "OUT", NULL, NULL, "the file to write (- for standard output; required)"},
    {0}};

static const char export_more[] =
    "Formats:\n"
    "\n"
    "  perfetto    Trace Event JSON for ui.perfetto.dev: compute and copy tracks, memory as a counter, arrows\n"
    "              from replays to their originals\n"
    "  memory-viz  a memory snapshot as PyTorch's viewer reads it: a pickle, or the same as JSON if OUT ends in .json\n"
    "  sqlite      a database with tables meta, buffers, ops, operands, steps\n"
    "  dot         the graph of ops for Graphviz, an edge per value and consumer\n";

static const struct option_row solve_rows[] = {
    {"solver", 0, "NAME", "chain|chain-float|revolve|chen-sqrt|chen-greedy|mincut|milp|milp-lp|anneal", "the first of its format", "who solves it; see below"},
    {"slots", 0, "N", NULL, "chosen, then refined", "memory slots of the chain programs"},
    {"time-limit", 0, "SEC", NULL, "the solver's own", "wall-clock seconds the solver may take"},
    {"seed", 0, "N", NULL, "1", "seed of randomized solvers"},
    {"reorder", 0, NULL, NULL, NULL, "let the solver change the order of ops where the model allows it"},
    {"output", 'o', "FILE", NULL, NULL, "write the schedule here, a JSON object (- for standard output)"},
    {"json", 0, NULL, NULL, NULL, "print the result as one JSON object"},
    {0}};

static const char solve_more[] = "INSTANCE may be - for standard input. Solvers by format:\n"
                                 "\n"
                                 "  rotor-chain-v1  chain, chain-float, revolve, chen-sqrt, chen-greedy\n"
                                 "  mincut-v1       mincut\n"
                                 "  checkmate-v1    milp, milp-lp, anneal\n"
                                 "\n"
                                 "Exit status: 0 solved; 1 the solver failed; 2 bad input or usage; 3 infeasible.\n";

static const struct option_row status_rows[] = {
    {"json", 0, NULL, NULL, NULL, "one JSON object; with --watch one a line"},
    {"prometheus", 0, NULL, NULL, NULL, "metrics in Prometheus' text format"},
    {"watch", 0, NULL, NULL, NULL, "again and again, until interrupted"},
    {"interval", 0, "SEC", NULL, "2", "seconds between two looks of --watch"},
    {"sort", 0, "KEY", "user|pid|gpu|limit|use|share|host|price|rate|peak", "user", "the order of rows; figures: the largest first"},
    {"wide", 0, NULL, NULL, NULL, "with groups, peaks, iterations and whole command lines, in more than 80 columns"},
    {"listen", 0, "WHERE", NULL, NULL, "serve what --prometheus prints over HTTP (GET /metrics), until it is ended: PORT or ADDRESS:PORT, see below"},
    {0}};
static const char status_more[] =
    "A row a process and device: who, what remat does there, its limit, device memory now and what share of the device's that is, pinned host memory, the price "
    "(device time of an iteration beyond the native; - where it is not known yet), iterations a second. Your own processes; as root, everybody's.\n"
    "\n"
    "--listen PORT serves this machine alone (127.0.0.1), --listen :PORT every address of it; a number, no name. Who can connect sees users and command lines.\n";

static const struct option_row known_rows[] = {{"json", 0, NULL, NULL, NULL, "list: one JSON object"}, {0}};
static const char known_more[] =
    "What runs have found out of kernels (what each reads and writes, whether it repeats bit for bit) lies in the cache, and later runs do not learn that again; so do "
    "plans. Facts hold for the code they were found with: another build of a library is learnt anew.\n"
    "\n"
    "  list         a row for each image of kernels, and for each plan\n"
    "  export FILE  all facts, for another machine with the same code and the same kind of GPU (- for standard output)\n"
    "  import FILE  adds the facts of such a file to the cache: what it says is believed, so import what you would run\n"
    "\n"
    "The folder: REMAT_CACHE, else $XDG_CACHE_HOME/remat, else $HOME/.cache/remat. It has 64 MiB at most; removing it, or a file of it, does no harm.\n"
    "\n"
    "Exit status: 0; 1 a folder or file that cannot be read or written; 2 bad usage, or a FILE that is damaged or of another version of remat.\n";

static const struct option_row doctor_rows[] = {{"json", 0, NULL, NULL, NULL, "one JSON object"},
                                                {"self-test", 0, NULL, NULL, NULL, "train a small model on the device at hand, too: a minute at most; see below"},
                                                {0}};
static const char doctor_more[] = "--self-test runs a small model (workloads/mlp, where remat[sim] or a build folder has it, else one of PyTorch's) by itself, without a limit, "
                                  "and at 60 % of its memory: by swapping, and by a plan. It says whether each of them gave the same losses and parameters within the "
                                  "limit.\n\nExit status: 0 a program can be run under remat here; 1 something stands in the way.\n";

static const struct option_command table[] = {
    {"run", "[--limit SIZE|PCT] [OPTION]... -- CMD...", "run a program in less GPU memory", run_rows, run_more, 1},
    {"trace", "-o FILE [OPTION]... -- CMD...", "record what one training iteration does", trace_rows, trace_more, 1},
    {"plan", "TRACE --limit SIZE|PCT [OPTION]...", "compute a schedule that fits a limit", plan_rows, plan_more, 0},
    {"sweep", "TRACE [OPTION]...", "overhead of every solver over a range of limits", sweep_rows, sweep_more, 0},
    {"advise", "TRACE | [OPTION]... -- CMD...", "what less memory would cost a program, where its memory is, what would help", advise_rows, advise_more, 1},
    {"fit", "--limit SIZE --vary 'TEXT {}' [OPTION]... -- CMD...", "the largest batch (or other number) that trains under a limit", fit_rows, fit_more, 1},
    {"check", "TRACE PLAN [OPTION]...", "re-execute a plan and judge it", check_rows, check_more, 0},
    {"report", "TRACE [PLAN...] -o OUT.html", "a page that shows memory over time", report_rows, report_more, 0},
    {"export", "TRACE [PLAN] --format FORMAT -o OUT", "a trace for other tools", export_rows, export_more, 0},
    {"solve", "INSTANCE [OPTION]...", "solve an instance from the literature", solve_rows, solve_more, 0},
    {"status", "[OPTION]...", "who shares this machine's GPUs", status_rows, status_more, 0},
    {"known", "list | export FILE | import FILE", "what earlier runs have found out of kernels", known_rows, known_more, 0},
    {"doctor", "[OPTION]...", "what works on this machine, and what to do about the rest", doctor_rows, doctor_more, 0},
};

const struct option_command *options_at(size_t i) { return i < sizeof table / sizeof *table ? &table[i] : NULL; }

const struct option_command *options_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

const char *options_commands(char *to, size_t room)
{
    size_t n = 0;
    *to = '\0';
    for (size_t i = 0; i < sizeof table / sizeof *table && n < room; i++)
        n += (size_t)snprintf(to + n, room - n, "%s%s", i ? "|" : "", table[i].name);
    return to;
}

const char *options_values(const char *command, const char *option)
{
    const struct option_command *c = options_find(command);
    for (const struct option_row *o = c ? c->rows : NULL; o && o->name; o++)
        if (!strcmp(o->name, option))
            return o->values;
    return NULL;
}
