#include "offline/solvers/mincut/mincut_price.h"

#include "offline/solvers/mincut/mincut_try.h"
#include "offline/solvers/solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COST_UNIT 16.0          /* costs are integers: sixteenths of a nanosecond */
#define COST_MAX (1LL << 44)

struct price {
    struct mincut *m;
    struct mincut_try *t;
    int32_t n_ops;
    double *rate;      /* [n_ops] price at op t, ns per byte */
    double *sum;       /* [n_ops + 2] rate summed up to and not including t */
    double *lie;       /* [n] price of the memory that gap k's value took after it was rebuilt, averaged over the last plans */
    int64_t *hold, *redo_val, *redo_op;
    int32_t *since, *holds; /* per buffer: slot of its rebuild; candidate gap it was rebuilt in, -1: none */
    uint8_t *state, *choice;
    uint8_t *base; /* [n_gaps] decisions for the gaps that are not active */
};

static void price_free(struct price *p)
{
    free(p->rate);
    free(p->sum);
    free(p->lie);
    free(p->hold);
    free(p->redo_val);
    free(p->redo_op);
    free(p->since);
    free(p->holds);
    free(p->state);
    free(p->choice);
}

static int price_init(struct price *p, struct mincut *m, struct mincut_try *t)
{
    memset(p, 0, sizeof *p);
    p->m = m;
    p->t = t;
    p->n_ops = m->g->n_ops;
    size_t n = (size_t)m->n + 1, o = (size_t)p->n_ops + 2, b = (size_t)m->g->n_bufs + 1;
    p->rate = calloc(o, sizeof *p->rate);
    p->sum = calloc(o, sizeof *p->sum);
    p->lie = calloc(n, sizeof *p->lie);
    p->hold = calloc(n, sizeof *p->hold);
    p->redo_val = calloc(n, sizeof *p->redo_val);
    p->redo_op = calloc(o, sizeof *p->redo_op);
    p->since = calloc(b, sizeof *p->since);
    p->holds = calloc(b, sizeof *p->holds);
    p->state = calloc(n, 1);
    p->choice = calloc(2 * ((size_t)t->s->n_gaps + 1), 1);
    if (!p->rate || !p->sum || !p->lie || !p->hold || !p->redo_val || !p->redo_op || !p->since || !p->holds ||
        !p->state || !p->choice)
        return -ENOMEM;
    p->base = p->choice + t->s->n_gaps + 1;
    sched_default(t->s, p->base);
    for (int32_t i = 0; i < p->n_ops; i++)
        p->redo_op[i] = (int64_t)(COST_UNIT * (double)m->g->ops[i].ns);
    return 0;
}

static int64_t cost(double ns)
{
    double x = ns * COST_UNIT;
    return x <= 0 ? 0 : x >= (double)COST_MAX ? COST_MAX : (int64_t)x;
}

/* The gap of v that is open just before op t; -1: none. */
static int32_t price_gap_open(const struct sched *s, int32_t v, int32_t t)
{
    for (int32_t a = s->gap_at[v]; a < s->gap_at[v + 1]; a++)
        if (s->gaps[a].from < t && t <= s->gaps[a].to)
            return a;
    return -1;
}

static double between(const struct price *p, int32_t from, int32_t to)
{
    if (from < 0)
        from = 0;
    if (to > p->n_ops)
        to = p->n_ops;
    return to > from ? p->sum[to] - p->sum[from] : 0;
}

/* Make a cut at the present prices and try its decisions. */
static int price_cut(struct price *p)
{
    struct mincut *m = p->m;
    for (int32_t i = 0; i < p->n_ops; i++)
        p->sum[i + 1] = p->sum[i] + p->rate[i];
    for (int32_t k = 0; k < m->n; k++) {
        const struct mincut_cand *c = &m->cand[k];
        p->hold[k] = cost((double)c->bytes * between(p, c->from + 1, c->until));
        p->redo_val[k] = cost(p->lie[k]);
    }
    int64_t value;
    int e = mincut_solve(m, p->hold, p->redo_val, p->redo_op, p->state, &value);
    if (e)
        return e;
    memcpy(p->choice, p->base, (size_t)m->s->n_gaps);
    mincut_choose(m, p->state, p->choice);
    return mincut_trial(p->t, p->choice);
}

