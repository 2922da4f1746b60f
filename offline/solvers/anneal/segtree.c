#include "offline/solvers/anneal/segtree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int segtree_init(struct segtree *t, uint32_t n)
{
    if (n < 1 || n > UINT32_MAX / 4)
        return -EINVAL;
    uint32_t leaves = 2;
    while (leaves < n)
        leaves *= 2;
    if (leaves > t->cap) {
        struct segtree_node *node = malloc(2 * (size_t)leaves * sizeof *node);
        if (!node)
            return -ENOMEM;
        free(t->node);
        t->node = node;
        t->cap = leaves;
    }
    t->leaves = leaves;
    t->n = n;
    memset(t->node, 0, 2 * (size_t)leaves * sizeof *t->node);
    return 0;
}

void segtree_free(struct segtree *t)
{
    free(t->node);
    *t = (struct segtree){0};
}

/* Positions past n hold a value so low that they never are the maximum, whatever is added to them. */
static void leaves_set(struct segtree *t, const double *value)
{
    for (uint32_t i = 0; i < t->leaves; i++)
        t->node[t->leaves + i] = (struct segtree_node){i < t->n ? value[i] : -1e300, 0};
}

void segtree_build(struct segtree *t, const double *value)
{
    leaves_set(t, value);
    for (uint32_t i = t->leaves - 1; i; i--) {
        const double a = t->node[2 * i].top, b = t->node[2 * i + 1].top;
        t->node[i] = (struct segtree_node){a > b ? a : b, 0};
    }
}

void segtree_add_each(struct segtree *t, uint32_t lo, uint32_t hi, const double *x)
{
    struct segtree_node *const node = t->node;
    uint32_t l = lo + t->leaves, r = hi + t->leaves;
    for (uint32_t i = l; i <= r; i++)
        node[i].top += x[i - l];
    for (l >>= 1, r >>= 1; l; l >>= 1, r >>= 1)
        for (uint32_t i = l; i <= r; i++) {
            const double a = node[2 * i].top, b = node[2 * i + 1].top;
            node[i].top = (a > b ? a : b) + node[i].add;
        }
}

void segtree_read(const struct segtree *t, double *value)
{
    /* sum of the adds of all inner nodes above position i; two neighbours share them */
    for (uint32_t i = 0; i < t->n; i++) {
        if (i % 2 == 0) {
            double above = 0;
            for (uint32_t at = (t->leaves + i) >> 1; at; at >>= 1)
                above += t->node[at].add;
            value[i] = above;
        } else {
            value[i] = value[i - 1];
        }
    }
    for (uint32_t i = 0; i < t->n; i++)
        value[i] += t->node[t->leaves + i].top;
}

double segtree_at(const struct segtree *t, uint32_t i)
{
    uint32_t at = t->leaves + i;
    double v = t->node[at].top;
    while (at >>= 1)
        v += t->node[at].add;
    return v;
}

static double range_max(const struct segtree *t, uint32_t at, uint32_t first, uint32_t last, uint32_t lo, uint32_t hi)
{
    if (hi < first || lo > last)
        return -INFINITY;
    if (lo <= first && last <= hi)
        return t->node[at].top;
    const uint32_t mid = first + (last - first) / 2;
    const double a = range_max(t, 2 * at, first, mid, lo, hi), b = range_max(t, 2 * at + 1, mid + 1, last, lo, hi);
    return (a > b ? a : b) + t->node[at].add;
}

double segtree_range_max(const struct segtree *t, uint32_t lo, uint32_t hi)
{
    return range_max(t, 1, 0, t->leaves - 1, lo, hi);
}

int segtree_soft_init(struct segtree_soft *t, uint32_t n)
{
    const int rc = segtree_init(&t->t, n);
    if (rc)
        return rc;
    for (int i = 0; i < SEGTREE_SOFT_STEPS * SEGTREE_SOFT_REACH + 2; i++)
        t->log1p_exp[i] = log1p(exp(-(double)i / SEGTREE_SOFT_STEPS));
    double *zero = calloc(n, sizeof *zero);
    if (!zero)
        return -ENOMEM;
    segtree_soft_build(t, zero);
    free(zero);
    return 0;
}

void segtree_soft_free(struct segtree_soft *t) { segtree_free(&t->t); }

void segtree_soft_build(struct segtree_soft *t, const double *value)
{
    leaves_set(&t->t, value);
    for (uint32_t i = t->t.leaves - 1; i; i--)
        t->t.node[i] = (struct segtree_node){
            segtree_soft_join(t, t->t.node[2 * i].top, t->t.node[2 * i + 1].top), 0};
}

void segtree_soft_add_each(struct segtree_soft *s, uint32_t lo, uint32_t hi, const double *x)
{
    struct segtree_node *const node = s->t.node;
    uint32_t l = lo + s->t.leaves, r = hi + s->t.leaves;
    for (uint32_t i = l; i <= r; i++)
        node[i].top += x[i - l];
    for (l >>= 1, r >>= 1; l; l >>= 1, r >>= 1)
        for (uint32_t i = l; i <= r; i++)
            node[i].top = segtree_soft_join(s, node[2 * i].top, node[2 * i + 1].top) + node[i].add;
}
