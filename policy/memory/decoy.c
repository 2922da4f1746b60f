/* decoy.c: addresses with one page behind them all, of which decoys are made. */
#include "policy/memory/decoy.h"

#include "policy/device.h"
#include "policy/memory/page.h"

#include <errno.h>
#include <stdlib.h>

static const uint64_t HALF = 1ull << 32;

static bool is_mapped(const struct decoy *y, uint64_t page) { return y->mapped[page / 64] >> page % 64 & 1; }

/* The end of the run of pages from `page` on, up to `end`, that are all mapped or all unmapped. */
static uint64_t run_end(const struct decoy *y, uint64_t page, uint64_t end)
{
    const bool mapped = is_mapped(y, page);
    while (page < end && is_mapped(y, page) == mapped)
        page++;
    return page;
}

void decoy_end(struct device *d)
{
    struct decoy *y = d->mem.decoy;
    if (!y || !y->reserved)
        return;
    for (uint64_t page = 0, end; page < y->pages; page = end) {
        end = run_end(y, page, y->pages);
        if (is_mapped(y, page))
            page_of_own_unmap(d, y->va + (page << d->mem.shift), end - page);
    }
    free(y->mapped);
    y->mapped = NULL;
    d->drv->cuMemAddressFree(y->reserved, y->reserved_bytes);
    y->reserved = y->latest = 0;
    d->mem.own[OWN_DECOY] = (struct own_range){0};
}

void decoy_context_gone(struct device *d)
{
    decoy_end(d);
    if (d->mem.decoy && d->mem.decoy->made)
        page_of_own_gone(d, d->mem.decoy->page);
    free(d->mem.decoy);
    d->mem.decoy = NULL;
}

bool decoy_has_page(const struct device *d) { return d->mem.decoy && d->mem.decoy->made; }

int decoy_page(struct device *d)
{
    struct decoy *y = d->mem.decoy;
    if (!y && !(y = d->mem.decoy = calloc(1, sizeof *y)))
        return -ENOMEM;
    y->made = y->made || !page_of_own(d, &y->page);
    return y->made ? 0 : -ENOMEM;
}

bool decoy_give(struct device *d)
{
    struct decoy *y = d->mem.decoy;
    if (!y || !y->made || d->trying)
        return false;
    decoy_end(d);
    page_of_own_gone(d, y->page);
    y->made = false;
    return true;
}

/* Reserves addresses for decoys: every lower half and, behind them, as many as the device has bytes, or fewer where the driver has fewer. */
static int decoy_addresses(struct device *d)
{
    struct decoy *y = d->mem.decoy;
    CUresult e = CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t after = (d->mem.device_bytes + d->mem.gran - 1) & ~(d->mem.gran - 1);
    for (; after >= d->mem.gran && e != CUDA_SUCCESS; after = after / 2 & ~(d->mem.gran - 1)) {
        y->reserved_bytes = 2 * HALF + after; /* the first multiple of HALF lies anywhere in the first HALF bytes reserved */
        y->pages = (HALF + after) >> d->mem.shift;
        e = d->drv->cuMemAddressReserve(&y->reserved, y->reserved_bytes, d->mem.gran, 0, 0);
    }
    if (e != CUDA_SUCCESS) {
        log_say(SAY_DEBUG, "no addresses for decoys: %s", device_code_name(d, (int)e));
        y->reserved = 0;
        return -ENOMEM;
    }
    y->va = (y->reserved + HALF - 1) & ~(HALF - 1);
    y->mapped = calloc(y->pages / 64 + 1, sizeof *y->mapped);
    if (!y->mapped) {
        d->drv->cuMemAddressFree(y->reserved, y->reserved_bytes);
        y->reserved = 0;
        return -ENOMEM;
    }
    d->mem.own[OWN_DECOY] = (struct own_range){y->reserved, y->reserved_bytes};
    return 0;
}

static int map_run(struct device *d, uint64_t from, uint64_t to)
{
    struct decoy *y = d->mem.decoy;
    if (page_of_own_map(d, y->va + (from << d->mem.shift), to - from, y->page))
        return -ENOMEM;
    for (uint64_t page = from; page < to; page++)
        y->mapped[page / 64] |= 1ull << page % 64;
    return 0;
}

int decoy_zero(struct device *d, CUdeviceptr at)
{
    at &= ~(d->mem.gran - 1);
    return d->drv->cuMemsetD8Async(at, 0, d->mem.gran, d->stream[STREAM_IN]) == CUDA_SUCCESS ? 0 : -EIO;
}

CUdeviceptr decoy_of(struct device *d, CUdeviceptr at, uint64_t bytes)
{
    if (!decoy_has_page(d) || (!d->mem.decoy->reserved && decoy_addresses(d)))
        return 0;
    struct decoy *y = d->mem.decoy;
    const uint64_t low = at % HALF, end = ((low + bytes) >> d->mem.shift) + 1; /* the address one past the buffer's end is the buffer's too */
    if (bytes > y->pages << d->mem.shift || end > y->pages)
        return 0;
    for (uint64_t page = low >> d->mem.shift, next; page < end; page = next) {
        next = run_end(y, page, end);
        if (!is_mapped(y, page) && map_run(d, page, next))
            return 0;
    }
    y->latest = (y->va + low) & ~(d->mem.gran - 1);
    return y->va + low;
}
