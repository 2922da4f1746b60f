/* Stays on the host within the annealer's schedule: two copy engines beside the computation, clocked so that the
 * computation waits only for stays that allow it.
 *
 * A stay of a cell lies between two neighbouring uses. The copy out may start once the contents were made (which may be
 * long before the first of the two uses, but with `until_used` is no sooner than the first use) and takes the outbound engine
 * after the copies before it; until the copy out is done the memory is held (the "tail"). The copy back ends when the second use begins, or earlier if the
 * inbound engine is needed for the next copy; it starts as late as this end allows, and from its start memory is held again. Both engines serve in the
 * order of the program, as the plan's rules have it: outbound by the time of making, inbound by the time of use.
 *
 * The computation may wait for either side of a stay. For the copy out: it stands still at some slot until this copy, behind the copies queued before it,
 * is done, and the memory is free from this slot on. For the copy back: it starts no sooner than at some slot, up to which the memory
 * is free, and the stay's second use waits for the rest of the copy. The begin and end of copies are set on the clock of the working computation, which
 * stops while the computation stands still: waits take no time on it, so hidden copies get more time than they need, during the waits of
 * other stays. How long the computation stands still is read off a run of all three clocks (stand_still).
 *
 * A stay that lasts to the end of the iteration needs no copy back: its FETCHED event stands in the last slot, where no op
 * runs and which becomes no plan step.
 *
 * Timing all stays again is one pass over each engine. Changes of the compute clock by a replay here or there are left
 * for anneal_clock: copies take milliseconds, replays a fraction of one. */
#include "offline/solvers/anneal/anneal_copies.h"
#include "offline/solvers/anneal/anneal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    double **times[] = {&c->wait, &c->out_ns, &c->in_ns};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        double *p = realloc(*times[i], cap * sizeof *p);
        if (!p)
            return -ENOMEM;
        *times[i] = p;
    }
    int32_t *next = realloc(c->next, 4 * cap * sizeof *next);
    if (!next)
        return -ENOMEM;
    c->next = next;
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
    free(c->wait);
    free(c->out_ns);
    free(c->in_ns);
    free(c->next);
    free(c->first);
    free(c->diff);
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

/* Index, in cell c's list, of the fetch in slot `fetch`, or the index at which it would be inserted. */
static int32_t fetch_index(const struct anneal *a, int32_t c, int32_t fetch)
{
    const int32_t i = after(a, c, fetch);
    const struct event_list *e = &a->ev[c];
    int32_t at = i;
    while (at > 0 && anneal_ev_slot(e->at[at - 1]) == fetch)
        at--;
    return at;
}

static int insert_fetch(struct anneal *a, int32_t c, int32_t fetch, struct anneal_wait wait)
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
    cs->at[cs->n] = (struct anneal_copy){.cell = c, .wait = wait, .fetch = fetch, .tail_lo = 1, .tail_hi = 0};
    cs->out_order[cs->n] = cs->in_order[cs->n] = cs->n;
    cs->n++;
    cs->bytes += a->m->cells[c].bytes;
    cs->of_cell[c]++;
    cs->dirty = 1;
    return 0;
}

int anneal_copy_add(struct anneal *a, int32_t c, int32_t use, struct anneal_wait wait)
{
    const struct event_list *e = &a->ev[c];
    const int32_t i = after(a, c, use) - 1;
    if (i < 1 || anneal_ev_slot(e->at[i]) != use || anneal_ev_made(e->at[i]) || anneal_ev_fetched(e->at[i - 1]) ||
        use - anneal_ev_slot(e->at[i - 1]) < 3)
        return -EINVAL;
    return insert_fetch(a, c, use - 1, wait);
}

int anneal_copy_may_put(const struct anneal *a, int32_t c, int32_t fetch)
{
    const struct event_list *e = &a->ev[c];
    const int32_t i = fetch_index(a, c, fetch);
    return i > 0 && i < e->n && !anneal_ev_fetched(e->at[i - 1]) && !anneal_ev_made(e->at[i]);
}

