/* Leaving a plan in the middle: every value the program still holds is rebuilt, in whatever order works. Values
 * that a replay would overwrite, though the program needs them, wait on the host meanwhile. Slow and rare: everything
 * here may synchronise. */
#include "policy/plan/rebuild.h"
#include "policy/memory/pinned.h"
#include "policy/memory/resident.h"
#include "policy/memory/slot.h"
#include "policy/memory/swap.h"
#include "policy/op/ready.h"
#include "policy/plan/replay.h"
#include "policy/plan/saved.h"

#include <errno.h>
#include <stdlib.h>

enum { MAX_DEPTH = 4000, MAX_ROUNDS = 16 };

static int make_value(struct device *d, int32_t b, int32_t v, unsigned t, unsigned depth);

static bool holds(struct device *d, int32_t b, int32_t v)
{
    struct slot *s = cursor_slot(d, b);
    return s && d->ex->now.res[b] == v && (s->state == SLOT_RESIDENT || s->state == SLOT_HOST);
}

/* b's content, if the program needs it, is copied to the host before another version takes its place. */
static int set_aside(struct device *d, int32_t b)
{
    struct slot *s = cursor_slot(d, b);
    if (!s || !s->live || d->ex->now.res[b] < 0 || d->ex->now.res[b] != d->ex->now.cur[b] || saved_find(d, b, d->ex->now.res[b]))
        return 0;
    if (s->state == SLOT_HOST) {
        int r = resident_swap_in(d, s);
        if (r)
            return r;
    }
    return s->state == SLOT_RESIDENT ? saved_put(d, b, d->ex->now.res[b], s) : 0;
}

static int inputs_ready(struct device *d, const struct rec_op *o)
{
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
        if (rec_takes(w) && !holds(d, w->buf, d->ex->plan->in_ver[k]))
            return 0;
    }
    return 1;
}

static int replay_for(struct device *d, int32_t op, unsigned t, unsigned depth)
{
    const struct rec_op *o = &d->ex->learnt.rec.ops[op];
    if (o->why_opaque)
        return -ENODATA;
    for (int round = 0; !inputs_ready(d, o); round++) { /* making one input may have cost another */
        if (round == MAX_ROUNDS)
            return -ENODATA;
        for (uint32_t k = o->first; k < o->first + o->n; k++) {
            const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
            if (!rec_takes(w))
                continue;
            int r = make_value(d, w->buf, d->ex->plan->in_ver[k], t, depth + 1);
            if (r)
                return r;
        }
    }
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
        int r = rec_makes(w) && d->ex->now.res[w->buf] != d->ex->plan->out_ver[k] ? set_aside(d, w->buf) : 0;
        if (r)
            return r;
    }
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        struct slot *s = cursor_slot(d, d->ex->learnt.rec.operands[k].buf);
        if (!s)
            return -ENODATA;
        if (s->state == SLOT_HOST && d->ex->learnt.rec.operands[k].mode == REC_WRITE) {
            swap_discard(d, s);
            s->state = SLOT_EMPTY;
            d->ex->now.res[d->ex->learnt.rec.operands[k].buf] = -1;
        }
    }
    return replay_run(d, (uint32_t)op, t);
}

static int make_value(struct device *d, int32_t b, int32_t v, unsigned t, unsigned depth)
{
    if (holds(d, b, v))
        return 0;
    struct slot *s = cursor_slot(d, b);
    if (!s || v < 0 || depth > MAX_DEPTH)
        return -ENODATA;
    int r = set_aside(d, b);
    if (r)
        return r;
    struct saved_value *saved = saved_find(d, b, v);
    if (saved) {
        if (s->state == SLOT_HOST || s->state == SLOT_LOST) {
            swap_discard(d, s);
            s->state = SLOT_EMPTY;
            d->ex->now.res[b] = -1;
        }
        d->mem.op_at_hand++;
        s->needed_by = d->mem.op_at_hand;
        r = ready_slot(d, s, t);
        if (!r)
            r = saved_restore(d, saved, s);
        if (!r)
            d->ex->now.res[b] = v;
        return r;
    }
    int32_t op = d->ex->plan->producer[d->ex->plan->first_val[b] + v];
    r = op < 0 ? -ENODATA : replay_for(d, op, t, depth);
    if (r)
        log_say(SAY_DEBUG, "depth %u: buffer %d version %d (resident %d, current %d, slot %u live %d state %d) from op %d (%s): %d", depth, b, v, d->ex->now.res[b], d->ex->now.cur[b],
                s->id, s->live, s->state, op, op < 0 ? "-" : d->ex->learnt.rec.ops[op].why_opaque ? d->ex->learnt.rec.ops[op].why_opaque : d->ex->learnt.rec.ops[op].name, r);
    return r;
}

/* A buffer that nothing has written has no memory, and no value of it is owed. A buffer that a replay, or a launch, was to make but got no memory
 * for has none either, and its value is owed. */
bool rebuild_owed(struct device *d, int32_t b)
{
    const struct slot *s = cursor_slot(d, b);
    return s && s->live && d->ex->now.cur[b] >= 0 && (s->state != SLOT_EMPTY || d->ex->now.res[b] != d->ex->now.cur[b]) && !holds(d, b, d->ex->now.cur[b]);
}

