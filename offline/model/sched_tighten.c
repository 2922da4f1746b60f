/* Polishing a plan: one walk forwards to learn what each replay really made, one walk backwards over liveness. */
#include "offline/model/sched_tighten.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/sched.h"
#include "offline/model/sched_priv.h"

static int tighten_flag(struct sched_priv *p, int flag)
{
    if (p->n_flags == p->cap_flags) {
        size_t cap = p->cap_flags ? p->cap_flags * 2 : 1024;
        uint8_t *more = realloc(p->flags, cap);

        if (!more)
            return -ENOMEM;
        p->flags = more;
        p->cap_flags = cap;
    }
    p->flags[p->n_flags++] = (uint8_t)flag;
    return 0;
}

static int tighten_push(struct sched_priv *p, enum plan_kind kind, int32_t id)
{
    if (p->n_rev == p->cap_rev) {
        size_t cap = p->cap_rev ? p->cap_rev * 2 : 1024;
        struct plan_step *more = realloc(p->rev, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        p->rev = more;
        p->cap_rev = cap;
    }
    p->rev[p->n_rev].kind = kind;
    p->rev[p->n_rev++].id = id;
    return 0;
}

static void tighten_frees(const struct sched *s, int32_t i)
{
    struct sched_priv *p = s->p;
    int32_t k;

    for (k = s->g->dies_at[i]; k < s->g->dies_at[i + 1]; k++) {
        int32_t b = s->g->die_list[k];

        p->dead[b] = 1;
        if (!p->keep[b])
            p->res[b] = p->host[b] = -1;
    }
}

/* Follows residency. Leaves one flag per write operand of a replay (the buffer already held that very value) and one
 * per drop (the host holds the same value). -EINVAL if a step names what is not there. */
static int tighten_forward(struct sched *s, const struct plan *plan)
{
    struct sched_priv *p = s->p;
    const struct graph *g = s->g;
    int32_t next = 0, b, k;
    size_t i;
    int rc = 0;

    p->n_flags = 0;
    memset(p->host, 0xff, (size_t)g->n_bufs * sizeof(*p->host));
    memset(p->dead, 0, (size_t)g->n_bufs);
    memset(p->keep, 0, (size_t)g->n_bufs);
    for (i = 0; i < plan->n_keep; i++)
        if (plan->keep[i] >= 0 && plan->keep[i] < g->n_bufs)
            p->keep[plan->keep[i]] = 1;
    for (b = 0; b < g->n_bufs; b++)
        p->res[b] = p->cur[b] = g->bufs[b].born < 0 ? g->bufs[b].first_val : -1;
    tighten_frees(s, 0);
    for (i = 0; i < plan->n_steps && !rc; i++) {
        int32_t kind = plan->steps[i].kind, id = plan->steps[i].id;

        if (kind == PLAN_OP || kind == PLAN_REPLAY) {
            const struct graph_operand *u;
            int replay = kind == PLAN_REPLAY;

            if (id < 0 || id >= g->n_ops || (replay ? id >= next : id != next))
                return -EINVAL;
            u = graph_operands(g, id);
            for (k = 0; k < graph_n_operands(&g->ops[id]) && !rc; k++) {
                b = u[k].buf;
                if (replay && u[k].role == GRAPH_SIDE)
                    continue;
                if (u[k].in >= 0 && p->res[b] != u[k].in)
                    return -EINVAL;
                if (u[k].out < 0)
                    continue;
                if (replay && u[k].role == GRAPH_WRITE)
                    rc = tighten_flag(p, p->res[b] == u[k].out);
                p->res[b] = u[k].out;
                if (!replay)
                    p->cur[b] = u[k].out;
                if (p->dead[b] || p->host[b] != p->cur[b])
                    p->host[b] = -1;
            }
            if (!replay)
                tighten_frees(s, ++next);
            continue;
        }
        if (id < 0 || id >= g->n_bufs || (kind == PLAN_FETCH ? p->host[id] < 0 : p->res[id] < 0))
            return -EINVAL;
        if (kind == PLAN_OFFLOAD) {
            p->host[id] = p->res[id];
        } else if (kind == PLAN_FETCH) {
            p->res[id] = p->host[id];
        } else {
            if (kind == PLAN_DROP)
                rc = tighten_flag(p, p->host[id] == p->res[id]);
            p->res[id] = -1;
        }
    }
    return rc || next == g->n_ops ? rc : -EINVAL;
}

/* Going back over the frees before op i: only what is wanted after them must stay past them. */
static void tighten_frees_back(struct sched *s, int32_t i)
{
    struct sched_priv *p = s->p;
    int32_t k;

    for (k = s->g->dies_at[i]; k < s->g->dies_at[i + 1]; k++) {
        int32_t b = s->g->die_list[k];

        if (p->keep[b] && (p->need[b] || p->hneed[b]))
            continue;
        p->keep[b] = p->need[b] = p->hneed[b] = 0;
    }
}

/* An op or a replay, going back. Drops that belong after it are pushed before it. */
static int tighten_exec(struct sched *s, int replay, int32_t op)
{
    struct sched_priv *p = s->p;
    const struct graph *g = s->g;
    const struct graph_op *o = &g->ops[op];
    const struct graph_operand *u = graph_operands(g, op);
    int32_t n = graph_n_operands(o), k;
    int useful = !replay, rc = 0;

    if (replay) {
        p->n_flags -= (size_t)o->n_writes;
        for (k = o->n_reads; k < n; k++)
            if (u[k].role == GRAPH_RMW)
                useful |= p->need[u[k].buf];
            else if (u[k].role == GRAPH_WRITE)
                useful |= p->need[u[k].buf] && !p->flags[p->n_flags + (size_t)(k - (n - o->n_writes))];
        if (!useful)
            return 0;
    } else {
        tighten_frees_back(s, op + 1);
    }
    for (k = n - 1; k >= 0 && !rc; k--)
        if (!p->need[u[k].buf] && !(replay && u[k].role == GRAPH_SIDE) && (replay || g->bufs[u[k].buf].dies != op + 1))
            rc = tighten_push(p, PLAN_DROP, u[k].buf);
    if (!rc)
        rc = tighten_push(p, replay ? PLAN_REPLAY : PLAN_OP, op);
    for (k = 0; k < n; k++)
        if (!(replay && u[k].role == GRAPH_SIDE))
            p->need[u[k].buf] = u[k].role != GRAPH_WRITE;
    return rc;
}

static int tighten_backward(struct sched *s, const struct plan *plan)
{
    struct sched_priv *p = s->p;
    const struct graph *g = s->g;
    int32_t b;
    size_t i;
    int rc = 0;

    p->n_rev = 0;
    for (b = 0; b < g->n_bufs; b++) {
        int there = p->res[b] == g->bufs[b].first_val + g->bufs[b].n_vers - 1;

        p->need[b] = g->bufs[b].survives && there;
        p->hneed[b] = g->bufs[b].survives && !there;
    }
    for (i = plan->n_steps; i-- > 0 && !rc;) {
        int32_t kind = plan->steps[i].kind, id = plan->steps[i].id;

        switch (kind) {
        case PLAN_OP:
        case PLAN_REPLAY:
            rc = tighten_exec(s, kind == PLAN_REPLAY, id);
            break;
        case PLAN_DROP:
            /* Given up while the host holds it and will be asked for it: that is a release, which waits for the copy. */
            if (!p->flags[--p->n_flags] || !p->hneed[id])
                break;
            /* fall through */
        case PLAN_RELEASE:
            if (p->hneed[id]) {
                rc = tighten_push(p, PLAN_RELEASE, id);
                p->need[id] = 1;
            }
            break;
        case PLAN_OFFLOAD:
            if (p->hneed[id]) {
                rc = tighten_push(p, PLAN_OFFLOAD, id);
                p->need[id] = 1;
                p->hneed[id] = 0;
            }
            break;
        default: /* fetch */
            if (p->need[id]) {
                rc = tighten_push(p, PLAN_FETCH, id);
                p->need[id] = 0;
                p->hneed[id] = 1;
            }
        }
    }
    tighten_frees_back(s, 0);
    for (b = g->n_bufs - 1; b >= 0 && !rc; b--)
        if (g->bufs[b].born < 0 && !p->need[b] && g->bufs[b].dies != 0)
            rc = tighten_push(p, PLAN_DROP, b);
    return rc;
}

int sched_tighten(struct sched *s, struct plan *plan)
{
    struct sched_priv *p = s->p;
    int32_t b;
    size_t i;
    int rc = tighten_forward(s, plan);

    if (rc || (rc = tighten_backward(s, plan)))
        return rc;
    plan->n_steps = plan->n_keep = 0;
    for (i = p->n_rev; i-- > 0 && !rc;)
        rc = plan_push(plan, (enum plan_kind)p->rev[i].kind, p->rev[i].id);
    for (b = 0; b < s->g->n_bufs && !rc; b++)
        if (p->keep[b])
            rc = plan_keep(plan, b);
    return rc;
}
