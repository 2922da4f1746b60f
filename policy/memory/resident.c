/* resident.c: see resident.h. */
#include "policy/memory/resident.h"

#include "policy/device.h"
#include "policy/memory/arena.h"
#include "policy/memory/chunk.h"
#include "policy/memory/evict.h"
#include "policy/memory/page.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/memory/supply.h"
#include "policy/memory/swap.h"
#include "policy/process/check.h"

#include <errno.h>
#include <stdlib.h>

static void chunk_take_for(struct device *d, int32_t c, const struct slot *s, uint32_t page)
{
    chunk_list_take(d, c);
    d->mem.chunks[c].owner = (int32_t)s->id;
    d->mem.chunks[c].page = page;
}

bool resident_can_wait(struct device *d, const struct slot *s)
{
    uint64_t have = d->mem.n_free_chunks, most = supply_max_chunks(d), made = d->mem.n_chunks - d->mem.n_gone;
    have += most > made ? most - made : 0;
    if (have >= s->n_pages || d->share || pinned_room_bytes(d) < (uint64_t)s->n_pages << d->mem.shift)
        return false;
    for (uint32_t i = 0; i < d->mem.n_slots && have < s->n_pages; i++)
        if (swap_may_go(d, &d->mem.slots[i]))
            have += d->mem.slots[i].n_pages;
    return have >= s->n_pages;
}

/* True where a page without a chunk of its own should get a new chunk from the driver. A chunk that is taken from another slot's page must be mapped anew, and so
 * must that page later, each time for tens of microseconds; a page with its own chunk keeps it from one iteration to the next. So physical memory may exceed the peak
 * of live memory by half within the limit, as in other caching allocators. Not in a group: its other processes need the memory. */
static bool may_have_more(struct device *d)
{
    const uint64_t peak = d->st.native_peak_bytes, then = device_physical_bytes(d) + d->mem.gran;
    return !d->share && then <= d->mem.limit_bytes && then <= peak + peak / 2;
}

/* Takes and maps chunks for the pages that own none. On an error all chunks of the slot are free again. */
static int take_others(struct device *d, struct slot *s)
{
    int32_t *to = malloc(s->n_pages * sizeof *to);
    int r = to ? 0 : -ENOMEM;
    uint32_t n = 0;
    for (; n < s->n_pages && !r; n++) {
        to[n] = s->map[n];
        if (chunk_is_of(d, to[n], s->id, n))
            continue;
        to[n] = may_have_more(d) ? supply_chunk(d) : -1;
        if (to[n] < 0)
            to[n] = evict_for_one_that_moves(d);
        if (to[n] < 0)
            r = -EIO;
        else
            chunk_take_for(d, to[n], s, n); /* even a chunk mapped at this very page: an eviction for an earlier page may have freed it */
    }
    if (!r)
        r = page_map_row(d, s, to);
    for (uint32_t p = 0; p < n && r; p++) /* gives the taken chunks back: none is lost */
        if (to[p] >= 0)
            chunk_list_add(d, to[p]);
    for (uint32_t p = n; p < s->n_pages && r; p++)
        if (chunk_is_of(d, s->map[p], s->id, p))
            chunk_list_add(d, s->map[p]);
    free(to);
    return r;
}

/* The slot takes the free chunks that are still mapped at its pages, and other chunks for the rest. The caller has seen to it that enough are free. */
static int take_pages(struct device *d, struct slot *s)
{
    const uint32_t n = s->n_pages;
    uint32_t missing = 0;
    if (chunk_list_take_row(d, s->map, n, s->id))
        return 0;
    for (uint32_t p = 0; p < n; p++) {
        int32_t c = s->map[p];
        if (c >= 0 && d->mem.chunks[c].owner == CHUNK_FREE)
            chunk_take_for(d, c, s, p);
        else
            missing++;
    }
    return missing ? take_others(d, s) : 0;
}

int resident_back(struct device *d, struct slot *s)
{
    if (s->state == SLOT_RESIDENT || s->kind != SLOT_LARGE)
        return 0;
    uint32_t n = s->n_pages;
    while (d->mem.n_free_chunks < n && supply_chunk(d) >= 0)
        ;
    if (d->mem.n_free_chunks < n)
        arena_trim(d);
    if (d->mem.n_free_chunks < n)
        evict_for(d, n);
    if (d->mem.n_free_chunks < n)
        return -ENOMEM;
    const int r = take_pages(d, s);
    if (r)
        return r;
    for (uint32_t p = 0; p < n; p++) {
        if (!rt_check(d, chunk_is_of(d, s->map[p], s->id, p)))
            return -EIO;
        fence_merge(d, &s->ready, &d->mem.chunks[s->map[p]].ready);
    }
    s->state = SLOT_RESIDENT;
    return 0;
}

int resident_copy_in(struct device *d, struct slot *s)
{
    if (!rt_check(d, s->state == SLOT_HOST && s->host))
        return -EINVAL;
    int r = resident_back(d, s);
    return r ? r : swap_queue_in(d, s);
}

int resident_swap_in(struct device *d, struct slot *s)
{
    int r = resident_copy_in(d, s);
    if (!r)
        swap_discard(d, s);
    return r;
}
