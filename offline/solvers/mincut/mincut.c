#include "offline/solvers/mincut/mincut.h"

#include "offline/solvers/mincut/maxflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mincut_net {
    struct maxflow *f;
    int32_t *hold_arc, *redo_arc; /* per candidate: A -> R, R -> sink */
    int32_t n_replays;
    int32_t *replay_op, *replay_arc; /* per P: its op, P -> sink */
};

enum { SOURCE, SINK, FIRST };
static int vertex_a(int32_t k) { return FIRST + 2 * k; }
static int vertex_r(int32_t k) { return FIRST + 2 * k + 1; }

/* The gap of v that is open just before op t: from < t <= to. -1: t is not after v was made. */
static int32_t gap_open_at(const struct sched *s, int32_t v, int32_t t)
{
    for (int32_t a = s->gap_at[v]; a < s->gap_at[v + 1]; a++)
        if (s->gaps[a].from < t && t <= s->gaps[a].to)
            return a;
    return -1;
}

/* The longest gap of v that is no tail; -1: none. */
static int32_t main_gap(const struct sched *s, int32_t v)
{
    int32_t best = -1;
    for (int32_t a = s->gap_at[v]; a + 1 < s->gap_at[v + 1]; a++)
        if (best < 0 || s->gaps[a].to - s->gaps[a].from > s->gaps[best].to - s->gaps[best].from)
            best = a;
    return best;
}

/* late[v]: last op before which replays may read v after its last use by the program: the latest op at which a value made
 * from v is wanted (the end of that value's longest gap or, if it has no gap worth the name, its own `late`); -1: none. */
static int32_t *find_late(const struct graph *g, const struct sched *s)
{
    int32_t *late = malloc(((size_t)g->n_vals + 1) * sizeof *late);
    if (!late)
        return NULL;
    memset(late, 0xff, ((size_t)g->n_vals + 1) * sizeof *late);
    for (int32_t i = g->n_ops - 1; i >= 0; i--) {
        const struct graph_op *o = &g->ops[i];
        const struct graph_operand *d = graph_operands(g, i);
        int32_t t = -1;
        for (int32_t j = o->n_reads; j < graph_n_operands(o); j++) {
            if (d[j].role == GRAPH_SIDE)
                continue;
            int32_t a = main_gap(s, d[j].out);
            int32_t wanted = a >= 0 && s->gaps[a].to - s->gaps[a].from > 1 ? s->gaps[a].to : late[d[j].out];
            t = wanted > t ? wanted : t;
        }
        for (int32_t j = 0; j < o->n_reads + o->n_rmw; j++)
            if (t > late[d[j].in])
                late[d[j].in] = t;
    }
    return late;
}

/* 1: the fixed inputs of op, about which nothing is decided, are not overwritten before op t, so a replay there finds them. */
static int constants_last(const struct graph *g, int32_t op, int32_t t)
{
    const struct graph_operand *d = graph_operands(g, op);
    for (int32_t j = 0; j < g->ops[op].n_reads + g->ops[op].n_rmw; j++) {
        const struct graph_val *u = &g->vals[d[j].in];
        if (graph_val_fixed(u) && u->over < t)
            return 0;
    }
    return 1;
}

void mincut_unforce(struct sched *s)
{
    for (int32_t a = 0; a < s->n_gaps; a++) {
        struct sched_gap *q = &s->gaps[a];
        const struct graph_val *x = &s->g->vals[q->val];
        if (q->forced && !q->tail && !graph_val_fixed(x) && constants_last(s->g, x->producer, q->to))
            q->forced = 0;
    }
}

static int there_for_good(const struct graph *g, int32_t v)
{
    const struct graph_val *x = &g->vals[v];
    return x->producer < 0 && x->over >= g->n_ops && g->bufs[x->buf].dies < 0;
}

static void add_cand(struct mincut *m, int32_t a, const int32_t *late)
{
    const struct sched_gap *q = &m->s->gaps[a];
    const struct graph_val *x = &m->g->vals[q->val];
    struct mincut_cand *c = &m->cand[m->n];
    if (q->to - q->from <= 1 || (!q->tail && q->forced) || (x->producer < 0 && !q->tail))
        return; /* no op runs within the gap, or the value stays anyway */
    if (there_for_good(m->g, q->val))
        return;
    *c = (struct mincut_cand){ .gap = a, .val = q->val, .op = x->producer, .from = q->from, .until = q->to,
                               .bytes = graph_val_bytes(m->g, q->val), .demanded = !q->tail, .holdable = 1 };
    if (q->tail) {
        c->until = late[q->val] > q->from ? late[q->val] : q->from;
        c->holdable = x->over > c->until;
    }
    c->redoable = !graph_val_fixed(x) && !q->forced && constants_last(m->g, x->producer, c->until > q->from ? c->until : q->from + 1);
    if (!c->holdable && !c->redoable)
        return;
    m->of_gap[a] = m->n++;
}

