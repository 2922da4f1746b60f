/* Proposes plans for a limit, lets the simulator judge them and keeps the cheapest. */
#include "offline/solvers/cover/cover_plan.h"
#include "offline/solvers/cover/cover.h"
#include "offline/solvers/cover/cover_bound.h"
#include "offline/solvers/cover/cover_polish.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/sched_fill.h"
#include "offline/solvers/cover/cover_milp.h"
#include "offline/solvers/milp/milp_model.h"
#include "offline/solvers/milp/milp_search.h"
#include "offline/solvers/mincut/mincut.h"
#include "offline/solvers/mincut/mincut_try.h"
#include "offline/solvers/solver.h"

enum {
    ROUNDS = 6,       /* rounds of the program over several instants */
    SPARED = 1,       /* rounds after room was spared at an instant */
    SPARE_MOST = 20,  /* at most 1 / 20 of the limit may be spared at once */
    NODES = 40,       /* nodes of CBC's search in each round */
    FOR_BOUND = 3,    /* up to this many instants one more is added for the bound's sake alone */
    CBC_OPS = 8000,   /* for more ops only single instants are looked at */
    DIAL_LARGE = 4, TOP_LARGE = 1, /* beyond CBC_OPS: fewer instants, fewer budgets */
    DIAL = 24,        /* budgets tried at a single instant, each ... */
    DIAL_STEP = 200,  /* ... 1 / 200 of the limit below the last */
    EXACT_OPS = 40,   /* up to this many ops all schedules are searched */
    EXACT_WORK = 20000000, /* steps of the exact search */
    ROUGH_OPS = 64,   /* up to this many ops all schedules are searched as if small values needed no memory ... */
    ROUGH_WORK = 20000000,
    ROUGH_PART = 50   /* ... small: less than 1 / 50 of the limit */
};
static const double SOLVED = 0.01;      /* CBC's solution is at most this far from its bound, relatively */
static const double near_enough = 2e-4; /* part of the iteration's time: a plan this near its bound is not searched further */

struct proposal {
    struct cover *c;
    struct mincut_try t;
    uint8_t *choice; /* [n_gaps] */
    int64_t limit_bytes;
    struct plan *best;
    struct sim_result *r; /* judgement of best; r->ok: a plan was found */
    int64_t bound_bytes;  /* limit for which b is proved: limit_bytes or a little more */
    struct cover_bound *b;
};

static int settled(const struct proposal *p)
{
    const double gap = (double)(p->r->ns - p->c->g->total_ns) - p->b->ns;
    return p->r->ok && gap <= near_enough * (double)p->c->g->total_ns;
}

static int late(const struct cover *c) { return c->deadline_s > 0 && solver_now_s() >= c->deadline_s; }

/* Seconds left to the deadline; 0: no deadline. */
static double left_s(const struct cover *c) { return c->deadline_s > 0 ? fmax(c->deadline_s - solver_now_s(), 0.01) : 0; }

/* Fill up the plan of the last trial (sched_fill) and keep it if it is better than best. */
static int offer(struct proposal *p)
{
    struct sim_result r;
    if (!p->t.r.ok || p->t.r.peak_bytes > p->limit_bytes)
        return 0;
    int rc = sched_fill(p->c->s, &p->t.plan, p->limit_bytes, &r);
    if (rc || !r.ok || r.peak_bytes > p->limit_bytes || (p->r->ok && r.ns >= p->r->ns))
        return rc;
    *p->r = r;
    return plan_copy(p->best, &p->t.plan);
}

/* Decide gap k from the number of instants inside it at which its value is held: all of them: KEEP; else DROP, or SHUN for
 * a tail that is held at none. */
static void decide(struct proposal *p, int32_t k, int held, int instants)
{
    const int tail = p->c->s->gaps[k].tail;
    if (instants)
        p->choice[k] = held == instants ? SCHED_KEEP : tail && !held ? SCHED_SHUN : SCHED_DROP;
}

