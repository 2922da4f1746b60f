/* arena.c: pages shared by small allocations. */
#include "policy/memory/arena.h"

#include "policy/device.h"
#include "policy/memory/chunk.h"
#include "policy/memory/evict.h"
#include "policy/memory/page.h"
#include "policy/memory/runs.h"
#include "policy/memory/slot.h"
#include "policy/memory/supply.h"
#include "policy/process/check.h"

#include <errno.h>
#include <stdlib.h>

bool arena_is_for(struct device *d, uint64_t bytes) { return bytes < d->mem.gran / 2; }

uint32_t arena_most_small(struct device *d, uint32_t n, uint64_t bytes_each)
{
    while (n > 1 && !arena_is_for(d, n * bytes_each))
        n /= 2;
    return n;
}

uint64_t arena_chunks(struct device *d) { return d->mem.n_arena_chunks; }

static uint32_t units_of(uint64_t bytes) { return (uint32_t)(bytes / UNIT_BYTES) + 1; }

uint64_t arena_small_bytes(uint64_t bytes) { return (uint64_t)units_of(bytes) * UNIT_BYTES; }

uint64_t arena_free_bytes(struct device *d)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < d->mem.n_arenas; i++)
        for (uint32_t u = 0; u < d->mem.gran / UNIT_BYTES && d->mem.arenas[i].chunk >= 0; u++)
            bytes += d->mem.arenas[i].unit_slot[u] ? 0 : UNIT_BYTES;
    return bytes;
}

static uint32_t arena_units(struct device *d) { return (uint32_t)(d->mem.gran / UNIT_BYTES); }

/* Notes the page's longest run of free units in memory.longest, for arena_take(): 0 where the page has no chunk. */
static void arena_changed(struct memory *m, uint32_t which)
{
    const struct arena *a = &m->arenas[which];
    uint32_t i = MAX_ARENAS + which, most = a->chunk >= 0 ? runs_longest(a->runs) : 0;
    while (i >= m->longest_root && m->longest[i] != most) {
        m->longest[i] = most;
        i /= 2;
        most = m->longest[2 * i] > m->longest[2 * i + 1] ? m->longest[2 * i] : m->longest[2 * i + 1];
    }
}

static int arena_map(struct device *d, uint32_t which)
{
    struct arena *a = &d->mem.arenas[which];
    if (!d->mem.n_free_chunks && supply_chunk(d) < 0)
        evict_for(d, 1);
    if (!d->mem.n_free_chunks)
        return -ENOMEM;
    int32_t c = evict_for_one_that_moves(d);
    if (c < 0)
        return -EIO;
    struct slot page = {.va = a->va, .n_pages = 1, .map = &(int32_t){-1}};
    if (page_map_row(d, &page, &c))
        return -EIO;
    chunk_list_take(d, c);
    d->mem.chunks[c].owner = CHUNK_ARENA;
    a->chunk = c;
    a->ready = d->mem.chunks[c].ready;
    d->mem.chunks[c].ready = (struct fence){0};
    d->mem.n_arena_chunks++;
    arena_changed(&d->mem, which);
    return 0;
}

/* Another page for small allocations: a page whose chunk was given back, or a new one. */
static int arena_grow(struct device *d, uint32_t *which)
{
    uint32_t i = 0;
    while (i < d->mem.n_arenas && d->mem.arenas[i].chunk >= 0)
        i++;
    if (i == d->mem.n_arenas) {
        if (d->mem.n_arenas == MAX_ARENAS)
            return -ENOMEM;
        struct arena *a = &d->mem.arenas[i];
        a->unit_slot = calloc(arena_units(d), sizeof *a->unit_slot);
        a->runs = runs_new(arena_units(d));
        uint64_t page;
        if (!a->unit_slot || !a->runs || slot_space(d, 1, &page)) {
            free(a->unit_slot);
            free(a->runs);
            return -ENOMEM;
        }
        a->chunk = -1;
        a->va = d->mem.base + (page << d->mem.shift);
        d->mem.page_slot[page] = (d->mem.n_arenas++ + 1) | PAGE_ARENA;
        while (MAX_ARENAS / d->mem.longest_root < d->mem.n_arenas) { /* a tree of twice as many leaves; the new half is empty */
            const uint32_t below = d->mem.longest_root;
            d->mem.longest_root /= 2;
            d->mem.longest[d->mem.longest_root] = d->mem.longest[below];
        }
    }
    *which = i;
    return arena_map(d, i);
}

