/* remat check TRACE PLAN: re-executes the plan and prints the facts that verify_plan.py prints.
 * Exit 0: the plan is good; 1: it breaks a rule or its limit; 2: a file cannot be read. */
#include <math.h>
#include <stdio.h>

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/model/sim.h"
#include "offline/model/trace_read.h"

int cmd_check(int argc, char **argv)
{
    const char *files[2], *limit_text = NULL;
    const struct option_bind binds[] = {{"limit", &limit_text}, {0}};
    char err[512];
    struct graph *g = NULL;
    struct plan p = {0};
    struct sim_result r;
    int64_t limit = 0;
    size_t n;
    int rc = options_parse(argc, argv, binds, files, 2, &n);

    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (n != 2)
        return cli_bad("check: give a trace and a plan (remat check --help)");
    if (trace_read(files[0], &g, err, sizeof(err)))
        return cli_bad("%s", err);
    if (limit_text && (cli_size(limit_text, g->baseline_peak_bytes, &limit) || limit <= 0)) {
        graph_free(g);
        return cli_bad("check: \"%s\" is no size or percentage over zero, such as 12G or 50%%", limit_text);
    }
    if (plan_read(files[1], &p, err, sizeof(err))) {
        graph_free(g);
        return cli_bad("%s", err);
    }
    if (p.trace[0] && g->sha256[0])
        for (n = 0; n < 64; n++)
            if (p.trace[n] != g->sha256[n]) {
                fprintf(stderr, "remat: check: the plan was made for another trace file\n");
                break;
            }
    if (sim_run(g, &p, limit, &r)) {
        rc = cli_fail("check: not enough memory");
    } else {
        rc = r.ok ? CLI_OK : CLI_FAIL;
        printf("{\"ok\": %s, \"peak_bytes\": %lld", r.ok ? "true" : "false", (long long)r.peak_bytes);
        if (r.ns || r.ok) /* it ran to the end */
            printf(", \"ns\": %lld, \"overhead\": %.5f, \"replays\": %lld, \"offloads\": %lld", (long long)r.ns, r.overhead,
                   (long long)r.replays, (long long)r.offloads);
        if (!r.ok) {
            printf(", \"error\": ");
            cli_json(r.error);
        }
        printf("}\n");
    }
    plan_free(&p);
    graph_free(g);
    return rc;
}
