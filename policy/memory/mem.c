/* Device memory: one reservation cut into slots, physical chunks mapped under them, arenas for what is small.
 *
 * A slot keeps the chunks that were last mapped at its pages even when it no longer owns them (a stale mapping), so
 * that a slot which comes back and finds them free again needs no driver call. One chunk may be mapped at many
 * addresses; only its owner's content counts, and the owner changes in stream order (chunk.ready). A stale
 * mapping is removed only when its page needs another chunk or the chunk goes back to the driver, after the host has
 * seen the end of everything that used the address (unmapping is not stream-ordered).
 */
#include "policy/share/share.h"

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
    struct fence ready;  /* of what was freed in it */
    CUdeviceptr va;
};

struct mem {
    int32_t *free_slots; /* by number of pages: head of a list through next_free */
    int32_t small_structs, foreign_free;
    struct arena *arenas;
    uint32_t n_arenas, n_arena_chunks, arena_hint;
};

static void *table(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

int mem_init(struct device *d)
{
    d->mem = calloc(1, sizeof *d->mem);
    if (!d->mem)
        return -ENOMEM;
    d->mem->small_structs = d->mem->foreign_free = -1;
    CUmemAllocationProp prop;
    size_t gran = 0;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = d->dev;
    if (d->drv->cuMemGetAllocationGranularity(&gran, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS ||
        !gran || (gran & (gran - 1)))
        return -ENOTSUP;
    d->gran = gran;
    d->shift = (unsigned)__builtin_ctzll(gran);
    /* Address space is spent, never memory: room for 64 devices' worth of slots, less where the driver has less. */
    uint64_t want = 1ull << 36;
    while (want < d->device_bytes * 64)
        want <<= 1;
    for (d->base = 0; want >= d->device_bytes * 2 && !d->base; want >>= 1) {
        CUdeviceptr p = 0;
        if (d->drv->cuMemAddressReserve(&p, want, gran, 0, 0) == CUDA_SUCCESS) {
            d->base = p;
            d->reserve_bytes = want;
        }
    }
    if (!d->base)
        return -ENOMEM;
    d->n_va_pages = d->reserve_bytes >> d->shift;
    d->page_slot = table(d->n_va_pages * sizeof *d->page_slot);
    d->slots = table((size_t)MAX_SLOTS * sizeof *d->slots);
    d->chunks = table((size_t)MAX_CHUNKS * sizeof *d->chunks);
    d->mem->arenas = table((size_t)MAX_ARENAS * sizeof *d->mem->arenas);
    d->mem->free_slots = malloc(MAX_LIST_PAGES * sizeof *d->mem->free_slots);
    if (!d->page_slot || !d->slots || !d->chunks || !d->mem->arenas || !d->mem->free_slots)
        return -ENOMEM;
    for (int i = 0; i < MAX_LIST_PAGES; i++)
        d->mem->free_slots[i] = -1;
    d->free_head = d->free_tail = -1;
    d->mark = 1;
    return 0;
}

/* ---- chunks ----------------------------------------------------------------------------------------------- */

static void chunk_list_add(struct device *d, int32_t c)
{
    struct chunk *k = &d->chunks[c];
    k->owner = CHUNK_FREE;
    k->next = -1;
    k->prev = d->free_tail;
    if (d->free_tail >= 0)
        d->chunks[d->free_tail].next = c;
    else
        d->free_head = c;
    d->free_tail = c;
    d->n_free_chunks++;
}

static void chunk_list_take(struct device *d, int32_t c)
{
    struct chunk *k = &d->chunks[c];
    if (k->prev >= 0)
        d->chunks[k->prev].next = k->next;
    else
        d->free_head = k->next;
    if (k->next >= 0)
        d->chunks[k->next].prev = k->prev;
    else
        d->free_tail = k->prev;
    d->n_free_chunks--;
}

uint64_t mem_physical_bytes(struct device *d)
{
    return ((uint64_t)(d->n_chunks - d->n_gone) << d->shift) + d->foreign_bytes + d->own_bytes;
}

void mem_note_peak(struct device *d)
{
    uint64_t now = mem_physical_bytes(d);
    if (now > d->st.peak_physical_bytes)
        d->st.peak_physical_bytes = now;
    if (d->live_bytes + d->foreign_bytes > d->st.native_peak_bytes)
        d->st.native_peak_bytes = d->live_bytes + d->foreign_bytes;
    if (d->status) {
        status_store(&d->status->in_use_bytes, now);
        status_store(&d->status->peak_bytes, d->st.peak_physical_bytes);
    }
}

uint64_t mem_max_chunks(struct device *d)
{
    uint64_t others = d->foreign_bytes + d->own_bytes;
    return d->plan_limit_bytes > others ? (d->plan_limit_bytes - others) >> d->shift : 0;
}

uint64_t mem_arena_chunks(struct device *d) { return d->mem->n_arena_chunks; }

int32_t mem_chunk_new(struct device *d)
{
    if (mem_physical_bytes(d) + d->gran > d->limit_bytes)
        return -1;
    int32_t c = -1;
    if (d->n_gone)
        for (uint32_t i = 0; i < d->n_chunks && c < 0; i++)
            if (d->chunks[i].owner == CHUNK_GONE)
                c = (int32_t)i;
    if (c < 0 && d->n_chunks == MAX_CHUNKS)
        return -1;
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = d->dev;
    CUmemGenericAllocationHandle h;
    if (share_cover(d, d->gran))
        return -1;
    if (MEM_CALL(cuMemCreate(&h, d->gran, &prop, 0)) != CUDA_SUCCESS) {
        share_settle(d);
        return -1;
    }
    if (c < 0)
        c = (int32_t)d->n_chunks++;
    else
        d->n_gone--;
    d->chunks[c].handle = h;
    d->chunks[c].ready = (struct fence){0};
    chunk_list_add(d, c);
    mem_note_peak(d);
    return c;
}

/* Whoever used the slot's address is done, as far as the host can see. */
static int slot_quiesce(struct device *d, struct slot *s)
{
    struct fence all = s->stale;
    fence_merge(d, &all, &s->ready);
    fence_merge(d, &all, &s->unseen);
    fence_merge(d, &all, &s->users);
    int r = fence_sync(d, &all);
    if (!r)
        s->stale = (struct fence){0};
    return r;
}

static int slot_unmap_page(struct device *d, struct slot *s, uint32_t page)
{
    int r = slot_quiesce(d, s);
    if (r)
        return r;
    if (MEM_CALL(cuMemUnmap(s->va + ((uint64_t)page << d->shift), d->gran)) != CUDA_SUCCESS)
        return -EIO;
    s->map[page] = -1;
    return 0;
}

int mem_map_page(struct device *d, struct slot *s, uint32_t page, int32_t c)
{
    if (s->map[page] == c)
        return 0;
    if (s->map[page] >= 0) {
        int r = slot_unmap_page(d, s, page);
        if (r)
            return r;
    }
    CUdeviceptr va = s->va + ((uint64_t)page << d->shift);
    CUresult r = MEM_CALL(cuMemMap(va, d->gran, 0, d->chunks[c].handle, 0));
    if (r != CUDA_SUCCESS) {
        log_say(SAY_DEBUG, "chunk %d cannot be mapped at page %u of slot %u: %s", c, page, s->id, rt_code_name(d, r));
        return -EIO;
    }
    CUmemAccessDesc acc;
    memset(&acc, 0, sizeof acc);
    acc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    acc.location.id = d->dev;
    acc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (MEM_CALL(cuMemSetAccess(va, d->gran, &acc, 1)) != CUDA_SUCCESS) {
        MEM_CALL(cuMemUnmap(va, d->gran));
        return -EIO;
    }
    s->map[page] = c;
    return 0;
}

/* A free chunk goes back to the driver. */
static int chunk_release(struct device *d, int32_t c)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct slot *s = &d->slots[i];
        if (s->kind != SLOT_LARGE)
            continue;
        for (uint32_t p = 0; p < s->n_pages; p++)
            if (s->map[p] == c) {
                int r = slot_unmap_page(d, s, p);
                if (r)
                    return r;
            }
    }
    if (MEM_CALL(cuMemRelease(d->chunks[c].handle)) != CUDA_SUCCESS)
        return -EIO;
    chunk_list_take(d, c);
    d->chunks[c].owner = CHUNK_GONE;
    d->n_gone++;
    share_settle(d);
    return 0;
}

