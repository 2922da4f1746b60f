#include "offline/model/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Holds in the order in which they stand: hold k reads buf[k] and stands before op before[k] of the trace; `last` ones are followed by the buffer's end. */
struct holds {
    int32_t *before, *buf, n;
    uint8_t *last;
};

static void holds_free(struct holds *h)
{
    free(h->before);
    free(h->buf);
    free(h->last);
}

static void add_hold(struct holds *h, int32_t before, int32_t buf, int last)
{
    h->before[h->n] = before;
    h->buf[h->n] = buf;
    h->last[h->n++] = (uint8_t)last;
}

static int holds_find(const struct graph *g, const int64_t *bytes, struct holds *h)
{
    const size_t most = (size_t)g->n_bufs + (size_t)g->n_operands + 1;
    int32_t *used = malloc(((size_t)g->n_bufs + 1) * sizeof *used); /* the last op that touches the buffer */
    h->before = malloc(most * sizeof *h->before);
    h->buf = malloc(most * sizeof *h->buf);
    h->last = malloc(most);
    h->n = 0;
    if (!used || !h->before || !h->buf || !h->last) {
        free(used);
        return -ENOMEM;
    }
    for (int32_t b = 0; b < g->n_bufs; b++)
        used[b] = -1;
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int32_t k = g->ops[i].first; k < g->ops[i].first + graph_n_operands(&g->ops[i]); k++)
            used[g->operands[k].buf] = i;
    for (int32_t i = 0; i <= g->n_ops; i++) {
        for (int32_t k = g->dies_at[i]; k < g->dies_at[i + 1]; k++) {
            const int32_t b = g->die_list[k];
            if (i > 0 && bytes[b] && used[b] < i - 1)
                add_hold(h, i, b, 1);
        }
        for (int32_t k = i < g->n_ops ? g->ops[i].first : 0; i > 0 && i < g->n_ops && k < g->ops[i].first + graph_n_operands(&g->ops[i]); k++) {
            const int32_t b = g->operands[k].buf;
            if (g->operands[k].role == GRAPH_WRITE && g->bufs[b].born != i && bytes[b])
                add_hold(h, i, b, 0);
        }
    }
    free(used);
    return 0;
}

/* A hold's op; its name is how a plan's replay or a message names it. */
static int build_hold(struct graph_build *b, const struct graph *g, int32_t before, int32_t buf)
{
    const int32_t i = graph_build_op(b, "hold", (enum graph_phase)(before < g->n_ops ? g->ops[before].phase : g->ops[before - 1].phase), 0);
    if (i < 0)
        return i;
    graph_build_op_at(b, i)->opaque = 1;
    return graph_build_operand(b, i, GRAPH_READ, buf);
}

static int build_op(struct graph_build *b, const struct graph *g, int32_t op)
{
    const struct graph_op *from = &g->ops[op];
    const int32_t i = graph_build_op(b, from->name, (enum graph_phase)from->phase, from->ns);
    if (i < 0)
        return i;
    struct graph_op *o = graph_build_op_at(b, i);
    o->flops = from->flops;
    o->bytes = from->bytes;
    o->site = from->site;
    o->heavy = from->heavy;
    o->random = from->random;
    o->opaque = from->opaque;
    int rc = 0;
    for (int32_t k = from->first; k < from->first + graph_n_operands(from) && !rc; k++)
        rc = graph_build_operand(b, i, (enum graph_role)g->operands[k].role, g->operands[k].buf);
    return rc;
}

/* at[i], of n_ops + 1: where op i of g stands behind its holds; ends[b]: where the buffer dies. */
static void places(const struct graph *g, const struct holds *h, int32_t *at, int32_t *ends, int32_t *op_of)
{
    int32_t n = 0, k = 0;
    for (int32_t b = 0; b < g->n_bufs; b++)
        ends[b] = -1;
    for (int32_t i = 0; i <= g->n_ops; i++) {
        for (; k < h->n && h->before[k] == i; k++) {
            op_of[n++] = -1 - i;
            if (h->last[k])
                ends[h->buf[k]] = n;
        }
        at[i] = n;
        if (i < g->n_ops)
            op_of[n++] = i;
    }
    for (int32_t b = 0; b < g->n_bufs; b++)
        if (ends[b] < 0 && g->bufs[b].dies >= 0)
            ends[b] = at[g->bufs[b].dies];
}

static int build(struct graph_build *b, const struct graph *g, const int64_t *bytes, const struct holds *h, int32_t *op_of)
{
    int32_t *at = malloc(((size_t)g->n_ops + 1) * sizeof *at), *ends = malloc(((size_t)g->n_bufs + 1) * sizeof *ends), k = 0;
    int rc = at && ends ? 0 : -ENOMEM;
    if (!rc)
        places(g, h, at, ends, op_of);
    for (int32_t i = 0; i < g->n_bufs && rc >= 0; i++) {
        const struct graph_buf *x = &g->bufs[i];
        if ((rc = graph_build_buf(b, bytes[i], x->born < 0 ? x->born : at[x->born], ends[i], (enum graph_kind)x->kind)) >= 0)
            graph_build_buf_at(b, rc)->fixed = x->fixed;
    }
    rc = rc > 0 ? 0 : rc;
    for (int32_t i = 0; i <= g->n_ops && !rc; i++) {
        for (; k < h->n && h->before[k] == i && !rc; k++)
            rc = build_hold(b, g, i, h->buf[k]);
        rc = rc || i == g->n_ops ? rc : build_op(b, g, i);
    }
    free(at);
    free(ends);
    return rc < 0 ? -ENOMEM : 0;
}

