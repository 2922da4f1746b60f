/* pinned.c: see pinned.h. */
#include "policy/memory/pinned.h"

#include "policy/device.h"
#include "policy/memory/host.h"
#include "policy/memory/ranges.h"

#include <errno.h>
#include <stdlib.h>

struct pinned {
    struct host_block *cached; /* blocks that hold nothing, any size */
    struct host_block *all;    /* every block, through next_all */
    struct ranges ranges;      /* addresses of every block */
};

/* Pinned host memory is one thing for all devices of the process. */
static struct {
    uint64_t bytes;
    uint64_t told; /* bytes taken since the machine was asked */
} all_devices;

/* Asks anew how much may be pinned in all, whenever a 32nd of that has been taken: other processes take memory too. */
static void look_again(struct device *d)
{
    enum { PARTS = 32 };
    if (d->mem.host_limit_bytes && all_devices.told * PARTS < d->mem.host_limit_bytes)
        return;
    all_devices.told = 0;
    d->mem.host_limit_bytes = host_cap_of(host_free_bytes(""), all_devices.bytes, host_others_bytes(), d->cfg->host_swap_bytes);
}

void pinned_count(struct device *d, int64_t bytes)
{
    d->mem.host_bytes += (uint64_t)bytes;
    d->st.host_peak_bytes = d->mem.host_bytes > d->st.host_peak_bytes ? d->mem.host_bytes : d->st.host_peak_bytes;
    all_devices.bytes += (uint64_t)bytes;
    all_devices.told += bytes > 0 ? (uint64_t)bytes : 0;
    if (d->status)
        status_store(&d->status->swapped_bytes, d->mem.host_bytes);
}

int pinned_init(struct device *d)
{
    d->mem.pinned = calloc(1, sizeof *d->mem.pinned);
    if (!d->mem.pinned)
        return -ENOMEM;
    look_again(d);
    return 0;
}

void pinned_end(struct device *d)
{
    for (struct host_block *b = d->mem.pinned->all, *next; b; b = next) {
        next = b->next_all;
        pinned_count(d, -(int64_t)b->bytes);
        free(b);
    }
    d->mem.pinned->all = d->mem.pinned->cached = NULL;
    ranges_free(&d->mem.pinned->ranges);
}

int pinned_wait(struct device *d, struct host_block *b)
{
    int r = fence_sync(d, &b->busy);
    if (!r)
        b->busy = (struct fence){0};
    return r;
}

static void forget(struct device *d, const struct host_block *b)
{
    ranges_remove(&d->mem.pinned->ranges, (uintptr_t)b->p);
    for (struct host_block **at = &d->mem.pinned->all; *at; at = &(*at)->next_all)
        if (*at == b) {
            *at = b->next_all;
            return;
        }
}

bool pinned_is_ours(const struct device *d, CUdeviceptr p) { return ranges_hold(&d->mem.pinned->ranges, p); }

struct host_block *pinned_get(struct device *d, uint64_t bytes)
{
    bytes = mem_pages(d, bytes) << d->mem.shift;
    for (struct host_block **at = &d->mem.pinned->cached; *at; at = &(*at)->next)
        if ((*at)->bytes == bytes) {
            struct host_block *b = *at;
            *at = b->next;
            return b;
        }
    look_again(d);
    while (all_devices.bytes + bytes > d->mem.host_limit_bytes && d->mem.pinned->cached) { /* cached blocks of other sizes make room */
        struct host_block *b = d->mem.pinned->cached;
        if (pinned_wait(d, b) || d->drv->cuMemFreeHost(b->p) != CUDA_SUCCESS)
            return NULL;
        d->mem.pinned->cached = b->next;
        pinned_count(d, -(int64_t)b->bytes);
        forget(d, b);
        free(b);
    }
    if (all_devices.bytes + bytes > d->mem.host_limit_bytes)
        return NULL;
    struct host_block *b = calloc(1, sizeof *b);
    if (!b || d->drv->cuMemHostAlloc(&b->p, bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) {
        free(b);
        return NULL;
    }
    b->bytes = bytes;
    if (ranges_add(&d->mem.pinned->ranges, (uintptr_t)b->p, bytes)) {
        d->drv->cuMemFreeHost(b->p);
        free(b);
        return NULL;
    }
    b->next_all = d->mem.pinned->all;
    d->mem.pinned->all = b;
    pinned_count(d, (int64_t)bytes);
    return b;
}

void pinned_put(struct device *d, struct host_block *b)
{
    if (!b)
        return;
    b->next = d->mem.pinned->cached;
    d->mem.pinned->cached = b;
}

uint64_t pinned_room_bytes(const struct device *d)
{
    return d->mem.host_limit_bytes > all_devices.bytes ? d->mem.host_limit_bytes - all_devices.bytes : 0;
}
