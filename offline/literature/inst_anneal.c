/* inst_anneal: `remat solve --solver anneal` for checkmate-v1 documents. The instance becomes an iteration of one op a
 * node; the annealer's row becomes Checkmate's R and S, and checkmate_replay says what they cost and hold. With
 * --reorder the nodes may also be computed in another topological order, as FastSA studies it: a node moves at random
 * within the range its neighbours leave, and the order stays if the schedule found for it is no dearer. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/anneal/anneal_search.h"
#include "offline/literature/checkmate.h"
#include "offline/solvers/solver.h"

enum { INST_DEFAULT_S = 30, INST_PATIENCE = 6, INST_BIG = 2000 };

static struct graph *inst_graph(const struct checkmate *c)
{
    struct graph_build *b = graph_build_new();
    struct graph *g = NULL;
    struct graph_fault fault;
    int bad = !b;
    for (int i = 0; i < c->n && !bad; i++) {
        const int users = c->user_at[i + 1] - c->user_at[i];
        const int dies = users ? c->user[c->user_at[i + 1] - 1] + 1 : i + 1;
        bad = graph_build_buf(b, c->mem[i], i, dies, GRAPH_ACTIVATION) < 0 || graph_build_op(b, "node", GRAPH_FWD, c->cost[i]) < 0;
        for (int k = c->dep_at[i]; k < c->dep_at[i + 1] && !bad; k++)
            bad = graph_build_operand(b, i, GRAPH_READ, c->dep[k]) < 0;
        bad = bad || graph_build_operand(b, i, GRAPH_WRITE, i) < 0;
    }
    if (!bad && graph_seal(b, &g, &fault))
        g = NULL;
    graph_build_free(b);
    return g;
}

/* R: what runs before op t, and op t. S: what stage t finds made by an earlier one and uses, or passes on. */
static void inst_matrices(const struct anneal *a, const struct checkmate *c, struct checkmate_plan *p)
{
    const int n = c->n;
    memset(p->R, 0, (size_t)n * (size_t)n);
    memset(p->S, 0, (size_t)n * (size_t)n);
    for (int32_t s = 0, t = 0; s < a->n_slots && t < n; s++) {
        if (a->slot[s] == ANNEAL_EMPTY)
            continue;
        const int32_t i = anneal_is_replay(a, s) ? a->m->unit_ops[a->m->units[anneal_unit_at(a, s)].first_op] : a->slot[s];
        p->R[(size_t)t * (size_t)n + (size_t)i] = 1;
        t += !anneal_is_replay(a, s);
    }
    for (int32_t x = 0; x < a->m->n_cells; x++) {
        const struct anneal_events *e = &a->ev[x];
        const int32_t i = a->m->cells[x].final_op;
        for (int32_t k = 0; k + 1 < e->n; k++)
            for (int t = 1; t < n && !anneal_ev_made(e->at[k + 1]); t++)
                if (a->op_slot[t - 1] >= anneal_ev_slot(e->at[k]) && a->op_slot[t - 1] < anneal_ev_slot(e->at[k + 1]))
                    p->S[(size_t)t * (size_t)n + (size_t)i] = 1;
    }
}

static int inst_anneal_once(const struct checkmate *c, uint64_t seed, double until_s, int patience, struct checkmate_plan *p,
                            struct checkmate_answer *ans)
{
    struct graph *g = inst_graph(c);
    struct anneal_model *m = g ? anneal_model_new(g, 0) : NULL;
    struct anneal_search *s = m ? anneal_search_new(m, c->budget - c->fixed, seed, 0) : NULL;
    int rc = s ? anneal_search_all(s, until_s, patience, 0) : -ENOMEM;
    memset(ans, 0, sizeof *ans);
    if (!rc && s->best.n)
        rc = anneal_load(s->a, &s->best);
    if (!rc && s->best.n) {
        inst_matrices(s->a, c, p);
        checkmate_prune(c, p);
        ans->found = !checkmate_replay(c, p, &ans->cost, &ans->peak) && ans->peak <= c->budget;
    }
    anneal_search_free(s);
    anneal_model_free(m);
    graph_free(g);
    return rc;
}

/* ---- other orders --------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

/* The instance with node order[k] in place k. */
static int inst_permute(const struct checkmate *c, const int *order, struct checkmate *d)
{
    const size_t n = (size_t)c->n, m = (size_t)c->dep_at[c->n] + 1;
    int *place = malloc((n + 1) * sizeof *place);
    *d = (struct checkmate){.n = c->n, .budget = c->budget, .fixed = c->fixed};
    d->cost = malloc((n + 1) * sizeof *d->cost);
    d->mem = malloc((n + 1) * sizeof *d->mem);
    d->dep_at = calloc(n + 1, sizeof *d->dep_at);
    d->user_at = calloc(n + 1, sizeof *d->user_at);
    d->dep = malloc(m * sizeof *d->dep);
    d->user = malloc(m * sizeof *d->user);
    if (!place || !d->cost || !d->mem || !d->dep_at || !d->user_at || !d->dep || !d->user) {
        free(place);
        checkmate_free(d);
        return -ENOMEM;
    }
    for (int k = 0; k < c->n; k++)
        place[order[k]] = k;
    for (int k = 0; k < c->n; k++) {
        const int i = order[k];
        int nd = d->dep_at[k], nu = d->user_at[k];
        d->cost[k] = c->cost[i];
        d->mem[k] = c->mem[i];
        for (int j = c->dep_at[i]; j < c->dep_at[i + 1]; j++)
            d->dep[nd++] = place[c->dep[j]];
        for (int j = c->user_at[i]; j < c->user_at[i + 1]; j++)
            d->user[nu++] = place[c->user[j]];
        qsort(d->dep + d->dep_at[k], (size_t)(nd - d->dep_at[k]), sizeof *d->dep, by_value);
        qsort(d->user + d->user_at[k], (size_t)(nu - d->user_at[k]), sizeof *d->user, by_value);
        d->dep_at[k + 1] = nd;
        d->user_at[k + 1] = nu;
    }
    free(place);
    return 0;
}

