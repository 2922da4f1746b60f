/* The solvers `auto`, for users, and `best`, for a running program.
 *
 * `auto` without copies and without a time limit: the covering program's plans on a ladder of limits, fixed parts of the trace's unconstrained
 * peak, down to the floor (cover/ladder.h); a rung is one of these limits. Work is counted, so the same
 * trace and limit give the same plan on any machine, a larger limit never gives a dearer plan, and a proved bound comes with the plan.
 *
 * `auto` with copies or a time limit plans for the given limit alone, since a rung of the ladder may stand up to a step below it. In half
 * of the time one thread climbs the ladder and anneals from nothing, the other asks every other solver, any of which may know the graph's
 * shape better than chance does. In the rest both threads anneal on from the best plan found: to the end where a time limit was
 * given, else until more searching is not worth the time (anneal_pool.h). Each plan was judged by the simulator.
 *
 * `best` gives up the promise about larger limits: a program has one limit, and a rung may stand up to a step below it. The program stands still
 * while it is planned for, so the ladder gets a small part of the time, with copies none; then two threads anneal, share their best schedule,
 * and end as soon as more searching is not worth the time (anneal_pool.h); where their plan is dear the minimum cut is asked too. If
 * no plan was found, the ladder goes on. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/model/sim.h"
#include "offline/solvers/anneal/solve_anneal.h"
#include "offline/solvers/cover/cover_bound.h"
#include "offline/solvers/cover/ladder.h"

enum { AUTO_DEFAULT_S = 25, AUTO_PATIENCE = 16 };
#define AUTO_CLIMB_SHARE 0.25 /* part of the time for the ladder */
#define AUTO_FIRST_SHARE 0.5  /* part of the time for all solvers; in the rest the best plan is annealed on */
#define AUTO_SHORT_S 0.5      /* seconds: parts of a shorter time end before they have begun */
#define AUTO_SAME 1e-4        /* part of the iteration: a plan this near its bound is left alone */
#define BEST_SHORT_S 2
#define BEST_NO_TIME_S 0.1     /* seconds: annealing may not have one schedule in a shorter time */
#define BEST_AUTO_SHARE 0.5    /* part of a time up to BEST_SHORT_S for the ladder; the rest anneals */
#define BEST_NEAR 0.02         /* part of the iteration: a plan this near its bound is annealed for as long as it took to make */
#define BEST_LEAST_SHARE 0.15  /* part of the time for which such a plan is annealed, if longer */
#define BEST_CLIMB_SHARE 0.15  /* part of the time for the ladder, which finds little more in a larger part */
#define BEST_CUT_SHARE 0.12    /* part of the time, at its end, for the minimum cut */
#define BEST_DEAR 0.3          /* part of the iteration: with a larger overhead the minimum cut is asked too */
#define BEST_ANNEAL_SHARE 0.5  /* part of the time for annealing where no plan is known; the ladder gets the rest */

/* Solvers in the order of how much they tend to find for their time. share: part of the whole time limit. */
static const struct {
    const char *name;
    double share;
    int32_t max_ops; /* for more ops the solver is not worth its time; 0: no limit */
} auto_stages[] = {{"dtr", 0.04, 0}, {"mincut", 0.3, 0}, {"chen-greedy", 0.03, 0}, {"milp", 0.2, 100}, {"chain", 0.06, 0}, {"chain-float", 0.06, 0}};

static void auto_forget(void *ladder) { ladder_free(ladder); }

/* One of the two threads of auto's first stage. */
struct auto_side {
    const struct graph *g;
    struct solver_opts opts;
    double climb_s, deadline_s; /* ends of the ladder's time and of the first stage */
    struct plan plan;
    struct solver_report rep;
    int rc;
    double bound_ns; /* bound proved by the ladder; 0: none */
    int impossible;  /* proved: no plan without copies exists */
};

/* Keep the cheaper of the plan in *out (valid if rc is 0) and *p. 0, or -ENOMEM with no plan in *out. */
static int keep_cheaper(int rc, struct plan *out, struct solver_report *rep, const struct plan *p, const struct solver_report *r)
{
    if (!rc && r->planned_ns >= rep->planned_ns)
        return 0;
    rc = plan_copy(out, p); /* on -ENOMEM *out is empty */
    if (!rc)
        *rep = *r;
    return rc;
}

