/* The plan in force. The program's ops are compared with the recorded iteration one by one; between two of them the
 * plan's steps are taken (steps.c). Where the program does something else, exec_diverge() leaves the plan.
 *
 * A launch is decided in exec_op_drv(): match, steps, ready, capture, issue.
 */
#include "policy/learn/probe.h"
#include "policy/run.h"

#include <errno.h>
#include <string.h>

struct exec ex;

enum { LEFT_TOO_OFTEN = 12 };

/* Holds are passed when the op after them comes (or the iteration ends). */
static int pass_holds(unsigned t)
{
    while (ex.pos < ex.rec.n_ops && ex.rec.ops[ex.pos].hold) {
        int r = exec_take_steps(ex.pos, t);
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
        struct slot *s = exec_slot((int32_t)b);
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
        r = exec_take_steps(ex.rec.n_ops, t);
    bool lost = r != 0;
    for (uint32_t b = 0; b < ex.rec.n_bufs && !lost; b++) {
        struct slot *s = exec_slot((int32_t)b);
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
        s->pins += r->bufs[b].pinned;
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
        exec_die(b);
    return true;
}

/* Buffers whose allocation the plan did not see: made in the iteration before, or just before the plan was resumed. */
static bool may_bind_late(const struct rec_buf *x)
{
    if (x->alloc_ord < 0)
        return x->dies >= 0;
    return (uint32_t)x->alloc_ord < ex.alloc_k && ex.rec.allocs[x->alloc_ord].before_op == 0;
}

/* A small argument, no pointer, that has been the same so far is another one now: it may be a flag, and what the kernel does
 * with it was never measured. Those that vary from one iteration to the next (seeds, step counts) are known from rehearsal. */
static bool argument_surprises(const struct rt_op *op)
{
    const struct rt_op *last = &ex.caps[ex.pos];
    if (op->kind != OP_KERNEL || op->packed || !last->args || last->packed || last->func != op->func)
        return false;
    for (uint32_t i = 0; i < op->func->n_params && i < 64; i++) {
        uint32_t at = op->func->offset[i], n = op->func->size[i];
        if (n > 8 || !memcmp(op->args + at, last->args + at, n) || ex.varies[ex.pos] >> i & 1)
            continue;
        uint64_t now = 0, then = 0;
        memcpy(&now, op->args + at, n);
        memcpy(&then, last->args + at, n);
        if (mem_in_reservation(now) || mem_in_reservation(then) || foreign_lookup(now) || foreign_lookup(then))
            continue;
        if (rt.mode != MODE_REHEARSE)
            return true;
        ex.varies[ex.pos] |= 1ull << i;
    }
    return false;
}

/* Does the program's op correspond to the recorded one? Unknown buffers are bound on the way. NULL: yes. */
static const char *match(const struct rt_op *op)
{
    const struct rec_op *o = &ex.rec.ops[ex.pos];
    if (op->sig != o->sig)
        return "another op";
    if (!o->why_opaque && argument_surprises(op)) {
        ex.left_in_a_row += LEFT_TOO_OFTEN / 4; /* where it stays so, learn anew soon */
        return "another argument";
    }
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
        op->operands[i].mode = k < end && ex.rec.operands[k].offset == op->operands[i].offset ? ex.rec.operands[k].mode : REC_UNKNOWN;
        if (op->kind == OP_KERNEL && o->why_opaque && op->operands[i].mode == REC_READ)
            op->operands[i].mode = REC_UNKNOWN; /* nobody relies on what it was seen to do: a copy on the host may be old now */
    }
}

int exec_op_drv(struct rt_op *op)
{
    uint32_t lost = 0;
    const char *why = pass_holds(op->t) ? "a step of the plan could not be taken" : NULL;
    const struct rec_op *o = &ex.rec.ops[ex.pos];
    if (!why)
        why = match(op);
    if (!why && exec_take_steps(ex.pos, op->t))
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
