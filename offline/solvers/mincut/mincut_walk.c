/* mincut_walk: a local search over single decisions. */
#include "offline/solvers/mincut/mincut_walk.h"
#include "offline/solvers/mincut/mincut.h"
#include "offline/solvers/mincut/mincut_try.h"

#include "offline/solvers/solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    struct mincut *m;
    struct mincut_try *t;
    uint8_t *block;         /* owned: memory of `at` and `next` */
    uint8_t *at, *next;     /* [n_gaps] present decisions, decisions to try */
    double excess, ns;      /* excess and time of the plan of `at` */
    int64_t *at_use;        /* [n_ops] memory in use in the plan of `at` */
    int32_t *pick;          /* scratch: candidates to choose from */
    int64_t least_bytes;    /* smaller values are not worth a trial */
    uint64_t rng;
};

static uint64_t walk_random(struct walk *w)
{
    w->rng += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = w->rng;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int32_t below(struct walk *w, int32_t n) { return (int32_t)(walk_random(w) % (uint64_t)n); }

static int walk_init(struct walk *w, struct mincut *m, struct mincut_try *t, uint64_t seed)
{
    size_t n = (size_t)t->s->n_gaps + 1, o = (size_t)m->g->n_ops + 1;
    memset(w, 0, sizeof *w);
    w->m = m;
    w->t = t;
    w->rng = seed;
    w->block = malloc(2 * n);
    w->at_use = calloc(o, sizeof *w->at_use);
    w->pick = malloc(((size_t)m->n + 1) * sizeof *w->pick);
    if (!w->block || !w->at_use || !w->pick)
        return -ENOMEM;
    w->at = w->block;
    w->next = w->block + n;
    w->least_bytes = t->limit_bytes / 20000;
    memcpy(w->at, t->found ? t->best : t->low, n - 1);
    return 0;
}

static void walk_free(struct walk *w)
{
    free(w->block);
    free(w->at_use);
    free(w->pick);
}

/* Bytes over the limit of the plan just tried, summed over ops; its memory by op is left in t->use. */
static int measure(struct walk *w, double *excess)
{
    *excess = INFINITY;
    if (!w->t->r.ok)
        return 0;
    int e = mincut_profile(w->t);
    *excess = 0;
    for (int32_t i = 0; i < w->m->g->n_ops; i++)
        if (w->t->use[i] > w->t->limit_bytes)
            *excess += (double)(w->t->use[i] - w->t->limit_bytes);
    return e;
}

/* An op over the limit: the highest or a random one. */
static int32_t hot_op(struct walk *w)
{
    int32_t n = w->m->g->n_ops, top = 0, count = 0, any = 0;
    for (int32_t i = 0; i < n; i++) {
        if (w->at_use[i] > w->at_use[top])
            top = i;
        if (w->at_use[i] > w->t->limit_bytes && below(w, ++count) == 0)
            any = i;
    }
    return walk_random(w) & 1 ? top : any;
}

/* Changes one decision about a value whose gap is open while op i runs. 0: no such value. */
static int flip_at(struct walk *w, int32_t i)
{
    int32_t n = 0;
    for (int32_t k = 0; k < w->m->n; k++) {
        const struct mincut_cand *c = &w->m->cand[k];
        if (c->from < i && i <= w->m->s->gaps[c->gap].to && c->bytes >= w->least_bytes && c->redoable)
            w->pick[n++] = k;
    }
    if (!n)
        return 0;
    /* the largest of three random values: big values matter more */
    int32_t k = w->pick[below(w, n)];
    for (int j = 0; j < 2; j++) {
        int32_t q = w->pick[below(w, n)];
        if (w->m->cand[q].bytes > w->m->cand[k].bytes)
            k = q;
    }
    uint8_t *c = &w->next[w->m->cand[k].gap], old = *c;
    while (*c == old)
        *c = (uint8_t)below(w, 3); /* KEEP, DROP or SHUN */
    return 1;
}

/* Keeps a dropped value over its gap, and in three of four cases changes the decision on a value whose gap is open within this gap. */
static int hold_one(struct walk *w)
{
    int32_t n = 0;
    for (int32_t k = 0; k < w->m->n; k++)
        if (w->at[w->m->cand[k].gap] != SCHED_KEEP && w->m->cand[k].bytes >= w->least_bytes &&
            (w->m->cand[k].demanded || below(w, 4) == 0))
            w->pick[n++] = k;
    if (!n)
        return 0;
    const struct mincut_cand *c = &w->m->cand[w->pick[below(w, n)]];
    w->next[c->gap] = SCHED_KEEP;
    if (walk_random(w) % 4 == 0)
        return 1;
    int32_t i = c->from + 1 + below(w, c->until - c->from > 1 ? c->until - c->from - 1 : 1);
    return flip_at(w, i < w->m->g->n_ops ? i : w->m->g->n_ops - 1);
}

int mincut_walk(struct mincut *m, struct mincut_try *t, double until_s, int64_t max_trials, double heat, uint64_t seed)
{
    struct walk w;
    int e = walk_init(&w, m, t, seed);
    if (!e)
        e = mincut_trial(t, w.at);
    if (!e)
        e = measure(&w, &w.excess);
    if (!e) {
        w.ns = (double)t->r.ns;
        memcpy(w.at_use, t->use, (size_t)m->g->n_ops * sizeof *t->use);
    }
    for (int64_t k = 0; !e && k < max_trials && solver_now_s() < until_s && m->n; k++) {
        memcpy(w.next, w.at, (size_t)t->s->n_gaps);
        int over = w.excess > 0, any = walk_random(&w) % 4 == 0;
        if (!(over ? flip_at(&w, hot_op(&w)) : any ? flip_at(&w, below(&w, m->g->n_ops)) : hold_one(&w)))
            continue;
        if (over && any)
            flip_at(&w, hot_op(&w));
        e = mincut_trial(t, w.next);
        double excess;
        if (!e)
            e = measure(&w, &excess);
        if (e || !t->r.ok)
            continue;
        /* Being over the limit by one percent at one op weighs as much as five percent of the time. Small steps up are
         * taken, smaller towards the end. */
        double limit = (double)t->limit_bytes, total = (double)m->g->total_ns + 1, left = 1 - (double)k / (double)max_trials;
        double now = w.excess / limit + 0.2 * w.ns / total, then = excess / limit + 0.2 * (double)t->r.ns / total;
        double luck = (double)(walk_random(&w) >> 11) / 9007199254740992.0;
        if (then <= now - heat * left * log(luck + 1e-12)) {
            uint8_t *swap = w.at;
            w.at = w.next;
            w.next = swap;
            w.excess = excess;
            w.ns = (double)t->r.ns;
            memcpy(w.at_use, t->use, (size_t)m->g->n_ops * sizeof *t->use);
        }
    }
    walk_free(&w);
    return e;
}
