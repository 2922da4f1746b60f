/* steps.h: what the plan does between two ops.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_STEPS_H
#define REMAT_POLICY_STEPS_H

#include "policy/op/op.h"

/* Op `to` comes now (n_ops: the iteration has ended): takes the plan's steps before it, and before each op between the cursor and `to`, which do not come,
 * and frees what the recorded iteration frees at these ops. < 0: the plan must be left. */
int steps_pass(struct device *d, uint32_t to, unsigned t);
/* Buffers that the record frees between the cursor and op `to`, and the program still holds (a loss that is kept for a plot): the missing ones are made again
 * now, and all stay in memory from now on. The plan has no later step for them, and their sources are freed on this way, too. To be called before
 * steps_pass() takes these steps, and before anything dies. -ENODATA: a buffer could not be made. */
int steps_hold(struct device *d, uint32_t to, unsigned t);
int steps_die(struct device *d, int32_t b, unsigned t); /* < 0: b's value could not be set aside; b is still in memory */
/* Every buffer that the captured or matched op touches is in memory and ordered before the op: NULL, or why not. */
const char *steps_make_ready(struct device *d, struct rt_op *op);

#endif
