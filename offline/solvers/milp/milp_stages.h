/* milp_stages.h: the fastest plan in stages, by CBC. Threads: no shared state. Errors: as milp_model.h says. */
#ifndef REMAT_OFFLINE_MILP_STAGES_H
#define REMAT_OFFLINE_MILP_STAGES_H

#include "offline/solvers/milp/milp_model.h"

/* The fastest plan in which the replays before an op run in program order, each op at most once (Checkmate's
 * frontier-advancing form, over versions), through CBC. f->bound_ns is a bound for that form only. -E2BIG: more than
 * max_cols columns. */
int milp_stages(const struct milp_model *m, int64_t limit_bytes, int64_t cutoff_ns, double until_s, int max_cols,
                struct plan *out, struct milp_found *f);

#endif
