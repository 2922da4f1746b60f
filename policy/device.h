/* device.h: the state of one device, passed to everything below the engine; there is no other state than this struct
 * and what belongs to the process (configuration, log, functions' layouts).
 *
 * Threads: a device is guarded by the engine's mutex (whoever answers a door takes it, engine_own.h). Nothing here is used outside
 * policy/.
 * Errors: 0 or a negative errno below the engine; functions whose name ends in _drv return the driver's code.
 *
 * Invariants, by file:
 *   memory/  n_chunks * gran + foreign_bytes <= limit_bytes                      (physical bytes never pass the limit)
 *            and <= what the group's ledger counts as ours                       (share/share.h, in a group)
 *            a chunk has at most one owner; slot RESIDENT <=> it owns the chunks of all its pages
 *   swap.c   slot HOST <=> its content is in slot->host
 *   plan/    a slot LOST is rebuilt before anything reads it
 */
#ifndef REMAT_POLICY_DEVICE_H
#define REMAT_POLICY_DEVICE_H

#include "policy/process/config.h"
#include "policy/driver.h"
#include "policy/memory/fence.h"
#include "policy/process/log.h"
#include "policy/process/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* ---- memory ----------------------------------------------------------------------------------------------- */

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

struct host_block {
    void *p;
    size_t bytes;
    struct fence busy; /* copies of ours that use it */
    struct host_block *next, *next_all;
};

struct slot {
    /* what a launch of a steady iteration looks at: the first line of the cache for what it reads, the next two for the rest */
    _Alignas(64) struct fence ready; /* see fence.h */
    uint32_t id, n_pages, pins;
    int32_t plan_buf;    /* buffer of the installed plan bound to it in this iteration; -1 */
    uint8_t kind, state;
    bool live;           /* the program holds it */
    bool idle;           /* LARGE: in the list of free slots */
    bool kept;           /* freed by the program, in memory because a plan needs it */
    bool written;        /* something may have written it since it was allocated */
    bool watched;        /* its hash is known (probe.c) */
    bool points;         /* addresses lie in it */
    bool named;          /* its own lies in memory that nobody tells us of, a variable of a module: any kernel may know it */
    struct fence users;
    uint64_t use_tick;   /* device.tick of its latest use */
    uint64_t mark;       /* == device.mark: needed by the op at hand, not to be evicted */
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
    int32_t watched_at;  /* the probed op that left this hash */
};

enum slot_ord {
    ORD_NONE = -1, /* to none: free to reuse once the program has freed it */
    ORD_OWED = -2  /* to none, and freed by the program while the plan needed it: whoever is done with it frees it */
};

struct chunk {
    CUmemGenericAllocationHandle handle;
    int32_t owner;       /* slot id, -1 free, CHUNK_ARENA, CHUNK_GONE, CHUNK_LENT */
    uint32_t page;       /* of its owner: another page of the same slot may have a stale mapping of it */
    int32_t prev, next;  /* free list */
    struct fence ready;  /* of its earlier owners: goes to the next one */
    CUdeviceptr at;      /* an address where it is mapped; 0: none is known */
};
enum { CHUNK_FREE = -1, CHUNK_ARENA = -2, CHUNK_GONE = -3, CHUNK_LENT = -4 };

struct stats { /* counters only, then sums of time: stats_write() adds devices up field by field */
    uint64_t peak_physical_bytes, native_peak_bytes, iterations, iterations_enforced, launches, replays, evictions;
    uint64_t swaps_out, swaps_in, divergences, verify_checked, verify_failed;
    uint64_t mem_calls, mem_calls_enforced, swaps_enforced, hook_ns, hook_launches;
    uint64_t iterations_steady; /* enforced, without a trial, since the plan was proved */
    uint64_t bytes_out, bytes_in, iter_ns_count, tried_ns_count, gave_back_bytes, launches_tried, launches_looked_at;
    double iter_ns_sum, tried_ns_sum; /* iterations under a plan: steady ones, and those with launches that ran as trials */
};
enum { STATS_COUNTERS = offsetof(struct stats, iter_ns_sum) / sizeof(uint64_t) };

enum rt_mode { MODE_OBSERVE, MODE_PROBE, MODE_PLAN, MODE_REHEARSE, MODE_ENFORCE, MODE_STANDBY };

