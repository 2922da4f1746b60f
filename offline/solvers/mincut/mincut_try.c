/* mincut_try: realizes decisions as a plan, lets the simulator judge it, and remembers the best decisions. */
#include "offline/solvers/mincut/mincut_try.h"
#include "offline/solvers/mincut/mincut.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mincut_try_init(struct mincut_try *t, const struct graph *g, struct sched *s, int64_t limit_bytes)
{
    memset(t, 0, sizeof *t);
    t->g = g;
    t->s = s;
    t->limit_bytes = limit_bytes;
    t->low_peak = t->best_ns = INT64_MAX;
    t->best = malloc(2 * ((size_t)s->n_gaps + 1));
    t->use = calloc((size_t)g->n_ops + 1, sizeof *t->use);
    t->acts = calloc((size_t)g->n_ops + 1, sizeof *t->acts);
    t->seen = calloc((size_t)g->n_ops + 1, sizeof *t->seen);
    if (!t->best || !t->use || !t->acts || !t->seen)
        return -ENOMEM;
    t->low = t->best + s->n_gaps + 1;
    sched_default(s, t->best);
    sched_default(s, t->low);
    return 0;
}

void mincut_try_free(struct mincut_try *t)
{
    free(t->best);
    free(t->use);
    free(t->acts);
    free(t->seen);
    plan_free(&t->mended);
    free(t->step_use);
    plan_free(&t->best_plan);
    plan_free(&t->plan);
    memset(t, 0, sizeof *t);
}

/* The value that the replay at step k served: an output of the next replay, before the same op, that reads one of its results; -1: none. */
static int32_t reader_of(const struct mincut_try *t, size_t k)
{
    const struct plan *q = &t->plan;
    const struct graph_operand *d = graph_operands(t->g, q->steps[k].id);
    int32_t n = graph_n_operands(&t->g->ops[q->steps[k].id]);
    for (size_t i = k + 1; i < q->n_steps && q->steps[i].kind != PLAN_OP; i++) {
        if (q->steps[i].kind != PLAN_REPLAY)
            continue;
        const struct graph_op *o = &t->g->ops[q->steps[i].id];
        const struct graph_operand *u = graph_operands(t->g, q->steps[i].id);
        int reads = 0;
        for (int32_t a = 0; a < o->n_reads; a++)
            for (int32_t b = 0; b < n; b++)
                reads |= d[b].role != GRAPH_SIDE && d[b].out == u[a].in;
        for (int32_t a = o->n_reads; reads && a < graph_n_operands(o); a++)
            if (u[a].role != GRAPH_SIDE)
                return u[a].out;
    }
    return -1;
}

/* Fills t->acts with orders for ops that were replayed twice; returns their number. */
static size_t find_orders(struct mincut_try *t)
{
    const struct plan *q = &t->plan;
    size_t n = 0;
    int32_t slot = 0;
    memset(t->seen, 0xff, (size_t)t->g->n_ops * sizeof *t->seen);
    for (size_t k = 0; k < q->n_steps; k++) {
        int32_t id = q->steps[k].id;
        if (q->steps[k].kind == PLAN_OP) {
            slot = id + 1;
        } else if (q->steps[k].kind == PLAN_REPLAY && t->seen[id] < 0) {
            t->seen[id] = slot;
        } else if (q->steps[k].kind == PLAN_REPLAY && t->seen[id] < slot && n < (size_t)t->g->n_ops) {
            int32_t v = reader_of(t, k);
            if (v < 0)
                continue;
            size_t at = n++;
            for (; at && t->acts[at - 1].op > t->seen[id]; at--)
                t->acts[at] = t->acts[at - 1];
            t->acts[at] = (struct sched_act){ t->seen[id], SCHED_NEED, v };
        }
    }
    return n;
}

static int mend(struct mincut_try *t, const uint8_t *choice)
{
    struct sim_result r;
    size_t n = find_orders(t);
    if (!n)
        return 0;
    int e = sched_realize_acts(t->s, choice, t->acts, n, &t->mended, &r);
    if (e == -EDEADLK || e == -E2BIG)
        return 0;
    int64_t worst = t->r.peak_bytes > t->limit_bytes ? t->r.peak_bytes : t->limit_bytes;
    if (!e && r.ok && r.ns < t->r.ns && r.peak_bytes <= worst) {
        struct plan p = t->plan;
        t->plan = t->mended;
        t->mended = p;
        t->r = r;
    }
    return e;
}

int mincut_trial(struct mincut_try *t, const uint8_t *choice)
{
    t->trials++;
    t->r.ok = 0;
    int e = sched_realize(t->s, choice, &t->plan, &t->r);
    if (e == -EDEADLK || e == -E2BIG) {
        t->r.ok = 0;
        return 0;
    }
    if (!e && t->r.ok)
        e = mend(t, choice);
    if (e || !t->r.ok)
        return e;
    if (t->r.peak_bytes < t->low_peak) {
        t->low_peak = t->r.peak_bytes;
        memmove(t->low, choice, (size_t)t->s->n_gaps);
    }
    if (t->r.peak_bytes > t->limit_bytes)
        return 0;
    if (t->found && (t->r.ns > t->best_ns || (t->r.ns == t->best_ns && t->r.peak_bytes >= t->best_peak)))
        return 0;
    t->found = 1;
    t->best_ns = t->r.ns;
    t->best_peak = t->r.peak_bytes;
    memmove(t->best, choice, (size_t)t->s->n_gaps);
    return plan_copy(&t->best_plan, &t->plan);
}

int mincut_profile(struct mincut_try *t)
{
    const struct plan *q = &t->plan;
    int32_t slot = 0, n = t->g->n_ops;
    if (q->n_steps > t->step_room) {
        free(t->step_use);
        t->step_room = 0;
        t->step_use = malloc(2 * q->n_steps * sizeof *t->step_use);
        if (!t->step_use)
            return -ENOMEM;
        t->step_room = 2 * q->n_steps;
    }
    struct sim_result r;
    int e = sim_profile(t->g, q, t->step_use, NULL, &r);
    if (e)
        return e;
    memset(t->use, 0, (size_t)n * sizeof *t->use);
    for (size_t i = 0; i < q->n_steps && slot < n; i++) {
        if (t->step_use[i] > t->use[slot])
            t->use[slot] = t->step_use[i];
        slot += q->steps[i].kind == PLAN_OP;
    }
    return 0;
}
