/* The steps of a plan: replay, drop, offload, release, fetch; and what the recorded iteration frees. */
#include "policy/learn/hashing.h"
#include "policy/plan/unmapped.h"
#include "policy/plan/verify.h"
#include "policy/process/nvtx.h"
#include "tracer/plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rebuilt values are compared with a copy on the host: all of them in rehearsal and under --verify always. In between, device
 * hashes do it in turn (verify.c). */
static bool must_save(struct device *d, int32_t b, int32_t v)
{
    return d->ex->remade[d->ex->first_val[b] + v] && (d->mode == MODE_REHEARSE || d->cfg->verify == VERIFY_ALWAYS);
}

/* The value may go: it is on the host if it must be compared. What memory was too short to set aside is not dropped. */
static int set_aside_to_compare(struct device *d, int32_t b, struct slot *s, unsigned t)
{
    if (d->ex->res[b] < 0 || s->state != SLOT_RESIDENT)
        return 0;
    if (d->mode == MODE_ENFORCE && d->cfg->verify == VERIFY_SAMPLE)
        return verify_before(d, b, d->ex->res[b], s, t);
    int r = must_save(d, b, d->ex->res[b]) ? saved_put(d, b, d->ex->res[b], s) : 0;
    if (r)
        log_once(SAY_WARN, "a value of %s could not be set aside for comparison (%s): it is not dropped, the plan waits; more host "
                 "memory (--host-swap) helps", rt_size(s->bytes).text, strerror(-r));
    return r;
}

int exec_set_aside(struct device *d, uint32_t at, unsigned t)
{
    const struct rec_op *o = &d->ex->rec.ops[at];
    int r = 0;
    for (uint32_t k = o->first; k < o->first + o->n && !r; k++) {
        int32_t b = d->ex->rec.operands[k].buf;
        struct slot *s = exec_slot(d, b);
        if (s && d->ex->rec.operands[k].mode != REC_READ)
            r = set_aside_to_compare(d, b, s, t);
    }
    return r ? r : verify_flush(d);
}

/* Some value of it is compared in this iteration. */
static bool is_compared(const struct device *d, int32_t b)
{
    bool any = d->mode == MODE_REHEARSE || d->cfg->verify == VERIFY_ALWAYS;
    for (int32_t value = d->ex->first_val[b]; value < d->ex->first_val[b + 1] && !any; value++)
        any = d->ex->remade[value] && verify_has_turn(d, value);
    return any;
}

static bool begins_compared(const struct device *d, uint32_t at, const struct rec_operand *w)
{
    return w->mode == REC_WRITE && d->ex->partial[w->buf] && d->ex->rec.bufs[w->buf].born == (int32_t)at && is_compared(d, w->buf);
}

bool exec_begins_compared(const struct device *d, uint32_t at)
{
    const struct rec_op *o = &d->ex->rec.ops[at];
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (begins_compared(d, at, &d->ex->rec.operands[k]))
            return true;
    return false;
}

int exec_fill_before(struct device *d, uint32_t at, unsigned t)
{
    enum { ANYTHING = 0x3c }; /* a finite number in every format */
    const struct rec_op *o = &d->ex->rec.ops[at];
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct slot *s = begins_compared(d, at, &d->ex->rec.operands[k]) ? exec_slot(d, d->ex->rec.operands[k].buf) : NULL;
        if (s && s->state == SLOT_RESIDENT && d->drv->cuMemsetD8Async(s->va, ANYTHING, s->bytes, d->stream[t]) != CUDA_SUCCESS)
            return -EIO;
    }
    return 0;
}

void exec_take_away(struct device *d, int32_t b)
{
    struct slot *s = exec_slot(d, b);
    swap_discard(d, s);
    if (s->state == SLOT_RESIDENT && s->kind == SLOT_LARGE)
        d->st.evictions += s->live;
    mem_unback(d, s, s->live ? SLOT_LOST : SLOT_EMPTY);
    d->ex->res[b] = -1;
}

