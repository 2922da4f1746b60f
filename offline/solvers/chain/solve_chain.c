/* The chain solvers on traces: cut the forward part into stages, solve the chain, follow the schedule, let the simulator
 * judge. The chain's sizes are an estimate, so the chain's budget is varied: every budget that gives another schedule is tried,
 * and the fastest plan that really fits is the answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/model/sched_fill.h"
#include "offline/solvers/chain/chain_classic.h"
#include "offline/solvers/chain/chain_dp.h"
#include "offline/solvers/chain/chain_float.h"
#include "offline/solvers/chain/chain_graph.h"
#include "offline/solvers/chain/chain_plan.h"
#include "offline/solvers/chain/chain_solve.h"
#include "offline/solvers/solver.h"

#define SOLVE_CHAIN_SLOTS 500

struct solve_chain {
    const struct graph *g;
    const struct solver_opts *opts;
    struct sched *s;
    struct plan *best, work;
    int64_t best_ns, best_peak;
    int64_t lowest_peak; /* least peak of the plans tried */
    double deadline;
    int fill; /* use up the room a schedule leaves (sched_fill); not for the classic methods, which serve as a comparison */
    int tried;
};

/* Judge one schedule; keep its plan if it fits and is the fastest so far. Takes cs over. -ETIME when time is up. */
static int solve_chain_offer(struct solve_chain *q, struct chain_maker *m, struct chain_schedule *cs)
{
    struct sim_result r;
    int rc = chain_graph_realize(m, cs, &q->work, &r);

    chain_schedule_free(cs);
    q->tried++;
    if (q->opts->progress)
        cli_progress("chain: %d schedules tried", q->tried);
    if (rc == -EDEADLK || rc == -E2BIG)
        rc = 0; /* this schedule cannot be followed on this graph; other schedules may */
    else if (!rc && r.ok) {
        if (r.peak_bytes < q->lowest_peak)
            q->lowest_peak = r.peak_bytes;
        if (r.peak_bytes <= q->opts->limit_bytes && q->fill)
            rc = sched_fill(q->s, &q->work, q->opts->limit_bytes, &r);
        if (!rc && r.peak_bytes <= q->opts->limit_bytes && (q->best_ns < 0 || r.ns < q->best_ns)) {
            rc = plan_copy(q->best, &q->work);
            q->best_ns = r.ns;
            q->best_peak = r.peak_bytes;
        }
    }
    return rc ? rc : solver_now_s() > q->deadline ? -ETIME : 0;
}

/* A solved table of either program; the other pointer is NULL. */
struct solve_chain_table {
    struct chain_dp *dp;
    struct chain_float *fl;
    int64_t *slots; /* budgets that give different schedules, most memory first */
    int32_t n;
};

static int64_t solve_chain_time(const struct solve_chain_table *t, int64_t k)
{
    return t->fl ? chain_float_time(t->fl, k) : chain_dp_time(t->dp, k);
}

static int solve_chain_try(struct solve_chain *q, struct chain_maker *m, const struct solve_chain_table *t, int32_t i)
{
    struct chain_schedule cs = {0};
    int rc = t->fl ? chain_float_schedule(t->fl, t->slots[i], &cs) : chain_dp_schedule(t->dp, t->slots[i], &cs);

    if (!rc)
        return solve_chain_offer(q, m, &cs);
    chain_schedule_free(&cs);
    return rc;
}

/* Tries schedules from the most memory down: every stride-th first, then all around the best of those. The extra time in the
 * table is nearly the plan's (polishing may save some), so the scan stops once the table's time is well past the best
 * plan's. */