/* Memory that is ours and lies outside the reservation, besides what swapping has on the host. No program knows of it; but its words come
 * from stacks that we have used too, and what it never filled may point there. */
enum own_kind { OWN_DECOY, OWN_ASIDE, OWN_VERIFY, OWN_KINDS };
struct own_range {
    CUdeviceptr at;
    uint64_t bytes;
};

struct func;
struct rt_op;

struct device {
    const struct drv *drv;
    const struct config *cfg;
    struct status_device *status; /* NULL: nobody is told */
    bool ready;   /* set up */
    bool barred;  /* could not be set up where a maximum holds: it allocates nothing */
    bool gone;    /* its context was destroyed: only what is told at exit is left */
    bool primary; /* the first device of the process: it records traces */
    CUmemoryPool current_pool; /* of allocations that name none; NULL: to be asked for */
    CUdevice dev;
    CUcontext ctx;
    enum rt_mode mode;
    enum rt_mode whole_mode; /* in which the last whole iteration ran */

    /* memory */
    CUdeviceptr base;
    uint64_t reserve_bytes, gran, limit_bytes, device_bytes;
    uint64_t plan_limit_bytes; /* what a plan may count on: limit_bytes, in a group perhaps less */
    uint64_t ceiling_bytes; /* >= limit_bytes, which device_borrow() raises up to here: a soft limit is aimed at */
    unsigned shift;
    uint64_t next_page, n_va_pages, top_page; /* top_page: from there on nothing has ever lain */
    uint32_t *page_slot; /* id + 1 of the slot (or of the arena, with PAGE_ARENA) at each page; 0: none */
    struct slot *slots;
    uint32_t n_slots;
    struct chunk *chunks;
    uint32_t n_chunks, n_gone, n_free_chunks;
    int32_t free_head, free_tail;
    uint64_t own_bytes; /* pages of ours outside every slot */
    struct own_range own[OWN_KINDS];
    uint64_t address_changes; /* times that an address came to mean something else: memory of the program's own, slots of other sizes */
    uint64_t foreign_bytes, live_bytes, mark, tick, serial;
    uint64_t graph_bytes; /* of foreign_bytes: what the driver holds for graphs */
    struct reached *reached; /* words in memory that point at managed memory (reach.c) */
    uint32_t n_reached, cap_reached;
    uint64_t op_count; /* ops of the program so far, but for copies to the host (op_reads_for_host) */
    uint64_t host_bytes, host_limit_bytes;

    /* streams */
    CUstream stream[RT_MAX_STREAMS];
    uint64_t seq[RT_MAX_STREAMS]; /* things queued on each */
    bool blocking_streams;        /* the program has some besides the legacy one, see stream_acts() */
    bool pressed;                 /* something had to be evicted, or did not fit: the limit is felt */
    int broken;                   /* the driver's code, after it refused to order something; 0 */
    uint8_t doubt, doubt_met;     /* enum rt_doubt: a check has failed (process/check.h); what the engine has reacted to so far */
    uint64_t audited_op;          /* op_count when audit_memory() looked last */

    /* each file's own, made by its _init function */
    struct mem *mem;
    struct swap *swap;
    struct streams *streams;
    struct foreign *foreign;
    struct hashing *hashing;
    struct aside_room *aside;
    struct decoy *decoy;
    struct probe *probe;
    struct learn *learn;
    struct campaign *campaign;
    struct planner *planner;
    struct stats_clock *clock;
    struct exec *ex;
    struct share *share; /* of a group's budget; NULL: this process is in none */
    struct verify *verify;

    CUdeviceptr read_scratch;    /* where replays read small operands from, one replay after another; 0: none */
    uint64_t read_scratch_bytes;
    struct slot *scratch_region; /* where large side operands of replays go, one replay after another; NULL none */
    bool ended; /* with its last context: whoever calls next in another one finds it set up anew (engine_here) */
    bool capturing;
    bool trying;             /* between trial_open() and trial_close(): decoys may be in use */
    uint64_t issue_ns; /* of the driver's own launch call, when timing */
    bool timing;
    struct stats st;
};

#define PAGE_ARENA 0x80000000u

