#include "offline/solvers/anneal/anneal_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "offline/solvers/anneal/anneal_copies.h"
#include "offline/solvers/solver.h"

enum { REGRID_EVERY = 4096, CHAIN_DEPTH = 16, COPIES_MAX = 256, COPIES_MOST = 4096 };

/* ---- chance ---------------------------------------------------------------------------------------------------- */

static inline uint64_t draw(struct anneal_search *s) /* xorshift64* */
{
    uint64_t x = s->rng;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    s->rng = x;
    return x * 0x2545F4914F6CDD1Dull;
}

static inline int32_t draw_below(struct anneal_search *s, int32_t n)
{
    return (int32_t)(((draw(s) >> 32) * (uint64_t)n) >> 32);
}

static inline double draw_unit(struct anneal_search *s) { return (double)(draw(s) >> 11) * 0x1p-53; }

/* ---- life ------------------------------------------------------------------------------------------------------ */

struct anneal_search *anneal_search_new(const struct anneal_model *m, int64_t limit_bytes, uint64_t seed, int offload)
{
    struct anneal_search *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->m = m;
    s->limit_bytes = limit_bytes;
    s->rng = (seed + 1) * 0x9E3779B97F4A7C15ull;
    s->rng = s->rng ? s->rng : 1;
    s->small_bytes = limit_bytes / 10000;
    s->a = anneal_new(m);
    s->cand = malloc(((size_t)m->n_cells + 1) * sizeof *s->cand);
    s->copy_cand = malloc(((size_t)m->n_cells + 1) * sizeof *s->copy_cand);
    s->price = calloc((size_t)m->g->n_ops + 1, sizeof *s->price);
    s->op_peak = calloc((size_t)m->g->n_ops + 1, sizeof *s->op_peak);
    if (!s->a || !s->cand || !s->copy_cand || !s->price || !s->op_peak) {
        anneal_search_free(s);
        return NULL;
    }
    for (int32_t c = 0; c < m->n_cells; c++)
        if (m->cells[c].unit >= 0 && m->cells[c].n_uses + m->cells[c].survives > 0 && m->cells[c].bytes > s->small_bytes)
            s->cand[s->n_cand++] = c;
    for (int32_t k = 0; k < s->n_cand; k++)
        s->scale_ns += (double)m->units[m->cells[s->cand[k]].unit].ns / s->n_cand;
    s->scale_ns = s->scale_ns > 0 ? s->scale_ns : 1e-3 * (double)m->g->total_ns + 1;
    /* only large cells may go to the host, unless few cells are large */
    for (int64_t least = 10 * s->small_bytes; offload && s->n_copy_cand < COPIES_MAX / 4 && least >= s->small_bytes / 10 && least > 0; least /= 10) {
        s->n_copy_cand = 0;
        for (int32_t c = 0; c < m->n_cells; c++)
            if (m->cells[c].tracked && m->cells[c].n_uses + m->cells[c].survives > 0 && m->cells[c].bytes > least)
                s->copy_cand[s->n_copy_cand++] = c;
    }
    anneal_search_charge(s, 0);
    return s;
}

void anneal_search_free(struct anneal_search *s)
{
    if (!s)
        return;
    anneal_free(s->a);
    anneal_seq_free(&s->best);
    free(s->cand);
    free(s->copy_cand);
    free(s->price);
    free(s->op_peak);
    free(s);
}

void anneal_search_charge(struct anneal_search *s, double ns_per_byte)
{
    const double all = ns_per_byte * (double)s->m->g->baseline_peak_bytes;
    s->copy_ns_per_byte = ns_per_byte;
    s->time_ns = fmax((double)s->m->g->total_ns, all);
    s->lambda = 40.0 * s->time_ns / (double)(s->m->g->baseline_peak_bytes + 1);
    if (s->n_copy_cand)
        s->scale_ns = fmax(s->scale_ns, 0.1 * all / s->n_copy_cand);
}

