#include "offline/model/sched.h"
#include "offline/model/sched_tighten.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/sched_priv.h"

/* ---- gaps --------------------------------------------------------------------------------------------------------- */

static int32_t sched_gaps_of(const struct graph *g, int32_t v)
{
    const struct graph_val *x = &g->vals[v];

    if (x->producer < 0 && g->bufs[x->buf].born >= 0)
        return 0; /* version 0 of a buffer the iteration makes holds nothing */
    return x->n_uses + (x->last_use == g->n_ops) + 1;
}

static void sched_number_gaps(struct sched *s)
{
    const struct graph *g = s->g;
    int32_t v, k, at = 0;

    for (v = 0; v < g->n_vals; v++) {
        const struct graph_val *x = &g->vals[v];
        int32_t n = sched_gaps_of(g, v), from = x->producer;

        s->gap_at[v] = at;
        for (k = 0; k < n; k++) {
            struct sched_gap *p = &s->gaps[at++];

            p->val = v;
            p->from = from;
            p->tail = k == n - 1;
            p->to = p->tail ? g->n_ops + 1 : k < x->n_uses ? g->uses[x->first_use + k] : g->n_ops;
            p->forced = p->tail ? graph_val_fixed(x) : x->rebuild_until < p->to;
            from = p->to;
        }
    }
    s->gap_at[g->n_vals] = at;
}

/* Chains of the gaps that a last call may be for, each in rising order. */
static void sched_chain_last_calls(struct sched *s)
{
    const struct graph *g = s->g;
    struct sched_priv *p = s->p;

    memset(p->last_first, 0xff, ((size_t)g->n_ops + 1) * sizeof(*p->last_first));
    for (int32_t k = s->n_gaps - 1; k >= 0; k--) {
        const struct sched_gap *gap = &s->gaps[k];
        const int32_t until = g->vals[gap->val].rebuild_until;

        if (gap->tail || gap->from < 0 || until <= gap->from || until >= gap->to || until >= g->n_ops)
            continue;
        p->last_next[k] = p->last_first[until];
        p->last_first[until] = k;
    }
}

struct sched *sched_new(const struct graph *g)
{
    struct sched *s = calloc(1, sizeof(*s));
    struct sched_priv *p = calloc(1, sizeof(*p));
    size_t nb = (size_t)g->n_bufs + 1, nv = (size_t)g->n_vals + 1, no = (size_t)g->n_ops + 2;
    int64_t gaps = 0;
    int32_t v;

    if (!s || !p) {
        free(s);
        free(p);
        return NULL;
    }
    s->g = g;
    s->p = p;
    s->stuck_op = s->stuck_val = -1;
    s->max_replays = 20 * (int64_t)g->n_ops + 1000;
    for (v = 0; v < g->n_vals; v++)
        gaps += sched_gaps_of(g, v);
    if (gaps > INT32_MAX - 2)
        goto fail;
    s->n_gaps = (int32_t)gaps;
    s->gaps = calloc((size_t)gaps + 1, sizeof(*s->gaps));
    s->gap_at = calloc(nv, sizeof(*s->gap_at));
    s->sim = sim_ws_new(g);
    p->res = calloc(nb, sizeof(*p->res));
    p->host = calloc(nb, sizeof(*p->host));
    p->cur = calloc(nb, sizeof(*p->cur));
    p->pin = calloc(nb, sizeof(*p->pin));
    p->want = calloc(nv, sizeof(*p->want));
    p->pos = calloc(nv, sizeof(*p->pos));
    p->dead = calloc(nb, 1);
    p->keep = calloc(nb, 1);
    p->need = calloc(nb, 1);
    p->hneed = calloc(nb, 1);
    p->pending = calloc((size_t)gaps + 1, sizeof(*p->pending));
    p->fetch_first = calloc(no, sizeof(*p->fetch_first));
    p->end_first = calloc(no, sizeof(*p->end_first));
    p->gap_next = calloc((size_t)gaps + 1, sizeof(*p->gap_next));
    p->start_ns = calloc(no, sizeof(*p->start_ns));
    p->last_first = calloc(no, sizeof(*p->last_first));
    p->last_next = calloc((size_t)gaps + 1, sizeof(*p->last_next));
    p->lasts = calloc(nv, sizeof(*p->lasts));
    if (!s->gaps || !s->gap_at || !s->sim || !p->res || !p->host || !p->cur || !p->pin || !p->want || !p->pos || !p->dead ||
        !p->keep || !p->need || !p->hneed || !p->pending || !p->fetch_first || !p->end_first || !p->gap_next || !p->start_ns ||
        !p->last_first || !p->last_next || !p->lasts)
        goto fail;
    sched_number_gaps(s);
    sched_chain_last_calls(s);
    for (v = 0; v < g->n_ops; v++)
        p->start_ns[v + 1] = p->start_ns[v] + g->ops[v].ns;
    return s;
fail:
    sched_free(s);
    return NULL;
}

