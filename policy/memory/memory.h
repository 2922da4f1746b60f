/* memory.h: the state of a device's memory: device.mem. Every file of memory/ works on this state, and each field stands under the
 * file that writes it; other rooms read only addresses (slots), sizes and counts directly.
 *
 * One reservation is cut into slots, physical chunks are mapped under them, arenas hold small allocations.
 * A slot keeps the chunks that were last mapped at its pages even when it no longer owns them (a stale mapping), so
 * that a slot which comes back and finds them free again needs no driver call. One chunk may be mapped at many
 * addresses; only its owner's content counts, and the owner changes in stream order (chunk.ready). A stale
 * mapping is removed only when its page needs another chunk or the chunk goes back to the driver, after the host has
 * seen the end of everything that used the address (unmapping is not stream-ordered).
 *
 *     n_chunks * gran + foreign_bytes <= limit_bytes                    physical bytes never pass the limit
 *     and <= what the group's ledger counts as ours                     (share/share.h, in a group)
 *     a chunk has at most one owner; slot RESIDENT <=> it owns the chunks of all its pages, or is lodged (lodge.h)
 *     slot HOST <=> its content is in slot->host
 * These equations are checked where memory changes hands, and all of them now and then (audit.h).
 *
 * Who may call whom, lowest first: ranges, runs, host, fence; space, chunk, pinned; page; slot, decoy, aside; pooled; foreign; supply; swap; evict; lodge;
 * arena; resident, ahead, alloc, room; audit.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno; functions whose name ends in _drv return the driver's code.
 */
#ifndef REMAT_POLICY_MEMORY_MEMORY_H
#define REMAT_POLICY_MEMORY_MEMORY_H

#include "policy/memory/fence.h"
#include "preload/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* remat's own memory outside the reservation, besides swapping's host blocks. No program is given an address there; but a program's argument words come
 * from stacks that remat has used too, so a word that the program never filled may point there. */
enum own_kind { OWN_DECOY, OWN_ASIDE, OWN_VERIFY, OWN_KINDS };
struct own_range {
    CUdeviceptr at;
    uint64_t bytes;
};

struct device;
struct slot;
struct chunk;
struct gap;
struct arena;

struct memory {
    /* how much there may be, in bytes (process/limits.h) */
    uint64_t device_bytes;     /* memory of the device */
    uint64_t limit_bytes;      /* most that this process may have on the device now */
    uint64_t whole_bytes;      /* the limit, where a script has taken a fraction of it (answers.c); 0: none has */
    uint64_t ceiling_bytes;    /* >= limit_bytes: limits_borrow() raises a soft limit up to here */
    uint64_t plan_limit_bytes; /* part of limit_bytes that a plan may count on: all, in a group perhaps less */
    uint64_t refused_at_bytes; /* page.c: this process's physical bytes when the driver refused a page more (something else holds the device's memory); 0: the driver gives more */

    /* space.c: addresses */
    CUdeviceptr base;          /* start of the reservation */
    uint64_t reserve_bytes, gran; /* gran: size of a page, and of a chunk */
    unsigned shift;            /* gran == 1 << shift */
    uint64_t next_page, n_va_pages, top_page; /* pages from next_page on are free; pages from top_page on have never been used */
    uint32_t *page_slot;       /* id + 1 of the slot (or of the arena, with PAGE_ARENA) at each page; 0: none */
    struct gap *gaps;
    uint32_t n_gaps, cap_gaps;

    /* slot.c */
    struct slot *slots;
    uint32_t n_slots;
    int32_t *free_slots;       /* [pages]: head of the list of free slots with that many pages, through next_free, next_back */
    uint64_t listed_pages;     /* pages of all slots in free_slots */
    uint32_t n_lodged;         /* slots in host memory at their own address (lodge.h) */
    bool left_mapped;          /* an evicted slot still has its mappings: unmapping would have made the host wait (slot_unmap_evicted) */
    int32_t small_structs, large_structs, foreign_structs; /* heads of lists of structs without an address, through next_free; -1: empty */
    uint64_t address_changes;  /* times that an address came to mean something else: memory of the program's own, slots of other sizes */
    uint64_t serial;           /* number of the latest allocation */
    uint64_t live_bytes;       /* managed memory that the program holds, resident or not */
    uint64_t op_at_hand;       /* number of the op whose operands must not be evicted now: slot.needed_by */
    uint64_t walk;             /* number of the latest walk over operands in which each slot counts once: slot.visited_in */
    uint64_t tick;             /* counts ops that have run: slot.use_tick */

    /* chunk.c, supply.c */
    struct chunk *chunks;
    uint32_t n_chunks, n_gone, n_free_chunks; /* n_gone: rows whose chunk was given back to the driver: free for another */
    int32_t free_head, free_tail;

    /* arena.c */
    struct arena *arenas;
    uint32_t n_arenas, n_arena_chunks;
    uint32_t *longest;         /* longest run of free units in each arena: leaves of a tree at MAX_ARENAS + i; longest[i] = max of its children */
    uint32_t longest_root;     /* root of the smallest tree, from the left, that has all arenas so far */

    /* page.c, and files that reserve addresses of remat's own */
    uint64_t own_bytes;        /* physical memory of remat's own pages outside every slot */
    struct own_range own[OWN_KINDS];

    /* foreign.c: memory of the program's own */
    uint64_t foreign_bytes;
    uint64_t graph_bytes;      /* part of foreign_bytes that the driver holds for graphs */

    /* pinned.c: pinned memory of the host */
    uint64_t host_bytes, host_limit_bytes;

    /* ahead.c */
    struct ahead {
        bool falling;                    /* the program holds less and less */
        uint64_t turning_bytes;          /* least live_bytes since `falling` became true, or most since it became false */
        uint64_t largest_bytes[2];       /* largest allocation of this window of ops, and of the one before */
        struct fence coming;             /* copies of the tensor that was fetched early last */
        uint64_t window_op;              /* device.op_count when this window began */
        uint64_t used_bytes, vain_bytes; /* tensors that came back early: used since, and evicted again unused */
    } ahead;

    bool pressed;              /* evict.c: fewer chunks were free than were needed: the limit is felt */
    uint64_t evicted_op;       /* swap.c: device.op_count at the latest eviction */

    /* each file's own, made by its _init function or when it is first needed */
    struct pinned *pinned;
    struct swap *swap;
    struct foreign *foreign;
    struct pooled *pooled;     /* NULL: no memory is from a pool of the driver's */
    struct aside_room *aside;
    struct decoy *decoy;
};

int memory_init(struct device *d);
/* The device's context is gone, and whatever ran there: physical memory and addresses, which are no context's, go back to the driver.
 * Nothing of memory/ may be called for this device afterwards. Returns the bytes that the driver did not take back. */
uint64_t memory_end(struct device *d);
/* Raises the statistics' maxima, after more physical memory was made or more is live. */
void memory_note_peak(struct device *d);

#endif
