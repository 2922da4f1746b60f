/* leave.h: leaving the plan, and what becomes of it: whether it can be followed again, and what would have to change for that.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_LEAVE_H
#define REMAT_POLICY_LEAVE_H

#include "policy/op/op.h"

extern const char leave_step_failed[], leave_was_refused[]; /* why the plan was left */
/* Leaves the plan: everything the program holds is made readable or swapped, nothing stays LOST. */
void leave_plan(struct device *d, const char *why, const struct rt_op *op);
/* What the program holds and is not there is made. What cannot be made stops the program, which goes on with wrong values else. */
void leave_rebuild_or_stop(struct device *d, unsigned t);
/* After the plan was left. Every buffer that the recorded iteration changes, and neither makes nor frees, is still there, or another one that may have its part
 * (match.c): if not (layers of another size), no iteration will follow the plan again. */
bool leave_can_be_followed(struct device *d);
/* From now on no plan asks what launches of the kernel at which it was left do: they are never replayed. The plan is void then, and must
 * be made anew. False: nothing would be different. */
bool leave_trust_no_more(struct device *d);

#endif
