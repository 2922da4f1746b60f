#include "policy/plan/detour.h"
#include "policy/plan/rebuild.h"
#include "policy/plan/steady.h"
#include "policy/plan/steps.h"

#include <errno.h>
#include <stdlib.h>

/* A detour is a small part of an iteration: neither an evaluation nor a batch of another length is one. most_ops() is how many ops may run beside the plan, and how many
 * recorded ops may not come. */
enum { DETOUR_LEAST = 12, DETOUR_PART = 8, DETOUR_MOST = 24 };

static uint32_t most_ops(const struct device *d)
{
    const uint32_t n = DETOUR_LEAST + d->ex->learnt.rec.n_ops / DETOUR_PART;
    return n < DETOUR_MOST ? n : DETOUR_MOST;
}

static bool is_needed_again(const struct device *d, uint32_t op) { return d->ex->plan->again_until[op] >= (int32_t)d->ex->now.pos; }

/* The op has read version v of buffer b, or made it. */
static bool has_used(const struct exec *ex, uint32_t op, int32_t b, int32_t v)
{
    for (uint32_t k = ex->learnt.rec.ops[op].first; k < ex->learnt.rec.ops[op].first + ex->learnt.rec.ops[op].n; k++)
        if (ex->learnt.rec.operands[k].buf == b && v >= 0 && (ex->plan->in_ver[k] == v || ex->plan->out_ver[k] == v))
            return true;
    return false;
}

/* No op that may be run again has made or read the program's version of buffer b. (Ops that have yet to run read what the detour leaves in b, natively, too.) */
static bool may_change(struct device *d, int32_t b)
{
    if (rebuild_owed(d, b))
        return false;
    for (uint32_t i = 0; i < d->ex->now.pos; i++)
        if (is_needed_again(d, i) && has_used(d->ex, i, b, d->ex->now.cur[b]))
            return false;
    return true;
}

/* The op may change memory that none of its operands shows: a variable of a module, which kernels know by name, or memory that the host writes, too. */
static bool may_change_unseen(struct device *d, const struct rt_op *op)
{
    bool named = !op->n_operands || op->in_place || op->odd || op->textures || op->waits;
    for (uint32_t i = 0; i < d->mem.n_slots && !named; i++)
        named = d->mem.slots[i].live && d->mem.slots[i].named;
    return named;
}

bool detour_may_run(struct device *d, const struct rt_op *op)
{
    const struct progress *n = &d->ex->now;
    const bool kernel = op->kind == OP_KERNEL && op->func->known && !op->packed && !op->cooperative;
    if (!n->pos || n->ended || n->n_beside >= most_ops(d) || !(kernel || op->kind == OP_MEMSET || op->kind == OP_COPY) || may_change_unseen(d, op))
        return false;
    uint8_t *source = rebuild_sources(d, n->pos);
    bool may = source != NULL;
    for (uint32_t i = 0; i < op->n_operands && may; i++) {
        const struct slot *s = op->operands[i].slot;
        may = !s->points && !op->operands[i].map && s->state != SLOT_LOST && (s->plan_buf < 0 || (!source[s->plan_buf] && may_change(d, s->plan_buf)));
    }
    free(source);
    return may;
}

void detour_begin(struct device *d)
{
    struct progress *n = &d->ex->now;
    for (uint32_t k = n->alloc_from; k < n->alloc_k; k++)
        if (d->ex->learnt.rec.allocs[k].buf >= 0)
            cursor_let_go(d, d->ex->learnt.rec.allocs[k].buf);
    n->alloc_k = n->alloc_from;
    n->detour_to = steady_next(d);
}

/* The op is like the recorded op at `at`: it has tensors of the same sizes in the same places, and the same tensors where recorded buffers have their slots, so that
 * weights tell equal layers apart. A tensor that was allocated since the latest recorded op may stand for any recorded buffer yet. */
