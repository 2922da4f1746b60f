/* The launches of a steady iteration: most come with the very bytes that they had an iteration ago. Then nothing has to be looked up:
 * the same words point at the same slots, if these are bound to the same buffers of the plan.
 *
 * What makes the bytes alone enough, for the launch captured at ex->learnt.caps[op]:
 *   every word of its arguments that points into the reservation is one of its operands, or idle;
 *   none points where the host writes without a call: what lies there may be another address now;
 *   no other memory of the program's own has come or gone since, and no slot has got another address (device.address_changes);
 *   each of its operands was the recorded one.
 * About 150 instructions, ten more a parameter and thirty more an operand; no call but the driver's own where nothing waits. */
#include "policy/plan/steady.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/op/ready.h"
#include "policy/op/tensor_map.h"
#include "policy/plan/args.h"
#include "policy/plan/compare.h"
#include "policy/plan/leave.h"
#include "policy/plan/replay.h"
#include "policy/plan/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int steady_plan(struct device *d)
{
    struct exec *ex = d->ex;
    const struct record *r = &ex->learnt.rec;
    free(ex->now.steady);
    ex->now.steady = calloc(r->n_ops + 1, sizeof *ex->now.steady);
    if (!ex->now.steady)
        return -ENOMEM;
    ex->now.steady[r->n_ops].op = r->n_ops;
    for (uint32_t i = r->n_ops; i-- > 0;) {
        struct steady_op *s = &ex->now.steady[i];
        s->op = recording_is_optional(&r->ops[i]) ? ex->now.steady[i + 1].op : i;
        s->quiet = ex->plan->die_at[i] == ex->plan->die_at[i + 1] && ex->plan->step_at[i] == ex->plan->step_at[i + 1] && ex->plan->ref_at[i] == ex->plan->ref_at[i + 1];
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++) {
            int32_t b = r->operands[k].buf;
            for (int32_t v = ex->plan->first_val[b]; v < ex->plan->first_val[b + 1] && r->operands[k].mode != REC_READ; v++)
                s->sets_aside |= ex->plan->remade[v];
            s->begins |= ex->now.partial[b] && r->bufs[b].born == (int32_t)i;
            s->keeps_sides |= ex->map.side_saved[k] != 0;
        }
    }
    return 0;
}

void steady_may_write_less(struct device *d, uint32_t at)
{
    struct exec *ex = d->ex;
    const struct rec_op *o = &ex->learnt.rec.ops[at];
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const int32_t b = ex->learnt.rec.operands[k].buf;
        if (ex->learnt.rec.operands[k].mode == REC_WRITE && ex->learnt.rec.bufs[b].born == (int32_t)at)
            ex->now.partial[b] = ex->now.steady[at].begins = true;
    }
}

void steady_note(struct device *d, uint32_t at, const struct rt_op *op, bool same)
{
    const struct record *r = &d->ex->learnt.rec;
    const struct rec_op *o = &r->ops[at];
    struct rt_op *cap = &d->ex->learnt.caps[at];
    struct steady_op *s = &d->ex->now.steady[at];
    s->same = false;
    if (!same || op->in_place || op->odd || args_idle_in_doubt(d) || op->kind != OP_KERNEL || op->packed || !op->func->known || op->n_attrs || op->cooperative)
        return;
    uint32_t k = o->first, end = o->first + o->n;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        while (k < end && r->operands[k].offset < op->operands[i].offset)
            k++;
        if (k == end || r->operands[k].offset != op->operands[i].offset || !op->operands[i].regular)
            return;
        cap->operands[i].buf = r->operands[k].buf;
    }
    uint32_t n = 0;
    for (k = o->first; k < end; k++)
        n += !recording_word_is_idle(r, o, r->operands[k].offset);
    if (n != op->n_operands)
        return;
    for (uint32_t i = 0, p = 0; p < op->func->n_params; p++) {
        uint32_t to = op->func->offset[p] + op->func->size[p];
        if (op->func->size[p] >= TENSOR_MAP_BYTES && tensor_map_any())
            return; /* it may hold a map of what nobody holds now */
        for (uint32_t w = (op->func->offset[p] + 7) & ~7u; w + 8 <= to; w += 8) {
            uint64_t word;
            memcpy(&word, op->args + w, 8);
            while (i < op->n_operands && op->operands[i].offset < w)
                i++;
            if (mem_in_reservation(d, word) && !(i < op->n_operands && op->operands[i].offset == w) && !recording_word_is_idle(r, o, w))
                return; /* it points at what nobody holds now: who holds it next is another operand */
        }
    }
    s->address_changes = d->mem.address_changes;
    s->same = true;
}

