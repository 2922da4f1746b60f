#include "policy/memory/pooled.h"
#include "policy/share/share.h"
#include "tracer/grow.h"

#include <stdlib.h>

struct pooled {
    struct pooled_row {
        CUmemoryPool pool;
        uint64_t bytes; /* of the pool, counted in memory.foreign_bytes */
    } *rows;
    uint32_t n, cap;
};

static bool ask(const struct device *d, CUmemoryPool pool, CUmemPool_attribute what, uint64_t *bytes)
{
    cuuint64_t said = 0;
    if (!d->drv->cuMemPoolGetAttribute || d->drv->cuMemPoolGetAttribute(pool, what, &said) != CUDA_SUCCESS)
        return false;
    *bytes = said;
    return true;
}

bool pooled_note(struct device *d, CUmemoryPool pool)
{
    uint64_t bytes;
    if (!d->mem.pooled && !(d->mem.pooled = calloc(1, sizeof *d->mem.pooled)))
        return false;
    struct pooled *p = d->mem.pooled;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->rows[i].pool == pool)
            return true;
    if (!pool || !ask(d, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes))
        return false;
    if (!grow_room(&p->rows, p->n, &p->cap, 4))
        return false;
    p->rows[p->n++] = (struct pooled_row){.pool = pool};
    return true;
}

void pooled_look(struct device *d)
{
    struct pooled *p = d->mem.pooled;
    bool changed = false;
    for (uint32_t i = 0; p && i < p->n; i++) {
        uint64_t now = p->rows[i].bytes; /* the bytes that the driver said last stay counted where it says nothing */
        if (!ask(d, p->rows[i].pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &now) || now == p->rows[i].bytes)
            continue;
        d->mem.foreign_bytes += now - p->rows[i].bytes;
        p->rows[i].bytes = now;
        changed = true;
    }
    if (!changed)
        return;
    if (share_cover(d, 0))
        log_say(SAY_DEBUG, "the group has no room for what a pool of the driver's has reserved");
    share_settle(d);
    memory_note_peak(d);
}

void pooled_trim(struct device *d)
{
    struct pooled *p = d->mem.pooled;
    for (uint32_t i = 0; p && i < p->n; i++) {
        uint64_t used = 0;
        if (p->rows[i].bytes && d->drv->cuMemPoolTrimTo && ask(d, p->rows[i].pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) && used < p->rows[i].bytes)
            (void)d->drv->cuMemPoolTrimTo(p->rows[i].pool, 0);
    }
    pooled_look(d);
}

void pooled_gone(struct device *d, CUmemoryPool pool)
{
    struct pooled *p = d->mem.pooled;
    for (uint32_t i = 0; p && i < p->n; i++)
        if (p->rows[i].pool == pool) {
            d->mem.foreign_bytes -= p->rows[i].bytes;
            p->rows[i] = p->rows[--p->n];
            return;
        }
}

void pooled_forget(struct device *d)
{
    if (d->mem.pooled)
        d->mem.pooled->n = 0;
}