static bool is_like(const struct device *d, const struct rt_op *op, uint32_t at)
{
    const struct record *r = &d->ex->learnt.rec;
    const struct rec_op *o = &r->ops[at];
    if (op->sig != o->sig)
        return false;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &r->operands[k];
        const struct rec_buf *b = &r->bufs[w->buf];
        const struct rt_operand *a = op_operand_at(op, w->offset);
        const int32_t id = d->ex->now.bind[w->buf];
        if (recording_word_is_idle(r, o, w->offset))
            continue;
        if (!a || a->slot->bytes != b->bytes || (id >= 0 && b->alloc_ord < (int32_t)d->ex->now.alloc_from && a->slot->id != (uint32_t)id))
            return false;
    }
    return true;
}

static uint32_t window_end(const struct device *d)
{
    const uint32_t from = d->ex->now.pos, n_ops = d->ex->learnt.rec.n_ops, most = most_ops(d);
    return n_ops - from < most ? n_ops : from + most;
}

/* Counts, for each recorded op ahead, how many of the latest ops beside the plan, in a row, were like the recorded ops up to it (progress.came). */
static void follow(struct device *d, const struct rt_op *op)
{
    struct progress *n = &d->ex->now;
    const uint32_t end = window_end(d);
    uint8_t before = 0;
    for (uint32_t at = n->pos; at < end; at++) {
        if (recording_is_optional(&d->ex->learnt.rec.ops[at]))
            continue;
        const uint8_t then = n->n_trail ? n->came[at] : 0;
        n->came[at] = is_like(d, op, at) ? before + (before < DETOUR_SURE) : 0;
        before = then;
    }
    n->n_trail++;
}

void detour_ran(struct device *d, const struct rt_op *op)
{
    struct exec *ex = d->ex;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const int32_t b = op->operands[i].slot->plan_buf;
        if (b < 0)
            continue;
        for (uint32_t o = 0; o < ex->now.pos; o++)
            ex->now.not_again[o] |= has_used(ex, o, b, ex->now.cur[b]);
    }
    follow(d, op);
    ex->now.n_beside++;
}

uint32_t detour_rejoins_at(const struct device *d, const struct rt_op *op)
{
    const uint32_t n_ops = d->ex->learnt.rec.n_ops, end = window_end(d);
    uint32_t before = n_ops; /* the recorded op before `at` that comes in every iteration */
    for (uint32_t at = d->ex->now.pos; at < end && d->ex->now.n_trail >= DETOUR_SURE - 1; at++) {
        if (recording_is_optional(&d->ex->learnt.rec.ops[at]))
            continue;
        if (before < n_ops && d->ex->now.came[before] >= DETOUR_SURE - 1 && is_like(d, op, at))
            return at;
        before = at;
    }
    return n_ops;
}

/* The next recorded op after the one at `at` that comes in every iteration: holds and copies to the host are passed over. */
static uint32_t next_certain(const struct device *d, uint32_t at)
{
    const uint32_t n_ops = d->ex->learnt.rec.n_ops;
    return at < n_ops ? d->ex->now.steady[at + 1].op : n_ops;
}

/* No recorded op after `op` reads a value that `op` makes. */
static bool is_read_no_more(const struct device *d, uint32_t op)
{
    const struct record *r = &d->ex->learnt.rec;
    const struct compiled *p = d->ex->plan;
    const uint32_t from = r->ops[op].first + r->ops[op].n;
    for (const struct compiled_value *v = p->made + p->made_at[op], *end = p->made + p->made_at[op + 1]; v < end; v++)
        for (uint32_t k = from; k < r->n_operands; k++)
            if (r->operands[k].buf == v->buf && p->in_ver[k] == v->version)
                return false;
    return true;
}

