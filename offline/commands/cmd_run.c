/* cmd_run.c: `remat run`: a program in less GPU memory. */
#include "offline/commands/cli.h"
#include "offline/commands/launch.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"

int cmd_run(int argc, char **argv)
{
    struct launch_settings s = {0};
    const struct option_bind binds[] = {
        {"limit", &s.limit},
        {"policy", &s.policy},
        {"plan", &s.plan},
        {"solver", &s.solver},
        {"trace-out", &s.trace_out},
        {"host-swap", &s.host_swap},
        {"verify", &s.verify},
        {"rehearse", &s.rehearse},
        {"allocator", &s.allocator},
        {"nvtx", &s.nvtx},
        {"no-cache", &s.no_cache},
        {"quiet", &s.quiet},
        {"plan-only", &s.plan_only},
        {"stats", &s.stats},
        {"group", &s.group},
        {"group-limit", &s.group_limit},
        {"guarantee", &s.guarantee},
        {0}};
    size_t n;
    int split = launch_split(argc, argv);
    int rc = options_parse(split, argv, binds, NULL, 0, &n);
    if (rc)
        return rc > 0 ? CLI_OK : LAUNCH_FAILED;
    s.command = split < argc ? argv + split + 1 : NULL;
    return launch(&s);
}
