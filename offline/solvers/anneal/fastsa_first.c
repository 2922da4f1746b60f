#include "offline/solvers/anneal/fastsa_first.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/anneal/fsa_row.h"

struct dear {
    double cost;
    int32_t slot;
};

static int by_cost(const void *a, const void *b)
{
    const struct dear *x = a, *y = b;
    return x->cost != y->cost ? (x->cost < y->cost ? 1 : -1) : (x->slot > y->slot) - (x->slot < y->slot);
}

/* Take away replays among the items from rank `from` on while the row stays within the budget. */
static void thin(struct fsa_row *r, int32_t from, struct dear *list)
{
    int32_t n = 0;
    for (int32_t k = from; k < r->n_items; k++) {
        const int32_t s = r->slot_at[k], v = r->slot[s];
        if (r->first[v] != s)
            list[n++] = (struct dear){(double)r->c->cost[v], s};
    }
    qsort(list, (size_t)n, sizeof *list, by_cost);
    for (int32_t k = 0; k < n; k++) {
        const int32_t s = list[k].slot, v = r->slot[s];
        if (!fsa_may_remove(r, s))
            continue;
        fsa_remove(r, s);
        if (r->excess > 0)
            fsa_add(r, v, s);
    }
}

/* Append free_order's computations of nodes a .. b and their ancestors, up to its first computation of b. Returns the new n. */
static int32_t append(const struct checkmate *c, const int32_t *free_order, const int32_t *at, int32_t a, int32_t b,
                      unsigned char *need, int32_t *order, int32_t n, int32_t cap)
{
    memset(need, 0, (size_t)c->n);
    for (int32_t v = b; v >= 0; v--) {
        need[v] |= v >= a;
        for (int q = c->dep_at[v]; need[v] && q < c->dep_at[v + 1]; q++)
            need[c->dep[q]] = 1;
    }
    for (int32_t k = 0; k <= at[b]; k++) {
        if (!need[free_order[k]])
            continue;
        if (n == cap)
            return -ENOSPC;
        order[n++] = free_order[k];
    }
    return n;
}

int fastsa_first(const struct checkmate *c, const int32_t *free_order, int32_t n_free, int32_t *order, int32_t cap,
                 int32_t *n_order)
{
    int32_t n = 0, rc = 0, *at = malloc((size_t)c->n * sizeof *at);
    unsigned char *need = malloc((size_t)c->n);
    struct dear *list = malloc((size_t)cap * sizeof *list);
    struct fsa_row *r = fsa_new(c, cap);
    if (!at || !need || !list || !r)
        rc = -ENOMEM;
    for (int32_t v = 0; !rc && v < c->n; v++)
        at[v] = -1;
    for (int32_t k = n_free - 1; !rc && k >= 0; k--)
        at[free_order[k]] = k;
    for (int32_t v = 0; !rc && v < c->n; v++)
        rc = at[v] < 0 ? -EINVAL : 0;
    for (int32_t a = 0, b; !rc && a < c->n; a = b + 1) {
        for (b = a; b + 1 < c->n && at[b + 1] > at[b]; b++)
            continue;
        const int32_t grown = append(c, free_order, at, a, b, need, order, n, cap);
        rc = grown < 0 ? grown : fsa_load(r, order, grown);
        if (!rc && r->excess > 0)
            rc = -EINVAL;
        if (rc)
            break;
        thin(r, n, list);
        n = fsa_save(r, order);
    }
    if (!rc) {
        thin(r, 0, list);
        *n_order = fsa_save(r, order);
    }
    free(at);
    free(need);
    free(list);
    fsa_free(r);
    return rc;
}
