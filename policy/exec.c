/* The plan in force. The program's ops are compared with the recorded iteration one by one; between two of them the
 * plan's steps are taken. Where the program does something else, exec_diverge() leaves the plan.
 *
 * A launch is decided in exec_op_drv(): match, steps, ready, capture, issue.
 */
#include "policy/run.h"
#include "policy/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct exec ex;

enum { LEFT_TOO_OFTEN = 12 };

/* ---- derived from the record ---------------------------------------------------------------------------------- */

int exec_index(void)
{
    const struct record *r = &ex.rec;
    uint32_t n = r->n_ops, nb = r->n_bufs;
    ex.in_ver = calloc(r->n_operands + 1, sizeof *ex.in_ver);
    ex.out_ver = calloc(r->n_operands + 1, sizeof *ex.out_ver);
    ex.first_val = calloc(nb + 2, sizeof *ex.first_val);
    ex.die_at = calloc(n + 3, sizeof *ex.die_at);
    ex.die_list = calloc(nb + 1, sizeof *ex.die_list);
    ex.last_ref = calloc(nb + 1, sizeof *ex.last_ref);
    ex.keep = calloc(nb + 1, sizeof *ex.keep);
    ex.rebuilt = calloc(nb + 1, sizeof *ex.rebuilt);
    ex.bind = calloc(nb + 1, sizeof *ex.bind);
    ex.res = calloc(nb + 1, sizeof *ex.res);
    ex.cur = calloc(nb + 1, sizeof *ex.cur);
    ex.op_banned = calloc(n + 1, sizeof *ex.op_banned);
    ex.side_scratch = calloc(r->n_operands + 1, sizeof *ex.side_scratch);
    int32_t *ver = calloc(nb + 1, sizeof *ver);
    if (!ex.in_ver || !ex.out_ver || !ex.first_val || !ex.die_at || !ex.die_list || !ex.last_ref || !ex.keep || !ex.rebuilt ||
        !ex.bind || !ex.res || !ex.cur || !ex.op_banned || !ex.side_scratch || !ver) {
        free(ver);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct rec_op *o = &r->ops[i];
        for (uint32_t k = o->first; k < o->first + o->n; k++) {
            const struct rec_operand *w = &r->operands[k];
            ex.in_ver[k] = w->mode == REC_WRITE ? -1 : ver[w->buf];
            ex.out_ver[k] = w->mode == REC_READ ? -1 : ver[w->buf] + 1;
        }
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            if (ex.out_ver[k] > ver[r->operands[k].buf])
                ver[r->operands[k].buf] = ex.out_ver[k];
    }
    int32_t total = 0;
    for (uint32_t b = 0; b < nb; b++) {
        ex.first_val[b] = total;
        total += ver[b] + 1;
    }
    ex.first_val[nb] = total;
    free(ver);
    ex.producer = malloc(((size_t)total + 1) * sizeof *ex.producer);
    if (!ex.producer)
        return -ENOMEM;
    for (int32_t i = 0; i <= total; i++)
        ex.producer[i] = -1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
            if (ex.out_ver[k] >= 0)
                ex.producer[ex.first_val[r->operands[k].buf] + ex.out_ver[k]] = (int32_t)i;
    for (uint32_t b = 0; b < nb; b++)
        if (r->bufs[b].dies >= 0)
            ex.die_at[r->bufs[b].dies + 1]++;
    for (uint32_t i = 1; i <= n + 1; i++)
        ex.die_at[i] += ex.die_at[i - 1];
    uint32_t *fill = calloc(n + 2, sizeof *fill);
    if (!fill)
        return -ENOMEM;
    for (uint32_t b = 0; b < nb; b++)
        if (r->bufs[b].dies >= 0)
            ex.die_list[ex.die_at[r->bufs[b].dies] + fill[r->bufs[b].dies]++] = (int32_t)b;
    free(fill);
    return 0;
}

