/* checkmate_milp: Checkmate's linear programs, and rounding their solutions to schedules. */
#include "offline/solvers/checkmate/checkmate_milp.h"
#include "offline/solvers/checkmate/checkmate.h"

#include "offline/solvers/milp/milp.h"
#include "offline/solvers/solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLS_MAX = 400000 };

#define AT(c, t, i) ((size_t)(t) * (size_t)(c)->n + (size_t)(i))

struct form {
    struct milp *m;
    int *R, *S;      /* column of R[t][i], S[t][i]; -1: fixed at 0 */
    int *free_first; /* columns of FREE[t][i][.] start here: first for k = i, then for each user in turn */
    double unit;     /* bytes per unit of U, which keeps the numbers near 1 */
    double price;    /* cost per unit of the objective, which keeps the numbers near 1: costs may be FLOPs */
};

static void form_free(struct form *f)
{
    milp_free(f->m);
    free(f->R);
    free(f->S);
    free(f->free_first);
}

/* FREE[t][i][k] <= R[t][k], and FREE is 0 if a later user of i is computed in stage t (eq. 5, each hazard a row
 * of its own rather than their sum against a large constant: a tighter relaxation of the same set). */
static void free_rows(const struct checkmate *c, struct form *f, int t, int i)
{
    int first = f->free_first[AT(c, t, i)];
    int nu = c->user_at[i + 1] - c->user_at[i];
    for (int q = -1; q < nu; q++) {
        int k = q < 0 ? i : c->user[c->user_at[i] + q];
        if (k > t)
            break;
        int col = first + q + 1;
        milp_row(f->m, -MILP_NONE, 0);
        milp_term(f->m, col, 1);
        milp_term(f->m, f->R[AT(c, t, k)], -1);
        for (int z = q + 1; z < nu; z++) {
            int j = c->user[c->user_at[i] + z];
            if (j > t)
                break;
            milp_row(f->m, -MILP_NONE, 1);
            milp_term(f->m, col, 1);
            milp_term(f->m, f->R[AT(c, t, j)], 1);
        }
    }
    /* a result that leaves was present and is not held on: one row for all k, which also allows one k at most */
    milp_row(f->m, -MILP_NONE, 0);
    for (int q = -1; q < nu; q++) {
        if (q >= 0 && c->user[c->user_at[i] + q] > t)
            break;
        milp_term(f->m, first + q + 1, 1);
    }
    if (t + 1 < c->n && i < t + 1)
        milp_term(f->m, f->S[AT(c, t + 1, i)], 1);
    milp_term(f->m, f->R[AT(c, t, i)], -1);
    if (i < t)
        milp_term(f->m, f->S[AT(c, t, i)], -1);
}

/* U[t][k] along stage t, by the recurrence of eq. 3 and 4. */
static void memory_rows(const struct checkmate *c, struct form *f, int t, double budget)
{
    int prev = -1;
    for (int k = 0; k <= t; k++) {
        int u = milp_col(f->m, 0, budget, 0, 0);
        milp_row(f->m, 0, 0);
        milp_term(f->m, u, -1);
        milp_term(f->m, f->R[AT(c, t, k)], (double)c->mem[k] / f->unit);
        if (k == 0) {
            for (int i = 0; i < t; i++)
                milp_term(f->m, f->S[AT(c, t, i)], (double)c->mem[i] / f->unit);
        } else {
            milp_term(f->m, prev, 1);
            milp_term(f->m, f->free_first[AT(c, t, k - 1)], -(double)c->mem[k - 1] / f->unit);
            for (int q = c->dep_at[k - 1]; q < c->dep_at[k]; q++) {
                int i = c->dep[q], z = c->user_at[i];
                while (c->user[z] != k - 1)
                    z++;
                milp_term(f->m, f->free_first[AT(c, t, i)] + 1 + z - c->user_at[i], -(double)c->mem[i] / f->unit);
            }
        }
        prev = u;
    }
}

static double forward_cost(const struct checkmate *c)
{
    double s = 0;
    for (int i = 0; i < c->n; i++)
        s += (double)c->cost[i];
    return s;
}

