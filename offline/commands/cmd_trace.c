/* cmd_trace.c: `remat trace`: what one training iteration does, as an opgraph-1 file. */
#include "offline/commands/cli.h"
#include "offline/commands/launch.h"

#include <stdio.h>

static const char more[] =
    "\n"
    "Learns which kernel reads and writes which tensor and writes the last iteration recorded to FILE. Learning stops\n"
    "after N recorded iterations (default 1); the program runs on to its end. Nothing is evicted.\n"
    "An iteration is known by its repetition, so let the program run ten or so; one that never repeats itself\n"
    "leaves no FILE.\n"
    "Exit status and environment: as remat run --help says.\n";

int cmd_trace(int argc, char **argv)
{
    struct launch_settings s = {.trace = true};
    const struct cli_option table[] = {
        {"output", 'o', "FILE", &s.trace_out, "the trace (required)"},
        {"iterations", 0, "N", &s.iterations, "iterations to record before learning stops (default 1)"},
        {"stats", 0, "FILE", &s.stats, "write statistics at exit, a JSON object"},
        {0},
    };
    size_t n;
    int split = launch_split(argc, argv);
    int rc = cli_parse(split, argv, "trace -o FILE [--iterations N] -- CMD...", table, NULL, 0, &n);
    if (rc > 0)
        fputs(more, stdout);
    if (rc)
        return rc > 0 ? CLI_OK : LAUNCH_FAILED;
    if (!s.trace_out)
        return launch_bad("trace: say with -o FILE where the trace goes");
    s.command = split < argc ? argv + split + 1 : NULL;
    return launch(&s);
}
