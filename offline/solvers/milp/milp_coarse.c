#include "offline/solvers/milp/milp_coarse.h"

#include "offline/solvers/checkmate/checkmate.h"
#include "offline/solvers/checkmate/checkmate_milp.h"
#include "offline/solvers/mincut/mincut_try.h"
#include "offline/solvers/solver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Fills group_of[op] so that the ops of each group make about as many bytes. Returns the number of groups. */
static int cut_runs(const struct graph *g, int groups, int32_t *group_of)
{
    double total = 0, made = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < g->n_ops; i++) {
            const struct graph_operand *d = graph_operands(g, i);
            double here = (double)g->total_ns / ((double)g->n_ops + 1) * 1e-3; /* ops that make nothing count a little */
            for (int32_t j = 0; j < graph_n_operands(&g->ops[i]); j++)
                if (d[j].role == GRAPH_WRITE)
                    here += (double)g->bufs[d[j].buf].bytes;
            if (!pass) {
                total += here;
            } else {
                int k = (int)(made / total * groups);
                group_of[i] = k < groups ? k : groups - 1;
                made += here;
            }
        }
    int n = 0;
    for (int32_t i = 0, last = -1; i < g->n_ops; i++) { /* renumber without the groups that no op is in */
        if (group_of[i] != last) {
            last = group_of[i];
            n++;
        }
        group_of[i] = n - 1;
    }
    return n;
}

static int build(const struct graph *g, const int32_t *group_of, int n, struct checkmate *c)
{
    size_t N = (size_t)n;
    memset(c, 0, sizeof *c);
    c->n = n;
    c->cost = calloc(N, sizeof *c->cost);
    c->mem = calloc(N, sizeof *c->mem);
    c->dep_at = calloc(N + 1, sizeof *c->dep_at);
    c->user_at = calloc(N + 1, sizeof *c->user_at);
    c->dep = calloc(N * N + 1, sizeof *c->dep);
    c->user = calloc(N * N + 1, sizeof *c->user);
    unsigned char *has = calloc(N * N + 1, 1);
    int e = c->cost && c->mem && c->dep_at && c->user_at && c->dep && c->user && has ? 0 : -ENOMEM;
    for (int32_t i = 0; !e && i < g->n_ops; i++)
        c->cost[group_of[i]] += g->ops[i].ns;
    for (int32_t v = 0; !e && v < g->n_vals; v++) {
        const struct graph_val *x = &g->vals[v];
        int crosses = 0;
        if (x->producer < 0 || graph_val_fixed(x))
            continue;
        int from = group_of[x->producer];
        for (int32_t u = 0; u < x->n_uses; u++) {
            int to = group_of[g->uses[x->first_use + u]];
            if (to > from) {
                has[(size_t)from * N + (size_t)to] = 1;
                crosses = 1;
            }
        }
        if (crosses && x->over >= x->last_use)
            c->mem[from] += graph_val_bytes(g, v);
    }
    for (int i = 0, nd = 0, nu = 0; !e && i <= n; i++) {
        c->dep_at[i] = nd;
        c->user_at[i] = nu;
        for (int j = 0; i < n && j < n; j++) {
            if (has[(size_t)j * N + (size_t)i])
                c->dep[nd++] = j;
            if (has[(size_t)i * N + (size_t)j])
                c->user[nu++] = j;
        }
    }
    free(has);
    if (e)
        checkmate_free(c);
    return e;
}

/* A gap is kept if its value's run (node) is held into every stage from the one after the gap opens to the one in which it closes. */
static void choose(const struct graph *g, const struct sched *s, const int32_t *group_of, const struct checkmate_plan *p,
                   int n, uint8_t *choice)
{
    sched_default(s, choice);
    for (int32_t a = 0; a < s->n_gaps; a++) {
        const struct sched_gap *q = &s->gaps[a];
        const struct graph_val *x = &g->vals[q->val];
        if (q->tail || q->forced || x->producer < 0 || q->to >= g->n_ops)
            continue;
        int node = group_of[x->producer], open = group_of[q->from], close = group_of[q->to];
        for (int t = open + 1; t <= close; t++)
            if (!p->S[(size_t)t * (size_t)n + (size_t)node])
                choice[a] = SCHED_DROP;
    }
}

int milp_coarse(const struct graph *g, struct mincut_try *t, int groups, double until_s)
{
    int32_t *group_of = calloc((size_t)g->n_ops + 1, sizeof *group_of);
    uint8_t *choice = malloc((size_t)t->s->n_gaps + 1);
    struct checkmate c = { 0 };
    struct checkmate_plan p = { 0 };
    int e = group_of && choice ? 0 : -ENOMEM;
    int n = e ? 0 : cut_runs(g, groups, group_of);
    if (!e && n)
        e = build(g, group_of, n, &c);
    if (!e && n)
        e = checkmate_plan_new(&c, &p);
    static const double shares[] = { 1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4 };
    size_t tries = sizeof shares / sizeof *shares;
    for (size_t k = 0; !e && n && k < tries && solver_now_s() < until_s; k++) {
        struct checkmate_answer a;
        memset(&a, 0, sizeof a);
        c.budget = (int64_t)(shares[k] * (double)(t->limit_bytes - g->persistent_bytes));
        double each = (until_s - solver_now_s()) / (double)(tries - k);
        e = checkmate_milp(&c, each, &p, &a);
        if (e || !a.found)
            continue;
        choose(g, t->s, group_of, &p, n, choice);
        e = mincut_trial(t, choice);
        if (!e && t->r.ok && t->r.peak_bytes <= t->limit_bytes)
            break; /* a smaller budget only costs time */
    }
    checkmate_plan_free(&p);
    checkmate_free(&c);
    free(group_of);
    free(choice);
    return e;
}
