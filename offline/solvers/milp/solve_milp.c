/* solve_milp: the `milp` solver. Small traces are solved exactly; large ones over groups of ops, as the message says. */
#include "offline/model/sim.h"
#include "offline/solvers/milp/milp_coarse.h"
#include "offline/solvers/milp/milp_model.h"
#include "offline/solvers/milp/milp_search.h"
#include "offline/solvers/milp/milp_stages.h"
#include "offline/solvers/mincut/mincut.h"
#include "offline/solvers/mincut/mincut_try.h"
#include "offline/solvers/mincut/solve_mincut.h"
#include "offline/solvers/solver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_SECONDS 30.0
enum { OPS_MAX = 200, COLS_QUICK = 8000, COLS_MAX = 60000, GROUPS = 24 };

struct run {
    const struct graph *g;
    const struct solver_opts *opts;
    struct plan *best;
    struct plan cand;
    int64_t best_ns; /* replay time of best; -1: none */
    double bound_ns; /* proved lower bound on replay time */
    int proved, infeasible;
};

/* Takes cand as best if the simulator accepts it and it is faster. */
static int offer(struct run *r)
{
    struct sim_result q;
    int e = sim_run(r->g, &r->cand, r->opts->limit_bytes, &q);
    if (e || !q.ok || (r->best_ns >= 0 && q.ns - r->g->total_ns >= r->best_ns))
        return e;
    r->best_ns = q.ns - r->g->total_ns;
    return plan_copy(r->best, &r->cand);
}

/* A first plan, from mincut, for the exact solvers to beat. */
static int first_plan(struct run *r, double seconds)
{
    struct solver_opts o = *r->opts;
    struct solver_report rep;
    o.time_limit_s = seconds;
    memset(&rep, 0, sizeof rep);
    plan_reset(&r->cand);
    int e = solver_mincut.solve(r->g, &o, &r->cand, &rep);
    if (e == -ENOSPC || e == -ETIME)
        return 0;
    return e ? e : offer(r);
}

static int stages(struct run *r, const struct milp_model *m, double until_s, int max_cols)
{
    struct milp_found f;
    int e = milp_stages(m, r->opts->limit_bytes, r->best_ns > 0 ? r->best_ns : 0, until_s, max_cols, &r->cand, &f);
    if (e == -ETIME || e == -E2BIG)
        return 0;
    return e || !f.found ? e : offer(r);
}

static int search(struct run *r, const struct milp_model *m, double until_s)
{
    struct milp_found f;
    /* the cutoff is the best's own cost: a plan that costs just as much need not be found again */
    const struct milp_effort effort = {.until_s = until_s};
    int e = milp_search(m, r->opts->limit_bytes, r->best_ns > 0 ? r->best_ns : 0, &effort, &r->cand, &f);
    if (f.bound_ns > r->bound_ns)
        r->bound_ns = f.bound_ns;
    if (e == -ETIME || e == -E2BIG)
        return 0;
    if (e)
        return e;
    if (f.found)
        e = offer(r);
    r->proved = !e && r->best_ns >= 0;
    r->infeasible = f.proved_infeasible && r->best_ns < 0;
    return e;
}

/* CBC first, for the short time that easy instances take it; then the search, whose proofs hold for all
 * plans and not only for Checkmate's form; then CBC again in the time left. */
static int small(struct run *r, const struct milp_model *m, double start, double seconds)
{
    double quick = 0.1 * seconds < 2 ? 0.1 * seconds : 2;
    int e = first_plan(r, quick < 0.5 ? quick : 0.5);
    if (!e && r->best_ns != 0)
        e = stages(r, m, solver_now_s() + quick, COLS_QUICK);
    if (!e && r->best_ns != 0)
        e = search(r, m, start + 0.6 * seconds);
    if (!e && r->best_ns != 0 && !r->proved && !r->infeasible)
        e = stages(r, m, start + seconds, COLS_MAX);
    if (!e && (r->best_ns == 0 || (r->best_ns > 0 && (double)r->best_ns <= r->bound_ns)))
        r->proved = 1;
    return e;
}

static int large(struct run *r, double start, double seconds)
{
    int e = first_plan(r, 0.4 * seconds < 5 ? 0.4 * seconds : 5);
    if (e || r->best_ns == 0) {
        r->proved = !e;
        return e;
    }
    struct sched *s = sched_new(r->g);
    struct mincut_try t = { 0 };
    e = s ? mincut_try_init(&t, r->g, s, r->opts->limit_bytes) : -ENOMEM;
    if (!e)
        e = milp_coarse(r->g, &t, GROUPS, start + seconds);
    if (!e && t.found) {
        e = plan_copy(&r->cand, &t.best_plan);
        if (!e)
            e = offer(r);
    }
    mincut_try_free(&t);
    sched_free(s);
    return e;
}

static int solve(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    double start = solver_now_s(), seconds = opts->time_limit_s > 0 ? opts->time_limit_s : DEFAULT_SECONDS;
    struct run r = { .g = g, .opts = opts, .best = out, .best_ns = -1 };
    struct milp_model m = { 0 };
    int e = g->n_ops > OPS_MAX ? -E2BIG : milp_model_new(g, &m);
    if (e == -E2BIG) {
        e = large(&r, start, seconds);
        if (!e)
            snprintf(rep->message, sizeof rep->message,
                     "%d ops are too many for the exact program; solved over %d groups of ops%s", g->n_ops, GROUPS,
                     r.best_ns >= 0 ? ", best found" : "");
    } else if (!e) {
        e = small(&r, &m, start, seconds);
        if (!e && !r.proved && !r.infeasible)
            snprintf(rep->message, sizeof rep->message, "not settled in %.3g s%s", seconds,
                     r.best_ns >= 0 ? "; best found" : "");
    }
    milp_model_free(&m);
    if (opts->offload && r.best_ns != 0) { /* the proofs hold for plans without copies to the host */
        r.proved = r.infeasible = 0;
        r.bound_ns = 0;
        if (!e && r.best_ns > 0 && !rep->message[0])
            snprintf(rep->message, sizeof rep->message, "best plan without copies to the host");
    }
    rep->proved_optimal = r.proved;
    rep->proved_infeasible = r.infeasible;
    rep->bound_ns = r.best_ns >= 0 && r.proved ? (double)(g->total_ns + r.best_ns) : (double)g->total_ns + r.bound_ns;
    if (!e && r.best_ns < 0)
        e = -ENOSPC;
    if (!e) {
        struct sim_result q;
        e = sim_run(g, out, opts->limit_bytes, &q);
        if (!e)
            sim_stamp(g, out, opts->limit_bytes, &q);
    }
    plan_free(&r.cand);
    return e;
}

const struct solver solver_milp = { "milp", "Checkmate's integer program and an exact search, for small traces", solve };
