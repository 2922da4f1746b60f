/* mem_own.h: what the files of device memory share: space.c, chunk.c, slot.c, arena.c, and no other. What the rest of the library asks
 * of them is in device.h.
 *
 * One reservation is cut into slots, physical chunks are mapped under them, arenas hold what is small.
 * A slot keeps the chunks that were last mapped at its pages even when it no longer owns them (a stale mapping), so
 * that a slot which comes back and finds them free again needs no driver call. One chunk may be mapped at many
 * addresses; only its owner's content counts, and the owner changes in stream order (chunk.ready). A stale
 * mapping is removed only when its page needs another chunk or the chunk goes back to the driver, after the host has
 * seen the end of everything that used the address (unmapping is not stream-ordered).
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_MEM_OWN_H
#define REMAT_POLICY_MEMORY_MEM_OWN_H

#include "policy/device.h"

enum { MAX_SLOTS = 1 << 20, MAX_CHUNKS = 1 << 20, MAX_LIST_PAGES = 1 << 16, MAX_ARENAS = 1 << 16, UNIT_BYTES = 512 };

/* One page shared by small allocations, in units of UNIT_BYTES; each has at least a byte of room past its end. */
struct arena {
    int32_t chunk;       /* -1: the page is empty and its chunk was given back */
    struct runs *runs;   /* which units are free */
    uint32_t *unit_slot; /* per unit: id + 1 of the slot that holds it, 0 free */
    struct fence ready;  /* of what was freed in it */
    CUdeviceptr va;
};

struct gap { /* pages of address space that nobody has */
    uint64_t first, n;
};

struct mem {
    int32_t *free_slots; /* by number of pages: head of a list through next_free, next_back */
    uint64_t idle_pages; /* of the slots in these lists */
    bool left_mapped;    /* an evicted slot still has its mappings: the host would have had to wait (mem_unmap_evicted) */
    int32_t small_structs, large_structs, foreign_free;
    struct gap *gaps;
    uint32_t n_gaps, cap_gaps;
    struct arena *arenas;
    uint32_t n_arenas, n_arena_chunks;
    uint32_t *longest; /* run of free units in each arena, leaves of a tree at MAX_ARENAS + i; longest[i] = max of its children */
    uint32_t longest_root; /* of the least tree, from the left, that has all arenas so far */
};

/* space.c: n pages in a row that nobody has. -ENOMEM: there are none. */
int space_take(struct device *d, uint64_t n, uint64_t *first);
/* They are nobody's again. -ENOMEM: that could not be noted, and they are still the caller's. */
int space_give(struct device *d, uint64_t first, uint64_t n);

/* chunk.c: the list of free chunks, oldest first. */
static inline bool chunk_is_of(const struct device *d, int32_t c, uint32_t owner, uint32_t page)
{
    return c >= 0 && d->chunks[c].owner == (int32_t)owner && d->chunks[c].page == page;
}
void chunk_list_add(struct device *d, int32_t c);
void chunk_list_take(struct device *d, int32_t c);
/* The oldest; -1: there is none. */
int32_t chunk_list_first(struct device *d);
/* The chunks of the pages 0 .. n - 1 of slot `owner`, as one piece of the list; who gets one comes after `ready`. */
void chunk_list_add_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner, const struct fence *ready);
/* The other way: true where they are still one piece of the list, as their slot has left them; they are its pages 0 .. n - 1 now. Nearly
 * always, where a program frees and allocates the same sizes; a call for each page would cost more than all else that an allocation does. */
bool chunk_list_take_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner);

/* slot.c */
/* The struct alone, without an address; NULL when there are too many. */
struct slot *slot_create(struct device *d, enum slot_kind kind);
/* Pages of address space for a slot or an arena; slots that nobody has used for long give theirs up. */
int slot_space(struct device *d, uint64_t n, uint64_t *first);
/* Takes the page's mapping away: the host waits for all that used the slot. */
int slot_unmap_page(struct device *d, struct slot *s, uint32_t page);
/* All that whoever gets the slot's memory next must come after. */
void slot_fences(struct device *d, const struct slot *s, struct fence *into);

/* arena.c: a SMALL slot, resident; not live yet. And its units are free again. */
int arena_take(struct device *d, uint64_t bytes, struct slot **out);
void arena_give_back(struct device *d, struct slot *s);

#endif
