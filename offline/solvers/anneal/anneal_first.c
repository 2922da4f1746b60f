#include "offline/solvers/anneal/anneal_first.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/anneal/anneal_copies.h"
#include "offline/solvers/solver.h"

/* How a cell may be away. Ways 0 to 3 are the ANNEAL_WAIT_... of a new stay; WAY_SHORT is a new stay that waits so that it is away just where memory is over
 * the limit; WAY_TURN lets an existing stay leave memory sooner, or come back later. */
enum { WAY_BOTH = ANNEAL_WAIT_BOTH, WAY_SHORT, WAY_REPLAY, WAY_TURN, N_WAYS };
enum { TRIED = 4, REGRID_EVERY = 12 };
#define HARDLY_DEARER 1.25 /* times the price of the cheapest option */

struct option {
    int32_t way, cell;
    int32_t before, use; /* slots that begin and end the stretch */
    int32_t slot, unit, deep; /* WAY_REPLAY */
    struct anneal_wait wait; /* waits of the stay */
    double price;       /* estimated ns per byte and slot of relief */
};

struct first {
    struct anneal_search *s;
    struct anneal *a;
    double *mem;   /* [n_slots] bytes in use */
    double *then;  /* [n_slots] bytes in use after a change that is tried */
    double *over;  /* [n_slots + 1] sum of the bytes over the limit, over all slots before each */
    int32_t *n_over; /* [n_slots + 1] number of slots over the limit before each */
    int32_t *next, *last; /* [n_slots] the first slot over the limit from each on, n_slots: none; the last up to each, -1: none */
    int32_t cap;
    double thrift;
    int where_short;
    struct option best[N_WAYS][TRIED]; /* options by rising price */
    int32_t n_best[N_WAYS];
};

static double copy_ns(const struct first *f, int32_t c) { return (double)f->s->m->cells[c].bytes * f->a->copies.ns_per_byte; }

static int read_memory(struct first *f)
{
    const int32_t n = f->a->n_slots;
    if (n >= f->cap) {
        f->cap = 2 * n + 1;
        double **rows[] = {&f->mem, &f->then, &f->over};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            double *p = realloc(*rows[i], (size_t)f->cap * sizeof *p);
            if (!p)
                return -ENOMEM;
            *rows[i] = p;
        }
        int32_t **counts[] = {&f->n_over, &f->next, &f->last};
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            int32_t *p = realloc(*counts[i], (size_t)f->cap * sizeof *p);
            if (!p)
                return -ENOMEM;
            *counts[i] = p;
        }
    }
    segtree_read(&f->a->tree, f->mem);
    f->over[0] = 0;
    f->n_over[0] = 0;
    for (int32_t s = 0; s < n; s++) {
        const double over = f->mem[s] - (double)f->s->limit_bytes;
        f->over[s + 1] = f->over[s] + (over > 0 ? over : 0);
        f->n_over[s + 1] = f->n_over[s] + (over > 0);
        f->last[s] = over > 0 ? s : s ? f->last[s - 1] : -1;
    }
    for (int32_t s = n - 1; s >= 0; s--)
        f->next[s] = f->n_over[s + 1] > f->n_over[s] ? s : s < n - 1 ? f->next[s + 1] : n;
    return 0;
}

/* Estimate of the bytes times slots that leave the stretches over the limit if `bytes` are away in slots lo..hi. */
static double relief(const struct first *f, int32_t lo, int32_t hi, double bytes)
{
    return lo > hi ? 0 : fmin(bytes * (f->n_over[hi + 1] - f->n_over[lo]), f->over[hi + 1] - f->over[lo]);
}

static void offer(struct first *f, const struct option *o)
{
    struct option *const best = f->best[o->way];
    int32_t i = f->n_best[o->way];
    if (i == TRIED && best[i - 1].price <= o->price)
        return;
    i = i < TRIED ? f->n_best[o->way]++ : TRIED - 1;
    for (; i > 0 && best[i - 1].price > o->price; i--)
        best[i] = best[i - 1];
    best[i] = *o;
}

/* First slot at which the compute clock shows at least t; with `last`, the last slot at which it shows at most t. */
static int32_t slot_at(const struct anneal *a, double t, int last)
{
    int32_t lo = 0, hi = a->n_slots;
    while (lo < hi) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (last ? a->copies.when[mid] > t : a->copies.when[mid] >= t)
            hi = mid;
        else
            lo = mid + 1;
    }
    return last ? lo - 1 : lo;
}

