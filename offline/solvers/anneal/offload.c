/* Stays on the host within the annealer's schedule: two copy engines beside the computation, clocked so that nothing
 * waits for them.
 *
 * A stay of a cell lies between two neighbouring uses. The copy out may start once the contents were made (which may be
 * long before the first of the two uses, unless a copy holds until a use only: `until_used`) and takes the outbound engine
 * after the copies before it; until it is done the memory is held (the "tail"). The copy back ends when the second use begins, or earlier if the inbound engine is needed
 * for the next one; it starts as late as that allows, and from there memory is held again. Both engines serve in the
 * order of the program, as the plan's rules have it: outbound by the time of making, inbound by the time of use.
 *
 * A stay that lasts to the end of the iteration needs no copy back: its FETCHED event stands in the last slot, where no op
 * runs and which no plan step comes of.
 *
 * Timing all stays again is one pass over each engine. Changes of the compute clock by a replay here or there are left
 * for anneal_clock: copies take milliseconds, replays a fraction of one. */
#include "offline/solvers/anneal/anneal.h"

#include <errno.h>
#include <stdlib.h>

static int copies_reserve(struct anneal_copies *c, int32_t n)
{
    if (n <= c->cap)
        return 0;
    const size_t cap = 2 * (size_t)n + 16;
    struct anneal_copy *at = realloc(c->at, cap * sizeof *at);
    if (!at)
        return -ENOMEM;
    c->at = at;
    int32_t **lists[] = {&c->out_order, &c->in_order, &c->fetch, &c->tail_lo, &c->tail_hi, &c->src, &c->use};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int32_t *p = realloc(*lists[i], cap * sizeof *p);
        if (!p)
            return -ENOMEM;
        *lists[i] = p;
    }
    c->cap = (int32_t)cap;
    return 0;
}

void anneal_copies_free(struct anneal *a)
{
    struct anneal_copies *c = &a->copies;
    free(c->at);
    free(c->out_order);
    free(c->in_order);
    free(c->fetch);
    free(c->tail_lo);
    free(c->tail_hi);
    free(c->src);
    free(c->use);
    free(c->of_cell);
    free(c->when);
    *c = (struct anneal_copies){0};
}

/* Index of the first event of cell c after slot s. */
static int32_t after(const struct anneal *a, int32_t c, int32_t s)
{
    const struct event_list *e = &a->ev[c];
    int32_t lo = 0, hi = e->n;
    while (lo < hi) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (anneal_ev_slot(e->at[mid]) > s)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Index of the event of cell c that is the fetch in this slot, or where it would go. */
static int32_t fetch_index(const struct anneal *a, int32_t c, int32_t fetch)
{
    const int32_t i = after(a, c, fetch);
    const struct event_list *e = &a->ev[c];
    int32_t at = i;
    while (at > 0 && anneal_ev_slot(e->at[at - 1]) == fetch)
        at--;
    return at;
}

static int insert_fetch(struct anneal *a, int32_t c, int32_t fetch)
{
    struct anneal_copies *const cs = &a->copies;
    struct event_list *const e = &a->ev[c];
    if (copies_reserve(cs, cs->n + 1))
        return -ENOMEM;
    if (e->n == e->cap) {
        int32_t *at = realloc(e->at, 2 * ((size_t)e->n + 1) * sizeof *at);
        if (!at)
            return -ENOMEM;
        e->at = at;
        e->cap = 2 * (e->n + 1);
    }
    const int32_t i = fetch_index(a, c, fetch);
    const double bytes = (double)a->m->cells[c].bytes;
    if (i < e->n && !anneal_ev_made(e->at[i]))
        anneal_hold(a, anneal_ev_slot(e->at[i - 1]) + 1, fetch - 1, -bytes);
    else
        anneal_hold(a, fetch, fetch, bytes);
    for (int32_t k = e->n; k > i; k--)
        e->at[k] = e->at[k - 1];
    e->at[i] = anneal_ev(fetch, ANNEAL_FETCHED);
    e->n++;
    cs->at[cs->n] = (struct anneal_copy){.cell = c, .fetch = fetch, .tail_lo = 1, .tail_hi = 0};
    cs->out_order[cs->n] = cs->in_order[cs->n] = cs->n;
    cs->n++;
    cs->bytes += a->m->cells[c].bytes;
    cs->of_cell[c]++;
    cs->dirty = 1;
    return 0;
}

int anneal_copy_add(struct anneal *a, int32_t c, int32_t use)
{
    const struct event_list *e = &a->ev[c];
    const int32_t i = after(a, c, use) - 1;
    if (i < 1 || anneal_ev_slot(e->at[i]) != use || anneal_ev_made(e->at[i]) || anneal_ev_fetched(e->at[i - 1]) ||
        use - anneal_ev_slot(e->at[i - 1]) < 3)
        return -EINVAL;
    return insert_fetch(a, c, use - 1);
}

int anneal_copy_put(struct anneal *a, int32_t c, int32_t fetch) { return insert_fetch(a, c, fetch); }

int32_t anneal_copy_find(const struct anneal *a, int32_t c, int32_t use)
{
    for (int32_t k = 0; k < a->copies.n; k++)
        if (a->copies.at[k].cell == c) {
            const int32_t i = fetch_index(a, c, a->copies.at[k].fetch) + 1;
            if (i < a->ev[c].n && anneal_ev_slot(a->ev[c].at[i]) == use)
                return k;
        }
    return -1;
}

static void order_drop(int32_t *order, int32_t n, int32_t k)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++)
        if (order[i] != k)
            order[kept++] = order[i] == n - 1 ? k : order[i]; /* the last copy moves into the hole */
}

