/* The steps of a plan: replay, drop, offload, release, fetch; and what the recorded iteration frees. */
#include "policy/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool must_save(int32_t b)
{
    if (!ex.rebuilt[b])
        return false;
    if (rt.mode == MODE_REHEARSE || rt.cfg.verify == VERIFY_ALWAYS)
        return true;
    /* a sample: one buffer in turn, every so many iterations */
    return rt.cfg.verify == VERIFY_SAMPLE && rt.st.iterations_enforced % 16 == 15 &&
           ex.verify_turn % ex.rec.n_bufs == (uint32_t)b;
}

/* Takes b's memory away; what was in it is lost until a replay rebuilds it. */
static int take_away(int32_t b)
{
    struct slot *s = exec_slot(b);
    if (!s || ((s->kind != SLOT_LARGE || s->pins) && s->live))
        return 0; /* what is small, or pinned, stays where it is */
    if (ex.res[b] >= 0 && s->state == SLOT_RESIDENT && must_save(b))
        saved_put(b, ex.res[b], s);
    swap_discard(s);
    if (s->state == SLOT_RESIDENT && s->kind == SLOT_LARGE)
        rt.st.evictions += s->live;
    mem_unback(s, s->live ? SLOT_LOST : SLOT_EMPTY, 0);
    ex.res[b] = -1;
    return 0;
}

static void check_rebuilt(uint32_t op, int32_t b, int32_t v, struct slot *s)
{
    struct saved_value *want = saved_find(b, v);
    if (!want)
        return;
    void *got = malloc(s->bytes);
    if (!got)
        return;
    rt.drv->cuCtxSynchronize();
    if (rt.drv->cuMemcpyDtoH_v2(got, s->va, s->bytes) == CUDA_SUCCESS) {
        rt.st.verify_checked++;
        if (memcmp(got, want->block->p, s->bytes)) {
            rt.st.verify_failed++;
            saved_restore(want, s);
            log_say(rt.mode == MODE_REHEARSE ? SAY_INFO : SAY_ERROR,
                    "the replay of op %u (%s) differed from the original; its value is restored and it will not be replayed again",
                    op, ex.rec.ops[op].name);
            if (!ex.op_banned[op]) {
                ex.op_banned[op] = 1;
                ex.bans++;
            }
        }
    }
    free(got);
}

int exec_replay(uint32_t i, unsigned t)
{
    const struct rec_op *o = &ex.rec.ops[i];
    static unsigned char args[OP_MAX_ARG_BYTES] __attribute__((aligned(16)));
    struct rt_op op = ex.caps[i];
    stream_own(t);
    op.t = t;
    op.stream = rt.stream[t];
    uint64_t mark = ++rt.mark, bit = 1ull << t;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        struct slot *s = exec_slot(ex.rec.operands[k].buf);
        if (!s)
            return -ENODATA;
        s->mark = mark;
    }
    bool redirected = false, many_streams = rt.n_streams > STREAM_FIRST_PROGRAM + 1;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &ex.rec.operands[k];
        struct slot *s = exec_slot(w->buf);
        bool makes = w->mode == REC_WRITE || w->mode == REC_RMW;
        if (w->mode != REC_WRITE && w->mode != REC_SIDE && ex.res[w->buf] != ex.in_ver[k])
            return -ENODATA;
        if (makes && s->state == SLOT_LOST)
            s->state = SLOT_EMPTY;
        int r = ready_slot(s, t);
        if (r)
            return r;
        if (many_streams)
            stream_order(t, s->uses_mask); /* the program has ordered its own op behind these, not this replay */
        if (makes && s->host) {
            swap_host_order(t, s->host);
            swap_discard(s);
        }
        if (w->mode == REC_SIDE && op.kind == OP_KERNEL) {
            if (!redirected)
                memcpy(args, op.args, op.arg_bytes);
            redirected = true;
            /* the scratch starts as the buffer is: it may be a semaphore or an index */
            CUdeviceptr scratch = ex.side_scratch[k], word;
            stream_order(t, 1ull << ex.scratch_stream);
            ex.scratch_stream = t;
            if (!scratch || rt.drv->cuMemcpyDtoDAsync_v2(scratch, s->va, s->bytes, op.stream) != CUDA_SUCCESS)
                return -EIO;
            memcpy(&word, op.args + w->offset, 8);
            word = scratch + (word - s->va);
            memcpy(args + w->offset, &word, 8);
        }
    }
    int r = op_replay_drv(&op, redirected ? args : NULL);
    if (r != CUDA_SUCCESS)
        return -EIO;
    rt.st.replays++;
    uint64_t tick = ++rt.tick;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &ex.rec.operands[k];
        struct slot *s = exec_slot(w->buf);
        s->uses_mask |= bit;
        s->use_tick = tick;
        if (w->mode == REC_WRITE || w->mode == REC_RMW) {
            ex.res[w->buf] = ex.out_ver[k];
            s->written = true;
            s->kept |= !s->live;
        }
        if (many_streams) { /* the program knows nothing of this reader or writer: whoever comes next waits for it */
            s->avail_stream = (uint8_t)t;
            s->avail_seq = rt.seq[t];
        }
    }
    if (ex.saved)
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            if (ex.rec.operands[k].mode == REC_WRITE || ex.rec.operands[k].mode == REC_RMW)
                check_rebuilt(i, ex.rec.operands[k].buf, ex.out_ver[k], exec_slot(ex.rec.operands[k].buf));
    return 0;
}

