/* arena.h: pages shared by small allocations.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_ARENA_H
#define REMAT_POLICY_MEMORY_ARENA_H

#include "policy/device.h"

enum { MAX_ARENAS = 1 << 16, UNIT_BYTES = 512 };

struct slot;

/* One page, in units of UNIT_BYTES; each allocation has at least a byte of room past its end. */
struct arena {
    int32_t chunk;       /* -1: the page is empty and its chunk was given back */
    struct runs *runs;   /* which units are free */
    uint32_t *unit_slot; /* per unit: id + 1 of the slot that holds it, 0 free */
    struct fence ready;  /* uses of all slots that were freed in this page: the next slot here comes after them */
    CUdeviceptr va;
};

bool arena_is_for(struct device *d, uint64_t bytes); /* an allocation of `bytes` lies in an arena */
/* `n` rows of `bytes_each`, halved until all of them together are a small allocation (pages may be small); at least 1 unless n is 0. */
uint32_t arena_most_small(struct device *d, uint32_t n, uint64_t bytes_each);
/* A SMALL slot for `bytes`, resident, not live yet. arena_give_back(): its units are free again. */
int arena_take(struct device *d, uint64_t bytes, struct slot **out);
void arena_give_back(struct device *d, struct slot *s);
void arena_trim(struct device *d); /* empty arena pages give their chunks back */
/* Small scratch memory of our own, 256-byte aligned, resident for ever. 0 on failure. */
CUdeviceptr arena_scratch(struct device *d, uint64_t bytes);
uint64_t arena_chunks(struct device *d);
uint64_t arena_free_bytes(struct device *d);   /* free bytes of pages that have a chunk, side by side or not */
uint64_t arena_small_bytes(uint64_t bytes);    /* bytes of its page that a small allocation of `bytes` takes */

#endif
