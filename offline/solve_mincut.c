/* solve_mincut: the `mincut` solver. */
#include "offline/mincut.h"
#include "offline/mincut_price.h"
#include "offline/solver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_SECONDS 5.0

static int solve(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    double start = solver_now_s(), seconds = opts->time_limit_s > 0 ? opts->time_limit_s : DEFAULT_SECONDS;
    struct sched *s = sched_new(g);
    struct mincut *m = s ? mincut_new(g, s) : NULL;
    struct mincut_try t = { 0 };
    int e = m ? mincut_try_init(&t, g, s, opts->limit_bytes) : -ENOMEM;
    if (!e)
        e = mincut_trial(&t, t.best);
    int trivial = t.found;
    if (!e && !trivial)
        e = mincut_relax(m, &t, start + 0.15 * seconds);
    if (!e && !trivial)
        e = mincut_price_search(m, &t, start + 0.6 * seconds, 60, opts->seed);
    if (!e && !trivial)
        e = mincut_walk(m, &t, start + seconds, 20000, opts->seed);
    if (!e && !t.found)
        e = -ENOSPC;
    if (!e) {
        e = plan_copy(out, &t.best_plan);
        struct sim_result r;
        if (!e)
            e = sim_run(g, out, opts->limit_bytes, &r);
        if (!e)
            sim_stamp(g, out, opts->limit_bytes, &r);
        snprintf(rep->message, sizeof rep->message, "%lld plans tried", (long long)t.trials);
    }
    mincut_try_free(&t);
    mincut_free(m);
    sched_free(s);
    return e;
}

const struct solver solver_mincut = { "mincut", "minimum cut of the forward values, priced to the limit", solve };