/* The slot of a buffer that a step drops. NULL: it stays: what is small, or pinned, where it is; so does what the plan would not make again. */
static struct slot *slot_to_drop(struct device *d, int32_t b)
{
    struct slot *s = exec_slot(d, b);
    return s && s->live && (s->kind != SLOT_LARGE || s->pins || d->ex->stays[b]) ? NULL : s;
}

/* Steps [from, to), all of them drops. */
static int steps_drop(struct device *d, uint32_t from, uint32_t to, unsigned t)
{
    int r = 0;
    for (uint32_t i = from; i < to && !r; i++) {
        struct slot *s = slot_to_drop(d, d->ex->steps[i].id);
        r = s ? set_aside_to_compare(d, d->ex->steps[i].id, s, t) : 0;
    }
    if (r || (r = verify_flush(d)))
        return r;
    for (uint32_t i = from; i < to; i++)
        if (slot_to_drop(d, d->ex->steps[i].id))
            exec_take_away(d, d->ex->steps[i].id);
    return 0;
}

/* Only bytes that are defined count: the rest nobody wrote. */
static bool equal_where_defined(const struct record *r, const struct rec_operand *w, const unsigned char *x, const unsigned char *y)
{
    struct rec_range whole;
    uint32_t n;
    const struct rec_range *range = record_comparable(r, w, &n, &whole);
    for (uint32_t i = 0; i < n; i++)
        if (memcmp(x + range[i].from, y + range[i].from, range[i].to - range[i].from))
            return false;
    return true;
}

/* The device holds byte for byte what was set aside. False: perhaps not, or not in what nobody has written. Only where this does not suffice is all
 * of it brought to the host, which takes a hundred times as long. */
static bool equal_by_hash(struct device *d, const struct saved_value *want, const struct slot *s)
{
    const struct hash_range all = {s->va, s->bytes};
    uint64_t h[2];
    return want->hashed && !hashing_now(d, &all, 1, h) && hashing_same(h, want->hash);
}

static bool equal_on_host(struct device *d, const struct rec_operand *w, const struct saved_value *want, const struct slot *s, bool *read)
{
    void *got = malloc(s->bytes);
    *read = got && d->drv->cuMemcpyDtoH_v2(got, s->va, s->bytes) == CUDA_SUCCESS;
    const bool same = *read && equal_where_defined(&d->ex->rec, w, got, want->block->p);
    free(got);
    return same;
}

/* What the replay of `op` made is compared with what was set aside; where it cannot be compared, or differs, the old value
 * comes back and the new one never counts. */
static int check_rebuilt(struct device *d, uint32_t op, const struct rec_operand *w, int32_t v, struct slot *s)
{
    int32_t b = w->buf;
    struct saved_value *want = saved_find(d, b, v);
    d->ex->rebuilt_now++;
    if (!want) {
        log_say(SAY_DEBUG, "op %u (%s): version %d of buffer %d was rebuilt with nothing to compare it with", op, d->ex->rec.ops[op].name, v, b);
        return 0;
    }
    bool read = d->drv->cuCtxSynchronize() == CUDA_SUCCESS;
    const bool same = read && (equal_by_hash(d, want, s) || equal_on_host(d, w, want, s, &read));
    d->st.verify_checked += read;
    d->ex->compared_now += read;
    if (same)
        return 0;
    if (read) {
        d->st.verify_failed++;
        log_say(d->mode == MODE_REHEARSE ? SAY_INFO : SAY_ERROR,
                "the replay of op %u (%s) differed from the original; its value is restored and it will not be replayed again",
                op, PLAIN_IN_LINE(d->ex->rec.ops[op].name));
        if (!d->ex->op_banned[op]) {
            d->ex->op_banned[op] = 1;
            d->ex->bans++;
        }
    }
    return saved_restore(d, want, s);
}

