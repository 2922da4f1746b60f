#include "offline/solvers/chain/chain_graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Values of fewer bytes are always kept: their replays would cost more than their memory is worth. */
static int64_t chain_graph_small(const struct graph *g)
{
    int64_t small = g->baseline_peak_bytes / 20000;

    return small < 65536 ? small : 65536;
}

/* 1: the forward part makes value v and can make it again, and v is not small: checkpointing may drop it. */
static int chain_graph_eligible(const struct graph *g, int32_t v, int32_t n_forward)
{
    const struct graph_val *x = &g->vals[v];

    return x->producer >= 0 && x->producer < n_forward && !graph_val_fixed(x) &&
           graph_val_bytes(g, v) >= chain_graph_small(g);
}

/* Last forward op that consumes v; its producer if none does. */
static int32_t chain_graph_last_forward(const struct graph *g, int32_t v, int32_t n_forward)
{
    const struct graph_val *x = &g->vals[v];
    int32_t k, last = x->producer;

    for (k = 0; k < x->n_uses && g->uses[x->first_use + k] < n_forward; k++)
        last = g->uses[x->first_use + k];
    return last;
}

static int chain_graph_used_later(const struct graph *g, int32_t v, int32_t n_forward)
{
    return g->vals[v].last_use >= n_forward;
}

/* Number of ops of the forward part: those before the first op of another phase. */
static int32_t chain_graph_forward(const struct graph *g)
{
    int32_t i = 0;

    while (i < g->n_ops && g->ops[i].phase == GRAPH_FWD)
        i++;
    return i;
}

/* ---- where to cut ------------------------------------------------------------------------------------------------- */

/* bytes[i], count[i]: bytes and number of the values that cross the position just before forward op i. */
static void chain_graph_crossings(const struct chain_graph *cg, int64_t *bytes, int32_t *count)
{
    const struct graph *g = cg->g;
    int32_t nf = cg->n_forward;
    int32_t v, i;

    for (v = 0; v < g->n_vals; v++) {
        int32_t from, to;

        if (cg->role[v] == CHAIN_OUTSIDE)
            continue;
        from = g->vals[v].producer + 1;
        to = chain_graph_last_forward(g, v, nf);
        if (from > to)
            continue;
        bytes[from] += graph_val_bytes(g, v);
        bytes[to + 1] -= graph_val_bytes(g, v);
        count[from]++;
        count[to + 1]--;
    }
    for (i = 1; i <= nf; i++) {
        bytes[i] += bytes[i - 1];
        count[i] += count[i - 1];
    }
}

/* Merge neighbouring stages until at most max are left: cuts that many bytes cross in proportion to the work on
 * their two sides go first, so the cuts that stay are cheap to store and evenly spread. */
static int32_t chain_graph_thin(const struct graph *g, const int64_t *bytes, int32_t *cut, int32_t n, int32_t max)
{
    int64_t *start = calloc((size_t)g->n_ops + 1, sizeof(*start));
    int32_t i;

    if (!start)
        return -ENOMEM;
    for (i = 0; i < g->n_ops; i++)
        start[i + 1] = start[i] + g->ops[i].ns;
    while (n > max) {
        double worst = -1;
        int32_t at = 0;

        for (i = 0; i < n - 1; i++) { /* the last cut ends the forward part and stays */
            int32_t before = i ? cut[i - 1] : 0, after = cut[i + 1];
            double cost = ((double)bytes[cut[i]] + 1) / ((double)(start[after] - start[before]) + 1);

            if (cost > worst) {
                worst = cost;
                at = i;
            }
        }
        memmove(cut + at, cut + at + 1, (size_t)(n - 1 - at) * sizeof(*cut));
        n--;
    }
    free(start);
    return n;
}

