#include "offline/solvers/cover/cover_cut.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/mincut/maxflow.h"

/* Vertices: source, sink, then need(v) and redo(p) in the order met. */
struct cover_net {
    struct maxflow *flow;
    int32_t *redo;     /* [n_vals] vertex redo(producer); the sink where nothing rebuilds the value */
    int32_t *need;     /* [n_vals] vertex */
    int32_t *price_arc; /* [n_vals] arc need(v) -> redo(p) */
    int32_t *op;       /* [n_redo] */
    int32_t *time_arc; /* [n_redo] arc redo(p) -> sink; -1: infinite */
    int32_t *op_vertex; /* [n_redo] */
    int32_t n_redo;
};
enum { SOURCE, SINK, FIRST };

/* Workspace of the construction. */
struct build {
    struct cover_cut *c;
    int32_t *need_of; /* [n_vals of the graph] vertex, NOT_MET, THERE (in memory whatever the schedule) or GONE */
    int32_t *redo_of; /* [n_ops] */
    int32_t *vals;    /* values met, in the order met */
    int32_t n_vals, n_vertices, n_ops;
    int32_t *ops;
};
enum { NOT_MET = -1, THERE = -2, GONE = -3 };

int cover_fixed(const struct graph *g, int32_t v)
{
    const struct graph_val *x = &g->vals[v];
    if (x->producer < 0 || g->ops[x->producer].opaque)
        return 1;
    const struct graph_op *o = &g->ops[x->producer];
    const struct graph_operand *u = graph_operands(g, x->producer) + o->n_reads + o->n_rmw;
    for (int32_t k = 0; k < o->n_side; k++)
        if (u[k].out == v)
            return 1;
    return 0;
}

static int exists(const struct graph *g, int32_t v, int32_t t)
{
    const struct graph_val *x = &g->vals[v];
    return x->producer >= 0 ? x->producer <= t : x->version == 0 && g->bufs[x->buf].born < 0;
}

static void meet(struct build *b, int32_t v)
{
    if (b->need_of[v] != NOT_MET)
        return;
    b->need_of[v] = b->n_vertices++;
    b->vals[b->n_vals++] = v;
}

/* Conditions (3) and (4), and the values of condition (1). */
static void demands(struct build *b)
{
    struct cover_cut *c = b->c;
    const struct graph *g = c->g;
    const struct graph_op *o = &g->ops[c->op];
    const struct graph_operand *u = graph_operands(g, c->op);
    c->must_bytes = o->work_bytes;
    for (int32_t k = 0; k < graph_n_operands(o); k++) {
        if (u[k].in >= 0)
            b->need_of[u[k].in] = u[k].out >= 0 ? GONE : THERE;
        if (u[k].out >= 0)
            b->need_of[u[k].out] = THERE;
    }
    for (int32_t v = 0; v < g->n_vals; v++) {
        if (!exists(g, v, c->op) || g->vals[v].last_use <= c->op || b->need_of[v] != NOT_MET)
            continue;
        if (cover_fixed(g, v)) {
            b->need_of[v] = THERE;
            c->must_bytes += graph_val_bytes(g, v);
        } else {
            meet(b, v);
        }
    }
}

/* Condition (2): from the demands back, all values that replays may read. */
static void close_over(struct build *b)
{
    const struct graph *g = b->c->g;
    for (int32_t i = 0; i < b->n_vals; i++) {
        const int32_t v = b->vals[i], p = g->vals[v].producer;
        if (cover_fixed(g, v) || b->redo_of[p] >= 0)
            continue;
        b->redo_of[p] = b->n_vertices++;
        b->ops[b->n_ops++] = p;
        const struct graph_op *o = &g->ops[p];
        const struct graph_operand *u = graph_operands(g, p);
        for (int32_t k = 0; k < o->n_reads + o->n_rmw; k++) {
            if (b->need_of[u[k].in] == NOT_MET && cover_fixed(g, u[k].in) && g->vals[u[k].in].over <= b->c->op)
                b->need_of[u[k].in] = GONE;
            else
                meet(b, u[k].in);
        }
    }
}

/* 1: op t overwrites v (or v is gone by then), and no replay makes v again. */
static int gone_for_good(const struct build *b, int32_t v) { return b->need_of[v] == GONE && cover_fixed(b->c->g, v); }

