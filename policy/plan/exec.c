/* The plan in force. The program's ops are compared with the recorded iteration one by one; between two of them the
 * plan's steps are taken (steps.c). Where the program does something else, exec_diverge() leaves the plan.
 *
 * A launch is decided in exec_op_drv(): match, steps, ready, capture, issue.
 */
#include "policy/learn/probe.h"
#include "policy/plan/verify.h"

#include <errno.h>
#include <string.h>

/* Holds are passed when the op after them comes (or the iteration ends). */
static int pass_holds(struct device *d, unsigned t)
{
    while (d->ex->pos < d->ex->rec.n_ops && d->ex->rec.ops[d->ex->pos].hold) {
        int r = exec_take_steps(d, d->ex->pos, t);
        if (r)
            return r;
        d->ex->pos++;
    }
    return 0;
}

static bool only_holds_left(struct device *d)
{
    uint32_t i = d->ex->pos;
    while (i < d->ex->rec.n_ops && d->ex->rec.ops[i].hold)
        i++;
    return i == d->ex->rec.n_ops;
}

/* ---- the program's events ------------------------------------------------------------------------------------------ */

void exec_begin(struct device *d)
{
    const struct record *r = &d->ex->rec;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        d->ex->bind[b] = -1;
        d->ex->res[b] = d->ex->cur[b] = x->alloc_ord < 0 ? 0 : -1;
        if (x->alloc_ord < 0 && x->dies < 0) { /* persistent: the same allocation as ever, if it is still there */
            struct slot *s = &d->slots[x->slot_id];
            if (s->live && s->serial == x->serial) {
                d->ex->bind[b] = (int32_t)s->id;
                s->plan_buf = (int32_t)b;
            }
        }
    }
    d->ex->pos = d->ex->alloc_k = 0;
    d->ex->rebuilt_now = d->ex->compared_now = 0;
    d->ex->ended = false;
    d->ex->swaps_before = d->st.swaps_in + d->st.swaps_out;
    d->ex->mem_calls_before = d->st.mem_calls;
}

static void unbind_all(struct device *d)
{
    for (uint32_t b = 0; b < d->ex->rec.n_bufs; b++) {
        struct slot *s = exec_slot(d, (int32_t)b);
        if (!s)
            continue;
        s->plan_buf = -1;
        d->ex->bind[b] = -1;
        if (s->live)
            continue;
        swap_discard(d, s); /* freed by the program, kept for the plan: no longer */
        mem_unback(d, s, SLOT_EMPTY);
        s->kept = false;
        if (s->fixed_ord == -2) {
            s->fixed_ord = -1;
            mem_slot_free(d, s);
        }
    }
}

static void replan_without_banned(struct device *d)
{
    for (uint32_t i = 0; i < d->ex->rec.n_ops; i++)
        if (d->ex->op_banned[i] && !d->ex->rec.ops[i].why_opaque)
            d->ex->rec.ops[i].why_opaque = "its replay differed";
    d->ex->have_plan = false;
}

/* A plan that cannot be proved in so many iterations never will be: its values do not fit beside each other on the host. */
enum { REHEARSALS_MAX = 4 };