/* Makes every value that is owed (rebuild_owed()), of all buffers or of those in `among`; in whatever order works, since making one value may
 * cost another. */
static int make_owed(struct device *d, const bool *among, unsigned t)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        bool missing = false;
        for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++) {
            if ((among && !among[b]) || !rebuild_owed(d, (int32_t)b))
                continue;
            missing = true;
            int r = make_value(d, (int32_t)b, d->ex->now.cur[b], t, 0);
            if (r) {
                log_say(SAY_DEBUG, "buffer %u version %d cannot be rebuilt: %d", b, d->ex->now.cur[b], r);
                return r;
            }
        }
        if (!missing)
            return 0;
    }
    return -ENODATA;
}

/* Buffers that were neither in memory nor on the host before (not `there`), all but `but`, lose their memory again. */
static void take_the_rest_away(struct device *d, int32_t but, const bool *there)
{
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++) {
        const struct slot *s = cursor_slot(d, (int32_t)b);
        if (!there[b] && (int32_t)b != but && s && s->state == SLOT_RESIDENT && s->kind == SLOT_LARGE && !s->pins)
            cursor_take_away(d, (int32_t)b);
    }
}

int rebuild_one(struct device *d, int32_t b, unsigned t)
{
    bool *there = calloc(d->ex->learnt.rec.n_bufs + 1, sizeof *there);
    if (!there)
        return -ENOMEM;
    for (uint32_t x = 0; x < d->ex->learnt.rec.n_bufs; x++) {
        const struct slot *s = cursor_slot(d, (int32_t)x);
        there[x] = s && (s->state == SLOT_RESIDENT || s->state == SLOT_HOST);
    }
    int r = make_value(d, b, d->ex->now.cur[b], t, 0);
    if (!r)
        r = make_owed(d, there, t); /* values that the program had in memory or on the host are there again */
    if (!r)
        take_the_rest_away(d, b, there);
    free(there);
    if (!r && d->mode == MODE_ENFORCE && d->cfg->verify != VERIFY_ALWAYS)
        saved_clear(d); /* the values saved were for this rebuild, not to compare with */
    return r;
}

/* The op makes another version of buffer b. */
static bool changes(const struct exec *ex, uint32_t op, int32_t b)
{
    for (uint32_t k = ex->learnt.rec.ops[op].first; k < ex->learnt.rec.ops[op].first + ex->learnt.rec.ops[op].n; k++)
        if (ex->learnt.rec.operands[k].buf == b && ex->plan->out_ver[k] >= 0)
            return true;
    return false;
}

/* Marks the buffers that making (b, v) again begins from, before the op at `at` or after it: a value that this op changes must be made again after it. */
static void mark_sources(struct device *d, uint32_t at, int32_t b, int32_t v, uint8_t *seen, uint8_t *source)
{
    if (v < 0 || seen[d->ex->plan->first_val[b] + v])
        return;
    seen[d->ex->plan->first_val[b] + v] = 1;
    if (holds(d, b, v)) {
        source[b] = 1;
        if (!changes(d->ex, at, b))
            return;
    }
    int32_t op = d->ex->plan->producer[d->ex->plan->first_val[b] + v];
    if (op < 0 || saved_find(d, b, v))
        return;
    const struct rec_op *o = &d->ex->learnt.rec.ops[op];
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (rec_takes(&d->ex->learnt.rec.operands[k]))
            mark_sources(d, at, d->ex->learnt.rec.operands[k].buf, d->ex->plan->in_ver[k], seen, source);
}

uint8_t *rebuild_sources(struct device *d, uint32_t at)
{
    uint8_t *source = calloc(d->ex->learnt.rec.n_bufs + 1, 1);
    uint8_t *seen = calloc((size_t)d->ex->plan->first_val[d->ex->learnt.rec.n_bufs] + 1, 1);
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs && source && seen; b++)
        if (rebuild_owed(d, (int32_t)b))
            mark_sources(d, at, (int32_t)b, d->ex->now.cur[b], seen, source);
    if (!seen) {
        free(source);
        source = NULL;
    }
    free(seen);
    return source;
}

/* A dropped value that was set aside to compare is the value that the program holds: its host block becomes the slot's, as if the slot had been
 * swapped out. That takes no memory on either side; a copy back would, and would still need the block beside it. */
static void give_saved_back(struct device *d)
{
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++) {
        struct slot *s = cursor_slot(d, (int32_t)b);
        if (!rebuild_owed(d, (int32_t)b) || s->state != SLOT_LOST)
            continue;
        struct host_block *h = saved_take(d, (int32_t)b, d->ex->now.cur[b]);
        if (!h)
            continue;
        swap_discard(d, s);
        s->host = h;
        s->state = SLOT_HOST;
        d->ex->now.res[b] = d->ex->now.cur[b];
    }
}

int rebuild_all(struct device *d, unsigned t)
{
    give_saved_back(d);
    return make_owed(d, NULL, t);
}
