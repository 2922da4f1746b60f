/* following.h: a plan in force: where an iteration begins and ends under it, and what becomes of a plan that was left.
 *
 * Threads: under the engine's mutex. Errors: none: without a plan memory is held by swapping.
 */
#ifndef REMAT_POLICY_CAMPAIGN_FOLLOWING_H
#define REMAT_POLICY_CAMPAIGN_FOLLOWING_H

#include "policy/device.h"

/* The probed iteration is whole: a plan is asked for, if the iteration needs one. */
void following_learnt(struct device *d);
/* The next op is the first of an iteration that the installed plan knows. */
void following_begin(struct device *d);
void following_end_iteration(struct device *d);
/* False: the plan has been left so often in a row that taking it up where an iteration seems to begin is no use. */
bool following_is_worth_it(const struct device *d);
/* The plan has been left (plan/leave.h): everything the program holds is readable again. */
void following_has_left(struct device *d);
/* `op` comes after the plan was left, and is no copy to the host: it may show which recorded ops did not come. */
void following_looks_on(struct device *d, const struct rt_op *op);

#endif
