/* cmd_trace.c: `remat trace`: what one training iteration does, as an opgraph-1 file. */
#include "offline/commands/cli.h"
#include "offline/commands/launch.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"

int cmd_trace(int argc, char **argv)
{
    struct launch_settings s = {.trace = true};
    const struct option_bind binds[] = {
        {"output", &s.trace_out},
        {"iterations", &s.iterations},
        {"stats", &s.stats},
        {0}};
    size_t n;
    int split = launch_split(argc, argv);
    int rc = options_parse(split, argv, binds, NULL, 0, &n);
    if (rc)
        return rc > 0 ? CLI_OK : LAUNCH_FAILED;
    if (!s.trace_out)
        return launch_bad("trace: say with -o FILE where the trace goes");
    s.command = split < argc ? argv + split + 1 : NULL;
    return launch(&s);
}