int anneal_copy_put(struct anneal *a, int32_t c, int32_t fetch, struct anneal_wait wait) { return insert_fetch(a, c, fetch, wait); }

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
    cs->wait_ns -= x.wait_ns;
    cs->of_cell[x.cell]--;
    cs->dirty = 1;
}

/* Slot that makes the contents which cell c has at event i - 1; -1: an earlier stay put these contents on the host,
 * which still has them. */
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

/* Insertion sort: from one call to the next the order hardly changes. Ties go by cell, so that the order does not depend
 * on earlier orders. */
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

/* Time all copies into the workspace. Returns the index of a copy that cannot be timed; -1: all can. */
static int32_t schedule(struct anneal *a)
{
    struct anneal_copies *const cs = &a->copies;
    for (int32_t k = 0; k < cs->n; k++) {
        const int32_t c = cs->at[k].cell, i = fetch_index(a, c, cs->at[k].fetch) + 1;
        const struct event_list *e = &a->ev[c];
        if (i == e->n || anneal_ev_made(e->at[i]))
            return k; /* the fetched cell is not used */
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
        const int32_t by = cs->at[k].wait.free_by > cs->tail_lo[k] ? cs->at[k].wait.free_by : cs->tail_lo[k];
        clock = (from > clock ? from : clock) + (double)a->m->cells[cs->at[k].cell].bytes * cs->ns_per_byte;
        if ((cs->at[k].wait.sides & ANNEAL_WAIT_OUT) && clock >= cs->when[by]) {
            clock = cs->when[by];
            cs->tail_hi[k] = by - 1;
        } else {
            cs->tail_hi[k] = slot_from(a, clock) - 1;
        }
    }
    clock = cs->when[a->n_slots - 1];
    for (int32_t i = 0; i < cs->n; i++) {
        const int32_t k = cs->in_order[i];
        if (cs->use[k] == a->n_slots - 1) { /* a stay to the end of the iteration: no copy back */
            cs->fetch[k] = cs->use[k];
            if (cs->fetch[k] <= cs->tail_hi[k])
                return k;
            continue;
        }
        const double until = cs->when[cs->use[k]], ns = (double)a->m->cells[cs->at[k].cell].bytes * cs->ns_per_byte, later = clock;
        clock = (until < clock ? until : clock) - ns;
        const int32_t at = clock < 0 ? -1 : slot_until(a, clock);
        cs->fetch[k] = at < cs->use[k] ? at : cs->use[k] - 1;
        if ((cs->at[k].wait.sides & ANNEAL_WAIT_IN) && cs->fetch[k] < cs->at[k].wait.back_from) {
            cs->fetch[k] = cs->at[k].wait.back_from < cs->use[k] ? cs->at[k].wait.back_from : cs->use[k] - 1;
            clock = cs->when[cs->fetch[k] + 1];
            clock = cs->in_turn && later < clock ? later : clock;
        }
        if (cs->fetch[k] <= cs->tail_hi[k] || cs->fetch[k] <= cs->tail_lo[k])
            return k;
    }
    return -1;
}

/* Entry 4 * k + kind: a step of stay k that stands in one slot. Kinds are in the order in which a plan has them within a slot (anneal_plan.c). */
enum { AT_RELEASE, AT_FETCH, AT_USE, AT_OFFLOAD };

static void at_slot(struct anneal_copies *cs, int32_t slot, int32_t kind, int32_t k)
{
    const int32_t entry = 4 * k + kind;
    cs->next[entry] = cs->first[slot];
    cs->first[slot] = entry;
}

/* Serve one entry at time `now` of the computation: how long the computation stands still for it. */
static double serve(struct anneal *a, int32_t kind, int32_t k, double now, double *out, double *in)
{
    struct anneal_copies *const cs = &a->copies;
    const double ns = (double)a->m->cells[cs->at[k].cell].bytes * cs->ns_per_byte;
    switch (kind) {
    case AT_OFFLOAD:
        *out = (now > *out ? now : *out) + ns;
        cs->out_ns[k] = *out;
        return 0;
    case AT_FETCH:
        *in = now > *in ? now : *in;
        *in = (cs->out_ns[k] > *in ? cs->out_ns[k] : *in) + ns;
        cs->in_ns[k] = *in;
        return 0;
    case AT_RELEASE:
        return cs->out_ns[k] > now ? cs->out_ns[k] - now : 0;
    default:
        return cs->in_ns[k] > now ? cs->in_ns[k] - now : 0;
    }
}

