#include "offline/solvers/swapping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Buffers in memory form a ring, by rising time of last use, whose head is entry n_bufs. */
struct swapping_buf {
    int32_t older, newer;
    int32_t needed; /* 1 + the last op that touches the buffer, as set when the op is reached */
    uint8_t here, holds, on_host;
};

struct swapping {
    const struct graph *g;
    struct swapping_buf *b; /* [n_bufs + 1] */
    struct plan *out;
    int64_t used, limit;
};

static void swapping_unlink(struct swapping *s, int32_t b)
{
    s->b[s->b[b].older].newer = s->b[b].newer;
    s->b[s->b[b].newer].older = s->b[b].older;
}

static void swapping_newest(struct swapping *s, int32_t b)
{
    const int32_t head = s->g->n_bufs, newest = s->b[head].older;

    s->b[b].older = newest;
    s->b[b].newer = head;
    s->b[newest].newer = s->b[head].older = b;
}

static void swapping_come(struct swapping *s, int32_t b)
{
    s->b[b].here = 1;
    s->used += s->g->bufs[b].bytes;
    swapping_newest(s, b);
}

static void swapping_go(struct swapping *s, int32_t b)
{
    s->b[b].here = 0;
    s->used -= s->g->bufs[b].bytes;
    swapping_unlink(s, b);
}

static void swapping_frees(struct swapping *s, int32_t i)
{
    int32_t k;

    for (k = s->g->dies_at[i]; k < s->g->dies_at[i + 1]; k++) {
        int32_t b = s->g->die_list[k];

        if (s->b[b].here)
            swapping_go(s, b);
        s->b[b].holds = s->b[b].on_host = 0;
    }
}

/* Evict buffers, oldest use first, until `bytes` are free for op i. */
static int swapping_evict(struct swapping *s, int64_t bytes, int32_t i)
{
    while (s->used + bytes > s->limit) {
        int32_t b = s->b[s->g->n_bufs].newer;

        while (b != s->g->n_bufs && s->b[b].needed == i + 1)
            b = s->b[b].newer;
        if (b == s->g->n_bufs)
            return -ENOSPC;
        if (s->b[b].holds ? plan_push(s->out, PLAN_OFFLOAD, b) || plan_push(s->out, PLAN_RELEASE, b) : plan_push(s->out, PLAN_DROP, b))
            return -ENOMEM;
        s->b[b].on_host = s->b[b].holds;
        swapping_go(s, b);
    }
    return 0;
}

static int swapping_op(struct swapping *s, int32_t i)
{
    const struct graph_operand *u = graph_operands(s->g, i);
    int32_t n = graph_n_operands(&s->g->ops[i]), k;
    int rc;

    for (k = 0; k < n; k++)
        s->b[u[k].buf].needed = i + 1;
    for (k = 0; k < n; k++) {
        struct swapping_buf *b = &s->b[u[k].buf];

        if (b->here) {
            swapping_unlink(s, u[k].buf);
            swapping_newest(s, u[k].buf);
            continue;
        }
        rc = swapping_evict(s, s->g->bufs[u[k].buf].bytes, i);
        if (rc)
            return rc;
        if (b->on_host && plan_push(s->out, PLAN_FETCH, u[k].buf))
            return -ENOMEM;
        swapping_come(s, u[k].buf);
    }
    for (k = 0; k < n; k++)
        if (u[k].role != GRAPH_READ) {
            s->b[u[k].buf].holds = 1;
            s->b[u[k].buf].on_host = 0;
        }
    return plan_push(s->out, PLAN_OP, i) ? -ENOMEM : 0;
}

int swapping_schedule(const struct graph *g, int64_t limit_bytes, struct plan *out, struct sim_result *r)
{
    struct swapping s = {g, calloc((size_t)g->n_bufs + 1, sizeof(*s.b)), out, 0, limit_bytes};
    int32_t i;
    int rc = s.b ? 0 : -ENOMEM;

    memset(r, 0, sizeof(*r));
    if (!rc)
        s.b[g->n_bufs].older = s.b[g->n_bufs].newer = g->n_bufs;
    for (i = 0; i < g->n_bufs && !rc; i++)
        if (g->bufs[i].born < 0) {
            s.b[i].holds = 1;
            swapping_come(&s, i);
        }
    if (!rc)
        swapping_frees(&s, 0);
    for (i = 0; i < g->n_ops && !rc; i++) {
        rc = swapping_op(&s, i);
        if (!rc)
            swapping_frees(&s, i + 1);
    }
    if (!rc)
        rc = sim_run(g, out, 0, r);
    free(s.b);
    return rc;
}
