/* resident.h: a LARGE slot gets memory, and its content back from the host.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_RESIDENT_H
#define REMAT_POLICY_MEMORY_RESIDENT_H

#include "policy/device.h"

struct slot;

/* Puts memory behind an EMPTY / LOST / HOST slot, evicting others if it must. The content is undefined; s->ready says when it
 * may be touched. -ENOMEM: nothing more can move. */
FENCE_MUST_USE int resident_back(struct device *d, struct slot *s);
/* Memory can be put behind it later as well as now: others would have to go to the host first, and there is room for them. */
bool resident_can_wait(struct device *d, const struct slot *s);
/* HOST -> RESIDENT; and with slot->host staying. */
int resident_swap_in(struct device *d, struct slot *s);
int resident_copy_in(struct device *d, struct slot *s);

#endif
