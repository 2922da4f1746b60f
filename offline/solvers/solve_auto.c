/* The solvers `auto`: what a user gets, and `best`: what a program that runs gets.
 *
 * Without copies to the host: the covering program's plans on a ladder of limits (cover/ladder.h). Work is counted, so the same
 * trace and limit give the same plan on any machine, a larger limit never a dearer one, and the proved bound comes with
 * it. A time limit, if one is given, is kept, at the price of that promise where it strikes.
 *
 * With copies the program has no answer, and two threads share the time. One anneals, exactly as the solver `anneal` would.
 * The other runs the other solvers, each with a slice of the time, since any of them may know the graph's shape better than
 * chance does, and then anneals from their plans; then the plan of the ladder is looked at. What is left of the time both anneal on
 * from the best they have. The cheapest plan of all wins; each was judged by the simulator.
 *
 * `best` gives up the promise about larger limits: a program has one limit, and a rung may stand as much as a step below it. It stands still while
 * it is planned for, so the ladder gets a small part of the time, with copies none; then two threads anneal, tell each
 * other what they find, and end as soon as more is not worth the time (anneal_pool.h); where that is dear the minimum cut is asked too. Where
 * all that finds no plan the ladder goes on. */
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

enum { AUTO_DEFAULT_S = 25, AUTO_PATIENCE = 16, AUTO_SEEDS = 8 };
#define AUTO_COVER_SHARE 0.12 /* of the time */
#define BEST_SHORT_S 2
#define BEST_AUTO_SHARE 0.5    /* of so short a time: the rest anneals */
#define BEST_NEAR 0.02         /* of the iteration: a plan so near its bound is annealed for as long as it took to make */
#define BEST_LEAST_SHARE 0.15  /* or for this part of the time, if that is more */
#define BEST_CLIMB_SHARE 0.15  /* of the time: the ladder finds little more in more of it */
#define BEST_CUT_SHARE 0.12    /* of the time, at its end, for the minimum cut */
#define BEST_DEAR 0.3          /* of the iteration: a plan that adds more may not be the last word */
#define BEST_ANNEAL_SHARE 0.5  /* of the time, where there is no plan yet: the ladder gets the rest */

/* In the order of how much they tend to find for their time. Shares are of the whole time limit. */
static const struct {
    const char *name;
    double share;
    int32_t max_ops; /* beyond which it is not worth its time; 0: none */
} auto_stages[] = {{"dtr", 0.05, 0},    {"mincut", 0.12, 0}, {"chen-greedy", 0.05, 0},
                   {"milp", 0.25, 100}, {"chain", 0.12, 0},  {"chain-float", 0.12, 0}};

static void auto_forget(void *ladder) { ladder_free(ladder); }

struct auto_side {
    const struct graph *g;
    struct solver_opts opts;
    double deadline_s;
    struct plan plan;
    struct solver_report rep;
    int rc;
};

/* The cheaper of the plan at hand, if rc says that there is one, and another one. 0, or -ENOMEM and none. */
static int keep_cheaper(int rc, struct plan *out, struct solver_report *rep, const struct plan *p, const struct solver_report *r)
{
    if (!rc && r->planned_ns >= rep->planned_ns)
        return 0;
    rc = plan_copy(out, p); /* which leaves nothing of what was there */
    if (!rc)
        *rep = *r;
    return rc;
}

static void auto_take(struct auto_side *a, const struct plan *p, const struct solver_report *r)
{
    a->rc = keep_cheaper(a->rc, &a->plan, &a->rep, p, r);
}

static void auto_judge(struct auto_side *a, int rc, const struct plan *p, const struct solver_report *r)
{
    if (!rc)
        auto_take(a, p, r);
    else if (a->rc)
        snprintf(a->rep.message, sizeof a->rep.message, "%s", r->message);
}

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