uint64_t mem_give(struct device *d, uint64_t bytes)
{
    uint64_t before = mem_physical_bytes(d), target = before > bytes ? before - bytes : 0;
    d->mark++;
    mem_arena_trim(d);
    while (mem_physical_bytes(d) > target) {
        if (!d->n_free_chunks)
            swap_evict_for(d, 1);
        if (!d->n_free_chunks || chunk_release(d, d->free_head))
            break;
    }
    return before - mem_physical_bytes(d);
}

int mem_make_foreign_room(struct device *d, uint64_t bytes)
{
    if (bytes > d->limit_bytes)
        return -ENOMEM;
    while (mem_physical_bytes(d) + bytes > d->limit_bytes || share_cover(d, bytes)) {
        if (!d->n_free_chunks)
            swap_evict_for(d, 1);
        if (!d->n_free_chunks && mem_physical_bytes(d) + bytes <= d->limit_bytes)
            return share_wait(d, bytes);
        if (!d->n_free_chunks)
            return -ENOMEM;
        int r = chunk_release(d, d->free_head);
        if (r)
            return r;
    }
    return 0;
}

/* ---- slots ------------------------------------------------------------------------------------------------ */

static struct slot *slot_create(struct device *d, enum slot_kind kind)
{
    if (d->n_slots == MAX_SLOTS)
        return NULL;
    struct slot *s = &d->slots[d->n_slots];
    s->id = d->n_slots++;
    s->kind = (uint8_t)kind;
    s->plan_buf = s->rec_buf = s->fixed_ord = s->next_free = -1;
    return s;
}

