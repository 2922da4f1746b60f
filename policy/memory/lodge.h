/* lodge.h: a slot in host memory, at its own address: pages of the host are mapped where its chunks would be. Kernels read and write the slot as ever,
 * at the speed of the link, and its content stays true whatever they do. For operands that are not known to be used by their launch (op/needs.h),
 * where the limit leaves no room: the operands are lodged before the launch and leave after it, so that only the launch itself can be slow.
 *
 * A lodged slot is RESIDENT and owns no chunk (slot.lodged). Its host pages stay mapped when it has left (slot.host_pages), until the slot gets
 * chunks or host memory is short: a launch that comes in every iteration maps nothing anew.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_LODGE_H
#define REMAT_POLICY_MEMORY_LODGE_H

#include "policy/device.h"

struct slot;

/* HOST or EMPTY -> RESIDENT in host memory. -ENOMEM: the driver cannot map host memory, or too little is left; nothing has changed. */
FENCE_MUST_USE int lodge_take(struct device *d, struct slot *s);
/* A lodged slot leaves for slot.host, in stream order; a pinned slot stays. A slot that cannot leave stays too, as evictable as any other. */
void lodge_leave(struct device *d, struct slot *s);
/* Before a plan's map is made: every lodged slot that is not pinned leaves. -ENOMEM: one of them stays. */
int lodge_leave_all(struct device *d);

#endif
