#include "policy/plan/cursor.h"
#include "policy/plan/steady.h"

void cursor_begin(struct device *d)
{
    const struct record *r = &d->ex->rec;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        d->ex->bind[b] = -1;
        d->ex->stays[b] = false;
        d->ex->res[b] = d->ex->cur[b] = x->alloc_ord < 0 ? 0 : -1;
        if (x->alloc_ord < 0 && x->dies < 0) { /* persistent: the same allocation as ever, if it is still there */
            struct slot *s = &d->slots[x->slot_id];
            if (s->live && s->serial == x->serial && !cursor_reached_since(x, s)) {
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

void cursor_unbind_all(struct device *d)
{
    for (uint32_t b = 0; b < d->ex->rec.n_bufs; b++) {
        struct slot *s = cursor_slot(d, (int32_t)b);
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

bool cursor_knows_elsewhere(const struct device *d)
{
    const struct exec *ex = d->ex;
    const uint32_t next = steady_next(d);
    for (uint32_t i = 0; i < ex->n_elsewhere; i++) {
        const uint32_t place = ex->elsewhere[i];
        uint32_t at = place < ex->n_trace_ops ? ex->op_of_trace[place] : ex->rec.n_ops;
        while (at < ex->rec.n_ops && recording_is_optional(&ex->rec.ops[at]))
            at++;
        if (at == next)
            return true;
    }
    return false;
}

void cursor_op_done(struct device *d)
{
    struct exec *ex = d->ex;
    for (const struct exec_value *v = ex->made + ex->made_at[ex->pos], *end = ex->made + ex->made_at[ex->pos + 1]; v < end; v++)
        ex->res[v->buf] = ex->cur[v->buf] = v->version;
    if (!ex->pos++)
        ex->began_live_bytes = d->live_bytes;
    ex->ended = steady_next(d) == ex->rec.n_ops;
}

void cursor_take_away(struct device *d, int32_t b)
{
    struct slot *s = cursor_slot(d, b);
    swap_discard(d, s);
    if (s->state == SLOT_RESIDENT && s->kind == SLOT_LARGE)
        d->st.evictions += s->live;
    mem_unback(d, s, s->live ? SLOT_LOST : SLOT_EMPTY);
    d->ex->res[b] = -1;
}
