/* The steps of a plan: replay, drop, offload, release, fetch; and what the recorded iteration frees. */
#include "policy/plan/steps.h"
#include "policy/memory/alloc.h"
#include "policy/memory/pinned.h"
#include "policy/memory/resident.h"
#include "policy/memory/slot.h"
#include "policy/memory/swap.h"
#include "policy/op/ready.h"
#include "policy/plan/compare.h"
#include "policy/plan/rebuild.h"
#include "policy/plan/replay.h"
#include "policy/plan/verify.h"
#include "policy/process/check.h"

#include <errno.h>

/* The slot of a buffer that a step drops. NULL: it stays: what is small, or pinned, where it is; so does what the plan would not make again. */
static struct slot *slot_to_drop(struct device *d, int32_t b)
{
    struct slot *s = cursor_slot(d, b);
    return s && s->live && (s->kind != SLOT_LARGE || s->pins || d->ex->now.held_longer[b]) ? NULL : s;
}

/* Steps [from, to), all of them drops. */
static int steps_drop(struct device *d, uint32_t from, uint32_t to, unsigned t)
{
    int r = 0;
    for (uint32_t i = from; i < to && !r; i++) {
        struct slot *s = slot_to_drop(d, d->ex->plan->steps[i].id);
        r = s ? compare_set_aside(d, d->ex->plan->steps[i].id, s, t) : 0;
    }
    if (r || (r = verify_flush(d)))
        return r;
    for (uint32_t i = from; i < to; i++)
        if (slot_to_drop(d, d->ex->plan->steps[i].id))
            cursor_take_away(d, d->ex->plan->steps[i].id);
    return 0;
}

static int step_offload(struct device *d, int32_t b)
{
    struct slot *s = cursor_slot(d, b);
    if (!s || s->state != SLOT_RESIDENT || s->kind != SLOT_LARGE || s->host || s->pins)
        return 0;
    return swap_copy_out(d, s);
}

/* The compute stream waits for the copy; then the memory is free in its order. */
static int step_release(struct device *d, int32_t b, unsigned t)
{
    struct slot *s = cursor_slot(d, b);
    if (!s || s->state != SLOT_RESIDENT || s->kind != SLOT_LARGE || s->pins)
        return 0;
    if (!s->host)
        return swap_out(d, s);
    int r = fence_wait(d, t, &s->host->busy);
    if (r)
        return r;
    slot_unback(d, s, SLOT_HOST);
    d->st.evictions++;
    return 0;
}

static int step_fetch(struct device *d, int32_t b)
{
    struct slot *s = cursor_slot(d, b);
    /* the host copy stays: a later release needs no second offload */
    return s && s->state == SLOT_HOST ? resident_copy_in(d, s) : 0;
}

/* The recorded iteration freed b here. What the program freed before, the plan lets go now. */
int steps_die(struct device *d, int32_t b, unsigned t)
{
    struct slot *s = cursor_slot(d, b);
    if (s && s->live)
        return 0; /* still held by the program: steps_hold() has seen to it */
    d->ex->now.cur[b] = -1;
    if (!s || d->ex->plan->keep[b])
        return 0;
    int r = compare_set_aside(d, b, s, t);
    if (r || (r = verify_flush(d)))
        return r;
    swap_discard(d, s);
    slot_unback(d, s, SLOT_EMPTY);
    s->owed = false;
    d->ex->now.res[b] = -1;
    return 0;
}

/* Nothing refers to b any more, and the program has freed it: its slot is free for another tenant. */
static void let_go(struct device *d, int32_t b)
{
    struct slot *s = cursor_slot(d, b);
    if (!s || s->live || d->ex->learnt.rec.bufs[b].dies < 0)
        return;
    swap_discard(d, s);
    slot_unback(d, s, SLOT_EMPTY);
    s->owed = false;
    cursor_unbind(d, b);
    d->ex->now.res[b] = d->ex->now.cur[b] = -1;
    if (s->fixed_ord == ORD_OWED) {
        s->fixed_ord = ORD_NONE;
        alloc_free(d, s);
    }
}