/* Read off the plan just tried: memory in use at each op, and the price its rebuilt values paid for their memory (lie[]). */
static int price_look(struct price *p)
{
    const struct plan *q = &p->t->plan;
    const struct graph *g = p->m->g;
    int e = mincut_profile(p->t);
    if (e)
        return e;
    memset(p->holds, 0xff, (size_t)g->n_bufs * sizeof *p->holds);
    int32_t slot = 0;
    for (size_t i = 0; i < q->n_steps && slot < p->n_ops; i++) {
        int32_t id = q->steps[i].id;
        if (q->steps[i].kind == PLAN_OP || q->steps[i].kind == PLAN_REPLAY) {
            const struct graph_operand *d = graph_operands(g, id);
            for (int32_t j = 0; j < graph_n_operands(&g->ops[id]); j++) {
                int32_t b = d[j].buf, k = p->holds[b];
                if (q->steps[i].kind == PLAN_OP && k >= 0 && p->m->cand[k].until == id && p->m->cand[k].demanded) {
                    p->lie[k] = 0.5 * p->lie[k] + 0.5 * (double)g->bufs[b].bytes * between(p, p->since[b], id);
                    p->holds[b] = -1;
                }
                if (q->steps[i].kind == PLAN_REPLAY && d[j].role != GRAPH_SIDE && d[j].out >= 0) {
                    int32_t a = price_gap_open(p->m->s, d[j].out, slot);
                    p->holds[b] = a >= 0 ? p->m->of_gap[a] : -1;
                    p->since[b] = slot;
                }
            }
        } else if (q->steps[i].kind == PLAN_DROP && p->holds[id] >= 0) {
            int32_t k = p->holds[id];
            p->lie[k] = 0.5 * p->lie[k] + 0.5 * (double)g->bufs[id].bytes * between(p, p->since[id], slot);
            p->holds[id] = -1;
        }
        slot += q->steps[i].kind == PLAN_OP;
    }
    return 0;
}

/* Find the least scale of the rates that brings the plan within the limit, by bisection near `guess`. A larger scale lowers
 * the peak only up to a point: when too much is dropped, many values are rebuilt and in memory together. So until a plan
 * fits, steps up go on only while they lower the peak, then close in on the best. *scale: the least scale that fits, or
 * else the scale with the lowest peak. */
static int price_scale(struct price *p, const double *shape, double until_s, double guess, int cuts, double *scale)
{
    double lo = 0, hi = 0, at = guess, best = guess, spread = 1.5;
    int64_t best_peak = INT64_MAX;
    for (int i = 0; i < cuts && solver_now_s() < until_s; i++) {
        for (int32_t k = 0; k < p->n_ops; k++)
            p->rate[k] = at * shape[k];
        int e = price_cut(p);
        if (!e && p->t->r.ok)
            e = price_look(p);
        if (e)
            return e;
        if (p->t->r.ok && p->t->r.peak_bytes <= p->t->limit_bytes) {
            hi = at;
        } else if (hi > 0) {
            lo = at;
        } else if (p->t->r.ok && p->t->r.peak_bytes < best_peak) {
            best_peak = p->t->r.peak_bytes;
            best = lo = at;
        } else {
            lo = lo < best ? lo : best;
            spread = 1 + (spread - 1) * 0.6;
        }
        if (hi > 0)
            at = lo > 0 && lo < hi ? sqrt(lo * hi) : hi / 1.5;
        else
            at = best == at || i % 2 ? best * spread : best / spread;
        if (hi > 0 && lo >= hi)
            lo = 0;
    }
    *scale = hi > 0 ? hi : best;
    return 0;
}

