/* engine_pools.c: see engine_pools.h. */
#include "policy/engine_pools.h"

#include "policy/memory/slot.h"
#include "tracer/grow.h"

#include <stdlib.h>

struct pool *pool_of(CUmemoryPool handle)
{
    for (uint32_t i = 0; i < process.n_pools; i++)
        if (process.pools[i].handle == handle)
            return &process.pools[i];
    if (!grow_room(&process.pools, process.n_pools, &process.cap_pools, 8))
        return NULL;
    process.pools[process.n_pools] = (struct pool){.handle = handle};
    return &process.pools[process.n_pools++];
}

void pool_gone(CUmemoryPool handle)
{
    for (uint32_t i = 0; i < process.n_pools; i++)
        if (process.pools[i].handle == handle) {
            process.pools[i] = process.pools[--process.n_pools];
            return;
        }
}

int pool_refused_drv(CUmemoryPool handle)
{
    uint64_t threshold;
    for (uint32_t i = 0; i < process.n_pools && handle; i++)
        if (process.pools[i].handle == handle)
            return CUDA_SUCCESS;
    return process.drv->cuMemPoolGetAttribute ? (int)process.drv->cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold)
                                              : CUDA_SUCCESS;
}

bool pool_has_room(CUmemoryPool handle, uint64_t bytes)
{
    const struct pool *p = handle ? pool_of(handle) : NULL;
    return !p || !p->most_bytes || (bytes <= p->most_bytes && p->used_bytes <= p->most_bytes - bytes);
}

void pool_take(CUmemoryPool handle, uint64_t bytes)
{
    struct pool *p = pool_of(handle);
    if (!p)
        return;
    p->used_bytes += bytes;
    for (int i = 0; i < 2; i++)
        p->high_bytes[i] = p->used_bytes > p->high_bytes[i] ? p->used_bytes : p->high_bytes[i];
}

void pool_give(CUmemoryPool handle, uint64_t bytes)
{
    struct pool *p = pool_of(handle);
    if (p)
        p->used_bytes -= bytes < p->used_bytes ? bytes : p->used_bytes;
}

void pool_device_ends(struct device *d)
{
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        if (d->mem.slots[i].live && d->mem.slots[i].kind != SLOT_FOREIGN)
            pool_give(d->mem.slots[i].pool, d->mem.slots[i].bytes);
}
