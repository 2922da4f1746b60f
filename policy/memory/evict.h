/* evict.h: chunks are freed: least recently used slots go to the host.
 *
 * Threads: under the engine's mutex. Errors: none: memory.n_free_chunks shows how far an eviction came.
 */
#ifndef REMAT_POLICY_MEMORY_EVICT_H
#define REMAT_POLICY_MEMORY_EVICT_H

#include "policy/device.h"

/* Evicts until n_chunks are free or no slot can move; then takes chunks that neighbours of the group owe, memory that streams are about to free, and the decoys' page. */
void evict_for(struct device *d, uint64_t n_chunks);
/* Evicts until n_chunks are free, but only slots whose copy to the host waits for no stream that stands still. */
void evict_what_may_go(struct device *d, uint64_t n_chunks);
/* A free chunk that can be used while streams stand still for the host, where there is one or one can be had; else a free chunk that waits for such a
 * stream; -1: none is free. The chunk stays in the free list. */
int32_t evict_for_one_that_moves(struct device *d);

#endif
