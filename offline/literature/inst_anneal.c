/* inst_anneal: `remat solve --solver anneal` for checkmate-v1 documents: FastSA (fastsa.h), in the given order or, with
 * --reorder, in any. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "offline/solvers/anneal/fastsa.h"
#include "offline/solvers/checkmate/checkmate.h"
#include "offline/solvers/checkmate/checkmate_pebble.h"
#include "offline/solvers/solver.h"

enum { INST_DEFAULT_S = 30, INST_SETS = 256 };

static double inst_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int inst_found(const struct checkmate *c, const struct fastsa_answer *a, struct instance_result *out)
{
    out->feasible = 1;
    out->value = (double)a->cost;
    out->peak = (double)a->peak;
    out->proved_optimal = out->value <= out->bound;
    out->schedule = checkmate_schedule_json(c, a->order, a->n, a->cost, a->peak);
    return out->schedule ? 0 : -ENOMEM;
}

static int inst_solve(const struct json_doc *doc, const struct solver_opts *opts, struct instance_result *out)
{
    struct checkmate c;
    int rc = checkmate_read(doc, &c, out->message, sizeof out->message);
    if (rc)
        return rc;
    const double start = solver_now_s(), cpu = inst_cpu_s();
    const struct fastsa_opts o = {.seed = opts->seed,
                                  .reorder = opts->reorder,
                                  .deadline_s = start + (opts->time_limit_s > 0 ? opts->time_limit_s : INST_DEFAULT_S)};
    struct fastsa_answer a = {0};
    int node = -1;
    const int hopeless = checkmate_hopeless_node(&c, INST_SETS, &node);
    out->integral = 1;
    out->value = out->peak = NAN;
    out->bound = 0; /* cost of every node once */
    for (int i = 0; i < c.n; i++)
        out->bound += (double)c.cost[i];
    if (hopeless < 0) {
        rc = hopeless;
    } else if (hopeless) {
        out->bound = NAN;
        snprintf(out->message, sizeof out->message, "no schedule of any order fits: node %d cannot be computed within %lld", node,
                 (long long)c.budget);
    } else {
        rc = fastsa_solve(&c, &o, &a);
        if (!rc && a.found)
            rc = inst_found(&c, &a, out);
        else if (!rc)
            snprintf(out->message, sizeof out->message, "no schedule within the budget was found");
    }
    if (!rc) {
        out->solve_seconds = solver_now_s() - start;
        out->extra = json_pack("{s:I, s:b, s:b, s:b, s:i, s:I, s:i, s:f}", "budget", (json_int_t)c.budget, "reordered",
                               opts->reorder && a.found && !a.in_order, "staged", a.found && a.staged, "proved_infeasible",
                               hopeless > 0, "replays", a.found ? a.n - c.n : 0, "moves", (json_int_t)a.moves,
                               "runs", a.runs, "cpu_seconds", inst_cpu_s() - cpu);
    }
    fastsa_answer_free(&a);
    checkmate_free(&c);
    return rc;
}

const struct instance_solver instance_anneal = {"checkmate-v1", "anneal", 0, inst_solve};
