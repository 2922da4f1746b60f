/* evict.c: see evict.h. */
#include "policy/memory/evict.h"

#include "policy/device.h"
#include "policy/memory/chunk.h"
#include "policy/memory/decoy.h"
#include "policy/memory/foreign.h"
#include "policy/memory/slot.h"
#include "policy/memory/supply.h"
#include "policy/memory/swap.h"
#include "policy/share/share.h"

/* The slot's copy to the host would stand still with a stream that waits for the host, and with it all later copies out. */
static bool would_stand(struct device *d, const struct slot *s)
{
    return fence_stands(d, &s->users) || fence_stands(d, &s->ready) || fence_stands(d, &s->unseen);
}

static bool goes_before(const struct slot *s, bool stands, const struct slot *best, bool best_stands)
{
    if (stands != best_stands)
        return best_stands;
    return s->written != best->written ? best->written : s->use_tick < best->use_tick;
}

/* The slot to evict next: unwritten slots come first, then the least recently used; last of all slots whose copy may stand still until a later call of the
 * program (*stands_out). */
static struct slot *victim(struct device *d, bool *stands_out)
{
    struct slot *best = NULL;
    bool best_stands = false;
    stream_looks_anew(d);
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        if (!swap_may_go(d, s))
            continue;
        const bool stands = would_stand(d, s);
        if (!best || goes_before(s, stands, best, best_stands)) {
            best = s;
            best_stands = stands;
        }
    }
    *stands_out = best_stands;
    return best;
}

/* In a group: waits for one more chunk from processes that hold memory which this process is entitled to. */
static bool neighbours_gave(struct device *d)
{
    return d->share && device_physical_bytes(d) + d->mem.gran <= d->mem.limit_bytes && !share_wait(d, d->mem.gran) && supply_chunk(d) >= 0;
}

/* Waits for memory that the program has freed in a stream which has not come to the free. One wait may make room for several chunks: they are made, until n_chunks are free. */
static bool more_left(struct device *d, uint64_t n_chunks)
{
    bool any = false;
    while (!any && foreign_wait(d))
        while (d->mem.n_free_chunks < n_chunks && supply_chunk(d) >= 0)
            any = true;
    return any;
}

/* Makes one more chunk in place of the page that decoys are made of. */
static bool decoys_gave(struct device *d) { return decoy_give(d) && supply_chunk(d) >= 0; }

void evict_for(struct device *d, uint64_t n_chunks)
{
    bool stands;
    d->mem.pressed |= d->mem.n_free_chunks < n_chunks;
    while (d->mem.n_free_chunks < n_chunks) {
        struct slot *s = victim(d, &stands);
        if ((!s || swap_out(d, s)) && !neighbours_gave(d) && !more_left(d, n_chunks) && !decoys_gave(d))
            return;
    }
}

void evict_what_may_go(struct device *d, uint64_t n_chunks)
{
    bool stands = false;
    while (d->mem.n_free_chunks < n_chunks) {
        struct slot *s = victim(d, &stands);
        if (!s || stands || swap_out(d, s))
            return;
    }
}

int32_t evict_for_one_that_moves(struct device *d)
{
    bool stands;
    int32_t c = chunk_list_first(d);
    while (c >= 0 && fence_stands(d, &d->mem.chunks[c].ready)) {
        if (supply_chunk(d) < 0) {
            struct slot *s = victim(d, &stands);
            if (!s || stands || swap_out(d, s))
                break;
        }
        c = chunk_list_first(d);
    }
    return c;
}
