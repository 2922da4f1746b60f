/* cover_plan.h: the plan for a limit. Threads and errors: as cover.h says. */
#ifndef REMAT_OFFLINE_COVER_PLAN_H
#define REMAT_OFFLINE_COVER_PLAN_H

#include "offline/solvers/cover/cover.h"
#include "offline/solvers/cover/cover_bound.h"

/* The plan for a limit. 0: *out is filled, judged and within the limit, r is its judgement; -ENOSPC: none found.
 * b->ns and b->impossible are what is known in the end, for limits up to bound_bytes. -ECANCELED as soon as no plan for this
 * limit can be cheaper than the one the caller has, which is found out before the annealer starts. What *out holds is then
 * of no use, b is. */
int cover_plan(struct cover *c, const struct cover_ask *ask, struct plan *out, struct sim_result *r, struct cover_bound *b);

/* For graphs of few ops: what a search proves for which small values need no memory, that nothing keeps the limit or what replays
 * cost at least; has_ns: a plan with so much of replays is known (0: none), and more need not be proved. */
int cover_prove(struct cover *c, int64_t limit_bytes, double has_ns, struct cover_bound *b);

#endif