enum exec_end exec_end_iteration(struct device *d)
{
    struct exec *ex = d->ex;
    unsigned t = ex->caps[0].t;
    int r = pass_holds(d, t);
    if (!r)
        r = exec_take_steps(d, ex->rec.n_ops, t);
    bool lost = r != 0;
    for (uint32_t b = 0; b < ex->rec.n_bufs && !lost; b++) {
        struct slot *s = exec_slot(d, (int32_t)b);
        lost = s && s->live && s->state == SLOT_LOST;
    }
    if (lost && rebuild_all(d, t))
        ex->code = CUDA_ERROR_UNKNOWN;
    d->st.iterations++;
    d->whole_mode = d->mode;
    if (d->status)
        status_store(&d->status->iterations, d->st.iterations);
    if (d->mode == MODE_ENFORCE) {
        d->st.iterations_enforced++;
        d->st.mem_calls_enforced = d->st.mem_calls - ex->mem_calls_before;
        d->st.swaps_enforced = d->st.swaps_in + d->st.swaps_out - ex->swaps_before;
    }
    if (verify_end(d))
        ex->code = d->broken ? d->broken : CUDA_ERROR_UNKNOWN;
    bool remapped = d->st.mem_calls != ex->mem_calls_before;
    saved_clear(d);
    unbind_all(d);
    enum exec_end end = EXEC_END_WHOLE;
    if (ex->bans) {
        replan_without_banned(d);
        ex->bans = 0;
        end = EXEC_END_BANNED;
    } else if (d->mode == MODE_REHEARSE && !lost && ex->compared_now == ex->rebuilt_now) {
        ex->proved = true;
        stats_steady_from_here(d);
    } else if (d->mode == MODE_REHEARSE && ++ex->unproved_rounds == REHEARSALS_MAX)
        end = EXEC_END_UNPROVABLE;
    if (remapped && end == EXEC_END_WHOLE)
        install_repair(d);
    return end;
}

struct slot *exec_alloc(struct device *d, uint64_t bytes)
{
    const struct record *r = &d->ex->rec;
    if (d->ex->alloc_k >= r->n_allocs || r->allocs[d->ex->alloc_k].bytes != bytes ||
        r->allocs[d->ex->alloc_k].before_op < (int32_t)d->ex->pos)
        return NULL;
    uint32_t k = d->ex->alloc_k++;
    int32_t b = r->allocs[k].buf;
    struct slot *s = d->ex->alloc_slot[k] >= 0 ? &d->slots[d->ex->alloc_slot[k]] : NULL;
    if (s && (s->live || s->kept || s->plan_buf >= 0))
        s = NULL; /* its last tenant is late */
    if (s)
        mem_slot_revive(d, s, bytes);
    else if (mem_slot_new(d, bytes, &s))
        return NULL;
    if (b >= 0) {
        s->plan_buf = b;
        s->pins += r->bufs[b].pinned;
        d->ex->bind[b] = (int32_t)s->id;
    }
    return s;
}

bool exec_free(struct device *d, struct slot *s)
{
    int32_t b = s->plan_buf;
    if (b < 0 || d->ex->bind[b] != (int32_t)s->id)
        return false;
    if (d->ex->last_ref[b] < (int32_t)d->ex->pos || (d->ex->last_ref[b] == (int32_t)d->ex->pos && !d->ex->keep[b] && !d->ex->rebuilt[b])) {
        d->ex->bind[b] = -1;
        d->ex->cur[b] = d->ex->res[b] = -1;
        if (s->fixed_ord == -2)
            s->fixed_ord = -1;
        return false;
    }
    /* the plan still needs it: its memory, its content, or at least its address */
    d->live_bytes -= s->bytes;
    s->live = false;
    if (s->fixed_ord == -1)
        s->fixed_ord = -2;
    bool now = d->ex->rec.bufs[b].dies >= 0 && d->ex->rec.bufs[b].dies <= (int32_t)d->ex->pos;
    s->kept = true;
    if (now && exec_die(d, b, d->ex->caps[d->ex->pos ? d->ex->pos - 1 : 0].t))
        log_say(SAY_DEBUG, "buffer %d outlives its plan: it could not be set aside", b);
    return true;
}

/* Buffers whose allocation the plan did not see: made in the iteration before, or just before the plan was resumed. */
static bool may_bind_late(struct device *d, const struct rec_buf *x)
{
    if (x->alloc_ord < 0)
        return x->dies >= 0;
    return (uint32_t)x->alloc_ord < d->ex->alloc_k && d->ex->rec.allocs[x->alloc_ord].before_op == 0;
}

