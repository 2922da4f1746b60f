/* needs.h: which operands of a launch must be in memory, and which may be there for nothing.
 *
 * A struct passed by value may have room for hundreds of addresses, of which few are in use: the rest is what the stack held, lists of earlier
 * launches. (PyTorch's foreach kernels: 770 places, 48 filled.) No look at the arguments tells them apart, and no trial may: the launch has yet to run once. So
 * all of them stay operands, and what the limit leaves no room for is put where a launch finds it all the same: memory/lodge.h.
 *
 * Certain are the operands of other parameters, and those of a struct with few addresses, each of which has its part.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_OP_NEEDS_H
#define REMAT_POLICY_OP_NEEDS_H

#include "policy/op/op.h"

/* The buffer of the launch that is least likely to be used, of those that are not certain and have chunks to give, or would need some; NULL: there is none.
 * The choice is one of time alone. */
struct slot *needs_least(struct device *d, const struct rt_op *op);
/* Bytes of whole pages that the op needs at once, and that it may need. What is pinned and in memory counts elsewhere. */
struct needs {
    uint64_t certain, perhaps;
};
struct needs needs_of(struct device *d, const struct rt_op *op);

#endif