static double random_unit(uint64_t *s)
{
    *s += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *s;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

/* A state of the prices: their spread over the ops, their scale, and the price of rebuilt values' memory. */
struct stand {
    double *shape; /* [n_ops] */
    double *lie;   /* [n] */
    double scale;
};

static int stand_new(const struct price *p, struct stand *a)
{
    a->shape = calloc((size_t)p->n_ops + (size_t)p->m->n + 2, sizeof *a->shape);
    a->lie = a->shape ? a->shape + p->n_ops + 1 : NULL;
    return a->shape ? 0 : -ENOMEM;
}

static void stand_copy(const struct price *p, struct stand *to, const struct stand *from)
{
    memcpy(to->shape, from->shape, (size_t)p->n_ops * sizeof *to->shape);
    memcpy(to->lie, from->lie, (size_t)p->m->n * sizeof *to->lie);
    to->scale = from->scale;
}

/* Raise the prices of ops at which the last plan was over the limit, lower those of ops with room. */
static void reshape(const struct price *p, double *shape, double pace)
{
    const struct mincut_try *t = p->t;
    for (int32_t i = 0; i < p->n_ops; i++) {
        double x = ((double)t->use[i] - (double)t->limit_bytes) / (double)t->limit_bytes;
        shape[i] *= exp(pace * (x > 0.5 ? 0.5 : x < -0.5 ? -0.5 : x));
        shape[i] = shape[i] < 1e-4 ? 1e-4 : shape[i] > 1e4 ? 1e4 : shape[i];
    }
}

static int price_start(struct price *p, const struct mincut_quest *q, struct stand *at)
{
    struct mincut_try *t = p->t;
    const struct graph *g = p->m->g;
    double sum = 0, bytes = 1;
    mincut_pivot(p->m, q->pivots, q->n_pivots);
    if (q->base)
        memcpy(p->base, q->base, (size_t)t->s->n_gaps);
    int e = mincut_trial(t, p->base);
    if (!e)
        e = t->r.ok ? mincut_profile(t) : -EPROTO;
    if (e)
        return e;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int over = t->use[i] > t->limit_bytes || (t->found && g->live_bytes[i] > t->limit_bytes);
        sum += at->shape[i] = over ? 1 : 0.02;
    }
    for (int32_t k = 0; k < p->m->n; k++)
        bytes += (double)p->m->cand[k].bytes;
    at->scale = (double)g->total_ns / bytes / (sum + 1);
    return 0;
}

int mincut_price_search(struct mincut *m, struct mincut_try *t, const struct mincut_quest *q)
{
    enum { LEG = 40 };
    struct price p;
    struct stand at = { 0 }, first = { 0 };
    uint64_t seed = q->seed;
    double noise = 0.1, pace = 1;
    int e = price_init(&p, m, t);
    if (!e)
        e = stand_new(&p, &at);
    if (!e)
        e = stand_new(&p, &first);
    if (!e)
        e = price_start(&p, q, &at);
    if (!e)
        stand_copy(&p, &first, &at);
    for (int k = 0; !e && k < q->rounds && solver_now_s() < q->until_s; k++) {
        if (k && k % LEG == 0) { /* prices wander off in the end: begin again from the first prices, at another pace */
            stand_copy(&p, &at, &first);
            pace = 0.15 + random_unit(&seed);
            noise = 0.02 + 0.3 * random_unit(&seed);
        }
        if (k || q->noisy)
            for (int32_t i = 0; i < p.n_ops; i++)
                p.redo_op[i] = (int64_t)(COST_UNIT * (double)m->g->ops[i].ns * (1 + noise * (2 * random_unit(&seed) - 1)));
        memcpy(p.lie, at.lie, (size_t)m->n * sizeof *p.lie);
        e = price_scale(&p, at.shape, q->until_s, at.scale, k % LEG ? 8 : 20, &at.scale);
        memcpy(at.lie, p.lie, (size_t)m->n * sizeof *p.lie);
        reshape(&p, at.shape, pace);
    }
    free(at.shape);
    free(first.shape);
    price_free(&p);
    return e;
}
