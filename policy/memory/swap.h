/* swap.h: content on its way to the host and back: the copies themselves. Out is here in full; back in is resident.h, which first gives the slot memory.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_SWAP_H
#define REMAT_POLICY_MEMORY_SWAP_H

#include "policy/device.h"

struct slot;

int swap_init(struct device *d);
int swap_out(struct device *d, struct slot *s); /* RESIDENT -> HOST (EMPTY if never written). -ENOMEM: host memory exhausted */
/* The copy alone: into slot->host, the slot stays RESIDENT. */
int swap_copy_out(struct device *d, struct slot *s);
/* The copy back is queued: the slot has memory, and its content is in slot->host, which stays. Where it cannot be the memory is taken away. */
int swap_queue_in(struct device *d, struct slot *s);
void swap_discard(struct device *d, struct slot *s); /* forget the host copy */
/* Where no copy has told yet how fast the link is: one of a tensor to the host, for that alone. Waits a tenth of a second at most. */
void swap_measure(struct device *d);
/* Host bytes a second, measured on copies of before the plan: the slower direction. 0: none was long enough. */
uint64_t swap_bytes_per_s(struct device *d);
/* Whether it can be evicted: in memory, not pinned, not needed by the op at hand. */
bool swap_may_go(const struct device *d, const struct slot *s);

#endif
