#include "offline/solvers/cover/ladder.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/cover/cover_bound.h"
#include "offline/solvers/cover/cover_plan.h"
#include "offline/solvers/solver.h"

enum { STEPS = 200, STEPS_SMALL = 1000, SMALL_OPS = 40, STEPS_LARGE = 50, LARGE_OPS = 8000, THOROUGH = 20, SLACK = 1, SLACK_FROM = 1 << 20 };

struct ladder *ladder_new(const struct graph *g)
{
    struct ladder *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    /* a graph that is solved exactly needs one rung solved, however many the ladder has; where plans take long, rungs are far
     * enough apart for the bound to tell one from the next */
    l->n_steps = g->n_ops <= SMALL_OPS ? STEPS_SMALL : g->n_ops <= LARGE_OPS ? STEPS : STEPS_LARGE;
    l->rung = calloc((size_t)l->n_steps + 1, sizeof *l->rung);
    l->c = l->rung ? cover_new(g) : NULL;
    if (l->c)
        return l;
    ladder_free(l);
    return NULL;
}

void ladder_free(struct ladder *l)
{
    if (!l)
        return;
    for (int32_t i = 0; l->rung && i <= l->n_steps; i++)
        plan_free(&l->rung[i].plan);
    free(l->rung);
    cover_free(l->c);
    cover_free(l->other);
    free(l);
}

/* Bytes that rung i stands below its fraction of the peak, so that a limit given as a percentage reaches its rung even if rounding
 * makes it a byte less than the fraction. The rung's bound is proved for the fraction itself. */
static int64_t slack_of(const struct ladder *l, int32_t i)
{
    return i + 1 < l->n_steps && l->c->g->baseline_peak_bytes > SLACK_FROM ? SLACK : 0;
}

static int64_t limit_of(const struct ladder *l, int32_t i)
{
    __extension__ const __int128 peak = l->c->g->baseline_peak_bytes;
    return i == l->n_steps ? l->c->g->floor_bytes : (int64_t)(peak * (i + 1) / l->n_steps) - slack_of(l, i);
}

static int64_t bound_limit_of(const struct ladder *l, int32_t i) { return limit_of(l, i) + slack_of(l, i); }

/* Make sure that rung i has a bound: from cover_bound, or from cover_plan if the rung is solved. */
static int bounded(struct ladder *l, int32_t i)
{
    struct ladder_rung *x = &l->rung[i];
    const int rc = x->bounded || x->solved ? 0 : cover_bound(l->c, bound_limit_of(l, i), &x->b);
    x->bounded = !rc;
    return rc;
}

static int late(const struct ladder *l) { return l->c->deadline_s > 0 && solver_now_s() >= l->c->deadline_s; }

/* Rungs at twentieths of the peak (every tenth rung of a usual graph) and the floor get more time: the rungs above have their plans, too. */
static int is_thorough(const struct ladder *l, int32_t i)
{
    return i == l->n_steps || l->n_steps <= THOROUGH || (i + 1) % (l->n_steps / THOROUGH) == 0;
}

static int solve(struct ladder *l, struct cover *c, int32_t i, double beaten_ns)
{
    struct ladder_rung *x = &l->rung[i];
    if (x->solved)
        return 0;
    const struct cover_ask ask = {.limit_bytes = limit_of(l, i), .bound_bytes = bound_limit_of(l, i), .beaten_ns = beaten_ns,
                                  .thorough = is_thorough(l, i)};
    x->rc = cover_plan(c, &ask, &x->plan, &x->r, &x->b);
    x->bounded = 1;
    if (x->rc == -ECANCELED) /* x->plan is not the rung's: the rung is solved when a limit asks for it without a better plan */
        return 0;
    if (x->rc && x->rc != -ENOSPC)
        return x->rc;
    /* a rung that a deadline cut short is solved again when asked for with more time */
    x->solved = !late(l);
    return 0;
}

/* The best rung so far. */
struct choice {
    int32_t best;    /* rung with the cheapest plan; -1: none */
    double bound_ns; /* highest proved bound of the rungs looked at */
};

static void consider(const struct ladder *l, int32_t i, struct choice *c)
{
    const struct ladder_rung *x = &l->rung[i];
    c->bound_ns = x->b.ns > c->bound_ns ? x->b.ns : c->bound_ns;
    if (!x->rc && x->plan.n_steps && (c->best < 0 || x->r.ns < l->rung[c->best].r.ns))
        c->best = i;
}

/* Replay time of the best plan so far; 0: none. */
static double replay_ns(const struct ladder *l, const struct choice *c)
{
    return c->best < 0 ? 0 : (double)(l->rung[c->best].r.ns - l->c->g->total_ns);
}