static int slot_create_large(struct device *d, uint32_t n_pages, struct slot **out)
{
    if (d->next_page + n_pages + 1 > d->n_va_pages)
        return -ENOMEM;
    int32_t *map = malloc(n_pages * sizeof *map);
    struct slot *s = map ? slot_create(d, SLOT_LARGE) : NULL;
    if (!s) {
        free(map);
        return -ENOMEM;
    }
    s->map = map;
    s->n_pages = n_pages;
    s->va = d->base + (d->next_page << d->shift);
    for (uint32_t p = 0; p < n_pages; p++)
        map[p] = -1;
    /* the gap after it is its own too: one past the end is still this slot */
    for (uint32_t p = 0; p <= n_pages; p++)
        d->page_slot[d->next_page + p] = s->id + 1;
    d->next_page += n_pages + 1;
    *out = s;
    return 0;
}

struct slot *mem_slot_foreign(struct device *d, CUdeviceptr va, uint64_t bytes)
{
    struct slot *s;
    if (d->mem->foreign_free >= 0) {
        s = &d->slots[d->mem->foreign_free];
        d->mem->foreign_free = s->next_free;
    } else if (!(s = slot_create(d, SLOT_FOREIGN)))
        return NULL;
    s->va = va;
    mem_slot_revive(d, s, bytes);
    d->live_bytes -= bytes; /* counted as foreign_bytes */
    s->state = SLOT_RESIDENT;
    s->written = true;
    s->ready = s->unseen = s->users = s->stale = (struct fence){0};
    return s;
}

