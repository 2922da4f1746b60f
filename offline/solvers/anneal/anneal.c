#include "offline/solvers/anneal/anneal.h"
#include "offline/solvers/anneal/anneal_copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EV_SLOT(e) anneal_ev_slot(e)
#define EV_MADE(e) anneal_ev_made(e)

static int slots_reserve(struct anneal *a, int32_t n)
{
    if (n < a->cap_slots) /* the profile has n_slots + 1 entries */
        return 0;
    const size_t cap = (size_t)n + (size_t)n / 2 + 1;
    int32_t **lists[] = {&a->slot, &a->replays, &a->replay_at, &a->remap, &a->copies.first};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int32_t *p = realloc(*lists[i], cap * sizeof *p);
        if (!p)
            return -ENOMEM;
        *lists[i] = p;
    }
    double **rows[] = {&a->profile, &a->copies.when, &a->copies.diff, &a->price_sum};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double *p = realloc(*rows[i], (cap + 1) * sizeof *p);
        if (!p)
            return -ENOMEM;
        *rows[i] = p;
    }
    a->cap_slots = (int32_t)cap;
    return 0;
}

/* First event after slot s. */
static inline int32_t events_after(const struct event_list *e, int32_t s) { return event_list_after(e, anneal_ev(s, ANNEAL_LATEST)); }

/* True if event i borders on a stay on the host: only such a use matters to the timing of stays. */
static inline int beside_fetch(const struct event_list *e, int32_t i)
{
    return (i > 0 && anneal_ev_fetched(e->at[i - 1])) || (i + 1 < e->n && anneal_ev_fetched(e->at[i + 1]));
}

/* ---- from scratch -------------------------------------------------------------------------------------------- */

static void profile_add(double *diff, int32_t lo, int32_t hi, double bytes)
{
    diff[lo] += bytes;
    diff[hi + 1] -= bytes;
}

/* Bytes by slot out of the events, into diff[n_slots + 1]. */
static void profile_build(const struct anneal *a, double *diff)
{
    const struct anneal_model *m = a->m;
    memset(diff, 0, ((size_t)a->n_slots + 1) * sizeof *diff);
    diff[0] = (double)m->base_bytes;
    for (int32_t c = 0; c < m->n_cells; c++) {
        const struct anneal_cell *cell = &m->cells[c];
        const struct event_list *e = &a->ev[c];
        if (!cell->tracked)
            continue;
        const double bytes = (double)cell->bytes;
        /* the cell is resident from the first op that touches it to the op that makes its final version */
        int32_t from = cell->start < 0 ? 0 : a->op_slot[cell->start];
        for (int32_t i = 0; i < e->n;) {
            int32_t last = i;
            while (last + 1 < e->n && !EV_MADE(e->at[last + 1]))
                last++;
            profile_add(diff, i ? EV_SLOT(e->at[i]) : from, EV_SLOT(e->at[last]), bytes);
            i = last + 1;
        }
    }
    for (int32_t k = 0; k < a->n_replays; k++) {
        const int32_t s = a->replays[k];
        const int64_t scratch = m->units[anneal_unit_at(a, s)].scratch_bytes;
        profile_add(diff, s, s, (double)scratch);
    }
    for (int32_t k = 0; k < a->copies.n; k++) {
        const struct anneal_copy *x = &a->copies.at[k];
        if (x->tail_lo <= x->tail_hi)
            profile_add(diff, x->tail_lo, x->tail_hi, (double)m->cells[x->cell].bytes);
    }
    for (int32_t s = 1; s < a->n_slots; s++)
        diff[s] += diff[s - 1];
}

static int trees_build(struct anneal *a)
{
    a->priced = 0;
    profile_build(a, a->profile);
    /* no op runs in the first and the last slot: memory held there never is a peak of its own */
    a->profile[0] = a->profile[a->n_slots - 1] = 0;
    int rc = segtree_init(&a->tree, (uint32_t)a->n_slots);
    if (rc)
        return rc;
    segtree_build(&a->tree, a->profile);
    if (a->soft_unit > 0) {
        rc = segtree_soft_init(&a->soft, (uint32_t)a->n_slots);
        if (rc)
            return rc;
        for (int32_t s = 0; s < a->n_slots; s++)
            a->profile[s] /= a->soft_unit;
        segtree_soft_build(&a->soft, a->profile);
    }
    return 0;
}