void sched_free(struct sched *s)
{
    struct sched_priv *p;

    if (!s)
        return;
    p = s->p;
    sim_ws_free(s->sim);
    free(p->res);
    free(p->host);
    free(p->cur);
    free(p->pin);
    free(p->want);
    free(p->pos);
    free(p->dead);
    free(p->keep);
    free(p->need);
    free(p->hneed);
    free(p->pending);
    free(p->fetch_first);
    free(p->end_first);
    free(p->gap_next);
    free(p->start_ns);
    free(p->last_first);
    free(p->last_next);
    free(p->lasts);
    free(p->rev);
    free(p->flags);
    free(p);
    free(s->gaps);
    free(s->gap_at);
    free(s);
}

void sched_default(const struct sched *s, uint8_t *choice)
{
    int32_t i;

    for (i = 0; i < s->n_gaps; i++)
        choice[i] = s->gaps[i].tail ? SCHED_SHUN : SCHED_KEEP;
}

int sched_baseline(const struct graph *g, struct plan *out)
{
    int32_t i;
    int rc = 0;

    plan_reset(out);
    for (i = 0; i < g->n_ops && !rc; i++)
        rc = plan_push(out, PLAN_OP, i);
    return rc;
}

/* ---- the walk --------------------------------------------------------------------------------------------------- */

static const struct sched_gap *sched_open_gap(const struct sched *s, int32_t v)
{
    return &s->gaps[s->gap_at[v] + s->p->pos[v]];
}

static enum sched_choice sched_choice_of(const struct sched *s, const struct sched_gap *gap)
{
    uint8_t c = s->p->choice[gap - s->gaps];

    if (gap->tail && c == SCHED_OFFLOAD)
        c = SCHED_DROP;
    if (gap->forced && c != SCHED_OFFLOAD)
        c = SCHED_KEEP;
    return (enum sched_choice)c;
}

/* Whether a value that is in memory without being wanted by the op at hand stays there. */
static int sched_stays(const struct sched *s, int32_t v) { return sched_choice_of(s, sched_open_gap(s, v)) != SCHED_SHUN; }

/* Whether what buffer b holds may be given up although the decision may say otherwise: a replay can bring it back. */
static int sched_may_lose(const struct sched *s, int32_t b)
{
    const struct sched_gap *gap = sched_open_gap(s, s->p->res[b]);

    return !s->p->pin[b] && (!gap->forced || gap->tail || s->p->host[b] == s->p->res[b]);
}

static int sched_stuck(struct sched *s, int32_t v)
{
    s->stuck_op = s->p->next;
    s->stuck_val = v;
    return -EDEADLK;
}

static int sched_lose(struct sched *s, int32_t b)
{
    s->p->res[b] = -1;
    return plan_push(s->p->out, PLAN_DROP, b);
}

static int sched_rebuild(struct sched *s, int32_t v);

/* Make value v resident, by copy or by replay. */
static int sched_need(struct sched *s, int32_t v)
{
    struct sched_priv *p = s->p;
    int32_t b = s->g->vals[v].buf;

    if (p->res[b] == v)
        return 0;
    if (p->host[b] == v) {
        if (p->res[b] >= 0) {
            if (!sched_may_lose(s, b))
                return sched_stuck(s, v);
            if (sched_lose(s, b))
                return -ENOMEM;
        }
        p->res[b] = v;
        return plan_push(p->out, PLAN_FETCH, b);
    }
    return sched_rebuild(s, v);
}

/* Without pins: what one input's rebuilding takes away from another comes back in the next round. */
static int sched_gather_loose(struct sched *s, const struct graph_operand *u, int32_t n)
{
    int32_t k, round, missing = 1;
    int rc = 0;

    for (round = 0; round < 3 && missing && !rc; round++) {
        for (k = 0; k < n && !rc; k++)
            rc = sched_need(s, u[k].in);
        for (k = missing = 0; k < n; k++)
            missing += s->p->res[u[k].buf] != u[k].in;
    }
    if (!rc && missing)
        rc = sched_stuck(s, u[0].in);
    for (k = 0; k < n && !rc; k++)
        s->p->pin[u[k].buf]++;
    return rc;
}

