/* ready.h: before an op is launched, everything it touches is in memory and ordered before it.
 *
 * Threads: under the engine's mutex. Errors: *_drv return the driver's code for the program; others 0 or a negative errno.
 */
#ifndef REMAT_POLICY_READY_H
#define REMAT_POLICY_READY_H

#include "policy/memory/slot.h"
#include "policy/op/op.h"

/* The operand is in memory, and an op on stream t has to wait for no other stream. */
static inline bool ready_operand(const struct rt_operand *a, unsigned t)
{
    const struct slot *s = a->slot;
    return s->state == SLOT_RESIDENT && fence_only_on(&s->ready, t) && (a->mode == REC_READ || fence_only_on(&s->unseen, t));
}
/* Makes everything the op touches resident and ordered before it. 0; -ENOMEM; -ENODATA when an operand is LOST (its index in *lost). */
int ready_op(struct device *d, struct rt_op *op, uint32_t *lost);
/* ready_op() has failed, and there is no other way to run the op: says on stderr what the op lacks. The driver's code for the program. A plan
 * that is left for want of memory does not call this: the op may well run then. */
int ready_refused_drv(struct device *d, const struct rt_op *op);
/* A limit with room for all that the op certainly needs, beside memory that cannot move now; ready_least_kib(): in KiB, as --limit takes it. */
uint64_t ready_least_bytes(struct device *d, const struct rt_op *op);
static inline uint64_t ready_least_kib(uint64_t bytes) { return (bytes + 1023) / 1024; }
FENCE_MUST_USE int ready_slot(struct device *d, struct slot *s, unsigned t);
/* The slot is reached in ways that no argument shows from now on: brings it into memory for good, and waits on the host until
 * any stream may touch it. 0; -ENOMEM or another negative errno: then the slot is not pinned, and the call that asked for
 * that must fail. */
FENCE_MUST_USE int ready_pin(struct device *d, struct slot *s);
/* After the op was issued: its stream is noted as a user of each operand. `may_write`: the operands' modes are not trusted, all may have been written. */
void ready_done(struct device *d, struct rt_op *op, bool may_write);
/* run_plain_drv() with two events, unless they are NULL: `from` and `to` are recorded on the op's stream right before and right after it. *timed: both are. */
int ready_run_timed_drv(struct device *d, struct rt_op *op, CUevent from, CUevent to, bool *timed);
/* ready, issue, done. */
int run_plain_drv(struct device *d, struct rt_op *op);

#endif
