/* mincut_relax: lifts bans of the fusion-aware cut until its plan fits the limit. */
#include "offline/solvers/mincut/mincut_relax.h"
#include "offline/solvers/mincut/mincut.h"
#include "offline/solvers/mincut/mincut_fusion.h"
#include "offline/solvers/mincut/mincut_try.h"

#include "offline/solvers/solver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lift {
    int32_t op;
    double price; /* ns per byte that a replay brings back */
};

static int by_price(const void *a, const void *b)
{
    const struct lift *x = a, *y = b;
    return x->price < y->price ? -1 : x->price > y->price ? 1 : x->op - y->op;
}

struct relax {
    struct mincut *m;
    struct mincut_try *t;
    int64_t *hold, *redo_val, *redo_op;
    uint8_t *banned, *state, *choice;
    struct lift *lift;
    int32_t n;
};

static int relax_init(struct relax *x, struct mincut *m, struct mincut_try *t)
{
    const struct graph *g = m->g;
    size_t n = (size_t)m->n + 1, o = (size_t)g->n_ops + 1;
    memset(x, 0, sizeof *x);
    x->m = m;
    x->t = t;
    x->hold = calloc(n, sizeof *x->hold);
    x->redo_val = calloc(n, sizeof *x->redo_val);
    x->redo_op = calloc(o, sizeof *x->redo_op);
    x->banned = calloc(o, 1);
    x->state = calloc(n, 1);
    x->choice = calloc((size_t)t->s->n_gaps + 1, 1);
    x->lift = calloc(o, sizeof *x->lift);
    if (!x->hold || !x->redo_val || !x->redo_op || !x->banned || !x->state || !x->choice || !x->lift)
        return -ENOMEM;
    int weighted = mincut_fusion_weights(m, x->hold, x->banned);
    if (weighted < 0)
        return weighted;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const struct graph_operand *d = graph_operands(g, i);
        int64_t bytes = 0;
        for (int32_t j = g->ops[i].n_reads; j < graph_n_operands(&g->ops[i]); j++)
            if (d[j].role != GRAPH_SIDE)
                bytes += g->bufs[d[j].buf].bytes;
        if (x->banned[i] && !g->ops[i].opaque && bytes)
            x->lift[x->n++] = (struct lift){ i, (double)g->ops[i].ns / (double)bytes };
    }
    qsort(x->lift, (size_t)x->n, sizeof *x->lift, by_price);
    return 0;
}

static void relax_free(struct relax *x)
{
    free(x->hold);
    free(x->redo_val);
    free(x->redo_op);
    free(x->banned);
    free(x->state);
    free(x->choice);
    free(x->lift);
}

/* Make a cut under the present bans and try its decisions. A replay that is not banned costs next to nothing in the cut: the
 * paper calls it free because it fuses; its time only breaks ties. */
static int relax_cut(struct relax *x)
{
    int64_t value;
    for (int32_t i = 0; i < x->m->g->n_ops; i++)
        x->redo_op[i] = x->banned[i] ? MINCUT_NEVER : x->m->g->ops[i].ns / 1024;
    int e = mincut_solve(x->m, x->hold, x->redo_val, x->redo_op, x->state, &value);
    if (e == -ERANGE) {
        x->t->r.ok = 0;
        return 0;
    }
    if (e)
        return e;
    sched_default(x->t->s, x->choice);
    mincut_choose(x->m, x->state, x->choice);
    return mincut_trial(x->t, x->choice);
}

static int fits(const struct relax *x)
{
    return x->t->r.ok && x->t->r.peak_bytes <= x->t->limit_bytes;
}

int mincut_relax(struct mincut *m, struct mincut_try *t, double until_s)
{
    struct relax x;
    int32_t *turns = malloc(((size_t)m->g->n_ops + 1) * sizeof *turns);
    if (!turns)
        return -ENOMEM;
    mincut_pivot(m, turns, mincut_turns(m->g, turns));
    free(turns);
    int e = relax_init(&x, m, t);
    if (!e)
        e = relax_cut(&x);
    int32_t lo = 0, hi = x.n + 1; /* lifting lo bans is too few, lifting hi (if <= n) is enough */
    int done = e || fits(&x);
    while (!done && hi - lo > 1 && solver_now_s() < until_s) {
        int32_t mid = lo + (hi - lo) / 2;
        for (int32_t k = 0; k < x.n; k++)
            x.banned[x.lift[k].op] = k >= mid;
        e = relax_cut(&x);
        if (e)
            break;
        if (fits(&x))
            hi = mid;
        else
            lo = mid;
    }
    if (!e && !done && hi <= x.n) {
        for (int32_t k = 0; k < x.n; k++)
            x.banned[x.lift[k].op] = k >= hi;
        for (int32_t k = hi - 1; k >= 0 && solver_now_s() < until_s; k--) {
            int64_t before = t->best_ns;
            x.banned[x.lift[k].op] = 1;
            e = relax_cut(&x);
            if (e)
                break;
            if (!fits(&x) || t->r.ns > before)
                x.banned[x.lift[k].op] = 0;
        }
    }
    relax_free(&x);
    return e;
}
