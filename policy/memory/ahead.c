#include "policy/memory/ahead.h"

#include "policy/memory/resident.h"
#include "policy/memory/slot.h"

enum {
    LOOK_OPS = 2,     /* ops between two looks */
    COPIES_MOST = 2,  /* early copies under way at once: a copy that an op asks for comes behind them */
    WINDOW_OPS = 512, /* ops in a window: the largest allocation is that of this window and the one before */
    SPARE_PART = 32,  /* part of the limit that stays free beside the largest allocation */
    TURN_PART = 16,   /* part of the limit: live memory has turned once it has gone the other way by so much */
    VAIN_PART = 32,   /* part of the bytes used that may have left again unused */
    KNOWN_LIMITS = 8  /* times the limit: where the sums of used and unused bytes are more, both are halved */
};

void ahead_allocated(struct device *d, uint64_t bytes)
{
    struct ahead *a = &d->mem.ahead;
    a->largest_bytes[0] = bytes > a->largest_bytes[0] ? bytes : a->largest_bytes[0];
}

void ahead_used(struct device *d, struct slot *s)
{
    if (s->early)
        d->mem.ahead.used_bytes += s->bytes;
    s->early = false;
}

/* Updates and returns whether the program holds less and less. */
static bool is_falling(struct device *d)
{
    struct ahead *a = &d->mem.ahead;
    const uint64_t turn = d->mem.limit_bytes / TURN_PART, live = d->mem.live_bytes;
    if (a->falling ? live > a->turning_bytes + turn : live + turn < a->turning_bytes) {
        a->falling = !a->falling;
        a->turning_bytes = live;
    }
    if (a->falling ? live < a->turning_bytes : live > a->turning_bytes)
        a->turning_bytes = live;
    return a->falling;
}

static bool is_in_vain(struct device *d)
{
    struct ahead *a = &d->mem.ahead;
    if (a->used_bytes + a->vain_bytes > KNOWN_LIMITS * d->mem.limit_bytes) {
        a->used_bytes /= 2;
        a->vain_bytes /= 2;
    }
    return a->vain_bytes * VAIN_PART > a->used_bytes + d->mem.limit_bytes / TURN_PART;
}

/* The swapped-out slot with the latest use. */
static struct slot *next_back(struct device *d)
{
    struct slot *best = NULL;
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        if (s->kind == SLOT_LARGE && s->state == SLOT_HOST && s->live && (!best || s->use_tick > best->use_tick))
            best = s;
    }
    return best;
}

void ahead_look(struct device *d)
{
    struct ahead *a = &d->mem.ahead;
    if (d->op_count - a->window_op >= WINDOW_OPS) {
        a->window_op = d->op_count;
        a->largest_bytes[1] = a->largest_bytes[0];
        a->largest_bytes[0] = 0;
    }
    if (!is_falling(d) || !d->mem.pressed || d->op_count % LOOK_OPS || d->capturing || d->broken || d->share || stream_gated(d) || is_in_vain(d))
        return;
    const uint64_t largest = a->largest_bytes[0] > a->largest_bytes[1] ? a->largest_bytes[0] : a->largest_bytes[1];
    const uint64_t spare = (largest + d->mem.limit_bytes / SPARE_PART) >> d->mem.shift;
    for (int i = 0; i < COPIES_MOST && d->mem.n_free_chunks > spare && (i || fence_has_passed(d, &a->coming)); i++) {
        struct slot *s = next_back(d);
        if (!s || d->mem.n_free_chunks < s->n_pages + spare || resident_swap_in(d, s))
            return;
        s->early = true;
        a->coming = s->ready;
        s->use_tick = d->mem.tick; /* counts as used last: evicted after all other slots */
    }
}