/* Most bytes in use at once by cells of up to `least` bytes, which no move takes away: they must fit beside the largest op within the limit. */
static double left_over_bytes(const struct anneal_model *m, int64_t least)
{
    double *const at = calloc((size_t)m->g->n_ops + 2, sizeof *at);
    double most = 0, now = 0;
    for (int32_t c = 0; at && c < m->n_cells; c++)
        if (m->cells[c].tracked && m->cells[c].bytes <= least) {
            const struct anneal_cell *cell = &m->cells[c];
            at[cell->start < 0 ? 0 : cell->start] += (double)cell->bytes;
            at[cell->survives ? m->g->n_ops : 1 + (cell->n_uses ? m->uses[cell->first_use + cell->n_uses - 1] : cell->final_op < 0 ? 0 : cell->final_op)] -= (double)cell->bytes;
        }
    for (int32_t i = 0; at && i <= m->g->n_ops; i++) {
        now += at[i];
        most = fmax(most, now);
    }
    free(at);
    return most;
}

void anneal_search_let_wait(struct anneal_search *s)
{
    const struct anneal_model *m = s->m;
    s->waits = s->may_wait = s->a->copies.may_wait = 1;
    int64_t least = 10 * s->small_bytes;
    while (least > 0 && left_over_bytes(m, least) > 0.3 * (double)(s->limit_bytes - m->g->floor_offload_bytes))
        least /= 2;
    s->n_copy_cand = 0;
    for (int32_t c = 0; c < m->n_cells; c++)
        if (m->cells[c].tracked && m->cells[c].n_uses + m->cells[c].survives > 0 && m->cells[c].bytes > least)
            s->copy_cand[s->n_copy_cand++] = c;
}

static inline double cost_ns(const struct anneal_search *s)
{
    return (double)s->a->replay_ns + s->a->copies.wait_ns + (double)s->a->copies.bytes * s->copy_ns_per_byte;
}

static int note_best(struct anneal_search *s)
{
    if (anneal_peak(s->a) > s->limit_bytes || (s->best.n && cost_ns(s) >= s->best_ns))
        return 0;
    if (s->a->copies.n) {
        anneal_clock(s->a); /* clock this very schedule: its copies were last clocked at the last regrid */
        if (anneal_peak(s->a) > s->limit_bytes || (s->best.n && cost_ns(s) >= s->best_ns))
            return 0;
    }
    s->best_ns = cost_ns(s);
    if (s->judge) {
        const double ns = s->judge(s, s->judge_arg);
        if (s->best.n && ns >= s->best_judged)
            return 0;
        s->best_judged = ns;
    } else {
        s->best_judged = (double)s->m->g->total_ns + s->best_ns;
    }
    const int rc = anneal_save(s->a, &s->best);
    return rc || !s->pool ? rc : anneal_pool_offer(s->pool, &s->best, s->best_ns, s->best_judged, solver_now_s());
}

int anneal_search_note(struct anneal_search *s) { return note_best(s); }

int anneal_search_clear(struct anneal_search *s)
{
    /* with no replays a schedule is the program itself */
    while (s->a->copies.n)
        anneal_copy_remove(s->a, s->a->copies.n - 1);
    while (s->a->n_replays)
        anneal_remove(s->a, s->a->replays[s->a->n_replays - 1]);
    const int rc = anneal_regrid(s->a);
    return rc ? rc : note_best(s);
}

int anneal_search_seed(struct anneal_search *s, const struct anneal_seq *seq)
{
    const int rc = anneal_load(s->a, seq);
    return rc ? rc : note_best(s);
}

/* ---- mutations ------------------------------------------------------------------------------------------------- */

static struct anneal_change *note(struct anneal_search *s, int32_t what, int32_t slot, int added, int copy)
{
    struct anneal_change *c = &s->journal[s->n_journal++];
    *c = (struct anneal_change){.what = what, .slot = slot, .added = (uint8_t)added, .copy = (uint8_t)copy};
    return c;
}

