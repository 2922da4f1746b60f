#include "policy/plan/replay.h"
#include "policy/memory/slot.h"
#include "policy/memory/swap.h"
#include "policy/op/ready.h"
#include "policy/plan/args.h"
#include "policy/plan/unmapped.h"
#include "policy/plan/verify.h"
#include "policy/process/check.h"
#include "policy/process/nvtx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int replay_keep_sides(struct device *d, uint32_t at, unsigned t)
{
    const struct rec_op *o = &d->ex->learnt.rec.ops[at];
    bool any = false;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct slot *s = cursor_slot(d, d->ex->learnt.rec.operands[k].buf);
        if (!d->ex->map.side_saved[k] || !s || s->state != SLOT_RESIDENT)
            continue;
        if (fence_wait(d, t, &d->ex->now.scratch_users) || fence_wait(d, t, &s->ready) ||
            d->drv->cuMemcpyDtoDAsync_v2(d->ex->map.side_saved[k], s->va, s->bytes, d->stream[t]) != CUDA_SUCCESS)
            return -EIO;
        d->ex->now.side_is_saved[k] = any = true;
    }
    if (any)
        fence_add(d, &d->ex->now.scratch_users, t);
    return 0;
}

/* The part of the buffer that a memset filled right before the op is filled in the scratch, too. */
static int fill_part(struct device *d, const struct rt_op *op, uint32_t k, const struct slot *s, CUdeviceptr scratch)
{
    const int32_t by = d->ex->map.filled_by[k];
    if (by < 0)
        return 0;
    if (d->ex->now.not_again[by])
        return -ENODATA;
    const struct rt_op *fill = &d->ex->learnt.caps[by];
    if (fill->set.dst - s->va >= s->bytes)
        return -ENODATA;
    return op_fill_elsewhere_drv(d, fill, s->va, scratch, op->t) == CUDA_SUCCESS ? 0 : -EIO;
}

/* Operand k of a replay of `op` goes to scratch, which starts as the op found the buffer where that was kept (side_saved), else with the buffer's
 * present content, and then has its part filled (fill_part()). */
static int redirect(struct device *d, const struct rt_op *op, uint32_t k, unsigned char *args)
{
    const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
    const struct slot *s = cursor_slot(d, w->buf);
    const CUdeviceptr scratch = d->ex->map.side_scratch[k], saved = d->ex->map.side_saved[k];
    CUdeviceptr word;
    memcpy(&word, op->args + w->offset, 8);
    if (word - s->va > s->bytes)
        return 0; /* the word is null in this iteration, or idle */
    if (saved && !d->ex->now.side_is_saved[k])
        return -ENODATA;
    if (!scratch || fence_wait(d, op->t, &d->ex->now.scratch_users) ||
        d->drv->cuMemcpyDtoDAsync_v2(scratch, saved ? saved : s->va, s->bytes, op->stream) != CUDA_SUCCESS)
        return -EIO;
    word = scratch + (word - s->va);
    memcpy(args + w->offset, &word, 8);
    return fill_part(d, op, k, s, scratch);
}

int replay_run(struct device *d, uint32_t i, unsigned t)
{
    if (!rt_check_plan(d, i < d->ex->now.pos)) /* an op that has not come in this iteration has no arguments yet */
        return -EIO;
    const struct rec_op *o = &d->ex->learnt.rec.ops[i];
    unsigned char *args = d->ex->now.replay_args;
    struct rt_op op = d->ex->learnt.caps[i];
    if (args_are_unproved(d, i) || d->ex->now.not_again[i])
        return -ENODATA; /* no plan asks for a replay of such an op (proof_is_needless, detour.h) */
    int own = stream_own(d, t);
    if (own)
        return own;
    op.t = t;
    op.stream = d->stream[t];
    const uint64_t number = ++d->mem.op_at_hand;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        struct slot *s = cursor_slot(d, d->ex->learnt.rec.operands[k].buf);
        if (!s)
            return -ENODATA;
        s->needed_by = number;
    }
    bool redirected = false;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
        struct slot *s = cursor_slot(d, w->buf);
        bool makes = rec_makes(w);
        if (w->mode != REC_WRITE && w->mode != REC_SIDE && d->ex->now.res[w->buf] != d->ex->plan->in_ver[k])
            return -ENODATA;
        if (makes && s->state == SLOT_LOST)
            s->state = SLOT_EMPTY;
        int r = ready_slot(d, s, t);
        if (r)
            return r;
        r = fence_wait(d, t, &s->users); /* the program has ordered its own op behind these users, not this replay */
        if (!r && makes)
            r = fence_wait(d, t, &s->unseen);
        if (!r && makes && d->ex->now.res[w->buf] == d->ex->plan->out_ver[k])
            r = compare_set_aside(d, w->buf, s, t); /* the value is still there: it is made once more beside another output */
        if (r)
            return r;
        if (makes && s->host)
            swap_discard(d, s);
        if ((w->mode == REC_SIDE || d->ex->map.side_scratch[k]) && op.kind == OP_KERNEL) {
            if (!redirected)
                memcpy(args, op.args, op.arg_bytes);
            redirected = true;
            if ((r = redirect(d, &op, k, args)))
                return r;
        }
    }
    /* the replay may change inputs that it reads in place, for certain data: these inputs are hashed now and then */
    int e = verify_inputs(d, i, t, false);
    if (!e)
        e = verify_replays(d, i);
    if (!e)
        e = compare_fill_before(d, i, t);
    if (e)
        return e;
    nvtx_push("replay", o->name, 0);
    int r = op_replay_drv(d, &op, redirected ? args : NULL);
    nvtx_pop();
    if (r == CUDA_SUCCESS && unmapped_on(d))
        r = d->ex->now.code = unmapped_look_drv(d, o->name, op.stream);
    if (r != CUDA_SUCCESS)
        return -EIO;
    d->st.replays++;
    uint64_t tick = ++d->mem.tick;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
        struct slot *s = cursor_slot(d, w->buf);
        s->use_tick = tick;
        /* The program knows nothing of this replay: the next user of a slot that it wrote, or writer of a slot that it read, waits for it. */
        fence_add(d, rec_makes(w) ? &s->ready : &s->unseen, t);
        if (rec_makes(w) && !rt_check_plan(d, d->ex->plan->first_val[w->buf] + d->ex->plan->out_ver[k] < d->ex->plan->first_val[w->buf + 1]))
            return -EIO;
        if (rec_makes(w)) {
            d->ex->now.res[w->buf] = cursor_matters(d, w->buf, d->ex->plan->out_ver[k]) ? d->ex->plan->out_ver[k] : -1; /* -1: a version that nobody uses is never compared */
            s->written = true;
            s->owed |= !s->live;
        }
    }
    if (redirected)
        fence_add(d, &d->ex->now.scratch_users, t);
    if ((e = verify_inputs(d, i, t, true)))
        return e;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
        if (!rec_makes(w) || !cursor_matters(d, w->buf, d->ex->plan->out_ver[k]))
            continue;
        struct slot *s = cursor_slot(d, w->buf);
        e = compare_must(d) ? compare_rebuilt(d, i, w, d->ex->plan->out_ver[k], s) : verify_after(d, i, k, s, t);
        if (e)
            return e;
    }
    return 0;
}