/* Does this word matter to the op? Where its arguments vary, idle words want proof again: they stay operands for this launch. */
static bool is_idle(const struct record *r, const struct rec_op *o, uint32_t offset)
{
    uint32_t a = o->idle, b = o->idle + o->n_idle;
    while (a < b) {
        uint32_t m = (a + b) / 2;
        if (r->idle_words[m] < offset)
            a = m + 1;
        else
            b = m;
    }
    return a < o->idle + o->n_idle && r->idle_words[a] == offset;
}

static void leave_idle_out(struct device *d, struct rt_op *op, const struct rec_op *o)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!is_idle(&d->ex->rec, o, op->operands[i].offset))
            op->operands[kept++] = op->operands[i];
    op->n_operands = kept;
}

/* A word points elsewhere than was recorded. In rehearsal, where it may be the stale entry of a struct, it is learnt anew, soon. */
static const char *other_word(struct device *d, const struct rt_op *op, uint32_t offset, const char *why)
{
    if (op->kind == OP_KERNEL && d->mode == MODE_REHEARSE && func_suspect(op->func, offset))
        d->ex->stale_word = true;
    log_say(SAY_DEBUG, "%s: argument byte %u: %s", op->kind == OP_KERNEL ? op->func->name : "no kernel", offset, why);
    return why;
}

/* Does the program's op correspond to the recorded one? Unknown buffers are bound on the way. NULL: yes. */
static const char *match(struct device *d, struct rt_op *op)
{
    const struct rec_op *o = &d->ex->rec.ops[d->ex->pos];
    if (op->sig != o->sig)
        return "another op";
    uint32_t byte = 0;
    enum args_change change = args_compare(d, op, &byte);
    if (change == ARGS_SURPRISE) {
        d->ex->proved = false;
        log_say(SAY_DEBUG, "%s: argument byte %u is another one", op->func->name, byte);
        return "another argument";
    }
    if (o->n_idle && change == ARGS_SAME)
        leave_idle_out(d, op, o);
    uint32_t k = o->first, end = o->first + o->n, i = 0;
    while (k < end || i < op->n_operands) {
        const struct rec_operand *w = k < end ? &d->ex->rec.operands[k] : NULL;
        const struct rt_operand *a = i < op->n_operands ? &op->operands[i] : NULL;
        if (w && (!a || w->offset < a->offset)) {
            if (!(o->why_opaque && w->mode == REC_READ))
                return other_word(d, op, w->offset, "a buffer less");
            k++;
            continue;
        }
        if (!w || a->offset < w->offset) {
            /* a pointer that the recording did not have: harmless if it is only looked at */
            if (op->kind != OP_KERNEL || ((!o->why_opaque || probe_offset_changes(op->func, a->offset)) && !is_idle(&d->ex->rec, o, a->offset)))
                return other_word(d, op, a->offset, "a buffer more");
            i++;
            continue;
        }
        int32_t b = w->buf;
        const struct rec_buf *x = &d->ex->rec.bufs[b];
        if (d->ex->bind[b] < 0 && a->slot->plan_buf < 0 && a->slot->bytes == x->bytes && may_bind_late(d, x)) {
            d->ex->bind[b] = (int32_t)a->slot->id;
            a->slot->plan_buf = b;
        }
        if (d->ex->bind[b] != (int32_t)a->slot->id) {
            if (!(o->why_opaque && w->mode == REC_READ))
                return other_word(d, op, w->offset, "another buffer");
        } else if (w->mode == REC_WRITE && a->delta != w->delta)
            return "another place in a buffer";
        k++;
        i++;
    }
    return NULL;
}

