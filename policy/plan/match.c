#include "policy/plan/match.h"
#include "policy/learn/probe.h"
#include "policy/learn/words.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/op/tensor_map.h"
#include "policy/plan/address.h"
#include "policy/plan/args.h"

#include <stdlib.h>
#include <string.h>

/* Buffers whose allocation the plan did not see: made in the iteration before, or just before the plan was resumed, or on a detour; or one that outlives iterations
 * and took the place of the recorded one, which is gone: gradients that were given back and made anew, states of Adam that were loaded. */
static bool may_bind_late(struct device *d, const struct rec_buf *x)
{
    if (x->alloc_ord < 0)
        return x->dies >= 0 || cursor_is_replaced(d, x);
    if (d->ex->now.detour_to && d->ex->learnt.rec.allocs[x->alloc_ord].before_op <= (int32_t)d->ex->now.detour_to)
        return true;
    return (uint32_t)x->alloc_ord < d->ex->now.alloc_k && d->ex->learnt.rec.allocs[x->alloc_ord].before_op == 0;
}

/* Where an op wants proof, idle words do so too, since what is another one now may have brought them into use: they stay operands then. */
static void leave_idle_out(struct device *d, struct rt_op *op, const struct rec_op *o)
{
    struct left_out *out = d->ex->now.left_out;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (recording_word_is_idle(&d->ex->learnt.rec, o, op->operands[i].offset))
            out->operands[out->n++] = op->operands[i];
        else
            op->operands[kept++] = op->operands[i];
    op->n_operands = kept;
}

static int by_offset(const void *a, const void *b)
{
    const uint32_t x = ((const struct rt_operand *)a)->offset, y = ((const struct rt_operand *)b)->offset;
    return (x > y) - (x < y);
}

void match_take_idle_back(struct device *d, struct rt_op *op)
{
    struct left_out *out = d->ex->now.left_out;
    memcpy(op->operands + op->n_operands, out->operands, out->n * sizeof *op->operands);
    op->n_operands += out->n;
    out->n = 0;
    qsort(op->operands, op->n_operands, sizeof *op->operands, by_offset);
}

static bool in_struct(const struct rt_op *op, uint32_t offset)
{
    int i = op->kind == OP_KERNEL ? func_param_at(op->func, offset) : -1;
    return i >= 0 && func_is_struct(op->func, (uint32_t)i);
}

/* A word points elsewhere than was recorded: it may be the stale entry of a struct. */
static bool other_word(struct reading *x, const struct rt_op *op, uint32_t offset, const char *why)
{
    x->why = why;
    x->whole = false;
    x->is = in_struct(op, offset) && op_repeatable(op) ? WANTS_PROOF : CORRESPONDS_NOT;
    log_say(SAY_DEBUG, "%s: argument byte %u: %s", op->kind == OP_KERNEL ? op->func->name : "no kernel", offset, why);
    return x->is != CORRESPONDS_NOT;
}

/* Words of structs that held something else than an address in the iteration before, and no null, and hold an address now (of ours, of
 * pinned memory): entries that the program does not fill. One in use would have held an address then, or a null. What may be a number, or
 * is what it was, may lie beside what the stack has left, and say what the op does: it is watched on (words_idle_part). The number of these
 * words. */
uint32_t match_free_stale_words(struct device *d, const struct rt_op *op, const struct rec_op *o)
{
    const struct rt_op *last = &d->ex->learnt.caps[d->ex->now.pos];
    const struct func *f = op->func;
    uint32_t n = 0, k = o->first;
    for (uint32_t i = 0; op->kind == OP_KERNEL && f->known && !op->packed && last->args && last->func == f && i < f->n_params; i++)
        for (uint32_t at = (f->offset[i] + 7) & ~7u; func_is_struct(f, i) && at + 8 <= f->offset[i] + f->size[i]; at += 8) {
            uint64_t now, then;
            memcpy(&now, op->args + at, 8);
            memcpy(&then, last->args + at, 8);
            while (k < o->first + o->n && d->ex->learnt.rec.operands[k].offset < at)
                k++;
            bool recorded = k < o->first + o->n && d->ex->learnt.rec.operands[k].offset == at;
            if (recorded && d->ex->learnt.rec.operands[k].map) {
                at += TENSOR_MAP_BYTES - 8;
                continue;
            }
            if (now == then && !mem_is_ours(d, now))
                continue; /* a number, or an address that it was before: the driver need not be asked which */
            if (!then || recorded || recording_word_is_idle(&d->ex->learnt.rec, o, at) || !address_may_have_been_had(d, now) || address_is_elsewhere(d, then))
                continue;
            n += !args_free_word(d, (uint32_t)now == (uint32_t)then ? at + 4 : words_idle_part(at, now));
        }
    return n;
}

