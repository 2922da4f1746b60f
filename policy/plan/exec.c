/* The plan in force. The program's ops are compared with the recorded iteration one by one; between two of them the
 * plan's steps are taken (steps.c). Where the program does something else, exec_diverge() leaves the plan.
 *
 * A launch is decided in exec_op_drv(): match, steps, ready, capture, issue.
 */
#include "policy/learn/probe.h"
#include "policy/learn/words.h"
#include "policy/op/tensor_map.h"
#include "policy/plan/proof.h"
#include "policy/plan/verify.h"
#include "tracer/iter.h"
#include "tracer/plain.h"

#include <errno.h>
#include <string.h>

/* ---- the program's events ------------------------------------------------------------------------------------------ */

/* The plan takes it for a buffer that nothing changes but what it sees, and it may be reached unseen since; or whoever reads it follows
 * addresses since. */
static bool reached_since(const struct rec_buf *x, const struct slot *s) { return (s->pins && !x->pinned) || (s->points && !x->points); }

bool exec_reached_since(const struct device *d)
{
    const struct record *r = &d->ex->rec;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        const struct slot *s = &d->slots[x->slot_id];
        if (x->alloc_ord < 0 && x->dies < 0 && s->live && s->serial == x->serial && reached_since(x, s))
            return true;
    }
    return false;
}

int exec_note_elsewhere(struct device *d)
{
    struct exec *ex = d->ex;
    if (ex->n_elsewhere == ex->cap_elsewhere) {
        const uint32_t cap = ex->cap_elsewhere ? 2 * ex->cap_elsewhere : 8;
        uint32_t *p = realloc(ex->elsewhere, cap * sizeof *p);
        if (!p)
            return -ENOMEM;
        ex->elsewhere = p;
        ex->cap_elsewhere = cap;
    }
    ex->elsewhere[ex->n_elsewhere++] = ex->rec.n_ops;
    return 0;
}

bool exec_knows_elsewhere(const struct device *d)
{
    const struct exec *ex = d->ex;
    const uint32_t next = steady_next(d);
    for (uint32_t i = 0; i < ex->n_elsewhere; i++) {
        const uint32_t place = ex->elsewhere[i];
        uint32_t at = place < ex->n_trace_ops ? ex->op_of_trace[place] : ex->rec.n_ops;
        while (at < ex->rec.n_ops && exec_is_optional(&ex->rec.ops[at]))
            at++;
        if (at == next)
            return true;
    }
    return false;
}

void exec_begin(struct device *d)
{
    const struct record *r = &d->ex->rec;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        d->ex->bind[b] = -1;
        d->ex->stays[b] = false;
        d->ex->res[b] = d->ex->cur[b] = x->alloc_ord < 0 ? 0 : -1;
        if (x->alloc_ord < 0 && x->dies < 0) { /* persistent: the same allocation as ever, if it is still there */
            struct slot *s = &d->slots[x->slot_id];
            if (s->live && s->serial == x->serial && !reached_since(x, s)) {
                d->ex->bind[b] = (int32_t)s->id;
                s->plan_buf = (int32_t)b;
            }
        }
    }
    d->ex->pos = d->ex->alloc_k = 0;
    d->ex->rebuilt_now = d->ex->compared_now = 0;
    d->ex->ended = false;
    d->ex->tried = 0;
    d->ex->proof_calls = 0;
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
        if (s->fixed_ord == ORD_OWED) {
            s->fixed_ord = ORD_NONE;
            mem_slot_free(d, s);
        }
    }
}