static bool must_compare(struct device *d) { return d->mode == MODE_REHEARSE || d->cfg->verify == VERIFY_ALWAYS || d->ex->saved; }

int exec_keep_sides(struct device *d, uint32_t at, unsigned t)
{
    const struct rec_op *o = &d->ex->rec.ops[at];
    bool any = false;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct slot *s = exec_slot(d, d->ex->rec.operands[k].buf);
        if (!d->ex->side_saved[k] || !s || s->state != SLOT_RESIDENT)
            continue;
        if (fence_wait(d, t, &d->ex->scratch_users) || fence_wait(d, t, &s->ready) ||
            d->drv->cuMemcpyDtoDAsync_v2(d->ex->side_saved[k], s->va, s->bytes, d->stream[t]) != CUDA_SUCCESS)
            return -EIO;
        d->ex->side_is_saved[k] = any = true;
    }
    if (any)
        fence_add(d, &d->ex->scratch_users, t);
    return 0;
}

/* Operand k of a replay of `op` goes to scratch, which starts as the op found the buffer, or, where that is a workspace, as it is. */
static int redirect(struct device *d, const struct rt_op *op, uint32_t k, unsigned char *args)
{
    const struct rec_operand *w = &d->ex->rec.operands[k];
    const struct slot *s = exec_slot(d, w->buf);
    const CUdeviceptr scratch = d->ex->side_scratch[k], saved = d->ex->side_saved[k];
    CUdeviceptr word;
    memcpy(&word, op->args + w->offset, 8);
    if (word - s->va > s->bytes)
        return 0; /* null now, or idle */
    if (saved && !d->ex->side_is_saved[k])
        return -ENODATA;
    if (!scratch || fence_wait(d, op->t, &d->ex->scratch_users) ||
        d->drv->cuMemcpyDtoDAsync_v2(scratch, saved ? saved : s->va, s->bytes, op->stream) != CUDA_SUCCESS)
        return -EIO;
    word = scratch + (word - s->va);
    memcpy(args + w->offset, &word, 8);
    return 0;
}