static int try_point(struct proposal *p, const struct cover_cut *cut, const struct cover_point *at)
{
    const struct sched *s = p->c->s;
    sched_default(s, p->choice);
    for (int32_t i = 0; i < cut->n_vals; i++)
        for (int32_t k = s->gap_at[cut->val[i]]; k < s->gap_at[cut->val[i] + 1]; k++)
            if (s->gaps[k].from <= cut->op && s->gaps[k].to > cut->op)
                decide(p, k, at->state[i] == COVER_HELD, 1);
    const int rc = mincut_trial(&p->t, p->choice);
    return rc ? rc : offer(p);
}

/* At each of the best instants, try the corner of the curve within the limit and the corners further down. */
static int single_instants(struct proposal *p)
{
    const int large = p->c->g->n_ops > CBC_OPS, tops = large ? TOP_LARGE : COVER_TOP, dial = large ? DIAL_LARGE : DIAL;
    int rc = 0;
    for (int i = 0; i < p->b->n_top && (i < tops || !p->r->ok) && !rc && !settled(p); i++) {
        struct cover_cut *cut = p->c->cut[p->b->top[i]];
        int64_t held = INT64_MAX;
        for (int d = 0; d < dial && !rc && !late(p->c); d++) {
            struct cover_verdict v;
            rc = cover_cut_solve(cut, p->limit_bytes - p->limit_bytes / DIAL_STEP * d, &v);
            if (rc || v.impossible)
                break;
            if (cut->points[v.point].held_bytes == held)
                continue;
            held = cut->points[v.point].held_bytes;
            rc = try_point(p, cut, &cut->points[v.point]);
        }
    }
    return rc;
}

/* ---- several instants ------------------------------------------------------------------------------------------ */

struct instants {
    struct cover_cut *cut[COVER_INSTANTS_MAX];
    int64_t spare[COVER_INSTANTS_MAX];
    int n, spared; /* number of instants; times that room was spared at an instant */
};

static int add_instant(struct cover *c, struct instants *in, int32_t op)
{
    int at = in->n;
    if (!c->cut[op] && !(c->cut[op] = cover_cut_new(c->g, op)))
        return -ENOMEM;
    for (; at && in->cut[at - 1]->op > op; at--) {
        in->cut[at] = in->cut[at - 1];
        in->spare[at] = in->spare[at - 1];
    }
    in->cut[at] = c->cut[op];
    in->spare[at] = 0;
    in->n++;
    return 0;
}

static void choose(struct proposal *p, const struct instants *in, const uint8_t *held)
{
    const struct sched *s = p->c->s;
    const struct graph *g = p->c->g;
    sched_default(s, p->choice);
    for (int32_t k = 0; k < s->n_gaps; k++) {
        const struct sched_gap *gap = &s->gaps[k];
        int n = 0, there = 0;
        for (int i = 0; i < in->n; i++)
            if (gap->from <= in->cut[i]->op && gap->to > in->cut[i]->op && in->cut[i]->kind[gap->val] == COVER_CHOICE) {
                n++;
                there += held[(size_t)i * (size_t)g->n_vals + (size_t)gap->val];
            }
        decide(p, k, there, n);
    }
}

/* Index of the instant at op t or t - 1; -1: none. */
static int instant_at(const struct instants *in, int32_t t)
{
    for (int i = 0; i < in->n; i++)
        if (in->cut[i]->op == t || in->cut[i]->op == t - 1)
            return i;
    return -1;
}

/* The plan is over the limit at some op. If the op is no instant yet, it becomes one; if it is one, memory is used between
 * the instants, for which room is spared there. Where too much room would be spared, the highest of the other ops over
 * the limit becomes an instant, which at least tightens the bound. */
static int object(struct proposal *p, struct instants *in)
{
    const struct graph *g = p->c->g;
    const int64_t over = p->t.r.peak_bytes - p->limit_bytes;
    int rc = mincut_profile(&p->t);
    int32_t hot = 0, other = -1;
    if (rc)
        return rc;
    for (int32_t t = 1; t < g->n_ops; t++)
        hot = p->t.use[t] > p->t.use[hot] ? t : hot;
    for (int32_t t = 0; t < g->n_ops; t++)
        if (p->t.use[t] > p->limit_bytes && (other < 0 || p->t.use[t] > p->t.use[other]) && instant_at(in, t) < 0)
            other = t;
    const int at = instant_at(in, hot);
    if (at >= 0 && over <= p->limit_bytes / SPARE_MOST) {
        in->spare[at] += over + p->limit_bytes / 500;
        in->spared++;
        return 0;
    }
    return other >= 0 && in->n < (at >= 0 ? FOR_BOUND : COVER_INSTANTS_MAX) ? add_instant(p->c, in, other) : -ENOSPC;
}