/* Vertex P of candidate k; -1: none. Outputs of one op share a replay if one output's gap ends within the other's: groups are
 * keyed by the op's first candidate gap that is open when k's gap ends. */
static int32_t replay_of(struct mincut *m, int32_t k, int32_t *vertex)
{
    const struct mincut_cand *c = &m->cand[k];
    const struct graph_operand *d = graph_operands(m->g, c->op);
    int32_t t = c->until > c->from ? c->until : c->from + 1;
    for (int32_t j = m->g->ops[c->op].n_reads; j < graph_n_operands(&m->g->ops[c->op]); j++) {
        if (d[j].role == GRAPH_SIDE || d[j].out < 0)
            continue;
        int32_t a = d[j].out == c->val ? c->gap : gap_open_at(m->s, d[j].out, t);
        if (a < 0 || m->of_gap[a] < 0)
            continue;
        int32_t first = m->of_gap[a];
        if (vertex[first] < 0) {
            vertex[first] = FIRST + 2 * m->n + m->net->n_replays;
            m->net->replay_op[m->net->n_replays++] = c->op;
        }
        return vertex[first];
    }
    return -1;
}

static int lay_network(struct mincut *m)
{
    const struct graph *g = m->g;
    struct mincut_net *t = m->net;
    int32_t arcs = 0;
    int e = 0;
    int32_t *group = malloc(((size_t)m->n + 1) * sizeof *group), *vertex_p = malloc(((size_t)m->n + 1) * sizeof *vertex_p);
    if (!group || !vertex_p) {
        free(group);
        free(vertex_p);
        return -ENOMEM;
    }
    memset(group, 0xff, ((size_t)m->n + 1) * sizeof *group);
    for (int32_t k = 0; k < m->n; k++)
        vertex_p[k] = m->cand[k].redoable ? replay_of(m, k, group) : -1;
    t->f = maxflow_new(FIRST + 2 * m->n + t->n_replays);
    if (!t->f)
        e = -ENOMEM;
#define ARC(u, v, cap) (e = e ? e : maxflow_arc(t->f, u, v, cap), arcs++)
    for (int32_t k = 0; !e && k < t->n_replays; k++)
        t->replay_arc[k] = ARC(FIRST + 2 * m->n + k, SINK, MAXFLOW_INF);
    for (int32_t k = 0; !e && k < m->n; k++) {
        const struct mincut_cand *c = &m->cand[k];
        int32_t at = c->until > c->from ? c->until : c->from + 1, b = g->vals[c->val].buf;
        if (c->demanded)
            ARC(SOURCE, vertex_a(k), MAXFLOW_INF);
        t->hold_arc[k] = ARC(vertex_a(k), vertex_r(k), MAXFLOW_INF);
        ARC(vertex_r(k), vertex_a(k), MAXFLOW_INF);
        t->redo_arc[k] = ARC(vertex_r(k), SINK, MAXFLOW_INF);
        if (vertex_p[k] < 0)
            continue;
        ARC(vertex_r(k), vertex_p[k], MAXFLOW_INF);
        const struct graph_operand *d = graph_operands(g, c->op);
        for (int32_t j = 0; !e && j < g->ops[c->op].n_reads + g->ops[c->op].n_rmw; j++) {
            int32_t a = gap_open_at(m->s, d[j].in, at);
            if (a >= 0 && m->of_gap[a] >= 0)
                ARC(vertex_p[k], vertex_a(m->of_gap[a]), MAXFLOW_INF);
            else if (a < 0 || (m->s->gaps[a].tail && !there_for_good(g, d[j].in)))
                ARC(vertex_p[k], SINK, MAXFLOW_INF); /* input neither held nor rebuilt: gone by then */
        }
        /* a newer version in the buffer has to leave while this version is rebuilt, and be rebuilt too */
        for (int32_t v = c->val + 1; !e && v < g->bufs[b].first_val + g->bufs[b].n_vers; v++) {
            int32_t a = gap_open_at(m->s, v, at);
            if (a < 0 || m->s->gaps[a].tail)
                continue;
            if (m->of_gap[a] >= 0)
                ARC(vertex_r(k), vertex_r(m->of_gap[a]), MAXFLOW_INF);
            else if (m->s->gaps[a].forced)
                ARC(vertex_r(k), SINK, MAXFLOW_INF);
        }
    }
#undef ARC
    free(group);
    free(vertex_p);
    return e;
}

