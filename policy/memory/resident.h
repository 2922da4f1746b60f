/* resident.h: a LARGE slot gets memory, and its content back from the host.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_RESIDENT_H
#define REMAT_POLICY_MEMORY_RESIDENT_H

#include "policy/device.h"

struct slot;

/* Puts memory behind an EMPTY / LOST / HOST slot, evicting other slots if it must. The content is undefined; s->ready says when it
 * may be touched. -ENOMEM: no other slot can move. */
FENCE_MUST_USE int resident_back(struct device *d, struct slot *s);
/* True where the slot can get its memory later as well as now: other slots would have to go to the host first, and the host has room for them. */
bool resident_can_wait(struct device *d, const struct slot *s);
/* HOST -> RESIDENT; resident_copy_in() keeps slot->host, resident_swap_in() frees it. */
int resident_swap_in(struct device *d, struct slot *s);
int resident_copy_in(struct device *d, struct slot *s);

#endif
