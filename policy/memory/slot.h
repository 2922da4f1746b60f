/* slot.h: slots: an address each, with the chunks that are mapped there; found by address, listed by size. What gives a slot memory is
 * resident.h, what hands one out is alloc.h.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_SLOT_H
#define REMAT_POLICY_MEMORY_SLOT_H

#include "policy/device.h"

enum { MAX_SLOTS = 1 << 20, MAX_LIST_PAGES = 1 << 16 };
#define PAGE_ARENA 0x80000000u /* in memory.page_slot: the rest is the number of an arena */

enum slot_kind {
    SLOT_LARGE,  /* chunks of its own, evictable */
    SLOT_SMALL,  /* an entry of an arena page, never evicted */
    SLOT_FOREIGN /* memory of the program's own, known by address, never evicted */
};
enum slot_state {
    SLOT_EMPTY,    /* no memory behind it and nothing to keep */
    SLOT_RESIDENT, /* readable */
    SLOT_HOST,     /* swapped out */
    SLOT_LOST      /* dropped by a plan; a replay will rebuild it */
};

struct slot {
    /* what a launch of a steady iteration looks at: the first line of the cache for what it reads, the next two for the rest */
    _Alignas(64) struct fence ready; /* see fence.h */
    uint32_t id, n_pages, pins;
    int32_t plan_buf;    /* buffer of the installed plan bound to it in this iteration; -1 */
    uint8_t kind, state;
    bool live;           /* the program holds it */
    bool listed;         /* LARGE: in a list of free slots */
    bool owed;           /* freed by the program, in memory because a plan needs it */
    bool written;        /* something may have written it since it was allocated */
    bool watched;        /* its hash is known (probe.c) */
    bool points;         /* addresses lie in it */
    bool unmade;         /* the launch that should have written it was left out (unmet.h): nothing reads it */
    bool waits;          /* cuMemAlloc has given it out: its free waits for the device */
    bool lodged;         /* RESIDENT in host memory, without chunks (lodge.h) */
    bool early;          /* it has come back early, and nothing has used it yet (ahead.h) */
    bool named;          /* its own lies in memory that nobody tells us of, a variable of a module: any kernel may know it */
    struct fence users;
    uint64_t use_tick;   /* device.tick of its latest use */
    uint64_t needed_by;  /* == memory.op_at_hand: an operand of the op at hand, not to be evicted */
    uint64_t visited_in; /* == memory.walk: the walk over operands that is under way has come to it */
    struct host_block *host;
    struct fence unseen;
    int32_t *map;        /* LARGE: chunk mapped at each page, -1 none; may be stale when not RESIDENT */
    CUdeviceptr va;
    uint64_t bytes;      /* of the current allocation */

    struct fence stale;
    uint64_t serial;     /* of the current allocation; unique in the process */
    uint64_t birth_op;   /* device.op_count when it was allocated */
    CUmemoryPool pool;   /* as the program asked */
    uint32_t arena, entry; /* SMALL: which page, first unit; n_pages counts units */
    int32_t rec_buf;     /* buffer of the recording in progress; -1 */
    int32_t fixed_ord;   /* belongs to the plan's allocation of this ordinal; or enum slot_ord */
    int32_t next_free, next_back; /* list of free slots with as many pages, both ways */
    uint64_t hash[2];
    uint64_t looked_tick, looked_hash[2]; /* of its content, as long as use_tick is that tick (plan/proof.h) */
    int32_t over_at;     /* SMALL, fixed: op after which its present tenant is over for good (install.c) */
    CUmemGenericAllocationHandle *host_pages; /* [n_pages] LARGE: pages of the host that are mapped here, and no chunk is; NULL: none are (lodge.h) */
    int32_t watched_at;  /* the probed op that left this hash */
};

enum slot_ord {
    ORD_NONE = -1, /* to none: free to reuse once the program has freed it */
    ORD_OWED = -2  /* to none, and freed by the program while the plan needed it: whoever is done with it frees it */
};

/* The live slot that ptr points into (one past its end included), or NULL. A few instructions. */
struct slot *slot_lookup(struct device *d, CUdeviceptr ptr);
/* The slot whose address range holds ptr, live or not. */
struct slot *slot_range_of(struct device *d, CUdeviceptr ptr);
/* Bytes from the slot's start that have memory behind them, or will: what the driver can do there without a fault. */
uint64_t slot_room(const struct device *d, const struct slot *s);

/* The struct alone, without an address; NULL when there are too many. */
struct slot *slot_create(struct device *d, enum slot_kind kind);
/* A LARGE slot of so many pages that nobody has, without memory: one whose old chunks are all still free where there is one, or a new one. Stream t is the one in whose order the
 * program asks for it (STREAM_NONE: in none): where that stream stands still for the host, so does a slot that was freed there, natively too. */
int slot_take_large(struct device *d, uint32_t n_pages, unsigned t, struct slot **out);
/* A LARGE slot is nobody's from now on, and keeps its address. */
void slot_list_add(struct device *d, struct slot *s);
/* Pages of address space for a slot or an arena; slots that nobody has used for long give theirs up. */
int slot_space(struct device *d, uint64_t n, uint64_t *first);
void slot_revive(struct device *d, struct slot *s, uint64_t bytes); /* the slot becomes live: the next allocation's */
/* The program has freed it in stream t, which it has ordered behind all its uses: only that point is left of them. */
void slot_freed_on(struct device *d, struct slot *s, unsigned t);
/* All that whoever gets the slot's memory next must come after. */
void slot_fences(struct device *d, const struct slot *s, struct fence *into);
/* Takes the memory away; the content is gone or elsewhere. `state`: what it is now. Its chunks carry its fences on. */
void slot_unback(struct device *d, struct slot *s, enum slot_state state);
/* `--rehearse unmapped` only: unmaps what slot_unback() could not, since the host would have had to wait. -EAGAIN: it still would. */
FENCE_MUST_USE int slot_unmap_evicted(struct device *d);

/* The largest tensor in memory of so many bytes, at least and at most: one whose copy is worth timing. NULL: there is none. */
struct slot *slot_largest(struct device *d, uint64_t least_bytes, uint64_t most_bytes);

/* A slot that stands for memory of the program's own; freed by slot_foreign_gone(). NULL: no room. */
struct slot *slot_foreign(struct device *d, CUdeviceptr va, uint64_t bytes);
void slot_foreign_gone(struct device *d, struct slot *s);

#endif
