/* Improves a plan by annealing it, for a counted number of mutations. */
#include "offline/solvers/cover/cover_polish.h"
#include "offline/solvers/cover/cover.h"

#include <errno.h>
#include <math.h>

#include "offline/model/sched_fill.h"
#include "offline/solvers/anneal/anneal_plan.h"
#include "offline/solvers/anneal/anneal_search.h"
#include "offline/solvers/dtr/dtr.h"
#include "offline/solvers/solver.h"

/* Numbers of runs: over a good plan (RUNS); while the bound is far below the best (RUNS_FAR; RUNS_NONE while no plan is known), every second
 * of them from a fresh start; where the caller asks for thoroughness and the bound is still far (RUNS_FURTHER), longer and hotter fresh runs,
 * and every fifth run from the best. */
enum { RUNS = 6, RUNS_FAR = 26, RUNS_FURTHER = 110, RUNS_NONE = 14, AGAIN = 5, MOVES_MOST = 300000, MOVES_FURTHER = 200000,
       MOVES_FAR = 60000, MOVES_LEAST = 20000, STARTS = DTR_N_H, LARGE_OPS = 20000,
       EXACT_OPS = 40 }; /* up to this many ops schedules are searched exactly afterwards */
static const double far_off = 0.02; /* part of the plan's replay time above the bound from which the bound counts as far */

/* Temperatures at which runs over a plan begin, in average replays. */
static const double warmth[RUNS] = {0.03, 0.1, 0.02, 0.3, 0.05, 0.01};
static const struct {
    double hot, cold, price_share, soft_share;
} fresh[] = {{0.15, 0.002, 0.5, 0}, {0.3, 0.003, 0.3, 0.5}, {0.05, 0.001, 0.5, 0}, {0.8, 0.006, 0.3, 0},
             {1.5, 0.006, 0, 0},    {0.8, 0.006, 0, 0}};
enum { FRESH_COOL = 4, FRESH = sizeof fresh / sizeof *fresh };

static int64_t moves(const struct anneal_search *s, int64_t most)
{
    const int64_t n = 1000 * (int64_t)s->n_cand;
    return n < MOVES_LEAST ? MOVES_LEAST : n > most ? most : n;
}

static int run_from(struct anneal_search *s, int k, const struct anneal_seq *from, int64_t mutations, double deadline_s)
{
    const struct anneal_run run = {.mutations = mutations, .hot_ns = s->scale_ns * warmth[k % RUNS],
                                   .cold_ns = s->scale_ns * 0.001, .deadline_s = deadline_s};
    const int rc = anneal_load(s->a, from);
    return rc ? rc : anneal_search_run(s, &run);
}

static int run_fresh(struct anneal_search *s, int i, int64_t mutations, double deadline_s)
{
    const struct anneal_run run = {.mutations = mutations, .hot_ns = s->scale_ns * fresh[i].hot,
                                   .cold_ns = s->scale_ns * fresh[i].cold, .price_share = fresh[i].price_share,
                                   .soft_share = fresh[i].soft_share, .soft_hot = 0.03, .soft_cold = 0.002,
                                   .deadline_s = deadline_s};
    const int rc = anneal_search_clear(s);
    return rc ? rc : anneal_search_run(s, &run);
}

/* Make the runs in turn until the best is at the bound. */
static int runs(struct cover *c, struct anneal_search *s, double bound_ns, int thorough, const struct anneal_seq *rows, int n)
{
    const double enough = bound_ns + 1e-4 * (double)c->g->total_ns;
    int rc = 0;
    const int most = thorough && c->g->n_ops > EXACT_OPS ? RUNS_FURTHER : RUNS_FAR;
    for (int k = 0; k < most && !rc && !(s->best.n && s->best_ns <= enough); k++) {
        const int far = !s->best.n || s->best_ns - bound_ns > far_off * s->best_ns;
        if ((k >= RUNS && !far) || (k >= RUNS_NONE && !s->best.n) || (c->deadline_s > 0 && solver_now_s() >= c->deadline_s))
            break;
        if (k >= RUNS_FAR && k % AGAIN)
            rc = run_fresh(s, FRESH_COOL + k % (FRESH - FRESH_COOL), moves(s, MOVES_FURTHER), c->deadline_s);
        else if (k >= RUNS && k % 2)
            rc = run_fresh(s, k / 2 % FRESH_COOL, moves(s, MOVES_FAR), c->deadline_s);
        else if (s->best.n)
            rc = run_from(s, k, &s->best, moves(s, far && k < RUNS_FAR ? MOVES_FAR : MOVES_MOST), c->deadline_s);
        else if (n && k % 2)
            rc = run_from(s, k, &rows[k / 2 % n], moves(s, MOVES_FAR), c->deadline_s);
        else
            rc = run_fresh(s, k / 2 % FRESH_COOL, moves(s, MOVES_FAR), c->deadline_s);
    }
    return rc;
}

