#include "offline/solvers/cover/cover_milp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/milp/milp.h"

/* Columns by instant and value or op; -1: none. */
struct columns {
    const struct cover_milp *q;
    struct milp *m;
    int64_t small_bytes;
    int32_t *held;  /* S */
    int32_t *block; /* y */
    int32_t *after; /* Y */
    int err;
};

static int32_t *at_val(const struct columns *c, int32_t *table, int k, int32_t v)
{
    return &table[(size_t)k * (size_t)c->q->g->n_vals + (size_t)v];
}

static int32_t *at_op(const struct columns *c, int32_t *table, int k, int32_t p)
{
    return &table[(size_t)k * (size_t)c->q->g->n_ops + (size_t)p];
}

static int is_small(const struct columns *c, int32_t v) { return graph_val_bytes(c->q->g, v) < c->small_bytes; }

static int32_t column(struct columns *c, double cost)
{
    const int32_t col = milp_col(c->m, 0, 1, cost, 1);
    if (col < 0)
        c->err = col;
    else if (col >= COVER_COLS_MAX)
        c->err = -E2BIG;
    return col < 0 ? 0 : col;
}

static void lay_columns(struct columns *c)
{
    const struct graph *g = c->q->g;
    for (int k = 0; k < c->q->n_cuts && !c->err; k++) {
        const struct cover_cut *cut = c->q->cuts[k];
        for (int32_t i = 0; i < cut->n_vals && !c->err; i++) {
            const int32_t v = cut->val[i], p = g->vals[v].producer;
            if (is_small(c, v))
                continue;
            *at_val(c, c->held, k, v) = column(c, 0);
            if (cover_fixed(g, v) || *at_op(c, c->block, k, p) >= 0 || !cover_cut_may_redo(cut, p))
                continue;
            *at_op(c, c->block, k, p) = column(c, (double)g->ops[p].ns);
            *at_op(c, c->after, k, p) = column(c, 0);
        }
    }
}

/* Add the row "v is in memory at instant k, or its producer is replayed, if column `then` is set" (-1: in any case). redo is the
 * table of y or Y. No row for values that are in memory anyway, or that the program makes after the instant. */
static void need(struct columns *c, int k, int32_t v, int32_t *redo, int32_t then)
{
    const struct graph *g = c->q->g;
    const struct cover_cut *cut = c->q->cuts[k];
    const int32_t s = *at_val(c, c->held, k, v), p = g->vals[v].producer;
    if (is_small(c, v) || cut->kind[v] != COVER_CHOICE)
        return;
    milp_row(c->m, then >= 0 ? 0 : 1, MILP_NONE);
    if (s >= 0)
        milp_term(c->m, s, 1);
    if (p >= 0 && *at_op(c, redo, k, p) >= 0)
        milp_term(c->m, *at_op(c, redo, k, p), 1);
    if (then >= 0)
        milp_term(c->m, then, -1);
}

static void lay_memory(struct columns *c, int k)
{
    const struct cover_milp *q = c->q;
    const struct cover_cut *cut = q->cuts[k];
    const int64_t room = q->limit_bytes - cut->must_bytes - (q->spare_bytes ? q->spare_bytes[k] : 0);
    milp_row(c->m, -MILP_NONE, (double)room / 1e6);
    for (int32_t i = 0; i < cut->n_vals; i++)
        if (*at_val(c, c->held, k, cut->val[i]) >= 0)
            milp_term(c->m, *at_val(c, c->held, k, cut->val[i]), (double)graph_val_bytes(q->g, cut->val[i]) / 1e6);
}

/* 1: the program uses v after op `from`, up to and including op `to` (n_ops: up to the end). */
static int used_in(const struct graph *g, int32_t v, int32_t from, int32_t to)
{
    const struct graph_val *x = &g->vals[v];
    if (to == g->n_ops && x->last_use == g->n_ops)
        return 1;
    for (int32_t i = 0; i < x->n_uses; i++)
        if (g->uses[x->first_use + i] > from && g->uses[x->first_use + i] <= to)
            return 1;
    return 0;
}

