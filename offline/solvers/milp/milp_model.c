#include "offline/solvers/milp/milp_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* moves[b]: values of buffer b get bits. A buffer that exists before and after the iteration stays resident unless an op
 * overwrites it whole: its old contents may leave before this op, and its new ones be rebuilt. */
static unsigned char *find_movable(const struct graph *g)
{
    unsigned char *moves = calloc((size_t)g->n_bufs + 1, 1);
    for (int32_t b = 0; moves && b < g->n_bufs; b++)
        moves[b] = g->bufs[b].born >= 0 || g->bufs[b].dies >= 0;
    for (int32_t i = 0; moves && i < g->n_operands; i++)
        if (g->operands[i].role == GRAPH_WRITE)
            moves[g->operands[i].buf] = 1;
    return moves;
}

static void fill_op(struct milp_model *m, const int *bit, int32_t i)
{
    const struct graph *g = m->g;
    const struct graph_op *o = &g->ops[i];
    const struct graph_operand *d = graph_operands(g, i);
    struct milp_op *p = &m->op[i];
    *p = (struct milp_op){ .until = o->opaque ? -1 : g->n_ops, .ns = o->ns, .side_bytes = o->side_bytes };
    for (int32_t j = 0; j < graph_n_operands(o); j++) {
        int in = d[j].in >= 0 ? bit[d[j].in] : -1, out = d[j].out >= 0 ? bit[d[j].out] : -1;
        if (in >= 0) {
            if (d[j].role == GRAPH_SIDE)
                p->side_in |= milp_bit(in);
            else
                p->in |= milp_bit(in);
        } else if (d[j].in >= 0 && d[j].role != GRAPH_SIDE) {
            /* an in-place change of a buffer that stays cannot be done twice */
            int32_t until = d[j].role == GRAPH_RMW ? -1 : g->vals[d[j].in].over;
            p->until = until < p->until ? until : p->until;
        }
        if (out >= 0) {
            milp_set versions = 0;
            for (int v = 0; v < m->n; v++)
                if (g->vals[m->val[v]].buf == d[j].buf)
                    versions |= milp_bit(v);
            if (d[j].role == GRAPH_SIDE) {
                p->side_out |= milp_bit(out);
                p->side_gone |= versions;
            } else {
                p->out |= milp_bit(out);
                p->gone |= versions;
            }
        }
    }
}

int milp_model_new(const struct graph *g, struct milp_model *m)
{
    memset(m, 0, sizeof *m);
    int *bit = malloc(((size_t)g->n_vals + 1) * sizeof *bit);
    unsigned char *moves = find_movable(g);
    if (!bit || !moves) {
        free(bit);
        free(moves);
        return -ENOMEM;
    }
    m->g = g;
    m->n_ops = g->n_ops;
    int e = 0;
    for (int32_t b = 0; b < g->n_bufs; b++) {
        if (!moves[b])
            m->always_bytes += g->bufs[b].bytes;
        if (g->bufs[b].born < 0)
            m->start_bytes += g->bufs[b].bytes;
    }
    for (int32_t v = 0; v < g->n_vals && !e; v++) {
        const struct graph_val *x = &g->vals[v];
        bit[v] = -1;
        if (!moves[x->buf] || (x->producer < 0 && g->bufs[x->buf].born >= 0))
            continue;
        if (m->n == MILP_VALUES_MAX) {
            e = -E2BIG;
            break;
        }
        bit[v] = m->n;
        m->val[m->n] = v;
        m->bytes[m->n] = graph_val_bytes(g, v);
        if (graph_val_fixed(x))
            m->fixed |= milp_bit(m->n);
        if (x->producer < 0 && g->bufs[x->buf].dies != 0)
            m->start |= milp_bit(m->n);
        m->n++;
    }
    m->op = calloc((size_t)g->n_ops + 1, sizeof *m->op);
    m->wanted = calloc(2 * ((size_t)g->n_ops + 1), sizeof *m->wanted);
    if (!e && (!m->op || !m->wanted))
        e = -ENOMEM;
    if (!e) {
        m->useful = m->wanted + g->n_ops + 1;
        for (int32_t i = 0; i < g->n_ops; i++)
            fill_op(m, bit, i);
        for (int v = 0; v < m->n; v++) {
            const struct graph_val *x = &g->vals[m->val[v]];
            int last = x->n_uses ? g->uses[x->first_use + x->n_uses - 1] : -1;
            int end = g->bufs[x->buf].survives && x->version == g->bufs[x->buf].n_vers - 1;
            for (int t = 0; t <= g->n_ops; t++)
                if (end || last >= t)
                    m->wanted[t] |= milp_bit(v);
        }
        for (int t = 0; t <= g->n_ops; t++) {
            m->useful[t] = m->wanted[t];
            for (int i = t - 1; i >= 0; i--)
                if (m->op[i].until >= t && (m->op[i].out & m->useful[t] & ~m->fixed))
                    m->useful[t] |= m->op[i].in;
        }
    }
    free(bit);
    free(moves);
    if (e)
        milp_model_free(m);
    return e;
}

void milp_model_relax(struct milp_model *m, int64_t small_bytes)
{
    for (int v = 0; v < m->n; v++)
        if (m->bytes[v] < small_bytes)
            m->bytes[v] = 0;
}

void milp_model_free(struct milp_model *m)
{
    free(m->op);
    free(m->wanted);
    m->op = NULL;
    m->wanted = m->useful = NULL;
}

static int drop_all(const struct milp_model *m, milp_set s, struct plan *out)
{
    int e = 0;
    for (; s && !e; s &= s - 1)
        e = plan_push(out, PLAN_DROP, m->g->vals[m->val[milp_first(s)]].buf);
    return e;
}

/* Bits of values whose buffers the program frees just before op t. */
static milp_set dying(const struct milp_model *m, int32_t t)
{
    milp_set s = 0;
    for (int v = 0; v < m->n; v++)
        if (m->g->bufs[m->g->vals[m->val[v]].buf].dies == t)
            s |= milp_bit(v);
    return s;
}

int milp_emit(const struct milp_model *m, const struct milp_move *moves, int64_t n, struct plan *out)
{
    milp_set now = m->start; /* values in memory at this step of the plan */
    int e = 0;
    plan_reset(out);
    for (int64_t k = 0; k < n && !e; k++) {
        const struct milp_move *q = &moves[k];
        const struct milp_op *o = &m->op[q->op];
        milp_set makes = o->out | (q->replay ? 0 : o->side_out), covers = o->gone | (q->replay ? 0 : o->side_gone);
        /* Another version in a buffer about to be written whole leaves by itself when the program's op runs; a replay
         * must not overwrite a current version, so before a replay it is dropped. */
        e = drop_all(m, now & ~q->during & ~(q->replay ? 0 : covers), out);
        now &= q->during | (q->replay ? 0 : covers);
        if (!e)
            e = plan_push(out, q->replay ? PLAN_REPLAY : PLAN_OP, q->op);
        now = (now & ~covers) | makes;
        if (!q->replay) {
            milp_set die = dying(m, q->op + 1) & now;
            for (milp_set s = die & q->after; s && !e; s &= s - 1)
                e = plan_keep(out, m->g->vals[m->val[milp_first(s)]].buf);
            now &= ~(die & ~q->after);
        }
        if (!e)
            e = drop_all(m, now & ~q->after, out);
        now &= q->after;
    }
    plan_keep_sort(out);
    return e;
}