/* An entry that was in use, or looked like it, is not now: the op leaves the buffer as it is, which must be there. No replay asks for
 * what this op made of it, since the op is never replayed. */
static bool stays_as_it_is(struct device *d, const struct rec_op *o, uint32_t k)
{
    const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
    const struct slot *s = cursor_slot(d, w->buf);
    return o->why_opaque && (w->mode == REC_READ || (w->mode != REC_WRITE && s && (s->state == SLOT_RESIDENT || s->state == SLOT_HOST)));
}

static bool has_another_word(struct device *d, const struct rec_op *o, const struct rec_operand *w)
{
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (d->ex->learnt.rec.operands[k].buf == w->buf && d->ex->learnt.rec.operands[k].offset != w->offset)
            return true;
    return false;
}

/* A word of a struct that was recorded as an address is another one than in the iteration before where it may be numbers (words_idle_part):
 * nothing else compares the bytes of an operand. a: the operand there is now, or NULL. The same place in another allocation is no number. */
static bool number_may_change(struct device *d, const struct rt_op *op, const struct rec_operand *w, const struct rt_operand *a)
{
    const struct rt_op *last = &d->ex->learnt.caps[d->ex->now.pos];
    if (op->kind != OP_KERNEL || w->map || !last->args)
        return false;
    const struct slot *s = cursor_slot(d, w->buf);
    const CUdeviceptr recorded = s ? s->va + w->delta : 0, now = a ? a->slot->va + a->delta : recorded;
    const uint32_t then_part = s ? words_idle_part(0, recorded) : 0, now_part = a ? words_idle_part(0, now) : 0;
    const uint32_t part = now_part > then_part ? now_part : then_part;
    if (!memcmp(op->args + w->offset, last->args + w->offset, part) || !in_struct(op, w->offset))
        return false;
    const struct rt_operand *before = op_operand_at(last, w->offset);
    return (s && mem_may_be_number(recorded)) || (a && mem_may_be_number(now)) || !a || !before || before->delta != a->delta;
}

/* Null, where a buffer was recorded that the op only reads, as it was an iteration ago: with these bytes a trial has found then, or before, that the op does
 * what was recorded. (A launch of which nothing was proved asks again, args.h.) */
static bool is_null_again(struct device *d, const struct rt_op *op, const struct rec_operand *w)
{
    static const unsigned char null[8];
    const struct rt_op *last = &d->ex->learnt.caps[d->ex->now.pos];
    return op->kind == OP_KERNEL && last->args && w->mode == REC_READ && !w->map && !memcmp(op->args + w->offset, null, sizeof null) &&
           !memcmp(last->args + w->offset, null, sizeof null);
}

/* It puts addresses into memory. Those of other buffers than it was recorded with bring these within reach of whoever follows them. */
static bool writes_addresses(const struct record *r, const struct rec_op *o)
{
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (r->operands[k].mode != REC_READ && r->bufs[r->operands[k].buf].points)
            return true;
    return false;
}

static enum args_change args_now(struct device *d, const struct rt_op *op, uint32_t *byte)
{
    const enum args_change change = args_compare(d, op, byte);
    if (args_ask_again(d))
        return ARGS_SURPRISE;
    return change == ARGS_SURPRISE && args_known_alike(d, op) ? ARGS_VARIED : change;
}

/* Does the program's op correspond to the recorded one? Unknown buffers are bound on the way. operands[].regular: it is the
 * operand that was recorded. before: what was found without idle words, which are among the operands now; else NULL. */