void exec_clear(void)
{
    install_drop();
    saved_clear();
    for (uint32_t i = 0; i < ex.n_caps; i++)
        op_capture_free(&ex.caps[i]);
    free(ex.caps);
    plan_free(&ex.plan);
    record_clear(&ex.rec);
    free(ex.step_at);
    free(ex.steps);
    free(ex.in_ver);
    free(ex.out_ver);
    free(ex.first_val);
    free(ex.producer);
    free(ex.die_at);
    free(ex.die_list);
    free(ex.last_ref);
    free(ex.ref_at);
    free(ex.ref_list);
    free(ex.keep);
    free(ex.rebuilt);
    free(ex.op_banned);
    free(ex.side_scratch);
    free(ex.bind);
    free(ex.res);
    free(ex.cur);
    memset(&ex, 0, sizeof ex);
}

static void refer(int32_t b, int32_t at)
{
    if (ex.last_ref[b] < at)
        ex.last_ref[b] = at;
}

/* Buffers by the position of their last reference. */
static int list_last_refs(void)
{
    uint32_t n = ex.rec.n_ops, nb = ex.rec.n_bufs;
    free(ex.ref_at);
    free(ex.ref_list);
    ex.ref_at = calloc(n + 3, sizeof *ex.ref_at);
    ex.ref_list = calloc(nb + 1, sizeof *ex.ref_list);
    uint32_t *fill = calloc(n + 2, sizeof *fill);
    if (!ex.ref_at || !ex.ref_list || !fill) {
        free(fill);
        return -ENOMEM;
    }
    for (uint32_t b = 0; b < nb; b++)
        ex.ref_at[ex.last_ref[b] + 1]++;
    for (uint32_t i = 1; i <= n + 1; i++)
        ex.ref_at[i] += ex.ref_at[i - 1];
    for (uint32_t b = 0; b < nb; b++)
        ex.ref_list[ex.ref_at[ex.last_ref[b]] + fill[ex.last_ref[b]]++] = (int32_t)b;
    free(fill);
    return 0;
}

/* A hold asks that a buffer can be brought back, not that it is: replays whose results nothing but holds would use are
 * left out. Walked backwards; a value is needed if a real op or a needed replay consumes it, or it must survive. */
static int elide_for_holds(void)
{
    const struct record *r = &ex.rec;
    bool *needed = calloc((size_t)ex.first_val[r->n_bufs] + 1, sizeof *needed);
    if (!needed)
        return -ENOMEM;
#define VALUE(b, v) needed[ex.first_val[b] + (v)]
    for (uint32_t b = 0; b < r->n_bufs; b++)
        if (r->bufs[b].dies < 0)
            needed[ex.first_val[b + 1] - 1] = true;
    for (uint32_t at = r->n_ops + 1; at-- > 0;) {
        if (at < r->n_ops && !r->ops[at].hold)
            for (uint32_t k = r->ops[at].first; k < r->ops[at].first + r->ops[at].n; k++)
                if (ex.in_ver[k] >= 0)
                    VALUE(r->operands[k].buf, ex.in_ver[k]) = true;
        for (uint32_t i = ex.step_at[at + 1]; i-- > ex.step_at[at];) {
            struct plan_step *s = &ex.steps[i];
            if (s->kind != PLAN_REPLAY)
                continue;
            const struct rec_op *o = &r->ops[s->id];
            bool use = false;
            for (uint32_t k = o->first; k < o->first + o->n; k++)
                if (ex.out_ver[k] >= 0 && r->operands[k].mode != REC_SIDE)
                    use |= VALUE(r->operands[k].buf, ex.out_ver[k]);
            if (!use) {
                s->kind = PLAN_N_KINDS; /* taken as nothing */
                continue;
            }
            for (uint32_t k = o->first; k < o->first + o->n; k++)
                if (ex.in_ver[k] >= 0 && r->operands[k].mode != REC_SIDE)
                    VALUE(r->operands[k].buf, ex.in_ver[k]) = true;
        }
    }
#undef VALUE
    free(needed);
    return 0;
}

