/* page.c: see page.h. */
#include "policy/memory/page.h"

#include "policy/device.h"
#include "policy/memory/chunk.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/process/check.h"
#include "policy/share/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The device may read and write there. */
static void let_in(struct device *d, CUmemAccessDesc *acc)
{
    memset(acc, 0, sizeof *acc);
    acc->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    acc->location.id = d->dev;
    acc->flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
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

int page_unmap(struct device *d, struct slot *s, uint32_t page)
{
    int r = slot_quiesce(d, s);
    if (r)
        return r;
    if (MEM_CALL(cuMemUnmap(s->va + ((uint64_t)page << d->mem.shift), d->mem.gran)) != CUDA_SUCCESS)
        return -EIO;
    struct chunk *c = &d->mem.chunks[s->map[page]];
    c->at = c->at == s->va + ((uint64_t)page << d->mem.shift) ? 0 : c->at;
    s->map[page] = -1;
    return 0;
}

int page_map(struct device *d, struct slot *s, uint32_t page, int32_t c)
{
    if (s->map[page] == c)
        return 0;
    if (s->host_pages) {
        const int r = page_of_host_unmap(d, s);
        if (r)
            return r;
    }
    if (s->map[page] >= 0) {
        int r = page_unmap(d, s, page);
        if (r)
            return r;
    }
    CUdeviceptr va = s->va + ((uint64_t)page << d->mem.shift);
    CUresult r = MEM_CALL(cuMemMap(va, d->mem.gran, 0, d->mem.chunks[c].handle, 0));
    if (r != CUDA_SUCCESS) {
        log_say(SAY_DEBUG, "chunk %d cannot be mapped at page %u of slot %u: %s", c, page, s->id, device_code_name(d, r));
        return -EIO;
    }
    CUmemAccessDesc acc;
    let_in(d, &acc);
    if (MEM_CALL(cuMemSetAccess(va, d->mem.gran, &acc, 1)) != CUDA_SUCCESS) {
        MEM_CALL(cuMemUnmap(va, d->mem.gran));
        return -EIO;
    }
    s->map[page] = c;
    d->mem.chunks[c].at = va;
    return 0;
}

/* ---- pages of the host ------------------------------------------------------------------------------------------------ */

/* The first n pages; nobody uses them. */
static void host_pages_go(struct device *d, struct slot *s, uint32_t n)
{
    for (uint32_t p = 0; p < n; p++) {
        MEM_CALL(cuMemUnmap(s->va + ((uint64_t)p << d->mem.shift), d->mem.gran));
        MEM_CALL(cuMemRelease(s->host_pages[p]));
    }
    free(s->host_pages);
    s->host_pages = NULL;
    pinned_count(d, -((int64_t)s->n_pages << d->mem.shift));
}

int page_of_host_unmap(struct device *d, struct slot *s)
{
    if (!s->host_pages)
        return 0;
    if (!rt_check(d, !s->lodged))
        return -EIO;
    const int r = slot_quiesce(d, s);
    if (!r)
        host_pages_go(d, s, s->n_pages);
    return r;
}

int page_of_host_map(struct device *d, struct slot *s)
{
    CUmemAllocationProp prop;
    CUmemAccessDesc acc;
    int node = 0;
    uint32_t n = 0;
    for (uint32_t p = 0; p < s->n_pages; p++)
        if (s->map[p] >= 0) {
            const int r = page_unmap(d, s, p);
            if (r)
                return r;
        }
    const uint64_t bytes = (uint64_t)s->n_pages << d->mem.shift;
    if (pinned_room_bytes(d) < bytes || !(s->host_pages = calloc(s->n_pages, sizeof *s->host_pages)))
        return -ENOMEM;
    pinned_count(d, (int64_t)bytes);
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (d->drv->cuDeviceGetAttribute && d->drv->cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, d->dev) == CUDA_SUCCESS && node > 0)
        prop.location.id = node;
    CUresult r = CUDA_SUCCESS;
    while (n < s->n_pages && (r = MEM_CALL(cuMemCreate(&s->host_pages[n], d->mem.gran, &prop, 0))) == CUDA_SUCCESS &&
           (r = MEM_CALL(cuMemMap(s->va + ((uint64_t)n << d->mem.shift), d->mem.gran, 0, s->host_pages[n], 0))) == CUDA_SUCCESS)
        n++;
    if (n < s->n_pages && s->host_pages[n])
        MEM_CALL(cuMemRelease(s->host_pages[n]));
    let_in(d, &acc);
    if (n == s->n_pages && (r = MEM_CALL(cuMemSetAccess(s->va, bytes, &acc, 1))) == CUDA_SUCCESS)
        return 0;
    log_once(SAY_DEBUG, "memory of the host cannot be mapped on the device: %s", device_code_name(d, (int)r));
    host_pages_go(d, s, n);
    return -ENOMEM;
}

/* ---- pages of our own ------------------------------------------------------------------------------------------------- */

int page_of_own(struct device *d, CUmemGenericAllocationHandle *out)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = d->dev;
    if (device_physical_bytes(d) + d->mem.gran > d->mem.limit_bytes || share_cover(d, d->mem.gran))
        return -ENOMEM;
    if (MEM_CALL(cuMemCreate(out, d->mem.gran, &prop, 0)) != CUDA_SUCCESS) {
        share_settle(d);
        return -ENOMEM;
    }
    d->mem.own_bytes += d->mem.gran;
    memory_note_peak(d);
    return 0;
}

void page_of_own_gone(struct device *d, CUmemGenericAllocationHandle h)
{
    MEM_CALL(cuMemRelease(h));
    d->mem.own_bytes -= d->mem.gran;
    share_settle(d);
}

void page_of_own_unmap(struct device *d, CUdeviceptr va, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        MEM_CALL(cuMemUnmap(va + (i << d->mem.shift), d->mem.gran));
}

int page_of_own_map(struct device *d, CUdeviceptr va, uint64_t n, CUmemGenericAllocationHandle h)
{
    CUmemAccessDesc acc;
    let_in(d, &acc);
    uint64_t mapped = 0;
    while (mapped < n && MEM_CALL(cuMemMap(va + (mapped << d->mem.shift), d->mem.gran, 0, h, 0)) == CUDA_SUCCESS)
        mapped++;
    if (mapped == n && MEM_CALL(cuMemSetAccess(va, n << d->mem.shift, &acc, 1)) == CUDA_SUCCESS)
        return 0;
    page_of_own_unmap(d, va, mapped);
    return -ENOMEM;
}
