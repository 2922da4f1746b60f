/* A plan is installed once: the k-th allocation of the iteration gets a slot of its own, and chunks are assigned to
 * slots by colouring the intervals in which the plan holds them. Everything is mapped at once, so that a steady iteration
 * makes no memory-management call. Runs at an iteration boundary; may synchronise. */
#include "policy/plan/install.h"
#include "policy/memory/alloc.h"
#include "policy/memory/lodge.h"
#include "policy/memory/arena.h"
#include "policy/memory/chunk.h"
#include "policy/memory/page.h"
#include "policy/memory/resident.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/memory/supply.h"
#include "policy/memory/swap.h"
#include "policy/plan/colour.h"
#include "policy/learn/learn.h"
#include "policy/process/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- slots ------------------------------------------------------------------------------------------------------ */

void install_drop(struct device *d)
{
    for (uint32_t k = 0; d->ex->map.alloc_slot && k < d->ex->map.n_places; k++)
        if (d->ex->map.alloc_slot[k] >= 0)
            alloc_unfix(d, &d->mem.slots[d->ex->map.alloc_slot[k]]);
    free(d->ex->map.alloc_slot);
    free(d->ex->map.twin);
    d->ex->map.alloc_slot = d->ex->map.twin = NULL;
    for (uint32_t k = 0; d->ex->map.home && k < d->ex->map.n_places; k++)
        free(d->ex->map.home[k]);
    free(d->ex->map.home);
    d->ex->map.home = NULL;
    d->ex->map.n_places = 0;
    d->ex->map.done = false;
}

/* Makes filled_by from the sealed record, as learning did while recording (rec_buf.filled_by). */
static int find_fills(struct device *d)
{
    const struct record *r = &d->ex->learnt.rec;
    int32_t *last = malloc((r->n_bufs + 1) * sizeof *last), *by = d->ex->map.filled_by = malloc((r->n_operands + 1) * sizeof *by);
    if (!last || !by) {
        free(last);
        return -ENOMEM;
    }
    for (uint32_t b = 0; b < r->n_bufs; b++)
        last[b] = -1;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const struct rec_op *o = &r->ops[i];
        const bool fills = !o->hold && d->ex->learnt.caps[i].kind == OP_MEMSET;
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            by[k] = r->operands[k].mode == REC_SIDE ? last[r->operands[k].buf] : -1;
        for (uint32_t k = o->first; k < o->first + o->n && !o->hold; k++)
            last[r->operands[k].buf] = fills && r->operands[k].mode == REC_RMW ? (int32_t)i : -1;
    }
    free(last);
    return 0;
}

int install_index(struct device *d)
{
    struct installed *map = &d->ex->map;
    map->side_scratch = calloc(d->ex->learnt.rec.n_operands + 1, sizeof *map->side_scratch);
    map->side_saved = calloc(d->ex->learnt.rec.n_operands + 1, sizeof *map->side_saved);
    return map->side_scratch && map->side_saved ? find_fills(d) : -ENOMEM;
}

void install_clear(struct device *d)
{
    free(d->ex->map.side_scratch);
    free(d->ex->map.side_saved);
    free(d->ex->map.filled_by);
    d->ex->map.side_scratch = d->ex->map.side_saved = NULL;
    d->ex->map.filled_by = NULL;
}

/* The entry of an earlier small allocation that is over, for good, before allocation k begins, to be shared; -1: none. */
static int32_t share_small(struct device *d, uint32_t k)
{
    const struct record *r = &d->ex->learnt.rec;
    const struct rec_buf *b = &r->bufs[r->allocs[k].buf];
    for (uint32_t j = 0; j < k; j++) {
        if (d->ex->map.alloc_slot[j] < 0 || !r->bufs[r->allocs[j].buf].small || r->allocs[j].bytes != b->bytes)
            continue;
        int32_t s = d->ex->map.alloc_slot[j];
        if (d->mem.slots[s].over_at < r->allocs[k].before_op)
            return s;
    }
    return -1;
}