/* The greatest common divisor of all costs. */
static int64_t cost_step(const struct checkmate *c)
{
    int64_t g = 0;
    for (int i = 0; i < c->n; i++)
        for (int64_t a = c->cost[i]; a;) {
            int64_t r = g % a;
            g = a;
            a = r;
        }
    return g;
}

static double cost_unit(const struct checkmate *c)
{
    double unit = (double)cost_step(c);
    for (int i = 0; i < c->n; i++)
        unit = fmax(unit, 1e-6 * (double)c->cost[i]);
    return unit > 0 ? unit : 1;
}

/* A proved bound in units of the objective as a cost: lowered by the solver's tolerance (1e-7, relative), then raised to the next
 * multiple of cost_step. */
static double whole_cost(const struct checkmate *c, double bound)
{
    const double step = (double)cost_step(c), steps = step > 0 ? bound * cost_unit(c) / step : 0;
    return step > 0 ? step * ceil(steps - 1e-6 - 1e-7 * fabs(steps)) : 0;
}

static int build(const struct checkmate *c, double budget_share, struct form *f)
{
    size_t nn = AT(c, c->n, 0);
    memset(f, 0, sizeof *f);
    f->m = milp_new();
    f->R = malloc(nn * sizeof *f->R);
    f->S = malloc(nn * sizeof *f->S);
    f->free_first = malloc(nn * sizeof *f->free_first);
    if (!f->m || !f->R || !f->S || !f->free_first) {
        form_free(f);
        return -ENOMEM;
    }
    f->unit = 1;
    f->price = cost_unit(c);
    for (int i = 0; i < c->n; i++)
        if ((double)c->mem[i] > f->unit)
            f->unit = (double)c->mem[i];
    for (int t = 0; t < c->n; t++)
        for (int i = 0; i < c->n; i++) {
            size_t a = AT(c, t, i);
            f->R[a] = f->S[a] = f->free_first[a] = -1;
            if (i > t)
                continue;
            f->R[a] = milp_col(f->m, i == t, 1, (double)c->cost[i] / f->price, 1);
            if (i < t)
                f->S[a] = milp_col(f->m, 0, 1, 0, 1);
            for (int q = c->user_at[i] - 1; q < c->user_at[i + 1]; q++) {
                int col = milp_col(f->m, 0, 1, 0, 0);
                if (q < c->user_at[i])
                    f->free_first[a] = col;
            }
        }
    for (int t = 0; t < c->n; t++) {
        for (int i = 0; i <= t; i++) {
            for (int q = c->dep_at[i]; q < c->dep_at[i + 1]; q++) { /* eq. 1b: inputs are computed or held */
                milp_row(f->m, -MILP_NONE, 0);
                milp_term(f->m, f->R[AT(c, t, i)], 1);
                milp_term(f->m, f->R[AT(c, t, c->dep[q])], -1);
                milp_term(f->m, f->S[AT(c, t, c->dep[q])], -1);
            }
            if (i < t) { /* eq. 1c is implied by free_rows; a held result need not be computed */
                milp_row(f->m, -MILP_NONE, 1);
                milp_term(f->m, f->R[AT(c, t, i)], 1);
                milp_term(f->m, f->S[AT(c, t, i)], 1);
                /* a recomputation serves a user in its stage or the next stage */
                milp_row(f->m, -MILP_NONE, 0);
                milp_term(f->m, f->R[AT(c, t, i)], 1);
                for (int q = c->user_at[i]; q < c->user_at[i + 1] && c->user[q] <= t; q++)
                    milp_term(f->m, f->R[AT(c, t, c->user[q])], -1);
                if (t + 1 < c->n)
                    milp_term(f->m, f->S[AT(c, t + 1, i)], -1);
            }
            free_rows(c, f, t, i);
        }
        memory_rows(c, f, t, ((double)c->budget * budget_share - (double)c->fixed) / f->unit);
    }
    return 0;
}

