/* Memory of the program's own: counted against the limit, looked up by address, never evicted. */
#include "policy/memory/foreign.h"

#include "policy/call.h"
#include "policy/device.h"
#include "policy/memory/pooled.h"
#include "policy/memory/slot.h"
#include "policy/share/share.h"
#include "tracer/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct foreign_row {
    uint64_t key;
    struct foreign_block block;
    struct slot *slot; /* NULL: not addressable through the key */
    UT_hash_handle hh;
};
struct leaving {
    struct fence freed;
    struct foreign_block block;
};
struct foreign {
    struct foreign_row *rows;
    struct leaving *leaving; /* blocks freed in streams that have not come to the free, in the order of the calls */
    uint32_t n_leaving, cap_leaving;
    struct slot **ranges; /* slots of addressable blocks, by address */
    uint32_t n_ranges, cap_ranges;
    CUdeviceptr low, high;
};

int foreign_init(struct device *d)
{
    if (d->mem.foreign) /* kept from the device's last context: blocks of cuMemCreate have outlived it */
        return 0;
    d->mem.foreign = calloc(1, sizeof *d->mem.foreign);
    if (!d->mem.foreign)
        return -ENOMEM;
    d->mem.foreign->low = ~0ull;
    return 0;
}

/* The first range that ends after ptr. */
static uint32_t find(struct device *d, CUdeviceptr ptr)
{
    uint32_t a = 0, b = d->mem.foreign->n_ranges;
    while (a < b) {
        uint32_t m = (a + b) / 2;
        if (d->mem.foreign->ranges[m]->va + d->mem.foreign->ranges[m]->bytes <= ptr)
            a = m + 1;
        else
            b = m;
    }
    return a;
}

struct slot *foreign_lookup(struct device *d, CUdeviceptr ptr)
{
    if (ptr < d->mem.foreign->low || ptr >= d->mem.foreign->high)
        return NULL;
    uint32_t i = find(d, ptr);
    return i < d->mem.foreign->n_ranges && d->mem.foreign->ranges[i]->va <= ptr ? d->mem.foreign->ranges[i] : NULL;
}

struct range foreign_span(const struct device *d)
{
    const struct foreign *f = d->mem.foreign;
    return (struct range){f->low, f->high > f->low ? f->high - f->low : 0};
}

static void bounds(struct device *d)
{
    d->mem.address_changes++;
    d->mem.foreign->low = d->mem.foreign->n_ranges ? d->mem.foreign->ranges[0]->va : ~0ull;
    d->mem.foreign->high = d->mem.foreign->n_ranges ? d->mem.foreign->ranges[d->mem.foreign->n_ranges - 1]->va + d->mem.foreign->ranges[d->mem.foreign->n_ranges - 1]->bytes : 0;
}

bool foreign_detach(struct device *d, uint64_t key, struct foreign_block *b)
{
    struct foreign_row *r;
    HASH_FIND(hh, d->mem.foreign->rows, &key, sizeof key, r);
    if (!r)
        return false;
    HASH_DEL(d->mem.foreign->rows, r);
    *b = r->block;
    if (r->slot) {
        uint32_t i = 0;
        while (i < d->mem.foreign->n_ranges && d->mem.foreign->ranges[i] != r->slot)
            i++;
        if (i < d->mem.foreign->n_ranges) {
            memmove(d->mem.foreign->ranges + i, d->mem.foreign->ranges + i + 1, (d->mem.foreign->n_ranges - i - 1) * sizeof *d->mem.foreign->ranges);
            d->mem.foreign->n_ranges--;
        }
        slot_foreign_gone(d, r->slot);
        bounds(d);
    }
    free(r);
    return true;
}

void foreign_context_gone(struct device *d)
{
    struct foreign *f = d->mem.foreign;
    struct foreign_row *r, *next;
    d->mem.foreign_bytes = d->mem.graph_bytes = 0;
    pooled_forget(d);
    HASH_ITER(hh, f->rows, r, next) {
        if (FOREIGN_IS_BLOCK(r->key)) {
            d->mem.foreign_bytes += foreign_block_counted(&r->block);
            continue;
        }
        HASH_DEL(f->rows, r);
        free(r);
    }
    f->n_ranges = f->n_leaving = 0;
    f->low = ~0ull;
    f->high = 0;
}

static void uncount(struct device *d, uint64_t bytes) { d->mem.foreign_bytes -= bytes < d->mem.foreign_bytes ? bytes : d->mem.foreign_bytes; }