int exec_load_plan(const char *path)
{
    const struct record *r = &ex.rec;
    char err[400];
    plan_free(&ex.plan);
    if (plan_read(path, &ex.plan, err, sizeof err)) {
        log_say(SAY_WARN, "%s", err);
        return -EINVAL;
    }
    free(ex.step_at);
    free(ex.steps);
    ex.step_at = calloc(r->n_ops + 3, sizeof *ex.step_at);
    ex.steps = calloc(ex.plan.n_steps + 1, sizeof *ex.steps);
    if (!ex.step_at || !ex.steps)
        return -ENOMEM;
    memset(ex.keep, 0, r->n_bufs * sizeof *ex.keep);
    memset(ex.rebuilt, 0, r->n_bufs * sizeof *ex.rebuilt);
    for (uint32_t b = 0; b < r->n_bufs; b++)
        ex.last_ref[b] = r->bufs[b].dies < 0 ? (int32_t)r->n_ops : r->bufs[b].dies;
    uint32_t at = 0, n = 0;
    for (size_t i = 0; i < ex.plan.n_steps; i++) {
        struct plan_step s = ex.plan.steps[i];
        uint32_t bound = s.kind == PLAN_OP || s.kind == PLAN_REPLAY ? r->n_ops : r->n_bufs;
        if (s.id < 0 || (uint32_t)s.id >= bound || (s.kind == PLAN_OP && (uint32_t)s.id != at)) {
            log_say(SAY_WARN, "%s: step %zu does not fit the recorded iteration (%u ops, %u buffers): made for another program?",
                    path, i, r->n_ops, r->n_bufs);
            return -EINVAL;
        }
        if (s.kind == PLAN_OP) {
            ex.step_at[++at] = n;
            continue;
        }
        ex.steps[n++] = s;
        if (s.kind == PLAN_REPLAY) {
            if ((uint32_t)s.id >= at || r->ops[s.id].why_opaque)
                return -EINVAL;
            for (uint32_t k = r->ops[s.id].first; k < r->ops[s.id].first + r->ops[s.id].n; k++) {
                refer(r->operands[k].buf, (int32_t)at);
                ex.rebuilt[r->operands[k].buf] |= r->operands[k].mode == REC_WRITE || r->operands[k].mode == REC_RMW;
            }
        } else
            refer(s.id, (int32_t)at);
    }
    ex.step_at[r->n_ops + 1] = n;
    if (at != r->n_ops)
        return -EINVAL;
    if (elide_for_holds() || list_last_refs())
        return -ENOMEM;
    for (size_t i = 0; i < ex.plan.n_keep; i++)
        if (ex.plan.keep[i] >= 0 && (uint32_t)ex.plan.keep[i] < r->n_bufs)
            ex.keep[ex.plan.keep[i]] = true;
    ex.have_plan = true;
    ex.proved = false;
    return 0;
}

/* ---- saved values --------------------------------------------------------------------------------------------- */

struct saved_value *saved_find(int32_t b, int32_t v)
{
    struct saved_value *s = ex.saved;
    while (s && (s->buf != b || s->version != v))
        s = s->next;
    return s;
}

int saved_put(int32_t b, int32_t v, struct slot *s)
{
    if (saved_find(b, v))
        return 0;
    struct saved_value *n = calloc(1, sizeof *n);
    struct host_block *h = swap_host_get(s->bytes);
    if (!n || !h) {
        free(n);
        swap_host_put(h);
        return -ENOMEM;
    }
    swap_host_wait(h);
    stream_sync(s->uses_mask);
    if (s->avail_seq)
        stream_sync(1ull << s->avail_stream);
    if (rt.drv->cuMemcpyDtoH_v2(h->p, s->va, s->bytes) != CUDA_SUCCESS) {
        free(n);
        swap_host_put(h);
        return -EIO;
    }
    *n = (struct saved_value){.buf = b, .version = v, .block = h, .next = ex.saved};
    ex.saved = n;
    return 0;
}

int saved_restore(const struct saved_value *v, struct slot *s)
{
    stream_sync(s->uses_mask);
    return rt.drv->cuMemcpyHtoD_v2(s->va, v->block->p, s->bytes) == CUDA_SUCCESS ? 0 : -EIO;
}

