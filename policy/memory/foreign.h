/* foreign.h: memory of the program's own: counted against the limit, looked up by address, never evicted. A key is an address, or a handle.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_FOREIGN_H
#define REMAT_POLICY_MEMORY_FOREIGN_H

#include "policy/device.h"
#include "policy/memory/ranges.h"

struct slot;

/* Bytes that an allocation of the program's own takes on the device: drivers hand out whole units. */
static inline uint64_t foreign_counted(uint64_t bytes) { return bytes > ~511ull ? ~511ull : (bytes + 511) & ~511ull; }
int foreign_init(struct device *d);
/* A context is gone, and its memory with it; blocks of cuMemCreate, which belong to no context, stay. */
void foreign_context_gone(struct device *d);
/* The slot of the live range that ptr lies in, or NULL. */
struct slot *foreign_lookup(struct device *d, CUdeviceptr ptr);
/* The span from the first live range to the end of the last; 0 bytes where no range is live. */
struct range foreign_span(const struct device *d);
struct foreign_block {
    uint64_t bytes;
    CUmemoryPool pool; /* the driver's pool that it came from, which counts as a whole (pooled.h); NULL: the block itself counts */
    bool is_range;     /* the key is an address, where `bytes` lie */
};
static inline uint64_t foreign_block_counted(const struct foreign_block *b) { return b->pool ? 0 : foreign_counted(b->bytes); }
void foreign_add(struct device *d, uint64_t key, const struct foreign_block *b); /* the block's bytes are counted already */
/* The program has freed a block, whose key is forgotten, in stream t: the block counts until the stream has come to the free. */
void foreign_leaves(struct device *d, const struct foreign_block *b, unsigned t);
/* Looks, without waiting, which streams have come to the frees of foreign_leaves(), and takes their blocks off the count. */
void foreign_look(struct device *d);
/* Waits for the first of these frees. False: there is none, or the wait is put off (fence.h). */
bool foreign_wait(struct device *d);
/* Forgets the key; *b: its block, whose bytes stay counted until the driver has really freed them. False: no such key. */
bool foreign_detach(struct device *d, uint64_t key, struct foreign_block *b);
/* A pool of the driver's is destroyed: the blocks left of it count one by one. */
void foreign_pool_gone(struct device *d, CUmemoryPool pool);
/* The program has graphs, or had: counts the bytes that the driver says it holds for their allocation nodes. */
void foreign_graphs(struct device *d);

#endif
