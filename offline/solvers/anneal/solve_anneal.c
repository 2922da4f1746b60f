/* The solver `anneal`: FastSA on the whole graph. */
#include "offline/solvers/anneal/solve_anneal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "offline/model/sim.h"
#include "offline/solvers/anneal/anneal_first.h"
#include "offline/solvers/anneal/anneal_plan.h"
#include "offline/solvers/anneal/anneal_runs.h"
#include "offline/solvers/dtr/dtr.h"

enum { ANNEAL_DEFAULT_S = 30, ANNEAL_PATIENCE = 8, ROWS_MAX = 16 };

/* Judges plans with copies, whose time only the simulator knows, and keeps the best plan it has judged. */
struct judge {
    struct sim_ws *ws;
    struct plan plan, best;
    int64_t best_ns; /* 0: none yet */
    int64_t limit_bytes;
};

static double judged_ns(struct anneal_search *s, void *arg)
{
    struct judge *j = arg;
    struct sim_result r;
    if (anneal_plan(s->a, &j->plan))
        return INFINITY;
    sim_run_ws(j->ws, &j->plan, j->limit_bytes, &r);
    if (!r.ok)
        return INFINITY;
    if (!j->best_ns || r.ns < j->best_ns) {
        const struct plan swap = j->best;
        j->best = j->plan;
        j->plan = swap;
        j->best_ns = r.ns;
    }
    return (double)r.ns;
}

/* Write the best schedule as a plan and judge it; where j has judged plans, its best one is taken. */
static int finish(struct anneal_search *s, const struct judge *j, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    struct sim_result r;
    int rc = j->best_ns ? plan_copy(out, &j->best) : anneal_load(s->a, &s->best);
    if (!rc && !j->best_ns)
        rc = anneal_plan(s->a, out);
    if (!rc)
        rc = sim_run(s->m->g, out, opts->limit_bytes, &r);
    if (rc)
        return rc;
    if (!r.ok) {
        snprintf(rep->message, sizeof rep->message, "the annealed plan does not replay: %.200s", r.error);
        return -EPROTO;
    }
    snprintf(out->solver, sizeof out->solver, "anneal");
    sim_stamp(s->m->g, out, opts->limit_bytes, &r);
    rep->peak_bytes = r.peak_bytes;
    rep->planned_ns = r.ns;
    rep->replays = r.replays;
    rep->offloads = r.offloads;
    return 0;
}

/* Build schedules (anneal_first) for the annealer to begin with; the cheapest becomes the search's best. */
static int build_first(struct anneal_search *s, int side, double deadline_s)
{
    static const double thrifts[2][3] = {{0.3, 0.1, 0.6}, {0.2, 0.45, 0.05}};
    const double *thrift = thrifts[side];
    int rc = 0;
    for (size_t k = 0; !rc && k < 3; k++) {
        const double began_s = solver_now_s();
        rc = anneal_search_clear(s);
        int made = rc ? rc : anneal_first(s, thrift[k], ANNEAL_AWAY_THROUGHOUT, deadline_s);
        if (!made)
            made = anneal_search_note(s);
        rc = made == -ENOMEM ? made : 0;
        if (deadline_s > 0 && deadline_s - solver_now_s() < 4 * (solver_now_s() - began_s))
            break;
    }
    return rc;
}

/* Copies for buffers that nothing rebuilds (an optimizer's states), replays for the rest: the replays are those that an online policy needs under a limit
 * that is larger by the bytes sent out, the copies are added by anneal_first(). The best number of bytes to send out depends on how long the copy engines
 * have for them, so several limits are tried. n_sides: searches that share the work. */