static void auto_others(struct auto_side *a)
{
    struct plan seeds[AUTO_SEEDS] = {0}, last = {0};
    const struct plan *seed_at[AUTO_SEEDS];
    struct solver_report r;
    int n_seeds = 0;
    for (size_t k = 0; k < sizeof auto_stages / sizeof *auto_stages; k++) {
        const struct solver *s = solver_find(auto_stages[k].name);
        struct solver_opts o = a->opts;
        o.time_limit_s = a->opts.time_limit_s * auto_stages[k].share;
        if (!s || (auto_stages[k].max_ops && a->g->n_ops > auto_stages[k].max_ops) ||
            solver_now_s() + o.time_limit_s > a->deadline_s)
            continue;
        if (!solver_run(s, a->g, &o, &seeds[n_seeds], &r)) {
            auto_take(a, &seeds[n_seeds], &r);
        } else {
            /* not within the limit: but a plan a little over it may need no more than a few copies */
            o.limit_bytes += o.limit_bytes / 20;
            if (!o.offload || solver_run(s, a->g, &o, &seeds[n_seeds], &r))
                continue;
        }
        seed_at[n_seeds] = &seeds[n_seeds];
        n_seeds++;
    }
    memset(&r, 0, sizeof r);
    const struct solver_opts *o = &a->opts;
    auto_judge(a, anneal_solve(a->g, o, a->deadline_s, AUTO_PATIENCE, seed_at, n_seeds, 1, &last, &r), &last, &r);
    /* last, since plans without copies seldom win here, and annealing that starts from them seldom leaves them */
    if (!auto_climb(a->g, o, solver_now_s() + AUTO_COVER_SHARE * o->time_limit_s, &last, &r))
        auto_take(a, &last, &r);
    if (!a->rc)
        a->rc = anneal_go_on(a->g, o, a->deadline_s, AUTO_PATIENCE, &a->plan, &a->rep);
    for (int k = 0; k < AUTO_SEEDS; k++)
        plan_free(&seeds[k]);
    plan_free(&last);
}

static void *auto_thread(void *side)
{
    auto_others(side);
    return NULL;
}

static int auto_both(const struct graph *g, const struct solver_opts *opts, double deadline_s, struct plan *out,
                     struct solver_report *rep)
{
    struct auto_side other = {.g = g, .opts = *opts, .deadline_s = deadline_s, .rc = -ENOSPC}, own = other;
    struct plan p = {0};
    struct solver_report r = {0};
    pthread_t thread;
    other.opts.seed = opts->seed * 2 + 1; /* not the dice that the first side throws */
    other.opts.progress = own.opts.progress = 0;
    const int alone = pthread_create(&thread, NULL, auto_thread, &other);
    if (opts->progress)
        cli_progress("auto: %.0f s at most", opts->time_limit_s);
    auto_judge(&own, anneal_solve(g, opts, deadline_s, AUTO_PATIENCE, NULL, 0, 0, &p, &r), &p, &r);
    if (!own.rc)
        own.rc = anneal_go_on(g, opts, deadline_s, AUTO_PATIENCE, &own.plan, &own.rep);
    if (alone)
        auto_others(&other);
    else
        pthread_join(thread, NULL);
    auto_judge(&own, other.rc, &other.plan, &other.rep);
    *rep = own.rep;
    if (!own.rc && plan_copy(out, &own.plan))
        own.rc = -ENOMEM;
    plan_free(&p);
    plan_free(&own.plan);
    plan_free(&other.plan);
    return own.rc;
}

/* For a program that waits: two threads anneal, and end as soon as more is not worth the time. */
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

/* Where annealing found nothing, or what is dear, the minimum cut may know replays that it did not find. */
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

/* began_s: since when the program has waited; bound_ns: no plan takes less; seed: a plan to begin with, or NULL. */
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