/* A replay of the plan would make another version of what the program has not freed where the recorded iteration did. */
static bool spoils_what_stays(struct device *d, uint32_t op)
{
    const struct exec *ex = d->ex;
    for (uint32_t k = ex->learnt.rec.ops[op].first; k < ex->learnt.rec.ops[op].first + ex->learnt.rec.ops[op].n; k++) {
        const struct rec_operand *w = &ex->learnt.rec.operands[k];
        const struct slot *s = cursor_slot(d, w->buf);
        if (rec_makes(w) && s && s->live && ex->now.held_longer[w->buf] && ex->plan->out_ver[k] != ex->now.cur[w->buf])
            return true;
    }
    return false;
}

static int take_steps(struct device *d, uint32_t at, unsigned t)
{
    const struct compiled *p = d->ex->plan;
    for (uint32_t i = p->die_at[at]; i < p->die_at[at + 1]; i++) {
        int r = steps_die(d, p->die_list[i], t);
        if (r)
            return r;
    }
    for (uint32_t i = p->step_at[at], n = p->step_at[at + 1]; i < n;) {
        const struct plan_step *s = &p->steps[i];
        const uint32_t first = i++;
        if (p->elided[first] && d->mode != MODE_REHEARSE)
            continue;
        while (s->kind == PLAN_DROP && i < n && p->steps[i].kind == PLAN_DROP)
            i++;
        int r = s->kind == PLAN_REPLAY ? spoils_what_stays(d, (uint32_t)s->id) ? -EBUSY : replay_run(d, (uint32_t)s->id, t) : verify_flush(d);
        if (!r)
            r = s->kind == PLAN_DROP      ? steps_drop(d, first, i, t)
                : s->kind == PLAN_OFFLOAD ? step_offload(d, s->id)
                : s->kind == PLAN_RELEASE ? step_release(d, s->id, t)
                : s->kind == PLAN_FETCH   ? step_fetch(d, s->id)
                                          : 0;
        if (r)
            return r;
    }
    int r = verify_flush(d);
    if (r)
        return r;
    for (uint32_t i = p->ref_at[at]; i < p->ref_at[at + 1]; i++)
        let_go(d, p->ref_list[i]);
    return 0;
}

int steps_hold(struct device *d, uint32_t to, unsigned t)
{
    const struct compiled *p = d->ex->plan;
    for (uint32_t i = p->die_at[d->ex->now.pos]; i < p->die_at[to + 1]; i++) {
        const int32_t b = p->die_list[i];
        const struct slot *s = cursor_slot(d, b);
        if (!s || !s->live)
            continue;
        if (rebuild_owed(d, b)) {
            log_say(SAY_DEBUG, "op %u: buffer %d is held for longer, and made again", d->ex->now.pos, b);
            if (rebuild_one(d, b, t))
                return -ENODATA;
        }
        d->ex->now.held_longer[b] = true;
    }
    return 0;
}

/* The plan's last steps with them may have made another version than the program's. */
static bool held_are_there(struct device *d, uint32_t from, uint32_t to)
{
    const struct compiled *p = d->ex->plan;
    for (uint32_t i = p->die_at[from]; i < p->die_at[to + 1]; i++)
        if (rebuild_owed(d, p->die_list[i]))
            return false;
    return true;
}

int steps_pass(struct device *d, uint32_t to, unsigned t)
{
    const uint32_t from = d->ex->now.pos;
    if (!rt_check_plan(d, from <= to && to <= d->ex->learnt.rec.n_ops))
        return -EIO;
    int r = steps_hold(d, to, t);
    r = r ? r : verify_flush(d);
    while (!r && !(r = take_steps(d, d->ex->now.pos, t)) && d->ex->now.pos < to)
        d->ex->now.pos++;
    return r ? r : held_are_there(d, from, to) ? 0 : -EBUSY;
}

const char *steps_make_ready(struct device *d, struct rt_op *op)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < op->n_operands; i++) /* wholly overwritten: what it held is not needed */
        if (op->operands[i].mode == REC_WRITE && op->operands[i].slot->state == SLOT_LOST)
            op->operands[i].slot->state = SLOT_EMPTY;
    int r = ready_op(d, op, &lost);
    return r == -ENODATA ? "a tensor that the plan holds evicted" : r == -ENOMEM ? "memory was short" : r ? "nothing can be ordered" : NULL;
}
