/* unmet.h: launches that find no room. PyTorch takes a lack of memory at an allocation for torch.OutOfMemoryError, which scripts catch to try again with half
 * the batch; at a launch it is an error that ends them. Under a limit allocations succeed, since other buffers can be moved; the launch of a matmul then
 * needs more at once than there is.
 *
 * Such a launch is left out, and the next allocation refused in its place: as if memory had been short when the launch's output was allocated. The
 * outputs of such a launch are *unmade* until they are freed: nothing has written them, and no op reads them:
 *
 * - A launch that is given unmade memory, and other memory that nothing has written, is left out too; its outputs are unmade.
 * - Any other use of unmade memory (a copy to the host, a launch that changes what was there before, NCCL, memory that must stay) is refused with the
 *   driver's code for a lack of memory. So no value of the program's is ever wrong: values that depend on a launch left out cannot be looked at.
 * - Until the allocation has been refused, nothing may be looked at: a copy to the host of whatever else, a collective, a graph, a launch that reaches the host's
 *   memory is refused, since the launch left out may have been to change its operands in place.
 * - A launch without a never-written output (an update in place) is refused itself, as is any launch under a plan.
 * - Where all such outputs are freed before an allocation was refused, they were workspaces: the launch may have been to change its other operands, which
 *   are unmade too.
 *
 * Threads: under the engine's mutex. Errors: *_drv return the driver's code for the program.
 */
#ifndef REMAT_POLICY_UNMET_H
#define REMAT_POLICY_UNMET_H

#include "policy/device.h"

/* Before an op runs. CUDA_SUCCESS: the op may run; otherwise *left_out: the op is left out, else it is refused with this code. */
int unmet_before_drv(struct device *d, const struct rt_op *op, bool *left_out);
/* After ready_refused_drv(): the launch is left out, and succeeds as far as the program can tell. False: it must fail. */
bool unmet_leaves_out(struct device *d, const struct rt_op *op);
/* True: an allocation of `bytes`, in stream t (UNMET_ANY_STREAM: in none), is to be refused in a launch's place. */
enum { UNMET_ANY_STREAM = -1 };
bool unmet_refuses(struct device *d, uint64_t bytes, int t);
/* The program gives back what its pools have cached: the allocation that was refused may be asked for once more, and is refused once more. */
static inline void unmet_trimmed(struct device *d) { d->unmet.trimmed = true; }
/* Before the program's slot is freed. */
void unmet_freed(struct device *d, struct slot *s);
/* Nothing is unmade, and no refusal is due: the usual case. */
static inline bool unmet_none(const struct device *d) { return !d->unmet.unmade && !d->unmet.due; }

#endif