/* Fill the event lists with the program's own events; a->op_slot must be set. */
static int events_init(struct anneal *a)
{
    const struct anneal_model *m = a->m;
    for (int32_t c = 0; c < m->n_cells; c++) {
        const struct anneal_cell *cell = &m->cells[c];
        struct event_list *e = &a->ev[c];
        e->n = 0;
        if (!cell->tracked)
            continue;
        if (event_list_reserve(e, cell->n_uses + 2))
            return -ENOMEM;
        e->at[e->n++] = anneal_ev(cell->final_op < 0 ? 0 : a->op_slot[cell->final_op], ANNEAL_MADE);
        for (int32_t k = 0; k < cell->n_uses; k++)
            e->at[e->n++] = anneal_ev(a->op_slot[m->uses[cell->first_use + k]], ANNEAL_USED);
        if (cell->survives)
            e->at[e->n++] = anneal_ev(a->op_slot[m->g->n_ops], ANNEAL_USED);
    }
    return 0;
}

struct anneal *anneal_new(const struct anneal_model *m)
{
    struct anneal *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->m = m;
    a->stride = m->g->n_ops < 250 ? 9 : m->g->n_ops < 1000 ? 3 : 2;
    a->ev = calloc((size_t)m->n_cells + 1, sizeof *a->ev);
    a->op_slot = malloc(((size_t)m->g->n_ops + 1) * sizeof *a->op_slot);
    a->copies.of_cell = calloc((size_t)m->n_cells + 1, sizeof *a->copies.of_cell);
    a->copies.ns_per_byte = 1e9 / m->g->host_bytes_per_s;
    const char *copies = getenv("REMAT_PLAN_COPIES");
    a->copies.until_used = copies && !strcmp(copies, "until-used");
    struct anneal_seq ops = {.at = malloc(((size_t)m->g->n_ops + 1) * sizeof *ops.at), .n = m->g->n_ops};
    int ok = a->ev && a->op_slot && a->copies.of_cell && ops.at;
    for (int32_t i = 0; ok && i < m->g->n_ops; i++)
        ops.at[i] = i;
    if (ok && anneal_load(a, &ops))
        ok = 0;
    free(ops.at);
    if (!ok) {
        anneal_free(a);
        return NULL;
    }
    return a;
}

void anneal_free(struct anneal *a)
{
    if (!a)
        return;
    for (int32_t c = 0; a->ev && c < a->m->n_cells; c++)
        free(a->ev[c].at);
    free(a->ev);
    free(a->slot);
    free(a->op_slot);
    free(a->replays);
    free(a->replay_at);
    free(a->profile);
    free(a->price_sum);
    free(a->remap);
    anneal_copies_free(a);
    segtree_free(&a->tree);
    segtree_soft_free(&a->soft);
    free(a);
}

int anneal_set_soft(struct anneal *a, double unit_bytes)
{
    a->soft_unit = unit_bytes;
    return trees_build(a);
}

void anneal_op_peaks(const struct anneal *a, double *bytes)
{
    const int32_t n_ops = a->m->g->n_ops;
    for (int32_t i = 0, s = 1; i < n_ops; i++) {
        bytes[i] = 0;
        for (; s <= a->op_slot[i]; s++)
            bytes[i] = a->profile[s] > bytes[i] ? a->profile[s] : bytes[i];
    }
}

int anneal_set_price(struct anneal *a, const double *byte_ns)
{
    if (!byte_ns)
        return a->priced ? trees_build(a) : 0;
    double *const sum = a->price_sum, *const profile = a->profile;
    profile_build(a, profile);
    memset(sum, 0, ((size_t)a->n_slots + 1) * sizeof *sum);
    for (int32_t i = 0, s = 1; i < a->m->g->n_ops; i++) {
        int32_t top = a->op_slot[i];
        for (; s <= a->op_slot[i]; s++)
            top = profile[s] > profile[top] ? s : top;
        sum[top + 1] = byte_ns[i];
    }
    for (int32_t s = 0; s < a->n_slots; s++)
        sum[s + 1] += sum[s];
    a->price_ns = 0;
    a->priced = 1;
    return 0;
}

/* ---- one replay more or less ------------------------------------------------------------------------------------ */

int anneal_may_add(const struct anneal *a, int32_t u, int32_t s)
{
    const struct anneal_unit *unit = &a->m->units[u];
    return a->slot[s] == ANNEAL_EMPTY && unit->replayable && s < a->op_slot[unit->until] &&
           s > a->op_slot[a->m->unit_ops[unit->first_op + unit->n_ops - 1]];
}

