/* price.h: the cost in time of a limit: a solver's plan for the sizes that a run has (model/as_run.h), judged on the trace.
 *
 * Threads: no shared state. Errors: as solver_run() has them; -ENOSPC too where the limit is below the memory the run needs beside any plan.
 */
#ifndef REMAT_OFFLINE_PRICE_H
#define REMAT_OFFLINE_PRICE_H

#include "offline/model/as_run.h"
#include "offline/solvers/solver.h"

/* opts->limit_bytes is the limit of the run; the plan keeps it when judged on `exact`, and peak_bytes and planned_ns, in *rep and in the plan, are
 * for the trace's own sizes. Copies are planned as a run follows them. */
int price_run(const struct solver *s, const struct graph *exact, const struct as_run *run, const struct solver_opts *opts, struct plan *out,
              struct solver_report *rep);

/* The least limit of a run that any plan may meet, and the op that sets it; -1: the buffers from before op 0. */
int64_t price_floor(const struct as_run *run, int offload, int32_t *op);

#endif
