/* The solver `auto`: what a user gets.
 *
 * The other solvers run first, each for a slice of the time, since any of them may know the graph's shape better than
 * chance does. Their plans seed the annealing, which gets the rest of the time. What comes back is the cheapest plan
 * of all; each was judged by the simulator, so none is dearer than what one of our solvers finds in its slice. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "offline/anneal_solve.h"
#include "offline/cli.h"
#include "offline/sim.h"

enum { AUTO_DEFAULT_S = 25, AUTO_PATIENCE = 12, AUTO_SEEDS = 8 };

/* In the order of how much they tend to find for their time. Shares are of the whole time limit. */
static const struct {
    const char *name;
    double share;
} auto_stages[] = {{"none", 0.05}, {"dtr", 0.05}, {"mincut", 0.08}, {"chen-greedy", 0.04},
                   {"chen-sqrt", 0.02}, {"chain", 0.08}, {"chain-float", 0.08}};

struct auto_best {
    struct plan *out;
    struct solver_report *rep;
    int found;
};

static void auto_take(struct auto_best *b, const struct plan *p, const struct solver_report *r)
{
    if (b->found && r->planned_ns >= b->rep->planned_ns)
        return;
    if (plan_copy(b->out, p))
        return;
    *b->rep = *r;
    b->found = 1;
}

static int solve_auto(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    const double limit_s = opts->time_limit_s > 0 ? opts->time_limit_s : AUTO_DEFAULT_S;
    const double deadline_s = solver_now_s() + limit_s;
    struct plan seeds[AUTO_SEEDS] = {0}, last = {0};
    const struct plan *seed_at[AUTO_SEEDS];
    struct solver_report r;
    struct auto_best best = {.out = out, .rep = rep};
    int n_seeds = 0, rc = -ENOSPC;
    for (size_t k = 0; k < sizeof auto_stages / sizeof *auto_stages; k++) {
        const struct solver *s = solver_find(auto_stages[k].name);
        struct solver_opts o = *opts;
        o.time_limit_s = limit_s * auto_stages[k].share;
        o.progress = 0;
        if (!s || n_seeds == AUTO_SEEDS || solver_now_s() + o.time_limit_s > deadline_s)
            continue;
        if (opts->progress)
            cli_progress("auto: %s", s->name);
        if (solver_run(s, g, &o, &seeds[n_seeds], &r))
            continue;
        auto_take(&best, &seeds[n_seeds], &r);
        seed_at[n_seeds] = &seeds[n_seeds];
        n_seeds++;
        if (best.found && rep->planned_ns <= g->total_ns)
            break;
    }
    if (!best.found || rep->planned_ns > g->total_ns) {
        if (opts->progress)
            cli_progress("auto: annealing");
        memset(&r, 0, sizeof r);
        rc = anneal_solve(g, opts, deadline_s, AUTO_PATIENCE, seed_at, n_seeds, &last, &r);
        if (!rc)
            auto_take(&best, &last, &r);
        else if (!best.found)
            snprintf(rep->message, sizeof rep->message, "%s", r.message);
    } else {
        rep->proved_optimal = 1;
    }
    if (best.found) {
        rc = 0;
        if (solver_now_s() >= deadline_s && !rep->proved_optimal)
            snprintf(rep->message, sizeof rep->message, "time is up (%.1f s): the best plan so far", limit_s);
    } else if (rc == -ENOSPC && solver_now_s() >= deadline_s) {
        rc = -ETIME;
    }
    for (int k = 0; k < AUTO_SEEDS; k++)
        plan_free(&seeds[k]);
    plan_free(&last);
    return rc;
}

const struct solver solver_auto = {"auto", "everything that fits the time, the best plan wins", solve_auto};