static void auto_take(struct auto_side *a, const struct plan *p, const struct solver_report *r) { a->rc = keep_cheaper(a->rc, &a->plan, &a->rep, p, r); }

/* The ladder's plan, within the time. */
static int auto_climb(const struct graph *g, const struct solver_opts *opts, double deadline_s, struct plan *out, struct solver_report *rep)
{
    struct ladder *l = opts->memo ? opts->memo->what : NULL, *own = NULL;
    struct cover_bound b;
    struct sim_result r;
    if (!l && !(l = own = ladder_new(g)))
        return -ENOMEM;
    int rc = ladder_plan(l, opts->limit_bytes, deadline_s, out, &b);
    memset(rep, 0, sizeof *rep);
    rep->proved_infeasible = b.impossible && !opts->offload;
    if (rc == -ENOSPC)
        snprintf(rep->message, sizeof rep->message, "%s", b.impossible ? "proved: no plan without copies to the host fits" : "none found");
    if (!rc)
        rc = sim_run(g, out, opts->limit_bytes, &r);
    if (!rc && !r.ok)
        rc = -EPROTO;
    if (!rc) {
        rep->planned_ns = r.ns;
        rep->peak_bytes = r.peak_bytes;
        rep->bound_ns = opts->offload ? 0 : (double)g->total_ns + fmin(b.ns, (double)(r.ns - g->total_ns));
        rep->proved_optimal = !opts->offload && b.ns >= (double)(r.ns - g->total_ns);
    }
    if (own && opts->memo) {
        opts->memo->what = own;
        opts->memo->drop = auto_forget;
    } else {
        ladder_free(own);
    }
    return rc;
}

/* The first thread: the ladder, whose plans have no copies, then annealing from nothing. */
static void *auto_climbs(void *arg)
{
    struct auto_side *a = arg;
    struct plan p = {0};
    struct solver_report r = {0};
    if (a->opts.limit_bytes >= a->g->floor_bytes) {
        if (!auto_climb(a->g, &a->opts, a->climb_s, &p, &r)) {
            auto_take(a, &p, &r);
            a->bound_ns = r.bound_ns;
        }
        a->impossible = r.proved_infeasible;
    }
    if ((!a->impossible || a->opts.offload) && (a->rc || !a->rep.proved_optimal) &&
        !anneal_solve(a->g, &a->opts, a->deadline_s, AUTO_PATIENCE, NULL, 0, 0, &p, &r))
        auto_take(a, &p, &r);
    else if (a->rc && r.message[0])
        snprintf(a->rep.message, sizeof a->rep.message, "%s", r.message);
    plan_free(&p);
    return NULL;
}

/* The second thread: every other solver in turn. The first, dtr, takes hardly any time. */
static void *auto_asks(void *arg)
{
    struct auto_side *a = arg;
    struct plan p = {0};
    struct solver_report r;
    for (size_t k = 0; k < sizeof auto_stages / sizeof *auto_stages; k++) {
        const struct solver *s = solver_find(auto_stages[k].name);
        struct solver_opts o = a->opts;
        const double left_s = a->deadline_s - solver_now_s();
        o.time_limit_s = fmin(a->opts.time_limit_s * auto_stages[k].share, left_s);
        o.memo = NULL;
        if (!s || (auto_stages[k].max_ops && a->g->n_ops > auto_stages[k].max_ops) || left_s <= 0)
            continue;
        if (!solver_run(s, a->g, &o, &p, &r))
            auto_take(a, &p, &r);
    }
    plan_free(&p);
    return NULL;
}