static int put(struct anneal_search *s, int32_t u, int32_t slot)
{
    /* later changes of a mutation do not make it cheaper: no need to look at memory */
    if (cost_ns(s) + (double)s->m->units[u].ns > s->cap_ns) {
        s->hopeless = 1;
        return 0;
    }
    if (s->n_journal == ANNEAL_MOVE_CHANGES || anneal_add(s->a, u, slot))
        return 0;
    note(s, u, slot, 1, 0);
    return 1;
}

static int take(struct anneal_search *s, int32_t slot)
{
    if (s->n_journal == ANNEAL_MOVE_CHANGES)
        return 0;
    note(s, anneal_unit_at(s->a, slot), slot, 0, 0);
    anneal_remove(s->a, slot);
    return 1;
}

static int put_copy(struct anneal_search *s, int32_t c, int32_t use, struct anneal_wait wait)
{
    if (s->n_journal == ANNEAL_MOVE_CHANGES || s->a->copies.n >= (s->may_wait ? COPIES_MOST : COPIES_MAX) || anneal_copy_add(s->a, c, use, wait))
        return 0;
    note(s, c, use, 1, 1)->wait = wait;
    return 1;
}

static int take_copy(struct anneal_search *s, int32_t k)
{
    if (s->n_journal == ANNEAL_MOVE_CHANGES)
        return 0;
    note(s, s->a->copies.at[k].cell, s->a->copies.at[k].fetch, 0, 1)->wait = s->a->copies.at[k].wait;
    anneal_copy_remove(s->a, k);
    return 1;
}

static void undo(struct anneal_search *s)
{
    if (s->retimed)
        anneal_retime_back(s->a);
    s->retimed = 0;
    while (s->n_journal) {
        const struct anneal_change *c = &s->journal[--s->n_journal];
        /* a change that is put back finds its old room in the lists, so putting back cannot fail */
        if (c->copy && c->added)
            anneal_copy_remove(s->a, anneal_copy_find(s->a, c->what, c->slot));
        else if (c->copy)
            (void)anneal_copy_put(s->a, c->what, c->slot, c->wait);
        else if (c->added)
            anneal_remove(s->a, c->slot);
        else
            (void)anneal_add(s->a, c->what, c->slot);
    }
    if (s->a->copies.dirty)
        (void)anneal_retime(s->a); /* the timing from before the mutation, hence possible */
}

/* Index, in cell c's list, of its first event after slot s. */
static inline int32_t next_event(const struct anneal *a, int32_t c, int32_t s)
{
    const struct event_list *e = &a->ev[c];
    int32_t i = e->n;
    while (i > 0 && anneal_ev_slot(e->at[i - 1]) > s)
        i--;
    return i;
}

static inline int is_use(const struct event_list *e, int32_t i) { return i < e->n && !anneal_ev_made(e->at[i]); }

/* Choose a place for one more replay: just before a use of a random cell, if it has an empty slot after the cell's event before. */
static int choose_add(struct anneal_search *s, int32_t *unit, int32_t *slot)
{
    const struct anneal *a = s->a;
    const int32_t c = s->cand[draw_below(s, s->n_cand)];
    const struct event_list *e = &a->ev[c];
    if (e->n < 2)
        return 0;
    const int32_t k = 1 + draw_below(s, e->n - 1);
    if (!is_use(e, k))
        return 0;
    *slot = anneal_empty_before(a, anneal_ev_slot(e->at[k]) - 1, anneal_ev_slot(e->at[k - 1]));
    *unit = s->m->cells[c].unit;
    return *slot >= 0 && anneal_may_add(a, *unit, *slot);
}

