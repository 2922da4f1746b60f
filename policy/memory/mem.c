/* Device memory: one reservation cut into slots, physical chunks mapped under them, arenas for what is small.
 *
 * A slot keeps the chunks that were last mapped at its pages even when it no longer owns them (a stale mapping), so
 * that a slot which comes back and finds them free again needs no driver call. One chunk may be mapped at many
 * addresses; only its owner's content counts, and the owner changes in stream order (chunk.ready_mask). A stale
 * mapping is removed only when its page needs another chunk or the chunk goes back to the driver, after the host has
 * seen the end of everything that used the address (unmapping is not stream-ordered).
 */
#include "policy/rt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_SLOTS = 1 << 20, MAX_CHUNKS = 1 << 20, MAX_LIST_PAGES = 1 << 16, MAX_ARENAS = 1 << 16, UNIT_BYTES = 512 };

/* One page shared by small allocations, in units of UNIT_BYTES; each has at least a byte of room past its end. */
struct arena {
    int32_t chunk;       /* -1: the page is empty and its chunk was given back */
    uint32_t n_free;     /* units */
    uint32_t *unit_slot; /* per unit: id + 1 of the slot that holds it, 0 free */
    uint64_t ready_mask; /* streams that used what was freed in it */
    CUdeviceptr va;
};

static int32_t *free_slots; /* by number of pages: head of a list through next_free */
static int32_t small_structs = -1, foreign_free = -1;
static struct arena *arenas;
static uint32_t n_arenas, n_arena_chunks, arena_hint;

