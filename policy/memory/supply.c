/* supply.c: see supply.h. */
#include "policy/memory/supply.h"

#include "policy/device.h"
#include "policy/memory/aside.h"
#include "policy/memory/chunk.h"
#include "policy/memory/foreign.h"
#include "policy/memory/pooled.h"
#include "policy/memory/page.h"
#include "policy/memory/slot.h"
#include "policy/process/check.h"
#include "policy/share/share.h"

#include <errno.h>

uint64_t supply_for_plan_bytes(const struct device *d)
{
    const uint64_t refused = d->mem.refused_at_bytes;
    return refused && refused < d->mem.plan_limit_bytes ? refused : d->mem.plan_limit_bytes;
}

uint64_t supply_max_chunks(struct device *d)
{
    const uint64_t others = d->mem.foreign_bytes + d->mem.own_bytes, all = supply_for_plan_bytes(d);
    return all > others ? (all - others) >> d->mem.shift : 0;
}

bool supply_is_short(struct device *d, uint64_t bytes)
{
    if (device_physical_bytes(d) + bytes > d->mem.limit_bytes)
        foreign_look(d);
    if (device_physical_bytes(d) + bytes > d->mem.limit_bytes)
        pooled_trim(d);
    if (d->mem.graph_bytes && device_physical_bytes(d) + bytes > d->mem.limit_bytes) {
        if (d->drv->cuDeviceGraphMemTrim)
            (void)d->drv->cuDeviceGraphMemTrim(d->dev); /* memory that no graph uses goes back */
        foreign_graphs(d);
    }
    return device_physical_bytes(d) + bytes > d->mem.limit_bytes;
}

void supply_say_short(struct device *d)
{
    if (d->mem.refused_at_bytes)
        log_once(SAY_WARN, "of that limit the driver gives no more than %s: something else holds the rest of the device (nvidia-smi), and a higher limit would not do",
                 rt_size(d->mem.refused_at_bytes).text);
}

static int32_t chunk_make(struct device *d)
{
    if (supply_is_short(d, d->mem.gran))
        return -1;
    int32_t c = -1;
    if (d->mem.n_gone)
        for (uint32_t i = 0; i < d->mem.n_chunks && c < 0; i++)
            if (d->mem.chunks[i].owner == CHUNK_GONE)
                c = (int32_t)i;
    if (c < 0 && d->mem.n_chunks == MAX_CHUNKS)
        return -1;
    CUmemGenericAllocationHandle h;
    if (page_physical(d, &h))
        return -1;
    if (c < 0)
        c = (int32_t)d->mem.n_chunks++;
    else
        d->mem.n_gone--;
    d->mem.chunks[c].handle = h;
    d->mem.chunks[c].ready = (struct fence){0};
    d->mem.chunks[c].at = 0;
    chunk_list_add(d, c);
    rt_check(d, ((uint64_t)(d->mem.n_chunks - d->mem.n_gone) << d->mem.shift) + d->mem.foreign_bytes <= d->mem.limit_bytes);
    memory_note_peak(d);
    return c;
}

int32_t supply_chunk(struct device *d)
{
    int32_t c;
    while ((c = chunk_make(d)) < 0 && aside_give(d))
        ;
    return c;
}

int supply_release(struct device *d, int32_t c)
{
    if (c < 0)
        return -EIO;
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        if (s->kind != SLOT_LARGE)
            continue;
        for (uint32_t p = 0; p < s->n_pages; p++)
            if (s->map[p] == c) {
                int r = page_unmap(d, s, p);
                if (r)
                    return r;
            }
    }
    if (MEM_CALL(cuMemRelease(d->mem.chunks[c].handle)) != CUDA_SUCCESS)
        return -EIO;
    chunk_list_take(d, c);
    d->mem.chunks[c].owner = CHUNK_GONE;
    d->mem.n_gone++;
    share_settle(d);
    return 0;
}
