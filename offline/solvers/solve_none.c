/* Solver `none`: the program as it is, nothing evicted. Feasible where the trace's own peak fits. */
#include <errno.h>
#include <stdio.h>

#include "offline/model/sched.h"
#include "offline/solvers/solver.h"

static int none_solve(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    if (g->baseline_peak_bytes > opts->limit_bytes) {
        snprintf(rep->message, sizeof(rep->message), "without eviction the program needs %lld bytes",
                 (long long)g->baseline_peak_bytes);
        return -ENOSPC;
    }
    rep->proved_optimal = 1;
    return sched_baseline(g, out);
}

const struct solver solver_none = {"none", "no eviction: the program as it is", none_solve};