static void *table(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

int mem_init(void)
{
    CUmemAllocationProp prop;
    size_t gran = 0;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = rt.dev;
    if (rt.drv->cuMemGetAllocationGranularity(&gran, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS ||
        !gran || (gran & (gran - 1)))
        return -ENOTSUP;
    rt.gran = gran;
    rt.shift = (unsigned)__builtin_ctzll(gran);
    /* Address space is spent, never memory: room for 64 devices' worth of slots, less where the driver has less. */
    uint64_t want = 1ull << 36;
    while (want < rt.device_bytes * 64)
        want <<= 1;
    for (rt.base = 0; want >= rt.device_bytes * 2 && !rt.base; want >>= 1) {
        CUdeviceptr p = 0;
        if (rt.drv->cuMemAddressReserve(&p, want, gran, 0, 0) == CUDA_SUCCESS) {
            rt.base = p;
            rt.reserve_bytes = want;
        }
    }
    if (!rt.base)
        return -ENOMEM;
    rt.n_va_pages = rt.reserve_bytes >> rt.shift;
    rt.page_slot = table(rt.n_va_pages * sizeof *rt.page_slot);
    rt.slots = table((size_t)MAX_SLOTS * sizeof *rt.slots);
    rt.chunks = table((size_t)MAX_CHUNKS * sizeof *rt.chunks);
    arenas = table((size_t)MAX_ARENAS * sizeof *arenas);
    free_slots = malloc(MAX_LIST_PAGES * sizeof *free_slots);
    if (!rt.page_slot || !rt.slots || !rt.chunks || !arenas || !free_slots)
        return -ENOMEM;
    for (int i = 0; i < MAX_LIST_PAGES; i++)
        free_slots[i] = -1;
    rt.free_head = rt.free_tail = -1;
    rt.mark = 1;
    return 0;
}

/* ---- chunks ----------------------------------------------------------------------------------------------- */

static void chunk_list_add(int32_t c)
{
    struct chunk *k = &rt.chunks[c];
    k->owner = CHUNK_FREE;
    k->next = -1;
    k->prev = rt.free_tail;
    if (rt.free_tail >= 0)
        rt.chunks[rt.free_tail].next = c;
    else
        rt.free_head = c;
    rt.free_tail = c;
    rt.n_free_chunks++;
}

static void chunk_list_take(int32_t c)
{
    struct chunk *k = &rt.chunks[c];
    if (k->prev >= 0)
        rt.chunks[k->prev].next = k->next;
    else
        rt.free_head = k->next;
    if (k->next >= 0)
        rt.chunks[k->next].prev = k->prev;
    else
        rt.free_tail = k->prev;
    rt.n_free_chunks--;
}

uint64_t mem_physical_bytes(void)
{
    return ((uint64_t)(rt.n_chunks - rt.n_gone) << rt.shift) + rt.foreign_bytes;
}

void mem_note_peak(void)
{
    uint64_t now = mem_physical_bytes();
    if (now > rt.st.peak_physical_bytes)
        rt.st.peak_physical_bytes = now;
    if (rt.live_bytes + rt.foreign_bytes > rt.st.native_peak_bytes)
        rt.st.native_peak_bytes = rt.live_bytes + rt.foreign_bytes;
    if (rt.status) {
        status_store(&rt.status->in_use_bytes, now);
        status_store(&rt.status->peak_bytes, rt.st.peak_physical_bytes);
    }
}

uint64_t mem_max_chunks(void)
{
    return rt.limit_bytes > rt.foreign_bytes ? (rt.limit_bytes - rt.foreign_bytes) >> rt.shift : 0;
}

uint64_t mem_arena_chunks(void) { return n_arena_chunks; }

int32_t mem_chunk_new(void)
{
    if (mem_physical_bytes() + rt.gran > rt.limit_bytes)
        return -1;
    int32_t c = -1;
    if (rt.n_gone)
        for (uint32_t i = 0; i < rt.n_chunks && c < 0; i++)
            if (rt.chunks[i].owner == CHUNK_GONE)
                c = (int32_t)i;
    if (c < 0 && rt.n_chunks == MAX_CHUNKS)
        return -1;
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = rt.dev;
    CUmemGenericAllocationHandle h;
    if (MEM_CALL(cuMemCreate(&h, rt.gran, &prop, 0)) != CUDA_SUCCESS)
        return -1;
    if (c < 0)
        c = (int32_t)rt.n_chunks++;
    else
        rt.n_gone--;
    rt.chunks[c].handle = h;
    rt.chunks[c].ready_mask = 0;
    chunk_list_add(c);
    mem_note_peak();
    return c;
}

/* Whoever used the slot's address is done, as far as the host can see. */
static void slot_quiesce(struct slot *s)
{
    uint64_t m = s->uses_mask | s->stale_mask;
    if (m)
        stream_sync(m);
    s->stale_mask = 0;
    if (s->state != SLOT_RESIDENT)
        s->uses_mask = 0;
}

static void slot_unmap_page(struct slot *s, uint32_t page)
{
    slot_quiesce(s);
    MEM_CALL(cuMemUnmap(s->va + ((uint64_t)page << rt.shift), rt.gran));
    s->map[page] = -1;
}

int mem_map_page(struct slot *s, uint32_t page, int32_t c)
{
    if (s->map[page] == c)
        return 0;
    if (s->map[page] >= 0)
        slot_unmap_page(s, page);
    CUdeviceptr va = s->va + ((uint64_t)page << rt.shift);
    CUresult r = MEM_CALL(cuMemMap(va, rt.gran, 0, rt.chunks[c].handle, 0));
    if (r != CUDA_SUCCESS) {
        log_say(SAY_DEBUG, "chunk %d cannot be mapped at page %u of slot %u: %s", c, page, s->id, rt_code_name(r));
        return -EIO;
    }
    CUmemAccessDesc acc;
    memset(&acc, 0, sizeof acc);
    acc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    acc.location.id = rt.dev;
    acc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (MEM_CALL(cuMemSetAccess(va, rt.gran, &acc, 1)) != CUDA_SUCCESS) {
        MEM_CALL(cuMemUnmap(va, rt.gran));
        return -EIO;
    }
    s->map[page] = c;
    return 0;
}

/* A free chunk goes back to the driver. */
static void chunk_release(int32_t c)
{
    for (uint32_t i = 0; i < rt.n_slots; i++) {
        struct slot *s = &rt.slots[i];
        if (s->kind != SLOT_LARGE)
            continue;
        for (uint32_t p = 0; p < s->n_pages; p++)
            if (s->map[p] == c)
                slot_unmap_page(s, p);
    }
    chunk_list_take(c);
    MEM_CALL(cuMemRelease(rt.chunks[c].handle));
    rt.chunks[c].owner = CHUNK_GONE;
    rt.n_gone++;
}

int mem_make_foreign_room(uint64_t bytes)
{
    if (bytes > rt.limit_bytes)
        return -ENOMEM;
    while (mem_physical_bytes() + bytes > rt.limit_bytes) {
        if (!rt.n_free_chunks)
            swap_evict_for(1);
        if (!rt.n_free_chunks)
            return -ENOMEM;
        chunk_release(rt.free_head);
    }
    return 0;
}

/* ---- slots ------------------------------------------------------------------------------------------------ */

static struct slot *slot_create(enum slot_kind kind)
{
    if (rt.n_slots == MAX_SLOTS)
        return NULL;
    struct slot *s = &rt.slots[rt.n_slots];
    s->id = rt.n_slots++;
    s->kind = (uint8_t)kind;
    s->plan_buf = s->rec_buf = s->fixed_ord = s->next_free = -1;
    return s;
}

static int slot_create_large(uint32_t n_pages, struct slot **out)
{
    if (rt.next_page + n_pages + 1 > rt.n_va_pages)
        return -ENOMEM;
    int32_t *map = malloc(n_pages * sizeof *map);
    struct slot *s = map ? slot_create(SLOT_LARGE) : NULL;
    if (!s) {
        free(map);
        return -ENOMEM;
    }
    s->map = map;
    s->n_pages = n_pages;
    s->va = rt.base + (rt.next_page << rt.shift);
    for (uint32_t p = 0; p < n_pages; p++)
        map[p] = -1;
    /* the gap after it is its own too: one past the end is still this slot */
    for (uint32_t p = 0; p <= n_pages; p++)
        rt.page_slot[rt.next_page + p] = s->id + 1;
    rt.next_page += n_pages + 1;
    *out = s;
    return 0;
}

struct slot *mem_slot_foreign(CUdeviceptr va, uint64_t bytes)
{
    struct slot *s;
    if (foreign_free >= 0) {
        s = &rt.slots[foreign_free];
        foreign_free = s->next_free;
    } else if (!(s = slot_create(SLOT_FOREIGN)))
        return NULL;
    s->va = va;
    mem_slot_revive(s, bytes);
    rt.live_bytes -= bytes; /* counted as foreign_bytes */
    s->state = SLOT_RESIDENT;
    s->written = true;
    s->uses_mask = s->avail_seq = 0;
    return s;
}

void mem_slot_foreign_gone(struct slot *s)
{
    s->live = false;
    s->next_free = foreign_free;
    foreign_free = (int32_t)s->id;
}

bool mem_is_small(uint64_t bytes) { return bytes < rt.gran / 2; }

static uint32_t arena_units(void) { return (uint32_t)(rt.gran / UNIT_BYTES); }

static int arena_map(struct arena *a)
{
    if (!rt.n_free_chunks && mem_chunk_new() < 0)
        swap_evict_for(1);
    if (!rt.n_free_chunks)
        return -ENOMEM;
    int32_t c = rt.free_head;
    struct slot page = {.va = a->va, .n_pages = 1, .map = &(int32_t){-1}};
    if (mem_map_page(&page, 0, c))
        return -EIO;
    chunk_list_take(c);
    rt.chunks[c].owner = CHUNK_ARENA;
    a->chunk = c;
    a->ready_mask = rt.chunks[c].ready_mask;
    rt.chunks[c].ready_mask = 0;
    n_arena_chunks++;
    return 0;
}

/* Another page for small allocations: one that was given back, or a new one. */
static int arena_grow(uint32_t *which)
{
    uint32_t i = 0;
    while (i < n_arenas && arenas[i].chunk >= 0)
        i++;
    if (i == n_arenas) {
        if (n_arenas == MAX_ARENAS || rt.next_page + 1 > rt.n_va_pages)
            return -ENOMEM;
        struct arena *a = &arenas[i];
        a->unit_slot = calloc(arena_units(), sizeof *a->unit_slot);
        if (!a->unit_slot)
            return -ENOMEM;
        a->chunk = -1;
        a->n_free = arena_units();
        a->va = rt.base + (rt.next_page << rt.shift);
        rt.page_slot[rt.next_page++] = (n_arenas++ + 1) | PAGE_ARENA;
    }
    *which = i;
    return arena_map(&arenas[i]);
}

void mem_arena_trim(void)
{
    for (uint32_t i = 0; i < n_arenas; i++) {
        struct arena *a = &arenas[i];
        if (a->chunk < 0 || a->n_free != arena_units())
            continue;
        stream_sync(a->ready_mask);
        MEM_CALL(cuMemUnmap(a->va, rt.gran));
        rt.chunks[a->chunk].ready_mask = 0;
        chunk_list_add(a->chunk);
        a->chunk = -1;
        n_arena_chunks--;
    }
}

/* First fit. */
static int arena_find(const struct arena *a, uint32_t n, uint32_t *first)
{
    if (a->chunk < 0 || a->n_free < n)
        return 0;
    uint32_t run = 0;
    for (uint32_t u = 0; u < arena_units(); u++) {
        run = a->unit_slot[u] ? 0 : run + 1;
        if (run == n) {
            *first = u + 1 - n;
            return 1;
        }
    }
    return 0;
}

static int small_take(uint64_t bytes, struct slot **out)
{
    uint32_t n = (uint32_t)(bytes / UNIT_BYTES) + 1, first = 0, which = n_arenas;
    for (uint32_t k = 0; k < n_arenas && which == n_arenas; k++)
        if (arena_find(&arenas[(arena_hint + k) % n_arenas], n, &first))
            which = (arena_hint + k) % n_arenas;
    if (which == n_arenas) {
        int r = arena_grow(&which);
        if (r)
            return r;
        first = 0;
    }
    struct slot *s;
    if (small_structs >= 0) {
        s = &rt.slots[small_structs];
        small_structs = s->next_free;
    } else if (!(s = slot_create(SLOT_SMALL)))
        return -ENOMEM;
    struct arena *a = &arenas[which];
    for (uint32_t u = first; u < first + n; u++)
        a->unit_slot[u] = s->id + 1;
    a->n_free -= n;
    arena_hint = which;
    s->arena = which;
    s->entry = first;
    s->n_pages = n;
    s->va = a->va + (uint64_t)first * UNIT_BYTES;
    s->state = SLOT_RESIDENT;
    s->uses_mask = a->ready_mask; /* whoever had the place before */
    s->stale_mask = s->avail_seq = 0;
    *out = s;
    return 0;
}

static void small_give_back(struct slot *s)
{
    struct arena *a = &arenas[s->arena];
    for (uint32_t u = s->entry; u < s->entry + s->n_pages; u++)
        a->unit_slot[u] = 0;
    a->n_free += s->n_pages;
    a->ready_mask |= s->uses_mask;
    s->next_free = small_structs;
    small_structs = (int32_t)s->id;
}

static bool slot_all_cached(const struct slot *s)
{
    for (uint32_t p = 0; p < s->n_pages; p++)
        if (s->map[p] < 0 || rt.chunks[s->map[p]].owner != CHUNK_FREE)
            return false;
    return true;
}

/* Prefer a slot whose old chunks are all still free: it comes back without a driver call. */
static int large_take(uint32_t n_pages, struct slot **out)
{
    if (n_pages >= MAX_LIST_PAGES)
        return slot_create_large(n_pages, out);
    int32_t *best = NULL;
    unsigned seen = 0;
    for (int32_t *at = &free_slots[n_pages]; *at >= 0 && seen < 16; at = &rt.slots[*at].next_free, seen++) {
        best = at;
        if (slot_all_cached(&rt.slots[*at]))
            break;
    }
    if (!best)
        return slot_create_large(n_pages, out);
    struct slot *s = &rt.slots[*best];
    *best = s->next_free;
    *out = s;
    return 0;
}

void mem_slot_revive(struct slot *s, uint64_t bytes)
{
    s->bytes = bytes;
    s->serial = ++rt.serial;
    s->birth_op = rt.op_count;
    s->live = true;
    s->written = false;
    s->kept = false;
    s->watched = s->points = false;
    s->pins = 0;
    s->pool = NULL;
    s->plan_buf = s->rec_buf = -1;
    rt.live_bytes += bytes;
}

static int slot_take(uint64_t bytes, struct slot **out)
{
    uint64_t pages = mem_pages(bytes);
    if (pages > rt.n_va_pages)
        return -ENOMEM;
    return mem_is_small(bytes) ? small_take(bytes, out) : large_take((uint32_t)pages, out);
}

int mem_slot_new(uint64_t bytes, struct slot **out)
{
    int r = slot_take(bytes, out);
    if (!r) {
        if ((*out)->kind == SLOT_LARGE)
            (*out)->state = SLOT_EMPTY;
        (*out)->fixed_ord = -1;
        mem_slot_revive(*out, bytes);
        mem_note_peak();
    }
    return r;
}

int mem_slot_fixed(uint64_t bytes, int ord, struct slot **out)
{
    int r = slot_take(bytes, out);
    if (!r) {
        (*out)->fixed_ord = ord;
        (*out)->live = false;
        (*out)->bytes = bytes;
        if ((*out)->kind == SLOT_LARGE)
            (*out)->state = SLOT_EMPTY;
    }
    return r;
}

static void slot_list(struct slot *s)
{
    s->fixed_ord = -1;
    if (s->kind == SLOT_SMALL)
        small_give_back(s);
    else if (s->n_pages < MAX_LIST_PAGES) {
        s->next_free = free_slots[s->n_pages];
        free_slots[s->n_pages] = (int32_t)s->id;
    }
}

void mem_slot_unfix(struct slot *s)
{
    if (s->fixed_ord < 0)
        return;
    if (s->live) {
        s->fixed_ord = -1;
        return;
    }
    mem_unback(s, SLOT_EMPTY, 0);
    slot_list(s);
}

void mem_slot_free(struct slot *s)
{
    if (s->live)
        rt.live_bytes -= s->bytes;
    s->live = s->kept = false;
    swap_discard(s);
    mem_unback(s, SLOT_EMPTY, 0);
    s->plan_buf = -1;
    if (s->fixed_ord < 0)
        slot_list(s);
}

struct slot *mem_range_of(CUdeviceptr ptr)
{
    uint64_t off = ptr - rt.base;
    if (off >= rt.reserve_bytes)
        return NULL;
    uint32_t id = rt.page_slot[off >> rt.shift];
    if (!id)
        return NULL;
    if (id & PAGE_ARENA) {
        const struct arena *a = &arenas[(id & ~PAGE_ARENA) - 1];
        uint32_t held = a->unit_slot[(off & (rt.gran - 1)) / UNIT_BYTES];
        return held ? &rt.slots[held - 1] : NULL;
    }
    return &rt.slots[id - 1];
}

struct slot *mem_lookup(CUdeviceptr ptr)
{
    struct slot *s = mem_range_of(ptr);
    return s && s->live && ptr - s->va <= s->bytes ? s : NULL;
}

static bool chunk_is_of(int32_t c, const struct slot *s, uint32_t page)
{
    return c >= 0 && rt.chunks[c].owner == (int32_t)s->id && rt.chunks[c].page == page;
}

static void chunk_take_for(int32_t c, const struct slot *s, uint32_t page)
{
    chunk_list_take(c);
    rt.chunks[c].owner = (int32_t)s->id;
    rt.chunks[c].page = page;
}

int mem_back(struct slot *s, unsigned t)
{
    if (s->state == SLOT_RESIDENT || s->kind != SLOT_LARGE)
        return 0;
    uint32_t n = s->n_pages;
    while (rt.n_free_chunks < n && mem_chunk_new() >= 0)
        ;
    if (rt.n_free_chunks < n)
        mem_arena_trim();
    if (rt.n_free_chunks < n)
        swap_evict_for(n);
    if (rt.n_free_chunks < n)
        return -ENOMEM;
    uint64_t ready = 0;
    uint32_t missing = 0;
    for (uint32_t p = 0; p < n; p++) {
        int32_t c = s->map[p];
        if (c >= 0 && rt.chunks[c].owner == CHUNK_FREE) {
            chunk_take_for(c, s, p);
            ready |= rt.chunks[c].ready_mask;
        } else
            missing++;
    }
    for (uint32_t p = 0; p < n && missing; p++) {
        int32_t c = s->map[p];
        if (chunk_is_of(c, s, p))
            continue;
        c = rt.free_head;
        if (mem_map_page(s, p, c)) {
            for (uint32_t q = 0; q < n; q++) /* give back what was taken: nothing is lost */
                if (chunk_is_of(s->map[q], s, q))
                    chunk_list_add(s->map[q]);
            return -EIO;
        }
        chunk_take_for(c, s, p);
        ready |= rt.chunks[c].ready_mask;
        missing--;
    }
    s->state = SLOT_RESIDENT;
    s->stale_mask |= s->uses_mask;
    s->uses_mask = 0;
    s->avail_stream = (uint8_t)t;
    if (ready & ~(1ull << t)) {
        stream_order(t, ready);
        s->avail_seq = rt.seq[t] + 1;
        stream_bump(t);
    } else
        s->avail_seq = rt.n_streams > STREAM_FIRST_PROGRAM + 1 ? rt.seq[t] : 0;
    return 0;
}

void mem_unback(struct slot *s, enum slot_state state, uint64_t extra_mask)
{
    if (s->kind == SLOT_LARGE && s->state == SLOT_RESIDENT) {
        uint64_t ready = s->uses_mask | extra_mask;
        bool awaited = !s->avail_seq; /* a user that waited for the content passes that on */
        for (uint64_t m = s->uses_mask; m && !awaited; m &= m - 1)
            awaited = rt.waited[__builtin_ctzll(m)][s->avail_stream] >= s->avail_seq;
        if (!awaited)
            ready |= 1ull << s->avail_stream;
        s->uses_mask |= extra_mask;
        for (uint32_t p = 0; p < s->n_pages; p++) {
            rt.chunks[s->map[p]].ready_mask = ready;
            chunk_list_add(s->map[p]);
        }
    }
    if (s->kind == SLOT_LARGE)
        s->state = (uint8_t)state;
}

CUdeviceptr mem_scratch(uint64_t bytes)
{
    struct slot *s;
    if (!mem_is_small(bytes) || small_take(bytes, &s))
        return 0;
    s->bytes = bytes; /* neither live nor in a free list: nobody finds it */
    return s->va;
}
