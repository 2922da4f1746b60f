/* Leaving a plan in the middle: every value the program still holds is rebuilt now, in whatever order works. Values
 * that a replay would overwrite, though the program needs them, wait on the host meanwhile. Slow and rare: everything
 * here may synchronise. */
#include "policy/run.h"

#include <errno.h>

enum { MAX_DEPTH = 4000, MAX_ROUNDS = 16 };

static int make_value(int32_t b, int32_t v, unsigned t, unsigned depth);

static bool holds(int32_t b, int32_t v)
{
    struct slot *s = exec_slot(b);
    return s && ex.res[b] == v && (s->state == SLOT_RESIDENT || s->state == SLOT_HOST);
}

/* What is in b now, if the program needs it, is put on the host before something else takes its place. */
static int set_aside(int32_t b)
{
    struct slot *s = exec_slot(b);
    if (!s || !s->live || ex.res[b] < 0 || ex.res[b] != ex.cur[b] || saved_find(b, ex.res[b]))
        return 0;
    if (s->state == SLOT_HOST) {
        int r = swap_in(s);
        if (r)
            return r;
    }
    return s->state == SLOT_RESIDENT ? saved_put(b, ex.res[b], s) : 0;
}

static int inputs_ready(const struct rec_op *o)
{
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &ex.rec.operands[k];
        if ((w->mode == REC_READ || w->mode == REC_RMW) && !holds(w->buf, ex.in_ver[k]))
            return 0;
    }
    return 1;
}

static int replay_for(int32_t op, unsigned t, unsigned depth)
{
    const struct rec_op *o = &ex.rec.ops[op];
    if (o->why_opaque)
        return -ENODATA;
    for (int round = 0; !inputs_ready(o); round++) { /* making one input may have cost another */
        if (round == MAX_ROUNDS)
            return -ENODATA;
        for (uint32_t k = o->first; k < o->first + o->n; k++) {
            const struct rec_operand *w = &ex.rec.operands[k];
            if (w->mode != REC_READ && w->mode != REC_RMW)
                continue;
            int r = make_value(w->buf, ex.in_ver[k], t, depth + 1);
            if (r)
                return r;
        }
    }
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &ex.rec.operands[k];
        int r = (w->mode == REC_WRITE || w->mode == REC_RMW) && ex.res[w->buf] != ex.out_ver[k] ? set_aside(w->buf) : 0;
        if (r)
            return r;
    }
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        struct slot *s = exec_slot(ex.rec.operands[k].buf);
        if (!s)
            return -ENODATA;
        if (s->state == SLOT_HOST && ex.rec.operands[k].mode == REC_WRITE) {
            swap_discard(s);
            s->state = SLOT_EMPTY;
        }
    }
    int r = exec_replay((uint32_t)op, t);
    stream_sync(1ull << t);
    return r;
}

static int make_value(int32_t b, int32_t v, unsigned t, unsigned depth)
{
    if (holds(b, v))
        return 0;
    struct slot *s = exec_slot(b);
    if (!s || v < 0 || depth > MAX_DEPTH)
        return -ENODATA;
    int r = set_aside(b);
    if (r)
        return r;
    struct saved_value *saved = saved_find(b, v);
    if (saved) {
        if (s->state == SLOT_HOST || s->state == SLOT_LOST) {
            swap_discard(s);
            s->state = SLOT_EMPTY;
        }
        rt.mark++;
        s->mark = rt.mark;
        r = ready_slot(s, t);
        stream_sync(1ull << t);
        if (!r)
            r = saved_restore(saved, s);
        if (!r)
            ex.res[b] = v;
        return r;
    }
    int32_t op = ex.producer[ex.first_val[b] + v];
    r = op < 0 ? -ENODATA : replay_for(op, t, depth);
    if (r)
        log_say(SAY_DEBUG, "depth %u: buffer %d version %d (resident %d, current %d, slot %u live %d state %d) from op %d (%s): %d", depth, b, v, ex.res[b], ex.cur[b],
                s->id, s->live, s->state, op, op < 0 ? "-" : ex.rec.ops[op].why_opaque ? ex.rec.ops[op].why_opaque : ex.rec.ops[op].name, r);
    return r;
}

int rebuild_all(unsigned t)
{
    int first = 0;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        bool missing = false;
        for (uint32_t b = 0; b < ex.rec.n_bufs; b++) {
            struct slot *s = exec_slot((int32_t)b);
            if (!s || !s->live || ex.cur[b] < 0 || s->state == SLOT_EMPTY || holds((int32_t)b, ex.cur[b]))
                continue;
            missing = true;
            int r = make_value((int32_t)b, ex.cur[b], t, 0);
            if (r && !first)
                first = r;
            if (r) {
                log_say(SAY_DEBUG, "buffer %u version %d cannot be rebuilt: %d", b, ex.cur[b], r);
                return first;
            }
        }
        if (!missing)
            return 0;
    }
    return -ENODATA;
}