/* Run both threads; the cheaper plan goes to *out and *rep. rep->bound_ns: proved for plans without copies. */
static int auto_first(const struct graph *g, const struct solver_opts *o, double began_s, struct plan *out, struct solver_report *rep)
{
    struct auto_side climbs = {.g = g, .opts = *o, .climb_s = began_s + AUTO_CLIMB_SHARE * o->time_limit_s,
                               .deadline_s = began_s + AUTO_FIRST_SHARE * o->time_limit_s, .rc = -ENOSPC}, asks = climbs;
    pthread_t thread;
    climbs.opts.progress = asks.opts.progress = 0;
    const int alone = pthread_create(&thread, NULL, auto_asks, &asks);
    if (o->progress)
        cli_progress("auto: %.0f s at most", o->time_limit_s);
    auto_climbs(&climbs);
    if (alone)
        auto_asks(&asks);
    else
        pthread_join(thread, NULL);
    if (!asks.rc)
        auto_take(&climbs, &asks.plan, &asks.rep);
    *rep = climbs.rep;
    rep->proved_infeasible = climbs.impossible && !o->offload;
    rep->bound_ns = o->offload ? 0 : climbs.bound_ns;
    int rc = climbs.rc;
    if (!rc && plan_copy(out, &climbs.plan))
        rc = -ENOMEM;
    plan_free(&climbs.plan);
    plan_free(&asks.plan);
    return rc;
}

/* One of two annealing threads, which end as soon as more searching is not worth the time of the program that waits. */
struct best_side {
    const struct graph *g;
    struct solver_opts opts;
    double deadline_s;
    const struct plan *seed;
    struct anneal_pool *pool;
    int side, rc;
    struct plan plan;
    struct solver_report rep;
};

static void *best_thread(void *arg)
{
    struct best_side *b = arg;
    b->rc = anneal_solve_side(b->g, &b->opts, b->deadline_s, b->seed, b->pool, b->side, &b->plan, &b->rep);
    return NULL;
}

/* If annealing found no plan, or a dear one, the minimum cut may find better replays. */
static int best_or_cut(const struct graph *g, const struct solver_opts *opts, double deadline_s, int rc, struct plan *out, struct solver_report *rep)
{
    struct solver_opts o = *opts;
    struct plan cut = {0};
    struct solver_report r = {0};
    const struct solver *mincut = solver_find("mincut");
    o.time_limit_s = deadline_s - solver_now_s();
    if (!mincut || o.time_limit_s <= 0 || (rc && rc != -ENOSPC) || (!rc && (double)rep->planned_ns <= (1 + BEST_DEAR) * (double)g->total_ns))
        return rc;
    if (!solver_run(mincut, g, &o, &cut, &r))
        rc = keep_cheaper(rc, out, rep, &cut, &r);
    plan_free(&cut);
    return rc;
}

/* began_s: when the program began to wait; bound_ns: lower bound on any plan's time; seed: a plan to begin with, or NULL. */
static int best_anneal(const struct graph *g, const struct solver_opts *opts, double began_s, double deadline_s, double bound_ns, const struct plan *seed,
                       struct plan *out, struct solver_report *rep)
{
    struct anneal_pool pool;
    struct best_side side[2];
    pthread_t thread;
    int rc = anneal_pool_init(&pool, bound_ns, began_s);
    if (rc)
        return rc;
    const double cut_s = seed ? 0 : (deadline_s - began_s) * BEST_CUT_SHARE;
    for (int k = 0; k < 2; k++) {
        side[k] = (struct best_side){.g = g, .opts = *opts, .deadline_s = deadline_s - cut_s, .seed = seed, .pool = &pool, .side = k};
        side[k].opts.seed = opts->seed * 2 + (uint64_t)k;
    }
    const int alone = pthread_create(&thread, NULL, best_thread, &side[1]);
    if (opts->progress)
        cli_progress("best: %.0f s at most", deadline_s - solver_now_s());
    best_thread(&side[0]);
    if (!alone)
        pthread_join(thread, NULL);
    const struct best_side *b = &side[!alone && !side[1].rc && (side[0].rc || side[1].rep.planned_ns < side[0].rep.planned_ns)];
    rc = b->rc;
    *rep = b->rep;
    if (!rc)
        rc = plan_copy(out, &b->plan);
    for (int k = 0; k < 2; k++)
        plan_free(&side[k].plan);
    anneal_pool_free(&pool);
    if (!seed)
        rc = best_or_cut(g, opts, fmin(deadline_s, solver_now_s() + cut_s), rc, out, rep);
    return rc == -ENOSPC && solver_now_s() >= deadline_s ? -ETIME : rc;
}