static void take(const struct checkmate *c, const struct form *f, const double *x, struct checkmate_plan *p)
{
    for (int t = 0; t < c->n; t++)
        for (int i = 0; i < c->n; i++) {
            size_t a = AT(c, t, i);
            p->R[a] = f->R[a] >= 0 && x[f->R[a]] > 0.5;
            p->S[a] = f->S[a] >= 0 && x[f->S[a]] > 0.5;
        }
}

static int better(const struct checkmate *c, struct checkmate_plan *cand, struct checkmate_plan *best,
                  struct checkmate_answer *a)
{
    int64_t cost, peak;
    checkmate_prune(c, cand);
    if (checkmate_replay(c, cand, &cost, &peak) || peak > c->budget || (a->found && cost >= a->cost))
        return 0;
    a->found = 1;
    a->cost = cost;
    a->peak = peak;
    memcpy(best->R, cand->R, 2 * AT(c, c->n, 0));
    return 1;
}

/* 1: the working set of one node is over the budget, so no schedule exists. */
static int hopeless(const struct checkmate *c)
{
    for (int i = 0; i < c->n; i++) {
        int64_t use = c->fixed + c->mem[i];
        for (int q = c->dep_at[i]; q < c->dep_at[i + 1]; q++)
            use += c->mem[c->dep[q]];
        if (use > c->budget)
            return 1;
    }
    return 0;
}

/* 1: the program would have more columns than CBC can handle. */
static int too_large(const struct checkmate *c)
{
    double half = 0.5 * (double)c->n * (double)c->n, edges = c->user_at[c->n];
    return 4 * half + 0.5 * (double)c->n * edges > COLS_MAX;
}

int checkmate_greedy(const struct checkmate *c, double until_s, struct checkmate_plan *p)
{
    struct checkmate_plan cand = { 0 };
    struct checkmate_answer a = { 0 };
    int e = checkmate_plan_new(c, &cand);
    /* Hold every step-th result, and results at most `recent` stages old that a later node still
     * reads. */
    for (int step = 1; !e && step <= c->n; step += 1 + step / 8)
        for (int recent = 0; recent <= 3 && !(a.found && solver_now_s() > until_s); recent++) {
            for (int t = 0; t < c->n; t++)
                for (int i = 0; i < c->n; i++) {
                    int last = c->user_at[i + 1] > c->user_at[i] ? c->user[c->user_at[i + 1] - 1] : i;
                    int spaced = i % step == step - 1 && t <= c->n;
                    int wanted = last >= t || spaced;
                    cand.S[AT(c, t, i)] = i < t && wanted && (spaced || t - i <= recent);
                }
            checkmate_complete(c, &cand);
            better(c, &cand, p, &a);
        }
    checkmate_plan_free(&cand);
    return e ? e : a.found ? 0 : -ENOSPC;
}

static void start_point(const struct checkmate *c, const struct form *f, const struct checkmate_plan *p, double *x)
{
    for (int k = 0; k < milp_n_cols(f->m); k++)
        x[k] = 0;
    for (size_t a = 0; a < AT(c, c->n, 0); a++) {
        if (f->R[a] >= 0)
            x[f->R[a]] = p->R[a];
        if (f->S[a] >= 0)
            x[f->S[a]] = p->S[a];
    }
}

