/* The best of the single-instant bounds. */
#include "offline/solvers/cover/cover_bound.h"
#include "offline/solvers/cover/cover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/anneal/anneal_model.h"
#include "offline/solvers/mincut/mincut.h"

/* Number of instants looked at: about a second's work at most, but enough to find the right instant. */
enum { LOOK_MOST = 192, LOOK_LEAST = 6, LOOK_WORK = 400000, APART = 4 };

struct cover *cover_new(const struct graph *g)
{
    struct cover *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->g = g;
    c->s = sched_new(g);
    c->cut = calloc((size_t)g->n_ops + 1, sizeof(struct cover_cut *));
    if (c->s && c->cut) {
        mincut_unforce(c->s);
        return c;
    }
    cover_free(c);
    return NULL;
}

void cover_free(struct cover *c)
{
    if (!c)
        return;
    for (int32_t t = 0; c->cut && t < c->g->n_ops; t++)
        cover_cut_free(c->cut[t]);
    free(c->cut);
    anneal_model_free(c->model);
    anneal_model_free(c->long_model);
    sched_free(c->s);
    free(c);
}

/* Bound from the cut at one instant. */
struct look {
    int32_t op;
    double ns;
};

static int look_at(struct cover *c, int32_t t, int64_t limit_bytes, struct look *seen, int *n, struct cover_bound *b)
{
    struct cover_verdict v;
    for (int i = 0; i < *n; i++)
        if (seen[i].op == t)
            return 0;
    if (!c->cut[t] && !(c->cut[t] = cover_cut_new(c->g, t)))
        return -ENOMEM;
    const int rc = cover_cut_solve(c->cut[t], limit_bytes, &v);
    if (rc)
        return rc;
    b->impossible |= v.impossible;
    b->ns = v.bound_ns > b->ns ? v.bound_ns : b->ns;
    seen[(*n)++] = (struct look){t, v.bound_ns};
    return 0;
}

static int by_bound(const void *pa, const void *pb)
{
    const struct look *a = pa, *b = pb;
    return a->ns != b->ns ? (a->ns < b->ns) - (a->ns > b->ns) : (a->op > b->op) - (a->op < b->op);
}

/* Divide the ops over the limit into windows and look at the highest op of each, then at all ops around the best of them. */
static int look_around(struct cover *c, int64_t limit_bytes, int most, struct look *seen, int *n, struct cover_bound *b)
{
    const struct graph *g = c->g;
    int32_t over = 0, count = 0, high = -1;
    int rc = 0;
    for (int32_t t = 0; t < g->n_ops; t++)
        over += g->live_bytes[t] > limit_bytes;
    const int32_t window = over <= most ? 1 : over / (most / 2) + 1;
    for (int32_t t = 0; t <= g->n_ops && !rc; t++) {
        if (t < g->n_ops && g->live_bytes[t] > limit_bytes) {
            high = high < 0 || g->live_bytes[t] > g->live_bytes[high] ? t : high;
            count++;
        }
        if (high >= 0 && (count == window || t == g->n_ops)) {
            rc = look_at(c, high, limit_bytes, seen, n, b);
            high = -1;
            count = 0;
        }
    }
    if (rc || !*n || window == 1)
        return rc;
    qsort(seen, (size_t)*n, sizeof *seen, by_bound);
    const int32_t mid = seen[0].op;
    for (int32_t d = 1; d < g->n_ops && *n < most && !rc; d++)
        for (int side = -1; side <= 1 && !rc && *n < most; side += 2) {
            const int32_t t = mid + side * d;
            if (t >= 0 && t < g->n_ops && g->live_bytes[t] > limit_bytes)
                rc = look_at(c, t, limit_bytes, seen, n, b);
        }
    return rc;
}

int cover_bound(struct cover *c, int64_t limit_bytes, struct cover_bound *b)
{
    int most = LOOK_WORK / (c->g->n_vals + 1), n = 0;
    most = most > LOOK_MOST ? LOOK_MOST : most < LOOK_LEAST ? LOOK_LEAST : most;
    struct look *seen = calloc((size_t)most + 2, sizeof *seen);
    *b = (struct cover_bound){0};
    int rc = seen ? look_around(c, limit_bytes, most, seen, &n, b) : -ENOMEM;
    if (!rc) {
        qsort(seen, (size_t)n, sizeof *seen, by_bound);
        for (int i = 0; i < n && b->n_top < COVER_TOP; i++) {
            int near = 0;
            for (int k = 0; k < b->n_top; k++)
                near |= abs(b->top[k] - seen[i].op) < APART;
            if (!near)
                b->top[b->n_top++] = seen[i].op;
        }
    }
    free(seen);
    return rc;
}
