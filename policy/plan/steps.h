/* steps.h: what the plan does between two ops.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_STEPS_H
#define REMAT_POLICY_STEPS_H

#include "policy/op/op.h"

/* Everything up to op `to`, which comes now (n_ops: the iteration has ended): the plan's steps before it and before each of the ops in
 * between, which do not come, and what the recorded iteration frees there. < 0: the plan must be left. */
int steps_pass(struct device *d, uint32_t to, unsigned t);
/* Buffers that the record frees from here to op `to` and the program still holds (a loss that is kept for a plot): those that are missing are made again
 * now, and all stay in memory from now on: the plan has no later step for them, and what they could be made of is freed there, too. Before any of these steps
 * is taken, and before anything dies. -ENODATA: one could not be made. */
int steps_hold(struct device *d, uint32_t to, unsigned t);
int steps_die(struct device *d, int32_t b, unsigned t); /* < 0: its value could not be set aside; it is still there */
/* What the captured or matched op touches is in memory and ordered before it; NULL, or why not. */
const char *steps_make_ready(struct device *d, struct rt_op *op);

#endif