static int solve_chain_scan(struct solve_chain *q, struct chain_maker *m, const struct chain *c,
                            const struct solve_chain_table *t)
{
    int64_t ideal = chain_ideal_time(c), before = q->best_ns;
    int32_t stride = t->n / 24 + 1, i, at = -1;
    int rc = 0;

    for (i = 0; i < t->n && !rc; i += stride) {
        if (q->best_ns >= 0 &&
            (double)q->g->total_ns + 0.6 * (double)(solve_chain_time(t, t->slots[i]) - ideal) > (double)q->best_ns)
            break;
        rc = solve_chain_try(q, m, t, i);
        if (q->best_ns != before) {
            before = q->best_ns;
            at = i;
        }
    }
    for (i = at - stride + 1; at >= 0 && i < at + stride && i < t->n && !rc; i++)
        if (i >= 0 && i != at)
            rc = solve_chain_try(q, m, t, i);
    return rc;
}

static int solve_chain_dp(struct solve_chain *q, struct chain_maker *m, const struct chain *c, int floating, int slots)
{
    struct solve_chain_table t = {0};
    int64_t unit = chain_store_all_peak(c) / slots + 1, k, last = -1;
    struct chain scaled;
    int rc = chain_scale(c, unit, 1, &scaled);

    if (rc)
        return rc;
    slots += slots / 20; /* sizes rounded to nearest may add up to a little more */
    t.slots = calloc((size_t)slots + 1, sizeof(*t.slots));
    rc = !t.slots ? -ENOMEM
         : floating ? chain_float_solve(&scaled, slots, (int64_t)1 << 29, &t.fl)
                    : chain_dp_solve(&scaled, slots, &t.dp);
    for (k = slots; k >= 0 && !rc; k--) {
        int64_t time = solve_chain_time(&t, k);

        if (time < 0)
            break;
        if (time != last)
            t.slots[t.n++] = k;
        last = time;
    }
    if (!rc)
        rc = solve_chain_scan(q, m, c, &t);
    chain_dp_free(t.dp);
    chain_float_free(t.fl);
    chain_free(&scaled);
    free(t.slots);
    return rc;
}

static int solve_chain_classic(struct solve_chain *q, struct chain_maker *m, const struct chain *c, enum chain_method method)
{
    int32_t k, last = -1, turns = method == CHAIN_CHEN_SQRT ? 1 : method == CHAIN_REVOLVE ? 48 : 96;
    int64_t sum = 0, most = 0;
    int rc = 0;

    for (k = 1; k <= c->n; k++) {
        sum += c->abar[k];
        most = c->abar[k] > most ? c->abar[k] : most;
    }
    for (k = 0; k < turns && !rc; k++) {
        struct chain_schedule cs = {0};
        double share = (double)(k + 1) / turns;

        if (method == CHAIN_REVOLVE) {
            int32_t points = (int32_t)((double)(c->n - 1) * share * share);

            if (points == last)
                continue;
            last = points;
            rc = chain_revolve(c, points, &cs);
        } else if (method == CHAIN_CHEN_SQRT) {
            rc = chain_chen_sqrt(c, &cs);
        } else {
            rc = chain_chen_greedy(c, most + (int64_t)((double)(sum - most) * share * share), &cs);
        }
        if (rc)
            chain_schedule_free(&cs);
        else
            rc = solve_chain_offer(q, m, &cs);
    }
    return rc;
}

static int solve_chain_way(struct solve_chain *q, enum chain_method method, const struct chain_way *way)
{
    struct chain_graph *cg = NULL;
    struct chain_maker *m;
    int rc = chain_graph_new(q->g, way, &cg);

    if (rc == -ENOTSUP)
        return 0;
    if (rc)
        return rc;
    m = chain_maker_new(cg, q->s);
    if (!m)
        rc = -ENOMEM;
    else if (method == CHAIN_PERSISTENT)
        rc = solve_chain_dp(q, m, &cg->c, 0, q->opts->slots > 0 ? q->opts->slots : SOLVE_CHAIN_SLOTS);
    else if (method == CHAIN_FLOATING)
        rc = solve_chain_dp(q, m, &cg->c, 1, q->opts->slots > 0 ? q->opts->slots : 120);
    else
        rc = solve_chain_classic(q, m, &cg->c, method);
    chain_maker_free(m);
    chain_graph_free(cg);
    return rc;
}