/* Bytes that small allocations take in arenas if each entry is over when its buffer is freed (replays that read the buffer keep it longer). */
static int small_entries_bytes(struct device *d, uint64_t *bytes)
{
    const struct record *r = &d->ex->learnt.rec;
    int32_t *over_at = malloc((r->n_allocs + 1) * sizeof *over_at); /* [n_allocs] op at which the entry that allocation k was the first to have is over */
    *bytes = 0;
    for (uint32_t k = 0; k < r->n_allocs && over_at; k++) {
        const struct rec_buf *b = r->allocs[k].buf < 0 ? NULL : &r->bufs[r->allocs[k].buf];
        over_at[k] = INT32_MAX;
        if (!b || b->pinned || !b->small)
            continue;
        uint32_t j = 0;
        while (j < k && (r->allocs[j].bytes != b->bytes || over_at[j] >= r->allocs[k].before_op))
            j++;
        *bytes += j == k ? arena_small_bytes(b->bytes) : 0;
        over_at[j] = b->dies < 0 ? (int32_t)r->n_ops : b->dies;
    }
    free(over_at);
    return over_at ? 0 : -ENOMEM;
}

static uint64_t arena_pages_more(struct device *d)
{
    uint64_t wanted, free_bytes = arena_free_bytes(d);
    if (small_entries_bytes(d, &wanted) || !wanted)
        return 0;
    return !d->cfg->plan_path[0] + (wanted > free_bytes ? mem_pages(d, wanted - free_bytes) : 0);
}

static int take_large(struct device *d, uint32_t place, uint64_t bytes)
{
    struct slot *s;
    int err = alloc_fixed(d, bytes, (int)place, &s);
    if (err)
        return err;
    d->ex->map.alloc_slot[place] = (int32_t)s->id;
    d->ex->map.home[place] = malloc(s->n_pages * sizeof **d->ex->map.home);
    return d->ex->map.home[place] ? 0 : -ENOMEM;
}

static int take_slots(struct device *d, const struct colouring *c)
{
    const struct record *r = &d->ex->learnt.rec;
    d->ex->map.alloc_slot = malloc((PLACES_MOST * r->n_allocs + 1) * sizeof *d->ex->map.alloc_slot);
    d->ex->map.twin = malloc((PLACES_MOST * r->n_allocs + 1) * sizeof *d->ex->map.twin);
    d->ex->map.home = calloc(PLACES_MOST * r->n_allocs + 1, sizeof *d->ex->map.home);
    int err = d->ex->map.alloc_slot && d->ex->map.twin && d->ex->map.home ? 0 : -ENOMEM;
    d->ex->map.n_places = err ? 0 : r->n_allocs;
    for (uint32_t k = 0; k < d->ex->map.n_places; k++)
        d->ex->map.alloc_slot[k] = d->ex->map.twin[k] = -1;
    for (uint32_t k = 0; k < r->n_allocs && !err; k++) {
        int32_t b = r->allocs[k].buf;
        if (b < 0 || r->bufs[b].pinned)
            continue;
        struct slot *s;
        if (r->bufs[b].small) {
            d->ex->map.alloc_slot[k] = share_small(d, k);
            if (d->ex->map.alloc_slot[k] < 0 && !(err = alloc_fixed(d, r->allocs[k].bytes, (int)k, &s)))
                d->ex->map.alloc_slot[k] = (int32_t)s->id;
            if (!err)
                d->mem.slots[d->ex->map.alloc_slot[k]].over_at = d->ex->plan->last_ref[b];
            continue;
        }
        const int32_t twins = (c->passing[k] >= 0) + colour_partner_stays(r, c, k);
        uint32_t place = k;
        err = take_large(d, k, r->allocs[k].bytes);
        for (int32_t i = 0; i < twins && !err; i++) {
            const uint32_t more = d->ex->map.n_places++;
            d->ex->map.twin[place] = (int32_t)more;
            d->ex->map.alloc_slot[more] = d->ex->map.twin[more] = -1;
            err = take_large(d, more, r->allocs[k].bytes);
            place = more;
        }
    }
    return err;
}

/* A kernel may change another time an operand that it was not seen to change: a word that is counted up for certain data only would count the
 * replay as well. So replays read small operands from copies, in one area that all replays share, one after another; in large operands a
 * replay does again what the launch has done. */
