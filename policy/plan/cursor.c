#include "policy/plan/cursor.h"
#include "policy/memory/alloc.h"
#include "policy/memory/slot.h"
#include "policy/memory/swap.h"
#include "policy/plan/match.h"
#include "policy/plan/steady.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool cursor_bind(struct device *d, int32_t b, struct slot *s)
{
    if (!rt_check_plan(d, d->ex->now.bind[b] < 0) || !rt_check_plan(d, s->plan_buf < 0))
        return false;
    d->ex->now.bind[b] = (int32_t)s->id;
    s->plan_buf = b;
    return true;
}

bool cursor_unbind(struct device *d, int32_t b)
{
    const int32_t id = d->ex->now.bind[b];
    d->ex->now.bind[b] = -1;
    if (!rt_check_plan(d, id >= 0 && (uint32_t)id < d->mem.n_slots && d->mem.slots[id].plan_buf == b))
        return false;
    d->mem.slots[id].plan_buf = -1;
    return true;
}

void cursor_begin(struct device *d)
{
    const struct record *r = &d->ex->learnt.rec;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        d->ex->now.bind[b] = -1;
        d->ex->now.held_longer[b] = false;
        d->ex->now.res[b] = d->ex->now.cur[b] = x->alloc_ord < 0 ? 0 : -1;
        if (x->alloc_ord < 0 && x->dies < 0) { /* persistent: the same allocation as ever, if it is still there */
            struct slot *s = &d->mem.slots[x->slot_id];
            if (s->live && s->serial == x->serial && !cursor_reached_since(x, s)) {
                cursor_bind(d, (int32_t)b, s);
            }
        }
    }
    memset(d->ex->now.not_again, 0, r->n_ops * sizeof *d->ex->now.not_again);
    d->ex->now.pos = d->ex->now.alloc_k = d->ex->now.alloc_from = 0;
    d->ex->now.n_beside = d->ex->now.n_trail = d->ex->now.detour_to = d->ex->now.looks_back = 0;
    d->ex->now.rebuilt_now = d->ex->now.compared_now = 0;
    d->ex->now.ended = false;
    d->ex->now.tried = 0;
    d->ex->now.proof_calls = 0;
    d->ex->now.swaps_before = d->st.swaps_in + d->st.swaps_out;
    d->ex->now.mem_calls_before = d->st.mem_calls;
}

void cursor_let_go(struct device *d, int32_t b)
{
    struct slot *s = cursor_slot(d, b);
    if (!s || !cursor_unbind(d, b) || s->live)
        return;
    swap_discard(d, s); /* freed by the program, kept for the plan: no longer */
    slot_unback(d, s, SLOT_EMPTY);
    s->owed = false;
    if (s->fixed_ord == ORD_OWED) {
        s->fixed_ord = ORD_NONE;
        alloc_free(d, s);
    }
}

void cursor_unbind_all(struct device *d)
{
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++)
        cursor_let_go(d, (int32_t)b);
}

bool cursor_knows_named_write(const struct device *d)
{
    const struct exec *ex = d->ex;
    const uint32_t next = steady_next(d);
    for (uint32_t i = 0; i < ex->learnt.n_named_writes; i++) {
        const uint32_t place = ex->learnt.named_writes[i];
        uint32_t at = place < ex->learnt.n_trace_ops ? ex->learnt.op_of_trace[place] : ex->learnt.rec.n_ops;
        while (at < ex->learnt.rec.n_ops && recording_is_optional(&ex->learnt.rec.ops[at]))
            at++;
        if (at == next)
            return true;
    }
    return false;
}

/* A recorded op has run: what the recorded iteration allocates before it has been allocated, or does not come. */
static void end_detour(struct exec *ex)
{
    const struct record *r = &ex->learnt.rec;
    ex->now.n_trail = 0;
    while (ex->now.alloc_k < r->n_allocs && r->allocs[ex->now.alloc_k].before_op < (int32_t)ex->now.pos)
        ex->now.alloc_k++;
}

void cursor_op_done(struct device *d)
{
    struct exec *ex = d->ex;
    for (const struct compiled_value *v = ex->plan->made + ex->plan->made_at[ex->now.pos], *end = ex->plan->made + ex->plan->made_at[ex->now.pos + 1]; v < end; v++)
        ex->now.res[v->buf] = ex->now.cur[v->buf] = v->version;
    if (!ex->now.pos++)
        ex->now.began_live_bytes = d->mem.live_bytes;
    if (ex->now.n_trail || ex->now.detour_to)
        end_detour(ex);
    ex->now.alloc_from = ex->now.alloc_k;
    ex->now.ended = steady_next(d) == ex->learnt.rec.n_ops;
}

void cursor_take_away(struct device *d, int32_t b)
{
    struct slot *s = cursor_slot(d, b);
    swap_discard(d, s);
    if (s->state == SLOT_RESIDENT && s->kind == SLOT_LARGE)
        d->st.evictions += s->live;
    slot_unback(d, s, s->live ? SLOT_LOST : SLOT_EMPTY);
    d->ex->now.res[b] = -1;
}

int cursor_make(struct device *d)
{
    struct progress *n = &d->ex->now;
    const struct record *r = &d->ex->learnt.rec;
    n->bind = calloc(r->n_bufs + 1, sizeof *n->bind);
    n->res = calloc(r->n_bufs + 1, sizeof *n->res);
    n->cur = calloc(r->n_bufs + 1, sizeof *n->cur);
    n->held_longer = calloc(r->n_bufs + 1, sizeof *n->held_longer);
    n->partial = calloc(r->n_bufs + 1, sizeof *n->partial);
    n->op_banned = calloc(r->n_ops + 1, sizeof *n->op_banned);
    n->not_again = calloc(r->n_ops + 1, sizeof *n->not_again);
    n->came = calloc(r->n_ops + 1, sizeof *n->came);
    n->side_is_saved = calloc(r->n_operands + 1, sizeof *n->side_is_saved);
    n->left_out = calloc(1, sizeof *n->left_out);
    n->replay_args = malloc(OP_MAX_ARG_BYTES);
    n->other_args = malloc(OP_MAX_ARG_BYTES);
    return n->bind && n->res && n->cur && n->held_longer && n->partial && n->op_banned && n->not_again && n->came && n->side_is_saved && n->left_out && n->replay_args &&
                   n->other_args
               ? 0
               : -ENOMEM;
}

void cursor_clear(struct device *d)
{
    struct progress *n = &d->ex->now;
    void *const tables[] = {n->bind, n->res, n->cur, n->held_longer, n->partial, n->op_banned, n->not_again, n->came, n->side_is_saved, n->steady, n->left_out, n->replay_args, n->other_args};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        free(tables[i]);
    memset(n, 0, sizeof *n);
}