static int several_instants(struct proposal *p)
{
    struct instants in = {0};
    int rc = p->b->n_top ? add_instant(p->c, &in, p->b->top[0]) : -ENOSPC;
    for (int round = 0; round < ROUNDS && in.spared <= SPARED && !rc && !settled(p) && !late(p->c); round++) {
        const struct cover_milp q = {.g = p->c->g, .cuts = in.cut, .n_cuts = in.n, .limit_bytes = p->bound_bytes,
                                     .spare_bytes = in.spare, .max_nodes = NODES, .time_limit_s = left_s(p->c)};
        struct cover_milp_result x;
        rc = cover_milp_solve(&q, &x);
        if (rc)
            break;
        if (!in.spared) { /* a program with spare room proves nothing */
            p->b->impossible |= x.impossible;
            p->b->ns = x.bound_ns > p->b->ns ? x.bound_ns : p->b->ns;
        }
        if (x.found) {
            choose(p, &in, x.held);
            rc = mincut_trial(&p->t, p->choice);
        }
        const int found = x.found, solved = found && x.value_ns - x.bound_ns <= SOLVED * x.value_ns;
        cover_milp_result_free(&x);
        if (rc || !found || !p->t.r.ok)
            break;
        if (p->t.r.peak_bytes > p->limit_bytes) {
            rc = solved ? object(p, &in) : -ENOSPC; /* with more instants CBC's search would end even further from its bound */
        } else {
            rc = offer(p);
            break;
        }
    }
    return rc == -E2BIG || rc == -ENOSPC ? 0 : rc;
}

/* For small graphs: the exact search over states, which proves more than the covering program. Returns 1 if its plan, within
 * max_bytes, needs more than the limit. */
static int exactly_within(struct proposal *p, const struct milp_model *m, int64_t max_bytes)
{
    const struct graph *g = p->c->g;
    struct milp_found f = {0};
    struct sim_result r;
    const int proves = max_bytes == p->bound_bytes;
    const int64_t cutoff_ns = p->r->ok ? p->r->ns - g->total_ns : 0;
    plan_reset(&p->t.plan);
    const struct milp_effort effort = {.until_s = p->c->deadline_s, .work_most = EXACT_WORK};
    int rc = milp_search(m, max_bytes, cutoff_ns, &effort, &p->t.plan, &f);
    if (proves) {
        p->b->ns = fmax(p->b->ns, f.bound_ns);
        p->b->impossible |= !rc && f.proved_infeasible && !p->r->ok;
        if (!rc && !f.found && p->r->ok)
            p->b->ns = fmax(p->b->ns, (double)cutoff_ns);
    }
    if (rc || !f.found)
        return rc;
    rc = sim_run(g, &p->t.plan, max_bytes, &r);
    if (rc || !r.ok)
        return rc;
    if (proves)
        p->b->ns = fmax(p->b->ns, (double)(r.ns - g->total_ns));
    if (r.peak_bytes > p->limit_bytes)
        return 1;
    if (!p->r->ok || r.ns < p->r->ns) {
        *p->r = r;
        rc = plan_copy(p->best, &p->t.plan);
    }
    return rc;
}

/* For traces of a few more ops: the exact search as if small values needed no memory. It proves a bound, or that no plan exists, and
 * now and then its plan keeps within the limit all the same. */