struct mincut *mincut_new(const struct graph *g, const struct sched *s)
{
    struct mincut *m = calloc(1, sizeof *m);
    int32_t *late = find_late(g, s);
    if (!m || !late)
        goto fail;
    m->g = g;
    m->s = s;
    m->cand = calloc((size_t)s->n_gaps + 1, sizeof *m->cand);
    m->of_gap = malloc(((size_t)s->n_gaps + 1) * sizeof *m->of_gap);
    m->net = calloc(1, sizeof *m->net);
    if (!m->cand || !m->of_gap || !m->net)
        goto fail;
    for (int32_t a = 0; a < s->n_gaps; a++) {
        m->of_gap[a] = -1;
        add_cand(m, a, late);
    }
    size_t n = (size_t)m->n + 1;
    m->net->hold_arc = malloc(n * sizeof(int32_t));
    m->net->redo_arc = malloc(n * sizeof(int32_t));
    m->net->replay_op = malloc(n * sizeof(int32_t));
    m->net->replay_arc = malloc(n * sizeof(int32_t));
    if (!m->net->hold_arc || !m->net->redo_arc || !m->net->replay_op || !m->net->replay_arc || lay_network(m))
        goto fail;
    free(late);
    return m;
fail:
    free(late);
    mincut_free(m);
    return NULL;
}

void mincut_free(struct mincut *m)
{
    if (!m)
        return;
    if (m->net) {
        maxflow_free(m->net->f);
        free(m->net->hold_arc);
        free(m->net->redo_arc);
        free(m->net->replay_op);
        free(m->net->replay_arc);
        free(m->net);
    }
    free(m->cand);
    free(m->of_gap);
    free(m);
}

int32_t mincut_turns(const struct graph *g, int32_t *turns)
{
    int32_t n = 0;
    for (int32_t i = 1; i < g->n_ops; i++)
        if (g->ops[i].phase != GRAPH_FWD && g->ops[i - 1].phase == GRAPH_FWD)
            turns[n++] = i;
    if (!n && g->baseline_peak_op > 0)
        turns[n++] = g->baseline_peak_op;
    return n;
}

void mincut_pivot(struct mincut *m, const int32_t *ops, int32_t n)
{
    for (int32_t k = 0; k < m->n; k++) {
        struct mincut_cand *c = &m->cand[k];
        int32_t i = 0;
        while (i < n && ops[i] <= c->from)
            i++;
        c->active = i < n && ops[i] <= m->s->gaps[c->gap].to;
    }
}

int mincut_solve(struct mincut *m, const int64_t *hold, const int64_t *redo_val, const int64_t *redo_op, uint8_t *state,
                 int64_t *value)
{
    struct mincut_net *t = m->net;
    for (int32_t k = 0; k < m->n; k++) {
        const struct mincut_cand *c = &m->cand[k];
        maxflow_set(t->f, t->hold_arc[k], !c->active ? 0 : c->holdable ? hold[k] : MAXFLOW_INF);
        maxflow_set(t->f, t->redo_arc[k], c->active && c->redoable ? redo_val[k] : MAXFLOW_INF);
    }
    for (int32_t i = 0; i < t->n_replays; i++)
        maxflow_set(t->f, t->replay_arc[i], redo_op[t->replay_op[i]]);
    int e = maxflow_solve(t->f, SOURCE, SINK, value);
    for (int32_t k = 0; !e && k < m->n; k++)
        state[k] = !maxflow_on_source_side(t->f, vertex_a(k))   ? MINCUT_ABSENT
                   : maxflow_on_source_side(t->f, vertex_r(k)) ? MINCUT_REDONE
                                                                : MINCUT_HELD;
    return e;
}

void mincut_choose(const struct mincut *m, const uint8_t *state, uint8_t *choice)
{
    for (int32_t k = 0; k < m->n; k++) {
        const struct mincut_cand *c = &m->cand[k];
        if (!c->active)
            continue;
        choice[c->gap] = state[k] == MINCUT_HELD                      ? SCHED_KEEP
                         : state[k] == MINCUT_REDONE || c->demanded ? SCHED_DROP
                                                                      : SCHED_SHUN;
    }
}