void foreign_look(struct device *d)
{
    struct foreign *f = d->mem.foreign;
    uint32_t kept = 0;
    pooled_look(d);
    for (uint32_t i = 0; i < f->n_leaving && !d->capturing; i++)
        if (fence_has_passed(d, &f->leaving[i].freed))
            uncount(d, foreign_block_counted(&f->leaving[i].block));
        else
            f->leaving[kept++] = f->leaving[i];
    if (d->capturing || kept == f->n_leaving)
        return;
    f->n_leaving = kept;
    share_settle(d);
}

void foreign_leaves(struct device *d, const struct foreign_block *b, unsigned t)
{
    struct foreign *f = d->mem.foreign;
    const bool full = f->n_leaving == f->cap_leaving;
    if (full)
        foreign_look(d); /* no other caller looks where memory is never short */
    const bool soon = full && f->n_leaving >= f->cap_leaving / 2; /* without growing, the next look would come too soon */
    if (soon && !grow_twice(&f->leaving, sizeof *f->leaving, &f->cap_leaving, 16))
        return; /* the block stays counted for ever, as in foreign_add() */
    struct leaving *l = &f->leaving[f->n_leaving++];
    *l = (struct leaving){.block = *b};
    stream_issued(d, t);
    fence_add(d, &l->freed, t);
    stream_may_wait(d, t); /* a wait for this free shall not wait for the next op of stream t too */
}

bool foreign_wait(struct device *d)
{
    struct foreign *f = d->mem.foreign;
    if (!f->n_leaving || fence_sync(d, &f->leaving[0].freed))
        return false;
    uncount(d, foreign_block_counted(&f->leaving[0].block));
    memmove(f->leaving, f->leaving + 1, --f->n_leaving * sizeof *f->leaving);
    share_settle(d);
    return true;
}

void foreign_graphs(struct device *d)
{
    cuuint64_t now = 0;
    if (!d->drv->cuDeviceGetGraphMemAttribute ||
        d->drv->cuDeviceGetGraphMemAttribute(d->dev, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &now) != CUDA_SUCCESS)
        return; /* the bytes that the driver said last stay counted */
    d->mem.foreign_bytes += now - d->mem.graph_bytes;
    d->mem.graph_bytes = now;
    if (share_cover(d, 0))
        log_say(SAY_DEBUG, "the group has no room for what the driver took for a graph");
    share_settle(d);
    memory_note_peak(d);
}

static void forget(struct device *d, uint64_t key)
{
    struct foreign_block b;
    if (!foreign_detach(d, key, &b))
        return;
    uncount(d, foreign_block_counted(&b));
    share_settle(d);
}

void foreign_pool_gone(struct device *d, CUmemoryPool pool)
{
    struct foreign *f = d->mem.foreign;
    pooled_gone(d, pool);
    for (struct foreign_row *r = f->rows; r; r = r->hh.next)
        if (r->block.pool == pool) {
            r->block.pool = NULL;
            d->mem.foreign_bytes += foreign_block_counted(&r->block);
        }
    for (uint32_t i = 0; i < f->n_leaving; i++)
        if (f->leaving[i].block.pool == pool) {
            f->leaving[i].block.pool = NULL;
            d->mem.foreign_bytes += foreign_block_counted(&f->leaving[i].block);
        }
    share_settle(d);
}

void foreign_add(struct device *d, uint64_t key, const struct foreign_block *b)
{
    struct foreign_row *r = calloc(1, sizeof *r);
    if (!r)
        return; /* the block stays counted for ever: the limit errs on the safe side */
    r->key = key;
    r->block = *b;
    if (b->is_range) {
        if (d->mem.foreign->n_ranges == d->mem.foreign->cap_ranges) {
            uint32_t cap = d->mem.foreign->cap_ranges ? d->mem.foreign->cap_ranges * 2 : 64;
            struct slot **p = realloc(d->mem.foreign->ranges, cap * sizeof *p);
            if (p) {
                d->mem.foreign->ranges = p;
                d->mem.foreign->cap_ranges = cap;
            }
        }
        r->slot = d->mem.foreign->n_ranges < d->mem.foreign->cap_ranges ? slot_foreign(d, key, b->bytes) : NULL;
        if (r->slot) {
            uint32_t i = find(d, key);
            memmove(d->mem.foreign->ranges + i + 1, d->mem.foreign->ranges + i, (d->mem.foreign->n_ranges - i) * sizeof *d->mem.foreign->ranges);
            d->mem.foreign->ranges[i] = r->slot;
            d->mem.foreign->n_ranges++;
            bounds(d);
        }
    }
    struct foreign_row *old;
    HASH_FIND(hh, d->mem.foreign->rows, &key, sizeof key, old);
    if (old)
        forget(d, key);
    HASH_ADD(hh, d->mem.foreign->rows, key, sizeof r->key, r);
}