void mem_slot_foreign_gone(struct device *d, struct slot *s)
{
    s->live = false;
    s->next_free = d->mem->foreign_free;
    d->mem->foreign_free = (int32_t)s->id;
}

bool mem_is_small(struct device *d, uint64_t bytes) { return bytes < d->gran / 2; }

static uint32_t arena_units(struct device *d) { return (uint32_t)(d->gran / UNIT_BYTES); }

static int arena_map(struct device *d, struct arena *a)
{
    if (!d->n_free_chunks && mem_chunk_new(d) < 0)
        swap_evict_for(d, 1);
    if (!d->n_free_chunks)
        return -ENOMEM;
    int32_t c = d->free_head;
    struct slot page = {.va = a->va, .n_pages = 1, .map = &(int32_t){-1}};
    if (mem_map_page(d, &page, 0, c))
        return -EIO;
    chunk_list_take(d, c);
    d->chunks[c].owner = CHUNK_ARENA;
    a->chunk = c;
    a->ready = d->chunks[c].ready;
    d->chunks[c].ready = (struct fence){0};
    d->mem->n_arena_chunks++;
    return 0;
}

/* Another page for small allocations: one that was given back, or a new one. */
static int arena_grow(struct device *d, uint32_t *which)
{
    uint32_t i = 0;
    while (i < d->mem->n_arenas && d->mem->arenas[i].chunk >= 0)
        i++;
    if (i == d->mem->n_arenas) {
        if (d->mem->n_arenas == MAX_ARENAS || d->next_page + 1 > d->n_va_pages)
            return -ENOMEM;
        struct arena *a = &d->mem->arenas[i];
        a->unit_slot = calloc(arena_units(d), sizeof *a->unit_slot);
        if (!a->unit_slot)
            return -ENOMEM;
        a->chunk = -1;
        a->n_free = arena_units(d);
        a->va = d->base + (d->next_page << d->shift);
        d->page_slot[d->next_page++] = (d->mem->n_arenas++ + 1) | PAGE_ARENA;
    }
    *which = i;
    return arena_map(d, &d->mem->arenas[i]);
}

void mem_arena_trim(struct device *d)
{
    for (uint32_t i = 0; i < d->mem->n_arenas; i++) {
        struct arena *a = &d->mem->arenas[i];
        if (a->chunk < 0 || a->n_free != arena_units(d))
            continue;
        if (fence_sync(d, &a->ready) || MEM_CALL(cuMemUnmap(a->va, d->gran)) != CUDA_SUCCESS)
            continue;
        d->chunks[a->chunk].ready = (struct fence){0};
        chunk_list_add(d, a->chunk);
        a->chunk = -1;
        d->mem->n_arena_chunks--;
    }
}

/* First fit. */
static int arena_find(struct device *d, const struct arena *a, uint32_t n, uint32_t *first)
{
    if (a->chunk < 0 || a->n_free < n)
        return 0;
    uint32_t run = 0;
    for (uint32_t u = 0; u < arena_units(d); u++) {
        run = a->unit_slot[u] ? 0 : run + 1;
        if (run == n) {
            *first = u + 1 - n;
            return 1;
        }
    }
    return 0;
}

static int small_take(struct device *d, uint64_t bytes, struct slot **out)
{
    uint32_t n = (uint32_t)(bytes / UNIT_BYTES) + 1, first = 0, which = d->mem->n_arenas;
    for (uint32_t k = 0; k < d->mem->n_arenas && which == d->mem->n_arenas; k++)
        if (arena_find(d, &d->mem->arenas[(d->mem->arena_hint + k) % d->mem->n_arenas], n, &first))
            which = (d->mem->arena_hint + k) % d->mem->n_arenas;
    if (which == d->mem->n_arenas) {
        int r = arena_grow(d, &which);
        if (r)
            return r;
        first = 0;
    }
    struct slot *s;
    if (d->mem->small_structs >= 0) {
        s = &d->slots[d->mem->small_structs];
        d->mem->small_structs = s->next_free;
    } else if (!(s = slot_create(d, SLOT_SMALL)))
        return -ENOMEM;
    struct arena *a = &d->mem->arenas[which];
    for (uint32_t u = first; u < first + n; u++)
        a->unit_slot[u] = s->id + 1;
    a->n_free -= n;
    d->mem->arena_hint = which;
    s->arena = which;
    s->entry = first;
    s->n_pages = n;
    s->va = a->va + (uint64_t)first * UNIT_BYTES;
    s->state = SLOT_RESIDENT;
    s->ready = a->ready; /* whoever had the place before */
    s->unseen = s->users = s->stale = (struct fence){0};
    *out = s;
    return 0;
}