/* If the time was too short to be divided: ask the solvers that take next to none, hundredths of a second for thousands of ops. */
static int auto_at_least(const struct graph *g, const struct solver_opts *opts, int rc, struct plan *out, struct solver_report *rep)
{
    static const char *const quick[] = {"chen-greedy", "chen-sqrt", "chain", "chain-float"};
    struct plan p = {0};
    struct solver_report r;
    for (size_t k = 0; k < sizeof quick / sizeof *quick && (rc == 0 || rc == -ENOSPC); k++) {
        const struct solver *s = solver_find(quick[k]);
        struct solver_opts o = *opts;
        o.memo = NULL;
        if (s && !solver_run(s, g, &o, &p, &r))
            rc = keep_cheaper(rc, out, rep, &p, &r);
    }
    plan_free(&p);
    return rc;
}

/* Every solver gets a part of the time, and the best plan found is annealed on. `all`: to the end of the time, which the user gave;
 * otherwise until more searching is not worth the time. */
static int auto_in_time(const struct graph *g, struct solver_opts *o, int all, struct plan *out, struct solver_report *rep)
{
    const double began_s = solver_now_s(), deadline_s = began_s + o->time_limit_s;
    struct plan p = {0};
    struct solver_report r = {0};
    int rc = auto_first(g, o, began_s, out, rep);
    const double bound_ns = rep->bound_ns;
    if ((!rc || rc == -ENOSPC) && !rep->proved_infeasible && !(bound_ns > 0 && !rc && (double)rep->planned_ns - bound_ns <= AUTO_SAME * (double)g->total_ns)) {
        const int found = solver_now_s() >= deadline_s ? -ETIME :
                          best_anneal(g, o, began_s, deadline_s, bound_ns > 0 ? bound_ns : (double)g->total_ns, rc ? NULL : out, &p, &r);
        if (!found)
            rc = keep_cheaper(rc, out, rep, &p, &r);
        else if (rc && r.message[0])
            snprintf(rep->message, sizeof rep->message, "%s", r.message);
        if (!rc && all && solver_now_s() < deadline_s)
            rc = anneal_go_on(g, o, deadline_s, AUTO_PATIENCE, out, rep);
    }
    plan_free(&p);
    if ((!rc || rc == -ENOSPC) && o->time_limit_s < AUTO_SHORT_S && !rep->proved_infeasible && solver_now_s() >= deadline_s)
        rc = auto_at_least(g, o, rc, out, rep);
    rep->bound_ns = rc ? 0 : fmin(bound_ns, (double)rep->planned_ns);
    rep->proved_optimal = !rc && bound_ns > 0 && (double)rep->planned_ns <= bound_ns;
    const int late = solver_now_s() >= deadline_s;
    if (!rc && late)
        snprintf(rep->message, sizeof rep->message, "time is up (%.1f s): the best plan so far", o->time_limit_s);
    return rc == -ENOSPC && late && !rep->proved_infeasible ? -ETIME : rc;
}

/* 1: the program fits the limit without eviction, and *out is its plan. */
static int fits_as_it_is(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    const struct solver *none = solver_find("none");
    if (!none || solver_run(none, g, opts, out, rep))
        return 0;
    rep->proved_optimal = 1;
    rep->bound_ns = (double)g->total_ns;
    return 1;
}

static int solve_auto(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    struct solver_opts o = *opts;
    if (fits_as_it_is(g, &o, out, rep))
        return 0;
    if (!o.offload && o.time_limit_s <= 0)
        return auto_climb(g, &o, 0, out, rep);
    o.time_limit_s = o.time_limit_s > 0 ? o.time_limit_s : AUTO_DEFAULT_S;
    return auto_in_time(g, &o, opts->time_limit_s > 0, out, rep);
}

/* The ladder alone, for o->time_limit_s. */
static int climb_in_time(const struct graph *g, const struct solver_opts *o, struct plan *out, struct solver_report *rep)
{
    if (fits_as_it_is(g, o, out, rep))
        return 0;
    const double deadline_s = solver_now_s() + o->time_limit_s;
    const int rc = auto_climb(g, o, deadline_s, out, rep);
    return rc == -ENOSPC && solver_now_s() >= deadline_s && !rep->proved_infeasible ? -ETIME : rc;
}