int exec_replay(struct device *d, uint32_t i, unsigned t)
{
    const struct rec_op *o = &d->ex->rec.ops[i];
    static unsigned char args[OP_MAX_ARG_BYTES] __attribute__((aligned(16)));
    struct rt_op op = d->ex->caps[i];
    if (args_are_unproved(d, i))
        return -ENODATA; /* no plan asks for it (proof_is_needless) */
    int own = stream_own(d, t);
    if (own)
        return own;
    op.t = t;
    op.stream = d->stream[t];
    uint64_t mark = ++d->mark;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        struct slot *s = exec_slot(d, d->ex->rec.operands[k].buf);
        if (!s)
            return -ENODATA;
        s->mark = mark;
    }
    bool redirected = false;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &d->ex->rec.operands[k];
        struct slot *s = exec_slot(d, w->buf);
        bool makes = rec_makes(w);
        if (w->mode != REC_WRITE && w->mode != REC_SIDE && d->ex->res[w->buf] != d->ex->in_ver[k])
            return -ENODATA;
        if (makes && s->state == SLOT_LOST)
            s->state = SLOT_EMPTY;
        int r = ready_slot(d, s, t);
        if (r)
            return r;
        r = fence_wait(d, t, &s->users); /* the program has ordered its own op behind these, not this replay */
        if (!r && makes)
            r = fence_wait(d, t, &s->unseen);
        if (!r && makes && d->ex->res[w->buf] == d->ex->out_ver[k])
            r = set_aside_to_compare(d, w->buf, s, t); /* still there: made once more beside another output */
        if (r)
            return r;
        if (makes && s->host)
            swap_discard(d, s);
        if ((w->mode == REC_SIDE || d->ex->side_scratch[k]) && op.kind == OP_KERNEL) {
            if (!redirected)
                memcpy(args, op.args, op.arg_bytes);
            redirected = true;
            if ((r = redirect(d, &op, k, args)))
                return r;
        }
    }
    /* what it reads from where it lies may be changed by it, for certain data: it is looked at now and then */
    int e = verify_inputs(d, i, t, false);
    if (!e)
        e = verify_replays(d, i);
    if (!e)
        e = exec_fill_before(d, i, t);
    if (e)
        return e;
    nvtx_push("replay", o->name, 0);
    int r = op_replay_drv(d, &op, redirected ? args : NULL);
    nvtx_pop();
    if (r == CUDA_SUCCESS && unmapped_on(d))
        r = d->ex->code = unmapped_look_drv(d, o->name, op.stream);
    if (r != CUDA_SUCCESS)
        return -EIO;
    d->st.replays++;
    uint64_t tick = ++d->tick;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &d->ex->rec.operands[k];
        struct slot *s = exec_slot(d, w->buf);
        s->use_tick = tick;
        /* The program knows nothing of this reader or writer: whoever comes next, or writes next, waits for it. */
        fence_add(d, rec_makes(w) ? &s->ready : &s->unseen, t);
        if (rec_makes(w)) {
            d->ex->res[w->buf] = exec_matters(d, w->buf, d->ex->out_ver[k]) ? d->ex->out_ver[k] : -1; /* else never compared */
            s->written = true;
            s->kept |= !s->live;
        }
    }
    if (redirected)
        fence_add(d, &d->ex->scratch_users, t);
    if ((e = verify_inputs(d, i, t, true)))
        return e;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &d->ex->rec.operands[k];
        if (!rec_makes(w) || !exec_matters(d, w->buf, d->ex->out_ver[k]))
            continue;
        struct slot *s = exec_slot(d, w->buf);
        e = must_compare(d) ? check_rebuilt(d, i, w, d->ex->out_ver[k], s) : verify_after(d, i, k, s, t);
        if (e)
            return e;
    }
    return 0;
}

static int step_offload(struct device *d, int32_t b)
{
    struct slot *s = exec_slot(d, b);
    if (!s || s->state != SLOT_RESIDENT || s->kind != SLOT_LARGE || s->host || s->pins)
        return 0;
    return swap_copy_out(d, s);
}

/* The compute stream waits for the copy; then the memory is free in its order. */
static int step_release(struct device *d, int32_t b, unsigned t)
{
    struct slot *s = exec_slot(d, b);
    if (!s || s->state != SLOT_RESIDENT || s->kind != SLOT_LARGE || s->pins)
        return 0;
    if (!s->host)
        return swap_out(d, s);
    int r = fence_wait(d, t, &s->host->busy);
    if (r)
        return r;
    mem_unback(d, s, SLOT_HOST);
    d->st.evictions++;
    return 0;
}

static int step_fetch(struct device *d, int32_t b)
{
    struct slot *s = exec_slot(d, b);
    /* the host copy stays: a later release needs no second offload */
    return s && s->state == SLOT_HOST ? swap_copy_in(d, s) : 0;
}

/* The recorded iteration freed b here. What the program freed before, the plan lets go now. */
int exec_die(struct device *d, int32_t b, unsigned t)
{
    struct slot *s = exec_slot(d, b);
    if (s && s->live)
        return 0; /* still held by the program: hold_for_longer() has seen to it */
    d->ex->cur[b] = -1;
    if (!s || d->ex->keep[b])
        return 0;
    int r = set_aside_to_compare(d, b, s, t);
    if (r || (r = verify_flush(d)))
        return r;
    swap_discard(d, s);
    mem_unback(d, s, SLOT_EMPTY);
    s->kept = false;
    d->ex->res[b] = -1;
    return 0;
}

