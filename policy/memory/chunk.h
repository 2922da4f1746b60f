/* chunk.h: physical memory, in chunks of one granule each: who owns each of them, and the list of the free ones, oldest first.
 *
 * Threads: under the engine's mutex. Errors: what does not hold fails an rt_check (process/check.h), and the list stays as it is.
 */
#ifndef REMAT_POLICY_MEMORY_CHUNK_H
#define REMAT_POLICY_MEMORY_CHUNK_H

#include "policy/device.h"

enum { MAX_CHUNKS = 1 << 20 };
enum { CHUNK_FREE = -1, CHUNK_ARENA = -2, CHUNK_GONE = -3, CHUNK_BORROWED = -4 };
struct chunk {
    CUmemGenericAllocationHandle handle;
    int32_t owner;       /* slot id; CHUNK_FREE, CHUNK_ARENA, CHUNK_GONE: given back to the driver, CHUNK_BORROWED */
    uint32_t page;       /* of its owner: another page of the same slot may have a stale mapping of it */
    int32_t prev, next;  /* free list */
    struct fence ready;  /* of its earlier owners: goes to the next one */
    CUdeviceptr at;      /* an address where it is mapped; 0: none is known */
};

static inline bool chunk_is_of(const struct device *d, int32_t c, uint32_t owner, uint32_t page)
{
    return c >= 0 && d->mem.chunks[c].owner == (int32_t)owner && d->mem.chunks[c].page == page;
}
/* Into the list and out of it; who takes one says whose it is. */
void chunk_list_add(struct device *d, int32_t c);
void chunk_list_take(struct device *d, int32_t c);
/* The oldest; -1: there is none. */
int32_t chunk_list_first(struct device *d);
/* The chunks of the pages 0 .. n - 1 of slot `owner`, as one piece of the list; who gets one comes after `ready`. */
void chunk_list_add_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner, const struct fence *ready);
/* The other way: true where they are still one piece of the list, as their slot has left them; they are its pages 0 .. n - 1 now. Nearly
 * always, where a program frees and allocates the same sizes; a call for each page would cost more than all else that an allocation does. */
bool chunk_list_take_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner);
/* A free chunk that is mapped somewhere (its `at`), for as long as nobody else runs: it needs no driver call. -1: there is none. Its
 * address is that of a slot without memory, so a stale pointer may point there: what lies there is checked before it is believed. */
int32_t chunk_borrow(struct device *d);
void chunk_returned(struct device *d, int32_t c);

#endif
