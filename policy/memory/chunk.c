/* Physical memory: chunks of one granule each, made while the limit allows it, free or owned by a page of a slot; pages of our own. */
#include "policy/memory/aside.h"
#include "policy/memory/mem_own.h"
#include "policy/process/check.h"
#include "policy/share/share.h"

#include <errno.h>
#include <string.h>

void chunk_list_add(struct device *d, int32_t c)
{
    struct chunk *k = &d->chunks[c];
    if (!rt_check(d, k->owner != CHUNK_FREE))
        return; /* twice in the list */
    k->owner = CHUNK_FREE;
    k->next = -1;
    k->prev = d->free_tail;
    if (d->free_tail >= 0)
        d->chunks[d->free_tail].next = c;
    else
        d->free_head = c;
    d->free_tail = c;
    d->n_free_chunks++;
}

void chunk_list_take(struct device *d, int32_t c)
{
    struct chunk *k = &d->chunks[c];
    if (!rt_check(d, k->owner == CHUNK_FREE))
        return;
    if (k->prev >= 0)
        d->chunks[k->prev].next = k->next;
    else
        d->free_head = k->next;
    if (k->next >= 0)
        d->chunks[k->next].prev = k->prev;
    else
        d->free_tail = k->prev;
    d->n_free_chunks--;
}

void chunk_list_add_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner, const struct fence *ready)
{
    for (uint32_t i = 0; i < n; i++)
        if (!rt_check(d, chunk_is_of(d, row[i], owner, i)))
            return; /* whose it is would lose it: the others are nobody's from now on */
    for (uint32_t i = 0; i < n; i++) {
        struct chunk *k = &d->chunks[row[i]];
        k->ready = *ready;
        k->owner = CHUNK_FREE;
        k->prev = i ? row[i - 1] : d->free_tail;
        k->next = i + 1 < n ? row[i + 1] : -1;
    }
    if (!n)
        return;
    if (d->free_tail >= 0)
        d->chunks[d->free_tail].next = row[0];
    else
        d->free_head = row[0];
    d->free_tail = row[n - 1];
    d->n_free_chunks += n;
}

bool chunk_list_take_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner)
{
    if (!n || row[0] < 0 || d->chunks[row[0]].owner != CHUNK_FREE)
        return false;
    for (uint32_t i = 1; i < n; i++)
        if (row[i] < 0 || d->chunks[row[i - 1]].next != row[i] || !rt_check(d, d->chunks[row[i]].owner == CHUNK_FREE))
            return false;
    const int32_t before = d->chunks[row[0]].prev, after = d->chunks[row[n - 1]].next;
    if (before >= 0)
        d->chunks[before].next = after;
    else
        d->free_head = after;
    if (after >= 0)
        d->chunks[after].prev = before;
    else
        d->free_tail = before;
    d->n_free_chunks -= n;
    for (uint32_t i = 0; i < n; i++) {
        d->chunks[row[i]].owner = (int32_t)owner;
        d->chunks[row[i]].page = i;
    }
    return true;
}

int32_t chunk_list_first(struct device *d)
{
    return d->free_head >= 0 && rt_check(d, d->chunks[d->free_head].owner == CHUNK_FREE) ? d->free_head : -1;
}

int32_t mem_chunk_borrow(struct device *d)
{
    int32_t c = d->free_head;
    while (c >= 0 && !d->chunks[c].at)
        c = d->chunks[c].next;
    if (c >= 0 && !rt_check(d, d->chunks[c].owner == CHUNK_FREE))
        return -1;
    if (c >= 0) {
        chunk_list_take(d, c);
        d->chunks[c].owner = CHUNK_LENT;
    }
    return c;
}

void mem_chunk_returned(struct device *d, int32_t c) { chunk_list_add(d, c); }