/* Run the workspace's schedule on the three clocks that the simulator has; how long the computation waits for each stay goes into wait[]. Lists of
 * a slot are filled from their ends: AT_OFFLOAD entries first, AT_RELEASE last. */
static void stand_still(struct anneal *a)
{
    struct anneal_copies *const cs = &a->copies;
    const int32_t end = a->n_slots - 1;
    memset(cs->first, 0xff, (size_t)a->n_slots * sizeof *cs->first);
    for (int32_t i = cs->n - 1; i >= 0; i--)
        if (cs->src[cs->out_order[i]] >= 0)
            at_slot(cs, cs->src[cs->out_order[i]], AT_OFFLOAD, cs->out_order[i]);
    for (int32_t k = 0; k < cs->n; k++) {
        cs->wait[k] = cs->out_ns[k] = cs->in_ns[k] = 0;
        if (cs->use[k] < end)
            at_slot(cs, cs->use[k], AT_USE, k);
    }
    for (int32_t i = 0; i < cs->n; i++)
        if (cs->use[cs->in_order[i]] < end)
            at_slot(cs, cs->fetch[cs->in_order[i]], AT_FETCH, cs->in_order[i]);
    for (int32_t i = cs->n - 1; i >= 0; i--) {
        const int32_t k = cs->out_order[i];
        at_slot(cs, cs->tail_hi[k] >= cs->tail_lo[k] ? cs->tail_hi[k] + 1 : cs->tail_lo[k], AT_RELEASE, k);
    }
    double shift = 0, out = 0, in = 0;
    for (int32_t s = 0; s <= end; s++)
        for (int32_t entry = cs->first[s]; entry >= 0; entry = cs->next[entry]) {
            const int32_t kind = entry & 3, k = entry >> 2;
            const double wait = serve(a, kind, k, cs->when[kind == AT_OFFLOAD ? s + 1 : s] + shift, &out, &in);
            cs->wait[k] += wait;
            shift += wait;
        }
}

/* From this many changed stretches on, the changes are summed up in diff[] and added to the trees in one pass. */
enum { TOGETHER_FROM = 8 };

struct holds {
    struct anneal *a;
    double *diff; /* NULL: each change goes to the trees at once */
    int32_t lo, hi;
};

static void hold(struct holds *h, int32_t lo, int32_t hi, double bytes)
{
    if (lo > hi)
        return;
    if (!h->diff) {
        anneal_hold(h->a, lo, hi, bytes);
        return;
    }
    h->diff[lo] += bytes;
    h->diff[hi + 1] -= bytes;
    h->lo = lo < h->lo ? lo : h->lo;
    h->hi = hi > h->hi ? hi : h->hi;
}

static void holds_begin(struct holds *h, struct anneal *a)
{
    const struct anneal_copies *cs = &a->copies;
    int32_t moved = 0;
    for (int32_t k = 0; k < cs->n; k++)
        moved += (cs->at[k].fetch != cs->fetch[k]) + 2 * (cs->at[k].tail_lo != cs->tail_lo[k] || cs->at[k].tail_hi != cs->tail_hi[k]);
    *h = (struct holds){.a = a, .diff = moved >= TOGETHER_FROM && !a->priced ? cs->diff : NULL, .lo = a->n_slots, .hi = -1};
    if (h->diff)
        memset(h->diff, 0, ((size_t)a->n_slots + 1) * sizeof *h->diff);
}

static void holds_end(struct holds *h)
{
    struct anneal *a = h->a;
    if (!h->diff || h->lo > h->hi)
        return;
    for (int32_t s = h->lo + 1; s <= h->hi; s++)
        h->diff[s] += h->diff[s - 1];
    segtree_add_each(&a->tree, (uint32_t)h->lo, (uint32_t)h->hi, h->diff + h->lo);
    if (a->soft_unit <= 0)
        return;
    for (int32_t s = h->lo; s <= h->hi; s++)
        h->diff[s] /= a->soft_unit;
    segtree_soft_add_each(&a->soft, (uint32_t)h->lo, (uint32_t)h->hi, h->diff + h->lo);
}