struct reading match_op(struct device *d, struct rt_op *op, const struct reading *before)
{
    const struct rec_op *o = &d->ex->learnt.rec.ops[d->ex->now.pos];
    struct reading x = {.is = CORRESPONDS, .whole = true};
    if (op->sig != o->sig)
        return (struct reading){.is = CORRESPONDS_NOT, .why = "another op"};
    uint32_t byte = 0;
    const enum args_change change = before ? ARGS_VARIED : args_now(d, op, &byte);
    x.same = before ? before->same : change == ARGS_SAME;
    if (change == ARGS_SURPRISE) { /* a number, a flag, a count, an entry of a struct that nobody fills: a trial says whether the op does what it did */
        x.is = WANTS_PROOF;
        x.why = "another argument";
        log_say(SAY_DEBUG, "%s: argument byte %u is another one", op->func->name, byte);
    }
    const bool doubt = args_idle_in_doubt(d), compared = change != ARGS_SURPRISE && !before;
    if (o->n_idle && change != ARGS_SURPRISE && !doubt && !before)
        leave_idle_out(d, op, o);
    uint32_t k = o->first, end = o->first + o->n, i = 0;
    while (k < end || i < op->n_operands) {
        const struct rec_operand *w = k < end ? &d->ex->learnt.rec.operands[k] : NULL;
        struct rt_operand *a = i < op->n_operands ? &op->operands[i] : NULL;
        bool only_w = w && (!a || w->offset < a->offset), only_a = !only_w && (!w || a->offset < w->offset);
        if (a && !only_w)
            a->regular = false;
        if (o->n_idle && recording_word_is_idle(&d->ex->learnt.rec, o, only_a ? a->offset : w->offset)) {
            if (a && !only_w)
                a->idle = true;
            if (a && !only_w && doubt && a->slot->state == SLOT_LOST) {
                x.is = WANTS_PROOF;
                x.why = "an entry that may be in use now points at a tensor that the plan holds evicted";
            }
            k += !only_a;
            i += !only_w;
            continue;
        }
        x.whole &= !only_w && !only_a;
        if (!only_a && number_may_change(d, op, w, only_w ? NULL : a)) {
            x.is = WANTS_PROOF;
            x.why = "another place in a buffer, or another number";
        }
        if (only_w) {
            if (!stays_as_it_is(d, o, k++) && (!compared || !is_null_again(d, op, w))) {
                x.absent = true;
                if (!other_word(&x, op, w->offset, "a buffer less"))
                    return x;
            }
            continue;
        }
        if (only_a) {
            i++;
            if (writes_addresses(&d->ex->learnt.rec, o))
                return (struct reading){.is = CORRESPONDS_NOT, .why = "an address of another buffer, to be followed"};
            /* a pointer that the recording did not have: harmless if it is only looked at, and there is something to look at */
            if ((op->kind != OP_KERNEL || !o->why_opaque || a->slot->state == SLOT_LOST || probe_offset_changes(op->func, a->offset)) &&
                !other_word(&x, op, a->offset, "a buffer more"))
                return x;
            continue;
        }
        k++;
        i++;
        int32_t b = w->buf;
        const struct rec_buf *rb = &d->ex->learnt.rec.bufs[b];
        if (d->ex->now.bind[b] < 0 && a->slot->plan_buf < 0 && a->slot->bytes == rb->bytes && (a->slot->kind == SLOT_FOREIGN) == rb->foreign &&
            may_bind_late(d, rb) && !cursor_reached_since(rb, a->slot))
            cursor_bind(d, b, a->slot);
        if (a->map != w->map)
            return (struct reading){.is = CORRESPONDS_NOT, .why = "another tensor map"};
        a->regular = d->ex->now.bind[b] == (int32_t)a->slot->id;
        if (!a->regular) {
            if (writes_addresses(&d->ex->learnt.rec, o))
                return (struct reading){.is = CORRESPONDS_NOT, .why = "an address of another buffer, to be followed"};
            x.absent |= !stays_as_it_is(d, o, k - 1);
            if (!(o->why_opaque && w->mode == REC_READ && a->slot->state != SLOT_LOST) && !other_word(&x, op, w->offset, "another buffer"))
                return x;
        } else if (w->mode == REC_WRITE && a->delta != w->delta) { /* or what a stack has left, of the same buffer */
            a->regular = false;
            x.absent |= !has_another_word(d, o, w);
            if (!other_word(&x, op, w->offset, "another place in a buffer"))
                return x;
        }
    }
    return x;
}