static int auto_offload(const struct graph *g, struct solver_opts *o, struct plan *out, struct solver_report *rep)
{
    o->time_limit_s = o->time_limit_s > 0 ? o->time_limit_s : AUTO_DEFAULT_S;
    o->memo = NULL; /* threads do not share one */
    const double deadline_s = solver_now_s() + o->time_limit_s;
    const int rc = auto_both(g, o, deadline_s, out, rep);
    const int late = solver_now_s() >= deadline_s;
    rep->proved_infeasible = 0;
    if (!rc && late)
        snprintf(rep->message, sizeof rep->message, "time is up (%.1f s): the best plan so far", o->time_limit_s);
    return rc == -ENOSPC && late ? -ETIME : rc;
}

/* The limit may be none. */
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
    if (o.offload)
        return auto_offload(g, &o, out, rep);
    const double deadline_s = o.time_limit_s > 0 ? solver_now_s() + o.time_limit_s : 0;
    int rc = auto_climb(g, &o, deadline_s, out, rep);
    const int late = deadline_s > 0 && solver_now_s() >= deadline_s;
    if (!rc && late)
        snprintf(rep->message, sizeof rep->message, "time is up (%.1f s): the best plan so far", o.time_limit_s);
    return rc == -ENOSPC && late && !rep->proved_infeasible ? -ETIME : rc;
}

/* The ladder's plan within the little time that it takes as a rule, then annealing begun at that, for this limit alone. */
static int best_without_copies(const struct graph *g, const struct solver_opts *opts, double began_s, double whole_s, struct plan *out,
                               struct solver_report *rep)
{
    struct solver_memo memo = {0};
    struct solver_opts o = *opts;
    struct plan p = {0};
    struct solver_report r = {0};
    o.memo = o.memo ? o.memo : &memo; /* the ladder stands where it stood when it goes on */
    o.time_limit_s = whole_s * BEST_CLIMB_SHARE;
    int rc = solve_auto(g, &o, out, rep);
    if (!rep->proved_optimal && !rep->proved_infeasible && (!rc || rc == -ENOSPC || rc == -ETIME)) {
        const double bound_ns = rep->bound_ns; /* 0 without a plan: none */
        const int found = best_anneal(g, opts, began_s, began_s + whole_s * (rc ? BEST_ANNEAL_SHARE : 1), rc ? (double)g->total_ns : bound_ns,
                                      rc ? NULL : out, &p, &r);
        if (!found)
            rc = keep_cheaper(rc, out, rep, &p, &r);
        if (!rc)
            rep->bound_ns = fmin(bound_ns, (double)rep->planned_ns);
        else if ((o.time_limit_s = began_s + whole_s - solver_now_s()) > 0)
            rc = solve_auto(g, &o, out, rep);
    }
    plan_free(&p);
    solver_memo_free(&memo);
    return rc;
}

/* Where there is next to no time to save: half of it for the ladder, and annealing to its end. */
static int best_in_short(const struct graph *g, const struct solver_opts *opts, double began_s, double whole_s, struct plan *out, struct solver_report *rep)
{
    struct solver_opts o = *opts;
    struct plan p = {0};
    struct solver_report r = {0};
    double deadline_s = began_s + whole_s;
    o.time_limit_s = whole_s * BEST_AUTO_SHARE;
    int rc = solve_auto(g, &o, out, rep);
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

static int solve_best(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    const double whole_s = opts->time_limit_s > 0 ? opts->time_limit_s : AUTO_DEFAULT_S, began_s = solver_now_s();
    if (opts->offload)
        return fits_as_it_is(g, opts, out, rep) ? 0 : best_anneal(g, opts, began_s, began_s + whole_s, (double)g->total_ns, NULL, out, rep);
    return whole_s <= BEST_SHORT_S ? best_in_short(g, opts, began_s, whole_s, out, rep) : best_without_copies(g, opts, began_s, whole_s, out, rep);
}

const struct solver solver_best = {"best", "as auto, then cheaper for this limit alone; a smaller one may get a cheaper plan", solve_best};
const struct solver solver_auto = {"auto", "everything that fits the time, the best plan wins", solve_auto};
