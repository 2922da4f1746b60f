/* chunk.h: physical memory, in chunks of one granule each: each chunk's owner, and the list of the free chunks, oldest first.
 *
 * Threads: under the engine's mutex. Errors: a broken invariant fails an rt_check (process/check.h), and the list stays as it is.
 */
#ifndef REMAT_POLICY_MEMORY_CHUNK_H
#define REMAT_POLICY_MEMORY_CHUNK_H

#include "policy/device.h"

enum { MAX_CHUNKS = 1 << 20 };
enum { CHUNK_FREE = -1, CHUNK_ARENA = -2, CHUNK_GONE = -3, CHUNK_BORROWED = -4 };
struct chunk {
    CUmemGenericAllocationHandle handle;
    int32_t owner;       /* slot id; CHUNK_FREE, CHUNK_ARENA, CHUNK_GONE: given back to the driver, CHUNK_BORROWED */
    uint32_t page;       /* page of the owner; another page of the same slot may have a stale mapping of the chunk */
    int32_t prev, next;  /* free list */
    struct fence ready;  /* points of the earlier owners: handed to the next owner */
    CUdeviceptr at;      /* an address where the chunk is mapped; 0: none is known */
};

static inline bool chunk_is_of(const struct device *d, int32_t c, uint32_t owner, uint32_t page)
{
    return c >= 0 && d->mem.chunks[c].owner == (int32_t)owner && d->mem.chunks[c].page == page;
}
/* Adds a chunk to the free list, or takes it out; after taking it out the caller sets its owner. */
void chunk_list_add(struct device *d, int32_t c);
void chunk_list_take(struct device *d, int32_t c);
/* The oldest free chunk, rather one whose earlier owners do not stand still for the host; -1: none is free. The chunk stays in the list. */
int32_t chunk_list_first(struct device *d);
/* The chunks of the pages 0 .. n - 1 of slot `owner`, are added as one piece of the list; their next owners come after `ready`. */
void chunk_list_add_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner, const struct fence *ready);
/* Takes a row out again: true where its chunks are still one piece of the list, as their slot has left them; they are its pages 0 .. n - 1 again. True nearly
 * always where a program frees and allocates the same sizes; a call for each page would cost more than all other work of an allocation. */
bool chunk_list_take_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner);
/* Lends a free chunk that is mapped somewhere (its `at`, so no driver call is needed), until chunk_returned(), while nothing else runs. -1: none. `at`
 * lies in a slot without memory, so a stale pointer may point there: content left there is checked before it is believed. */
int32_t chunk_borrow(struct device *d);
void chunk_returned(struct device *d, int32_t c);

#endif
