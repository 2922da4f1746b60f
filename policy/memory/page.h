/* page.h: what is mapped where: a chunk at a page of a slot; pages of our own outside every slot.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno; -EAGAIN: the host would have to wait, and that is put off (fence.h).
 */
#ifndef REMAT_POLICY_MEMORY_PAGE_H
#define REMAT_POLICY_MEMORY_PAGE_H

#include "policy/device.h"

struct slot;

/* Maps chunk to[p] at every page p of slot s where that is not negative, nor there already, nor gone (CHUNK_GONE: a plan's map names chunks, and one of
 * them may have been given back to the driver since the map was made); stale mappings go first (the host waits for their
 * users). What lies side by side is unmapped, and is given access, by one call: such a call takes as long for one page as for a hundred. After an
 * error some of the pages may have their chunks: slot.map tells. */
int page_map_row(struct device *d, struct slot *s, const int32_t *to);
/* Takes the page's mapping away, or all of the slot's, pages of the host too: the host waits for all that used the slot. */
int page_unmap(struct device *d, struct slot *s, uint32_t page);
int page_unmap_row(struct device *d, struct slot *s);

/* Pages of the host for the slot, which has no memory: they are counted as pinned host memory (slot.host_pages). -ENOMEM: there are none, or the driver
 * does not map such memory. */
int page_of_host_map(struct device *d, struct slot *s);
/* They go, where there are any: the host waits for all that used the slot. */
int page_of_host_unmap(struct device *d, struct slot *s);

/* Physical memory of one page from the driver, within what the group has for this process; the caller has looked at the limit, and counts the page. -ENOMEM: there is
 * none; where something else holds the device's memory, device.mem.refused_at_bytes says how much this process could have. */
int page_physical(struct device *d, CUmemGenericAllocationHandle *out);

/* A page of our own outside every slot, counted as physical. One more: 0, or -ENOMEM where the limit or the driver does not allow it;
 * nothing is evicted. It is mapped `n` times in a row at va, which the caller has reserved; nobody uses what is unmapped. */
int page_of_own(struct device *d, CUmemGenericAllocationHandle *out);
void page_of_own_gone(struct device *d, CUmemGenericAllocationHandle h);
int page_of_own_map(struct device *d, CUdeviceptr va, uint64_t n, CUmemGenericAllocationHandle h);
void page_of_own_unmap(struct device *d, CUdeviceptr va, uint64_t n);

#endif
