/* remat advise TRACE | -- CMD...: what less memory would cost a program, where its memory is, and what would help most. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/advise_where.h"
#include "offline/commands/attempt.h"
#include "offline/commands/cli.h"
#include "offline/commands/launch.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/model/trace_read.h"
#include "offline/solvers/curve.h"
#include "tracer/plain.h"

static const double PRICES_S = 12; /* for all prices together */

struct advice {
    const char *trace, *time_limit;
    int json;
    struct graph *g;
    struct as_run run;
    struct curve c;
};

static void advise_step(int k, int n)
{
    if (k < 0)
        cli_progress_end();
    else
        cli_progress("advise: %d of %d limits", k + 1, n);
}

static void advise_json(const struct advice *a, const struct where *w)
{
    printf("{\"peak_bytes\": %lld, \"native_limit_bytes\": %lld, \"floor_bytes\": %lld, \"floor_op\": %d, \"knee_bytes\": %lld, \"limits\": [",
           (long long)a->g->baseline_peak_bytes, (long long)a->c.limit[0], (long long)a->c.floor_bytes, a->c.floor_op, (long long)a->c.limit[a->c.knee]);
    for (int i = 0; i < a->c.n; i++) {
        printf("%s{\"limit_bytes\": %lld, \"overhead\": ", i ? ", " : "", (long long)a->c.limit[i]);
        printf(isnan(a->c.overhead[i]) ? "null}" : "%.6f}", a->c.overhead[i]);
    }
    printf("], ");
    where_json(w);
    printf("}\n");
}

static void advise_text(const struct advice *a, const struct where *w)
{
    char b[32], c[32];
    printf("%s: takes %s, %.2f ms of device time an iteration\n\n", PLAIN(a->g->model), cli_bytes(a->c.limit[0], b, sizeof b), (double)a->g->total_ns / 1e6);
    printf("%14s %6s  %s\n", "remat run --limit", "", "device time");
    for (int i = 0; i < a->c.n; i++) {
        printf("%17s %5.0f%%  ", cli_bytes(a->c.limit[i], b, sizeof b), 100 * (double)a->c.limit[i] / (double)a->c.limit[0]);
        if (isnan(a->c.overhead[i]))
            printf("no plan found\n");
        else
            printf("%.2f x%s\n", 1 + a->c.overhead[i], i == a->c.knee && i ? "  <- the knee: below it a point of memory costs more than a point of time" : "");
    }
    printf("%17s %5.0f%%  the floor: no plan goes lower, for %s needs %s at once\n", cli_bytes(a->c.floor_bytes, b, sizeof b),
           100 * (double)a->c.floor_bytes / (double)a->c.limit[0], a->c.floor_op >= 0 ? PLAIN(a->g->ops[a->c.floor_op].name) : "what is there before the first op",
           cli_bytes(a->c.floor_bytes - a->run.reserve_bytes, c, sizeof c));
    where_text(w);
}

static int advise(struct advice *a)
{
    char err[512];
    if (trace_read(a->trace, &a->g, err, sizeof err))
        return cli_bad("%s", err);
    if (as_run_make(a->g, &a->run))
        return cli_fail("advise: not enough memory");
    double seconds = PRICES_S;
    if (a->time_limit && cli_seconds(a->time_limit, &seconds))
        return cli_bad("advise: --time-limit \"%s\" is no number of seconds", a->time_limit);
    const int rc = curve_find(a->g, &a->run, seconds, advise_step, &a->c);
    if (rc)
        return cli_fail("advise: %s", a->c.message[0] ? a->c.message : strerror(-rc));
    struct where w;
    if (where_find(a->g, &w))
        return cli_fail("advise: not enough memory");
    if (a->json)
        advise_json(a, &w);
    else
        advise_text(a, &w);
    where_free(&w);
    return CLI_OK;
}

int cmd_advise(int argc, char **argv)
{
    struct advice a = {0};
    struct attempt run = {0};
    const char *wait = NULL;
    double wait_s = ATTEMPT_WAIT_S;
    const struct option_bind binds[] = {{"json", &a.json}, {"time-limit", &a.time_limit}, {"wait", &wait}, {0}};
    size_t n = 0;
    const int split = launch_split(argc, argv);
    int rc = options_parse(split, argv, binds, &a.trace, 1, &n);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    char *const *command = split + 1 < argc ? argv + split + 1 : NULL;
    if (!n == !command)
        return cli_bad("advise: give a trace, or -- and a command (remat advise --help)");
    if (wait && cli_real(wait, 0, 1e9, &wait_s))
        return cli_bad("advise: --wait \"%s\" is no number of seconds", wait);
    if (command) {
        rc = attempt_run(command, NULL, wait_s, &run);
        a.trace = run.trace;
    }
    if (rc == -ECHILD)
        rc = cli_fail("advise: %s ended before an iteration was recorded: one is known by its repetition, so let it run ten or so", command[0]);
    else if (rc == -ETIME)
        rc = cli_fail("advise: no iteration of %s came again in %g s, and it was ended: one is known by its repetition; --wait SEC waits longer, --wait 0 for as long as it runs",
                      command[0], wait_s);
    else
        rc = rc ? cli_fail("advise: %s: %s", command[0], strerror(-rc)) : advise(&a);
    attempt_end(&run);
    as_run_free(&a.run);
    graph_free(a.g);
    return rc;
}