static int lay_arcs(struct build *b)
{
    struct cover_cut *c = b->c;
    struct cover_net *n = c->net;
    const struct graph *g = c->g;
    int32_t arcs = 0;
    int rc = 0;
    for (int32_t i = 0; i < b->n_vals && !rc; i++) {
        const int32_t v = b->vals[i];
        c->val[i] = v;
        n->need[i] = b->need_of[v];
        n->redo[i] = cover_fixed(g, v) ? SINK : b->redo_of[g->vals[v].producer];
        n->price_arc[i] = arcs++;
        rc = maxflow_arc(n->flow, n->need[i], n->redo[i], 0);
        if (!rc && g->vals[v].last_use > c->op) {
            rc = maxflow_arc(n->flow, SOURCE, n->need[i], MAXFLOW_INF);
            arcs++;
        }
    }
    for (int32_t i = 0; i < b->n_ops && !rc; i++) {
        const int32_t p = b->ops[i];
        const struct graph_op *o = &g->ops[p];
        const struct graph_operand *u = graph_operands(g, p);
        int never = 0;
        n->op[i] = p;
        n->op_vertex[i] = b->redo_of[p];
        for (int32_t k = 0; k < o->n_reads + o->n_rmw && !rc; k++) {
            never |= gone_for_good(b, u[k].in);
            if (b->need_of[u[k].in] < FIRST)
                continue;
            rc = maxflow_arc(n->flow, b->redo_of[p], b->need_of[u[k].in], MAXFLOW_INF);
            arcs++;
        }
        n->time_arc[i] = never ? -1 : arcs;
        arcs++;
        if (!rc)
            rc = maxflow_arc(n->flow, b->redo_of[p], SINK, never ? MAXFLOW_INF : 0);
    }
    c->n_vals = b->n_vals;
    n->n_redo = b->n_ops;
    return rc;
}

static int lay(struct build *b)
{
    struct cover_cut *c = b->c;
    struct cover_net *n = c->net;
    const size_t v = (size_t)c->g->n_vals + 1, o = (size_t)c->g->n_ops + 1;
    b->need_of = malloc(v * sizeof *b->need_of);
    b->vals = malloc(v * sizeof *b->vals);
    b->redo_of = malloc(o * sizeof *b->redo_of);
    b->ops = malloc(o * sizeof *b->ops);
    if (!b->need_of || !b->vals || !b->redo_of || !b->ops)
        return -ENOMEM;
    memset(b->need_of, 0xff, v * sizeof *b->need_of); /* NOT_MET */
    memset(b->redo_of, 0xff, o * sizeof *b->redo_of);
    b->n_vertices = FIRST;
    demands(b);
    close_over(b);
    c->kind = malloc(v);
    if (!c->kind)
        return -ENOMEM;
    for (int32_t i = 0; i < c->g->n_vals; i++)
        c->kind[i] = (int8_t)(b->need_of[i] == NOT_MET ? COVER_UNRELATED
                              : b->need_of[i] == THERE ? COVER_THERE
                              : b->need_of[i] == GONE  ? COVER_GONE
                                                       : COVER_CHOICE);
    const size_t nv = (size_t)b->n_vals + 1, no = (size_t)b->n_ops + 1;
    n->flow = maxflow_new(b->n_vertices);
    c->val = malloc(nv * sizeof *c->val);
    n->need = malloc(nv * sizeof *n->need);
    n->redo = malloc(nv * sizeof *n->redo);
    n->price_arc = malloc(nv * sizeof *n->price_arc);
    n->op = malloc(no * sizeof *n->op);
    n->op_vertex = malloc(no * sizeof *n->op_vertex);
    n->time_arc = malloc(no * sizeof *n->time_arc);
    if (!n->flow || !c->val || !n->need || !n->redo || !n->price_arc || !n->op || !n->op_vertex || !n->time_arc)
        return -ENOMEM;
    return lay_arcs(b);
}

/* The cheapest cut where a byte held costs byte_ns and replays cost their time (time_weight 1) or nothing (0). *cut is its
 * value in units of 1 / COVER_SCALE ns. */
static int price(struct cover_cut *c, double byte_ns, int time_weight, struct cover_point *p, int64_t *cut)
{
    const struct cover_net *n = c->net;
    const struct graph *g = c->g;
    int rc = 0;
    for (int32_t i = 0; i < c->n_vals && !rc; i++)
        rc = maxflow_set(n->flow, n->price_arc[i], (int64_t)floor(byte_ns * COVER_SCALE * (double)graph_val_bytes(g, c->val[i])));
    for (int32_t i = 0; i < n->n_redo && !rc; i++)
        if (n->time_arc[i] >= 0)
            rc = maxflow_set(n->flow, n->time_arc[i], time_weight * COVER_SCALE * g->ops[n->op[i]].ns);
    if (!rc)
        rc = maxflow_solve(n->flow, SOURCE, SINK, cut);
    p->state = rc ? NULL : calloc((size_t)c->n_vals + 1, 1);
    if (!p->state)
        return rc ? rc : -ENOMEM;
    p->held_bytes = p->replay_ns = 0;
    for (int32_t i = 0; i < c->n_vals; i++) {
        if (!maxflow_on_source_side(n->flow, n->need[i]))
            continue;
        const int redone = n->redo[i] != SINK && maxflow_on_source_side(n->flow, n->redo[i]);
        p->state[i] = redone ? COVER_REDONE : COVER_HELD;
        p->held_bytes += redone ? 0 : graph_val_bytes(g, c->val[i]);
    }
    for (int32_t i = 0; i < n->n_redo; i++)
        if (maxflow_on_source_side(n->flow, n->op_vertex[i]))
            p->replay_ns += g->ops[n->op[i]].ns;
    return 0;
}