static int roughly(struct proposal *p)
{
    const struct graph *g = p->c->g;
    const struct milp_effort effort = {.until_s = p->c->deadline_s, .work_most = ROUGH_WORK};
    struct milp_model m = {0};
    struct milp_found f = {0};
    struct sim_result r;
    const int64_t cutoff_ns = p->r->ok ? p->r->ns - g->total_ns : 0;
    int rc = milp_model_new(g, &m);
    if (!rc) {
        milp_model_relax(&m, p->limit_bytes / ROUGH_PART);
        plan_reset(&p->t.plan);
        rc = milp_search(&m, p->bound_bytes, cutoff_ns, &effort, &p->t.plan, &f);
        p->b->ns = fmax(p->b->ns, f.bound_ns);
        p->b->impossible |= !rc && f.proved_infeasible;
    }
    if (!rc && f.found)
        rc = sim_run(g, &p->t.plan, p->limit_bytes, &r);
    if (!rc && f.found && r.ok && r.peak_bytes <= p->limit_bytes && (!p->r->ok || r.ns < p->r->ns)) {
        *p->r = r;
        rc = plan_copy(p->best, &p->t.plan);
    }
    milp_model_free(&m);
    return rc == -E2BIG || rc == -ETIME ? 0 : rc;
}

static int exactly(struct proposal *p)
{
    struct milp_model m = {0};
    int rc = milp_model_new(p->c->g, &m);
    if (!rc)
        rc = exactly_within(p, &m, p->bound_bytes);
    if (rc == 1)
        rc = exactly_within(p, &m, p->limit_bytes);
    milp_model_free(&m);
    return rc == -E2BIG || rc == -ETIME ? 0 : rc;
}

int cover_prove(struct cover *c, int64_t limit_bytes, double has_ns, struct cover_bound *b)
{
    struct plan none = {0};
    struct sim_result r = {.ok = has_ns > 0, .ns = c->g->total_ns + (int64_t)has_ns};
    struct proposal p = {.c = c, .limit_bytes = limit_bytes, .bound_bytes = limit_bytes, .best = &none, .r = &r, .b = b};
    const int rc = c->g->n_ops <= ROUGH_OPS && !(has_ns > 0 && b->ns >= has_ns) ? roughly(&p) : 0;
    plan_free(&p.t.plan);
    plan_free(&none);
    return rc;
}

int cover_plan(struct cover *c, const struct cover_ask *ask, struct plan *out, struct sim_result *r, struct cover_bound *b)
{
    const int64_t limit_bytes = ask->limit_bytes;
    struct proposal p = {.c = c, .limit_bytes = limit_bytes, .bound_bytes = ask->bound_bytes, .best = out, .r = r, .b = b};
    memset(r, 0, sizeof *r);
    plan_reset(out);
    int rc = cover_bound(c, ask->bound_bytes, b);
    if (rc || b->impossible)
        return rc ? rc : -ENOSPC;
    rc = mincut_try_init(&p.t, c->g, c->s, limit_bytes);
    p.choice = malloc((size_t)c->s->n_gaps + 1);
    if (!rc && !p.choice)
        rc = -ENOMEM;
    if (!rc) { /* the program as it is may fit */
        sched_default(c->s, p.choice);
        rc = mincut_trial(&p.t, p.choice);
        if (!rc)
            rc = offer(&p);
    }
    if (!rc && !settled(&p))
        rc = single_instants(&p);
    if (!rc && !r->ok) /* an online policy's plan, in case time is short */
        rc = cover_online(c, limit_bytes, out, r);
    if (!rc && !settled(&p) && c->g->n_ops <= CBC_OPS)
        rc = several_instants(&p);
    if (!rc && !settled(&p) && c->g->n_ops > EXACT_OPS && c->g->n_ops <= ROUGH_OPS && !late(c))
        rc = roughly(&p);
    const int beaten = !rc && ask->beaten_ns > 0 && b->ns >= ask->beaten_ns;
    if (!rc && !beaten && !b->impossible && !settled(&p) && !late(c))
        rc = cover_polish(c, limit_bytes, b->ns, ask->thorough, out, r);
    if (!rc && !beaten && !b->impossible && !r->ok && !late(c) && cover_any_length(c)) {
        rc = cover_polish(c, limit_bytes, b->ns, ask->thorough, out, r);
        c->any_length = 0;
    }
    if (!rc && !beaten && !b->impossible && c->g->n_ops <= EXACT_OPS && !(r->ok && (double)(r->ns - c->g->total_ns) <= b->ns) && !late(c))
        rc = exactly(&p);
    mincut_try_free(&p.t);
    free(p.choice);
    return rc ? rc : beaten ? -ECANCELED : r->ok ? 0 : -ENOSPC;
}