/* Add a replay and, with probability `deep` each, replays of inputs that would otherwise be held in memory only for it. */
static void add_chain(struct anneal_search *s, int32_t u, int32_t slot, double deep, int depth)
{
    const struct anneal_model *m = s->m;
    const struct anneal_unit *unit = &m->units[u];
    if (!put(s, u, slot) || depth == CHAIN_DEPTH)
        return;
    for (int32_t k = 0; k < unit->n_in; k++) {
        const int32_t c = m->unit_cells[unit->first_in + k], feeder = m->cells[c].unit;
        if (feeder < 0 || m->cells[c].bytes <= s->small_bytes)
            continue;
        const struct event_list *e = &s->a->ev[c];
        const int32_t i = next_event(s->a, c, slot); /* event i - 1 is the use by the new replay, so i >= 2 */
        const int32_t before = anneal_ev_slot(e->at[i - 2]);
        if (is_use(e, i) || before >= slot - 1 || draw_unit(s) >= deep)
            continue;
        const int32_t at = anneal_empty_before(s->a, slot - 1, before);
        if (at >= 0 && anneal_may_add(s->a, feeder, at))
            add_chain(s, feeder, at, deep, depth + 1);
    }
}

/* Does any cell that the replay in this slot rebuilds get used before it is rebuilt again? Small cells cost next to
 * nothing and do not count. */
static int is_useful(const struct anneal_search *s, int32_t slot)
{
    const struct anneal_unit *unit = &s->m->units[anneal_unit_at(s->a, slot)];
    for (int32_t k = 0; k < unit->n_out; k++) {
        const int32_t c = s->m->unit_cells[unit->first_out + k];
        if (s->m->cells[c].bytes > s->small_bytes && is_use(&s->a->ev[c], next_event(s->a, c, slot)))
            return 1;
    }
    return 0;
}

static void take_chain(struct anneal_search *s, int32_t slot)
{
    const struct anneal_model *m = s->m;
    const struct anneal_unit *unit = &m->units[anneal_unit_at(s->a, slot)];
    if (!take(s, slot))
        return;
    for (int32_t k = 0; k < unit->n_in; k++) {
        const int32_t c = m->unit_cells[unit->first_in + k];
        const struct event_list *e = &s->a->ev[c];
        const int32_t i = next_event(s->a, c, slot);
        if (i == 0 || is_use(e, i - 1) || is_use(e, i))
            continue;
        const int32_t made = anneal_ev_slot(e->at[i - 1]);
        if (made > 0 && s->a->slot[made] != ANNEAL_EMPTY && anneal_is_replay(s->a, made) && !is_useful(s, made))
            take_chain(s, made);
    }
}

/* Another slot for the replay in this slot: right before the first use it serves, or a random step away; -1: none. */
static int32_t choose_shift(struct anneal_search *s, int32_t slot)
{
    const struct anneal_model *m = s->m;
    const int32_t u = anneal_unit_at(s->a, slot);
    const struct anneal_unit *unit = &m->units[u];
    int32_t first = s->a->n_slots;
    for (int32_t k = 0; k < unit->n_out; k++) {
        const int32_t c = m->unit_cells[unit->first_out + k];
        const struct event_list *e = &s->a->ev[c];
        const int32_t i = next_event(s->a, c, slot);
        if (is_use(e, i) && anneal_ev_slot(e->at[i]) < first)
            first = anneal_ev_slot(e->at[i]);
    }
    if (first == s->a->n_slots)
        return -1;
    int32_t to = first - 1;
    if (draw(s) >> 63) {
        const int32_t step = 1 + draw_below(s, 40);
        to = draw(s) >> 63 ? slot + step : slot - step;
        to = to < first ? to : first - 1;
    }
    to = to < 1 ? -1 : anneal_empty_before(s->a, to, 0);
    return to >= 0 && to != slot && anneal_may_add(s->a, u, to) ? to : -1;
}

static int32_t any_replay(struct anneal_search *s) { return s->a->replays[draw_below(s, s->a->n_replays)]; }