/* Gather and pin the n inputs at u: forwards, backwards, or loosely. Two inputs may need the same buffer at different
 * versions on their way; then one order can work where another does not. On failure nothing stays pinned. */
static int sched_gather(struct sched *s, const struct graph_operand *u, int32_t n)
{
    struct sched_priv *p = s->p;
    int32_t k, done, i;
    int rc = 0, turn;

    for (k = 0; k < n; k++)
        p->want[u[k].in]++;
    for (turn = 0; turn < 3; turn++) {
        if (turn == 2) {
            rc = sched_gather_loose(s, u, n);
            break;
        }
        for (done = 0; done < n; done++) {
            i = turn ? n - 1 - done : done;
            rc = sched_need(s, u[i].in);
            if (rc)
                break;
            p->pin[u[i].buf]++;
        }
        if (!rc)
            break;
        while (done-- > 0)
            p->pin[u[turn ? n - 1 - done : done].buf]--;
        if (rc != -EDEADLK || n < 2 || p->retries-- <= 0)
            break;
    }
    for (k = 0; k < n; k++)
        p->want[u[k].in]--;
    return rc;
}

/* A value that was only a step on the way leaves again, unless the decisions or somebody in line say otherwise. */
static int sched_let_go(struct sched *s, int32_t v)
{
    int32_t b = s->g->vals[v].buf;

    if (s->p->res[b] != v || s->p->pin[b] || s->p->want[v] || sched_stays(s, v))
        return 0;
    return sched_lose(s, b);
}

static int sched_rebuild(struct sched *s, int32_t v)
{
    struct sched_priv *p = s->p;
    const struct graph *g = s->g;
    const struct graph_val *x = &g->vals[v];
    int32_t op = x->producer, k, n, n_in;
    const struct graph_op *o;
    const struct graph_operand *u;
    int rc;

    if (graph_val_fixed(x) || p->pin[x->buf])
        return sched_stuck(s, v);
    if (++p->replays > s->max_replays || p->depth >= SCHED_MAX_DEPTH) {
        s->stuck_op = p->next;
        s->stuck_val = v;
        return -E2BIG;
    }
    o = &g->ops[op];
    u = graph_operands(g, op);
    n = graph_n_operands(o);
    n_in = o->n_reads + o->n_rmw;
    p->depth++;
    rc = sched_gather(s, u, n_in);
    p->depth--;
    if (rc)
        return rc;
    for (k = 0; k < n_in; k++)
        p->pin[u[k].buf]--;
    /* Nothing runs between here and the replay: the pins of the inputs have done their work. */
    for (k = o->n_reads; k < n && !rc; k++) {
        int32_t b = u[k].buf;

        if (u[k].role == GRAPH_SIDE || p->res[b] < 0 || p->res[b] == u[k].out)
            continue;
        if (u[k].role == GRAPH_RMW ? p->pin[b] : !sched_may_lose(s, b))
            return sched_stuck(s, v);
        if (u[k].role == GRAPH_WRITE)
            rc = sched_lose(s, b);
    }
    if (rc || (rc = plan_push(p->out, PLAN_REPLAY, op)))
        return rc;
    p->t += (double)o->ns;
    for (k = o->n_reads; k < n; k++) {
        int32_t b = u[k].buf;

        if (u[k].role == GRAPH_SIDE)
            continue;
        p->res[b] = u[k].out;
        if (p->host[b] >= 0 && (p->dead[b] || p->host[b] != p->cur[b]))
            p->host[b] = -1;
    }
    for (k = 0; k < o->n_reads && !rc; k++)
        rc = sched_let_go(s, u[k].in);
    for (k = o->n_reads; k < n && !rc; k++)
        if (u[k].role != GRAPH_SIDE && u[k].out != v)
            rc = sched_let_go(s, u[k].out);
    return rc;
}