int anneal_add(struct anneal *a, int32_t u, int32_t s)
{
    const struct anneal_model *m = a->m;
    const struct anneal_unit *unit = &m->units[u];
    const int32_t *cells = m->unit_cells;
    for (int32_t k = 0; k < unit->n_in; k++)
        if (event_list_reserve(&a->ev[cells[unit->first_in + k]], a->ev[cells[unit->first_in + k]].n + 1))
            return -ENOMEM;
    for (int32_t k = 0; k < unit->n_out; k++)
        if (event_list_reserve(&a->ev[cells[unit->first_out + k]], a->ev[cells[unit->first_out + k]].n + 1))
            return -ENOMEM;
    for (int32_t k = 0; k < unit->n_out; k++) {
        const int32_t c = cells[unit->first_out + k];
        struct event_list *e = &a->ev[c];
        const int32_t i = events_after(e, s);
        a->copies.dirty |= a->copies.of_cell[c];
        const double bytes = (double)m->cells[c].bytes;
        if (i < e->n && !EV_MADE(e->at[i]))
            anneal_hold(a, EV_SLOT(e->at[i - 1]) + 1, s - 1, -bytes); /* the earlier copy need not last */
        else
            anneal_hold(a, s, s, bytes); /* unused output, but the replay writes it */
        event_list_insert(e, i, anneal_ev(s, ANNEAL_MADE));
    }
    for (int32_t k = 0; k < unit->n_in; k++) {
        const int32_t c = cells[unit->first_in + k];
        struct event_list *e = &a->ev[c];
        const int32_t i = events_after(e, s);
        if (i == e->n || EV_MADE(e->at[i]))
            anneal_hold(a, EV_SLOT(e->at[i - 1]) + 1, s, (double)m->cells[c].bytes);
        event_list_insert(e, i, anneal_ev(s, ANNEAL_USED));
        a->copies.dirty |= a->copies.of_cell[c] && beside_fetch(e, i);
    }
    if (unit->scratch_bytes)
        anneal_hold(a, s, s, (double)unit->scratch_bytes);
    a->slot[s] = m->g->n_ops + u;
    a->replay_at[s] = a->n_replays;
    a->replays[a->n_replays++] = s;
    a->replay_ns += unit->ns;
    return 0;
}

void anneal_remove(struct anneal *a, int32_t s)
{
    const struct anneal_model *m = a->m;
    const struct anneal_unit *unit = &m->units[anneal_unit_at(a, s)];
    const int32_t *cells = m->unit_cells;
    for (int32_t k = 0; k < unit->n_out; k++) {
        const int32_t c = cells[unit->first_out + k];
        struct event_list *e = &a->ev[c];
        const int32_t i = events_after(e, s); /* event i - 1 is this replay's */
        a->copies.dirty |= a->copies.of_cell[c];
        const double bytes = (double)m->cells[c].bytes;
        if (i < e->n && !EV_MADE(e->at[i]))
            anneal_hold(a, EV_SLOT(e->at[i - 2]) + 1, s - 1, bytes);
        else
            anneal_hold(a, s, s, -bytes);
        event_list_erase(e, i - 1);
    }
    for (int32_t k = 0; k < unit->n_in; k++) {
        const int32_t c = cells[unit->first_in + k];
        struct event_list *e = &a->ev[c];
        const int32_t i = events_after(e, s);
        a->copies.dirty |= a->copies.of_cell[c] && beside_fetch(e, i - 1);
        if (i == e->n || EV_MADE(e->at[i]))
            anneal_hold(a, EV_SLOT(e->at[i - 2]) + 1, s, -(double)m->cells[c].bytes);
        event_list_erase(e, i - 1);
    }
    if (unit->scratch_bytes)
        anneal_hold(a, s, s, -(double)unit->scratch_bytes);
    a->slot[s] = ANNEAL_EMPTY;
    const int32_t k = a->replay_at[s], moved = a->replays[--a->n_replays];
    a->replays[k] = moved;
    a->replay_at[moved] = k;
    a->replay_ns -= unit->ns;
}

int32_t anneal_empty_before(const struct anneal *a, int32_t s, int32_t after)
{
    const int32_t far = s - 12 * a->stride, reach = far > after ? far : after;
    for (; s > reach; s--)
        if (a->slot[s] == ANNEAL_EMPTY)
            return s;
    return -1;
}