/* A size as messages have it: whole MiB, but KiB where that would hide something. `rt_size(bytes).text` lasts as long as the call it is in. */
struct rt_said {
    char text[24];
};
static inline struct rt_said rt_size(uint64_t bytes)
{
    struct rt_said s;
    bool whole = bytes >= 16u << 20 || (bytes && !(bytes & 0xfffff));
    snprintf(s.text, sizeof s.text, "%llu %s", (unsigned long long)(whole ? bytes >> 20 : (bytes + 1023) >> 10), whole ? "MiB" : "KiB");
    return s;
}

/* A driver call of memory management on the device `d`, counted for driver_memory_calls_steady. */
#define MEM_CALL(call) (d->st.mem_calls++, d->drv->call)

/* What is going on, in a word (DESIGN: observe, probe, plan, rehearse, enforce, swap). */
const char *device_mode_name(const struct device *d, enum rt_mode m);
/* Nothing more can move: a soft limit gives way, for `bytes` and a little more. False: it is hard, or all is taken. */
bool device_borrow(struct device *d, uint64_t bytes);
/* Physical memory on the device now: chunks, the program's own, remat's own. */
uint64_t device_physical_bytes(const struct device *d);
/* What a driver's result code is called. */
const char *rt_code_name(struct device *d, int code);

/* ---- memory (memory/: space.c, chunk.c, slot.c, arena.c) --------------------------------------------------- */

int mem_init(struct device *d);
/* The live slot that ptr points into (one past its end included), or NULL. A few instructions. */
struct slot *mem_lookup(struct device *d, CUdeviceptr ptr);
/* Bytes from the slot's start that have memory behind them, or will: what the driver can do there without a fault. */
uint64_t mem_slot_room(const struct device *d, const struct slot *s);
/* What the lower half of an address is where it may be a number of four bytes: an integer, unless it is far from zero, or a float, unless it
 * is negative and next to nothing. No slot lies there that is not very large (space.c). */
static const uint64_t MEM_NUMBERS_TO = 0x81000000, MEM_NUMBERS_FROM = 0xb0000000;
static inline bool mem_may_be_number(CUdeviceptr p) { return (uint32_t)p < MEM_NUMBERS_TO || (uint32_t)p >= MEM_NUMBERS_FROM; }
static inline bool mem_in_reservation(const struct device *d, CUdeviceptr p) { return p - d->base < d->reserve_bytes; }
/* The slot whose address range holds ptr, live or not. */
struct slot *mem_range_of(struct device *d, CUdeviceptr ptr);

/* A slot for `bytes`, live, EMPTY. -ENOMEM when address space or bookkeeping is exhausted. */
int mem_slot_new(struct device *d, uint64_t bytes, struct slot **out);
/* A slot of this size that nobody else gets, not live; for the plan's allocation `ord`. */
int mem_slot_fixed(struct device *d, uint64_t bytes, int ord, struct slot **out);
/* Makes a fixed slot an ordinary free one again (it must not be live). */
void mem_slot_unfix(struct device *d, struct slot *s);
void mem_slot_revive(struct device *d, struct slot *s, uint64_t bytes); /* a fixed slot becomes live */
/* The program (or a plan) is done with it: its memory is free in the order of its streams. */
void mem_slot_free(struct device *d, struct slot *s);
/* The program has freed it in stream t, which it has ordered behind all its uses: only that point is left of them. */
void mem_slot_freed_on(struct device *d, struct slot *s, unsigned t);
/* Puts memory behind an EMPTY / LOST / HOST slot, evicting others if it must. The content is undefined; s->ready says when it
 * may be touched. -ENOMEM: nothing more can move. */
FENCE_MUST_USE int mem_back(struct device *d, struct slot *s);
/* The device's context is gone, and whatever ran there: physical memory and addresses, which are no context's, go back to the driver.
 * Nothing of memory/ may be called for this device afterwards. Bytes that the driver did not take back. */