/* Offer the ways in which cell c, between its events in slots `before` and `use`, may be away at slot p. */
static void offer_gap(struct first *f, int32_t c, int32_t before, int32_t use, int32_t p)
{
    const struct anneal *a = f->a;
    const double ns = copy_ns(f, c), bytes = (double)f->s->m->cells[c].bytes;
    const int32_t out = slot_at(a, a->copies.when[before + 1] + ns, 0), in = use == a->n_slots - 1 ? use - 1 : slot_at(a, a->copies.when[use] - ns, 1) - 1;
    for (int32_t way = 0; way <= WAY_SHORT && use - before >= 3 && f->s->n_copy_cand; way++) {
        const int32_t lo = way == WAY_SHORT ? f->next[before + 1] : way & ANNEAL_WAIT_OUT ? before + 1 : out;
        const int32_t hi = way == WAY_SHORT ? f->last[use - 1] : way & ANNEAL_WAIT_IN ? use - 2 : in;
        if (p < lo || p > hi || (way && !f->s->waits) || (f->where_short ? way < WAY_BOTH : way == WAY_SHORT))
            continue;
        const double *const when = a->copies.when;
        const double waits = way == WAY_SHORT ? fmax(when[before + 1] + ns - when[lo], 0) + fmax(ns - (when[use] - when[hi + 1]), 0) + 2 * ns * f->thrift
                             : ns * ((way & ANNEAL_WAIT_OUT ? 1 : f->thrift) + (way & ANNEAL_WAIT_IN ? 1 : f->thrift));
        const struct anneal_wait wait = way == WAY_SHORT ? (struct anneal_wait){ANNEAL_WAIT_BOTH, lo, hi + 1} : anneal_wait_for(way);
        offer(f, &(struct option){.way = way, .cell = c, .before = before, .use = use, .wait = wait, .price = (waits + 1) / (relief(f, lo, hi, bytes) + 1)});
    }
    const int32_t u = f->s->m->cells[c].unit;
    if (u < 0)
        return;
    const int32_t slot = anneal_empty_before(a, use - 1, before);
    if (slot > p && anneal_may_add(a, u, slot))
        offer(f, &(struct option){.way = WAY_REPLAY, .cell = c, .before = before, .use = use, .slot = slot, .unit = u,
                                  .price = ((double)f->s->m->units[u].ns + 1) / (relief(f, before + 1, slot - 1, bytes) + 1)});
}

/* Stay k holds memory in lo..hi while its cell is copied: offer to let the computation wait for the copy. */
static void offer_turn(struct first *f, int32_t k, int32_t use, int32_t lo, int32_t hi, struct anneal_wait wait)
{
    const struct anneal_copy *x = &f->a->copies.at[k];
    if (!f->s->waits || (!f->where_short && (x->wait.sides | wait.sides) == x->wait.sides))
        return;
    const double bytes = (double)f->s->m->cells[x->cell].bytes, ns = fmin(copy_ns(f, x->cell), f->a->copies.when[hi + 1] - f->a->copies.when[lo]);
    offer(f, &(struct option){.way = WAY_TURN, .cell = x->cell, .use = use, .wait = wait, .price = (ns + 1) / (relief(f, lo, hi, bytes) + 1)});
}

static void look(struct first *f, int32_t p)
{
    const struct anneal_model *m = f->s->m;
    const struct anneal *a = f->a;
    memset(f->n_best, 0, sizeof f->n_best);
    for (int32_t k = 0; k < a->copies.n; k++) {
        const struct anneal_copy *x = &a->copies.at[k];
        const struct event_list *e = &a->ev[x->cell];
        const int32_t use_at = x->fetch < a->n_slots - 1 ? event_list_after(e, anneal_ev(x->fetch, ANNEAL_LATEST)) : e->n - 1;
        const int32_t use = anneal_ev_slot(e->at[use_at]);
        struct anneal_wait wait = x->wait;
        if (x->tail_lo <= p && p <= x->tail_hi) {
            wait.sides |= ANNEAL_WAIT_OUT;
            wait.free_by = f->where_short ? f->next[x->tail_lo] : 0;
            offer_turn(f, k, use, f->where_short ? wait.free_by : x->tail_lo, x->tail_hi, wait);
        } else if (x->fetch <= p && p < use) {
            wait.sides |= ANNEAL_WAIT_IN;
            wait.back_from = f->where_short ? f->last[use - 1] + 1 : INT32_MAX;
            offer_turn(f, k, use, x->fetch, f->where_short ? wait.back_from - 1 : use - 1, wait);
        }
    }
    for (int32_t c = 0; c < m->n_cells; c++) {
        const struct event_list *e = &a->ev[c];
        if (!m->cells[c].tracked || !m->cells[c].bytes)
            continue;
        const int32_t i = event_list_after(e, anneal_ev(p, ANNEAL_LATEST));
        if (i == 0 || i == e->n || anneal_ev_made(e->at[i]) || anneal_ev_fetched(e->at[i - 1]) || anneal_ev_slot(e->at[i - 1]) == p)
            continue;
        offer_gap(f, c, anneal_ev_slot(e->at[i - 1]), anneal_ev_slot(e->at[i]), p);
    }
}