static int insert(struct cover_cut *c, int32_t at, const struct cover_point *p)
{
    struct cover_point *q = realloc(c->points, ((size_t)c->n_points + 1) * sizeof *q);
    if (!q)
        return -ENOMEM;
    c->points = q;
    memmove(q + at + 1, q + at, (size_t)(c->n_points - at) * sizeof *q);
    q[at] = *p;
    c->n_points++;
    return 0;
}

/* The two ends of the curve: all demanded values held; as few bytes held as possible. */
static int ends(struct cover_cut *c)
{
    struct cover_point all = {0}, least = {0};
    int64_t cut;
    all.state = calloc((size_t)c->n_vals + 1, 1);
    int rc = all.state ? 0 : -ENOMEM;
    for (int32_t i = 0; i < c->n_vals && !rc; i++)
        if (c->g->vals[c->val[i]].last_use > c->op) {
            all.state[i] = COVER_HELD;
            all.held_bytes += graph_val_bytes(c->g, c->val[i]);
        }
    if (!rc)
        rc = price(c, 1, 0, &least, &cut);
    if (!rc)
        rc = insert(c, 0, &all);
    if (rc) {
        free(all.state);
        free(least.state);
        return rc;
    }
    if (least.held_bytes < all.held_bytes && !insert(c, 1, &least))
        return 0;
    free(least.state);
    return least.held_bytes < all.held_bytes ? -ENOMEM : 0;
}

struct cover_cut *cover_cut_new(const struct graph *g, int32_t op)
{
    struct cover_cut *c = calloc(1, sizeof *c);
    struct build b = {.c = c};
    if (!c)
        return NULL;
    c->g = g;
    c->op = op;
    c->net = calloc(1, sizeof *c->net);
    const int rc = c->net ? lay(&b) : -ENOMEM;
    free(b.need_of);
    free(b.redo_of);
    free(b.vals);
    free(b.ops);
    if (!rc && !ends(c))
        return c;
    cover_cut_free(c);
    return NULL;
}

void cover_cut_free(struct cover_cut *c)
{
    if (!c)
        return;
    for (int32_t i = 0; i < c->n_points; i++)
        free(c->points[i].state);
    free(c->points);
    free(c->val);
    free(c->kind);
    if (c->net) {
        maxflow_free(c->net->flow);
        free(c->net->need);
        free(c->net->redo);
        free(c->net->price_arc);
        free(c->net->op);
        free(c->net->op_vertex);
        free(c->net->time_arc);
    }
    free(c->net);
    free(c);
}

int cover_cut_may_redo(const struct cover_cut *c, int32_t p)
{
    const struct graph_op *o = &c->g->ops[p];
    const struct graph_operand *u = graph_operands(c->g, p);
    if (p >= c->op || o->opaque)
        return 0;
    for (int32_t k = 0; k < o->n_reads + o->n_rmw; k++)
        if (c->kind[u[k].in] == COVER_GONE && cover_fixed(c->g, u[k].in))
            return 0;
    return 1;
}

int cover_cut_solve(struct cover_cut *c, int64_t limit_bytes, struct cover_verdict *v)
{
    const int64_t room = limit_bytes - c->must_bytes;
    *v = (struct cover_verdict){.point = -1};
    if (room < c->points[c->n_points - 1].held_bytes) {
        v->impossible = 1;
        return 0;
    }
    int32_t k = 0;
    while (c->points[k].held_bytes > room)
        k++;
    while (k > 0) { /* points[k - 1] holds too much, points[k] is within the limit */
        const struct cover_point *big = &c->points[k - 1], *low = &c->points[k];
        const double byte_ns = (double)(low->replay_ns - big->replay_ns) / (double)(big->held_bytes - low->held_bytes);
        struct cover_point p = {0};
        int64_t cut;
        int rc = price(c, byte_ns, 1, &p, &cut);
        if (rc)
            return rc;
        /* 1 ns covers the rounding of doubles */
        const double bound = (double)cut / COVER_SCALE - byte_ns * (double)room - 1;
        v->bound_ns = bound > v->bound_ns ? bound : v->bound_ns;
        const double line = (double)big->replay_ns + byte_ns * (double)big->held_bytes;
        const double sum = (double)p.replay_ns + byte_ns * (double)p.held_bytes;
        /* a corner: below the line by more than the rounding of capacities */
        const int corner = sum < line - 1e-9 * line - 2 && p.held_bytes < big->held_bytes && p.held_bytes > low->held_bytes;
        rc = corner ? insert(c, k, &p) : 0;
        if (!corner || rc)
            free(p.state);
        if (rc)
            return rc;
        if (!corner)
            break;
        k += c->points[k].held_bytes > room;
    }
    v->point = k;
    return 0;
}
