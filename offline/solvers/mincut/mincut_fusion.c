/* mincut_fusion: the weights and bans of the fusion-aware cut (Yu & He 2023), from the facts in a trace. */
#include "offline/solvers/mincut/mincut_fusion.h"
#include "offline/solvers/mincut/mincut.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* 1: op i may fuse with its neighbours, as memory-bound elementwise ops do; compute-bound, random and opaque ops, and ops with
 * side operands, end a kernel. */
static int fusible(const struct graph *g, int32_t i)
{
    const struct graph_op *o = &g->ops[i];
    return !o->heavy && !o->opaque && !o->random && o->n_side == 0;
}

static int64_t input_bytes(const struct graph *g, int32_t i)
{
    const struct graph_operand *d = graph_operands(g, i);
    int64_t s = 0;
    for (int32_t j = 0; j < g->ops[i].n_reads + g->ops[i].n_rmw; j++)
        s += g->bufs[d[j].buf].bytes;
    return s;
}

static int64_t output_bytes(const struct graph *g, int32_t i)
{
    const struct graph_operand *d = graph_operands(g, i);
    int64_t s = 0;
    for (int32_t j = g->ops[i].n_reads; j < graph_n_operands(&g->ops[i]); j++)
        if (d[j].role != GRAPH_SIDE)
            s += g->bufs[d[j].buf].bytes;
    return s;
}

/* 1: v's producer, or an op before `turn` that reads v, does not fuse, so v is written to memory in any case. */
static int written_anyway(const struct graph *g, int32_t v, int32_t turn)
{
    const struct graph_val *x = &g->vals[v];
    if (x->producer < 0 || !fusible(g, x->producer))
        return 1;
    for (int32_t u = 0; u < x->n_uses && g->uses[x->first_use + u] < turn; u++)
        if (!fusible(g, g->uses[x->first_use + u]))
            return 1;
    return 0;
}

/* 1: an op at or after `turn` reads v and does not fuse, so a rebuilt v would be written out after all. */
static int read_unfused(const struct graph *g, int32_t v, int32_t turn)
{
    const struct graph_val *x = &g->vals[v];
    for (int32_t u = x->n_uses - 1; u >= 0 && g->uses[x->first_use + u] >= turn; u--)
        if (!fusible(g, g->uses[x->first_use + u]))
            return 1;
    return 0;
}

/* 1: the turn falls inside one fused kernel: producer and next reader fuse, and no unfusible op runs between them. */
static int touches(const struct graph *g, const int32_t *barriers, int32_t from, int32_t to)
{
    return to < g->n_ops && fusible(g, from) && fusible(g, to) && barriers[to] == barriers[from];
}

/* distance[v]: ops on the shortest way from v to a reader at or after the turn. */
static int32_t *distances(const struct graph *g, const int32_t *turn_of)
{
    int32_t *dist = malloc(((size_t)g->n_vals + 1) * sizeof *dist);
    for (int32_t v = 0; dist && v < g->n_vals; v++)
        dist[v] = INT32_MAX;
    for (int32_t i = g->n_ops - 1; dist && i >= 0; i--) {
        const struct graph_operand *d = graph_operands(g, i);
        int32_t best = INT32_MAX;
        for (int32_t j = g->ops[i].n_reads; j < graph_n_operands(&g->ops[i]); j++) {
            const struct graph_val *x = d[j].role == GRAPH_SIDE ? NULL : &g->vals[d[j].out];
            if (x && x->n_uses && g->uses[x->first_use + x->n_uses - 1] >= turn_of[i])
                best = 0;
            else if (x && dist[d[j].out] < best)
                best = dist[d[j].out];
        }
        for (int32_t j = g->ops[i].n_reads; j < graph_n_operands(&g->ops[i]); j++)
            if (d[j].role != GRAPH_SIDE && best < dist[d[j].out])
                dist[d[j].out] = best;
        for (int32_t j = 0; best < INT32_MAX && j < g->ops[i].n_reads + g->ops[i].n_rmw; j++)
            if (best + 1 < dist[d[j].in])
                dist[d[j].in] = best + 1;
    }
    return dist;
}

int mincut_fusion_weights(const struct mincut *m, int64_t *hold, uint8_t *banned)
{
    const struct graph *g = m->g;
    size_t n = (size_t)g->n_ops + 1;
    int32_t *turns = malloc(n * sizeof *turns), *turn_of = malloc(n * sizeof *turn_of), *barriers = malloc(n * sizeof *barriers);
    int32_t n_turns = turns ? mincut_turns(g, turns) : 0, *dist = NULL, weighted = 0;
    if (!turns || !turn_of || !barriers)
        goto out;
    for (int32_t i = 0, k = 0, walls = 0; i < g->n_ops; i++) {
        while (k < n_turns && turns[k] <= i)
            k++;
        turn_of[i] = k < n_turns ? turns[k] : g->n_ops;
        walls += !fusible(g, i);
        barriers[i] = walls;
    }
    dist = distances(g, turn_of);
    if (!dist)
        goto out;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const struct graph_operand *d = graph_operands(g, i);
        banned[i] = g->ops[i].heavy || g->ops[i].opaque || 4 * output_bytes(g, i) <= input_bytes(g, i);
        for (int32_t j = g->ops[i].n_reads; !banned[i] && j < graph_n_operands(&g->ops[i]); j++)
            if (d[j].role != GRAPH_SIDE)
                banned[i] = read_unfused(g, d[j].out, turn_of[i]);
    }
    for (int32_t k = 0; k < m->n; k++) {
        const struct mincut_cand *c = &m->cand[k];
        int32_t from = c->op < 0 ? 0 : c->op, turn = turn_of[c->from < 0 ? 0 : c->from];
        hold[k] = 0;
        if (!c->active || turn >= g->n_ops)
            continue;
        double w = (double)c->bytes * (written_anyway(g, c->val, turn) ? 1 : 2);
        int32_t far = dist[c->val] < 100 ? dist[c->val] : 100;
        if (c->op >= 0 && c->demanded && touches(g, barriers, from, c->until))
            w = 0;
        w *= pow(1.02, far);
        hold[k] = w < (double)(1LL << 44) ? (int64_t)w : 1LL << 44;
        weighted++;
    }
out:
    free(turns);
    free(turn_of);
    free(barriers);
    free(dist);
    return dist ? weighted : -ENOMEM;
}
