/* inst_checkmate: `remat solve` for checkmate-v1 documents: `milp` (exact) and `milp-lp` (relaxed and rounded). */
#include "offline/solvers/checkmate/checkmate.h"
#include "offline/solvers/checkmate/checkmate_milp.h"
#include "offline/solvers/checkmate/checkmate_search.h"
#include "offline/solvers/solver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SECONDS 60.0

static void report(const struct checkmate_answer *a, double start, struct instance_result *out)
{
    out->integral = 1;
    out->feasible = a->found;
    out->proved_optimal = a->proved_optimal;
    out->value = a->found ? (double)a->cost : NAN;
    out->peak = a->found ? (double)a->peak : -1;
    out->bound = a->proved_infeasible ? NAN : a->bound;
    out->solve_seconds = solver_now_s() - start;
    if (a->proved_infeasible)
        snprintf(out->message, sizeof out->message, "no schedule fits the budget");
    else if (!a->found)
        snprintf(out->message, sizeof out->message, "no schedule was found in the time allowed");
}

static int schedule(const struct checkmate *c, const struct checkmate_plan *p, const struct checkmate_answer *a,
                    struct instance_result *out)
{
    int32_t *order = malloc((size_t)c->n * ((size_t)c->n + 1) / 2 * sizeof *order);
    if (order)
        out->schedule = checkmate_schedule_json(c, order, checkmate_order(c, p, order), a->cost, a->peak);
    free(order);
    return out->schedule ? 0 : -ENOMEM;
}

/* CBC first: it solves small instances at once. Instances it leaves open go to the search, which is good at budgets that
 * hold few results, however many the nodes; CBC has the rest of the time. */
static int exact(const struct checkmate *c, double limit_s, struct checkmate_plan *p, struct checkmate_answer *a,
                 const char **by)
{
    double start = solver_now_s(), first = 0.1 * limit_s < 2 ? 0.1 * limit_s : 2;
    *by = "milp";
    int e = checkmate_milp(c, first, p, a);
    if (e || a->proved_optimal || a->proved_infeasible)
        return e;
    *by = "search";
    e = checkmate_search(c, 0.4 * limit_s, p, a);
    if (e == -ETIME || e == -E2BIG)
        e = 0;
    if (e || a->proved_optimal || a->proved_infeasible)
        return e;
    *by = "milp";
    double left = limit_s - (solver_now_s() - start);
    return left > 0 ? checkmate_milp(c, left, p, a) : 0;
}

static int solve(const struct json_doc *doc, const struct solver_opts *opts, struct instance_result *out, int relaxed)
{
    struct checkmate c;
    int e = checkmate_read(doc, &c, out->message, sizeof out->message);
    if (e)
        return e;
    double start = solver_now_s(), limit_s = opts->time_limit_s > 0 ? opts->time_limit_s : DEFAULT_SECONDS;
    struct checkmate_plan p;
    struct checkmate_answer a;
    const char *by = "rounding";
    memset(&a, 0, sizeof a);
    e = checkmate_plan_new(&c, &p);
    if (!e)
        e = relaxed ? checkmate_lp_round(&c, limit_s, opts->seed, &p, &a) : exact(&c, limit_s, &p, &a, &by);
    if (!e && a.found)
        e = schedule(&c, &p, &a, out);
    if (!e) {
        report(&a, start, out);
        out->extra = json_pack("{s:I,s:s}", "budget", (json_int_t)c.budget, "settled_by", by);
    }
    checkmate_plan_free(&p);
    checkmate_free(&c);
    return e;
}

static int solve_milp(const struct json_doc *doc, const struct solver_opts *opts, struct instance_result *out)
{
    return solve(doc, opts, out, 0);
}

static int solve_milp_lp(const struct json_doc *doc, const struct solver_opts *opts, struct instance_result *out)
{
    return solve(doc, opts, out, 1);
}

const struct instance_solver instance_milp = { "checkmate-v1", "milp", 1, solve_milp };
const struct instance_solver instance_milp_lp = { "checkmate-v1", "milp-lp", 0, solve_milp_lp };
