/* page.h: mappings: a chunk at a page of a slot; remat's own pages outside every slot.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno; -EAGAIN: the host would have to wait, and waits are put off (fence.h).
 */
#ifndef REMAT_POLICY_MEMORY_PAGE_H
#define REMAT_POLICY_MEMORY_PAGE_H

#include "policy/device.h"

struct slot;

/* Maps chunk to[p] at every page p of slot s where to[p] is not negative, nor mapped there already, nor gone (CHUNK_GONE: a plan's map names chunks, and one
 * of them may have been given back to the driver since the map was made); stale mappings go first (the host waits for their users). Adjacent pages are
 * unmapped, and given access, by one call: such a call takes as long for one page as for a hundred. After an error some pages may have their
 * chunks: slot.map tells. */
int page_map_row(struct device *d, struct slot *s, const int32_t *to);
/* Unmaps one page, or all pages of the slot, host pages too: the host waits for all that used the slot. */
int page_unmap(struct device *d, struct slot *s, uint32_t page);
int page_unmap_row(struct device *d, struct slot *s);

/* Maps host pages at a slot without memory (slot.host_pages); they are counted as pinned host memory. -ENOMEM: there is too little, or the driver does not
 * map such memory. */
int page_of_host_map(struct device *d, struct slot *s);
/* Unmaps and frees the slot's host pages, if any: the host waits for all that used the slot. */
int page_of_host_unmap(struct device *d, struct slot *s);

/* Physical memory of one page from the driver, within this process's share of the group; the caller has looked at the limit, and counts the page. -ENOMEM: no more;
 * where something else holds the device's memory, device.mem.refused_at_bytes says how much this process could have. */
int page_physical(struct device *d, CUmemGenericAllocationHandle *out);

/* remat's own pages outside every slot, counted as physical memory. page_of_own() makes one: 0, or -ENOMEM where the limit or the driver does not allow it;
 * nothing is evicted. page_of_own_map() maps it `n` times in a row at va, which the caller has reserved. Pages to be unmapped are out of use. */
int page_of_own(struct device *d, CUmemGenericAllocationHandle *out);
void page_of_own_gone(struct device *d, CUmemGenericAllocationHandle h);
int page_of_own_map(struct device *d, CUdeviceptr va, uint64_t n, CUmemGenericAllocationHandle h);
void page_of_own_unmap(struct device *d, CUdeviceptr va, uint64_t n);

#endif