uint64_t mem_end(struct device *d);
/* Likewise, of what swapping had on the host: the driver has freed it with the context. */
void swap_end(struct device *d);
/* Memory can be put behind it later as well as now: others would have to go to the host first, and there is room for them. */
bool mem_can_wait(struct device *d, const struct slot *s);
/* Takes the memory away; the content is gone or elsewhere. `state`: what it is now. Its chunks carry its fences on. */
void mem_unback(struct device *d, struct slot *s, enum slot_state state);
/* `--rehearse unmapped` only: unmaps what mem_unback() could not, since the host would have had to wait. -EAGAIN: it still would. */
FENCE_MUST_USE int mem_unmap_evicted(struct device *d);
/* At least `bytes` of physical room for something that is not ours (evicts, releases chunks; while a stream is captured neither). 0 or -ENOMEM. */
int mem_make_foreign_room(struct device *d, uint64_t bytes);
/* The program has graphs, or had: what the driver holds for their allocation nodes counts, as much as it says now. */
void foreign_graphs(struct device *d);
/* Memory of the program's own that it has given back in stream order is counted until the stream has come to that. Looks, without waiting, which
 * is; waits for the first that is not: false where there is none, or the wait is put off (fence.h). */
void foreign_look(struct device *d);
bool foreign_wait(struct device *d);
/* Gives `bytes` back to the driver, as far as anything can move: what is free first, then least recently used by swap. Returns
 * what has been given. No plan may be installed. */
uint64_t mem_give(struct device *d, uint64_t bytes);
/* At least `bytes` back to the driver, which needs them for something of its own; a plan may be in force: what it lacks then it swaps. What
 * the op at hand touches stays. What has been given: 0 where nothing can move. */
uint64_t mem_give_driver(struct device *d, uint64_t bytes);
/* All that is free, too, and what learning holds. */
void mem_give_free(struct device *d);
void mem_note_peak(struct device *d);
/* Small scratch memory of our own, 256-byte aligned, resident for ever. 0 on failure. */
CUdeviceptr mem_scratch(struct device *d, uint64_t bytes);
bool mem_is_small(struct device *d, uint64_t bytes);
/* As many of `n` things as are small together, halved for as long as it takes (pages may be small), but one at least if n is. */
uint32_t mem_most_small(struct device *d, uint32_t n, uint64_t bytes_each);
/* What is useful and not needed may have scratch of its own: on pages of a device's usual size it lies beside small tensors; where pages
 * are tiny it takes some, which must be nothing beside the limit. */
enum { PAGE_USUAL_BYTES = 1 << 16, PAGES_MANY = 256 };
static inline bool mem_pages_are_many(const struct device *d) { return d->gran >= PAGE_USUAL_BYTES || d->limit_bytes / d->gran >= PAGES_MANY; }
static inline uint64_t mem_pages(struct device *d, uint64_t bytes) { return bytes ? (bytes + d->gran - 1) >> d->shift : 1; }
/* Maps `chunk` at page p of slot s; the page's stale mapping goes first (the host waits for its users). */
int mem_map_page(struct device *d, struct slot *s, uint32_t page, int32_t chunk);
/* Chunks that a plan may count on in all, arenas included. */
uint64_t mem_max_chunks(struct device *d);
uint64_t mem_arena_chunks(struct device *d);
uint64_t mem_arena_free_bytes(struct device *d); /* in the pages that have memory now, however they lie */
uint64_t mem_small_bytes(uint64_t bytes);        /* that a small allocation of so many takes of its page */
/* Bytes of pages that nothing can move: the program's own, remat's own, those of small tensors, and what something reaches unseen. */
uint64_t mem_fixed_bytes(struct device *d);
void mem_arena_trim(struct device *d); /* empty arena pages give their chunks back */
int32_t mem_chunk_new(struct device *d); /* creates one more chunk, free; -1: limit reached or the driver refused, and learning holds nothing to spare */
/* A free chunk that is mapped somewhere (its `at`), for as long as nobody else runs: it needs no driver call. -1: there is none. Its
 * address is that of a slot without memory, so a stale pointer may point there: what lies there is checked before it is believed. */
int32_t mem_chunk_borrow(struct device *d);
void mem_chunk_returned(struct device *d, int32_t c);

/* Pages of our own outside every slot, counted as physical. One more: 0, or -ENOMEM where the limit or the driver does not allow it;
 * nothing is evicted. It is mapped `n` times in a row at va, which the caller has reserved; nobody uses what is unmapped. */
int mem_page_of_own(struct device *d, CUmemGenericAllocationHandle *out);
void mem_page_gone(struct device *d, CUmemGenericAllocationHandle h);
int mem_page_map(struct device *d, CUdeviceptr va, uint64_t n, CUmemGenericAllocationHandle h);
void mem_page_unmap(struct device *d, CUdeviceptr va, uint64_t n);