static bool same_arguments(const struct eng_kernel *k, const struct rt_op *last)
{
    const struct func *f = last->func;
    for (uint32_t i = 0; i < f->n_params; i++) {
        const unsigned char *then = last->args + f->offset[i], *now = k->params[i];
        if (!now || (f->size[i] == 8 ? memcmp(now, then, 8) : f->size[i] == 4 ? memcmp(now, then, 4) : memcmp(now, then, f->size[i])))
            return false;
    }
    return true;
}

/* Grid, block and shared bytes lie side by side in both: compared as one. */
enum { SHAPE_BYTES = 7 * sizeof(unsigned) };
#define SHAPE_IS_WHOLE(type)                                                                                                    \
    _Static_assert(offsetof(type, block) == offsetof(type, grid) + 3 * sizeof(unsigned) &&                                      \
                       offsetof(type, shared_bytes) == offsetof(type, grid) + 6 * sizeof(unsigned), "see same_launch()")
SHAPE_IS_WHOLE(struct eng_kernel);
SHAPE_IS_WHOLE(struct rt_op);

static bool same_launch(struct device *d, const struct eng_kernel *k, const struct rt_op *last)
{
    return !memcmp(last->grid, k->grid, SHAPE_BYTES) && !k->n_attrs && !k->cooperative && !k->extra && func_of(d, k->func) == last->func &&
           stream_has_index(d, d->streams, k->stream, last->t) && same_arguments(k, last);
}

static bool all_ready(const struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!ready_operand(&op->operands[i], op->t))
            return false;
    return true;
}

/* The slots still stand for the buffers that they stood for: bind[] says so alone, since a slot's plan_buf is b exactly where bind[b] is
 * the slot (progress.h), and a buffer that the program has given back too early for the plan keeps its slot until the plan is done with it:
 * nobody else has that address. *ready, where it was true: as all_ready(). */
static bool same_bindings(const struct device *d, const struct rt_op *last, bool *ready)
{
    const int32_t *bind = d->ex->now.bind;
    const unsigned t = last->t;
    bool all = *ready;
    for (const struct rt_operand *a = last->operands, *end = a + last->n_operands; a < end; a++) {
        if (bind[a->buf] != (int32_t)a->slot->id)
            return false;
        all = all && ready_operand(a, t);
    }
    *ready = all;
    return true;
}

/* Replays and copies, whose calls leave addresses of other tensors on the stack: another number, and there were some. */
static uint64_t calls_with_others(const struct device *d) { return d->st.replays + d->st.bytes_in + d->st.bytes_out; }

enum steady steady_launch_drv(struct device *d, const struct eng_kernel *k, int *r)
{
    struct exec *ex = d->ex;
    uint32_t at = ex->now.steady[ex->now.pos].op;
    const struct steady_op *s = &ex->now.steady[at];
    struct rt_op *op = &ex->learnt.caps[at];
    bool ready = ex->now.pos == at && s->quiet && !s->sets_aside; /* what the plan does first may change what is ready */
    if (s->begins && compare_begins(d, at))
        return STEADY_NO;
    if (!s->same || s->address_changes != d->mem.address_changes || !same_launch(d, k, op) || !same_bindings(d, op, &ready))
        return STEADY_NO;
    op->stream = k->stream; /* under the same index there may have been another one, which is destroyed by now */
    /* From here on the plan goes on, or is left. */
    const char *why = NULL;
    const uint64_t before = calls_with_others(d);
    uint32_t quiet_to = ex->now.pos;
    while (quiet_to < at && ex->now.steady[quiet_to].quiet)
        quiet_to++;
    if (quiet_to == at && s->quiet)
        ex->now.pos = at;
    else if (steps_pass(d, at, op->t))
        why = leave_step_failed;
    if (!why && s->sets_aside && compare_set_op_aside(d, at, op->t))
        why = leave_step_failed;
    if (!why && !ready && !all_ready(op))
        why = steps_make_ready(d, op);
    if (!why && s->keeps_sides && replay_keep_sides(d, at, op->t))
        why = leave_step_failed;
    if (why) {
        leave_plan(d, why, op);
        return STEADY_LEFT;
    }
    *r = op_issue_given_drv(d, k, op->t);
    ex->now.passed_on = !s->sets_aside && !s->keeps_sides && calls_with_others(d) == before && *r == CUDA_SUCCESS;
    if (*r == CUDA_ERROR_OUT_OF_MEMORY)
        *r = op_issue_drv(d, op); /* memory is made for the driver there */
    ready_done(d, op, false);
    if (*r != CUDA_SUCCESS) {
        leave_plan(d, leave_was_refused, op);
        *r = ex->now.code ? ex->now.code : *r;
        return STEADY_REFUSED;
    }
    cursor_op_done(d);
    return STEADY_RAN;
}
