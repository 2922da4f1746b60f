/* milp_search.h: the fastest plan of all, by search. Threads: no shared state. Errors: as milp_model.h says. */
#ifndef REMAT_OFFLINE_MILP_SEARCH_H
#define REMAT_OFFLINE_MILP_SEARCH_H

#include "offline/solvers/milp/milp_model.h"

/* The fastest drop-and-replay plan of all, by best-first search over (next op, values in memory). cutoff_ns > 0: only
 * plans with less replay time are of interest. -E2BIG: too many states or steps; -ETIME: too little time; the bound is
 * valid in either case. */
int milp_search(const struct milp_model *m, int64_t limit_bytes, int64_t cutoff_ns, const struct milp_effort *effort,
                struct plan *out, struct milp_found *f);

#endif