/* All that whoever gets the slot's memory next must come after. */
static void slot_fences(struct device *d, const struct slot *s, struct fence *into)
{
    fence_merge(d, into, &s->ready);
    fence_merge(d, into, &s->unseen);
    fence_merge(d, into, &s->users);
}

static void small_give_back(struct device *d, struct slot *s)
{
    struct arena *a = &d->mem->arenas[s->arena];
    for (uint32_t u = s->entry; u < s->entry + s->n_pages; u++)
        a->unit_slot[u] = 0;
    a->n_free += s->n_pages;
    slot_fences(d, s, &a->ready);
    s->next_free = d->mem->small_structs;
    d->mem->small_structs = (int32_t)s->id;
}

static bool slot_all_cached(struct device *d, const struct slot *s)
{
    for (uint32_t p = 0; p < s->n_pages; p++)
        if (s->map[p] < 0 || d->chunks[s->map[p]].owner != CHUNK_FREE)
            return false;
    return true;
}

/* Prefer a slot whose old chunks are all still free: it comes back without a driver call. */
static int large_take(struct device *d, uint32_t n_pages, struct slot **out)
{
    if (n_pages >= MAX_LIST_PAGES)
        return slot_create_large(d, n_pages, out);
    int32_t *best = NULL;
    unsigned seen = 0;
    for (int32_t *at = &d->mem->free_slots[n_pages]; *at >= 0 && seen < 16; at = &d->slots[*at].next_free, seen++) {
        best = at;
        if (slot_all_cached(d, &d->slots[*at]))
            break;
    }
    if (!best)
        return slot_create_large(d, n_pages, out);
    struct slot *s = &d->slots[*best];
    *best = s->next_free;
    *out = s;
    return 0;
}

void mem_slot_revive(struct device *d, struct slot *s, uint64_t bytes)
{
    s->bytes = bytes;
    s->serial = ++d->serial;
    s->birth_op = d->op_count;
    s->live = true;
    s->written = false;
    s->kept = false;
    s->watched = s->points = false;
    s->pins = 0;
    s->pool = NULL;
    s->plan_buf = s->rec_buf = -1;
    /* a fixed slot in memory: its new tenant comes after the one before */
    fence_merge(d, &s->ready, &s->unseen);
    fence_merge(d, &s->ready, &s->users);
    s->unseen = s->users = (struct fence){0};
    d->live_bytes += bytes;
}

static int slot_take(struct device *d, uint64_t bytes, struct slot **out)
{
    uint64_t pages = mem_pages(d, bytes);
    if (pages > d->n_va_pages)
        return -ENOMEM;
    return mem_is_small(d, bytes) ? small_take(d, bytes, out) : large_take(d, (uint32_t)pages, out);
}

int mem_slot_new(struct device *d, uint64_t bytes, struct slot **out)
{
    int r = slot_take(d, bytes, out);
    if (!r) {
        if ((*out)->kind == SLOT_LARGE)
            (*out)->state = SLOT_EMPTY;
        (*out)->fixed_ord = -1;
        mem_slot_revive(d, *out, bytes);
        mem_note_peak(d);
    }
    return r;
}