/* Make the change: 0, or -EBUSY with nothing changed. */
static int make(struct first *f, const struct option *o)
{
    struct anneal_search *s = f->s;
    anneal_move_begin(s);
    const int made = o->way == WAY_REPLAY ? anneal_move_add_chain(s, o->unit, o->slot, o->deep)
                     : o->way == WAY_TURN ? anneal_move_turn_copy(s, anneal_copy_find(s->a, o->cell, o->use), o->use, o->wait)
                                          : anneal_move_add_copy(s, o->cell, o->use, o->wait);
    if (made && !anneal_move_time(s))
        return 0;
    anneal_move_undo(s);
    return -EBUSY;
}

/* Is the option's stretch still as it was when the option was offered? */
static int still_open(const struct first *f, const struct option *o)
{
    const struct event_list *e = &f->a->ev[o->cell];
    const int32_t i = event_list_after(e, anneal_ev(o->use, ANNEAL_LATEST)) - 1;
    if (i < 1 || e->at[i] != anneal_ev(o->use, ANNEAL_USED))
        return 0;
    if (o->way == WAY_TURN)
        return anneal_copy_find(f->a, o->cell, o->use) >= 0;
    return anneal_ev_slot(e->at[i - 1]) == o->before && (o->way != WAY_REPLAY || anneal_may_add(f->a, o->unit, o->slot));
}

/* Real price of the change, in ns per byte and slot taken off; INFINITY if it does not help at slot p. */
static double try_option(struct first *f, const struct option *o, int32_t p)
{
    const double was_ns = anneal_search_cost_ns(f->s);
    if (make(f, o))
        return INFINITY;
    double over = 0, price = INFINITY;
    const double ns = anneal_search_cost_ns(f->s) - was_ns;
    if (segtree_at(&f->a->tree, (uint32_t)p) < f->mem[p]) {
        double *const now = f->then;
        segtree_read(&f->a->tree, now);
        for (int32_t s = 0; s < f->a->n_slots; s++)
            over += now[s] > (double)f->s->limit_bytes ? now[s] - (double)f->s->limit_bytes : 0;
        const double engines = o->way == WAY_SHORT ? 2 * f->thrift * copy_ns(f, o->cell)
                               : o->way <= WAY_BOTH ? f->thrift * copy_ns(f, o->cell) * (2 - (o->way & 1) - (o->way >> 1)) : 0;
        if (over < f->over[f->a->n_slots])
            price = (fmax(ns, 0) + engines + 1) / (f->over[f->a->n_slots] - over);
    }
    anneal_move_undo(f->s);
    return price;
}

/* Make the cheapest change at the peak, and those hardly dearer as long as the peak is over the limit. */
static int take_off(struct first *f)
{
    int32_t p = 0, n = 0, taken = 0;
    for (int32_t s = 1; s < f->a->n_slots; s++)
        p = f->mem[s] > f->mem[p] ? s : p;
    look(f, p);
    struct option tried[N_WAYS * TRIED];
    for (int32_t way = 0; way < N_WAYS; way++)
        for (int32_t k = 0; k < f->n_best[way]; k++) {
            struct option o = f->best[way][k];
            o.price = INFINITY;
            for (int deep = 0; deep <= (way == WAY_REPLAY); deep++) {
                f->best[way][k].deep = deep;
                const double price = try_option(f, &f->best[way][k], p);
                if (price < o.price) {
                    o.price = price;
                    o.deep = deep;
                }
            }
            int32_t i = n++;
            for (; i > 0 && tried[i - 1].price > o.price; i--)
                tried[i] = tried[i - 1];
            tried[i] = o;
        }
    for (int32_t i = 0; i < n && tried[i].price <= HARDLY_DEARER * tried[0].price && tried[i].price < INFINITY; i++)
        if (!taken || (still_open(f, &tried[i]) && segtree_at(&f->a->tree, (uint32_t)p) > (double)f->s->limit_bytes))
            taken += !make(f, &tried[i]);
    return taken ? 0 : -ENOSPC;
}

int anneal_first(struct anneal_search *s, double thrift, enum anneal_away away, double deadline_s)
{
    struct first f = {.s = s, .a = s->a, .thrift = thrift, .where_short = away == ANNEAL_AWAY_WHERE_SHORT};
    int rc = 0;
    for (int32_t n = 0; !rc && anneal_peak(s->a) > s->limit_bytes; n++) {
        if (n % REGRID_EVERY == 0)
            rc = anneal_regrid(s->a);
        if (!rc && deadline_s > 0 && solver_now_s() >= deadline_s)
            rc = -ETIME;
        if (!rc)
            rc = read_memory(&f);
        if (!rc)
            rc = take_off(&f);
    }
    s->n_journal = 0;
    free(f.mem);
    free(f.then);
    free(f.over);
    free(f.n_over);
    free(f.next);
    free(f.last);
    return rc;
}