/* Send a cell to the host over some gap. */
static int add_copy(struct anneal_search *s)
{
    const struct anneal *a = s->a;
    const int32_t c = s->copy_cand[draw_below(s, s->n_copy_cand)];
    const struct event_list *e = &a->ev[c];
    if (e->n < 2)
        return 0;
    const int32_t k = 1 + draw_below(s, e->n - 1), use = anneal_ev_slot(e->at[k]), before = anneal_ev_slot(e->at[k - 1]);
    if (!is_use(e, k))
        return 0;
    const double gap_ns = a->copies.when[use] - a->copies.when[before], copy_ns = (double)s->m->cells[c].bytes * a->copies.ns_per_byte;
    if (!s->waits)
        return gap_ns >= copy_ns && put_copy(s, c, use, anneal_wait_for(0));
    /* half of the stays with enough time get no waits: the copies are hidden */
    return put_copy(s, c, use, anneal_wait_for(gap_ns < copy_ns ? ANNEAL_WAIT_BOTH : draw(s) >> 63 ? 0 : 1 + draw_below(s, 3)));
}

/* Change which sides of a random stay the computation waits for. */
static int turn_copy(struct anneal_search *s)
{
    const struct anneal *a = s->a;
    const int32_t k = draw_below(s, a->copies.n), c = a->copies.at[k].cell;
    const int32_t i = a->copies.at[k].fetch < a->n_slots - 1 ? next_event(a, c, a->copies.at[k].fetch) : a->ev[c].n - 1;
    const int32_t use = anneal_ev_slot(a->ev[c].at[i]);
    struct anneal_wait wait = a->copies.at[k].wait;
    wait.sides ^= 1 + draw_below(s, 3);
    return take_copy(s, k) && put_copy(s, c, use, wait);
}

static int mutate_copies(struct anneal_search *s)
{
    struct anneal *const a = s->a;
    if (s->waits && a->copies.n && draw_below(s, 5) == 0)
        return turn_copy(s) || s->n_journal;
    const int32_t dice = draw_below(s, 100);
    if (dice < 30 || (!a->copies.n && !a->n_replays))
        return add_copy(s);
    if (a->copies.n && dice < 40)
        return take_copy(s, draw_below(s, a->copies.n));
    if (a->copies.n && dice < 60) { /* another cell's stay instead */
        take_copy(s, draw_below(s, a->copies.n));
        return add_copy(s) || s->n_journal;
    }
    if (a->copies.n && dice < 80) { /* a replay instead */
        const int32_t k = draw_below(s, a->copies.n), c = a->copies.at[k].cell, u = s->m->cells[c].unit;
        /* the fetch of a stay to the end of the iteration shares its slot with the use that ends the stay */
        const int32_t i = a->copies.at[k].fetch < a->n_slots - 1 ? next_event(a, c, a->copies.at[k].fetch) : a->ev[c].n - 1;
        const int32_t use = anneal_ev_slot(a->ev[c].at[i]);
        take_copy(s, k);
        if (u < 0)
            return 1;
        const int32_t at = anneal_empty_before(a, use - 1, anneal_ev_slot(a->ev[c].at[i - 2]));
        if (at >= 0 && anneal_may_add(a, u, at))
            add_chain(s, u, at, 0.7, 0);
        return 1;
    }
    if (!a->n_replays)
        return 0;
    /* a stay instead of a replay */
    const int32_t slot = any_replay(s);
    const struct anneal_unit *unit = &s->m->units[anneal_unit_at(a, slot)];
    int32_t best = -1, use = -1;
    for (int32_t k = 0; k < unit->n_out; k++) {
        const int32_t c = s->m->unit_cells[unit->first_out + k], i = next_event(a, c, slot);
        if (is_use(&a->ev[c], i) && (best < 0 || s->m->cells[c].bytes > s->m->cells[best].bytes)) {
            best = c;
            use = anneal_ev_slot(a->ev[c].at[i]);
        }
    }
    if (best < 0)
        return 0;
    take_chain(s, slot);
    return put_copy(s, best, use, anneal_wait_for(s->waits ? draw_below(s, 4) : 0)) || s->n_journal;
}