/* Without a value that the program holds it cannot go on. */
static void rebuild_or_stop(struct device *d, unsigned t)
{
    int r = rebuild_all(d, t);
    if (!r)
        return;
    if (r == -ENOMEM)
        log_say(SAY_ERROR, "memory was too short to rebuild a tensor after the program left the recorded iteration: it is stopped here; raise "
                "--limit or --host-swap");
    else
        log_say(SAY_ERROR, "a tensor could not be rebuilt after the program left the recorded iteration: it is stopped here");
    d->ex->code = CUDA_ERROR_UNKNOWN;
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
    unsigned t = stream_alive(d, ex->caps[0].t);
    bool lost = exec_pass(d, ex->rec.n_ops, t) != 0;
    stream_look(d);
    for (uint32_t b = 0; b < ex->rec.n_bufs && !lost; b++) {
        struct slot *s = exec_slot(d, (int32_t)b);
        lost = s && s->live && s->state == SLOT_LOST;
    }
    if (lost)
        rebuild_or_stop(d, t);
    ex->boundary_live_bytes = ex->began_live_bytes; /* of a whole iteration: an evaluation may begin like one, and holds gradients */
    d->st.iterations++;
    d->whole_mode = d->mode;
    if (ex->tried)
        log_say(SAY_DEBUG, "iteration %llu: %u launches ran as trials", (unsigned long long)d->st.iterations, ex->tried);
    if (d->status)
        status_iteration(d->status, d->st.iterations);
    if (d->mode == MODE_ENFORCE) {
        d->st.iterations_enforced++;
        d->st.iterations_steady += !ex->tried;
        if (!ex->tried || !d->st.iterations_steady) { /* none without a trial: what there was but for those, rather than nothing */
            d->st.mem_calls_enforced = d->st.mem_calls - ex->mem_calls_before - (ex->tried ? ex->proof_calls : 0);
            d->st.swaps_enforced = d->st.swaps_in + d->st.swaps_out - ex->swaps_before;
        }
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
    if (remapped && end == EXEC_END_WHOLE) {
        install_repair(d);
        if (d->mode == MODE_ENFORCE && !ex->lacks_chunks && !ex->proof_calls && !ex->not_in_turn)
            end = EXEC_END_MOVED;
    }
    ex->not_in_turn -= ex->not_in_turn > 0;
    return end;
}

/* The fixed slot at this place; NULL: none, or it is still used by the buffer that had it before, whose free has not come yet. */
static struct slot *unused_slot(struct device *d, int32_t place)
{
    struct slot *s = place >= 0 && d->ex->alloc_slot[place] >= 0 ? &d->slots[d->ex->alloc_slot[place]] : NULL;
    return s && (s->live || s->kept || s->plan_buf >= 0) ? NULL : s;
}

struct slot *exec_alloc(struct device *d, uint64_t bytes)
{
    const struct record *r = &d->ex->rec;
    if (d->ex->alloc_k >= r->n_allocs || r->allocs[d->ex->alloc_k].bytes != bytes ||
        r->allocs[d->ex->alloc_k].before_op < (int32_t)d->ex->pos)
        return NULL;
    uint32_t k = d->ex->alloc_k++;
    int32_t b = r->allocs[k].buf;
    struct slot *s = NULL;
    for (int32_t place = (int32_t)k; place >= 0 && !s; place = d->ex->twin[place])
        s = unused_slot(d, place);
    if (s)
        mem_slot_revive(d, s, bytes);
    else if (mem_slot_new(d, bytes, &s))
        return NULL;
    if (b >= 0) {
        s->plan_buf = b;
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
        if (s->fixed_ord == ORD_OWED)
            s->fixed_ord = ORD_NONE;
        return false;
    }
    /* the plan still needs it: its memory, its content, or at least its address */
    d->live_bytes -= s->bytes;
    s->live = false;
    if (s->fixed_ord == ORD_NONE)
        s->fixed_ord = ORD_OWED;
    bool now = d->ex->rec.bufs[b].dies >= 0 && d->ex->rec.bufs[b].dies <= (int32_t)d->ex->pos;
    s->kept = true;
    if (now && exec_die(d, b, stream_alive(d, d->ex->caps[d->ex->pos ? d->ex->pos - 1 : 0].t)))
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

uint32_t exec_idle_from(const struct record *r, const struct rec_op *o, uint32_t word)
{
    uint32_t a = o->idle, b = o->idle + o->n_idle;
    while (a < b) {
        uint32_t m = (a + b) / 2;
        if (r->idle_words[m] < word)
            a = m + 1;
        else
            b = m;
    }
    return a < o->idle + o->n_idle && rec_idle_word(r->idle_words[a]) == word ? r->idle_words[a] : word + 8;
}

static struct {
    struct rt_operand operands[OP_MAX_OPERANDS];
    uint32_t n;
} left_out; /* of the op at hand: the idle words that point at memory we know */

/* Where an op wants proof, idle words do so too, since what is another one now may have brought them into use: they stay operands then. */
static void leave_idle_out(struct device *d, struct rt_op *op, const struct rec_op *o)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (exec_word_is_idle(&d->ex->rec, o, op->operands[i].offset))
            left_out.operands[left_out.n++] = op->operands[i];
        else
            op->operands[kept++] = op->operands[i];
    op->n_operands = kept;
}

static int by_offset(const void *a, const void *b)
{
    const uint32_t x = ((const struct rt_operand *)a)->offset, y = ((const struct rt_operand *)b)->offset;
    return (x > y) - (x < y);
}

static void take_idle_back(struct rt_op *op)
{
    memcpy(op->operands + op->n_operands, left_out.operands, left_out.n * sizeof *op->operands);
    op->n_operands += left_out.n;
    left_out.n = 0;
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

static bool driver_knows(const struct device *d, uint64_t word)
{
    unsigned what;
    return device_may_be_address(word) && d->drv->cuPointerGetAttribute(&what, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) == CUDA_SUCCESS;
}

bool exec_is_elsewhere(struct device *d, uint64_t word) { return !device_is_ours(d, word) && driver_knows(d, word); }

bool exec_is_address(struct device *d, uint64_t word) { return device_is_ours(d, word) || driver_knows(d, word); }

bool exec_may_have_been_had(struct device *d, uint64_t word)
{
    return exec_is_address(d, word) && (!mem_in_reservation(d, word) || word - d->base < d->top_page << d->shift);
}

/* Words of structs that held something else than an address in the iteration before, and no null, and hold an address now (of ours, of
 * pinned memory): entries that the program does not fill. One in use would have held an address then, or a null. What may be a number, or
 * is what it was, may lie beside what the stack has left, and say what the op does: it is watched on (words_idle_part). The number of these
 * words. */
static uint32_t free_stale_words(struct device *d, const struct rt_op *op, const struct rec_op *o)
{
    const struct rt_op *last = &d->ex->caps[d->ex->pos];
    const struct func *f = op->func;
    uint32_t n = 0, k = o->first;
    for (uint32_t i = 0; op->kind == OP_KERNEL && f->known && !op->packed && last->args && last->func == f && i < f->n_params; i++)
        for (uint32_t at = (f->offset[i] + 7) & ~7u; func_is_struct(f, i) && at + 8 <= f->offset[i] + f->size[i]; at += 8) {
            uint64_t now, then;
            memcpy(&now, op->args + at, 8);
            memcpy(&then, last->args + at, 8);
            while (k < o->first + o->n && d->ex->rec.operands[k].offset < at)
                k++;
            bool recorded = k < o->first + o->n && d->ex->rec.operands[k].offset == at;
            if (recorded && d->ex->rec.operands[k].map) {
                at += TENSOR_MAP_BYTES - 8;
                continue;
            }
            if (now == then && !device_is_ours(d, now))
                continue; /* a number, or an address that it was before: the driver need not be asked which */
            if (!then || recorded || exec_word_is_idle(&d->ex->rec, o, at) || !exec_may_have_been_had(d, now) || exec_is_elsewhere(d, then))
                continue;
            n += !args_free_word(d, (uint32_t)now == (uint32_t)then ? at + 4 : words_idle_part(at, now));
        }
    return n;
}

/* An entry that was in use, or looked like it, is not now: the op leaves the buffer as it is, which must be there. No replay asks for
 * what this op made of it, since the op is never replayed. */
static bool stays_as_it_is(struct device *d, const struct rec_op *o, uint32_t k)
{
    const struct rec_operand *w = &d->ex->rec.operands[k];
    const struct slot *s = exec_slot(d, w->buf);
    return o->why_opaque && (w->mode == REC_READ || (w->mode != REC_WRITE && s && (s->state == SLOT_RESIDENT || s->state == SLOT_HOST)));
}

static bool has_another_word(struct device *d, const struct rec_op *o, const struct rec_operand *w)
{
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (d->ex->rec.operands[k].buf == w->buf && d->ex->rec.operands[k].offset != w->offset)
            return true;
    return false;
}

/* A word of a struct that was recorded as an address is another one than in the iteration before where it may be numbers (words_idle_part):
 * nothing else compares the bytes of an operand. a: the operand there is now, or NULL. The same place in another allocation is no number. */
static bool number_may_change(struct device *d, const struct rt_op *op, const struct rec_operand *w, const struct rt_operand *a)
{
    const struct rt_op *last = &d->ex->caps[d->ex->pos];
    if (op->kind != OP_KERNEL || w->map || !last->args)
        return false;
    const struct slot *s = exec_slot(d, w->buf);
    const CUdeviceptr recorded = s ? s->va + w->delta : 0, now = a ? a->slot->va + a->delta : recorded;
    const uint32_t then_part = s ? words_idle_part(0, recorded) : 0, now_part = a ? words_idle_part(0, now) : 0;
    const uint32_t part = now_part > then_part ? now_part : then_part;
    if (!memcmp(op->args + w->offset, last->args + w->offset, part) || !in_struct(op, w->offset))
        return false;
    const struct rt_operand *before = op_operand_at(last, w->offset);
    return (s && mem_may_be_number(recorded)) || (a && mem_may_be_number(now)) || !a || !before || before->delta != a->delta;
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
static struct reading match(struct device *d, struct rt_op *op, const struct reading *before)
{
    const struct rec_op *o = &d->ex->rec.ops[d->ex->pos];
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
    const bool doubt = args_idle_in_doubt(d);
    if (o->n_idle && change != ARGS_SURPRISE && !doubt && !before)
        leave_idle_out(d, op, o);
    uint32_t k = o->first, end = o->first + o->n, i = 0;
    while (k < end || i < op->n_operands) {
        const struct rec_operand *w = k < end ? &d->ex->rec.operands[k] : NULL;
        struct rt_operand *a = i < op->n_operands ? &op->operands[i] : NULL;
        bool only_w = w && (!a || w->offset < a->offset), only_a = !only_w && (!w || a->offset < w->offset);
        if (a && !only_w)
            a->regular = false;
        if (o->n_idle && exec_word_is_idle(&d->ex->rec, o, only_a ? a->offset : w->offset)) {
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
            if (!stays_as_it_is(d, o, k++)) {
                x.absent = true;
                if (!other_word(&x, op, w->offset, "a buffer less"))
                    return x;
            }
            continue;
        }
        if (only_a) {
            i++;
            if (writes_addresses(&d->ex->rec, o))
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
        const struct rec_buf *rb = &d->ex->rec.bufs[b];
        if (d->ex->bind[b] < 0 && a->slot->plan_buf < 0 && a->slot->bytes == rb->bytes && may_bind_late(d, rb) && !reached_since(rb, a->slot)) {
            d->ex->bind[b] = (int32_t)a->slot->id;
            a->slot->plan_buf = b;
        }
        if (a->map != w->map)
            return (struct reading){.is = CORRESPONDS_NOT, .why = "another tensor map"};
        a->regular = d->ex->bind[b] == (int32_t)a->slot->id;
        if (!a->regular) {
            if (writes_addresses(&d->ex->rec, o))
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

/* Recorded modes for the operands at hand, so that ready_done knows what was written. What a kernel was not seen to change it may change
 * another time (an output that is written for certain data only): a copy on the host is old after every launch, and a release makes
 * another. */
static void note_modes(struct device *d, struct rt_op *op, const struct rec_op *o)
{
    uint32_t k = o->first, end = o->first + o->n;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        while (k < end && d->ex->rec.operands[k].offset < op->operands[i].offset)
            k++;
        op->operands[i].mode = k < end && d->ex->rec.operands[k].offset == op->operands[i].offset ? d->ex->rec.operands[k].mode : REC_UNKNOWN;
        if (op->kind == OP_KERNEL && op->operands[i].mode == REC_READ)
            op->operands[i].mode = REC_UNKNOWN;
    }
}

static void may_do_anything(struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        op->operands[i].mode = REC_UNKNOWN;
}

const char exec_step_failed[] = "a step of the plan could not be taken";
const char exec_was_refused[] = "the driver refused it";

const char *exec_make_ready(struct device *d, struct rt_op *op)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < op->n_operands; i++) /* wholly overwritten: what it held is not needed */
        if (op->operands[i].mode == REC_WRITE && op->operands[i].slot->state == SLOT_LOST)
            op->operands[i].slot->state = SLOT_EMPTY;
    int r = ready_op(d, op, &lost);
    return r == -ENODATA ? "a tensor that the plan holds evicted" : r == -ENOMEM ? "memory was short" : r ? "nothing can be ordered" : NULL;
}

void exec_op_done(struct device *d)
{
    struct exec *ex = d->ex;
    for (const struct exec_value *v = ex->made + ex->made_at[ex->pos], *end = ex->made + ex->made_at[ex->pos + 1]; v < end; v++)
        ex->res[v->buf] = ex->cur[v->buf] = v->version;
    if (!ex->pos++)
        ex->began_live_bytes = d->live_bytes;
    ex->ended = steady_next(d) == ex->rec.n_ops;
}

/* What the recorded op was not given may be there, and be another version of it than the program's: the plan has made that again for a
 * while, to make something else of it. */
static bool is_given_an_older_version(struct device *d, const struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct rt_operand *a = &op->operands[i];
        if (!a->regular && a->slot->plan_buf >= 0 && a->slot->state != SLOT_LOST && rebuild_owed(d, a->slot->plan_buf))
            return true;
    }
    return false;
}

/* Where a copy to the host stands in the record, if it is the next one there or one of those that follow each other; n_ops: nowhere. */
static uint32_t recorded_read(const struct device *d, const struct rt_op *op)
{
    const struct record *r = &d->ex->rec;
    for (uint32_t i = d->ex->pos; i < r->n_ops && exec_is_optional(&r->ops[i]); i++)
        if (r->ops[i].to_host && r->ops[i].sig == op->sig && op->n_operands && r->operands[r->ops[i].first].buf == op->operands[0].slot->plan_buf)
            return i;
    return r->n_ops;
}

/* A copy to the host, recorded or not: it asks for nothing but that what it reads is there, as the program left it. */
static int read_drv(struct device *d, struct rt_op *op, enum exec_left *left)
{
    const uint32_t at = recorded_read(d, op), n_ops = d->ex->rec.n_ops;
    const char *why = at < n_ops && exec_pass(d, at, op->t) ? exec_step_failed : NULL;
    for (uint32_t i = 0; i < op->n_operands && !why; i++)
        if (op->operands[i].slot->plan_buf >= 0 && rebuild_owed(d, op->operands[i].slot->plan_buf))
            why = "a copy to the host asks for what the plan holds evicted";
    if (!why)
        why = exec_make_ready(d, op);
    if (why) {
        exec_diverge(d, why, op);
        d->ex->left_op = UINT64_MAX; /* the next op has the number of this one */
        *left = EXEC_LEFT_BEFORE;
        return d->ex->code;
    }
    *left = EXEC_STAYED;
    int r = op_issue_drv(d, op);
    ready_done(d, op, false);
    if (at < n_ops)
        exec_op_done(d);
    return r;
}

int exec_op_drv(struct device *d, struct rt_op *op, enum exec_left *left)
{
    struct proof proof;
    enum args_mattered mattered = ARGS_UNTRIED;
    if (op_reads_for_host(op))
        return read_drv(d, op, left);
    const char *why = NULL, *why_after = NULL;
    bool not_tried = false;
    const uint32_t from = d->ex->pos, at = steady_next(d); /* holds, and copies to the host that do not come this time, are passed on the way */
    const struct rec_op *o = &d->ex->rec.ops[at];
    struct reading x = {.is = CORRESPONDS};
    int r = CUDA_SUCCESS;
    proof_none(&proof);
    *left = EXEC_STAYED;
    left_out.n = 0;
    d->ex->pos = at; /* looked at before any step is taken: where another op has come, the plan is left as it was after the last one */
    x = match(d, op, NULL);
    if (x.is == WANTS_PROOF && free_stale_words(d, op, o))
        x = match(d, op, NULL);
    if (x.is == WANTS_PROOF && left_out.n) {
        take_idle_back(op);
        x = match(d, op, &x);
    }
    d->ex->pos = from;
    why = x.is == CORRESPONDS_NOT ? x.why : NULL;
    const bool proves = x.is == WANTS_PROOF;
    if (!why && (exec_pass(d, at, op->t) || (steady_sets_aside(d, at) && exec_set_aside(d, at, op->t))))
        why = exec_step_failed;
    if (!why && is_given_an_older_version(d, op))
        why = "a tensor that the plan holds in an older version";
    const uint64_t calls_before = d->st.mem_calls;
    const bool unproved = !why && proves && proof_is_needless(d, op, &x);
    if (!why) {
        note_modes(d, op, o);
        if (proves)
            steady_may_write_less(d, at);
        if (unproved)
            may_do_anything(op);
        else if (proves)
            proof_open(d, op, &x, &proof);
        why = exec_make_ready(d, op);
        if (!why && (exec_fill_before(d, at, op->t) || exec_keep_sides(d, at, op->t)))
            why = exec_step_failed;
    }
    if (!why && unproved) {
        r = op_issue_drv(d, op);
        ready_done(d, op, true);
        args_unproved(d, op);
    } else if (!why && proves) {
        enum proof_says says = proof_run_drv(d, op, &proof, &mattered, &r);
        not_tried = says == PROOF_NOT_RUN;
        why = not_tried ? x.why : NULL;
        why_after = says == PROOF_OTHER ? "it did something else than it had done" : NULL;
        if (!why)
            ready_done(d, op, says == PROOF_OTHER);
    }
    proof_close(d, &proof);
    if (proves && !unproved)
        d->ex->proof_calls += d->st.mem_calls - calls_before;
    if (!why && r != CUDA_SUCCESS) /* it has made nothing: what its buffers held is still the program's */
        why_after = exec_was_refused;
    if (!why && !why_after && !unproved && (proves || !x.same))
        args_accept(d, op, mattered);
    if (!why && !why_after && op_capture(&d->ex->caps[d->ex->pos], op))
        *(proves ? &why_after : &why) = "host memory was short";
    if (why) {
        exec_diverge(d, why, op);
        d->ex->left_untried = not_tried;
        *left = EXEC_LEFT_BEFORE;
        return d->ex->code;
    }
    if (!proves) {
        r = op_issue_drv(d, op);
        ready_done(d, op, false);
        if (r != CUDA_SUCCESS)
            why_after = exec_was_refused;
    }
    if (!why_after)
        steady_note(d, d->ex->pos, op, !proves && x.same);
    if (why_after != exec_was_refused)
        exec_op_done(d);
    if (why_after) {
        exec_diverge(d, why_after, op);
        *left = EXEC_LEFT_AFTER;
        return d->ex->code ? d->ex->code : r;
    }
    return r;
}

void exec_diverge(struct device *d, const char *why, const struct rt_op *op)
{
    d->ex->left_untried = false;
    d->ex->left_at = d->ex->pos;
    d->ex->left_op = d->op_count;
    log_say(SAY_INFO, "iteration %llu left the plan at op %u of %u (%s): %s", (unsigned long long)d->st.iterations, d->ex->pos,
            d->ex->rec.n_ops, op && op->kind == OP_KERNEL ? PLAIN_IN_LINE(op->func->name) : "no kernel", why);
    d->st.divergences++;
    stats_not_steady(d);
    rebuild_or_stop(d, op ? op->t : stream_alive(d, STREAM_FIRST_PROGRAM));
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

uint64_t exec_last_sig(const struct device *d)
{
    const struct record *r = &d->ex->rec;
    for (uint32_t i = r->n_ops; i-- > 0;)
        if (!exec_is_optional(&r->ops[i]))
            return r->ops[i].sig;
    return 0;
}

bool exec_may_resume(struct device *d, const struct rt_op *op)
{
    if (!d->ex->have_plan || !d->ex->installed || d->ex->code || op->sig != d->ex->rec.ops[0].sig)
        return false;
    if (d->ex->left_op == d->op_count && d->ex->left_at == 0)
        return false; /* this very op was not it */
    if (!iter_holds_as_much(d->ex->boundary_live_bytes, d->live_bytes, d->ex->swing_bytes))
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
