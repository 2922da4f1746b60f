/* audit.c: see audit.h. */
#include "policy/memory/audit.h"

#include "policy/device.h"
#include "policy/memory/chunk.h"
#include "policy/memory/slot.h"
#include "policy/process/check.h"

static void audit_chunks(struct device *d)
{
    uint32_t n_free = 0, n_gone = 0, n_arena = 0;
    for (uint32_t c = 0; c < d->mem.n_chunks; c++) {
        const struct chunk *k = &d->mem.chunks[c];
        n_free += k->owner == CHUNK_FREE;
        n_gone += k->owner == CHUNK_GONE;
        n_arena += k->owner == CHUNK_ARENA;
        if (k->owner < 0 || !rt_check(d, (uint32_t)k->owner < d->mem.n_slots))
            continue;
        const struct slot *s = &d->mem.slots[k->owner];
        rt_check(d, s->kind == SLOT_LARGE && s->state == SLOT_RESIDENT && k->page < s->n_pages && s->map[k->page] == (int32_t)c);
    }
    rt_check(d, n_free == d->mem.n_free_chunks);
    rt_check(d, n_gone == d->mem.n_gone);
    rt_check(d, n_arena == d->mem.n_arena_chunks);
}

static void audit_slot(struct device *d, const struct slot *s)
{
    for (uint32_t p = 0; s->kind == SLOT_LARGE && s->state == SLOT_RESIDENT && !s->lodged && p < s->n_pages; p++)
        rt_check(d, chunk_is_of(d, s->map[p], s->id, p));
    rt_check(d, s->state != SLOT_HOST || s->host);
    rt_check(d, !s->lodged || (s->state == SLOT_RESIDENT && s->host_pages));
    rt_check(d, fence_is_sound(d, &s->ready) && fence_is_sound(d, &s->unseen) && fence_is_sound(d, &s->users) && fence_is_sound(d, &s->stale));
}

void audit_memory(struct device *d)
{
    audit_chunks(d);
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        audit_slot(d, &d->mem.slots[i]);
    for (unsigned u = 0; u < stream_count(d); u++)
        rt_check(d, stream_is_sound(d, u));
}