/* A slot that stands for memory of the program's own; freed by mem_slot_foreign_gone(). NULL: no room. */
struct slot *mem_slot_foreign(struct device *d, CUdeviceptr va, uint64_t bytes);
void mem_slot_foreign_gone(struct device *d, struct slot *s);

/* ---- statistics (stats.c) ----------------------------------------------------------------------------------- */

int stats_init(struct device *d);
/* An iteration begins on stream t: its device time is measured between two such calls. `steady`: counted. */
void stats_boundary(struct device *d, unsigned t, bool steady);
/* The first steady iteration begins: times measured before it do not count. */
void stats_steady_from_here(struct device *d);
/* How long the longest of the latest iterations took the host; 0: not known yet. */
uint64_t stats_wall_ns(const struct device *d);
/* The iteration in progress is no measure of a steady one: its plan was left. */
void stats_not_steady(struct device *d);
/* Nor is it if a launch ran as a trial in it; it is told where there is no other. */
void stats_tried(struct device *d);
/* One object for all devices together: counts are added up. `active`: the engine is (its mode, where no device is in use). Nothing where the
 * configuration names no file. */
void stats_write(const struct config *cfg, struct device *const *devs, unsigned n, bool active);
/* The same while the program runs, if it is time: for processes that end without a word. Files alone, no pipe or device. */
void stats_keep(const struct config *cfg, struct device *const *devs, unsigned n, bool active);
/* The same at _exit(): may be called in a signal handler. */
void stats_keep_last(struct device *const *devs, unsigned n, bool active);
void stats_after_fork_child(void); /* the file is the parent's */
static inline uint64_t stats_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
/* Round a launch that goes to the driver, while a launch of the program is timed: the driver's own time is none of ours. */
static inline uint64_t stats_driver_begins(const struct device *d) { return d->timing ? stats_now_ns() : 0; }
static inline void stats_driver_ended(struct device *d, uint64_t began)
{
    if (d->timing)
        d->issue_ns += stats_now_ns() - began;
}

/* ---- swap (swap.c) ---------------------------------------------------------------------------------------- */

int swap_init(struct device *d);
int swap_out(struct device *d, struct slot *s); /* RESIDENT -> HOST (EMPTY if never written). -ENOMEM: host memory exhausted */
int swap_in(struct device *d, struct slot *s);  /* HOST -> RESIDENT */
/* A pinned host block; NULL when the cap is reached. swap_host_put gives it back. */
struct host_block *swap_host_get(struct device *d, uint64_t bytes);
/* The host waits for the copies that use the block. */
FENCE_MUST_USE int swap_host_wait(struct device *d, struct host_block *b);
void swap_host_put(struct device *d, struct host_block *b);
/* The address lies in such a block. Programs know none of them, but find our words in what they leave uninitialised on the stack. */
bool swap_host_is_ours(const struct device *d, CUdeviceptr p);
/* It points at memory that the library manages or has for itself: the reservation, our own ranges, host blocks of ours. */
static inline bool device_is_ours(const struct device *d, CUdeviceptr p)
{
    if (mem_in_reservation(d, p))
        return true;
    for (int i = 0; i < OWN_KINDS; i++)
        if (p - d->own[i].at < d->own[i].bytes)
            return true;
    return swap_host_is_ours(d, p);
}
/* No memory of host or device lies below, or above: such a word is a number, and the driver need not be asked. */
static inline bool device_may_be_address(uint64_t word) { return word >= 1 << 16 && !(word >> 57); }
/* The copies themselves. Out: into slot->host, the slot stays RESIDENT. In: HOST -> RESIDENT, slot->host stays. */
int swap_copy_out(struct device *d, struct slot *s);
int swap_copy_in(struct device *d, struct slot *s);
void swap_discard(struct device *d, struct slot *s); /* forget the host copy */
/* Host bytes a second, measured on copies of before the plan: the slower direction. 0: none was long enough. */
uint64_t swap_bytes_per_s(struct device *d);
/* Whether it can be evicted: in memory, not pinned, not needed by the op at hand. */
bool swap_may_go(const struct device *d, const struct slot *s);
/* Pinned host memory that may still be taken. */
uint64_t swap_room_bytes(const struct device *d);
/* Evicts least recently used slots until `n` chunks are free or nothing can move. */
void swap_evict_for(struct device *d, uint64_t n_chunks);

#endif