/* Make one mutation of replays; 0: the draw named none. */
static int mutate_replays(struct anneal_search *s)
{
    const int32_t dice = draw_below(s, 100);
    int32_t unit, slot;
    if (dice < 45) {
        if (!choose_add(s, &unit, &slot))
            return 0;
        add_chain(s, unit, slot, dice < 20 ? 0 : 0.7, 0);
        return 1;
    }
    if (!s->a->n_replays)
        return 0;
    if (dice < 70) {
        take_chain(s, any_replay(s));
        return 1;
    }
    if (dice < 80) {
        const int32_t from = any_replay(s), to = choose_shift(s, from);
        if (to < 0)
            return 0;
        unit = anneal_unit_at(s->a, from);
        take(s, from);
        put(s, unit, to);
        return 1;
    }
    take_chain(s, any_replay(s));
    if (!choose_add(s, &unit, &slot))
        return 1;
    add_chain(s, unit, slot, 0.7, 0);
    if (dice < 85 && choose_add(s, &unit, &slot))
        add_chain(s, unit, slot, 0, 0);
    return 1;
}

int anneal_move_time(struct anneal_search *s)
{
    if (!s->a->copies.dirty)
        return 0;
    const int rc = anneal_retime(s->a);
    s->retimed = !rc;
    return rc;
}

/* Make one mutation. 0: none was made, the schedule is as before. */
static int mutate(struct anneal_search *s)
{
    s->n_journal = 0;
    s->hopeless = s->retimed = 0;
    s->mutations++;
    const int made = s->n_copy_cand && draw_below(s, 8) < (s->waits ? 2 : 1) ? mutate_copies(s) : s->n_cand ? mutate_replays(s) : 0;
    if (made && (s->hopeless || anneal_move_time(s))) {
        undo(s);
        return 0;
    }
    return made;
}

void anneal_move_begin(struct anneal_search *s)
{
    s->n_journal = 0;
    s->hopeless = s->retimed = 0;
    s->cap_ns = INFINITY;
}

int anneal_move_add_chain(struct anneal_search *s, int32_t u, int32_t slot, double deep)
{
    add_chain(s, u, slot, deep, 0);
    return s->n_journal;
}

int anneal_move_add_copy(struct anneal_search *s, int32_t c, int32_t use, struct anneal_wait wait) { return put_copy(s, c, use, wait); }

int anneal_move_turn_copy(struct anneal_search *s, int32_t k, int32_t use, struct anneal_wait wait)
{
    const int32_t c = s->a->copies.at[k].cell;
    return take_copy(s, k) && put_copy(s, c, use, wait);
}

void anneal_move_undo(struct anneal_search *s) { undo(s); }

double anneal_search_cost_ns(const struct anneal_search *s) { return cost_ns(s); }

/* Metropolis rule with the draw first, so that a mutation that cannot pass is seen early: cap_ns is the highest energy that passes. */
static void draw_cap(struct anneal_search *s, double now, double temperature)
{
    s->cap_ns = s->a->priced ? INFINITY : temperature > 0 ? now - temperature * log(draw_unit(s) + 0x1p-60) : now;
}

/* ---- annealing ------------------------------------------------------------------------------------------------- */

static double energy(const struct anneal_search *s)
{
    const double ns = cost_ns(s);
    if (s->a->priced)
        return ns + s->a->price_ns;
    const double over = segtree_max(&s->a->tree) - (double)s->limit_bytes;
    if (s->a->soft_unit > 0) {
        const double z = segtree_soft_max(&s->a->soft) - (double)s->limit_bytes / s->a->soft_unit;
        return ns + s->soft_k * exp(z < 300 ? z : 300);
    }
    /* a byte too many is as bad as a thousandth of the limit: no schedule settles just above it */
    return over <= 0 ? ns : ns + s->lambda * fmax(over, 1e-3 * (double)s->limit_bytes);
}

