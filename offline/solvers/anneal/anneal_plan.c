/* A schedule of the annealer, written out as plan steps. */
#include "offline/solvers/anneal/anneal_plan.h"
#include "offline/solvers/anneal/anneal.h"

#include <errno.h>
#include <stdlib.h>

/* Steps of the copy engines, by slot; within a slot in the order of `rank`. */
struct copy_step {
    int32_t slot, rank, cell;
    int32_t order; /* among steps of one slot and rank: the engines' order */
};
enum { RANK_RELEASE, RANK_FETCH, RANK_RUN, RANK_OFFLOAD };

struct writer {
    const struct anneal *a;
    struct plan *out;
    uint8_t *resident; /* [n_bufs] */
    int32_t *at;       /* [n_cells] number of the cell's events that lie in the past */
    struct copy_step *steps;
    int32_t n_steps, done;
    int rc;
};

static void push(struct writer *w, enum plan_kind kind, int32_t id)
{
    if (!w->rc)
        w->rc = plan_push(w->out, kind, id);
}

/* Is cell c's content in memory still to be used, or to be released once the host has its copy? */
static int wanted(const struct writer *w, int32_t c)
{
    const struct event_list *e = &w->a->ev[c];
    return w->at[c] < e->n && (!anneal_ev_made(e->at[w->at[c]]) || anneal_ev_fetched(e->at[w->at[c]]));
}

static int step_before(const void *pa, const void *pb)
{
    const struct copy_step *a = pa, *b = pb;
    const int32_t d = a->slot != b->slot ? a->slot - b->slot : a->rank != b->rank ? a->rank - b->rank : a->order - b->order;
    return (d > 0) - (d < 0);
}

static int copy_steps(struct writer *w)
{
    const struct anneal_copies *cs = &w->a->copies;
    w->steps = malloc((3 * (size_t)cs->n + 1) * sizeof *w->steps);
    if (!w->steps)
        return -ENOMEM;
    for (int32_t i = 0; i < cs->n; i++) {
        const struct anneal_copy *out = &cs->at[cs->out_order[i]], *in = &cs->at[cs->in_order[i]];
        const int32_t held = out->tail_hi >= out->tail_lo ? out->tail_hi : out->tail_lo - 1;
        if (out->src >= 0)
            w->steps[w->n_steps++] = (struct copy_step){out->src, RANK_OFFLOAD, out->cell, i};
        w->steps[w->n_steps++] = (struct copy_step){held + 1, RANK_RELEASE, out->cell, i};
        if (in->fetch < w->a->n_slots - 1)
            w->steps[w->n_steps++] = (struct copy_step){in->fetch, RANK_FETCH, in->cell, -i};
    }
    qsort(w->steps, (size_t)w->n_steps, sizeof *w->steps, step_before);
    return 0;
}

/* Write the copy steps of slot s up to the given rank. */
static void put_copies(struct writer *w, int32_t s, int32_t rank)
{
    for (; w->done < w->n_steps; w->done++) {
        const struct copy_step *st = &w->steps[w->done];
        const int32_t b = w->a->m->cells[st->cell].buf;
        if (st->slot > s || (st->slot == s && st->rank > rank))
            return;
        push(w, st->rank == RANK_RELEASE ? PLAN_RELEASE : st->rank == RANK_FETCH ? PLAN_FETCH : PLAN_OFFLOAD, b);
        if (st->rank != RANK_OFFLOAD)
            w->resident[b] = st->rank == RANK_FETCH;
    }
}

/* Slot s has run: count the events of cell c up to it as past. */
static void pass(struct writer *w, int32_t c, int32_t s)
{
    const struct event_list *e = &w->a->ev[c];
    if (!w->a->m->cells[c].tracked)
        return;
    while (w->at[c] < e->n && anneal_ev_slot(e->at[w->at[c]]) <= s)
        w->at[c]++;
}

static void let_go(struct writer *w, int32_t c, int32_t s)
{
    const struct anneal_cell *cell = &w->a->m->cells[c];
    const int32_t final_slot = cell->final_op < 0 ? 0 : w->a->op_slot[cell->final_op];
    if (cell->tracked && s >= final_slot && !wanted(w, c) && w->resident[cell->buf]) {
        push(w, PLAN_DROP, cell->buf);
        w->resident[cell->buf] = 0;
    }
}