int held_graph(const struct graph *g, const int64_t *bytes, int with_holds, struct graph **out, int32_t **op_of)
{
    struct graph_build *b = graph_build_new();
    struct graph_fault fault;
    struct holds h = {0};
    int rc = !b ? -ENOMEM : with_holds ? holds_find(g, bytes, &h) : 0;
    *out = NULL;
    *op_of = rc ? NULL : malloc(((size_t)g->n_ops + (size_t)h.n + 1) * sizeof **op_of);
    rc = rc || *op_of ? rc : -ENOMEM;
    if (!rc)
        rc = build(b, g, bytes, &h, *op_of);
    if (!rc)
        rc = graph_seal(b, out, &fault);
    graph_build_free(b);
    holds_free(&h);
    if (!rc && (rc = graph_copy_facts(g, *out))) {
        graph_free(*out);
        *out = NULL;
    }
    if (rc) {
        free(*op_of);
        *op_of = NULL;
    }
    return rc;
}

/* A walk over a plan of `held`. */
struct back {
    const struct graph *g, *held;
    const int32_t *op_of;
    struct plan to;
    uint8_t *in;   /* [n_bufs] in memory */
    uint8_t *keeps; /* [n_bufs] the plan keeps it, for reasons of its own */
};

static void note_made(struct back *w, int32_t op)
{
    const struct graph_op *o = &w->held->ops[op];
    for (int32_t k = o->first; k < o->first + graph_n_operands(o); k++)
        if (w->held->operands[k].role == GRAPH_WRITE || w->held->operands[k].role == GRAPH_RMW || w->held->operands[k].role == GRAPH_SIDE)
            w->in[w->held->operands[k].buf] = 1;
}

/* Op `at` of `held` is next: what it frees before that goes. `kept`: the trace has freed it earlier, before steps that may have used it. */
static int ends(struct back *w, int32_t at, int kept)
{
    int rc = 0;
    for (int32_t k = w->held->dies_at[at]; k < w->held->dies_at[at + 1] && !rc; k++) {
        const int32_t b = w->held->die_list[k];
        if (w->keeps[b])
            continue;
        if (kept && !(rc = plan_keep(&w->to, b)) && w->in[b])
            rc = plan_push(&w->to, PLAN_DROP, b);
        w->in[b] = 0;
    }
    return rc;
}

/* Steps [from, to) of p stand before op `i` of g, or at the end (i = n_ops), between its holds. */
static int group(struct back *w, const struct plan *p, size_t from, size_t to, int32_t first, int32_t i)
{
    int any = 0, rc = 0;
    int32_t at = first; /* the next op of `held` */
    for (size_t k = from; k < to; k++)
        any |= p->steps[k].kind != PLAN_OP;
    any &= first < w->held->n_ops && w->op_of[first] == -1 - i;
    rc = ends(w, at, any);
    for (size_t k = from; k < to && !rc; k++) {
        const struct plan_step s = p->steps[k];
        if (s.kind == PLAN_OP) { /* a hold */
            rc = ends(w, ++at, any);
            continue;
        }
        if (s.kind == PLAN_REPLAY)
            note_made(w, s.id);
        else if (s.kind == PLAN_FETCH)
            w->in[s.id] = 1;
        else if (s.kind == PLAN_DROP || s.kind == PLAN_RELEASE)
            w->in[s.id] = 0;
        rc = plan_push(&w->to, (enum plan_kind)s.kind, s.kind == PLAN_REPLAY ? w->op_of[s.id] : s.id);
    }
    if (rc || i == w->g->n_ops)
        return rc;
    note_made(w, at);
    return plan_push(&w->to, PLAN_OP, i);
}

int held_plan(const struct graph *g, const struct graph *held, const int32_t *op_of, struct plan *p)
{
    struct back w = {.g = g, .held = held, .op_of = op_of, .in = calloc((size_t)g->n_bufs + 1, 1), .keeps = calloc((size_t)g->n_bufs + 1, 1)};
    int rc = w.in && w.keeps ? plan_copy(&w.to, p) : -ENOMEM;
    size_t from = 0;
    int32_t first = 0; /* op of `held` behind the latest op of g */
    w.to.n_steps = 0;
    for (int32_t b = 0; b < g->n_bufs && !rc; b++)
        w.in[b] = g->bufs[b].born < 0;
    for (size_t k = 0; k < p->n_keep && !rc; k++)
        w.keeps[p->keep[k]] = 1;
    for (size_t k = 0; k <= p->n_steps && !rc; k++) {
        const int end = k == p->n_steps;
        if (!end && (p->steps[k].kind != PLAN_OP || op_of[p->steps[k].id] < 0))
            continue;
        rc = group(&w, p, from, k, first, end ? g->n_ops : op_of[p->steps[k].id]);
        from = k + 1;
        first = end ? first : p->steps[k].id + 1;
    }
    plan_keep_sort(&w.to);
    free(w.in);
    free(w.keeps);
    if (rc) {
        plan_free(&w.to);
        return rc;
    }
    plan_free(p);
    *p = w.to;
    return 0;
}