void saved_clear(void)
{
    while (ex.saved) {
        struct saved_value *n = ex.saved->next;
        swap_host_put(ex.saved->block);
        free(ex.saved);
        ex.saved = n;
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static struct slot *slot_of(int32_t b) { return ex.bind[b] >= 0 ? &rt.slots[ex.bind[b]] : NULL; }

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
    struct slot *s = slot_of(b);
    if (!s || (s->kind != SLOT_LARGE && s->live))
        return 0; /* what is small stays where it is */
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
    op.t = t;
    op.stream = rt.stream[t];
    uint64_t mark = ++rt.mark, bit = 1ull << t;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        struct slot *s = slot_of(ex.rec.operands[k].buf);
        if (!s)
            return -ENODATA;
        s->mark = mark;
    }
    bool redirected = false;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &ex.rec.operands[k];
        struct slot *s = slot_of(w->buf);
        bool makes = w->mode == REC_WRITE || w->mode == REC_RMW;
        if (w->mode != REC_WRITE && w->mode != REC_SIDE && ex.res[w->buf] != ex.in_ver[k])
            return -ENODATA;
        if (makes && s->state == SLOT_LOST)
            s->state = SLOT_EMPTY;
        int r = ready_slot(s, t);
        if (r)
            return r;
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
        struct slot *s = slot_of(w->buf);
        s->uses_mask |= bit;
        s->use_tick = tick;
        if (w->mode == REC_WRITE || w->mode == REC_RMW) {
            ex.res[w->buf] = ex.out_ver[k];
            s->written = true;
            s->kept |= !s->live;
            if (rt.n_streams > STREAM_FIRST_PROGRAM + 1) {
                s->avail_stream = (uint8_t)t;
                s->avail_seq = rt.seq[t];
            }
        }
    }
    if (ex.saved)
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            if (ex.rec.operands[k].mode == REC_WRITE || ex.rec.operands[k].mode == REC_RMW)
                check_rebuilt(i, ex.rec.operands[k].buf, ex.out_ver[k], slot_of(ex.rec.operands[k].buf));
    return 0;
}

static int step_offload(int32_t b)
{
    struct slot *s = slot_of(b);
    if (!s || s->state != SLOT_RESIDENT || s->kind != SLOT_LARGE || s->host)
        return 0;
    struct host_block *h = swap_host_get(s->bytes);
    if (!h)
        return -ENOMEM;
    swap_host_order(STREAM_OUT, h);
    stream_order(STREAM_OUT, s->uses_mask | (s->avail_seq ? 1ull << s->avail_stream : 0));
    if (rt.drv->cuMemcpyDtoHAsync_v2(h->p, s->va, s->bytes, rt.stream[STREAM_OUT]) != CUDA_SUCCESS) {
        swap_host_put(h);
        return -EIO;
    }
    h->out_seq = stream_mark(STREAM_OUT);
    s->host = h;
    rt.st.swaps_out++;
    rt.st.bytes_out += s->bytes;
    return 0;
}

/* The compute stream waits for the copy; then the memory is free in its order. */
static int step_release(int32_t b, unsigned t)
{
    struct slot *s = slot_of(b);
    if (!s || s->state != SLOT_RESIDENT || s->kind != SLOT_LARGE)
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
    struct slot *s = slot_of(b);
    if (!s || s->state != SLOT_HOST)
        return 0;
    struct host_block *h = s->host;
    int r = mem_back(s, STREAM_IN);
    if (r)
        return r;
    swap_host_order(STREAM_IN, h);
    if (rt.drv->cuMemcpyHtoDAsync_v2(s->va, h->p, s->bytes, rt.stream[STREAM_IN]) != CUDA_SUCCESS)
        return -EIO;
    h->in_seq = stream_mark(STREAM_IN); /* the copy stays: a later release needs no second offload */
    s->avail_stream = STREAM_IN;
    s->avail_seq = rt.seq[STREAM_IN];
    rt.st.swaps_in++;
    rt.st.bytes_in += s->bytes;
    return 0;
}