/* The program frees buffers just before op i. A value that a replay may still want stays. */
static void sched_frees(struct sched *s, int32_t i)
{
    struct sched_priv *p = s->p;
    const struct graph *g = s->g;
    int32_t k;

    for (k = g->dies_at[i]; k < g->dies_at[i + 1]; k++) {
        int32_t b = g->die_list[k];

        p->dead[b] = 1;
        if (p->res[b] >= 0 && (p->want[p->res[b]] || sched_stays(s, p->res[b]))) {
            p->keep[b] = 1;
        } else {
            p->res[b] = -1;
            p->host[b] = -1;
        }
    }
}

/* A gap of v opens: it was just used or made. */
static int sched_open(struct sched *s, int32_t v)
{
    struct sched_priv *p = s->p;
    int32_t b = s->g->vals[v].buf;
    const struct sched_gap *gap;

    if (p->res[b] != v)
        return 0;
    gap = sched_open_gap(s, v);
    switch (sched_choice_of(s, gap)) {
    case SCHED_KEEP:
        return 0;
    case SCHED_OFFLOAD:
        if (gap->to <= gap->from + 1)
            return 0;
        if (p->host[b] != v) {
            double copy = (double)s->g->bufs[b].bytes / s->g->host_bytes_per_s * 1e9;

            p->out_ns = (p->t > p->out_ns ? p->t : p->out_ns) + copy;
            p->host[b] = v;
            p->pending[p->pending_tail].done_ns = p->out_ns;
            p->pending[p->pending_tail++].gap = (int32_t)(gap - s->gaps);
            return plan_push(p->out, PLAN_OFFLOAD, b);
        }
        /* A copy of an earlier gap still holds: nothing to wait for. */
        p->res[b] = -1;
        return plan_push(p->out, PLAN_RELEASE, b);
    default:
        return p->want[v] ? 0 : sched_lose(s, b);
    }
}

/* Copies out that are done by now free their memory; copies in start early enough to be there in time. */
static int sched_copies(struct sched *s, int32_t i)
{
    struct sched_priv *p = s->p;
    int32_t k;
    int rc = 0;

    while (p->pending_head < p->pending_tail && p->pending[p->pending_head].done_ns <= p->t && !rc) {
        const struct sched_gap *gap = &s->gaps[p->pending[p->pending_head++].gap];
        int32_t b = s->g->vals[gap->val].buf;

        if (p->res[b] == gap->val && p->host[b] == gap->val && sched_open_gap(s, gap->val) == gap && gap->to > i) {
            p->res[b] = -1;
            rc = plan_push(p->out, PLAN_RELEASE, b);
        }
    }
    for (k = p->fetch_first[i]; k >= 0 && !rc; k = p->gap_next[k]) {
        const struct sched_gap *gap = &s->gaps[k];
        int32_t b = s->g->vals[gap->val].buf;

        if (p->res[b] < 0 && p->host[b] == gap->val && sched_open_gap(s, gap->val) == gap) {
            p->res[b] = gap->val;
            rc = plan_push(p->out, PLAN_FETCH, b);
        }
    }
    return rc;
}

/* When each fetch starts: the latest time at which the inbound engine, serving ends in order, is still done when the
 * value is used, by the clock of the program without replays. */
static void sched_place_fetches(struct sched *s)
{
    struct sched_priv *p = s->p;
    const struct graph *g = s->g;
    double free_at = (double)p->start_ns[g->n_ops];
    int32_t i, k, op = g->n_ops;

    p->any_offload = 0;
    for (k = 0; k < s->n_gaps && !p->any_offload; k++)
        p->any_offload = p->choice[k] == SCHED_OFFLOAD && !s->gaps[k].tail;
    memset(p->fetch_first, 0xff, ((size_t)g->n_ops + 1) * sizeof(*p->fetch_first));
    if (!p->any_offload)
        return;
    memset(p->end_first, 0xff, ((size_t)g->n_ops + 1) * sizeof(*p->end_first));
    for (k = 0; k < s->n_gaps; k++)
        if (p->choice[k] == SCHED_OFFLOAD && !s->gaps[k].tail && s->gaps[k].to < g->n_ops) {
            p->gap_next[k] = p->end_first[s->gaps[k].to];
            p->end_first[s->gaps[k].to] = k;
        }
    for (i = g->n_ops - 1; i >= 0; i--) {
        int32_t next;

        for (k = p->end_first[i]; k >= 0; k = next) {
            const struct sched_gap *gap = &s->gaps[k];
            int32_t at;

            next = p->gap_next[k];
            if ((double)p->start_ns[i] < free_at)
                free_at = (double)p->start_ns[i];
            free_at -= (double)graph_val_bytes(g, gap->val) / g->host_bytes_per_s * 1e9;
            while (op > 0 && (double)p->start_ns[op] > free_at)
                op--;
            at = op > gap->from + 2 ? op : gap->from + 2;
            at = at < i ? at : i;
            p->gap_next[k] = p->fetch_first[at];
            p->fetch_first[at] = k;
        }
    }
}