/* Fills cut[] with rising positions, of which the last is nf. Returns their number or an error. */
static int32_t chain_graph_cut(const struct chain_graph *cg, const struct chain_way *way, int32_t *cut)
{
    int32_t nf = cg->n_forward;
    int64_t *bytes = calloc((size_t)nf + 2, sizeof(*bytes));
    int32_t *count = calloc((size_t)nf + 2, sizeof(*count)), i, n = 0;

    if (!bytes || !count) {
        free(bytes);
        free(count);
        return -ENOMEM;
    }
    chain_graph_crossings(cg, bytes, count);
    for (i = 1; i < nf; i++)
        if (way->cuts == CHAIN_LINEARIZED ? count[i] > 0 : count[i] == 1)
            cut[n++] = i;
    cut[n++] = nf;
    n = chain_graph_thin(cg->g, bytes, cut, n, way->max_stages);
    free(bytes);
    free(count);
    return n;
}

/* ---- what the stages hold --------------------------------------------------------------------------------------- */

static int32_t chain_graph_stage_of(const struct chain_graph *cg, int32_t op)
{
    int32_t lo = 1, hi = cg->c.n;

    while (lo < hi) {
        int32_t mid = (lo + hi) / 2;

        if (op < cg->end[mid])
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static int chain_graph_by_producer(const void *x, const void *y, void *arg)
{
    const struct graph *g = arg;
    const struct graph_val *a = &g->vals[*(const int32_t *)x], *b = &g->vals[*(const int32_t *)y];

    if (a->producer != b->producer)
        return a->producer < b->producer ? -1 : 1;
    return (*(const int32_t *)x > *(const int32_t *)y) - (*(const int32_t *)x < *(const int32_t *)y);
}

/* Makes the lists of all stages. A value appears in a of every cut it crosses, and in abar of the stage that makes it. */
static int chain_graph_lists(struct chain_graph *cg)
{
    const struct graph *g = cg->g;
    int32_t n = cg->c.n, nf = cg->n_forward, v, l, n_counted = 0, k;
    int32_t *order = calloc((size_t)g->n_vals + 1, sizeof(*order));
    int64_t total = 0;

    if (!order)
        return -ENOMEM;
    for (v = 0; v < g->n_vals; v++)
        if (cg->role[v] != CHAIN_OUTSIDE) {
            int32_t first = chain_graph_stage_of(cg, g->vals[v].producer);
            int32_t last = chain_graph_stage_of(cg, chain_graph_last_forward(g, v, nf));

            order[n_counted++] = v;
            for (l = first; l < last; l++)
                cg->a[l].n++;
            cg->abar[first].n += last > first || cg->role[v] == CHAIN_SAVED;
        }
    for (l = 0; l <= n; l++) {
        cg->a[l].at = (int32_t)total;
        total += cg->a[l].n;
        cg->abar[l].at = (int32_t)total;
        total += cg->abar[l].n;
        cg->a[l].n = cg->abar[l].n = 0;
        if (total > INT32_MAX / 2) {
            free(order);
            return -EOVERFLOW;
        }
    }
    cg->vals = calloc((size_t)total + 1, sizeof(*cg->vals));
    if (!cg->vals) {
        free(order);
        return -ENOMEM;
    }
    qsort_r(order, (size_t)n_counted, sizeof(*order), chain_graph_by_producer, (void *)g);
    for (k = 0; k < n_counted; k++) {
        int32_t first, last;

        v = order[k];
        first = chain_graph_stage_of(cg, g->vals[v].producer);
        last = chain_graph_stage_of(cg, chain_graph_last_forward(g, v, nf));
        for (l = first; l < last; l++)
            cg->vals[cg->a[l].at + cg->a[l].n++] = v;
        if (last > first || cg->role[v] == CHAIN_SAVED)
            cg->vals[cg->abar[first].at + cg->abar[first].n++] = v;
    }
    free(order);
    return 0;
}

static int64_t chain_graph_sum(const struct chain_graph *cg, const struct chain_list *list)
{
    int64_t sum = 0;
    int32_t k;

    for (k = 0; k < list->n; k++)
        sum += graph_val_bytes(cg->g, cg->vals[list->at + k]);
    return sum;
}

/* First op after the forward part that consumes v; n_ops if none does. */
static int32_t chain_graph_first_backward(const struct chain_graph *cg, int32_t v)
{
    const struct graph_val *x = &cg->g->vals[v];
    int32_t k = 0;

    while (k < x->n_uses && cg->g->uses[x->first_use + k] < cg->n_forward)
        k++;
    return k < x->n_uses ? cg->g->uses[x->first_use + k] : cg->g->n_ops;
}

/* Sets back[], eagerly: a stage's backward begins at the first op that reads a value of the stage or of an earlier one. */
static void chain_graph_backwards_eager(struct chain_graph *cg)
{
    int32_t n = cg->c.n, v, l;

    for (l = 0; l <= n + 1; l++)
        cg->back[l] = cg->g->n_ops;
    for (v = 0; v < cg->g->n_vals; v++)
        if (cg->role[v] != CHAIN_OUTSIDE) {
            int32_t use = chain_graph_first_backward(cg, v);

            l = chain_graph_stage_of(cg, cg->g->vals[v].producer);
            cg->back[l] = use < cg->back[l] ? use : cg->back[l];
        }
    for (l = 2; l <= n; l++)
        cg->back[l] = cg->back[l] < cg->back[l - 1] ? cg->back[l] : cg->back[l - 1];
}

/* Sets back[]. An op after the forward part belongs to the latest stage it reads from (a mask made early is
 * read by every layer, but the layers' ops do not all belong to the first stage); the backward of l begins after the last
 * op of every later stage. */
static void chain_graph_backwards(struct chain_graph *cg, int eager)
{
    const struct graph *g = cg->g;
    int32_t n = cg->c.n, i, k, l;

    if (eager) {
        chain_graph_backwards_eager(cg);
        return;
    }
    for (l = 0; l <= n + 1; l++)
        cg->back[l] = cg->n_forward;
    for (i = cg->n_forward; i < g->n_ops; i++) {
        const struct graph_operand *u = graph_operands(g, i);
        int32_t latest = 0;

        for (k = 0; k < graph_n_operands(&g->ops[i]); k++)
            if (u[k].in >= 0 && cg->role[u[k].in] != CHAIN_OUTSIDE) {
                l = chain_graph_stage_of(cg, g->vals[u[k].in].producer);
                latest = l > latest ? l : latest;
            }
        if (latest > 1)
            cg->back[latest - 1] = i + 1;
    }
    for (l = n - 1; l >= 1; l--)
        if (cg->back[l] < cg->back[l + 1])
            cg->back[l] = cg->back[l + 1];
    cg->back[0] = g->n_ops;
}

/* Makes values that the backward reads before their stage's turn CHAIN_OUTSIDE. Returns their number. */
static int32_t chain_graph_exclude(struct chain_graph *cg)
{
    const struct graph *g = cg->g;
    int32_t v, n = 0;

    for (v = 0; v < g->n_vals; v++) {
        int32_t use, stage;

        if (cg->role[v] == CHAIN_OUTSIDE)
            continue;
        use = chain_graph_first_backward(cg, v);
        stage = chain_graph_stage_of(cg, chain_graph_last_forward(g, v, cg->n_forward));
        if (use < g->n_ops && use < cg->back[stage < cg->c.n ? stage + 1 : stage]) {
            cg->role[v] = CHAIN_OUTSIDE;
            n++;
        }
    }
    return n;
}

/* Forward overheads of and on: bytes live beside inputs and outputs while the stage runs, with and without saving. */
static void chain_graph_forward_room(struct chain_graph *cg, int32_t *ends)
{
    const struct graph *g = cg->g;
    int32_t l, i, k, v;

    for (v = 0; v < g->n_vals; v++)
        ends[v] = g->vals[v].producer >= 0 ? chain_graph_last_forward(g, v, cg->n_forward) : -1;
    for (l = 1; l <= cg->c.n; l++) {
        int64_t plain = 0, saved = 0, most_plain = 0, most_saved = 0;

        for (i = cg->end[l - 1]; i < cg->end[l]; i++) {
            const struct graph_operand *u = graph_operands(g, i);
            int32_t n = graph_n_operands(&g->ops[i]);

            cg->c.uf[l] += g->ops[i].ns;
            for (k = 0; k < n; k++)
                if (u[k].role == GRAPH_WRITE) {
                    plain += g->bufs[u[k].buf].bytes;
                    saved += g->bufs[u[k].buf].bytes;
                }
            most_plain = plain > most_plain ? plain : most_plain;
            most_saved = saved > most_saved ? saved : most_saved;
            /* Values made in this stage leave after their last forward use, unless they are saved for the backward. */
            for (k = 0; k < n; k++) {
                v = u[k].role == GRAPH_READ ? u[k].in : u[k].out;
                if (g->vals[v].producer < cg->end[l - 1] || ends[v] != i || (u[k].role != GRAPH_READ && u[k].role != GRAPH_WRITE))
                    continue;
                plain -= graph_val_bytes(g, v);
                if (cg->role[v] != CHAIN_SAVED)
                    saved -= graph_val_bytes(g, v);
            }
        }
        cg->c.on[l] = most_plain > cg->c.a[l] ? most_plain - cg->c.a[l] : 0;
        cg->c.of[l] = most_saved > cg->c.abar[l] ? most_saved - cg->c.abar[l] : 0;
    }
}

/* Backward sizes delta and ob, from the bytes at each op of values made after the forward part: gradients, temporaries, the optimizer's own. */
static int chain_graph_backward_room(struct chain_graph *cg)
{
    const struct graph *g = cg->g;
    int64_t *live = calloc((size_t)g->n_ops + 2, sizeof(*live));
    int32_t v, i, l;

    if (!live)
        return -ENOMEM;
    for (v = 0; v < g->n_vals; v++) {
        const struct graph_val *x = &g->vals[v];
        int32_t to = x->last_use < g->n_ops ? x->last_use : g->n_ops - 1;

        if (x->producer < cg->n_forward || g->bufs[x->buf].born < cg->n_forward)
            continue;
        live[x->producer] += graph_val_bytes(g, v);
        live[to + 1] -= graph_val_bytes(g, v);
        if (x->over == to) /* changed in place: the next version replaces this one at the same op */
            live[to] -= graph_val_bytes(g, v), live[to + 1] += graph_val_bytes(g, v);
    }
    for (i = 1; i <= g->n_ops; i++)
        live[i] += live[i - 1];
    for (l = cg->c.n; l >= 1; l--) {
        int64_t most = 0, start = cg->back[l] > 0 ? live[cg->back[l] - 1] : 0;
        int64_t next = cg->back[l - 1] > 0 ? live[cg->back[l - 1] - 1] : 0;

        for (i = cg->back[l]; i < (l > 1 ? cg->back[l - 1] : g->n_ops); i++)
            most = live[i] > most ? live[i] : most;
        cg->c.delta[l] = start;
        if (l == 1)
            next = 0;
        cg->c.ob[l] = most > start + next ? most - start - next : 0;
        for (i = cg->back[l]; i < (l > 1 ? cg->back[l - 1] : g->n_ops); i++)
            cg->c.ub[l] += g->ops[i].ns;
    }
    free(live);
    return 0;
}

static int chain_graph_by_density(const void *x, const void *y, void *arg)
{
    const struct graph *g = arg;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    double da = (double)g->ops[g->vals[a].producer].ns / ((double)graph_val_bytes(g, a) + 1);
    double db = (double)g->ops[g->vals[b].producer].ns / ((double)graph_val_bytes(g, b) + 1);

    return da < db ? -1 : da > db ? 1 : (a > b) - (a < b);
}

/* Sets role[]: values that take part in the chain, and of the saved ones the cheap: `share` of their bytes, quickest per byte first. */
static int chain_graph_roles(struct chain_graph *cg, double share)
{
    const struct graph *g = cg->g;
    int32_t *order = calloc((size_t)g->n_vals + 1, sizeof(*order)), n = 0, v, k;
    double total = 0, taken = 0;

    if (!order)
        return -ENOMEM;
    for (v = 0; v < g->n_vals; v++)
        if (chain_graph_eligible(g, v, cg->n_forward)) {
            cg->role[v] = chain_graph_used_later(g, v, cg->n_forward) ? CHAIN_SAVED : CHAIN_CHEAP;
            if (cg->role[v] == CHAIN_SAVED) {
                order[n++] = v;
                total += (double)graph_val_bytes(g, v);
            }
        }
    qsort_r(order, (size_t)n, sizeof(*order), chain_graph_by_density, (void *)g);
    for (k = 0; k < n && taken < share * total; k++) {
        cg->role[order[k]] = CHAIN_CHEAP;
        taken += (double)graph_val_bytes(g, order[k]);
    }
    free(order);
    return 0;
}

/* Makes the stages, their lists and their sizes, for the present roles. */
static int chain_graph_fill(struct chain_graph *cg, const struct chain_way *way, int32_t *ends)
{
    struct chain *c = &cg->c;
    int32_t n, l, pass;
    int rc;

    n = chain_graph_cut(cg, way, cg->end + 1);
    if (n < 0)
        return n;
    cg->back = calloc((size_t)n + 2, sizeof(*cg->back));
    cg->a = calloc((size_t)n + 1, sizeof(*cg->a));
    cg->abar = calloc((size_t)n + 1, sizeof(*cg->abar));
    if (!cg->back || !cg->a || !cg->abar || chain_alloc(c, n))
        return -ENOMEM;
    chain_graph_backwards(cg, way->eager);
    for (pass = 0; pass < 4 && !way->eager && chain_graph_exclude(cg); pass++)
        chain_graph_backwards(cg, 0);
    rc = chain_graph_lists(cg);
    if (rc)
        return rc;
    for (l = 1; l <= n; l++) {
        c->a[l] = chain_graph_sum(cg, &cg->a[l]);
        c->abar[l] = chain_graph_sum(cg, &cg->abar[l]);
    }
    chain_graph_forward_room(cg, ends);
    rc = chain_graph_backward_room(cg);
    for (l = 0; l <= n; l++) {
        c->of[l] = (int64_t)((double)c->of[l] * (1 - way->optimism));
        c->on[l] = (int64_t)((double)c->on[l] * (1 - way->optimism));
        c->ob[l] = (int64_t)((double)c->ob[l] * (1 - way->optimism));
        c->delta[l] = (int64_t)((double)c->delta[l] * (1 - way->optimism));
    }
    return rc;
}

int chain_graph_new(const struct graph *g, const struct chain_way *way, struct chain_graph **out)
{
    struct chain_graph *cg = calloc(1, sizeof(*cg));
    int32_t nf = chain_graph_forward(g), *ends = NULL;
    int rc = -ENOMEM;

    *out = NULL;
    if (!cg)
        return -ENOMEM;
    cg->g = g;
    cg->n_forward = nf;
    if (nf < 2 || nf == g->n_ops) {
        free(cg);
        return -ENOTSUP;
    }
    cg->end = calloc((size_t)nf + 2, sizeof(*cg->end));
    cg->role = calloc((size_t)g->n_vals + 1, 1);
    ends = calloc((size_t)g->n_vals + 1, sizeof(*ends));
    if (cg->end && cg->role && ends)
        rc = chain_graph_roles(cg, way->cheap);
    if (!rc)
        rc = chain_graph_fill(cg, way, ends);
    free(ends);
    if (rc)
        chain_graph_free(cg);
    else
        *out = cg;
    return rc;
}

void chain_graph_free(struct chain_graph *cg)
{
    if (!cg)
        return;
    chain_free(&cg->c);
    free(cg->end);
    free(cg->role);
    free(cg->back);
    free(cg->a);
    free(cg->abar);
    free(cg->vals);
    free(cg);
}