/* The recorded iteration freed b here. What the program freed before, the plan lets go now. */
static void step_die(int32_t b)
{
    struct slot *s = slot_of(b);
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
    struct slot *s = slot_of(b);
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

static int take_steps(uint32_t at, unsigned t)
{
    for (uint32_t i = ex.die_at[at]; i < ex.die_at[at + 1]; i++)
        step_die(ex.die_list[i]);
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

/* Holds are passed when the op after them comes (or the iteration ends). */
static int pass_holds(unsigned t)
{
    while (ex.pos < ex.rec.n_ops && ex.rec.ops[ex.pos].hold) {
        int r = take_steps(ex.pos, t);
        if (r)
            return r;
        ex.pos++;
    }
    return 0;
}

static bool only_holds_left(void)
{
    uint32_t i = ex.pos;
    while (i < ex.rec.n_ops && ex.rec.ops[i].hold)
        i++;
    return i == ex.rec.n_ops;
}

/* ---- the program's events ------------------------------------------------------------------------------------------ */

void exec_begin(void)
{
    const struct record *r = &ex.rec;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        ex.bind[b] = -1;
        ex.res[b] = ex.cur[b] = x->alloc_ord < 0 ? 0 : -1;
        if (x->alloc_ord < 0 && x->dies < 0) { /* persistent: the same allocation as ever, if it is still there */
            struct slot *s = &rt.slots[x->slot_id];
            if (s->live && s->serial == x->serial) {
                ex.bind[b] = (int32_t)s->id;
                s->plan_buf = (int32_t)b;
            }
        }
    }
    ex.pos = ex.alloc_k = 0;
    ex.ended = false;
    ex.swaps_before = rt.st.swaps_in + rt.st.swaps_out;
    ex.mem_calls_before = rt.st.mem_calls;
}

static void unbind_all(void)
{
    for (uint32_t b = 0; b < ex.rec.n_bufs; b++) {
        struct slot *s = slot_of((int32_t)b);
        if (!s)
            continue;
        s->plan_buf = -1;
        ex.bind[b] = -1;
        if (s->live)
            continue;
        swap_discard(s); /* freed by the program, kept for the plan: no longer */
        mem_unback(s, SLOT_EMPTY, 0);
        s->kept = false;
        if (s->fixed_ord == -2) {
            s->fixed_ord = -1;
            mem_slot_free(s);
        }
    }
}

static void replan_without_banned(void)
{
    for (uint32_t i = 0; i < ex.rec.n_ops; i++)
        if (ex.op_banned[i] && !ex.rec.ops[i].why_opaque)
            ex.rec.ops[i].why_opaque = "its replay differed";
    ex.have_plan = false;
}

static int iteration_end(void)
{
    unsigned t = ex.caps[0].t;
    int r = pass_holds(t);
    if (!r)
        r = take_steps(ex.rec.n_ops, t);
    bool lost = r != 0;
    for (uint32_t b = 0; b < ex.rec.n_bufs && !lost; b++) {
        struct slot *s = slot_of((int32_t)b);
        lost = s && s->live && s->state == SLOT_LOST;
    }
    if (lost && rebuild_all(t))
        ex.code = CUDA_ERROR_UNKNOWN;
    ex.left_in_a_row = 0;
    rt.st.iterations++;
    if (rt.status)
        status_store(&rt.status->iterations, rt.st.iterations);
    if (rt.mode == MODE_ENFORCE) {
        rt.st.iterations_enforced++;
        rt.st.mem_calls_enforced = rt.st.mem_calls - ex.mem_calls_before;
        rt.st.swaps_enforced = rt.st.swaps_in + rt.st.swaps_out - ex.swaps_before;
        ex.verify_turn += rt.st.iterations_enforced % 16 == 0;
    }
    bool remapped = rt.st.mem_calls != ex.mem_calls_before;
    saved_clear();
    unbind_all();
    if (ex.bans) {
        replan_without_banned();
        ex.bans = 0;
    } else if (rt.mode == MODE_REHEARSE && !lost) {
        ex.proved = true;
        stats_steady_from_here();
    }
    if (remapped)
        install_repair();
    return r;
}

void exec_turn(void)
{
    if (!ex.ended)
        return;
    iteration_end();
    if (!ex.have_plan) {
        rt.mode = MODE_PLAN; /* learn.c asks the planner again */
        return;
    }
    rt.mode = ex.proved ? MODE_ENFORCE : MODE_REHEARSE;
    exec_begin();
    stats_boundary(ex.caps[0].t, rt.mode == MODE_ENFORCE);
}

struct slot *exec_alloc(uint64_t bytes)
{
    const struct record *r = &ex.rec;
    if (ex.alloc_k >= r->n_allocs || r->allocs[ex.alloc_k].bytes != bytes ||
        r->allocs[ex.alloc_k].before_op < (int32_t)ex.pos)
        return NULL;
    uint32_t k = ex.alloc_k++;
    int32_t b = r->allocs[k].buf;
    struct slot *s = ex.alloc_slot[k] >= 0 ? &rt.slots[ex.alloc_slot[k]] : NULL;
    if (s && (s->live || s->kept || s->plan_buf >= 0))
        s = NULL; /* its last tenant is late */
    if (s)
        mem_slot_revive(s, bytes);
    else if (mem_slot_new(bytes, &s))
        return NULL;
    if (b >= 0) {
        s->plan_buf = b;
        ex.bind[b] = (int32_t)s->id;
    }
    return s;
}

bool exec_free(struct slot *s)
{
    int32_t b = s->plan_buf;
    if (b < 0 || ex.bind[b] != (int32_t)s->id)
        return false;
    if (ex.last_ref[b] < (int32_t)ex.pos || (ex.last_ref[b] == (int32_t)ex.pos && !ex.keep[b] && !ex.rebuilt[b])) {
        ex.bind[b] = -1;
        ex.cur[b] = ex.res[b] = -1;
        if (s->fixed_ord == -2)
            s->fixed_ord = -1;
        return false;
    }
    /* the plan still needs it: its memory, its content, or at least its address */
    rt.live_bytes -= s->bytes;
    s->live = false;
    if (s->fixed_ord == -1)
        s->fixed_ord = -2;
    bool now = ex.rec.bufs[b].dies >= 0 && ex.rec.bufs[b].dies <= (int32_t)ex.pos;
    s->kept = true;
    if (now)
        step_die(b);
    return true;
}

/* Buffers whose allocation the plan did not see: made in the iteration before, or just before the plan was resumed. */
static bool may_bind_late(const struct rec_buf *x)
{
    if (x->alloc_ord < 0)
        return x->dies >= 0;
    return (uint32_t)x->alloc_ord < ex.alloc_k && ex.rec.allocs[x->alloc_ord].before_op == 0;
}

/* Does the program's op correspond to the recorded one? Unknown buffers are bound on the way. NULL: yes. */
static const char *match(const struct rt_op *op)
{
    const struct rec_op *o = &ex.rec.ops[ex.pos];
    if (op->sig != o->sig)
        return "another op";
    uint32_t k = o->first, end = o->first + o->n, i = 0;
    while (k < end || i < op->n_operands) {
        const struct rec_operand *w = k < end ? &ex.rec.operands[k] : NULL;
        const struct rt_operand *a = i < op->n_operands ? &op->operands[i] : NULL;
        if (w && (!a || w->offset < a->offset)) {
            if (!(o->why_opaque && w->mode == REC_READ))
                return "a buffer less";
            k++;
            continue;
        }
        if (!w || a->offset < w->offset) {
            /* a pointer that the recording did not have: harmless if it is only looked at */
            if (op->kind != OP_KERNEL || !o->why_opaque || probe_offset_changes(op->func, a->offset))
                return "a buffer more";
            i++;
            continue;
        }
        int32_t b = w->buf;
        const struct rec_buf *x = &ex.rec.bufs[b];
        if (ex.bind[b] < 0 && a->slot->plan_buf < 0 && a->slot->bytes == x->bytes && may_bind_late(x)) {
            ex.bind[b] = (int32_t)a->slot->id;
            a->slot->plan_buf = b;
        }
        if (ex.bind[b] != (int32_t)a->slot->id) {
            if (!(o->why_opaque && w->mode == REC_READ))
                return "another buffer";
        } else if (w->mode == REC_WRITE && a->delta != w->delta)
            return "another place in a buffer";
        k++;
        i++;
    }
    return NULL;
}

/* Recorded modes for the operands at hand, so that ready_done knows what was written. */
static void note_modes(struct rt_op *op, const struct rec_op *o)
{
    uint32_t k = o->first, end = o->first + o->n;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        while (k < end && ex.rec.operands[k].offset < op->operands[i].offset)
            k++;
        op->operands[i].mode = k < end && ex.rec.operands[k].offset == op->operands[i].offset ? ex.rec.operands[k].mode : REC_READ;
    }
}

