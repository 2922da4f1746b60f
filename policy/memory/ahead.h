/* ahead.h: while no plan leads, tensors that swapping has sent to the host come back before an op asks for them.
 *
 * An op whose operand is on the host waits for the way back. A backward pass wants the activations of the forward pass in the opposite order, and frees them. So while the
 * program holds less and less, and memory is free, the tensors that were used last before they left come back first, beside the ops that run. As much memory stays free as
 * the largest tensor takes that was allocated lately (a workspace of a matrix product comes and goes), and a little more.
 *
 * Nothing comes back early
 *   - where a thirty-second of it left again before anything used it (an optimizer's states between batches whose gradients are summed: they would go both ways for each batch);
 *   - in a group of processes, where free memory is owed to the other processes;
 *   - once a stream has waited for the host (a word in memory, a function of the host's): an early copy into memory that such an op still has would wait with it, and a copy
 *     that an op asks for would stand behind the early one, for good where the host waits for that op.
 *
 * Threads: under the engine's mutex. Errors: none: a tensor that cannot come back early comes when an op asks for it.
 */
#ifndef REMAT_POLICY_MEMORY_AHEAD_H
#define REMAT_POLICY_MEMORY_AHEAD_H

#include "policy/device.h"

/* The program allocates so many bytes. */
void ahead_allocated(struct device *d, uint64_t bytes);
/* An op has used the slot. */
void ahead_used(struct device *d, struct slot *s);
/* An op has run outside a plan. */
void ahead_look(struct device *d);

#endif