static void put_op(struct writer *w, int32_t o, int32_t s)
{
    const struct anneal_model *m = w->a->m;
    const struct graph *g = m->g;
    const struct graph_operand *p = graph_operands(g, o);
    const int32_t n = graph_n_operands(&g->ops[o]);
    push(w, PLAN_OP, o);
    put_copies(w, s, RANK_OFFLOAD);
    for (int32_t k = 0; k < n; k++) {
        w->resident[p[k].buf] = 1;
        if (p[k].in >= 0 && m->cell_of_val[p[k].in] >= 0)
            pass(w, m->cell_of_val[p[k].in], s);
        if (p[k].out >= 0)
            pass(w, m->cell_of_val[p[k].out], s);
    }
    /* a buffer that the program frees after this op leaves by itself, unless a replay still wants it */
    for (int32_t k = g->dies_at[o + 1]; k < g->dies_at[o + 2]; k++) {
        const int32_t b = g->die_list[k], c = m->cell_of_val[g->bufs[b].first_val + g->bufs[b].n_vers - 1];
        if (c >= 0 && wanted(w, c))
            w->rc = w->rc ? w->rc : plan_keep(w->out, b);
        else
            w->resident[b] = 0;
    }
    for (int32_t k = 0; k < n; k++) {
        if (p[k].in >= 0 && m->cell_of_val[p[k].in] >= 0)
            let_go(w, m->cell_of_val[p[k].in], s);
        if (p[k].out >= 0)
            let_go(w, m->cell_of_val[p[k].out], s);
    }
}

static void put_unit(struct writer *w, int32_t u, int32_t s)
{
    const struct anneal_model *m = w->a->m;
    const struct anneal_unit *unit = &m->units[u];
    const int32_t *in = m->unit_cells + unit->first_in, *made = m->unit_cells + unit->first_out;
    for (int32_t k = 0; k < unit->n_out; k++) {
        const struct anneal_cell *cell = &m->cells[made[k]];
        /* replays on the way to the final version write earlier versions, which may not replace a resident final one */
        if (cell->last_ver > cell->first_ver && w->resident[cell->buf])
            push(w, PLAN_DROP, cell->buf);
        w->resident[cell->buf] = 1;
    }
    const struct anneal_inner *inner = m->inner + unit->first_inner;
    for (int32_t i = 0, k = 0; i < unit->n_ops; i++) {
        push(w, PLAN_REPLAY, m->unit_ops[unit->first_op + i]);
        for (; k < unit->n_inner && inner[k].last == i; k++)
            push(w, PLAN_DROP, m->cells[inner[k].cell].buf);
    }
    put_copies(w, s, RANK_OFFLOAD);
    for (int32_t k = 0; k < unit->n_out; k++) {
        pass(w, made[k], s);
        let_go(w, made[k], s);
    }
    for (int32_t k = 0; k < unit->n_in; k++) {
        pass(w, in[k], s);
        let_go(w, in[k], s);
    }
}

int anneal_plan(const struct anneal *a, struct plan *out)
{
    const struct anneal_model *m = a->m;
    const struct graph *g = m->g;
    struct writer w = {.a = a, .out = out};
    plan_reset(out);
    w.resident = calloc((size_t)g->n_bufs + 1, 1);
    w.at = calloc((size_t)m->n_cells + 1, sizeof *w.at);
    w.rc = w.resident && w.at ? copy_steps(&w) : -ENOMEM;
    for (int32_t b = 0; !w.rc && b < g->n_bufs; b++)
        w.resident[b] = g->bufs[b].born < 0 && g->bufs[b].dies != 0;
    put_copies(&w, 0, RANK_OFFLOAD);
    for (int32_t c = 0; !w.rc && c < m->n_cells; c++)
        if (m->cells[c].tracked && m->cells[c].final_op < 0) {
            pass(&w, c, 0);
            /* drop a cell whose contents from before op 0 no op reads or writes in place */
            if (m->cells[c].start < 0)
                let_go(&w, c, 0);
        }
    for (int32_t s = 1; !w.rc && s < a->n_slots; s++) {
        put_copies(&w, s, RANK_RUN);
        if (a->slot[s] == ANNEAL_EMPTY)
            continue;
        if (anneal_is_replay(a, s))
            put_unit(&w, anneal_unit_at(a, s), s);
        else
            put_op(&w, a->slot[s], s);
    }
    plan_keep_sort(out);
    free(w.resident);
    free(w.at);
    free(w.steps);
    return w.rc;
}