/* Orders for the moment before op i. */
static int sched_obey(struct sched *s, int32_t i)
{
    struct sched_priv *p = s->p;
    int rc = 0;

    p->retries = 64;
    for (; p->act < p->act_end && p->act->op <= i && !rc; p->act++) {
        int32_t v = p->act->val, b = s->g->vals[v].buf;

        switch (p->act->order) {
        case SCHED_HOLD:
            p->want[v]++;
            break;
        case SCHED_UNHOLD:
            if (p->want[v] > 0 && --p->want[v] == 0 && p->res[b] == v && sched_choice_of(s, sched_open_gap(s, v)) != SCHED_KEEP)
                rc = sched_lose(s, b);
            break;
        default:
            if (p->res[b] != v && s->g->vals[v].rebuild_until >= i && s->g->vals[v].producer < i)
                rc = sched_need(s, v);
        }
    }
    return rc;
}

/* Does v, which is in memory, stay there until op t, as far as the decisions say? */
static int sched_stays_until(const struct sched *s, int32_t v, int32_t t)
{
    const struct sched_gap *gap = sched_open_gap(s, v);

    if (s->g->vals[v].over < t || sched_choice_of(s, gap) == SCHED_SHUN)
        return 0;
    while (!gap->tail && gap->to < t)
        if (sched_choice_of(s, ++gap) != SCHED_KEEP)
            return 0;
    return 1;
}

/* Can v be had right before op t without what op i is about to change? From what is in memory now and stays. */
static int sched_lasts(struct sched *s, int32_t v, int32_t i, int32_t t, int depth)
{
    struct sched_priv *p = s->p;
    const struct graph_val *x = &s->g->vals[v];

    if (p->res[x->buf] == v && sched_stays_until(s, v, t))
        return 1;
    if (graph_val_fixed(x) || x->producer >= i || depth >= SCHED_MAX_DEPTH)
        return 0;
    if (p->lasts[v] == p->question || p->lasts[v] == -p->question)
        return p->lasts[v] > 0;
    const struct graph_op *o = &s->g->ops[x->producer];
    const struct graph_operand *u = graph_operands(s->g, x->producer);
    int lasts = 1;
    for (int32_t k = 0; k < o->n_reads + o->n_rmw && lasts; k++)
        lasts = sched_lasts(s, u[k].in, i, t, depth + 1);
    p->lasts[v] = lasts ? p->question : -p->question;
    return lasts;
}

/* Last call: op i changes what replays start from (a weight, say). A value that is wanted later, is not in memory and could
 * not be rebuilt any more comes back now and stays, such as a gradient that was given up while memory was shortest. */
static int sched_last_call(struct sched *s, int32_t i)
{
    struct sched_priv *p = s->p;
    int rc = 0;

    for (int32_t k = p->last_first[i]; k >= 0 && !rc; k = p->last_next[k]) {
        const struct sched_gap *gap = &s->gaps[k];

        if (p->res[s->g->vals[gap->val].buf] == gap->val || gap->forced || sched_open_gap(s, gap->val) != gap ||
            p->host[s->g->vals[gap->val].buf] == gap->val)
            continue;
        p->question++;
        if (sched_lasts(s, gap->val, i, gap->to, 0))
            continue;
        rc = sched_need(s, gap->val);
        rc = rc == -EDEADLK ? 0 : rc; /* where it is used says that it is missing */
    }
    return rc;
}