/* The second of two rungs, solved in a thread of its own. */
struct second {
    struct ladder *l;
    int32_t i;
    double beaten_ns;
    int rc;
};

static void *solve_second(void *arg)
{
    struct second *s = arg;
    s->rc = solve(s->l, s->l->other, s->i, s->beaten_ns);
    return NULL;
}

/* Solve rung i and, at the same time, rung k (-1: none). */
static int solve_both(struct ladder *l, int32_t i, int32_t k, struct choice *c)
{
    const double beaten_ns = replay_ns(l, c);
    struct second s = {.l = l, .i = k, .beaten_ns = beaten_ns};
    pthread_t thread;
    if (k >= 0 && !l->other && !(l->other = cover_new(l->c->g)))
        return -ENOMEM;
    if (k >= 0)
        l->other->deadline_s = l->c->deadline_s;
    const int alone = k < 0 || pthread_create(&thread, NULL, solve_second, &s);
    int rc = solve(l, l->c, i, beaten_ns);
    if (!alone)
        pthread_join(thread, NULL);
    else if (k >= 0)
        solve_second(&s);
    rc = rc ? rc : s.rc;
    if (!rc)
        consider(l, i, c);
    if (!rc && k >= 0)
        consider(l, k, c);
    return rc;
}

/* 1: proved that no plan at or below rung x beats the best so far. */
static int beyond(const struct ladder *l, const struct choice *c, const struct ladder_rung *x)
{
    return x->b.impossible || (c->best >= 0 && (x->b.ns >= replay_ns(l, c) || c->bound_ns >= replay_ns(l, c)));
}

static int is_rung(const struct ladder *l, int32_t i) { return i >= 0 && limit_of(l, i) >= l->c->g->floor_bytes; }

/* The next rung below i that is a whole multiple of `step`; -1: none. */
static int32_t below(int32_t i, int32_t step) { return i ? (i - 1) / step * step : -1; }

/* Solve rungs from i down, the first alone (mostly the bound ends the walk after it), then two at a time. `leaps`: by ever larger steps,
 * until a plan is found. 1: no rung further down can be better, or the time is over. */
static int descend(struct ladder *l, int32_t i, int leaps, struct choice *c)
{
    int32_t step = 1;
    for (int first = 1; is_rung(l, i) && !(leaps && c->best >= 0); first = 0) {
        int rc = bounded(l, i);
        if (rc || beyond(l, c, &l->rung[i]))
            return rc ? rc : 1;
        const int32_t next = below(i, step);
        const int pair = !first && is_rung(l, next);
        rc = solve_both(l, i, pair ? next : -1, c);
        if (rc || late(l))
            return rc ? rc : 1;
        step = leaps ? 2 * step : 1;
        i = below(pair ? next : i, step);
    }
    return 0;
}

/* Leap down first, so that some plan is found soon; then walk every rung from the limit down, including those leapt over, whose plans a
 * smaller limit would find. At the end solve the floor, which stands between two rungs. */
static int walk(struct ladder *l, int64_t limit_bytes, struct choice *c)
{
    int32_t i = l->n_steps - 1;
    while (i >= 0 && limit_of(l, i) > limit_bytes)
        i--;
    int rc = descend(l, i, 1, c);
    if (rc >= 0 && !late(l))
        rc = descend(l, i, 0, c);
    if (rc)
        return rc < 0 ? rc : 0;
    rc = bounded(l, l->n_steps);
    return rc || l->c->g->floor_bytes > limit_bytes || beyond(l, c, &l->rung[l->n_steps]) ? rc : solve_both(l, l->n_steps, -1, c);
}

int ladder_plan(struct ladder *l, int64_t limit_bytes, double deadline_s, struct plan *out, struct cover_bound *b)
{
    struct choice c = {.best = -1};
    l->c->deadline_s = deadline_s;
    int rc = cover_bound(l->c, limit_bytes, b);
    if (rc || b->impossible)
        return rc ? rc : -ENOSPC;
    rc = walk(l, limit_bytes, &c);
    if (rc)
        return rc;
    /* a rung's bound holds at the limit only if the rung stands at or above it */
    for (int32_t i = 0; i <= l->n_steps; i++)
        if (l->rung[i].bounded && bound_limit_of(l, i) >= limit_bytes) {
            b->ns = l->rung[i].b.ns > b->ns ? l->rung[i].b.ns : b->ns;
            b->impossible |= l->rung[i].b.impossible;
        }
    if (!b->impossible)
        rc = cover_prove(l->c, limit_bytes, replay_ns(l, &c), b);
    return rc ? rc : c.best < 0 ? -ENOSPC : plan_copy(out, &l->rung[c.best].plan);
}