static void apply(struct anneal *a)
{
    struct anneal_copies *const cs = &a->copies;
    struct holds h;
    int waits = 0;
    for (int32_t k = 0; k < cs->n; k++)
        waits |= cs->at[k].wait.sides;
    if (waits)
        stand_still(a);
    holds_begin(&h, a);
    cs->wait_ns = 0;
    for (int32_t k = 0; k < cs->n; k++) {
        struct anneal_copy *const x = &cs->at[k];
        const double bytes = (double)a->m->cells[x->cell].bytes;
        if (x->fetch != cs->fetch[k]) {
            a->ev[x->cell].at[fetch_index(a, x->cell, x->fetch)] = anneal_ev(cs->fetch[k], ANNEAL_FETCHED);
            if (cs->fetch[k] < x->fetch)
                hold(&h, cs->fetch[k], x->fetch - 1, bytes);
            else
                hold(&h, x->fetch, cs->fetch[k] - 1, -bytes);
            x->fetch = cs->fetch[k];
        }
        if (x->tail_lo != cs->tail_lo[k] || x->tail_hi != cs->tail_hi[k]) {
            hold(&h, x->tail_lo, x->tail_hi, -bytes);
            hold(&h, cs->tail_lo[k], cs->tail_hi[k], bytes);
            x->tail_lo = cs->tail_lo[k];
            x->tail_hi = cs->tail_hi[k];
        }
        x->src = cs->src[k];
        x->wait_ns = waits ? cs->wait[k] : 0;
        cs->wait_ns += x->wait_ns;
    }
    holds_end(&h);
    cs->dirty = 0;
}

int anneal_retime(struct anneal *a)
{
    if (schedule(a) >= 0)
        return -EBUSY;
    struct anneal_copies *const cs = &a->copies;
    cs->moved = 0;
    for (int32_t k = 0; k < cs->n; k++) {
        cs->at[k].was = cs->at[k].fetch;
        cs->moved |= cs->at[k].fetch != cs->fetch[k];
    }
    apply(a);
    return 0;
}

void anneal_retime_back(struct anneal *a)
{
    struct anneal_copies *const cs = &a->copies;
    for (int32_t k = 0; cs->moved && k < cs->n; k++) {
        struct anneal_copy *const x = &cs->at[k];
        const double bytes = (double)a->m->cells[x->cell].bytes;
        if (x->fetch == x->was)
            continue;
        a->ev[x->cell].at[fetch_index(a, x->cell, x->fetch)] = anneal_ev(x->was, ANNEAL_FETCHED);
        if (x->was < x->fetch)
            anneal_hold(a, x->was, x->fetch - 1, bytes);
        else
            anneal_hold(a, x->fetch, x->was - 1, -bytes);
        x->fetch = x->was;
    }
    cs->moved = 0;
}

static int waits_throughout(const struct anneal_wait *w) { return w->sides == ANNEAL_WAIT_BOTH && !w->free_by && w->back_from == INT32_MAX; }

int anneal_clock(struct anneal *a)
{
    double t = 0;
    for (int32_t s = 0; s < a->n_slots; s++) {
        a->copies.when[s] = t;
        if (a->slot[s] != ANNEAL_EMPTY)
            t += (double)(anneal_is_replay(a, s) ? a->m->units[anneal_unit_at(a, s)].ns : a->m->g->ops[a->slot[s]].ns);
    }
    for (int32_t k; (k = schedule(a)) >= 0;)
        if (a->copies.may_wait && !waits_throughout(&a->copies.at[k].wait))
            a->copies.at[k].wait = anneal_wait_for(ANNEAL_WAIT_BOTH);
        else
            anneal_copy_remove(a, k);
    apply(a);
    return 0;
}

int anneal_copies_hide(struct anneal *a)
{
    for (int32_t k = 0; k < a->copies.n && a->copies.wait_ns <= 0; k++)
        a->copies.at[k].wait = anneal_wait_for(0);
    return anneal_clock(a);
}
