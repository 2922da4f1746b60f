/* Slots: an address each, with the chunks that are mapped there; found by address, taken by size, backed and unbacked. */
#include "policy/memory/mem_own.h"
#include "policy/process/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct slot *slot_create(struct device *d, enum slot_kind kind)
{
    if (d->n_slots == MAX_SLOTS)
        return NULL;
    struct slot *s = &d->slots[d->n_slots];
    s->id = d->n_slots++;
    s->kind = (uint8_t)kind;
    s->plan_buf = s->rec_buf = s->next_free = -1;
    s->fixed_ord = ORD_NONE;
    return s;
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

int slot_unmap_page(struct device *d, struct slot *s, uint32_t page)
{
    int r = slot_quiesce(d, s);
    if (r)
        return r;
    if (MEM_CALL(cuMemUnmap(s->va + ((uint64_t)page << d->shift), d->gran)) != CUDA_SUCCESS)
        return -EIO;
    struct chunk *c = &d->chunks[s->map[page]];
    c->at = c->at == s->va + ((uint64_t)page << d->shift) ? 0 : c->at;
    s->map[page] = -1;
    return 0;
}

/* Those of so many pages; the first list is of all that are larger than any list's. */
static int32_t *list_of(struct device *d, uint32_t n_pages) { return &d->mem->free_slots[n_pages < MAX_LIST_PAGES ? n_pages : 0]; }

static void list_add(struct device *d, struct slot *s)
{
    int32_t *head = list_of(d, s->n_pages);
    s->next_free = *head;
    s->next_back = -1;
    if (*head >= 0)
        d->slots[*head].next_back = (int32_t)s->id;
    *head = (int32_t)s->id;
    s->idle = true;
    d->mem->idle_pages += s->n_pages;
}

static void list_take(struct device *d, struct slot *s)
{
    if (s->next_back >= 0)
        d->slots[s->next_back].next_free = s->next_free;
    else
        *list_of(d, s->n_pages) = s->next_free;
    if (s->next_free >= 0)
        d->slots[s->next_free].next_back = s->next_back;
    s->idle = false;
    d->mem->idle_pages -= s->n_pages;
}

/* A slot that is in no list gives its address up; what is still mapped there goes first. Where that fails it is lost, but harmless. */
static void slot_dissolve(struct device *d, struct slot *s)
{
    for (uint32_t p = 0; p < s->n_pages; p++)
        if (s->map[p] >= 0) {
            const int r = slot_unmap_page(d, s, p);
            if (r == -EAGAIN) /* not now: another time */
                list_add(d, s);
            if (r)
                return;
        }
    if (space_give(d, (s->va - d->base) >> d->shift, s->n_pages + 1ull))
        return;
    free(s->map);
    s->map = NULL;
    s->n_pages = 0;
    s->va = 0;
    s->next_free = d->mem->large_structs;
    d->mem->large_structs = (int32_t)s->id;
    d->address_changes++;
}

static int older(const void *a, const void *b)
{
    const struct slot *x = *(struct slot *const *)a, *y = *(struct slot *const *)b;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* Slots of sizes that do not come back: those whose last buffer is the longest ago, until the free ones have `most` pages left. */
static void dissolve_idle(struct device *d, uint64_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_slots; i++)
        n += d->slots[i].idle;
    struct slot **idle = malloc((n + 1) * sizeof(struct slot *));
    if (!idle)
        return;
    n = 0;
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slots[i].idle)
            idle[n++] = &d->slots[i];
    qsort(idle, n, sizeof(struct slot *), older);
    for (uint32_t i = 0; i < n && d->mem->idle_pages > most; i++) {
        list_take(d, idle[i]);
        slot_dissolve(d, idle[i]);
    }
    free(idle);
}

/* Free slots may have four times the device's memory in addresses, or a quarter of what was reserved: more than a program with the same
 * sizes in every iteration ever has. */
