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

/* Fills `acc`: the device may read and write. */
static void let_in(struct device *d, CUmemAccessDesc *acc)
{
    memset(acc, 0, sizeof *acc);
    acc->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    acc->location.id = d->dev;
    acc->flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/* The host waits for all that has used the slot's address. */
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

static CUdeviceptr page_at(const struct device *d, const struct slot *s, uint32_t page) { return s->va + ((uint64_t)page << d->mem.shift); }

/* Unmaps pages from .. to - 1, all of them mapped, by one call; where the driver refuses that call, page by page. */
static int unmap_run(struct device *d, struct slot *s, uint32_t from, uint32_t to)
{
    const int r = slot_quiesce(d, s);
    if (r)
        return r;
    const bool gone = to - from > 1 && MEM_CALL(cuMemUnmap(page_at(d, s, from), (uint64_t)(to - from) << d->mem.shift)) == CUDA_SUCCESS;
    for (uint32_t p = from; p < to; p++) {
        struct chunk *c = &d->mem.chunks[s->map[p]];
        if (!gone && MEM_CALL(cuMemUnmap(page_at(d, s, p), d->mem.gran)) != CUDA_SUCCESS)
            return -EIO;
        c->at = c->at == page_at(d, s, p) ? 0 : c->at;
        s->map[p] = -1;
    }
    return 0;
}

int page_unmap(struct device *d, struct slot *s, uint32_t page) { return unmap_run(d, s, page, page + 1); }

/* True where the page's chunk is to be replaced by to[page] (to NULL: unmapped). A chunk that is gone has the handle of other memory, or of none: the page is left as it is. */
static bool moves(const struct device *d, const struct slot *s, const int32_t *to, uint32_t page)
{
    return to ? to[page] >= 0 && to[page] != s->map[page] && d->mem.chunks[to[page]].owner != CHUNK_GONE : s->map[page] >= 0;
}

static int unmap_row(struct device *d, struct slot *s, const int32_t *to)
{
    int r = 0;
    for (uint32_t p = 0, end; p < s->n_pages && !r; p = end) {
        for (end = p; end < s->n_pages && s->map[end] >= 0 && moves(d, s, to, end);)
            end++;
        r = end > p ? unmap_run(d, s, p, end) : 0;
        end += end == p;
    }
    return r;
}

int page_unmap_row(struct device *d, struct slot *s) { return s->host_pages ? page_of_host_unmap(d, s) : unmap_row(d, s, NULL); }

/* Maps chunks to[p] at pages from .. end - 1, none of which is mapped. */
static int map_run(struct device *d, struct slot *s, const int32_t *to, uint32_t from, uint32_t end)
{
    CUmemAccessDesc acc;
    CUresult r = CUDA_SUCCESS;
    uint32_t p = from;
    while (p < end && (r = MEM_CALL(cuMemMap(page_at(d, s, p), d->mem.gran, 0, d->mem.chunks[to[p]].handle, 0))) == CUDA_SUCCESS)
        p++;
    if (p < end)
        log_say(SAY_DEBUG, "chunk %d cannot be mapped at page %u of slot %u: %s", to[p], p, s->id, device_code_name(d, (int)r));
    let_in(d, &acc);
    if (r == CUDA_SUCCESS && (end - from == 1 || MEM_CALL(cuMemSetAccess(page_at(d, s, from), (uint64_t)(end - from) << d->mem.shift, &acc, 1)) != CUDA_SUCCESS))
        for (uint32_t k = from; k < end && r == CUDA_SUCCESS; k++) /* page by page, where the driver refuses one call for all */
            r = MEM_CALL(cuMemSetAccess(page_at(d, s, k), d->mem.gran, &acc, 1));
    if (r != CUDA_SUCCESS) {
        while (p > from)
            MEM_CALL(cuMemUnmap(page_at(d, s, --p), d->mem.gran));
        return -EIO;
    }
    for (p = from; p < end; p++) {
        s->map[p] = to[p];
        d->mem.chunks[to[p]].at = page_at(d, s, p);
    }
    return 0;
}

int page_map_row(struct device *d, struct slot *s, const int32_t *to)
{
    int r = page_of_host_unmap(d, s);
    if (!r)
        r = unmap_row(d, s, to);
    for (uint32_t p = 0, end; p < s->n_pages && !r; p = end) {
        for (end = p; end < s->n_pages && moves(d, s, to, end);)
            end++;
        r = end > p ? map_run(d, s, to, p, end) : 0;
        end += end == p;
    }
    return r;
}

/* ---- pages of the host ------------------------------------------------------------------------------------------------ */

/* Unmaps and frees the first n host pages, which are out of use, and gives up the slot's whole count of pinned memory. */
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
    const int e = unmap_row(d, s, NULL);
    if (e)
        return e;
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

/* ---- physical pages --------------------------------------------------------------------------------------------------- */

int page_physical(struct device *d, CUmemGenericAllocationHandle *out)
{
    CUmemAllocationProp prop;
    const uint64_t had = device_physical_bytes(d);
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = d->dev;
    if (share_cover(d, d->mem.gran))
        return -ENOMEM;
    const CUresult r = MEM_CALL(cuMemCreate(out, d->mem.gran, &prop, 0));
    if (r == CUDA_SUCCESS) {
        if (had >= d->mem.refused_at_bytes)
            d->mem.refused_at_bytes = 0;
        return 0;
    }
    share_settle(d);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        d->mem.refused_at_bytes = had;
        log_once(SAY_WARN, "the driver gives %s of the limit of %s and no more: something else holds the rest of the device (nvidia-smi); what there is has to do",
                 rt_size(had).text, rt_size(d->mem.limit_bytes).text);
    }
    return -ENOMEM;
}

/* ---- remat's own pages ------------------------------------------------------------------------------------------------ */

int page_of_own(struct device *d, CUmemGenericAllocationHandle *out)
{
    if (device_physical_bytes(d) + d->mem.gran > d->mem.limit_bytes || page_physical(d, out))
        return -ENOMEM;
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
