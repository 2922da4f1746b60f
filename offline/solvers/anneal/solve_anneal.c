/* The solver `anneal`: FastSA on the whole graph. */
#include "offline/solvers/anneal/anneal_solve.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "offline/solvers/dtr/dtr.h"
#include "offline/model/sim.h"

enum { ANNEAL_DEFAULT_S = 30, ANNEAL_PATIENCE = 8, ROWS_MAX = 16 };

/* The best row as a plan, judged. */
static int finish(struct anneal_search *s, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    struct sim_result r;
    int rc = anneal_load(s->a, &s->best);
    if (!rc)
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

struct judge {
    struct sim_ws *ws;
    struct plan plan;
    int64_t limit_bytes;
};

/* With waits in the plan only the simulator knows its time. */
static double judged_ns(struct anneal_search *s, void *arg)
{
    struct judge *j = arg;
    struct sim_result r;
    if (anneal_plan(s->a, &j->plan))
        return INFINITY;
    sim_run_ws(j->ws, &j->plan, j->limit_bytes, &r);
    return r.ok ? (double)r.ns : INFINITY;
}

/* One search with the host this many times faster than it is: > 1 lets copies be planned that the computation will wait
 * for, which the simulator then charges. */
static int attempt(const struct anneal_model *m, const struct solver_opts *opts, double haste, double deadline_s, int patience,
                   const struct plan *const *seeds, int n_seeds, int dtr, struct plan *out, struct solver_report *rep)
{
    struct anneal_seq row[ROWS_MAX] = {0};
    int n_rows = 0;
    struct judge judge = {.ws = haste > 1 ? sim_ws_new(m->g) : NULL, .limit_bytes = opts->limit_bytes};
    struct anneal_search *s = anneal_search_new(m, opts->limit_bytes, opts->seed, opts->offload);
    int rc = s && (judge.ws || haste <= 1) ? 0 : -ENOMEM;
    if (!rc && judge.ws) {
        s->judge = judged_ns;
        s->judge_arg = &judge;
    }
    if (!rc) {
        /* a copy in time costs next to nothing, one that is waited for its whole time, out and back */
        anneal_search_charge(s, s->a->copies.ns_per_byte * (haste > 1 ? 2 : 1e-4));
        s->a->copies.ns_per_byte /= haste;
    }
    for (int k = 0; !rc && k < n_seeds && n_rows < ROWS_MAX; k++) {
        rc = anneal_seq_of_plan(m, seeds[k], &row[n_rows]);
        if (!rc)
            rc = anneal_search_seed(s, &row[n_rows++]);
    }
    /* what an online policy would do is found in no time, and now and then it sees what chance does not */
    for (int h = 0; !rc && dtr && h < DTR_N_H && n_rows < ROWS_MAX; h++)
        if (!dtr_simulate(m, opts->limit_bytes, (enum dtr_h)h, solver_now_s() + (deadline_s - solver_now_s()) / 20, &row[n_rows]))
            rc = anneal_search_seed(s, &row[n_rows++]);
    if (!rc) {
        s->starts = row;
        s->n_starts = n_rows;
    }
    if (!rc && (dtr || n_seeds))
        rc = anneal_search_clear(s);
    if (!rc)
        rc = anneal_search_all(s, deadline_s, patience, 0);
    if (!rc && !s->best.n)
        rc = -ENOSPC;
    if (!rc)
        rc = finish(s, opts, out, rep);
    if (rc == -ENOSPC)
        snprintf(rep->message, sizeof rep->message, "no schedule within the limit after %lld mutations", (long long)s->mutations);
    anneal_search_free(s);
    for (int k = 0; k < ROWS_MAX; k++)
        anneal_seq_free(&row[k]);
    plan_free(&judge.plan);
    if (judge.ws)
        sim_ws_free(judge.ws);
    return rc;
}

static int solve_with(const struct anneal_model *m, const struct solver_opts *opts, double deadline_s, int patience,
                      const struct plan *const *seeds, int n_seeds, int dtr, struct plan *out, struct solver_report *rep)
{
    static const double haste[] = {1, 8, INFINITY};
    const int n = opts->offload ? (int)(sizeof haste / sizeof *haste) : 1;
    int rc = m ? -ENOSPC : -ENOMEM;
    for (int k = 0; rc == -ENOSPC && k < n; k++) {
        /* hopeless searches share the time; one that finds a plan may use it up */
        const double now = solver_now_s(), until = k + 1 < n || m->n_long ? now + (deadline_s - now) * 0.7 : deadline_s;
        rc = attempt(m, opts, haste[k], until, patience, seeds, n_seeds, dtr, out, rep);
    }
    return rc;
}

int anneal_solve(const struct graph *g, const struct solver_opts *opts, double deadline_s, int patience,
                 const struct plan *const *seeds, int n_seeds, int dtr, struct plan *out, struct solver_report *rep)
{
    struct anneal_model *m = anneal_model_new(g, opts->offload);
    int rc = solve_with(m, opts, deadline_s, patience, seeds, n_seeds, dtr, out, rep);
    if (rc == -ENOSPC && m->n_long) {
        anneal_model_free(m);
        m = anneal_model_new_long(g, opts->offload);
        rc = solve_with(m, opts, deadline_s, patience, seeds, n_seeds, dtr, out, rep);
    }
    anneal_model_free(m);
    return rc;
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
    o.seed += 0x9e3779b9; /* not the dice that found it */
    if (m && m->n_long && replays_long_units(m, plan)) {
        anneal_model_free(m);
        m = anneal_model_new_long(g, opts->offload);
    }
    int rc = m ? attempt(m, &o, 1, deadline_s, patience, from, 1, 0, &next, &r) : -ENOMEM;
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
