/* Segment trees over the positions of a schedule: add to a range, ask for the maximum (or a soft maximum) of all.
 *
 * Memory in use by position is a row of numbers; each change of a schedule adds a buffer's size to a few
 * stretches of the row and needs the new peak at once. Both trees keep, beside each inner node, the sum added to
 * its whole stretch, and never push it down, so an update touches two paths from leaf to root.
 *
 *   segtree       node = max(left, right) + add(node). Exact for integers below 2^53.
 *   segtree_soft  node = log(exp(left) + exp(right)) + add(node), the log-add-exp form: values are in units of
 *                 the temperature, so the root is a smooth stand-in for the maximum that also feels the runners-up
 *                 (never below the maximum, above it by at most log(positions)). Correct to 4e-3 a level: the
 *                 logarithm is read from a table.
 *
 * Threads: a tree belongs to one thread; the table is constant after the first segtree_soft_init.
 * Errors: init returns 0 or -ENOMEM, -EINVAL for n < 1; other functions cannot fail. Ranges are inclusive and must lie in
 * 0..n-1; an empty range (lo > hi) does nothing.
 */
#ifndef REMAT_OFFLINE_SEGTREE_H
#define REMAT_OFFLINE_SEGTREE_H

#include <stddef.h>
#include <stdint.h>

struct segtree_node {
    double top; /* maximum of the stretch, own add counted, adds of ancestors not */
    double add; /* sum added to every position of the stretch; unused in leaves */
};

struct segtree {
    struct segtree_node *node; /* owned; node[1] is the root, node[leaves + i] position i */
    uint32_t leaves;           /* power of two, >= n */
    uint32_t n;
    uint32_t cap; /* leaves that `node` has room for */
};

/* Set all n positions to 0. May be called again on the same tree, which keeps its memory when large enough. The first
 * call needs a zeroed struct. */
int segtree_init(struct segtree *t, uint32_t n);
void segtree_free(struct segtree *t);

/* Set all n positions at once, O(n). */
void segtree_build(struct segtree *t, const double *value);

/* Add x[i - lo] to position i for all i in lo..hi at once: O(hi - lo), cheaper than a dozen ranges apart. */
void segtree_add_each(struct segtree *t, uint32_t lo, uint32_t hi, const double *x);

/* Read all n positions into value[], O(n). */
void segtree_read(const struct segtree *t, double *value);

/* Value of one position, and the maximum over a range (for tests and reports: O(log n)). */
double segtree_at(const struct segtree *t, uint32_t i);
double segtree_range_max(const struct segtree *t, uint32_t lo, uint32_t hi);

static inline double segtree_max(const struct segtree *t) { return t->node[1].top; }

/* Add x to positions lo..hi. About two dozen node updates for 4,096 positions; stops as soon as nothing changes
 * above. */
static inline void segtree_add(struct segtree *t, uint32_t lo, uint32_t hi, double x)
{
    struct segtree_node *const node = t->node;
    if (lo > hi)
        return;
    uint32_t l = lo + t->leaves, r = hi + t->leaves;
    /* invariant: everything strictly between l and r, on this level, has been accounted for below */
    node[l].top += x;
    node[l].add += x;
    if (l != r) {
        node[r].top += x;
        node[r].add += x;
    }
    while ((l ^ r) > 1) {
        if (!(l & 1)) {
            node[l ^ 1].top += x;
            node[l ^ 1].add += x;
        }
        if (r & 1) {
            node[r ^ 1].top += x;
            node[r ^ 1].add += x;
        }
        l >>= 1;
        r >>= 1;
        double a = node[2 * l].top, b = node[2 * l + 1].top;
        node[l].top = (a > b ? a : b) + node[l].add;
        a = node[2 * r].top;
        b = node[2 * r + 1].top;
        node[r].top = (a > b ? a : b) + node[r].add;
    }
    for (l >>= 1; l; l >>= 1) {
        const double a = node[2 * l].top, b = node[2 * l + 1].top, top = (a > b ? a : b) + node[l].add;
        if (node[l].top == top)
            break;
        node[l].top = top;
    }
}

/* ---- log-add-exp ------------------------------------------------------------------------------------------ */

#define SEGTREE_SOFT_STEPS 64 /* table steps per unit */
#define SEGTREE_SOFT_REACH 12 /* below exp(-12) a runner-up counts as nothing */

struct segtree_soft {
    struct segtree t;
    double log1p_exp[SEGTREE_SOFT_STEPS * SEGTREE_SOFT_REACH + 2]; /* log(1 + exp(-i / STEPS)) */
};

int segtree_soft_init(struct segtree_soft *t, uint32_t n);
void segtree_soft_free(struct segtree_soft *t);
void segtree_soft_build(struct segtree_soft *t, const double *value);
void segtree_soft_add_each(struct segtree_soft *t, uint32_t lo, uint32_t hi, const double *x);

static inline double segtree_soft_join(const struct segtree_soft *t, double a, double b)
{
    const double hi = a > b ? a : b, gap = (a > b ? a - b : b - a) * SEGTREE_SOFT_STEPS;
    return gap >= SEGTREE_SOFT_STEPS * SEGTREE_SOFT_REACH ? hi : hi + t->log1p_exp[(int)(gap + 0.5)];
}

static inline double segtree_soft_max(const struct segtree_soft *t) { return t->t.node[1].top; }

static inline void segtree_soft_add(struct segtree_soft *s, uint32_t lo, uint32_t hi, double x)
{
    struct segtree_node *const node = s->t.node;
    if (lo > hi)
        return;
    uint32_t l = lo + s->t.leaves, r = hi + s->t.leaves;
    node[l].top += x;
    node[l].add += x;
    if (l != r) {
        node[r].top += x;
        node[r].add += x;
    }
    while ((l ^ r) > 1) {
        if (!(l & 1)) {
            node[l ^ 1].top += x;
            node[l ^ 1].add += x;
        }
        if (r & 1) {
            node[r ^ 1].top += x;
            node[r ^ 1].add += x;
        }
        l >>= 1;
        r >>= 1;
        node[l].top = segtree_soft_join(s, node[2 * l].top, node[2 * l + 1].top) + node[l].add;
        node[r].top = segtree_soft_join(s, node[2 * r].top, node[2 * r + 1].top) + node[r].add;
    }
    for (l >>= 1; l; l >>= 1) {
        const double top = segtree_soft_join(s, node[2 * l].top, node[2 * l + 1].top) + node[l].add;
        if (node[l].top == top)
            break;
        node[l].top = top;
    }
}

#endif