static int read_scratch(struct device *d)
{
    const struct record *r = &d->ex->learnt.rec;
    uint64_t most = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < r->n_ops; i++) {
            const uint32_t first = r->ops[i].first;
            uint64_t at = 0;
            for (uint32_t k = first; k < first + r->ops[i].n && !r->ops[i].why_opaque && d->ex->learnt.caps[i].kind == OP_KERNEL; k++) {
                const struct rec_operand *w = &r->operands[k];
                const uint64_t bytes = (r->bufs[w->buf].bytes + 511) & ~511ull;
                uint32_t same = first; /* two words that point at one buffer share a copy */
                while (same < k && r->operands[same].buf != w->buf)
                    same++;
                if (w->mode != REC_READ || w->map || !arena_is_for(d, at + bytes))
                    continue;
                if (pass)
                    d->ex->map.side_scratch[k] = same < k ? d->ex->map.side_scratch[same] : d->read_scratch + at;
                at += same < k ? 0 : bytes;
            }
            most = at > most ? at : most;
        }
        if (pass || most <= d->read_scratch_bytes)
            continue;
        const CUdeviceptr area = arena_scratch(d, most); /* a smaller area taken earlier stays: replays under way may use it */
        if (!area)
            return -ENOMEM;
        d->read_scratch = area;
        d->read_scratch_bytes = most;
    }
    return 0;
}

/* Side operands of replays go to scratch: small ones each to scratch of their own, large ones (workspaces) to one region that all
 * replays share, one after another. */
int install_scratch(struct device *d)
{
    struct slot *region = d->scratch_region;
    uint64_t most = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < d->ex->learnt.rec.n_ops; i++) {
            uint64_t at = 0;
            for (uint32_t k = d->ex->learnt.rec.ops[i].first; k < d->ex->learnt.rec.ops[i].first + d->ex->learnt.rec.ops[i].n; k++) {
                const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
                uint64_t bytes = d->ex->learnt.rec.bufs[w->buf].bytes;
                if (w->mode != REC_SIDE || d->ex->learnt.rec.ops[i].why_opaque || d->ex->map.side_scratch[k])
                    continue;
                if (!arena_is_for(d, bytes)) {
                    if (pass)
                        d->ex->map.side_scratch[k] = region->va + at;
                    at += (bytes + 511) & ~511ull;
                } else if (pass && (!(d->ex->map.side_scratch[k] = arena_scratch(d, bytes)) ||
                                    (learn_keeps_side(d, bytes) && !(d->ex->map.side_saved[k] = arena_scratch(d, bytes)))))
                    return -ENOMEM;
            }
            most = at > most ? at : most;
        }
        if (pass || !most || (region && region->bytes >= most))
            continue;
        struct slot *s;
        if (alloc_new(d, most, &s))
            return -ENOMEM;
        s->needed_by = ++d->mem.op_at_hand;
        if (resident_back(d, s) || fence_sync(d, &s->ready)) {
            alloc_free(d, s);
            return -ENOMEM;
        }
        d->mem.live_bytes -= s->bytes; /* the region is ours, not the program's */
        s->pins = 1;
        s->written = true;
        d->scratch_region = region = s; /* a smaller region taken earlier stays: captured replays may still point there */
    }
    return read_scratch(d);
}

/* Replays that may run yet are users of the region: the next owner of its memory comes after them, and the host does not wait here. */
void install_give_scratch(struct device *d)
{
    struct slot *s = d->scratch_region;
    if (!s)
        return;
    d->scratch_region = NULL;
    fence_merge(d, &s->users, &d->ex->now.scratch_users);
    s->pins = 0;
    d->mem.live_bytes += s->bytes; /* alloc_free() takes these bytes off */
    alloc_free(d, s);
}

/* ---- mapping ---------------------------------------------------------------------------------------------------- */

void install_repair(struct device *d)
{
    for (uint32_t k = 0; k < d->ex->map.n_places; k++) {
        if (!d->ex->map.home[k])
            continue;
        struct slot *s = &d->mem.slots[d->ex->map.alloc_slot[k]];
        if (s->state == SLOT_RESIDENT)
            continue;
        page_map_row(d, s, d->ex->map.home[k]);
    }
}

/* Buffers that outlive iterations come into memory; all others are swapped out. */
static int settle(struct device *d)
{
    if (fence_sync_queued(d, true) == -EBUSY)
        return -EBUSY;
    d->mem.op_at_hand++;
    if (lodge_leave_all(d))
        return -ENOMEM;
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++) {
        const struct rec_buf *x = &d->ex->learnt.rec.bufs[b];
        if (x->alloc_ord < 0 && x->dies < 0 && d->mem.slots[x->slot_id].serial == x->serial)
            d->mem.slots[x->slot_id].needed_by = d->mem.op_at_hand;
    }
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        if (s->kind == SLOT_LARGE && s->state == SLOT_RESIDENT && s->needed_by != d->mem.op_at_hand && !s->pins && swap_out(d, s))
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        int r = s->needed_by == d->mem.op_at_hand && s->live && s->state == SLOT_HOST ? resident_swap_in(d, s) : 0;
        if (r)
            return r;
    }
    return fence_sync_queued(d, true) == -EBUSY ? -EBUSY : 0;
}

