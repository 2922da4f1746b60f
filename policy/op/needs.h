/* needs.h: which operands of a launch must be in memory, and which may be in its arguments for nothing.
 *
 * A struct passed by value may have room for hundreds of addresses, of which few are in use: the other places hold what was on the stack, lists of earlier
 * launches. (PyTorch's foreach kernels: 770 places, 48 filled.) The arguments do not tell used addresses from unused ones, and no trial may: the launch has
 * yet to run once. So all addresses stay operands, and buffers that the limit leaves no room for go to host memory at their own addresses (memory/lodge.h).
 *
 * Certain are the operands of other parameters, and the operands of a struct with few addresses, each of which has its part.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_OP_NEEDS_H
#define REMAT_POLICY_OP_NEEDS_H

#include "policy/op/op.h"

/* The launch's buffer that is least likely to be used, among the buffers that are not certain and have chunks to give, or would need some; NULL: none.
 * The choice affects time alone. */
struct slot *needs_least(struct device *d, const struct rt_op *op);
/* Bytes, in whole pages, that the op needs at once (`certain`), and may need (`perhaps`). Pinned buffers in memory count elsewhere. */
struct needs {
    uint64_t certain, perhaps;
};
struct needs needs_of(struct device *d, const struct rt_op *op);

#endif