static int sched_run_op(struct sched *s, int32_t i)
{
    struct sched_priv *p = s->p;
    const struct graph *g = s->g;
    const struct graph_op *o = &g->ops[i];
    const struct graph_operand *u = graph_operands(g, i);
    int32_t n = graph_n_operands(o), n_in = n - o->n_writes, k;
    int rc = 0;

    if (p->any_offload && (rc = sched_copies(s, i)))
        return rc;
    if (p->act < p->act_end && p->act->op <= i && (rc = sched_obey(s, i)))
        return rc;
    p->retries = 64;
    if (p->last_first[i] >= 0 && (rc = sched_last_call(s, i)))
        return rc;
    if ((rc = sched_gather(s, u, n_in)) || (rc = plan_push(p->out, PLAN_OP, i)))
        return rc;
    for (k = 0; k < n_in; k++) {
        p->pin[u[k].buf]--;
        p->pos[u[k].in]++;
    }
    for (k = o->n_reads; k < n; k++) {
        p->res[u[k].buf] = p->cur[u[k].buf] = u[k].out;
        p->host[u[k].buf] = -1;
    }
    p->t += (double)o->ns;
    p->next = i + 1;
    sched_frees(s, i + 1);
    for (k = 0; k < o->n_reads && !rc; k++)
        rc = sched_open(s, u[k].in);
    for (k = o->n_reads; k < n && !rc; k++)
        rc = sched_open(s, u[k].out);
    return rc;
}

static int sched_start(struct sched *s)
{
    struct sched_priv *p = s->p;
    const struct graph *g = s->g;
    int32_t b;
    int rc = 0;

    memset(p->host, 0xff, (size_t)g->n_bufs * sizeof(*p->host));
    memset(p->pin, 0, (size_t)g->n_bufs * sizeof(*p->pin));
    memset(p->want, 0, (size_t)g->n_vals * sizeof(*p->want));
    memset(p->pos, 0, (size_t)g->n_vals * sizeof(*p->pos));
    memset(p->lasts, 0, (size_t)g->n_vals * sizeof(*p->lasts));
    p->question = 0;
    memset(p->dead, 0, (size_t)g->n_bufs);
    memset(p->keep, 0, (size_t)g->n_bufs);
    p->pending_head = p->pending_tail = 0;
    p->t = p->out_ns = 0;
    p->replays = 0;
    p->depth = 0;
    p->next = 0;
    for (b = 0; b < g->n_bufs; b++)
        p->res[b] = p->cur[b] = g->bufs[b].born < 0 ? g->bufs[b].first_val : -1;
    sched_place_fetches(s);
    if ((rc = sched_obey(s, 0)))
        return rc;
    sched_frees(s, 0);
    for (b = 0; b < g->n_bufs && !rc; b++)
        if (p->res[b] >= 0)
            rc = sched_open(s, p->res[b]);
    return rc;
}

/* What must survive and was dropped comes back; what a copy on the host preserves may stay there. */
static int sched_finish(struct sched *s)
{
    struct sched_priv *p = s->p;
    const struct graph *g = s->g;
    int32_t b, round, missing = 1, stuck = 0;
    int rc = 0;

    p->retries = 64;
    for (b = 0; b < g->n_bufs; b++)
        if (g->bufs[b].survives)
            p->want[g->bufs[b].first_val + g->bufs[b].n_vers - 1]++;
    /* Rebuilding one may take another away; the next round brings it back. */
    for (round = 0; round < 4 && missing && !rc; round++)
        for (missing = b = 0; b < g->n_bufs && !rc; b++) {
            int32_t v = g->bufs[b].first_val + g->bufs[b].n_vers - 1;

            if (g->bufs[b].survives && p->host[b] != v && p->res[b] != v) {
                missing++;
                rc = sched_need(s, v);
                stuck = v;
            }
        }
    if (!rc && missing)
        rc = sched_stuck(s, stuck);
    for (b = 0; b < g->n_bufs && !rc; b++)
        if (p->keep[b])
            rc = plan_keep(p->out, b);
    return rc;
}

int sched_realize_acts(struct sched *s, const uint8_t *choice, const struct sched_act *acts, size_t n_acts, struct plan *out,
                       struct sim_result *r)
{
    int32_t i;
    int rc;

    plan_reset(out);
    s->p->choice = choice;
    s->p->out = out;
    s->p->act = acts;
    s->p->act_end = n_acts ? acts + n_acts : acts;
    s->stuck_op = s->stuck_val = -1;
    rc = sched_start(s);
    for (i = 0; i < s->g->n_ops && !rc; i++)
        rc = sched_run_op(s, i);
    if (!rc)
        rc = sched_obey(s, s->g->n_ops);
    if (!rc)
        rc = sched_finish(s);
    if (!rc)
        rc = sched_tighten(s, out);
    if (!rc && r)
        sim_run_ws(s->sim, out, 0, r);
    return rc;
}

int sched_realize(struct sched *s, const uint8_t *choice, struct plan *out, struct sim_result *r)
{
    return sched_realize_acts(s, choice, NULL, 0, out, r);
}