/* The annealer's model; NULL: no memory. */
static const struct anneal_model *model_of(struct cover *c)
{
    struct anneal_model **m = c->any_length ? &c->long_model : &c->model;
    if (!*m)
        *m = c->any_length ? anneal_model_new_long(c->g, 0) : anneal_model_new(c->g, 0);
    return *m;
}

static int seeds(struct cover *c, struct anneal_search *s, int64_t limit_bytes, struct anneal_seq *rows, int *n)
{
    int rc = 0;
    for (int h = 0; h < DTR_N_H && !rc; h++)
        if (!dtr_simulate(s->m, limit_bytes, (enum dtr_h)h, c->deadline_s, &rows[*n]))
            rc = anneal_search_seed(s, &rows[(*n)++]);
    return rc;
}

static int search(struct cover *c, struct anneal_search *s, int64_t limit_bytes, double bound_ns, int thorough, const struct plan *p)
{
    struct anneal_seq rows[STARTS + 1] = {0};
    int n = 0, rc = 0;
    if (p->n_steps) {
        rc = anneal_seq_of_plan(s->m, p, &rows[n]);
        if (!rc)
            rc = anneal_search_seed(s, &rows[n++]);
    }
    if (!rc && !s->best.n)
        rc = seeds(c, s, limit_bytes, rows, &n);
    if (!rc)
        rc = runs(c, s, bound_ns, thorough, rows, n);
    for (int k = 0; k <= STARTS; k++)
        anneal_seq_free(&rows[k]);
    return rc;
}

/* Turn the annealer's best into a plan, fill it up (sched_fill), and take it into *p and *r if it is better. */
static int take(struct cover *c, struct anneal_search *s, int64_t limit_bytes, struct plan *p, struct sim_result *r)
{
    struct plan q = {0};
    struct sim_result x;
    int rc = anneal_load(s->a, &s->best);
    if (!rc)
        rc = anneal_plan(s->a, &q);
    if (!rc)
        rc = sim_run(c->g, &q, limit_bytes, &x);
    if (!rc && x.ok)
        rc = sched_fill(c->s, &q, limit_bytes, &x);
    if (!rc && x.ok && x.peak_bytes <= limit_bytes && (!r->ok || x.ns < r->ns)) {
        *r = x;
        rc = plan_copy(p, &q);
    }
    plan_free(&q);
    return rc;
}

int cover_online(struct cover *c, int64_t limit_bytes, struct plan *p, struct sim_result *r)
{
    struct anneal_seq rows[STARTS] = {0};
    int n = 0;
    if (c->g->n_ops > LARGE_OPS)
        return 0;
    const struct anneal_model *m = model_of(c);
    struct anneal_search *s = m ? anneal_search_new(m, limit_bytes, 1, 0) : NULL;
    int rc = s ? seeds(c, s, limit_bytes, rows, &n) : -ENOMEM;
    if (!rc && s->best.n)
        rc = take(c, s, limit_bytes, p, r);
    anneal_search_free(s);
    for (int k = 0; k < STARTS; k++)
        anneal_seq_free(&rows[k]);
    return rc;
}

int cover_polish(struct cover *c, int64_t limit_bytes, double bound_ns, int thorough, struct plan *p, struct sim_result *r)
{
    if (c->g->n_ops > LARGE_OPS)
        return 0;
    const struct anneal_model *m = model_of(c);
    struct anneal_search *s = m ? anneal_search_new(m, limit_bytes, 1, 0) : NULL;
    int rc = s ? search(c, s, limit_bytes, bound_ns, thorough, p) : -ENOMEM;
    if (!rc && s->best.n)
        rc = take(c, s, limit_bytes, p, r);
    anneal_search_free(s);
    return rc;
}

int cover_any_length(struct cover *c)
{
    c->any_length = 0;
    const struct anneal_model *m = c->g->n_ops > LARGE_OPS ? NULL : model_of(c);
    c->any_length = m && m->n_long;
    return c->any_length;
}