int mem_slot_fixed(struct device *d, uint64_t bytes, int ord, struct slot **out)
{
    int r = slot_take(d, bytes, out);
    if (!r) {
        (*out)->fixed_ord = ord;
        (*out)->live = false;
        (*out)->bytes = bytes;
        if ((*out)->kind == SLOT_LARGE)
            (*out)->state = SLOT_EMPTY;
    }
    return r;
}

static void slot_list(struct device *d, struct slot *s)
{
    s->fixed_ord = -1;
    if (s->kind == SLOT_SMALL)
        small_give_back(d, s);
    else if (s->n_pages < MAX_LIST_PAGES) {
        s->next_free = d->mem->free_slots[s->n_pages];
        d->mem->free_slots[s->n_pages] = (int32_t)s->id;
    }
}

void mem_slot_unfix(struct device *d, struct slot *s)
{
    if (s->fixed_ord < 0)
        return;
    if (s->live) {
        s->fixed_ord = -1;
        return;
    }
    mem_unback(d, s, SLOT_EMPTY);
    slot_list(d, s);
}

void mem_slot_freed_on(struct device *d, struct slot *s, unsigned t)
{
    stream_issued(d, t);
    s->users = (struct fence){0};
    fence_add(d, &s->users, t);
}

void mem_slot_free(struct device *d, struct slot *s)
{
    if (s->live)
        d->live_bytes -= s->bytes;
    s->live = s->kept = false;
    swap_discard(d, s);
    mem_unback(d, s, SLOT_EMPTY);
    s->plan_buf = -1;
    if (s->fixed_ord < 0)
        slot_list(d, s);
}

struct slot *mem_range_of(struct device *d, CUdeviceptr ptr)
{
    uint64_t off = ptr - d->base;
    if (off >= d->reserve_bytes)
        return NULL;
    uint32_t id = d->page_slot[off >> d->shift];
    if (!id)
        return NULL;
    if (id & PAGE_ARENA) {
        const struct arena *a = &d->mem->arenas[(id & ~PAGE_ARENA) - 1];
        uint32_t held = a->unit_slot[(off & (d->gran - 1)) / UNIT_BYTES];
        return held ? &d->slots[held - 1] : NULL;
    }
    return &d->slots[id - 1];
}

struct slot *mem_lookup(struct device *d, CUdeviceptr ptr)
{
    struct slot *s = mem_range_of(d, ptr);
    return s && s->live && ptr - s->va <= s->bytes ? s : NULL;
}

static bool chunk_is_of(struct device *d, int32_t c, const struct slot *s, uint32_t page)
{
    return c >= 0 && d->chunks[c].owner == (int32_t)s->id && d->chunks[c].page == page;
}

static void chunk_take_for(struct device *d, int32_t c, const struct slot *s, uint32_t page)
{
    chunk_list_take(d, c);
    d->chunks[c].owner = (int32_t)s->id;
    d->chunks[c].page = page;
}

bool mem_can_wait(struct device *d, const struct slot *s)
{
    uint64_t have = d->n_free_chunks, most = mem_max_chunks(d), made = d->n_chunks - d->n_gone;
    have += most > made ? most - made : 0;
    if (have >= s->n_pages || d->share || swap_room_bytes(d) < (uint64_t)s->n_pages << d->shift)
        return false;
    for (uint32_t i = 0; i < d->n_slots && have < s->n_pages; i++)
        if (swap_may_go(d, &d->slots[i]))
            have += d->slots[i].n_pages;
    return have >= s->n_pages;
}

