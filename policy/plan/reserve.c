/* reserve.c: see reserve.h. */
#include "policy/plan/reserve.h"

#include "policy/learn/learn.h"
#include "policy/memory/arena.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/plan/install.h"

/* Bytes that install_scratch() will take: *region for large side operands, *small for small ones, in arenas. */
static void scratch_bytes(struct device *d, uint64_t *region, uint64_t *small)
{
    const struct record *r = &d->ex->learnt.rec;
    uint64_t read_most = 0;
    *region = *small = 0;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        uint64_t large = 0, read = 0;
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n && !r->ops[i].why_opaque; k++) {
            const uint64_t bytes = (r->bufs[r->operands[k].buf].bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
            const bool fits = arena_is_for(d, bytes);
            if (r->operands[k].mode == REC_SIDE && fits && d->ex->map.side_scratch && d->ex->map.side_scratch[k])
                continue; /* the operand has its scratch already */
            if (r->operands[k].mode == REC_SIDE)
                *(fits ? small : &large) += fits && learn_keeps_side(d, bytes) ? 2 * bytes : bytes;
            else if (r->operands[k].mode == REC_READ && !r->operands[k].map && arena_is_for(d, read + bytes))
                read += bytes;
        }
        *region = large > *region ? large : *region;
        read_most = read > read_most ? read : read_most;
    }
    *small += read_most > d->read_scratch_bytes ? read_most : 0;
}

uint64_t reserve_scratch_pages(struct device *d)
{
    uint64_t region, small;
    scratch_bytes(d, &region, &small);
    if (d->scratch_region && d->scratch_region->bytes >= region)
        region = 0;
    const uint64_t free_bytes = arena_free_bytes(d);
    return (region ? mem_pages(d, region) : 0) + (small > free_bytes ? mem_pages(d, small - free_bytes) : 0);
}

uint64_t reserve_of_record_bytes(struct device *d)
{
    arena_trim(d);
    uint64_t pages = arena_chunks(d) + recording_peak_pages(d, &d->ex->learnt.rec, true) + install_pages_beside(d) + reserve_scratch_pages(d);
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        if (d->mem.slots[i].kind == SLOT_LARGE && d->mem.slots[i].pins && d->mem.slots[i].live && d->mem.slots[i].rec_buf < 0)
            pages += d->mem.slots[i].n_pages;
    return (pages << d->mem.shift) + d->mem.foreign_bytes + d->mem.own_bytes;
}