/* Recorded modes for the operands at hand, so that ready_done knows what was written. */
static void note_modes(struct device *d, struct rt_op *op, const struct rec_op *o)
{
    uint32_t k = o->first, end = o->first + o->n;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        while (k < end && d->ex->rec.operands[k].offset < op->operands[i].offset)
            k++;
        op->operands[i].mode = k < end && d->ex->rec.operands[k].offset == op->operands[i].offset ? d->ex->rec.operands[k].mode : REC_UNKNOWN;
        if (op->kind == OP_KERNEL && o->why_opaque && op->operands[i].mode == REC_READ)
            op->operands[i].mode = REC_UNKNOWN; /* nobody relies on what it was seen to do: a copy on the host may be old now */
    }
}

int exec_op_drv(struct device *d, struct rt_op *op, bool *left)
{
    uint32_t lost = 0;
    const char *why = pass_holds(d, op->t) ? "a step of the plan could not be taken" : NULL;
    const struct rec_op *o = &d->ex->rec.ops[d->ex->pos];
    if (!why)
        why = match(d, op);
    if (!why && (exec_take_steps(d, d->ex->pos, op->t) || exec_set_aside(d, o, op->t)))
        why = "a step of the plan could not be taken";
    if (!why) {
        note_modes(d, op, o);
        for (uint32_t i = 0; i < op->n_operands; i++) /* wholly overwritten: what it held is not needed */
            if (op->operands[i].mode == REC_WRITE && op->operands[i].slot->state == SLOT_LOST)
                op->operands[i].slot->state = SLOT_EMPTY;
        int r = ready_op(d, op, &lost);
        if (r == -ENODATA)
            why = "a tensor that the plan holds evicted";
        else if (r)
            why = "memory was short";
    }
    if (why || op_capture(&d->ex->caps[d->ex->pos], op)) {
        exec_diverge(d, why ? why : "host memory was short", op);
        *left = true;
        return d->ex->code;
    }
    int r = op_issue_drv(d, op);
    ready_done(d, op, false);
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (d->ex->out_ver[k] >= 0)
            d->ex->res[d->ex->rec.operands[k].buf] = d->ex->cur[d->ex->rec.operands[k].buf] = d->ex->out_ver[k];
    d->ex->pos++;
    d->ex->ended = only_holds_left(d);
    return r;
}

void exec_diverge(struct device *d, const char *why, const struct rt_op *op)
{
    d->ex->left_at = d->ex->pos;
    d->ex->left_op = d->op_count;
    log_say(SAY_INFO, "iteration %llu left the plan at op %u of %u (%s): %s", (unsigned long long)d->st.iterations, d->ex->pos,
            d->ex->rec.n_ops, op && op->kind == OP_KERNEL ? op->func->name : "no kernel", why);
    d->st.divergences++;
    if (rebuild_all(d, op ? op->t : STREAM_FIRST_PROGRAM)) {
        log_say(SAY_ERROR, "a tensor could not be rebuilt after the program left the recorded iteration: it is stopped here");
        d->ex->code = CUDA_ERROR_UNKNOWN;
    }
    verify_clear(d);
    saved_clear(d);
    unbind_all(d);
    d->ex->ended = false;
}

void exec_resume(struct device *d)
{
    exec_begin(d);
    while (d->ex->alloc_k < d->ex->rec.n_allocs && d->ex->rec.allocs[d->ex->alloc_k].before_op == 0)
        d->ex->alloc_k++;
}

bool exec_may_resume(struct device *d, const struct rt_op *op)
{
    if (!d->ex->have_plan || !d->ex->installed || d->ex->code || op->sig != d->ex->rec.ops[0].sig)
        return false;
    if (d->ex->left_op == d->op_count && d->ex->left_at == 0)
        return false; /* this very op was not it */
    if (d->live_bytes != d->ex->boundary_live_bytes)
        return false;
    uint32_t i = 0; /* and it works on the same long-lived buffers */
    for (uint32_t k = d->ex->rec.ops[0].first; k < d->ex->rec.ops[0].first + d->ex->rec.ops[0].n; k++) {
        const struct rec_operand *w = &d->ex->rec.operands[k];
        const struct rec_buf *x = &d->ex->rec.bufs[w->buf];
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