/* Tries all ways to cut: coarse stages keep whole blocks together, fine stages see every tensor; the better way depends on the model. */
static int solve_chain_all(struct solve_chain *q, enum chain_method method)
{
    static const enum chain_cuts cuts[] = {CHAIN_ARTICULATION, CHAIN_LINEARIZED};
    static const int32_t stages[] = {200, 60};
    static const double cheap[] = {0, 0.25, 0.5, 0.7, 0.85};
    int programs = method == CHAIN_PERSISTENT || method == CHAIN_FLOATING, i, rc = 0;

    for (i = 0; i < 16 * (programs ? 5 : 1) && !rc; i++) {
        struct chain_way way = {cuts[i & 1], stages[i >> 1 & 1], cheap[i >> 4], i >> 2 & 1, i >> 3 & 1};

        if (method == CHAIN_FLOATING && (way.max_stages > 60 || way.optimism > 0))
            continue; /* the floating program's tables cost too much for many ways */
        if (!programs && way.optimism > 0)
            continue; /* the classic methods do not look at overheads */
        rc = solve_chain_way(q, method, &way);
    }
    return rc;
}

static int solve_chain(const struct graph *g, const struct solver_opts *opts, enum chain_method method, struct plan *out,
                       struct solver_report *rep)
{
    struct solve_chain q = {.g = g, .opts = opts, .best = out, .best_ns = -1, .lowest_peak = INT64_MAX};
    uint8_t *keep_all = NULL;
    struct sim_result r;
    char low[32];
    int rc = -ENOMEM;

    q.fill = method == CHAIN_PERSISTENT || method == CHAIN_FLOATING;
    q.deadline = solver_now_s() + (opts->time_limit_s > 0 ? opts->time_limit_s : 20);
    q.s = sched_new(g);
    keep_all = q.s ? calloc((size_t)q.s->n_gaps + 1, 1) : NULL;
    if (!keep_all)
        goto done;
    /* Dropping values after their last use costs nothing and may be enough. */
    sched_default(q.s, keep_all);
    rc = sched_realize(q.s, keep_all, out, &r);
    if (rc)
        goto done;
    if (r.ok && r.peak_bytes <= opts->limit_bytes) {
        rep->proved_optimal = 1;
        goto done;
    }
    rc = solve_chain_all(&q, method);
    if (q.best_ns >= 0) {
        rc = 0;
    } else if (!rc || rc == -ETIME) {
        if (!rc)
            rc = -ENOSPC;
        if (q.lowest_peak < INT64_MAX)
            snprintf(rep->message, sizeof(rep->message), "the least its schedules need is %s",
                     cli_bytes(q.lowest_peak, low, sizeof(low)));
    }
done:
    free(keep_all);
    sched_free(q.s);
    plan_free(&q.work);
    return rc;
}

#define SOLVE_CHAIN(object, text, what, method)                                                                       \
    static int object##_solve(const struct graph *g, const struct solver_opts *opts, struct plan *out,                \
                              struct solver_report *rep)                                                              \
    {                                                                                                                 \
        return solve_chain(g, opts, method, out, rep);                                                                \
    }                                                                                                                 \
    const struct solver object = {text, what, object##_solve};

SOLVE_CHAIN(solver_chain, "chain", "Rotor's persistent dynamic program on stages of the forward part", CHAIN_PERSISTENT)
SOLVE_CHAIN(solver_chain_float, "chain-float", "the floating dynamic program on coarser stages", CHAIN_FLOATING)
SOLVE_CHAIN(solver_revolve, "revolve", "binomial checkpointing over stages", CHAIN_REVOLVE)
SOLVE_CHAIN(solver_chen_sqrt, "chen-sqrt", "about sqrt(n) equal segments", CHAIN_CHEN_SQRT)
SOLVE_CHAIN(solver_chen_greedy, "chen-greedy", "segments by stored bytes", CHAIN_CHEN_GREEDY)