void arena_trim(struct device *d)
{
    for (uint32_t i = 0; i < d->mem.n_arenas; i++) {
        struct arena *a = &d->mem.arenas[i];
        if (a->chunk < 0 || runs_longest(a->runs) != arena_units(d) || (stream_gated(d) && fence_stands(d, &a->ready)))
            continue;
        if (fence_sync(d, &a->ready) || MEM_CALL(cuMemUnmap(a->va, d->mem.gran)) != CUDA_SUCCESS)
            continue;
        struct chunk *c = &d->mem.chunks[a->chunk];
        c->at = c->at == a->va ? 0 : c->at;
        c->ready = (struct fence){0};
        chunk_list_add(d, a->chunk);
        a->chunk = -1;
        arena_changed(&d->mem, i);
        d->mem.n_arena_chunks--;
    }
}

/* Where earlier slots of page *which may stand still for the host: sets *which to a page whose earlier slots do not and that has n free units side by side, or to a
 * new page. *which stays where there is no room. */
static void arena_that_moves(struct device *d, uint32_t n, uint32_t *which)
{
    struct memory *m = &d->mem;
    uint32_t other = 0;
    stream_looks_anew(d);
    if (!fence_stands(d, &m->arenas[*which].ready))
        return;
    while (other < m->n_arenas && (m->longest[MAX_ARENAS + other] < n || fence_stands(d, &m->arenas[other].ready)))
        other++;
    if (other < m->n_arenas || (supply_chunk(d) >= 0 && !arena_grow(d, &other)))
        *which = other;
}

/* The first page with a run of free units that is long enough, and the first such run in it: small allocations stay together, so that
 * pages become empty. */
int arena_take(struct device *d, uint64_t bytes, struct slot **out)
{
    struct memory *m = &d->mem;
    uint32_t n = units_of(bytes), which = m->longest_root;
    if (m->longest[which] < n) {
        int r = arena_grow(d, &which);
        if (r)
            return r;
    } else {
        while (which < MAX_ARENAS)
            which = m->longest[2 * which] >= n ? 2 * which : 2 * which + 1;
        which -= MAX_ARENAS;
        if (stream_gated(d))
            arena_that_moves(d, n, &which);
    }
    struct slot *s;
    if (m->small_structs >= 0) {
        s = &d->mem.slots[m->small_structs];
        m->small_structs = s->next_free;
    } else if (!(s = slot_create(d, SLOT_SMALL)))
        return -ENOMEM;
    struct arena *a = &m->arenas[which];
    uint32_t first = runs_find(a->runs, n);
    for (uint32_t u = first; u < first + n; u++) {
        rt_check(d, !a->unit_slot[u]);
        a->unit_slot[u] = s->id + 1;
    }
    runs_set(a->runs, first, n, false);
    arena_changed(m, which);
    s->arena = which;
    s->entry = first;
    s->n_pages = n;
    s->va = a->va + (uint64_t)first * UNIT_BYTES;
    s->state = SLOT_RESIDENT;
    s->ready = a->ready; /* uses of earlier slots of the page */
    s->unseen = s->users = s->stale = (struct fence){0};
    *out = s;
    return 0;
}

void arena_give_back(struct device *d, struct slot *s)
{
    struct arena *a = &d->mem.arenas[s->arena];
    for (uint32_t u = s->entry; u < s->entry + s->n_pages; u++) {
        rt_check(d, a->unit_slot[u] == s->id + 1);
        a->unit_slot[u] = 0;
    }
    runs_set(a->runs, s->entry, s->n_pages, true);
    arena_changed(&d->mem, s->arena);
    slot_fences(d, s, &a->ready);
    s->next_free = d->mem.small_structs;
    d->mem.small_structs = (int32_t)s->id;
}

CUdeviceptr arena_scratch(struct device *d, uint64_t bytes)
{
    struct slot *s;
    if (!arena_is_for(d, bytes) || arena_take(d, bytes, &s))
        return 0;
    if (fence_sync(d, &s->ready)) {
        arena_give_back(d, s);
        return 0;
    }
    s->bytes = bytes; /* the slot is neither live nor in a free list: no allocation gets it */
    return s->va;
}
