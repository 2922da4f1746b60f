/* swap.h: copies of content to the host and back. The way out is here in full; the way back is in resident.h, which first gives the slot memory.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_SWAP_H
#define REMAT_POLICY_MEMORY_SWAP_H

#include "policy/device.h"

struct slot;

int swap_init(struct device *d);
int swap_out(struct device *d, struct slot *s); /* RESIDENT -> HOST (EMPTY if never written). -ENOMEM: host memory exhausted */
/* Copies the content to slot->host; the slot stays RESIDENT. */
int swap_copy_out(struct device *d, struct slot *s);
/* Queues the copy from slot->host, which stays, to the slot, which has memory. On an error the slot's memory is taken away. */
int swap_queue_in(struct device *d, struct slot *s);
void swap_discard(struct device *d, struct slot *s); /* forget the host copy */
/* Measures the link where no copy has yet: copies a tensor to the host for that alone. Each copy is waited for a tenth of a second at most. */
void swap_measure(struct device *d);
/* Bytes a second between device and host, in the slower direction, measured on copies made before the plan. 0: no copy was long enough. */
uint64_t swap_bytes_per_s(struct device *d);
/* Whether the slot can be evicted: LARGE, resident, not pinned, not needed by the op at hand. */
bool swap_may_go(const struct device *d, const struct slot *s);

#endif