int checkmate_milp(const struct checkmate *c, double time_limit_s, struct checkmate_plan *p, struct checkmate_answer *a)
{
    if (a->bound < forward_cost(c))
        a->bound = forward_cost(c);
    if (hopeless(c)) {
        a->proved_infeasible = 1;
        return 0;
    }
    struct form f;
    struct checkmate_plan cand;
    double until = solver_now_s() + time_limit_s;
    int e = checkmate_plan_new(c, &cand);
    if (e)
        return e;
    if (!a->found && !checkmate_greedy(c, until, &cand))
        better(c, &cand, p, a);
    if (too_large(c)) {
        checkmate_plan_free(&cand);
        return 0;
    }
    e = build(c, 1, &f);
    if (e) {
        checkmate_plan_free(&cand);
        return e;
    }
    double *x = malloc(((size_t)milp_n_cols(f.m) + 1) * sizeof *x);
    struct milp_opts o = { .time_limit_s = fmax(0.01, until - solver_now_s()), .cost_step = (double)cost_step(c) / f.price };
    struct milp_result r = { 0 };
    e = x ? 0 : -ENOMEM;
    if (!e && a->found) {
        start_point(c, &f, p, x);
        o.start = x;
    }
    if (!e)
        e = milp_solve(f.m, &o, &r);
    if (!e && r.x) {
        take(c, &f, r.x, &cand);
        better(c, &cand, p, a);
    }
    if (!e)
        a->bound = fmax(a->bound, whole_cost(c, r.bound));
    if (!e && r.status == MILP_OPTIMAL && a->found && (double)a->cost <= (r.value + 0.5 * o.cost_step) * f.price)
        a->proved_optimal = 1;
    if (!e && r.status == MILP_INFEASIBLE && !a->found)
        a->proved_infeasible = 1;
    if (a->found && (double)a->cost <= a->bound)
        a->proved_optimal = 1;
    if (a->proved_optimal)
        a->bound = (double)a->cost;
    milp_result_free(&r);
    free(x);
    checkmate_plan_free(&cand);
    form_free(&f);
    return e;
}

static uint64_t next_random(uint64_t *s)
{
    *s += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *s;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Two-phase rounding: S by a threshold (fixed thresholds first, then a random one for each entry), R by
 * checkmate_complete. The LP is solved at smaller budgets too, since rounding up R costs memory. */
int checkmate_lp_round(const struct checkmate *c, double time_limit_s, uint64_t seed, struct checkmate_plan *p,
                       struct checkmate_answer *a)
{
    double start = solver_now_s();
    memset(a, 0, sizeof *a);
    a->bound = forward_cost(c);
    if (hopeless(c)) {
        a->proved_infeasible = 1;
        return 0;
    }
    struct checkmate_plan cand;
    int e = checkmate_plan_new(c, &cand);
    static const double shares[] = { 1, 0.95, 0.9, 0.8, 0.7 };
    uint64_t rng = seed + 1;
    for (size_t q = 0; !e && !too_large(c) && q < sizeof shares / sizeof *shares; q++) {
        double left = time_limit_s > 0 ? time_limit_s - (solver_now_s() - start) : 0;
        if (time_limit_s > 0 && left <= 0)
            break;
        struct form f;
        struct milp_result r = { 0 };
        e = build(c, shares[q], &f);
        if (e)
            break;
        struct milp_opts o = { .time_limit_s = left, .relaxed = 1 };
        e = milp_solve(f.m, &o, &r);
        if (!e && q == 0 && r.status == MILP_OPTIMAL)
            a->bound = fmax(a->bound, whole_cost(c, r.value));
        if (!e && q == 0 && r.status == MILP_INFEASIBLE)
            a->proved_infeasible = 1;
        int rounds = r.x ? 200 : 0;
        for (int k = 0; !e && k < rounds && (time_limit_s <= 0 || solver_now_s() - start < time_limit_s); k++) {
            for (int t = 0; t < c->n; t++)
                for (int i = 0; i < c->n; i++) {
                    int col = f.S[AT(c, t, i)];
                    double cut = k < 19 ? 0.05 * (k + 1) : (double)(next_random(&rng) >> 11) / 9007199254740992.0;
                    cand.S[AT(c, t, i)] = col >= 0 && r.x[col] > cut - 1e-9;
                }
            checkmate_complete(c, &cand);
            better(c, &cand, p, a);
        }
        milp_result_free(&r);
        form_free(&f);
        if (a->proved_infeasible)
            break;
    }
    /* no LP solution, or no rounded schedule fits */
    if (!e && !a->found && !a->proved_infeasible && !checkmate_greedy(c, start + time_limit_s, &cand))
        better(c, &cand, p, a);
    checkmate_plan_free(&cand);
    if (!e && a->found && (double)a->cost <= a->bound)
        a->proved_optimal = 1;
    return e;
}