void mem_note_peak(struct device *d)
{
    uint64_t now = device_physical_bytes(d);
    if (now > d->st.peak_physical_bytes)
        d->st.peak_physical_bytes = now;
    if (d->live_bytes + d->foreign_bytes > d->st.native_peak_bytes)
        d->st.native_peak_bytes = d->live_bytes + d->foreign_bytes;
    if (d->status) {
        status_store(&d->status->in_use_bytes, now);
        status_store(&d->status->peak_bytes, d->st.peak_physical_bytes);
    }
}

uint64_t mem_max_chunks(struct device *d)
{
    uint64_t others = d->foreign_bytes + d->own_bytes;
    return d->plan_limit_bytes > others ? (d->plan_limit_bytes - others) >> d->shift : 0;
}

/* So much more passes the limit, also if streams have come to frees by now, or the driver holds less for graphs than when it was asked last. */
static bool too_much(struct device *d, uint64_t bytes)
{
    if (device_physical_bytes(d) + bytes > d->limit_bytes)
        foreign_look(d);
    if (d->graph_bytes && device_physical_bytes(d) + bytes > d->limit_bytes)
        foreign_graphs(d);
    return device_physical_bytes(d) + bytes > d->limit_bytes;
}

static int32_t chunk_make(struct device *d)
{
    if (too_much(d, d->gran))
        return -1;
    int32_t c = -1;
    if (d->n_gone)
        for (uint32_t i = 0; i < d->n_chunks && c < 0; i++)
            if (d->chunks[i].owner == CHUNK_GONE)
                c = (int32_t)i;
    if (c < 0 && d->n_chunks == MAX_CHUNKS)
        return -1;
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = d->dev;
    CUmemGenericAllocationHandle h;
    if (share_cover(d, d->gran))
        return -1;
    if (MEM_CALL(cuMemCreate(&h, d->gran, &prop, 0)) != CUDA_SUCCESS) {
        share_settle(d);
        return -1;
    }
    if (c < 0)
        c = (int32_t)d->n_chunks++;
    else
        d->n_gone--;
    d->chunks[c].handle = h;
    d->chunks[c].ready = (struct fence){0};
    d->chunks[c].at = 0;
    chunk_list_add(d, c);
    rt_check(d, ((uint64_t)(d->n_chunks - d->n_gone) << d->shift) + d->foreign_bytes <= d->limit_bytes);
    mem_note_peak(d);
    return c;
}

int32_t mem_chunk_new(struct device *d)
{
    int32_t c;
    while ((c = chunk_make(d)) < 0 && aside_give(d))
        ;
    return c;
}

int mem_map_page(struct device *d, struct slot *s, uint32_t page, int32_t c)
{
    if (s->map[page] == c)
        return 0;
    if (s->map[page] >= 0) {
        int r = slot_unmap_page(d, s, page);
        if (r)
            return r;
    }
    CUdeviceptr va = s->va + ((uint64_t)page << d->shift);
    CUresult r = MEM_CALL(cuMemMap(va, d->gran, 0, d->chunks[c].handle, 0));
    if (r != CUDA_SUCCESS) {
        log_say(SAY_DEBUG, "chunk %d cannot be mapped at page %u of slot %u: %s", c, page, s->id, rt_code_name(d, r));
        return -EIO;
    }
    CUmemAccessDesc acc;
    memset(&acc, 0, sizeof acc);
    acc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    acc.location.id = d->dev;
    acc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (MEM_CALL(cuMemSetAccess(va, d->gran, &acc, 1)) != CUDA_SUCCESS) {
        MEM_CALL(cuMemUnmap(va, d->gran));
        return -EIO;
    }
    s->map[page] = c;
    d->chunks[c].at = va;
    return 0;
}

