#include "offline/solvers/anneal/anneal_runs.h"

#include <errno.h>

#include "offline/solvers/anneal/anneal_copies.h"
#include "offline/solvers/anneal/anneal_first.h"
#include "offline/solvers/solver.h"

enum { EFFORT_MIN = 2000000, RUN_MAX = 4000000 };
#define RUN_MOST_S 1 /* length of a run in a pool, seconds */
#define MEND_THRIFT 0.3

/* Kinds of fresh runs, in turn: the best kind depends on the graph. Temperatures are in average replays (scale_ns). */
static const struct {
    double hot, cold, price_share, soft_share;
} recipes[] = {{0.15, 0.002, 0.5, 0}, {0.3, 0.003, 0.3, 0.5}, {0.05, 0.001, 0.5, 0}, {0.8, 0.006, 0.3, 0}};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };
#define SOFT_HOT 0.03
/* While no schedule within the limit is known, every second run is mostly in stage 1 and begins with a peak so soft that all places near the limit count:
 * a few large tensors may be alive in many places at once, and the exact peak falls only when all these places have been changed. */
#define UNKNOWN_SOFT_SHARE 0.8
#define UNKNOWN_SOFT_HOT 0.3

/* Are waits among the moves of run k? A wait gets memory down at one stroke, but from many waits no short way leads back to a schedule
 * without them: so where a schedule without waits is known, waits are tried only now and then, and where none is known, at least
 * every second fresh run does without waits. */
static int run_waits(const struct anneal_search *s, int k)
{
    if (!s->may_wait)
        return 0;
    if (s->best.n && s->best.wait_ns <= 0)
        return k % 8 >= 6;
    return k % 2 || (!s->afresh && k % 4 == 0);
}

/* Run number k: even runs start afresh, odd runs from the best schedule, cooler. */
static int one_run(struct anneal_search *s, int k, int64_t length, double deadline_s)
{
    s->waits = run_waits(s, k);
    const int again = k % 2 && s->best.n, unknown = k % 2 && !s->best.n, recipe = k / 2 % N_RECIPES;
    const struct anneal_run fresh = {.mutations = length,
                                     .hot_ns = s->scale_ns * recipes[recipe].hot,
                                     .cold_ns = s->scale_ns * recipes[recipe].cold,
                                     .price_share = recipes[recipe].price_share,
                                     .soft_share = unknown ? UNKNOWN_SOFT_SHARE : recipes[recipe].soft_share,
                                     .soft_hot = unknown ? UNKNOWN_SOFT_HOT : SOFT_HOT,
                                     .soft_cold = 0.002,
                                     .deadline_s = deadline_s};
    const struct anneal_run cool = {.mutations = length,
                                    .hot_ns = s->scale_ns * (k % 4 == 1 ? 0.03 : 0.1) * (s->waits && k > 1 ? 4 : 1),
                                    .cold_ns = s->scale_ns * 0.001,
                                    .deadline_s = deadline_s};
    const struct anneal_seq *from = again ? &s->best : k % 2 && s->n_starts ? &s->starts[k / 2 % s->n_starts] : NULL;
    int rc = from ? anneal_load(s->a, from) : anneal_search_clear(s);
    if (!rc && from && !s->waits)
        rc = anneal_copies_hide(s->a);
    return rc ? rc : anneal_search_run(s, from ? &cool : &fresh);
}

/* After a run that ended above the limit but below the best's cost: a few added waits may bring its schedule within the limit. */
static int mend(struct anneal_search *s, double deadline_s)
{
    if (!s->may_wait || anneal_peak(s->a) <= s->limit_bytes || (s->best.n && anneal_search_cost_ns(s) >= s->best_ns))
        return 0;
    s->waits = 1;
    const int rc = anneal_first(s, MEND_THRIFT, ANNEAL_AWAY_THROUGHOUT, deadline_s);
    return rc == -ENOSPC || rc == -ETIME ? 0 : rc ? rc : anneal_search_note(s);
}

int anneal_runs(struct anneal_search *s, double deadline_s, int patience, double bound_ns)
{
    const double total = s->time_ns;
    int64_t length = 200 * (int64_t)(s->n_cand + s->n_copy_cand) + 20000;
    int idle = 0, rc = anneal_search_note(s);
    for (int k = (s->best.n || s->n_starts) && !s->afresh ? 1 : 0; !rc && (idle < patience || s->mutations < EFFORT_MIN); k++) {
        if (s->pool && anneal_pool_take(s->pool, &s->best, &s->best_ns, &s->best_judged) < 0)
            return -ENOMEM;
        const double start = solver_now_s(), was = s->best.n ? s->best_ns : 0;
        if (anneal_search_had_enough(s, deadline_s) || (s->best.n && was <= bound_ns))
            break;
        const int64_t before = s->mutations;
        rc = one_run(s, k, length, deadline_s);
        if (!rc)
            rc = mend(s, deadline_s);
        const double took = solver_now_s() - start;
        if (s->pool)
            anneal_pool_ran(s->pool);
        const int better = s->best.n && (was == 0 || was - s->best_ns >= 2e-4 * total);
        idle = better ? 0 : idle + 1;
        if (k % 2 && length < RUN_MAX)
            length *= 2;
        /* while a program waits, several short runs that reach their end are better than one long run */
        if (s->pool && took > RUN_MOST_S)
            length = (int64_t)((double)(s->mutations - before) * RUN_MOST_S / took) + 1;
        /* a run that cannot end in time would be broken off hot: make the last run fit */
        const double left = deadline_s - solver_now_s(), per = took / (double)(s->mutations - before + 1);
        if (deadline_s > 0 && left > 0 && (double)length * per > left)
            length = (int64_t)(left / per) + 1;
    }
    return rc;
}