int anneal_regrid(struct anneal *a)
{
    const struct anneal_model *m = a->m;
    const int32_t n_ops = m->g->n_ops, n_seq = n_ops + a->n_replays, n_slots = a->stride * (n_seq + 1) + 1, before = a->n_slots;
    if (slots_reserve(a, n_slots > a->n_slots ? n_slots : a->n_slots))
        return -ENOMEM;
    int32_t *const seq = a->replay_at; /* free until the end of this function */
    int32_t n = 0;
    for (int32_t s = 0; s < a->n_slots; s++) {
        const int32_t what = a->slot[s];
        a->remap[s] = a->stride * (n + 1) - (what == ANNEAL_EMPTY);
        if (what != ANNEAL_EMPTY)
            seq[n++] = what;
    }
    a->remap[0] = 0;
    a->remap[a->n_slots - 1] = n_slots - 1;
    for (int32_t i = 0; i <= n_ops; i++)
        a->op_slot[i] = a->remap[a->op_slot[i]];
    for (int32_t c = 0; c < m->n_cells; c++)
        for (int32_t i = 0; i < a->ev[c].n; i++)
            a->ev[c].at[i] = anneal_ev(a->remap[EV_SLOT(a->ev[c].at[i])], a->ev[c].at[i] & 3);
    a->n_slots = n_slots;
    for (int32_t s = 0; s < n_slots; s++)
        a->slot[s] = s > 0 && s < n_slots - 1 && s % a->stride == 0 ? seq[s / a->stride - 1] : ANNEAL_EMPTY;
    for (int32_t k = 0; k < a->n_replays; k++) {
        a->replays[k] = a->remap[a->replays[k]];
        a->replay_at[a->replays[k]] = k;
    }
    for (int32_t k = 0; k < a->copies.n; k++) {
        struct anneal_copy *x = &a->copies.at[k];
        x->fetch = a->remap[x->fetch];
        x->wait.free_by = a->remap[x->wait.free_by];
        if (x->wait.back_from < before)
            x->wait.back_from = a->remap[x->wait.back_from];
        x->tail_lo = 1;
        x->tail_hi = 0;
    }
    const int rc = trees_build(a);
    return rc ? rc : anneal_clock(a);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

void anneal_seq_free(struct anneal_seq *seq)
{
    free(seq->at);
    free(seq->stays);
    *seq = (struct anneal_seq){0};
}

static int seq_reserve(struct anneal_seq *seq, int32_t n)
{
    if (n <= seq->cap)
        return 0;
    int32_t *at = realloc(seq->at, 2 * (size_t)n * sizeof *at);
    if (!at)
        return -ENOMEM;
    seq->at = at;
    seq->cap = 2 * n;
    return 0;
}

static int seq_reserve_stays(struct anneal_seq *seq, int32_t n)
{
    if (n <= seq->cap_stays)
        return 0;
    struct anneal_stay *stays = realloc(seq->stays, 2 * (size_t)n * sizeof *stays);
    if (!stays)
        return -ENOMEM;
    seq->stays = stays;
    seq->cap_stays = 2 * n;
    return 0;
}

int anneal_seq_copy(struct anneal_seq *to, const struct anneal_seq *from)
{
    if (seq_reserve(to, from->n) || seq_reserve_stays(to, from->n_stays))
        return -ENOMEM;
    struct anneal_seq copy = *from;
    copy.at = memcpy(to->at, from->at, (size_t)from->n * sizeof *to->at);
    copy.stays = from->n_stays ? memcpy(to->stays, from->stays, (size_t)from->n_stays * sizeof *to->stays) : to->stays;
    copy.cap = to->cap;
    copy.cap_stays = to->cap_stays;
    *to = copy;
    return 0;
}

int anneal_save(const struct anneal *a, struct anneal_seq *seq)
{
    const struct anneal_copies *cs = &a->copies;
    if (seq_reserve(seq, a->m->g->n_ops + a->n_replays) || seq_reserve_stays(seq, cs->n))
        return -ENOMEM;
    seq->n = 0;
    for (int32_t s = 0; s < a->n_slots; s++) {
        a->remap[s] = seq->n;
        if (a->slot[s] != ANNEAL_EMPTY)
            seq->at[seq->n++] = a->slot[s];
    }
    seq->n_stays = cs->n;
    for (int32_t k = 0; k < cs->n; k++) {
        const struct anneal_wait w = cs->at[k].wait;
        seq->stays[k] = (struct anneal_stay){cs->at[k].cell, a->remap[cs->at[k].fetch],
                                             {w.sides, a->remap[w.free_by], w.back_from < a->n_slots ? a->remap[w.back_from] : INT32_MAX}};
    }
    seq->wait_ns = cs->wait_ns;
    seq->replay_ns = a->replay_ns;
    seq->peak_bytes = anneal_peak(a);
    seq->copy_bytes = cs->bytes;
    return 0;
}

static void copies_clear(struct anneal_copies *cs)
{
    for (int32_t k = 0; k < cs->n; k++)
        cs->of_cell[cs->at[k].cell] = 0;
    cs->n = 0;
    cs->bytes = 0;
    cs->wait_ns = 0;
    cs->dirty = 0;
}

/* The last slot before entry i of the row that anneal_load loads. */
static int32_t slot_before(const struct anneal *a, int32_t i) { return a->stride * (i + 1) - 1; }

int anneal_load(struct anneal *a, const struct anneal_seq *seq)
{
    const int32_t n_ops = a->m->g->n_ops, n = seq->n, *at = seq->at;
    const int32_t n_slots = a->stride * (n + 1) + 1;
    if (slots_reserve(a, n_slots))
        return -ENOMEM;
    copies_clear(&a->copies);
    a->n_slots = n_slots;
    a->n_replays = 0;
    a->replay_ns = 0;
    for (int32_t s = 0; s < n_slots; s++)
        a->slot[s] = ANNEAL_EMPTY;
    for (int32_t i = 0; i < n; i++)
        if (at[i] < n_ops) {
            a->slot[a->stride * (i + 1)] = at[i];
            a->op_slot[at[i]] = a->stride * (i + 1);
        }
    a->op_slot[n_ops] = n_slots - 1;
    if (events_init(a) || trees_build(a))
        return -ENOMEM;
    for (int32_t i = 0; i < n; i++)
        if (at[i] >= n_ops && anneal_may_add(a, at[i] - n_ops, a->stride * (i + 1)) &&
            anneal_add(a, at[i] - n_ops, a->stride * (i + 1)))
            return -ENOMEM;
    for (int32_t k = 0; k < seq->n_stays; k++) {
        const struct anneal_stay *x = &seq->stays[k];
        const int32_t s = slot_before(a, x->fetch);
        const struct anneal_wait w = {x->wait.sides, x->wait.free_by ? slot_before(a, x->wait.free_by) : 0,
                                      x->wait.back_from < n ? slot_before(a, x->wait.back_from) : INT32_MAX};
        if (anneal_copy_may_put(a, x->cell, s) && anneal_copy_put(a, x->cell, s, w))
            return -ENOMEM;
    }
    return anneal_clock(a);
}

enum { GONE = -1 };

/* Host copy of a buffer at the present step of the plan. */
struct left {
    int32_t cell; /* cell that was released to the host; -1: none */
    int32_t by;   /* number of row entries before its release */
};

/* Add the plan's stays on the host to seq. at[k]: index in the row that step k of the plan corresponds to. */
static int stays_of_plan(const struct anneal_model *m, const struct plan *p, const int32_t *at, struct anneal_seq *seq)
{
    const struct graph *g = m->g;
    struct left *left = calloc((size_t)g->n_bufs + 1, sizeof *left);
    int32_t *ver = calloc((size_t)g->n_bufs + 1, sizeof *ver), n = 0;
    for (size_t k = 0; k < p->n_steps; k++)
        n += p->steps[k].kind == PLAN_RELEASE;
    int rc = left && ver ? seq_reserve_stays(seq, n) : -ENOMEM;
    for (int32_t b = 0; !rc && b < g->n_bufs; b++)
        left[b].cell = -1;
    for (size_t k = 0; !rc && k < p->n_steps; k++) {
        const struct plan_step st = p->steps[k];
        if (st.kind == PLAN_OP || st.kind == PLAN_REPLAY) {
            const struct graph_operand *u = graph_operands(g, st.id);
            for (int32_t i = 0; i < graph_n_operands(&g->ops[st.id]); i++)
                if (u[i].out >= 0 && (st.kind == PLAN_OP || u[i].role != GRAPH_SIDE)) {
                    ver[u[i].buf] = g->vals[u[i].out].version;
                    left[u[i].buf].cell = -1;
                }
        } else if (st.kind == PLAN_RELEASE) {
            left[st.id].cell = m->cell_of_val[g->bufs[st.id].first_val + ver[st.id]];
            left[st.id].by = at[k];
        } else if (st.kind == PLAN_FETCH) {
            if (left[st.id].cell >= 0 && m->cells[left[st.id].cell].tracked)
                seq->stays[seq->n_stays++] = (struct anneal_stay){left[st.id].cell, at[k], {ANNEAL_WAIT_BOTH, left[st.id].by, at[k]}};
            left[st.id].cell = -1;
        }
    }
    for (int32_t b = 0; !rc && b < g->n_bufs; b++)
        if (left[b].cell >= 0 && m->cells[left[b].cell].tracked && m->cells[left[b].cell].survives)
            seq->stays[seq->n_stays++] = (struct anneal_stay){left[b].cell, seq->n, {ANNEAL_WAIT_OUT, left[b].by, INT32_MAX}};
    free(left);
    free(ver);
    return rc;
}

int anneal_seq_of_plan(const struct anneal_model *m, const struct plan *p, struct anneal_seq *seq)
{
    const int32_t n_ops = m->g->n_ops;
    if (seq_reserve(seq, (int32_t)p->n_steps))
        return -ENOMEM;
    seq->n = seq->n_stays = 0;
    seq->replay_ns = 0;
    seq->peak_bytes = 0;
    int32_t run = 0; /* index in seq->at at which the present run of replays began */
    int32_t *where = malloc(((size_t)m->n_units + 1) * sizeof *where); /* index in seq->at of each unit's last replay; -1: none yet */
    int32_t *at = malloc((p->n_steps + 1) * sizeof *at); /* [n_steps] entries of the row before each step */
    int32_t *before = malloc((p->n_steps + 1) * sizeof *before); /* [entries] remaining entries before each, GONE ones left out */
    if (!where || !at || !before) {
        free(where);
        free(at);
        free(before);
        return -ENOMEM;
    }
    for (int32_t u = 0; u < m->n_units; u++)
        where[u] = -1;
    for (size_t k = 0; k < p->n_steps; k++) {
        const struct plan_step *st = &p->steps[k];
        at[k] = seq->n;
        if (st->kind == PLAN_OP) {
            seq->at[seq->n++] = st->id;
            run = seq->n;
        } else if (st->kind == PLAN_REPLAY) {
            const int32_t u = m->unit_of_op[st->id];
            /* the last replayed op of a unit stands for the whole unit; the unit's first op begins another replay of it */
            if (where[u] >= run && st->id != m->unit_ops[m->units[u].first_op])
                seq->at[where[u]] = GONE;
            where[u] = seq->n;
            seq->at[seq->n++] = n_ops + u;
        }
    }
    int32_t n = 0;
    for (int32_t i = 0; i < seq->n; i++) {
        before[i] = n;
        if (seq->at[i] != GONE)
            seq->at[n++] = seq->at[i];
    }
    before[seq->n] = n;
    seq->n = n;
    for (size_t k = 0; k < p->n_steps; k++)
        at[k] = before[at[k]];
    const int rc = stays_of_plan(m, p, at, seq);
    free(where);
    free(at);
    free(before);
    return rc;
}

/* ---- proof ------------------------------------------------------------------------------------------------------ */

static int check_rebuilt(const struct anneal *a, double *profile)
{
    profile_build(a, profile);
    for (int32_t s = 1; s < a->n_slots - 1; s++)
        if (segtree_at(&a->tree, (uint32_t)s) != profile[s])
            return -EIO;
    int64_t ns = 0;
    for (int32_t k = 0; k < a->n_replays; k++) {
        const int32_t s = a->replays[k];
        if (a->replay_at[s] != k || !anneal_is_replay(a, s))
            return -EIO;
        ns += a->m->units[anneal_unit_at(a, s)].ns;
    }
    if (ns != a->replay_ns)
        return -EIO;
    for (int32_t c = 0; c < a->m->n_cells; c++)
        for (int32_t i = 0; i < a->ev[c].n; i++)
            if ((i && a->ev[c].at[i] <= a->ev[c].at[i - 1]) ||
                (!anneal_ev_fetched(a->ev[c].at[i]) && EV_SLOT(a->ev[c].at[i]) > 0 && EV_SLOT(a->ev[c].at[i]) < a->n_slots - 1 &&
                 a->slot[EV_SLOT(a->ev[c].at[i])] == ANNEAL_EMPTY))
                return -EIO;
    return 0;
}

int anneal_check(const struct anneal *a)
{
    double *profile = malloc(((size_t)a->n_slots + 1) * sizeof *profile);
    if (!profile)
        return -ENOMEM;
    const int rc = check_rebuilt(a, profile);
    free(profile);
    return rc;
}