int mem_back(struct device *d, struct slot *s)
{
    if (s->state == SLOT_RESIDENT || s->kind != SLOT_LARGE)
        return 0;
    uint32_t n = s->n_pages;
    while (d->n_free_chunks < n && mem_chunk_new(d) >= 0)
        ;
    if (d->n_free_chunks < n)
        mem_arena_trim(d);
    if (d->n_free_chunks < n)
        swap_evict_for(d, n);
    if (d->n_free_chunks < n)
        return -ENOMEM;
    uint32_t missing = 0;
    for (uint32_t p = 0; p < n; p++) {
        int32_t c = s->map[p];
        if (c >= 0 && d->chunks[c].owner == CHUNK_FREE)
            chunk_take_for(d, c, s, p);
        else
            missing++;
    }
    for (uint32_t p = 0; p < n && missing; p++) {
        if (chunk_is_of(d, s->map[p], s, p))
            continue;
        int32_t c = d->free_head;
        int r = mem_map_page(d, s, p, c);
        if (r) {
            for (uint32_t q = 0; q < n; q++) /* give back what was taken: nothing is lost */
                if (chunk_is_of(d, s->map[q], s, q))
                    chunk_list_add(d, s->map[q]);
            return r;
        }
        chunk_take_for(d, c, s, p);
        missing--;
    }
    for (uint32_t p = 0; p < n; p++)
        fence_merge(d, &s->ready, &d->chunks[s->map[p]].ready);
    s->state = SLOT_RESIDENT;
    return 0;
}

void mem_unback(struct device *d, struct slot *s, enum slot_state state)
{
    if (s->kind != SLOT_LARGE)
        return;
    if (s->state == SLOT_RESIDENT) {
        struct fence next = {0};
        slot_fences(d, s, &next);
        for (uint32_t p = 0; p < s->n_pages; p++) {
            d->chunks[s->map[p]].ready = next;
            chunk_list_add(d, s->map[p]);
        }
        fence_merge(d, &s->stale, &next);
        s->ready = s->unseen = s->users = (struct fence){0};
        if (d->cfg->rehearse_unmapped && d->mode != MODE_ENFORCE && s->live && state != SLOT_EMPTY)
            for (uint32_t p = 0; p < s->n_pages && !slot_unmap_page(d, s, p); p++) /* see plan/unmapped.h */
                ;
    }
    s->state = (uint8_t)state;
}

CUdeviceptr mem_scratch(struct device *d, uint64_t bytes)
{
    struct slot *s;
    if (!mem_is_small(d, bytes) || small_take(d, bytes, &s))
        return 0;
    if (fence_sync(d, &s->ready)) {
        small_give_back(d, s);
        return 0;
    }
    s->bytes = bytes; /* neither live nor in a free list: nobody finds it */
    return s->va;
}

int mem_page_of_own(struct device *d, CUmemGenericAllocationHandle *out)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = d->dev;
    if (mem_physical_bytes(d) + d->gran > d->limit_bytes || share_cover(d, d->gran))
        return -ENOMEM;
    if (MEM_CALL(cuMemCreate(out, d->gran, &prop, 0)) != CUDA_SUCCESS) {
        share_settle(d);
        return -ENOMEM;
    }
    d->own_bytes += d->gran;
    mem_note_peak(d);
    return 0;
}

void mem_page_gone(struct device *d, CUmemGenericAllocationHandle h)
{
    MEM_CALL(cuMemRelease(h));
    d->own_bytes -= d->gran;
    share_settle(d);
}

int mem_page_map(struct device *d, CUdeviceptr va, uint64_t n, CUmemGenericAllocationHandle h)
{
    CUmemAccessDesc acc;
    memset(&acc, 0, sizeof acc);
    acc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    acc.location.id = d->dev;
    acc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    uint64_t mapped = 0;
    while (mapped < n && MEM_CALL(cuMemMap(va + (mapped << d->shift), d->gran, 0, h, 0)) == CUDA_SUCCESS)
        mapped++;
    if (mapped == n && MEM_CALL(cuMemSetAccess(va, n << d->shift, &acc, 1)) == CUDA_SUCCESS)
        return 0;
    mem_page_unmap(d, va, mapped);
    return -ENOMEM;
}

void mem_page_unmap(struct device *d, CUdeviceptr va, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        MEM_CALL(cuMemUnmap(va + (i << d->shift), d->gran));
}