static int build_split(struct anneal_search *s, int side, int n_sides, double deadline_s)
{
    static const enum dtr_h kinds[] = {DTR_FULL, DTR_LOCAL, DTR_MSPS, DTR_LRU};
    static const double thrift[2] = {0.6, 0.3};
    enum { LIMITS = 5, KINDS = sizeof kinds / sizeof *kinds };
    const struct graph *g = s->m->g;
    const int64_t most = s->limit_bytes + (g->floor_bytes - g->floor_offload_bytes), least = s->limit_bytes > g->floor_bytes ? s->limit_bytes : g->floor_bytes;
    struct anneal_seq row = {0};
    int rc = 0;
    for (int k = side; rc != -ENOMEM && k < LIMITS * KINDS && most >= least && solver_now_s() < deadline_s; k += n_sides) {
        const int64_t limit_bytes = least + (most - least) / LIMITS * (k / KINDS);
        rc = dtr_simulate(s->m, limit_bytes, kinds[k % KINDS], solver_now_s() + (deadline_s - solver_now_s()) / 2, &row);
        if (!rc)
            rc = anneal_load(s->a, &row);
        if (!rc)
            rc = anneal_first(s, thrift[side], ANNEAL_AWAY_WHERE_SHORT, deadline_s);
        if (!rc)
            rc = anneal_search_note(s);
    }
    anneal_seq_free(&row);
    return rc == -ENOMEM ? rc : 0;
}

/* Inputs of a search beside the graph and the options. */
struct task {
    double deadline_s; /* solver_now_s clock */
    int patience;
    const struct plan *const *seeds;
    int n_seeds, dtr;
    struct anneal_pool *pool; /* NULL: the search is alone */
    int side;                 /* 0 or 1: the two searches of a pool begin differently */
};

/* One search. With copies allowed the computation may wait for copies, which the simulator charges. */
static int attempt(const struct anneal_model *m, const struct solver_opts *opts, const struct task *t, struct plan *out, struct solver_report *rep)
{
    struct anneal_seq row[ROWS_MAX] = {0};
    int n_rows = 0;
    struct judge judge = {.ws = opts->offload ? sim_ws_new(m->g) : NULL, .limit_bytes = opts->limit_bytes};
    struct anneal_search *s = anneal_search_new(m, opts->limit_bytes, opts->seed, opts->offload);
    int rc = s && (judge.ws || !opts->offload) ? 0 : -ENOMEM;
    if (!rc && judge.ws) {
        s->judge = judged_ns;
        s->judge_arg = &judge;
    }
    if (!rc && opts->offload) {
        anneal_search_charge(s, s->a->copies.ns_per_byte * 1e-4); /* a copy in time costs next to nothing */
        anneal_search_let_wait(s);
    }
    if (!rc) {
        s->pool = t->pool;
        s->afresh = t->side;
        s->a->copies.in_turn = t->side; /* copies in turn find plans that copies out of turn do not, and vice versa */
    }
    for (int k = 0; !rc && k < t->n_seeds && n_rows < ROWS_MAX; k++) {
        rc = anneal_seq_of_plan(m, t->seeds[k], &row[n_rows]);
        if (!rc)
            rc = anneal_search_seed(s, &row[n_rows++]);
    }
    /* an online policy's schedule takes hardly any time to make, and now and then is one that chance does not find */
    for (int h = 0; !rc && t->dtr && h < DTR_N_H && n_rows < ROWS_MAX; h++)
        if (!dtr_simulate(m, opts->limit_bytes, (enum dtr_h)h, solver_now_s() + (t->deadline_s - solver_now_s()) / 20, &row[n_rows]))
            rc = anneal_search_seed(s, &row[n_rows++]);
    if (!rc) {
        s->starts = row;
        s->n_starts = n_rows;
    }
    if (!rc && (t->dtr || t->n_seeds))
        rc = anneal_search_clear(s);
    if (!rc && opts->offload)
        rc = build_split(s, t->side, t->pool ? 2 : 1, solver_now_s() + (t->deadline_s - solver_now_s()) / 4);
    if (!rc && opts->offload)
        rc = build_first(s, t->side, solver_now_s() + (t->deadline_s - solver_now_s()) / 2);
    if (!rc)
        rc = anneal_runs(s, t->deadline_s, t->patience, 0);
    if (!rc && !s->best.n)
        rc = -ENOSPC;
    if (!rc)
        rc = finish(s, &judge, opts, out, rep);
    if (rc == -ENOSPC)
        snprintf(rep->message, sizeof rep->message, "no schedule within the limit after %lld mutations", (long long)s->mutations);
    anneal_search_free(s);
    for (int k = 0; k < ROWS_MAX; k++)
        anneal_seq_free(&row[k]);
    plan_free(&judge.plan);
    plan_free(&judge.best);
    if (judge.ws)
        sim_ws_free(judge.ws);
    return rc;
}

