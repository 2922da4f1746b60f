/* Address space: one reservation for everything that is managed, made once; and the tables that speak of it. */
#include "policy/memory/mem_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
    d->mem->longest = table(2ull * MAX_ARENAS * sizeof *d->mem->longest);
    d->mem->free_slots = malloc(MAX_LIST_PAGES * sizeof *d->mem->free_slots);
    if (!d->page_slot || !d->slots || !d->chunks || !d->mem->arenas || !d->mem->longest || !d->mem->free_slots)
        return -ENOMEM;
    for (int i = 0; i < MAX_LIST_PAGES; i++)
        d->mem->free_slots[i] = -1;
    d->free_head = d->free_tail = -1;
    d->mark = 1;
    return 0;
}
