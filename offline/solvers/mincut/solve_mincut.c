/* solve_mincut: the `mincut` solver. */
#include "offline/solvers/mincut/solve_mincut.h"
#include "offline/model/sched_fill.h"
#include "offline/solvers/mincut/mincut.h"
#include "offline/solvers/mincut/mincut_price.h"
#include "offline/solvers/mincut/mincut_relax.h"
#include "offline/solvers/mincut/mincut_try.h"
#include "offline/solvers/mincut/mincut_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SECONDS 5.0
enum { ROUNDS = 40, ROUNDS_SMALL = 400 }; /* many rounds only where they are quick */

/* The op at which the plan of `choice` uses most memory or, with luck != 0, a random op near or over the limit. */
static int hot_op(struct mincut_try *t, const uint8_t *choice, uint64_t luck, int32_t *op)
{
    int e = mincut_trial(t, choice);
    if (!e)
        e = t->r.ok ? mincut_profile(t) : -EPROTO;
    int32_t top = 0, n = 0;
    int64_t floor = t->found ? t->limit_bytes - t->limit_bytes / 20 : t->limit_bytes;
    for (int32_t i = 0; !e && i < t->g->n_ops; i++) {
        top = t->use[i] > t->use[top] ? i : top;
        n += t->use[i] > floor;
    }
    *op = top;
    for (int32_t i = 0, k = n ? (int32_t)(luck % (uint64_t)n) : 0; !e && luck && n && i < t->g->n_ops; i++)
        if (t->use[i] > floor && k-- == 0)
            *op = i;
    return e;
}

/* Decide the gaps open at the turns first. Where they do not suffice (gradients that pile up late, values read all over the
 * pass), the gaps open at the worst op are decided anew, the others stay as in the lowest plan; once a plan is within the limit,
 * gaps are decided anew at op after op, to make it faster. After each such cut the walk improves single decisions. */
static int run(struct mincut *m, struct mincut_try *t, double start, double seconds, uint64_t seed)
{
    const struct graph *g = m->g;
    int32_t *turns = malloc(((size_t)g->n_ops + 1) * sizeof *turns);
    uint8_t *base = malloc((size_t)t->s->n_gaps + 1);
    int e = turns && base ? mincut_relax(m, t, start + 0.15 * seconds) : -ENOMEM;
    struct mincut_quest q = { .pivots = turns, .rounds = 240, .until_s = start + 0.45 * seconds, .seed = seed };
    if (!e) {
        q.n_pivots = mincut_turns(g, turns);
        e = mincut_price_search(m, t, &q);
    }
    for (int k = 0; !e && k < ROUNDS_SMALL && solver_now_s() < start + (k < ROUNDS ? 1 : 0.2) * seconds; k++) {
        int32_t op;
        uint64_t luck = (seed + (uint64_t)k) * UINT64_C(0x9e3779b97f4a7c15) >> 33;
        memcpy(base, t->found ? t->best : t->low, (size_t)t->s->n_gaps);
        e = hot_op(t, base, t->found || k % 2 ? luck | 1 : 0, &op);
        q = (struct mincut_quest){ .pivots = &op, .n_pivots = 1, .base = base, .rounds = t->found ? 1 : 3, .noisy = k > 3,
                                   .until_s = start + 0.9 * seconds, .seed = luck };
        if (!e && solver_now_s() < q.until_s)
            e = mincut_price_search(m, t, &q);
        if (!e)
            e = mincut_walk(m, t, start + seconds, 400, k % 2 ? 0.006 : 0, luck);
    }
    free(turns);
    free(base);
    return e;
}

static int solve(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    double start = solver_now_s(), seconds = opts->time_limit_s > 0 ? opts->time_limit_s : DEFAULT_SECONDS;
    struct sched *s = sched_new(g);
    if (s)
        mincut_unforce(s);
    struct mincut *m = s ? mincut_new(g, s) : NULL;
    struct mincut_try t = { 0 };
    int e = m ? mincut_try_init(&t, g, s, opts->limit_bytes) : -ENOMEM;
    if (!e)
        e = mincut_trial(&t, t.best);
    int trivial = t.found;
    if (!e && !trivial)
        e = run(m, &t, start, seconds, opts->seed);
    if (!e && !t.found)
        e = -ENOSPC;
    if (!e) {
        struct sim_result r;
        e = plan_copy(out, &t.best_plan);
        if (!e && !trivial)
            e = sched_fill(s, out, opts->limit_bytes, &r);
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