int exec_op_drv(struct rt_op *op)
{
    uint32_t lost = 0;
    const char *why = pass_holds(op->t) ? "a step of the plan could not be taken" : NULL;
    const struct rec_op *o = &ex.rec.ops[ex.pos];
    if (!why)
        why = match(op);
    if (!why && take_steps(ex.pos, op->t))
        why = "a step of the plan could not be taken";
    if (!why) {
        note_modes(op, o);
        for (uint32_t i = 0; i < op->n_operands; i++) /* a copy to the host still reads what this op changes */
            if (op->operands[i].mode != REC_READ && op->operands[i].slot->host && op->operands[i].slot->state == SLOT_RESIDENT)
                swap_host_order(op->t, op->operands[i].slot->host);
        for (uint32_t i = 0; i < op->n_operands; i++) /* wholly overwritten: what it held is not needed */
            if (op->operands[i].mode == REC_WRITE && op->operands[i].slot->state == SLOT_LOST)
                op->operands[i].slot->state = SLOT_EMPTY;
        int r = ready_op(op, &lost);
        if (r == -ENODATA)
            why = "a tensor that the plan holds evicted";
        else if (r)
            why = "memory was short";
    }
    if (why || op_capture(&ex.caps[ex.pos], op)) {
        exec_diverge(why ? why : "host memory was short", op);
        if (ex.code)
            return ex.code;
        return learn_op_drv(op);
    }
    int r = op_issue_drv(op);
    ready_done(op, false);
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (ex.out_ver[k] >= 0)
            ex.res[ex.rec.operands[k].buf] = ex.cur[ex.rec.operands[k].buf] = ex.out_ver[k];
    ex.pos++;
    ex.ended = only_holds_left();
    return r;
}