static int solve_with(const struct anneal_model *m, const struct solver_opts *opts, const struct task *t, struct plan *out, struct solver_report *rep)
{
    if (!m)
        return -ENOMEM;
    /* with long units in the graph a second search may follow this one, and gets the rest of the time */
    struct task now = *t;
    const double now_s = solver_now_s();
    if (m->n_long)
        now.deadline_s = now_s + (t->deadline_s - now_s) * 0.7;
    return attempt(m, opts, &now, out, rep);
}

static int solve_task(const struct graph *g, const struct solver_opts *opts, struct task *t, struct plan *out, struct solver_report *rep)
{
    struct anneal_model *m = anneal_model_new(g, opts->offload);
    int rc = solve_with(m, opts, t, out, rep);
    if (rc == -ENOSPC && m->n_long) {
        anneal_model_free(m);
        m = anneal_model_new_long(g, opts->offload);
        t->pool = NULL; /* the pool's rows name units of the model without long ones */
        rc = solve_with(m, opts, t, out, rep);
    }
    anneal_model_free(m);
    return rc;
}

int anneal_solve(const struct graph *g, const struct solver_opts *opts, double deadline_s, int patience,
                 const struct plan *const *seeds, int n_seeds, int dtr, struct plan *out, struct solver_report *rep)
{
    struct task t = {.deadline_s = deadline_s, .patience = patience, .seeds = seeds, .n_seeds = n_seeds, .dtr = dtr};
    return solve_task(g, opts, &t, out, rep);
}

int anneal_solve_side(const struct graph *g, const struct solver_opts *opts, double deadline_s, const struct plan *seed, struct anneal_pool *pool,
                      int side, struct plan *out, struct solver_report *rep)
{
    struct task t = {.deadline_s = deadline_s, .patience = INT_MAX, .seeds = &seed, .n_seeds = seed != NULL, .pool = pool, .side = side};
    t.dtr = !opts->offload && !side;
    return solve_task(g, opts, &t, out, rep);
}

static int replays_long_units(const struct anneal_model *m, const struct plan *p)
{
    for (size_t k = 0; k < p->n_steps; k++)
        if (p->steps[k].kind == PLAN_REPLAY && !m->units[m->unit_of_op[p->steps[k].id]].replayable)
            return 1;
    return 0;
}

int anneal_go_on(const struct graph *g, const struct solver_opts *opts, double deadline_s, int patience, struct plan *plan, struct solver_report *rep)
{
    struct solver_opts o = *opts;
    struct plan next = {0};
    struct solver_report r = {0};
    const struct plan *const from[] = {plan};
    struct anneal_model *m = anneal_model_new(g, opts->offload);
    o.seed += 0x9e3779b9; /* not the random seed that found the plan */
    if (m && m->n_long && replays_long_units(m, plan)) {
        anneal_model_free(m);
        m = anneal_model_new_long(g, opts->offload);
    }
    const struct task t = {.deadline_s = deadline_s, .patience = patience, .seeds = from, .n_seeds = 1};
    int rc = m ? attempt(m, &o, &t, &next, &r) : -ENOMEM;
    if (!rc && r.planned_ns < rep->planned_ns && !(rc = plan_copy(plan, &next)))
        *rep = r;
    plan_free(&next);
    anneal_model_free(m);
    return rc == -ENOSPC ? 0 : rc;
}

static int solve_anneal(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    const double limit_s = opts->time_limit_s > 0 ? opts->time_limit_s : ANNEAL_DEFAULT_S;
    const double deadline_s = solver_now_s() + limit_s;
    const int rc = anneal_solve(g, opts, deadline_s, ANNEAL_PATIENCE, NULL, 0, 0, out, rep);
    return rc == -ENOSPC && solver_now_s() >= deadline_s ? -ETIME : rc;
}

const struct solver solver_anneal = {"anneal", "simulated annealing over schedules of replays (FastSA)", solve_anneal};