void anneal_copy_remove(struct anneal *a, int32_t k)
{
    struct anneal_copies *const cs = &a->copies;
    const struct anneal_copy x = cs->at[k];
    struct event_list *const e = &a->ev[x.cell];
    const double bytes = (double)a->m->cells[x.cell].bytes;
    const int32_t i = fetch_index(a, x.cell, x.fetch) + 1;
    anneal_hold(a, x.tail_lo, x.tail_hi, -bytes);
    if (i < e->n && !anneal_ev_made(e->at[i]))
        anneal_hold(a, anneal_ev_slot(e->at[i - 2]) + 1, x.fetch - 1, bytes);
    else
        anneal_hold(a, x.fetch, x.fetch, -bytes);
    for (int32_t j = i; j < e->n; j++)
        e->at[j - 1] = e->at[j];
    e->n--;
    order_drop(cs->out_order, cs->n, k);
    order_drop(cs->in_order, cs->n, k);
    cs->at[k] = cs->at[--cs->n];
    cs->bytes -= a->m->cells[x.cell].bytes;
    cs->of_cell[x.cell]--;
    cs->dirty = 1;
}

/* Slot that leaves in cell c what event i - 1 still finds there; -1: a stay before this one put the same contents on the
 * host, and they are there still. */
static int32_t source(const struct anneal *a, int32_t c, int32_t i)
{
    const struct anneal_cell *cell = &a->m->cells[c];
    const struct event_list *e = &a->ev[c];
    if (!cell->fixed) {
        while (!anneal_ev_made(e->at[--i]))
            ;
        return anneal_ev_fetched(e->at[i]) ? -1 : anneal_ev_slot(e->at[i]);
    }
    const int32_t last = anneal_ev_slot(e->at[i - 1]), val = a->m->g->bufs[cell->buf].first_val;
    int32_t src = anneal_ev_slot(e->at[0]);
    for (int32_t ver = cell->first_ver; ver <= cell->last_ver; ver++) {
        const int32_t o = a->m->g->vals[val + ver].producer;
        if (o >= 0 && a->op_slot[o] <= last)
            src = a->op_slot[o];
    }
    while (--i > 0 && anneal_ev_slot(e->at[i]) > src)
        if (anneal_ev_fetched(e->at[i]))
            return -1;
    return src;
}

/* Insertion sort: from one call to the next hardly anything moves. Ties by cell, so that the order does not depend on
 * history. */
static void sort(const struct anneal_copies *cs, int32_t *order, const int32_t *key, int sign)
{
    for (int32_t i = 1; i < cs->n; i++) {
        const int32_t k = order[i];
        int32_t j = i;
        for (; j > 0; j--) {
            const int32_t q = order[j - 1], d = sign * (key[q] - key[k]);
            if (d < 0 || (d == 0 && cs->at[q].cell <= cs->at[k].cell))
                break;
            order[j] = q;
        }
        order[j] = k;
    }
}

