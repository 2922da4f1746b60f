/* memory.c: see memory.h. */
#include "policy/memory/memory.h"

#include "policy/device.h"
#include "policy/memory/arena.h"
#include "policy/memory/chunk.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *table(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

int memory_init(struct device *d)
{
    d->mem.small_structs = d->mem.large_structs = d->mem.foreign_structs = -1;
    CUmemAllocationProp prop;
    size_t gran = 0;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = d->dev;
    if (d->drv->cuMemGetAllocationGranularity(&gran, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS ||
        !gran || (gran & (gran - 1)))
        return -ENOTSUP;
    d->mem.gran = gran;
    d->mem.shift = (unsigned)__builtin_ctzll(gran);
    /* A reservation takes address space, not memory: room for 64 times the device's memory, less where the driver has less. */
    uint64_t want = 1ull << 36;
    while (want < d->mem.device_bytes * 64)
        want <<= 1;
    for (d->mem.base = 0; want >= d->mem.device_bytes * 2 && !d->mem.base; want >>= 1) {
        CUdeviceptr p = 0, rest = 0;
        if (d->drv->cuMemAddressReserve(&p, want, gran, 0, 0) != CUDA_SUCCESS)
            continue;
        /* The program and learning need addresses too: half as much again must be left for them. */
        bool least = want / 2 < d->mem.device_bytes * 2;
        if (!least && d->drv->cuMemAddressReserve(&rest, want / 2, gran, 0, 0) != CUDA_SUCCESS) {
            d->drv->cuMemAddressFree(p, want);
            continue;
        }
        if (rest)
            d->drv->cuMemAddressFree(rest, want / 2);
        d->mem.base = p;
        d->mem.reserve_bytes = want;
    }
    if (!d->mem.base)
        return -ENOMEM;
    d->mem.n_va_pages = d->mem.reserve_bytes >> d->mem.shift;
    d->mem.page_slot = table(d->mem.n_va_pages * sizeof *d->mem.page_slot);
    d->mem.slots = table((size_t)MAX_SLOTS * sizeof *d->mem.slots);
    d->mem.chunks = table((size_t)MAX_CHUNKS * sizeof *d->mem.chunks);
    d->mem.arenas = table((size_t)MAX_ARENAS * sizeof *d->mem.arenas);
    d->mem.longest = table(2ull * MAX_ARENAS * sizeof *d->mem.longest);
    d->mem.free_slots = malloc(MAX_LIST_PAGES * sizeof *d->mem.free_slots);
    if (!d->mem.page_slot || !d->mem.slots || !d->mem.chunks || !d->mem.arenas || !d->mem.longest || !d->mem.free_slots)
        return -ENOMEM;
    for (int i = 0; i < MAX_LIST_PAGES; i++)
        d->mem.free_slots[i] = -1;
    d->mem.longest_root = MAX_ARENAS;
    d->mem.free_head = d->mem.free_tail = -1;
    d->mem.op_at_hand = d->mem.walk = 1;
    return 0;
}

/* Mappings are removed first: the driver frees a chunk's memory once it is mapped nowhere. */
uint64_t memory_end(struct device *d)
{
    uint64_t kept = 0;
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        for (uint32_t p = 0; s->kind == SLOT_LARGE && s->map && p < s->n_pages; p++)
            if (s->map[p] >= 0)
                kept += MEM_CALL(cuMemUnmap(s->va + ((uint64_t)p << d->mem.shift), d->mem.gran)) != CUDA_SUCCESS;
        for (uint32_t p = 0; s->host_pages && p < s->n_pages; p++) {
            kept += MEM_CALL(cuMemUnmap(s->va + ((uint64_t)p << d->mem.shift), d->mem.gran)) != CUDA_SUCCESS;
            kept += MEM_CALL(cuMemRelease(s->host_pages[p])) != CUDA_SUCCESS;
        }
        if (s->host_pages)
            pinned_count(d, -((int64_t)s->n_pages << d->mem.shift));
        free(s->host_pages);
        if (s->kind == SLOT_LARGE)
            free(s->map);
    }
    for (uint32_t i = 0; i < d->mem.n_arenas; i++) {
        struct arena *a = &d->mem.arenas[i];
        if (a->chunk >= 0)
            kept += MEM_CALL(cuMemUnmap(a->va, d->mem.gran)) != CUDA_SUCCESS;
        free(a->unit_slot);
        free(a->runs);
    }
    for (uint32_t c = 0; c < d->mem.n_chunks; c++)
        if (d->mem.chunks[c].owner != CHUNK_GONE)
            kept += MEM_CALL(cuMemRelease(d->mem.chunks[c].handle)) != CUDA_SUCCESS;
    d->drv->cuMemAddressFree(d->mem.base, d->mem.reserve_bytes);
    munmap(d->mem.page_slot, d->mem.n_va_pages * sizeof *d->mem.page_slot);
    munmap(d->mem.slots, (size_t)MAX_SLOTS * sizeof *d->mem.slots);
    munmap(d->mem.chunks, (size_t)MAX_CHUNKS * sizeof *d->mem.chunks);
    munmap(d->mem.arenas, (size_t)MAX_ARENAS * sizeof *d->mem.arenas);
    munmap(d->mem.longest, 2ull * MAX_ARENAS * sizeof *d->mem.longest);
    free(d->mem.free_slots);
    free(d->mem.gaps);
    d->mem.page_slot = NULL;
    d->mem.slots = NULL;
    d->mem.chunks = NULL;
    d->mem.base = 0;
    d->mem.reserve_bytes = 0;
    d->mem.n_slots = d->mem.n_chunks = d->mem.n_gone = d->mem.n_free_chunks = 0;
    return kept * d->mem.gran;
}

void memory_note_peak(struct device *d)
{
    uint64_t now = device_physical_bytes(d);
    if (now > d->st.peak_physical_bytes)
        d->st.peak_physical_bytes = now;
    if (d->mem.live_bytes + d->mem.foreign_bytes > d->st.native_peak_bytes)
        d->st.native_peak_bytes = d->mem.live_bytes + d->mem.foreign_bytes;
    if (d->status) {
        status_store(&d->status->in_use_bytes, now);
        status_store(&d->status->peak_bytes, d->st.peak_physical_bytes);
    }
}