/* Nothing refers to b any more, and the program has freed it: its slot is free for another tenant. */
static void let_go(struct device *d, int32_t b)
{
    struct slot *s = exec_slot(d, b);
    if (!s || s->live || d->ex->rec.bufs[b].dies < 0)
        return;
    swap_discard(d, s);
    mem_unback(d, s, SLOT_EMPTY);
    s->kept = false;
    s->plan_buf = -1;
    d->ex->bind[b] = -1;
    d->ex->res[b] = d->ex->cur[b] = -1;
    if (s->fixed_ord == ORD_OWED) {
        s->fixed_ord = ORD_NONE;
        mem_slot_free(d, s);
    }
}

/* A replay of the plan would make another version of what the program has not freed where the recorded iteration did. */
static bool spoils_what_stays(struct device *d, uint32_t op)
{
    const struct exec *ex = d->ex;
    for (uint32_t k = ex->rec.ops[op].first; k < ex->rec.ops[op].first + ex->rec.ops[op].n; k++) {
        const struct rec_operand *w = &ex->rec.operands[k];
        const struct slot *s = exec_slot(d, w->buf);
        if (rec_makes(w) && s && s->live && ex->stays[w->buf] && ex->out_ver[k] != ex->cur[w->buf])
            return true;
    }
    return false;
}

static int take_steps(struct device *d, uint32_t at, unsigned t)
{
    for (uint32_t i = d->ex->die_at[at]; i < d->ex->die_at[at + 1]; i++) {
        int r = exec_die(d, d->ex->die_list[i], t);
        if (r)
            return r;
    }
    for (uint32_t i = d->ex->step_at[at], n = d->ex->step_at[at + 1]; i < n;) {
        const struct plan_step *s = &d->ex->steps[i];
        const uint32_t first = i++;
        if (d->ex->elided[first] && d->mode != MODE_REHEARSE)
            continue;
        while (s->kind == PLAN_DROP && i < n && d->ex->steps[i].kind == PLAN_DROP)
            i++;
        int r = s->kind == PLAN_REPLAY ? spoils_what_stays(d, (uint32_t)s->id) ? -EBUSY : exec_replay(d, (uint32_t)s->id, t) : verify_flush(d);
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
    for (uint32_t i = d->ex->ref_at[at]; i < d->ex->ref_at[at + 1]; i++)
        let_go(d, d->ex->ref_list[i]);
    return 0;
}

/* What the recorded iteration frees before the op at `to`, and after the last one that came, the program has freed by now, or holds for
 * longer. Then it must be there from now on: the plan does not make it again, and what it can be made of is freed here, too. Before any
 * step is taken, and anything dies: what the plan makes again for holds alone it leaves out, but until here the program could have gone
 * another way. */
static int hold_for_longer(struct device *d, uint32_t to, unsigned t)
{
    for (uint32_t i = d->ex->die_at[d->ex->pos]; i < d->ex->die_at[to + 1]; i++) {
        const int32_t b = d->ex->die_list[i];
        const struct slot *s = exec_slot(d, b);
        if (!s || !s->live)
            continue;
        if (rebuild_owed(d, b)) {
            log_say(SAY_DEBUG, "op %u: buffer %d is held for longer, and made again", d->ex->pos, b);
            if (rebuild_one(d, b, t))
                return -ENODATA;
        }
        d->ex->stays[b] = true;
    }
    return 0;
}

/* The plan's last steps with them may have made another version than the program's. */
static bool held_are_there(struct device *d, uint32_t from, uint32_t to)
{
    for (uint32_t i = d->ex->die_at[from]; i < d->ex->die_at[to + 1]; i++)
        if (rebuild_owed(d, d->ex->die_list[i]))
            return false;
    return true;
}

int exec_pass(struct device *d, uint32_t to, unsigned t)
{
    const uint32_t from = d->ex->pos;
    int r = hold_for_longer(d, to, t);
    r = r ? r : verify_flush(d);
    while (!r && !(r = take_steps(d, d->ex->pos, t)) && d->ex->pos < to)
        d->ex->pos++;
    return r ? r : held_are_there(d, from, to) ? 0 : -EBUSY;
}