/* First slot at which the clock shows at least t; n_slots if none. */
static int32_t slot_from(const struct anneal *a, double t)
{
    int32_t lo = 0, hi = a->n_slots;
    while (lo < hi) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (a->copies.when[mid] >= t)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Last slot at which the clock shows at most t. */
static int32_t slot_until(const struct anneal *a, double t)
{
    int32_t lo = 0, hi = a->n_slots;
    while (lo < hi) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (a->copies.when[mid] > t)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo - 1;
}

/* Fill the workspace; >= 0: the copy that cannot be timed; -1: all can. */
static int32_t schedule(struct anneal *a)
{
    struct anneal_copies *const cs = &a->copies;
    for (int32_t k = 0; k < cs->n; k++) {
        const int32_t c = cs->at[k].cell, i = fetch_index(a, c, cs->at[k].fetch) + 1;
        const struct event_list *e = &a->ev[c];
        if (i == e->n || anneal_ev_made(e->at[i]))
            return k; /* nobody uses what it fetches */
        cs->use[k] = anneal_ev_slot(e->at[i]);
        cs->tail_lo[k] = anneal_ev_slot(e->at[i - 2]) + 1;
        cs->src[k] = cs->until_used ? anneal_ev_slot(e->at[i - 2]) : source(a, c, i - 1);
    }
    sort(cs, cs->out_order, cs->src, 1);
    sort(cs, cs->in_order, cs->use, -1);
    double clock = 0;
    for (int32_t i = 0; i < cs->n; i++) {
        const int32_t k = cs->out_order[i];
        cs->tail_hi[k] = cs->tail_lo[k] - 1;
        if (cs->src[k] < 0)
            continue;
        const double from = cs->when[cs->src[k] + 1];
        clock = (from > clock ? from : clock) + (double)a->m->cells[cs->at[k].cell].bytes * cs->ns_per_byte;
        cs->tail_hi[k] = slot_from(a, clock) - 1;
    }
    clock = cs->when[a->n_slots - 1];
    for (int32_t i = 0; i < cs->n; i++) {
        const int32_t k = cs->in_order[i];
        if (cs->use[k] == a->n_slots - 1) { /* what survives may do so on the host */
            cs->fetch[k] = cs->use[k];
            if (cs->fetch[k] <= cs->tail_hi[k])
                return k;
            continue;
        }
        const double until = cs->when[cs->use[k]];
        clock = (until < clock ? until : clock) - (double)a->m->cells[cs->at[k].cell].bytes * cs->ns_per_byte;
        const int32_t at = clock < 0 ? -1 : slot_until(a, clock);
        cs->fetch[k] = at < cs->use[k] ? at : cs->use[k] - 1;
        if (cs->fetch[k] <= cs->tail_hi[k] || cs->fetch[k] <= cs->tail_lo[k])
            return k;
    }
    return -1;
}

static void apply(struct anneal *a)
{
    struct anneal_copies *const cs = &a->copies;
    for (int32_t k = 0; k < cs->n; k++) {
        struct anneal_copy *const x = &cs->at[k];
        const double bytes = (double)a->m->cells[x->cell].bytes;
        if (x->fetch != cs->fetch[k]) {
            a->ev[x->cell].at[fetch_index(a, x->cell, x->fetch)] = anneal_ev(cs->fetch[k], ANNEAL_FETCHED);
            if (cs->fetch[k] < x->fetch)
                anneal_hold(a, cs->fetch[k], x->fetch - 1, bytes);
            else
                anneal_hold(a, x->fetch, cs->fetch[k] - 1, -bytes);
            x->fetch = cs->fetch[k];
        }
        if (x->tail_lo != cs->tail_lo[k] || x->tail_hi != cs->tail_hi[k]) {
            anneal_hold(a, x->tail_lo, x->tail_hi, -bytes);
            anneal_hold(a, cs->tail_lo[k], cs->tail_hi[k], bytes);
            x->tail_lo = cs->tail_lo[k];
            x->tail_hi = cs->tail_hi[k];
        }
        x->src = cs->src[k];
    }
    cs->dirty = 0;
}

int anneal_retime(struct anneal *a)
{
    if (schedule(a) >= 0)
        return -EBUSY;
    apply(a);
    return 0;
}

int anneal_clock(struct anneal *a)
{
    double t = 0;
    for (int32_t s = 0; s < a->n_slots; s++) {
        a->copies.when[s] = t;
        if (a->slot[s] != ANNEAL_EMPTY)
            t += (double)(anneal_is_replay(a, s) ? a->m->units[anneal_unit_at(a, s)].ns : a->m->g->ops[a->slot[s]].ns);
    }
    for (int32_t k; (k = schedule(a)) >= 0;)
        anneal_copy_remove(a, k);
    apply(a);
    return 0;
}