static int step_offload(int32_t b)
{
    struct slot *s = exec_slot(b);
    if (!s || s->state != SLOT_RESIDENT || s->kind != SLOT_LARGE || s->host || s->pins)
        return 0;
    return swap_copy_out(s);
}

/* The compute stream waits for the copy; then the memory is free in its order. */
static int step_release(int32_t b, unsigned t)
{
    struct slot *s = exec_slot(b);
    if (!s || s->state != SLOT_RESIDENT || s->kind != SLOT_LARGE || s->pins)
        return 0;
    if (!s->host)
        return swap_out(s);
    int r = swap_host_order(t, s->host);
    s->stale_mask |= 1ull << STREAM_OUT;
    mem_unback(s, SLOT_HOST, 1ull << t);
    rt.st.evictions++;
    return r;
}

static int step_fetch(int32_t b)
{
    struct slot *s = exec_slot(b);
    /* the host copy stays: a later release needs no second offload */
    return s && s->state == SLOT_HOST ? swap_copy_in(s) : 0;
}

/* The recorded iteration freed b here. What the program freed before, the plan lets go now. */
void exec_die(int32_t b)
{
    struct slot *s = exec_slot(b);
    ex.cur[b] = -1;
    if (!s || s->live || ex.keep[b])
        return; /* still held by the program: it is late, its memory stays */
    if (must_save(b) && ex.res[b] >= 0 && s->state == SLOT_RESIDENT)
        saved_put(b, ex.res[b], s);
    swap_discard(s);
    mem_unback(s, SLOT_EMPTY, 0);
    s->kept = false;
    ex.res[b] = -1;
}

/* Nothing refers to b any more, and the program has freed it: its slot is free for another tenant. */
static void let_go(int32_t b)
{
    struct slot *s = exec_slot(b);
    if (!s || s->live || ex.rec.bufs[b].dies < 0)
        return;
    swap_discard(s);
    mem_unback(s, SLOT_EMPTY, 0);
    s->kept = false;
    s->plan_buf = -1;
    ex.bind[b] = -1;
    ex.res[b] = ex.cur[b] = -1;
    if (s->fixed_ord == -2) {
        s->fixed_ord = -1;
        mem_slot_free(s);
    }
}

int exec_take_steps(uint32_t at, unsigned t)
{
    for (uint32_t i = ex.die_at[at]; i < ex.die_at[at + 1]; i++)
        exec_die(ex.die_list[i]);
    for (uint32_t i = ex.step_at[at]; i < ex.step_at[at + 1]; i++) {
        const struct plan_step *s = &ex.steps[i];
        int r = s->kind == PLAN_REPLAY    ? exec_replay((uint32_t)s->id, t)
                : s->kind == PLAN_DROP    ? take_away(s->id)
                : s->kind == PLAN_OFFLOAD ? step_offload(s->id)
                : s->kind == PLAN_RELEASE ? step_release(s->id, t)
                : s->kind == PLAN_FETCH   ? step_fetch(s->id)
                                          : 0;
        if (r)
            return r;
    }
    for (uint32_t i = ex.ref_at[at]; i < ex.ref_at[at + 1]; i++)
        let_go(ex.ref_list[i]);
    return 0;
}