/* Try one mutation. *now: the energy, kept up to date. 1: the mutation was kept. */
static int step(struct anneal_search *s, double temperature, double *now)
{
    draw_cap(s, *now, temperature);
    if (!mutate(s))
        return 0;
    const double then = energy(s);
    if (s->a->priced ? then <= *now || draw_unit(s) < exp((*now - then) / temperature) : then <= s->cap_ns) {
        *now = then;
        return 1;
    }
    undo(s);
    return 0;
}

int anneal_search_step(struct anneal_search *s, double temperature_ns)
{
    double now = energy(s);
    return step(s, temperature_ns, &now);
}

/* One step of the subgradient method. The first step prices the limit's worth of bytes at a third of the iteration's time;
 * later steps shrink as 1 / (1 + round / 16). */
static int set_prices(struct anneal_search *s, int64_t round)
{
    const int32_t n = s->m->g->n_ops;
    const double limit = (double)s->limit_bytes;
    double over = 0;
    anneal_op_peaks(s->a, s->op_peak);
    for (int32_t i = 0; i < n; i++)
        over += s->op_peak[i] > limit ? s->op_peak[i] - limit : 0;
    if (round == 0)
        s->price_step = over > 0 ? 0.33 * s->time_ns / limit / over : 0;
    const double step = s->price_step / (1 + (double)round / 16);
    for (int32_t i = 0; i < n; i++) {
        const double p = (round ? s->price[i] : 0) + step * (s->op_peak[i] - limit);
        s->price[i] = p > 0 ? p : 0;
    }
    return anneal_set_price(s->a, s->price);
}

/* Update temperature, stage, soft unit and prices, which change slowly during a run: every REGRID_EVERY mutations. */
static int set_stage(struct anneal_search *s, const struct anneal_run *run, int64_t it, double *temperature)
{
    double done = (double)it / (double)run->mutations, unit = 0;
    *temperature = run->hot_ns * pow(run->cold_ns / run->hot_ns, done);
    int rc = anneal_regrid(s->a);
    if (rc)
        return rc;
    if (done < run->price_share) {
        rc = s->a->soft_unit > 0 ? anneal_set_soft(s->a, 0) : 0;
        return rc ? rc : set_prices(s, it / REGRID_EVERY);
    }
    done = (done - run->price_share) / (1 - run->price_share);
    if (done < run->soft_share) {
        unit = (double)s->limit_bytes * run->soft_hot * pow(run->soft_cold / run->soft_hot, done / run->soft_share);
        s->soft_k = 2.0 * s->time_ns * unit / (double)s->limit_bytes;
    }
    return unit > 0 || s->a->soft_unit > 0 ? anneal_set_soft(s->a, unit) : 0;
}

int anneal_search_had_enough(struct anneal_search *s, double deadline_s)
{
    const double now_s = deadline_s > 0 || s->pool ? solver_now_s() : 0;
    return (deadline_s > 0 && now_s >= deadline_s) || (s->pool && anneal_pool_enough(s->pool, now_s));
}

int anneal_search_run(struct anneal_search *s, const struct anneal_run *run)
{
    double temperature = run->hot_ns, now = energy(s);
    int rc = 0;
    if (!s->n_cand && !s->n_copy_cand)
        return note_best(s);
    for (int64_t it = 0; it < run->mutations && !rc; it++) {
        if (it % REGRID_EVERY == 0) {
            if (anneal_search_had_enough(s, run->deadline_s))
                break;
            rc = set_stage(s, run, it, &temperature);
            now = energy(s);
        }
        if (step(s, temperature, &now) && !s->a->priced && (!s->best.n || cost_ns(s) < s->best_ns)) {
            rc = note_best(s);
            now = s->a->copies.n ? energy(s) : now;
        }
    }
    s->n_journal = 0;
    if (!rc && s->a->priced)
        rc = anneal_set_price(s->a, NULL);
    if (!rc && s->a->soft_unit > 0)
        rc = anneal_set_soft(s->a, 0);
    return rc;
}
