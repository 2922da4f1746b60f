/* mincut_try: decisions are judged by the plan they make; what is best is found by trying. */
#include "offline/mincut.h"

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
    if (!t->best || !t->use)
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
    free(t->step_use);
    plan_free(&t->best_plan);
    plan_free(&t->plan);
    memset(t, 0, sizeof *t);
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
