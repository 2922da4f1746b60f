/* slot.h: slots: an address each, with the chunks that are mapped there; found by address, listed by size. resident.h gives a
 * slot memory, alloc.h hands slots out.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_SLOT_H
#define REMAT_POLICY_MEMORY_SLOT_H

#include "policy/device.h"

enum { MAX_SLOTS = 1 << 20, MAX_LIST_PAGES = 1 << 16 };
#define PAGE_ARENA 0x80000000u /* bit in memory.page_slot: the other bits are the number of an arena, plus one */

enum slot_kind {
    SLOT_LARGE,  /* chunks of its own, evictable */
    SLOT_SMALL,  /* an entry of an arena page, never evicted */
    SLOT_FOREIGN /* memory of the program's own, known by address, never evicted */
};
enum slot_state {
    SLOT_EMPTY,    /* no memory behind the slot, and no content to keep */
    SLOT_RESIDENT, /* readable */
    SLOT_HOST,     /* swapped out */
    SLOT_LOST      /* dropped by a plan; a replay will rebuild it */
};

struct slot {
    /* fields that a launch of a steady iteration looks at: the first line of the cache for what it reads, the next two for the rest */
    _Alignas(64) struct fence ready; /* see fence.h */
    uint32_t id, n_pages, pins;
    int32_t plan_buf;    /* buffer of the installed plan that the slot is bound to in this iteration; -1: none */
    uint8_t kind, state;
    bool live;           /* held by the program: allocated, not yet freed */
    bool listed;         /* LARGE: in a list of free slots */
    bool owed;           /* freed by the program, kept because a plan needs the slot */
    bool written;        /* an op may have written the slot since it was allocated */
    bool watched;        /* `hash` is known: the content's when it was measured last (probe.c) */
    bool points;         /* the content holds addresses */
    bool unmade;         /* the launch that should have written the slot was left out (unmet.h): no op reads the slot */
    bool waits;          /* given out by cuMemAlloc: its free waits for the device */
    bool lodged;         /* RESIDENT in host memory, without chunks (lodge.h) */
    bool early;          /* fetched early, and not used by any op since (ahead.h) */
    bool named;          /* the slot's address lies where remat cannot follow it, as in a variable of a module: any kernel may know the address */
    struct fence users;
    uint64_t use_tick;   /* memory.tick at the latest use */
    uint64_t needed_by;  /* == memory.op_at_hand: an operand of the op at hand, not to be evicted */
    uint64_t visited_in; /* == memory.walk: the walk over operands under way has come to this slot */
    struct host_block *host;
    struct fence unseen;
    int32_t *map;        /* LARGE: chunk mapped at each page, -1 none; may be stale when not RESIDENT */
    CUdeviceptr va;
    uint64_t bytes;      /* size of the current allocation */

    struct fence stale;
    uint64_t serial;     /* number of the current allocation; unique on the device */
    uint64_t birth_op;   /* device.op_count at the allocation */
    CUmemoryPool pool;   /* as the program asked */
    uint32_t arena, entry; /* SMALL: number of the arena, first unit there; n_pages counts units */
    int32_t rec_buf;     /* buffer of the recording in progress; -1: none */
    int32_t fixed_ord;   /* ordinal of the plan's allocation that the slot belongs to; or enum slot_ord */
    int32_t next_free, next_back; /* list of free slots with as many pages, both ways */
    uint64_t hash[2];
    uint64_t looked_tick, looked_hash[2]; /* looked_hash: of the content, as long as use_tick == looked_tick (plan/proof.h) */
    int32_t over_at;     /* SMALL, fixed: op after which the buffer that has the slot is over for good (install.c) */
    CUmemGenericAllocationHandle *host_pages; /* [n_pages] LARGE: host pages that are mapped in place of chunks; NULL: none (lodge.h) */
    int32_t watched_at;  /* probed op after which `hash` was taken */
};

enum slot_ord {
    ORD_NONE = -1, /* no allocation of the plan: the slot can be reused once the program has freed it */
    ORD_OWED = -2  /* no allocation of the plan, freed by the program while the plan needs the slot: alloc_free() is due when the plan lets go of it */
};

/* The live slot that ptr points into (one past its end included), or NULL. A few instructions. */
struct slot *slot_lookup(struct device *d, CUdeviceptr ptr);
/* The slot whose address range holds ptr, live or not. */
struct slot *slot_range_of(struct device *d, CUdeviceptr ptr);
/* Bytes from the slot's start that have memory behind them while the slot is resident: the driver accesses them without a fault. */
uint64_t slot_room(const struct device *d, const struct slot *s);

/* A slot's struct alone, without an address; NULL: MAX_SLOTS are in use. */
struct slot *slot_create(struct device *d, enum slot_kind kind);
/* A free LARGE slot of n_pages pages, without memory: rather one whose old chunks are all still free; a new slot where no free one fits. The program asks for it in the
 * order of stream t (STREAM_NONE: of none): a slot that was freed on t may stand still with t, as its memory does natively. */
int slot_take_large(struct device *d, uint32_t n_pages, unsigned t, struct slot **out);
/* Adds a LARGE slot to the free slots; the slot keeps its address. */
void slot_list_add(struct device *d, struct slot *s);
/* n pages of address space for a slot or an arena; free slots that were not used for long may give up their addresses. */
int slot_space(struct device *d, uint64_t n, uint64_t *first);
void slot_revive(struct device *d, struct slot *s, uint64_t bytes); /* the slot becomes live, for an allocation of `bytes` */
/* The program has freed the slot in stream t, which it has ordered behind all uses of the slot: s->users becomes that one point of t. */
void slot_freed_on(struct device *d, struct slot *s, unsigned t);
/* Adds to `into` all points that the next owner of the slot's memory must come after. */
void slot_fences(struct device *d, const struct slot *s, struct fence *into);
/* Takes the slot's memory away; the content is gone or elsewhere. `state`: the slot's new state. Its chunks carry its fences on. */
void slot_unback(struct device *d, struct slot *s, enum slot_state state);
/* `--rehearse unmapped` only: unmaps evicted slots that slot_unback() left mapped, since the host would have had to wait. -EAGAIN: the host still would. */
FENCE_MUST_USE int slot_unmap_evicted(struct device *d);

/* The largest resident tensor of least_bytes to most_bytes: its copy is worth timing. NULL: none. */
struct slot *slot_largest(struct device *d, uint64_t least_bytes, uint64_t most_bytes);

/* A slot that stands for memory of the program's own; freed by slot_foreign_gone(). NULL: no room. */
struct slot *slot_foreign(struct device *d, CUdeviceptr va, uint64_t bytes);
void slot_foreign_gone(struct device *d, struct slot *s);

#endif
