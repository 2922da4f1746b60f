/* room.c: see room.h. */
#include "policy/memory/room.h"

#include "policy/device.h"
#include "policy/memory/arena.h"
#include "policy/memory/aside.h"
#include "policy/memory/chunk.h"
#include "policy/memory/decoy.h"
#include "policy/memory/evict.h"
#include "policy/memory/page.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/memory/supply.h"
#include "policy/share/share.h"

#include <errno.h>

uint64_t room_give_driver(struct device *d, uint64_t bytes)
{
    uint64_t before = device_physical_bytes(d), target = before > bytes ? before - bytes : 0;
    while (device_physical_bytes(d) > target) {
        if (aside_give(d))
            continue;
        if (!d->mem.n_free_chunks)
            evict_for(d, 1);
        if (!d->mem.n_free_chunks || supply_release(d, chunk_list_first(d)))
            break;
    }
    return before - device_physical_bytes(d);
}

/* Unmapping the chunk would wait for work that may stand still until the program has made a later call. */
static bool stands(struct device *d, int32_t c)
{
    bool does = fence_stands(d, &d->mem.chunks[c].ready);
    for (uint32_t i = 0; i < d->mem.n_slots && !does; i++) {
        const struct slot *s = &d->mem.slots[i];
        for (uint32_t p = 0; s->kind == SLOT_LARGE && p < s->n_pages && !does; p++) {
            struct fence all = {0};
            if (s->map[p] != c)
                continue;
            slot_fences(d, s, &all);
            fence_merge(d, &all, &s->stale);
            does = fence_stands(d, &all);
        }
    }
    return does;
}

void room_give_free(struct device *d)
{
    const bool some = stream_any_stands(d); /* chunks that standing streams hold up are kept */
    if (some)
        stream_looks_anew(d);
    arena_trim(d);
    while (aside_give(d))
        ;
    for (int32_t c = chunk_list_first(d), next; c >= 0; c = next) {
        next = d->mem.chunks[c].next;
        if ((!some || !stands(d, c)) && supply_release(d, c))
            break;
    }
}

uint64_t room_give(struct device *d, uint64_t bytes)
{
    uint64_t before = device_physical_bytes(d);
    d->mem.op_at_hand++;
    arena_trim(d);
    uint64_t given = before - device_physical_bytes(d);
    if (given < bytes)
        room_give_driver(d, bytes - given);
    return before - device_physical_bytes(d);
}

int room_make(struct device *d, uint64_t bytes)
{
    if (bytes > d->mem.limit_bytes)
        return -ENOMEM;
    if (d->capturing) /* the host cannot wait in a capture, so nothing moves; free chunks have gone back already */
        return supply_is_short(d, bytes) || share_cover(d, bytes) ? -ENOMEM : 0;
    while (supply_is_short(d, bytes) || share_cover(d, bytes)) {
        if (aside_give(d))
            continue;
        if (!d->mem.n_free_chunks)
            evict_for(d, 1);
        if (!d->mem.n_free_chunks && device_physical_bytes(d) + bytes <= d->mem.limit_bytes)
            return share_wait(d, bytes);
        if (!d->mem.n_free_chunks)
            return -ENOMEM;
        int r = supply_release(d, chunk_list_first(d));
        if (r)
            return r;
    }
    return 0;
}

int room_for_decoys(struct device *d)
{
    if (decoy_has_page(d) || (!room_make(d, d->mem.gran) && !decoy_page(d)))
        return 0;
    log_say(SAY_DEBUG, "no page for a decoy: words that want proof have none");
    return -ENOMEM;
}

CUdeviceptr room_decoy(struct device *d, CUdeviceptr at, uint64_t bytes) { return room_for_decoys(d) ? 0 : decoy_of(d, at, bytes); }

uint64_t room_fixed_bytes(struct device *d)
{
    uint64_t bytes = d->mem.foreign_bytes + d->mem.own_bytes + (arena_chunks(d) << d->mem.shift);
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        const struct slot *s = &d->mem.slots[i];
        if (s->kind == SLOT_LARGE && s->live && s->pins && s->state == SLOT_RESIDENT && !s->lodged)
            bytes += mem_pages(d, s->bytes) << d->mem.shift;
    }
    return bytes;
}
