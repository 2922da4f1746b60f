/* leave.h: leaving the plan; whether the plan can be followed again, and what would have to change for that.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_LEAVE_H
#define REMAT_POLICY_LEAVE_H

#include "policy/op/op.h"

extern const char leave_step_failed[], leave_was_refused[]; /* why the plan was left */
/* Leaves the plan: everything the program holds is made readable or swapped, nothing stays LOST. */
void leave_plan(struct device *d, const char *why, const struct rt_op *op);
/* Rebuilds every missing value that the program holds. A value that cannot be made stops the program, which would go on with wrong values. */
void leave_rebuild_or_stop(struct device *d, unsigned t);
/* After the plan was left. True: every buffer that the recorded iteration changes, and neither makes nor frees, still exists, or another buffer that may play its
 * part (match.c). False (layers of another size): no iteration will follow the plan again. */
bool leave_can_be_followed(struct device *d);
/* Launches of the kernel at which the plan was left are never replayed from now on, whatever plan is made. True: the plan is void, and must
 * be made anew. False: nothing would be different. */
bool leave_trust_no_more(struct device *d);

#endif