void exec_diverge(const char *why, const struct rt_op *op)
{
    ex.left_at = ex.pos;
    ex.left_op = rt.op_count;
    log_say(SAY_INFO, "iteration %llu left the plan at op %u of %u (%s): %s", (unsigned long long)rt.st.iterations, ex.pos,
            ex.rec.n_ops, op && op->kind == OP_KERNEL ? op->func->name : "no kernel", why);
    rt.st.divergences++;
    if (rebuild_all(op ? op->t : STREAM_FIRST_PROGRAM)) {
        log_say(SAY_ERROR, "a tensor could not be rebuilt after the program left the recorded iteration: it is stopped here");
        ex.code = CUDA_ERROR_UNKNOWN;
    }
    saved_clear();
    unbind_all();
    ex.ended = false;
    rt.mode = MODE_FALLBACK;
    learn_reset();
    if (++ex.left_in_a_row >= LEFT_TOO_OFTEN && !ex.code) {
        log_say(SAY_INFO, "the plan was left %u times without one whole iteration: the program has changed, learning anew", ex.left_in_a_row);
        exec_clear();
        rt.mode = MODE_OBSERVE;
    }
}

void exec_resume(void)
{
    exec_begin();
    while (ex.alloc_k < ex.rec.n_allocs && ex.rec.allocs[ex.alloc_k].before_op == 0)
        ex.alloc_k++;
    rt.mode = ex.proved ? MODE_ENFORCE : MODE_REHEARSE;
    stats_boundary(ex.caps[0].t, rt.mode == MODE_ENFORCE);
}

bool exec_may_resume(const struct rt_op *op)
{
    if (!ex.have_plan || !ex.installed || ex.code || op->sig != ex.rec.ops[0].sig)
        return false;
    if (ex.left_op == rt.op_count && ex.left_at == 0)
        return false; /* this very op was not it */
    if (rt.live_bytes != ex.boundary_live_bytes)
        return false;
    uint32_t i = 0; /* and it works on the same long-lived buffers */
    for (uint32_t k = ex.rec.ops[0].first; k < ex.rec.ops[0].first + ex.rec.ops[0].n; k++) {
        const struct rec_operand *w = &ex.rec.operands[k];
        const struct rec_buf *x = &ex.rec.bufs[w->buf];
        while (i < op->n_operands && op->operands[i].offset < w->offset)
            i++;
        if (i == op->n_operands || op->operands[i].offset != w->offset)
            return false;
        const struct slot *s = op->operands[i].slot;
        if (s->bytes != x->bytes || (x->alloc_ord < 0 && x->dies < 0 && (s->id != x->slot_id || s->serial != x->serial)))
            return false;
    }
    return true;
}
