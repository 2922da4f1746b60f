/* memory.h: the state of a device's memory: device.mem. Every file of memory/ works on it, and each field is named under the file that
 * writes it; what other rooms read directly is addresses (slots), sizes and counts.
 *
 * One reservation is cut into slots, physical chunks are mapped under them, arenas hold what is small.
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
 * These are checked where memory changes hands, and all of them now and then (audit.h).
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

/* Memory that is ours and lies outside the reservation, besides what swapping has on the host. No program knows of it; but its words come
 * from stacks that we have used too, and what it never filled may point there. */
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
    uint64_t device_bytes;     /* of the device */
    uint64_t limit_bytes;      /* that this process may have there now */
    uint64_t whole_bytes;      /* where a script has taken a fraction of the limit: the limit; 0 */
    uint64_t ceiling_bytes;    /* >= limit_bytes, which limits_borrow() raises up to here: a soft limit is aimed at */
    uint64_t plan_limit_bytes; /* what a plan may count on: limit_bytes, in a group perhaps less */
    uint64_t refused_at_bytes; /* page.c: physical bytes here when the driver refused one page more, of a device that something else holds too; 0: it gives more */

    /* space.c: addresses */
    CUdeviceptr base;          /* of the reservation */
    uint64_t reserve_bytes, gran; /* gran: of a page, and of a chunk */
    unsigned shift;            /* gran == 1 << shift */
    uint64_t next_page, n_va_pages, top_page; /* pages from next_page on are nobody's; from top_page on nothing has ever lain */
    uint32_t *page_slot;       /* id + 1 of the slot (or of the arena, with PAGE_ARENA) at each page; 0: none */
    struct gap *gaps;
    uint32_t n_gaps, cap_gaps;

    /* slot.c */
    struct slot *slots;
    uint32_t n_slots;
    int32_t *free_slots;       /* by number of pages: head of a list of slots that nobody has, through next_free, next_back */
    uint64_t listed_pages;     /* of the slots in these lists */
    uint32_t n_lodged;         /* slots in host memory at their own address (lodge.h) */
    bool left_mapped;          /* an evicted slot still has its mappings: the host would have had to wait (slot_unmap_evicted) */
    int32_t small_structs, large_structs, foreign_structs; /* heads of lists of structs without an address, through next_free; -1 */
    uint64_t address_changes;  /* times that an address came to mean something else: memory of the program's own, slots of other sizes */
    uint64_t serial;           /* of the latest allocation */
    uint64_t live_bytes;       /* of managed memory that the program holds, in memory or not */
    uint64_t op_at_hand;       /* number of the op whose operands must not be evicted now: slot.needed_by */
    uint64_t walk;             /* number of the latest walk over operands in which each slot counts once: slot.visited_in */
    uint64_t tick;             /* counts ops that have run: slot.use_tick */

    /* chunk.c, supply.c */
    struct chunk *chunks;
    uint32_t n_chunks, n_gone, n_free_chunks; /* gone: given back to the driver, the row is free */
    int32_t free_head, free_tail;

    /* arena.c */
    struct arena *arenas;
    uint32_t n_arenas, n_arena_chunks;
    uint32_t *longest;         /* run of free units in each arena, leaves of a tree at MAX_ARENAS + i; longest[i] = max of its children */
    uint32_t longest_root;     /* of the least tree, from the left, that has all arenas so far */

    /* page.c, and whoever reserves addresses of our own */
    uint64_t own_bytes;        /* physical, of pages of ours outside every slot */
    struct own_range own[OWN_KINDS];

    /* foreign.c: memory of the program's own */
    uint64_t foreign_bytes;
    uint64_t graph_bytes;      /* of these: what the driver holds for graphs */

    /* pinned.c: pinned memory of the host */
    uint64_t host_bytes, host_limit_bytes;

    /* ahead.c */
    struct ahead {
        bool falling;                    /* the program holds less and less */
        uint64_t turning_bytes;          /* the least, or the most, that it has held since it does so */
        uint64_t largest_bytes[2];       /* allocation of this window of ops, and of the one before */
        struct fence coming;             /* the latest of what comes back early */
        uint64_t window_op;              /* device.op_count when this one began */
        uint64_t used_bytes, vain_bytes; /* of what came back early: used, and left again before anything used it */
    } ahead;

    bool pressed;              /* evict.c: something had to be evicted, or did not fit: the limit is felt */
    uint64_t evicted_op;       /* swap.c: device.op_count when something was evicted last */

    /* each file's own, made by its _init function or when it is first needed */
    struct pinned *pinned;
    struct swap *swap;
    struct foreign *foreign;
    struct pooled *pooled;     /* NULL: no pool of the driver's serves anything */
    struct aside_room *aside;
    struct decoy *decoy;
};

int memory_init(struct device *d);
/* The device's context is gone, and whatever ran there: physical memory and addresses, which are no context's, go back to the driver.
 * Nothing of memory/ may be called for this device afterwards. Bytes that the driver did not take back. */
uint64_t memory_end(struct device *d);
/* After more physical memory was made, or more is live: the statistics' maxima. */
void memory_note_peak(struct device *d);

#endif
