/* alloc.c: see alloc.h. */
#include "policy/memory/alloc.h"
#include "policy/memory/ahead.h"

#include "policy/device.h"
#include "policy/memory/arena.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/memory/swap.h"

#include <errno.h>

static int slot_take(struct device *d, uint64_t bytes, unsigned t, struct slot **out)
{
    uint64_t pages = mem_pages(d, bytes);
    if (pages > d->mem.n_va_pages)
        return -ENOMEM;
    return arena_is_for(d, bytes) ? arena_take(d, bytes, out) : slot_take_large(d, (uint32_t)pages, t, out);
}

int alloc_new(struct device *d, uint64_t bytes, struct slot **out) { return alloc_ordered(d, bytes, STREAM_NONE, out); }

int alloc_ordered(struct device *d, uint64_t bytes, unsigned t, struct slot **out)
{
    int r = slot_take(d, bytes, t, out);
    if (!r) {
        if ((*out)->kind == SLOT_LARGE)
            (*out)->state = SLOT_EMPTY;
        (*out)->fixed_ord = ORD_NONE;
        slot_revive(d, *out, bytes);
        ahead_allocated(d, bytes);
        memory_note_peak(d);
    }
    return r;
}

int alloc_fixed(struct device *d, uint64_t bytes, int ord, struct slot **out)
{
    int r = slot_take(d, bytes, STREAM_NONE, out);
    if (!r) {
        (*out)->fixed_ord = ord;
        (*out)->live = false;
        (*out)->bytes = bytes;
        if ((*out)->kind == SLOT_LARGE)
            (*out)->state = SLOT_EMPTY;
    }
    return r;
}

static void give_back(struct device *d, struct slot *s)
{
    s->fixed_ord = ORD_NONE;
    if (s->kind == SLOT_SMALL)
        arena_give_back(d, s);
    else
        slot_list_add(d, s);
}

void alloc_unfix(struct device *d, struct slot *s)
{
    if (s->fixed_ord < 0)
        return;
    if (s->live) {
        s->fixed_ord = ORD_NONE;
        return;
    }
    slot_unback(d, s, SLOT_EMPTY);
    give_back(d, s);
}

void alloc_free(struct device *d, struct slot *s)
{
    if (s->live)
        d->mem.live_bytes -= s->bytes;
    s->live = s->owed = false;
    swap_discard(d, s);
    slot_unback(d, s, SLOT_EMPTY);
    s->plan_buf = -1;
    if (s->fixed_ord < 0)
        give_back(d, s);
}
