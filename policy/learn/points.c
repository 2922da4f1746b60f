/* points.c: see points.h. */
#include "policy/learn/points.h"

#include "policy/learn/hashing.h"
#include "policy/memory/foreign.h"
#include "policy/memory/in_place.h"
#include "policy/memory/space.h"
#include "policy/op/ready.h"
#include "policy/op/texture.h"

#include <stdlib.h>

static bool may_hold_any(const struct slot *s)
{
    enum { LOOK_MAX_BYTES = 1 << 16 };
    return s->bytes >= 8 && s->bytes <= LOOK_MAX_BYTES;
}

static void look_on_host(struct device *d, struct slot *s, unsigned t)
{
    const bool textures = texture_any();
    uint64_t *words = malloc(s->bytes);
    if (words && d->drv->cuMemcpyDtoH_v2(words, s->va, s->bytes) == CUDA_SUCCESS)
        for (size_t i = 0; i < s->bytes / 8; i++) {
            struct slot *to = mem_in_reservation(d, words[i]) ? slot_lookup(d, words[i]) : foreign_lookup(d, words[i]);
            s->points |= textures && texture_is(words[i]);
            if (words[i] % 4 || (!to && !in_place_or_outside(words[i])))
                continue;
            s->points = true;
            if (!to || to->pins)
                continue;
            to->pins = 1;
            to->needed_by = d->mem.op_at_hand; /* as what the op at hand touches */
            if (ready_slot(d, to, t))
                log_say(SAY_DEBUG, "there is no room for a buffer of %s that is reached through an address in memory", rt_size(to->bytes).text);
        }
    free(words);
}

/* The device cannot tell a texture's handle from a number. */
static bool device_looks(struct trial *t, uint32_t n)
{
    struct device *d = t->d;
    const struct range own = foreign_span(d);
    const struct hash_range spans[HASHING_SPANS] = {
        {d->mem.base, d->mem.reserve_bytes},
        {own.at, own.bytes},
        {in_place.low, in_place.span},
        {in_place_outside.low, in_place_outside.span},
    };
    return !texture_any() && !hashing_find(d, t->ranges, n, spans, t->h);
}

static void look(struct trial *t, bool (*wants)(const struct touched *))
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->n; k++)
        if (wants(&t->u[k]) && may_hold_any(t->u[k].slot))
            t->ranges[n++] = (struct hash_range){t->u[k].slot->va, t->u[k].slot->bytes};
    if (!n)
        return;
    const bool told = device_looks(t, n);
    n = 0;
    for (uint32_t k = 0; k < t->n; k++)
        if (wants(&t->u[k]) && may_hold_any(t->u[k].slot) && (!told || t->h[2 * n++]))
            look_on_host(t->d, t->u[k].slot, t->op->t);
}

static bool is_older(const struct touched *u) { return u->slot->written && !u->slot->watched && !u->slot->points && !u->blank; }

static bool is_changed(const struct touched *u) { return u->changed; }

void points_look_older(struct trial *t) { look(t, is_older); }

void points_look_changed(struct trial *t) { look(t, is_changed); }