/* The ladder's plan within the little time it takes as a rule, then annealing from this plan, for this limit alone. */
static int best_without_copies(const struct graph *g, const struct solver_opts *opts, double began_s, double whole_s, struct plan *out,
                               struct solver_report *rep)
{
    struct solver_memo memo = {0};
    struct solver_opts o = *opts;
    struct plan p = {0};
    struct solver_report r = {0};
    o.memo = o.memo ? o.memo : &memo; /* keeps the ladder's rungs until it goes on below */
    o.time_limit_s = whole_s * BEST_CLIMB_SHARE;
    int rc = climb_in_time(g, &o, out, rep);
    if (!rep->proved_optimal && !rep->proved_infeasible && (!rc || rc == -ENOSPC || rc == -ETIME)) {
        const double bound_ns = rep->bound_ns; /* 0 if no plan was found: no bound */
        const int found = best_anneal(g, opts, began_s, began_s + whole_s * (rc ? BEST_ANNEAL_SHARE : 1), rc ? (double)g->total_ns : bound_ns,
                                      rc ? NULL : out, &p, &r);
        if (!found)
            rc = keep_cheaper(rc, out, rep, &p, &r);
        if (!rc)
            rep->bound_ns = fmin(bound_ns, (double)rep->planned_ns);
        else if ((o.time_limit_s = began_s + whole_s - solver_now_s()) > 0)
            rc = climb_in_time(g, &o, out, rep);
    }
    plan_free(&p);
    solver_memo_free(&memo);
    return rc;
}

/* For times up to BEST_SHORT_S, of which little can be saved: half for the ladder, then annealing to the end. */
static int best_in_short(const struct graph *g, const struct solver_opts *opts, double began_s, double whole_s, struct plan *out, struct solver_report *rep)
{
    struct solver_opts o = *opts;
    struct plan p = {0};
    struct solver_report r = {0};
    double deadline_s = began_s + whole_s;
    o.time_limit_s = whole_s * BEST_AUTO_SHARE;
    int rc = climb_in_time(g, &o, out, rep);
    if (rep->proved_optimal || rep->proved_infeasible || (rc && rc != -ENOSPC && rc != -ETIME))
        return rc;
    const struct plan *seed = out;
    const double now_s = solver_now_s(), took_s = now_s - began_s, least_s = whole_s * BEST_LEAST_SHARE;
    if (!rc && (double)rep->planned_ns - rep->bound_ns <= BEST_NEAR * (double)g->total_ns)
        deadline_s = fmin(deadline_s, now_s + fmax(took_s, least_s));
    const double bound_ns = rep->bound_ns;
    if (!anneal_solve(g, opts, deadline_s, AUTO_PATIENCE, &seed, !rc, 1, &p, &r)) {
        rc = keep_cheaper(rc, out, rep, &p, &r);
        rep->bound_ns = fmin(bound_ns, (double)rep->planned_ns);
    }
    plan_free(&p);
    return rc;
}

static int best_in_time(const struct graph *g, const struct solver_opts *opts, double whole_s, struct plan *out, struct solver_report *rep)
{
    const double began_s = solver_now_s();
    if (opts->offload)
        return fits_as_it_is(g, opts, out, rep) ? 0 : best_anneal(g, opts, began_s, began_s + whole_s, (double)g->total_ns, NULL, out, rep);
    return whole_s <= BEST_SHORT_S ? best_in_short(g, opts, began_s, whole_s, out, rep) : best_without_copies(g, opts, began_s, whole_s, out, rep);
}

static int solve_best(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    const double whole_s = opts->time_limit_s > 0 ? opts->time_limit_s : AUTO_DEFAULT_S;
    const int rc = best_in_time(g, opts, whole_s, out, rep);
    if ((rc != -ENOSPC && rc != -ETIME) || whole_s >= BEST_NO_TIME_S || rep->proved_infeasible)
        return rc;
    /* with copies the ladder was not asked yet; even with no time left it makes its first plan */
    if (opts->offload && opts->limit_bytes >= g->floor_bytes && !auto_climb(g, opts, solver_now_s(), out, rep))
        return 0;
    return auto_at_least(g, opts, -ENOSPC, out, rep) ? rc : 0;
}

const struct solver solver_best = {"best", "as auto, then cheaper for this limit alone; a smaller one may get a cheaper plan", solve_best};
const struct solver solver_auto = {"auto", "everything that fits the time, the best plan wins", solve_auto};
