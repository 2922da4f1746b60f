/* unmet.h: launches that find no room. PyTorch takes a lack of memory at an allocation for torch.OutOfMemoryError, which scripts catch to try again with half
 * the batch; at a launch it is an error that ends them. Under a limit allocations succeed, since others can be moved, and it is the launch of a matmul that
 * needs more at once than there is.
 *
 * Such a launch is left out, and the next allocation refused in its place: as if memory had been short when the launch's output was allocated. What it
 * should have made is *unmade* until it is freed: memory that nothing has written, which no op reads:
 *
 * - A launch that is given unmade memory, and other memory that nothing has written, is left out too; what it should have made is unmade.
 * - Any other use of unmade memory (a copy to the host, a launch that changes what was there before, NCCL, memory that must stay) is refused with the
 *   driver's code for a lack of memory. So no value of the program's is ever wrong: what depends on a launch left out cannot be looked at.
 * - Until the allocation has been refused, nothing may be looked at: a copy to the host of whatever else, a collective, a graph, a launch that reaches the host's
 *   memory is refused, since the launch may have been to change in place what it was given.
 * - A launch without an output that nothing has written (an update in place) is refused itself, as is one under a plan.
 * - Where all such outputs are freed before an allocation was refused, they were workspaces: what else the launch had may be what it should have changed, and
 *   is unmade too.
 *
 * Threads: under the engine's mutex. Errors: *_drv return the driver's code for the program.
 */
#ifndef REMAT_POLICY_UNMET_H
#define REMAT_POLICY_UNMET_H

#include "policy/device.h"

/* Before an op runs: CUDA_SUCCESS: it may; otherwise *left_out says whether it is left out, or else it is refused with this code. */
int unmet_before_drv(struct device *d, const struct rt_op *op, bool *left_out);
/* After ready_refused_drv(): the launch is left out, and succeeds as far as the program can tell. False: it must fail. */
bool unmet_leaves_out(struct device *d, const struct rt_op *op);
/* An allocation of so many bytes is to be refused in a launch's place. In stream t; UNMET_ANY_STREAM: in none. */
enum { UNMET_ANY_STREAM = -1 };
bool unmet_refuses(struct device *d, uint64_t bytes, int t);
/* The program gives back what its pools have cached: the allocation that was refused may be asked for once more, and is refused once more. */
static inline void unmet_trimmed(struct device *d) { d->unmet.trimmed = true; }
/* Before the program's slot is freed. */
void unmet_freed(struct device *d, struct slot *s);
/* Nothing is unmade, and no refusal is due: the usual case. */
static inline bool unmet_none(const struct device *d) { return !d->unmet.unmade && !d->unmet.due; }

#endif
