#include "offline/report/tied.h"

#include <stdlib.h>
#include <string.h>

/* A buffer that more forward ops use than MANY tells nothing (a library's workspace, the ids of the batch). */
enum { MANY = 64 };
/* Of an assignment: for a forward op that no later backward op has (softmax saves its result, which dropout reads too), and for an op that reads
 * the shared buffer rather than making it (gelu's backward reads what the product before it made). */
static const double FRESH = 0.02, READS = 0.002, SURE = 1;

/* A backward op's candidate, and the best chain of assignments that ends with it. */
struct pair {
    int32_t bwd, fwd, before; /* the pair before in the chain; -1: none */
    double shared, total;
};

struct tie {
    const struct graph *g;
    const uint8_t *phase;
    int32_t *first, *user; /* forward ops that use buffer b: user[first[b] .. first[b + 1]) */
    double *shared;        /* [n_ops] of the backward op looked at */
    int32_t *met, n_met;   /* forward ops whose shared is not 0 */
    struct pair *pair;
    int32_t n, room;
    int32_t *best, *tree; /* [n_ops] pair, -1: none: the best that ends at forward op f, and at f or later (a Fenwick tree from the end) */
};

static int users_find(struct tie *t)
{
    const struct graph *g = t->g;
    t->first = calloc((size_t)g->n_bufs + 2, sizeof *t->first);
    t->user = calloc((size_t)g->n_operands + 1, sizeof *t->user);
    if (!t->first || !t->user)
        return -1;
    for (int round = 0; round < 2; round++) { /* counted two places on, summed, then filled with the start one place on as the cursor */
        for (int32_t o = 0; o < g->n_ops; o++)
            for (int32_t i = 0; t->phase[o] == GRAPH_FWD && i < graph_n_operands(&g->ops[o]); i++) {
                const int32_t b = graph_operands(g, o)[i].buf;
                if (round)
                    t->user[t->first[b + 1]++] = o;
                else
                    t->first[b + 2]++;
            }
        for (int32_t b = 1; !round && b < g->n_bufs + 2; b++)
            t->first[b] += t->first[b - 1];
    }
    return 0;
}

static int pair_add(struct tie *t, struct pair p)
{
    if (t->n == t->room) {
        const int32_t room = t->room ? 2 * t->room : 1024;
        struct pair *grown = realloc(t->pair, (size_t)room * sizeof *grown);
        if (!grown)
            return -1;
        t->pair = grown;
        t->room = room;
    }
    t->pair[t->n++] = p;
    return 0;
}

/* The forward ops that share a buffer with backward op o, each a pair. */
static int candidates(struct tie *t, int32_t o)
{
    const struct graph *g = t->g;
    const struct graph_operand *w = graph_operands(g, o);
    for (int32_t i = 0; i < graph_n_operands(&g->ops[o]); i++) {
        const int32_t b = w[i].buf, from = t->first[b], n = t->first[b + 1] - from;
        if (w[i].role == GRAPH_WRITE || n > MANY)
            continue;
        for (int32_t k = from; k < from + n; k++) {
            const int32_t f = t->user[k];
            if (t->shared[f] == 0)
                t->met[t->n_met++] = f;
            t->shared[f] += 1.0 / n + (g->bufs[b].born == f ? 0 : READS);
        }
    }
    for (int32_t k = 0; k < t->n_met; k++) {
        if (pair_add(t, (struct pair){o, t->met[k], -1, t->shared[t->met[k]], 0}))
            return -1;
        t->shared[t->met[k]] = 0;
    }
    t->n_met = 0;
    return 0;
}

static double total(const struct tie *t, int32_t pair) { return pair < 0 ? 0 : t->pair[pair].total; }

/* The best pair at a forward op after f. */
static int32_t tree_after(const struct tie *t, int32_t f)
{
    int32_t best = -1;
    for (int32_t k = t->g->n_ops - 1 - f; k > 0; k -= k & -k)
        if (total(t, t->tree[k]) > total(t, best))
            best = t->tree[k];
    return best;
}

static void tree_put(struct tie *t, int32_t f, int32_t pair)
{
    if (total(t, pair) <= total(t, t->best[f]))
        return;
    t->best[f] = pair;
    for (int32_t k = t->g->n_ops - f; k <= t->g->n_ops; k += k & -k)
        if (total(t, pair) > total(t, t->tree[k]))
            t->tree[k] = pair;
}

/* The last pair of the best chain; -1: there is none. */
static int32_t chain_find(struct tie *t)
{
    int32_t last = -1;
    for (int32_t from = 0, to; from < t->n; from = to) {
        for (to = from; to < t->n && t->pair[to].bwd == t->pair[from].bwd; to++) {
            struct pair *p = &t->pair[to];
            const int32_t later = tree_after(t, p->fwd), here = t->best[p->fwd];
            const int fresh = total(t, later) + FRESH >= total(t, here);
            p->before = fresh ? later : here;
            p->total = p->shared + (fresh ? total(t, later) + FRESH : total(t, here));
            if (p->total > total(t, last))
                last = to;
        }
        for (int32_t k = from; k < to; k++)
            tree_put(t, t->pair[k].fwd, k);
    }
    return last;
}

/* Ops that the chain leaves out: where their own data is sure of a forward op, that one; else where the op before them belongs. */
static void fill(struct tie *t, int32_t *of)
{
    int32_t near = -1;
    for (int32_t from = 0, to; from < t->n; from = to) {
        int32_t best = from;
        for (to = from; to < t->n && t->pair[to].bwd == t->pair[from].bwd; to++)
            if (t->pair[to].shared > t->pair[best].shared)
                best = to;
        if (of[t->pair[from].bwd] < 0 && t->pair[best].shared >= SURE)
            of[t->pair[from].bwd] = t->pair[best].fwd;
    }
    for (int32_t o = 0; o < t->g->n_ops; o++)
        if (t->phase[o] == GRAPH_BWD) {
            near = of[o] >= 0 ? of[o] : near;
            of[o] = near;
        }
    near = -1;
    for (int32_t o = t->g->n_ops; o-- > 0;)
        if (t->phase[o] == GRAPH_BWD) {
            near = of[o] >= 0 ? of[o] : near;
            of[o] = near;
        }
}

int32_t *tied_ops(const struct graph *g, const uint8_t *phase)
{
    const size_t n = (size_t)g->n_ops + 1;
    struct tie t = {.g = g, .phase = phase, .shared = calloc(n, sizeof *t.shared), .met = calloc(n, sizeof *t.met),
                    .best = malloc(n * sizeof *t.best), .tree = malloc(n * sizeof *t.tree)};
    int32_t *of = malloc(n * sizeof *of);
    int ok = t.shared && t.met && t.best && t.tree && of && !users_find(&t);
    for (int32_t o = 0; ok && o <= g->n_ops; o++)
        of[o] = t.best[o] = t.tree[o] = -1;
    for (int32_t o = 0; ok && o < g->n_ops; o++)
        ok = phase[o] != GRAPH_BWD || !candidates(&t, o);
    for (int32_t k = ok ? chain_find(&t) : -1; k >= 0; k = t.pair[k].before)
        of[t.pair[k].bwd] = t.pair[k].fwd;
    if (ok)
        fill(&t, of);
    free(t.first);
    free(t.user);
    free(t.shared);
    free(t.met);
    free(t.best);
    free(t.tree);
    free(t.pair);
    if (ok)
        return of;
    free(of);
    return NULL;
}