static uint64_t idle_most(const struct device *d)
{
    uint64_t most = d->device_bytes >> d->shift << 2, quarter = d->n_va_pages / 4;
    return most < quarter ? most : quarter;
}

int slot_space(struct device *d, uint64_t n, uint64_t *first)
{
    if (d->mem->idle_pages > idle_most(d))
        dissolve_idle(d, idle_most(d) / 2);
    if (!space_take(d, n, first))
        return 0;
    dissolve_idle(d, 0);
    return space_take(d, n, first);
}

static int slot_create_large(struct device *d, uint32_t n_pages, struct slot **out)
{
    uint64_t first;
    if (slot_space(d, n_pages + 1ull, &first))
        return -ENOMEM;
    int32_t *map = malloc(n_pages * sizeof *map);
    struct slot *s = NULL;
    if (map && d->mem->large_structs >= 0) {
        s = &d->slots[d->mem->large_structs];
        d->mem->large_structs = s->next_free;
    } else if (map)
        s = slot_create(d, SLOT_LARGE);
    if (!s) {
        free(map);
        space_give(d, first, n_pages + 1ull);
        return -ENOMEM;
    }
    s->map = map;
    s->n_pages = n_pages;
    s->va = d->base + (first << d->shift);
    s->state = SLOT_EMPTY;
    s->ready = s->unseen = s->users = s->stale = (struct fence){0}; /* nothing is left of its earlier address */
    for (uint32_t p = 0; p < n_pages; p++)
        map[p] = -1;
    /* the gap after it is its own too: one past the end is still this slot */
    for (uint32_t p = 0; p <= n_pages; p++)
        d->page_slot[first + p] = s->id + 1;
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

/* All that whoever gets the slot's memory next must come after. */
void slot_fences(struct device *d, const struct slot *s, struct fence *into)
{
    fence_merge(d, into, &s->ready);
    fence_merge(d, into, &s->unseen);
    fence_merge(d, into, &s->users);
}

static bool slot_all_cached(struct device *d, const struct slot *s)
{
    for (uint32_t p = 0; p < s->n_pages; p++)
        if (s->map[p] < 0 || d->chunks[s->map[p]].owner != CHUNK_FREE)
            return false;
    return true;
}

/* Prefer a slot whose old chunks are all still free: it comes back without a driver call. */
static int slot_take_large(struct device *d, uint32_t n_pages, struct slot **out)
{
    struct slot *best = NULL;
    unsigned seen = 0;
    for (int32_t at = *list_of(d, n_pages); at >= 0 && seen < 16; at = d->slots[at].next_free, seen++) {
        if (d->slots[at].n_pages != n_pages)
            continue;
        best = &d->slots[at];
        if (slot_all_cached(d, best))
            break;
    }
    if (!best)
        return slot_create_large(d, n_pages, out);
    rt_check(d, best->idle && !best->live && best->state == SLOT_EMPTY);
    list_take(d, best);
    *out = best;
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
    s->watched = s->points = s->named = false;
    s->looked_tick = 0;
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
    return mem_is_small(d, bytes) ? arena_take(d, bytes, out) : slot_take_large(d, (uint32_t)pages, out);
}

int mem_slot_new(struct device *d, uint64_t bytes, struct slot **out)
{
    int r = slot_take(d, bytes, out);
    if (!r) {
        if ((*out)->kind == SLOT_LARGE)
            (*out)->state = SLOT_EMPTY;
        (*out)->fixed_ord = ORD_NONE;
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
    s->fixed_ord = ORD_NONE;
    if (s->kind == SLOT_SMALL)
        arena_give_back(d, s);
    else
        list_add(d, s);
}

void mem_slot_unfix(struct device *d, struct slot *s)
{
    if (s->fixed_ord < 0)
        return;
    if (s->live) {
        s->fixed_ord = ORD_NONE;
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

uint64_t mem_slot_room(const struct device *d, const struct slot *s)
{
    return s->kind == SLOT_LARGE ? (uint64_t)s->n_pages << d->shift : s->kind == SLOT_SMALL ? (uint64_t)s->n_pages * UNIT_BYTES : s->bytes;
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

/* A page that has a chunk of its own keeps it from one iteration to the next; one that takes what is free elsewhere leaves that place
 * without, and mapping each anew costs tens of microseconds a chunk. So some more memory than is alive is taken while the limit allows
 * it, as other caching allocators do: half as much again at most. Not where the limit is shared: there it is others who need it. */
static bool may_have_more(struct device *d)
{
    const uint64_t peak = d->st.native_peak_bytes, then = device_physical_bytes(d) + d->gran;
    return !d->share && then <= d->limit_bytes && then <= peak + peak / 2;
}

/* The slot gets what is still mapped at its pages and free, and other chunks for the rest; they are enough. */
static int take_pages(struct device *d, struct slot *s)
{
    const uint32_t n = s->n_pages;
    uint32_t missing = 0;
    if (chunk_list_take_row(d, s->map, n, s->id))
        return 0;
    for (uint32_t p = 0; p < n; p++) {
        int32_t c = s->map[p];
        if (c >= 0 && d->chunks[c].owner == CHUNK_FREE)
            chunk_take_for(d, c, s, p);
        else
            missing++;
    }
    for (uint32_t p = 0; p < n && missing; p++) {
        if (chunk_is_of(d, s->map[p], s->id, p))
            continue;
        int32_t c = may_have_more(d) ? mem_chunk_new(d) : -1;
        c = c >= 0 ? c : chunk_list_first(d);
        int r = c >= 0 ? mem_map_page(d, s, p, c) : -EIO;
        if (r) {
            for (uint32_t q = 0; q < n; q++) /* give back what was taken: nothing is lost */
                if (chunk_is_of(d, s->map[q], s->id, q))
                    chunk_list_add(d, s->map[q]);
            return r;
        }
        chunk_take_for(d, c, s, p);
        missing--;
    }
    return 0;
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
    const int r = take_pages(d, s);
    if (r)
        return r;
    for (uint32_t p = 0; p < n; p++) {
        if (!rt_check(d, chunk_is_of(d, s->map[p], s->id, p)))
            return -EIO;
        fence_merge(d, &s->ready, &d->chunks[s->map[p]].ready);
    }
    s->state = SLOT_RESIDENT;
    return 0;
}

/* `--rehearse unmapped` (plan/unmapped.h): no page of an evicted slot stays mapped. */
static int unmap_evicted(struct device *d, struct slot *s)
{
    int r = 0;
    for (uint32_t p = 0; p < s->n_pages && !r; p++)
        r = s->map[p] >= 0 ? slot_unmap_page(d, s, p) : 0;
    return r;
}

void mem_unback(struct device *d, struct slot *s, enum slot_state state)
{
    if (s->kind != SLOT_LARGE)
        return;
    if (s->state == SLOT_RESIDENT) {
        struct fence next = {0};
        slot_fences(d, s, &next);
        chunk_list_add_row(d, s->map, s->n_pages, s->id, &next);
        fence_merge(d, &s->stale, &next);
        s->ready = s->unseen = s->users = (struct fence){0};
        if (d->cfg->rehearse_unmapped && d->mode != MODE_ENFORCE && s->live && state != SLOT_EMPTY)
            d->mem->left_mapped |= unmap_evicted(d, s) == -EAGAIN;
    }
    s->state = (uint8_t)state;
}

int mem_unmap_evicted(struct device *d)
{
    for (uint32_t i = 0; i < d->n_slots && d->mem->left_mapped; i++) {
        struct slot *s = &d->slots[i];
        if (s->kind == SLOT_LARGE && s->live && (s->state == SLOT_HOST || s->state == SLOT_LOST) && unmap_evicted(d, s) == -EAGAIN)
            return -EAGAIN;
    }
    d->mem->left_mapped = false;
    return 0;
}