static uint32_t inst_draw(uint64_t *rng, uint32_t n)
{
    *rng = *rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(((*rng >> 33) * n) >> 31);
}

/* Move one node to another place between its last dependency and its first user. 0: it has no room. */
static int inst_move(const struct checkmate *c, int *order, uint64_t *rng)
{
    const int k = (int)inst_draw(rng, (uint32_t)c->n), i = order[k];
    int lo = k, hi = k;
    while (lo > 0) {
        int blocked = 0;
        for (int j = c->dep_at[i]; j < c->dep_at[i + 1]; j++)
            blocked |= c->dep[j] == order[lo - 1];
        if (blocked)
            break;
        lo--;
    }
    while (hi + 1 < c->n) {
        int blocked = 0;
        for (int j = c->user_at[i]; j < c->user_at[i + 1]; j++)
            blocked |= c->user[j] == order[hi + 1];
        if (blocked)
            break;
        hi++;
    }
    if (lo == hi)
        return 0;
    const int to = lo + (int)inst_draw(rng, (uint32_t)(hi - lo + 1));
    memmove(order + (to < k ? to + 1 : k), order + (to < k ? to : k + 1), (size_t)abs(to - k) * sizeof *order);
    order[to] = i;
    return to != k;
}

static int inst_reorder(const struct checkmate *c, uint64_t seed, double until_s, struct checkmate_plan *p,
                        struct checkmate_answer *best, int *moved)
{
    const size_t n = (size_t)c->n;
    int *order = malloc((n + 1) * sizeof *order), *next = malloc((n + 1) * sizeof *next);
    uint64_t rng = seed + 1;
    int rc = order && next ? 0 : -ENOMEM;
    for (int k = 0; !rc && k < c->n; k++)
        order[k] = k;
    for (int turn = 0; !rc && turn < INST_BIG && solver_now_s() < until_s; turn++) {
        struct checkmate d;
        struct checkmate_answer a;
        memcpy(next, order, n * sizeof *next);
        int changed = 0;
        for (int k = 0; k < 3 || (!changed && k < 50); k++)
            changed |= inst_move(c, next, &rng);
        if (!changed)
            break; /* a chain: there is no other order */
        rc = inst_permute(c, next, &d);
        if (rc)
            break;
        rc = inst_anneal_once(&d, seed + (uint64_t)turn, fmin(until_s, solver_now_s() + 0.5), 1, p, &a);
        checkmate_free(&d);
        if (!rc && a.found && (!best->found || a.cost <= best->cost)) {
            *moved |= !best->found || a.cost < best->cost;
            *best = a;
            memcpy(order, next, n * sizeof *order);
        }
    }
    free(order);
    free(next);
    return rc;
}

static int inst_solve(const struct json_doc *doc, const struct solver_opts *opts, struct instance_result *out)
{
    struct checkmate c;
    int rc = checkmate_read(doc, &c, out->message, sizeof out->message);
    if (rc)
        return rc;
    const double start = solver_now_s(), limit_s = opts->time_limit_s > 0 ? opts->time_limit_s : INST_DEFAULT_S;
    struct checkmate_plan p;
    struct checkmate_answer a = {0};
    int moved = 0;
    rc = checkmate_plan_new(&c, &p);
    if (!rc) {
        rc = inst_anneal_once(&c, opts->seed, start + limit_s * (opts->reorder ? 0.4 : 1), INST_PATIENCE, &p, &a);
        if (!rc && opts->reorder)
            rc = inst_reorder(&c, opts->seed, start + limit_s, &p, &a, &moved);
        checkmate_plan_free(&p);
    }
    if (!rc) {
        int64_t least = 0; /* every node once */
        for (int i = 0; i < c.n; i++)
            least += c.cost[i];
        out->integral = 1;
        out->feasible = a.found;
        out->value = a.found ? (double)a.cost : NAN;
        out->peak = a.found ? (double)a.peak : -1;
        out->bound = (double)least;
        out->proved_optimal = a.found && a.cost == least;
        out->solve_seconds = solver_now_s() - start;
        out->extra = json_pack("{s:I,s:b}", "budget", (json_int_t)c.budget, "reordered", moved);
        if (!a.found)
            snprintf(out->message, sizeof out->message, "no schedule within the budget was found");
    }
    checkmate_free(&c);
    return rc;
}

const struct instance_solver instance_anneal = {"checkmate-v1", "anneal", 0, inst_solve};
