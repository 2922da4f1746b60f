/* checkmate_pebble: proves that a budget is too small for every schedule, whatever its order and however often it computes a node.
 *
 * Take any schedule within the budget, the step that first computes node t, and go back from there, keeping the set C of
 * results that must be in memory: {t} after that step. A step that computes some v in C takes v out and puts v's inputs in,
 * and while it ran, C, v and its inputs were in memory together. Other steps change nothing. Before the first step C is
 * empty. So if no way of taking results out, one at a time, within the budget, leads from {t} to the empty set, there is
 * no schedule (the game of pebbles on a graph, played backwards: Sethi 1975). Sets are searched lightest first. A result
 * whose inputs are all in C is taken out at once, which leaves a subset of C, from which every way out of C is possible too.
 */
#include "offline/solvers/checkmate/checkmate_pebble.h"
#include "offline/solvers/checkmate/checkmate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pebble {
    const struct checkmate *c;
    size_t words;
    uint64_t *set;   /* [cap][words] every set reached */
    int64_t *weight; /* [cap] */
    unsigned char *closed;
    int n, cap;
};

static inline uint64_t *set_of(const struct pebble *p, int s) { return p->set + (size_t)s * p->words; }
static inline int has(const uint64_t *set, int i) { return set[i / 64] >> (i % 64) & 1; }

/* Bytes of v's inputs that are not in the set. */
static int64_t missing(const struct pebble *p, const uint64_t *set, int v)
{
    int64_t bytes = 0;
    for (int q = p->c->dep_at[v]; q < p->c->dep_at[v + 1]; q++)
        bytes += has(set, p->c->dep[q]) ? 0 : p->c->mem[p->c->dep[q]];
    return bytes;
}

static int inputs_inside(const struct pebble *p, const uint64_t *set, int v)
{
    for (int q = p->c->dep_at[v]; q < p->c->dep_at[v + 1]; q++)
        if (!has(set, p->c->dep[q]))
            return 0;
    return 1;
}

/* Add the set made from s by taking v out and putting v's inputs in. 1: the new set is empty; 0: added, known already, or too heavy; -E2BIG: no room. */
static int step(struct pebble *p, int s, int v)
{
    const struct checkmate *c = p->c;
    const int64_t with = p->weight[s] + missing(p, set_of(p, s), v);
    if (with > c->budget - c->fixed)
        return 0;
    if (p->n == p->cap)
        return -E2BIG;
    uint64_t *next = set_of(p, p->n);
    memcpy(next, set_of(p, s), p->words * sizeof *next);
    for (int q = c->dep_at[v]; q < c->dep_at[v + 1]; q++)
        next[c->dep[q] / 64] |= UINT64_C(1) << (c->dep[q] % 64);
    next[v / 64] &= ~(UINT64_C(1) << (v % 64));
    p->weight[p->n] = with - c->mem[v];
    p->closed[p->n] = 0;
    for (int k = 0; k < p->n; k++)
        if (p->weight[k] == p->weight[p->n] && !memcmp(set_of(p, k), next, p->words * sizeof *next))
            return 0;
    uint64_t any = 0;
    for (size_t w = 0; w < p->words; w++)
        any |= next[w];
    p->n++;
    return any == 0;
}

/* 1: node t can be computed within the budget; 0: it cannot; -E2BIG: not settled. */
static int computable(struct pebble *p, int t)
{
    memset(p->set, 0, p->words * sizeof *p->set);
    p->set[t / 64] = UINT64_C(1) << (t % 64);
    p->weight[0] = p->c->mem[t];
    p->closed[0] = 0;
    p->n = 1;
    for (;;) {
        int s = -1, at_once = -1, rc = 0;
        for (int k = 0; k < p->n; k++)
            if (!p->closed[k] && (s < 0 || p->weight[k] < p->weight[s]))
                s = k;
        if (s < 0)
            return 0;
        p->closed[s] = 1;
        for (int v = t; v >= 0 && at_once < 0; v--)
            if (has(set_of(p, s), v) && inputs_inside(p, set_of(p, s), v))
                at_once = v;
        for (int v = t; v >= 0 && rc == 0; v--)
            if (at_once >= 0 ? v == at_once : has(set_of(p, s), v))
                rc = step(p, s, v);
        if (rc)
            return rc;
    }
}

int checkmate_hopeless_node(const struct checkmate *c, int sets_max, int *node)
{
    struct pebble p = {.c = c, .words = ((size_t)c->n + 63) / 64, .cap = sets_max};
    int found = 0;
    p.set = malloc((size_t)sets_max * p.words * sizeof *p.set);
    p.weight = malloc((size_t)sets_max * sizeof *p.weight);
    p.closed = malloc((size_t)sets_max);
    if (!p.set || !p.weight || !p.closed)
        found = -ENOMEM;
    for (int t = 0; t < c->n && !found; t++)
        if (computable(&p, t) == 0) {
            *node = t;
            found = 1;
        }
    free(p.set);
    free(p.weight);
    free(p.closed);
    return found;
}
