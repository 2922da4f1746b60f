/* cover_plan.h: the plan for a limit. Threads and errors: as cover.h says. */
#ifndef REMAT_OFFLINE_COVER_PLAN_H
#define REMAT_OFFLINE_COVER_PLAN_H

#include "offline/solvers/cover/cover.h"
#include "offline/solvers/cover/cover_bound.h"

/* The plan for a limit. 0: *out is filled, judged and within the limit, r is its judgement; -ENOSPC: none found.
 * b->ns and b->impossible are the final bounds, for limits up to bound_bytes. -ECANCELED: no plan for this limit can be cheaper
 * than the caller's (ask->beaten_ns); found out before the annealer starts. In this case *out is of no use, but b is valid. */
int cover_plan(struct cover *c, const struct cover_ask *ask, struct plan *out, struct sim_result *r, struct cover_bound *b);

/* For graphs of few ops: improves b by an exact search in which small values need no memory: that no plan keeps the limit, or the least
 * cost of replays. has_ns: replay time of a known plan (0: none), beyond which no bound need be proved. */
int cover_prove(struct cover *c, int64_t limit_bytes, double has_ns, struct cover_bound *b);

#endif