uint32_t detour_skips_to(const struct device *d, const struct rt_op *op)
{
    const uint32_t n_ops = d->ex->learnt.rec.n_ops;
    uint32_t at = d->ex->now.pos && d->ex->now.n_trail <= DETOUR_SKIP ? steady_next(d) : n_ops;
    for (int skipped = 0; at < n_ops && skipped < DETOUR_SKIP && is_read_no_more(d, at); skipped++) {
        at = next_certain(d, at);
        if (at < n_ops && is_like(d, op, at))
            return at;
    }
    return n_ops;
}

bool detour_is_past_the_end(struct device *d, bool begins_next)
{
    struct progress *n = &d->ex->now;
    uint32_t at = steady_next(d), left = 0;
    for (const uint32_t n_ops = d->ex->learnt.rec.n_ops; at < n_ops && left <= DETOUR_SKIP; at = next_certain(d, at))
        left++;
    if (!n->pos || left > (begins_next ? DETOUR_SKIP : n->may_lack) || !detour_may_pass(d, d->ex->learnt.rec.n_ops))
        return false;
    if (left > n->may_lack)
        n->may_lack = left;
    return true;
}

bool detour_may_pass(const struct device *d, uint32_t to)
{
    for (uint32_t i = d->ex->now.pos; i < to; i++)
        if (is_needed_again(d, i))
            return false;
    return true;
}

/* Values that the recorded ops from the cursor to `to` were to overwrite stay, since these ops do not come: the plan drops such values right before the ops. -EBUSY: such
 * a value has gone. */
static int hold_overwritten(struct device *d, uint32_t to)
{
    const struct compiled *p = d->ex->plan;
    int r = 0;
    for (const struct compiled_value *v = p->made + p->made_at[d->ex->now.pos], *end = p->made + p->made_at[to]; v < end && !r; v++) {
        r = rebuild_owed(d, v->buf) ? -EBUSY : 0;
        d->ex->now.held_longer[v->buf] = true;
    }
    return r;
}

int detour_pass(struct device *d, uint32_t to, unsigned t)
{
    struct exec *ex = d->ex;
    detour_begin(d);
    int r = hold_overwritten(d, to);
    r = r ? r : steps_hold(d, to, t);
    while (!r && ex->now.pos < to && !(r = steps_pass(d, ex->now.pos, t))) {
        const uint32_t i = ex->now.pos;
        for (const struct compiled_value *v = ex->plan->made + ex->plan->made_at[i], *end = ex->plan->made + ex->plan->made_at[i + 1]; v < end; v++)
            ex->now.res[v->buf] = ex->now.cur[v->buf] = v->version;
        ex->now.not_again[i] = true;
        ex->now.pos++;
    }
    ex->now.detour_to = to;
    return r;
}

void detour_looks_back(struct device *d)
{
    if (d->ex->now.left_at)
        d->ex->now.looks_back = most_ops(d) + DETOUR_SURE;
}

bool detour_comes_back(struct device *d, const struct rt_op *op)
{
    struct progress *n = &d->ex->now;
    uint32_t between = 0; /* recorded ops from where the plan was left to the op at hand; the latest of them have come */
    if (!n->looks_back)
        return false;
    n->looks_back--;
    const uint32_t at = detour_rejoins_at(d, op);
    if (at == d->ex->learnt.rec.n_ops) {
        follow(d, op);
        return false;
    }
    n->looks_back = 0;
    for (uint32_t i = n->left_at; i < at; i++)
        between += !recording_is_optional(&d->ex->learnt.rec.ops[i]);
    n->left_for = between >= DETOUR_SURE ? at : 0;
    return n->left_for;
}

bool detour_is_known(struct device *d)
{
    struct exec *ex = d->ex;
    bool any = false;
    for (uint32_t i = ex->now.left_at; i < ex->now.left_for; i++)
        if (!ex->learnt.rec.ops[i].why_opaque) {
            ex->learnt.rec.ops[i].why_opaque = "does not come in every iteration";
            any = true;
        }
    if (any)
        ex->now.have_plan = false;
    return any;
}
