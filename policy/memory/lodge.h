/* lodge.h: a slot in host memory, at its own address: pages of the host are mapped where its chunks would be. Kernels read and write there as ever,
 * at the speed of the link; its content is true, whatever they do. For operands of a launch that nobody knows to be used (op/needs.h), where the
 * limit leaves no room: they are lodged before it and leave after it, so that only the launch itself can be slow.
 *
 * A lodged slot is RESIDENT and owns no chunk (slot.lodged). Its pages stay mapped when it has left (slot.host_pages), until the slot gets other ones
 * or host memory is short: a launch that comes in every iteration maps nothing anew.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_LODGE_H
#define REMAT_POLICY_MEMORY_LODGE_H

#include "policy/device.h"

struct slot;

/* HOST or EMPTY -> RESIDENT in host memory. -ENOMEM: the driver cannot map such memory, or there is too little of it; then nothing has changed. */
FENCE_MUST_USE int lodge_take(struct device *d, struct slot *s);
/* What is lodged leaves for slot.host, in stream order; what is pinned stays. Where that fails it stays too, as evictable as any other. */
void lodge_leave(struct device *d, struct slot *s);
/* Before a static map is made: all that is lodged and not pinned leaves. -ENOMEM: something stays. */
int lodge_leave_all(struct device *d);

#endif
