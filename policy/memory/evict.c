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

/* Least recently used first; memory that holds nothing yet before all others. */
static struct slot *victim(struct device *d)
{
    struct slot *best = NULL;
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        if (!swap_may_go(d, s))
            continue;
        if (!best || (!s->written && best->written) || (s->written == best->written && s->use_tick < best->use_tick))
            best = s;
    }
    return best;
}

/* In a group: one more chunk, of what others hold and this process is entitled to. */
static bool neighbours_gave(struct device *d)
{
    return d->share && device_physical_bytes(d) + d->mem.gran <= d->mem.limit_bytes && !share_wait(d, d->mem.gran) && supply_chunk(d) >= 0;
}

/* One more chunk, of what the program has given back in a stream that has not come to it. */
static bool more_left(struct device *d)
{
    while (foreign_wait(d))
        if (supply_chunk(d) >= 0)
            return true;
    return false;
}

/* One more chunk, of the page that decoys are made of. */
static bool decoys_gave(struct device *d) { return decoy_give(d) && supply_chunk(d) >= 0; }

void evict_for(struct device *d, uint64_t n_chunks)
{
    d->mem.pressed |= d->mem.n_free_chunks < n_chunks;
    while (d->mem.n_free_chunks < n_chunks) {
        struct slot *s = victim(d);
        if ((!s || swap_out(d, s)) && !neighbours_gave(d) && !more_left(d) && !decoys_gave(d))
            return;
    }
}