/* Persistent buffers hold the chunks they have, whenever the plan has them in memory. Arenas and pinned slots outside the plan hold theirs always. */
static void take_persistent(struct device *d, struct colouring *c)
{
    for (uint32_t ch = 0; ch < c->n_chunks; ch++)
        if (d->mem.chunks[ch].owner == CHUNK_ARENA || d->mem.chunks[ch].owner == CHUNK_GONE)
            colour_take_all(c, ch);
        else if (d->mem.chunks[ch].owner >= 0 && d->mem.slots[d->mem.chunks[ch].owner].needed_by != d->mem.op_at_hand)
            colour_take_all(c, ch);
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++) {
        const struct rec_buf *x = &d->ex->learnt.rec.bufs[b];
        struct slot *s = &d->mem.slots[x->slot_id];
        if (x->alloc_ord >= 0 || x->dies >= 0 || s->kind != SLOT_LARGE || s->state != SLOT_RESIDENT || s->lodged || s->serial != x->serial)
            continue;
        for (uint32_t p = 0; p < s->n_pages; p++)
            colour_take_lives(c, (uint32_t)s->map[p], c->of_buf[b]);
    }
}

static int colour_and_map(struct device *d, struct colouring *c, uint64_t *lacking)
{
    struct installed *map = &d->ex->map;
    uint32_t *pages = calloc(map->n_places + 1, sizeof *pages);
    if (!pages)
        return -ENOMEM;
    for (uint32_t k = 0; k < map->n_places; k++)
        pages[k] = map->home[k] ? d->mem.slots[map->alloc_slot[k]].n_pages : 0;
    while (d->mem.n_chunks - d->mem.n_gone < supply_max_chunks(d) && supply_chunk(d) >= 0)
        ;
    int err = colour_room(c, d->mem.n_chunks);
    if (!err) {
        take_persistent(d, c);
        err = colour_map(c, pages, map->n_places, &map->home, lacking, &map->beyond_chunks);
    }
    if (!err && !rt_check_plan(d, colour_is_sound(c, pages, map->n_places, map->home)))
        err = -EIO;
    if (!err)
        install_repair(d);
    free(pages);
    return err;
}

uint64_t install_pages_beside(struct device *d)
{
    struct colouring c;
    uint64_t pages = arena_pages_more(d);
    const int err = colour_begin(&d->ex->learnt.rec, &c);
    for (uint32_t k = 0; k < d->ex->learnt.rec.n_allocs && !err; k++)
        if (colour_partner_stays(&d->ex->learnt.rec, &c, k) || (c.passing[k] >= 0 && c.partner[k] >= 0))
            pages += mem_pages(d, d->ex->learnt.rec.allocs[k].bytes);
    colour_end(&c);
    return pages;
}

int install_plan(struct device *d)
{
    struct colouring c;
    uint64_t lacking = 0;
    install_drop(d);
    int err = colour_begin(&d->ex->learnt.rec, &c);
    if (!err)
        err = settle(d);
    if (!err)
        err = take_slots(d, &c);
    if (!err)
        err = settle(d); /* arenas may have grown: after this each marked slot (needed_by) is in memory */
    if (!err)
        err = colour_lives(&d->ex->learnt.rec, d->ex->plan, &c);
    if (!err)
        err = colour_slot_lives(&d->ex->learnt.rec, d->ex->map.twin, &c);
    if (!err)
        err = colour_and_map(d, &c, &lacking);
    colour_end(&c);
    if (err) {
        install_drop(d);
        return err;
    }
    d->ex->map.done = true;
    d->ex->map.not_in_turn = 0;
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++)
        if (d->ex->learnt.rec.bufs[b].handed_on)
            d->ex->map.not_in_turn = PLACES_MOST;
    d->ex->map.lacks_chunks = lacking > 0;
    return lacking > INT32_MAX ? INT32_MAX : (int)lacking;
}
