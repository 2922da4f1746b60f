/* evict.h: free chunks at the cost of others: least recently used slots go to the host.
 *
 * Threads: under the engine's mutex. Errors: none: what has not come about shows in memory.n_free_chunks.
 */
#ifndef REMAT_POLICY_MEMORY_EVICT_H
#define REMAT_POLICY_MEMORY_EVICT_H

#include "policy/device.h"

/* Evicts until `n` chunks are free or nothing can move; then what neighbours of the group owe, what streams are about to free, decoys. */
void evict_for(struct device *d, uint64_t n_chunks);
/* The same, by slots alone that go to the host without anybody waiting for a stream that stands still. */
void evict_what_may_go(struct device *d, uint64_t n_chunks);
/* A free chunk that can be used before the program lets any stream go on that stands still for the host, where there is one or one can be had; else a free one
 * that cannot; -1: none is free. It is not taken yet. */
int32_t evict_for_one_that_moves(struct device *d);

#endif