static void lay_block(struct columns *c, int k)
{
    const struct cover_milp *q = c->q;
    const struct graph *g = q->g;
    const struct cover_cut *cut = q->cuts[k];
    const int32_t end = k + 1 < q->n_cuts ? q->cuts[k + 1]->op : g->n_ops;
    for (int32_t i = 0; i < cut->n_vals; i++) {
        const int32_t v = cut->val[i];
        if (used_in(g, v, cut->op, end))
            need(c, k, v, c->block, -1);
        else if (k + 1 < q->n_cuts && *at_val(c, c->held, k + 1, v) >= 0)
            need(c, k, v, c->block, *at_val(c, c->held, k + 1, v));
        if (g->vals[v].last_use > cut->op)
            need(c, k, v, c->after, -1);
    }
    for (int32_t p = 0; p < cut->op; p++) {
        const int32_t y = *at_op(c, c->block, k, p), all = *at_op(c, c->after, k, p);
        const struct graph_operand *u = graph_operands(g, p);
        if (y < 0)
            continue;
        for (int32_t j = 0; j < g->ops[p].n_reads + g->ops[p].n_rmw; j++) {
            need(c, k, u[j].in, c->block, y);
            need(c, k, u[j].in, c->after, all);
        }
        milp_row(c->m, 0, MILP_NONE);
        milp_term(c->m, all, -1);
        for (int j = k; j < q->n_cuts; j++)
            if (*at_op(c, c->block, j, p) >= 0)
                milp_term(c->m, *at_op(c, c->block, j, p), 1);
    }
}

static int read_off(const struct columns *c, const struct milp_result *x, struct cover_milp_result *r)
{
    const struct graph *g = c->q->g;
    const size_t n = (size_t)c->q->n_cuts * (size_t)g->n_vals;
    r->held = calloc(n + 1, 1);
    if (!r->held)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        r->held[i] = c->held[i] >= 0 && x->x[c->held[i]] > 0.5;
    for (int k = 0; k < c->q->n_cuts; k++)
        for (int32_t v = 0; v < g->n_vals; v++)
            if (c->q->cuts[k]->kind[v] == COVER_CHOICE && is_small(c, v) && g->vals[v].last_use > c->q->cuts[k]->op)
                r->held[(size_t)k * (size_t)g->n_vals + (size_t)v] = 1;
    r->value_ns = x->value;
    r->found = 1;
    return 0;
}

/* CBC works to a relative tolerance of 1e-6 or better: its bound is lowered by more than that. */
static double safely(double bound) { return bound > 0 ? bound * (1 - 1e-5) - 1 : 0; }

static int ask(struct columns *c, struct cover_milp_result *r)
{
    struct milp_opts o = {.time_limit_s = c->q->time_limit_s, .relaxed = c->q->relaxed || milp_n_cols(c->m) > COVER_COLS_WHOLE, .max_nodes = c->q->max_nodes, .ratio_gap = 1e-3};
    struct milp_result x;
    int rc = milp_solve(c->m, &o, &x);
    if (!rc) {
        r->impossible = x.status == MILP_INFEASIBLE;
        if (x.bound > -MILP_NONE)
            r->bound_ns = safely(x.bound);
        if (x.x)
            rc = read_off(c, &x, r);
    }
    milp_result_free(&x);
    return rc;
}

int cover_milp_solve(const struct cover_milp *q, struct cover_milp_result *r)
{
    const size_t nv = (size_t)q->n_cuts * (size_t)q->g->n_vals + 1, no = (size_t)q->n_cuts * (size_t)q->g->n_ops + 1;
    struct columns c = {.q = q, .m = milp_new(), .small_bytes = q->limit_bytes / COVER_SMALL};
    memset(r, 0, sizeof *r);
    c.held = malloc(nv * sizeof *c.held);
    c.block = malloc(no * sizeof *c.block);
    c.after = malloc(no * sizeof *c.after);
    if (!c.m || !c.held || !c.block || !c.after) {
        c.err = -ENOMEM;
    } else {
        memset(c.held, 0xff, nv * sizeof *c.held);
        memset(c.block, 0xff, no * sizeof *c.block);
        memset(c.after, 0xff, no * sizeof *c.after);
        lay_columns(&c);
    }
    for (int k = 0; k < q->n_cuts && !c.err; k++) {
        lay_memory(&c, k);
        lay_block(&c, k);
    }
    if (!c.err)
        c.err = ask(&c, r);
    milp_free(c.m);
    free(c.held);
    free(c.block);
    free(c.after);
    return c.err;
}

void cover_milp_result_free(struct cover_milp_result *r)
{
    free(r->held);
    r->held = NULL;
}