/* A free chunk goes back to the driver. */
static int chunk_release(struct device *d, int32_t c)
{
    if (c < 0)
        return -EIO;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct slot *s = &d->slots[i];
        if (s->kind != SLOT_LARGE)
            continue;
        for (uint32_t p = 0; p < s->n_pages; p++)
            if (s->map[p] == c) {
                int r = slot_unmap_page(d, s, p);
                if (r)
                    return r;
            }
    }
    if (MEM_CALL(cuMemRelease(d->chunks[c].handle)) != CUDA_SUCCESS)
        return -EIO;
    chunk_list_take(d, c);
    d->chunks[c].owner = CHUNK_GONE;
    d->n_gone++;
    share_settle(d);
    return 0;
}

uint64_t mem_give_driver(struct device *d, uint64_t bytes)
{
    uint64_t before = device_physical_bytes(d), target = before > bytes ? before - bytes : 0;
    while (device_physical_bytes(d) > target) {
        if (aside_give(d))
            continue;
        if (!d->n_free_chunks)
            swap_evict_for(d, 1);
        if (!d->n_free_chunks || chunk_release(d, chunk_list_first(d)))
            break;
    }
    return before - device_physical_bytes(d);
}

void mem_give_free(struct device *d)
{
    mem_arena_trim(d);
    while (aside_give(d))
        ;
    while (d->n_free_chunks && !chunk_release(d, chunk_list_first(d)))
        ;
}

uint64_t mem_give(struct device *d, uint64_t bytes)
{
    uint64_t before = device_physical_bytes(d);
    d->mark++;
    mem_arena_trim(d);
    uint64_t given = before - device_physical_bytes(d);
    if (given < bytes)
        mem_give_driver(d, bytes - given);
    return before - device_physical_bytes(d);
}

int mem_make_foreign_room(struct device *d, uint64_t bytes)
{
    if (bytes > d->limit_bytes)
        return -ENOMEM;
    if (d->capturing) /* nothing can be waited for, so nothing moves; what was free has gone back already */
        return too_much(d, bytes) || share_cover(d, bytes) ? -ENOMEM : 0;
    while (too_much(d, bytes) || share_cover(d, bytes)) {
        if (aside_give(d))
            continue;
        if (!d->n_free_chunks)
            swap_evict_for(d, 1);
        if (!d->n_free_chunks && device_physical_bytes(d) + bytes <= d->limit_bytes)
            return share_wait(d, bytes);
        if (!d->n_free_chunks)
            return -ENOMEM;
        int r = chunk_release(d, chunk_list_first(d));
        if (r)
            return r;
    }
    return 0;
}

int mem_page_of_own(struct device *d, CUmemGenericAllocationHandle *out)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = d->dev;
    if (device_physical_bytes(d) + d->gran > d->limit_bytes || share_cover(d, d->gran))
        return -ENOMEM;
    if (MEM_CALL(cuMemCreate(out, d->gran, &prop, 0)) != CUDA_SUCCESS) {
        share_settle(d);
        return -ENOMEM;
    }
    d->own_bytes += d->gran;
    mem_note_peak(d);
    return 0;
}

void mem_page_gone(struct device *d, CUmemGenericAllocationHandle h)
{
    MEM_CALL(cuMemRelease(h));
    d->own_bytes -= d->gran;
    share_settle(d);
}

int mem_page_map(struct device *d, CUdeviceptr va, uint64_t n, CUmemGenericAllocationHandle h)
{
    CUmemAccessDesc acc;
    memset(&acc, 0, sizeof acc);
    acc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    acc.location.id = d->dev;
    acc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    uint64_t mapped = 0;
    while (mapped < n && MEM_CALL(cuMemMap(va + (mapped << d->shift), d->gran, 0, h, 0)) == CUDA_SUCCESS)
        mapped++;
    if (mapped == n && MEM_CALL(cuMemSetAccess(va, n << d->shift, &acc, 1)) == CUDA_SUCCESS)
        return 0;
    mem_page_unmap(d, va, mapped);
    return -ENOMEM;
}

void mem_page_unmap(struct device *d, CUdeviceptr va, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        MEM_CALL(cuMemUnmap(va + (i << d->shift), d->gran));
}
