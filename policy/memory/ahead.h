/* ahead.h: while no plan leads, what swapping has sent to the host comes back before an op asks for it.
 *
 * An op whose operand is on the host waits for the way back. A backward pass wants the activations of the forward pass in the opposite order, and frees them: so while the
 * program holds less and less, and memory is free, the tensors that were used last before they left come back first, beside the ops that run. As much memory stays free as
 * the largest tensor takes that was allocated lately (a workspace of a matrix product comes and goes), and a little more.
 *
 * Nothing comes back early
 *   - where a thirty-second of it left again before anything used it (an optimizer's states between batches whose gradients are summed: they would go both ways for each batch);
 *   - in a group of processes, where what is free is owed to others;
 *   - once a stream has waited for the host (a word in memory, a function of the host's): an early copy into memory that such an op still has would wait with it, and a copy
 *     that an op asks for would stand behind the early one, for good where the host waits for that op.
 *
 * Threads: under the engine's mutex. Errors: none: what cannot come back early comes when it is asked for.
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
