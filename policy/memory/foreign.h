/* foreign.h: memory of the program's own: counted against the limit, looked up by address, never evicted. A key is an address, or a handle.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_FOREIGN_H
#define REMAT_POLICY_MEMORY_FOREIGN_H

#include "policy/device.h"
#include "policy/memory/ranges.h"

struct slot;

/* What an allocation of the program's own takes on the device: drivers hand out whole units. */
static inline uint64_t foreign_counted(uint64_t bytes) { return bytes > ~511ull ? ~511ull : (bytes + 511) & ~511ull; }
int foreign_init(struct device *d);
/* A context is gone, and all with it that is no block of the program's own (cuMemCreate), which are no context's. */
void foreign_context_gone(struct device *d);
/* The live range that ptr lies in, or NULL. */
struct slot *foreign_lookup(struct device *d, CUdeviceptr ptr);
/* From the first of these ranges to the end of the last one; of no bytes where there is none. */
struct range foreign_span(const struct device *d);
struct foreign_block {
    uint64_t bytes;
    CUmemoryPool pool; /* of the driver's, whose memory counts as a whole (pooled.h); NULL: the block itself counts */
    bool is_range;     /* its key is an address, and the bytes lie there */
};
static inline uint64_t foreign_block_counted(const struct foreign_block *b) { return b->pool ? 0 : foreign_counted(b->bytes); }
void foreign_add(struct device *d, uint64_t key, const struct foreign_block *b); /* its bytes are counted already */
/* A block, whose key is forgotten, has been given back in stream t: counted until the stream has come to that. */
void foreign_leaves(struct device *d, const struct foreign_block *b, unsigned t);
/* Looks, without waiting, which of these streams have come to it; */
void foreign_look(struct device *d);
/* waits for the first that has not: false where there is none, or the wait is put off (fence.h). */
bool foreign_wait(struct device *d);
/* Forgets the key; its bytes stay counted until the driver has really freed them. */
bool foreign_detach(struct device *d, uint64_t key, struct foreign_block *b);
/* A pool of the driver's is destroyed: what is left of it counts block by block. */
void foreign_pool_gone(struct device *d, CUmemoryPool pool);
/* The program has graphs, or had: what the driver holds for their allocation nodes counts, as much as it says now. */
void foreign_graphs(struct device *d);

#endif
