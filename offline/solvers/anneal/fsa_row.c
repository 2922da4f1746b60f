#include "offline/solvers/anneal/fsa_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/anneal/fsa_profile.h"

#define MADE(e) ((e) & 1)
#define SLOT(e) ((e) >> 1)

/* ---- events --------------------------------------------------------------------------------------------------------- */

int32_t fsa_after(const struct event_list *e, int32_t s) { return event_list_after(e, 2 * s + 1); }

/* Event i is the last of its life: no item reads the result after it before the result is made again. */
static inline int last_of_life(const struct event_list *e, int32_t i) { return i + 1 == e->n || MADE(e->at[i + 1]); }

/* ---- life ----------------------------------------------------------------------------------------------------------- */

void fsa_free(struct fsa_row *r)
{
    if (!r)
        return;
    for (int i = 0; r->ev && i < r->c->n; i++)
        free(r->ev[i].at);
    free(r->slot);
    free(r->slot_at);
    free(r->use);
    free(r->ends);
    free(r->in_block);
    free(r->block);
    free(r->ev);
    free(r->made);
    free(r->first);
    free(r->spare);
    free(r);
}

struct fsa_row *fsa_new(const struct checkmate *c, int32_t cap_items)
{
    struct fsa_row *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    const size_t n = (size_t)c->n + 1, cap = (size_t)cap_items + 1;
    size_t slots = 1024;
    while (slots < 4 * cap)
        slots *= 2;
    r->c = c;
    r->budget = (double)(c->budget - c->fixed);
    r->n_slots = (int32_t)slots;
    r->cap_items = cap_items;
    r->slot = malloc(slots * sizeof *r->slot);
    r->ends = calloc(slots, sizeof *r->ends);
    r->in_block = calloc(slots, sizeof *r->in_block);
    r->block = calloc(slots / 64, sizeof *r->block);
    r->slot_at = malloc(cap * sizeof *r->slot_at);
    r->spare = malloc(cap * sizeof *r->spare);
    r->use = calloc(cap, sizeof *r->use);
    r->ev = calloc(n, sizeof *r->ev);
    r->made = calloc(n, sizeof *r->made);
    r->first = calloc(n, sizeof *r->first);
    if (!r->slot || !r->ends || !r->in_block || !r->block || !r->slot_at || !r->spare || !r->use || !r->ev || !r->made ||
        !r->first) {
        fsa_free(r);
        return NULL;
    }
    memset(r->slot, 0xff, slots * sizeof *r->slot);
    return r;
}

static inline void hold(struct fsa_row *r, int32_t lo, int32_t hi, double bytes) /* ranks lo .. hi */
{
    if (lo <= hi)
        r->excess += fsa_profile_add(r->use + lo, hi - lo + 1, bytes, r->budget);
}

/* 1: the items of ranks k and k + 1 make a bend. */
static inline int bend(const struct fsa_row *r, int32_t k)
{
    if (k < 0 || k + 1 >= r->n_items)
        return 0;
    const int32_t s = r->slot_at[k], v = r->slot[s];
    return r->first[v] != s && r->slot[r->slot_at[k + 1]] <= v;
}

static inline double over(const struct fsa_row *r, double use) { return use > r->budget ? use - r->budget : 0; }

/* Build the memory by rank from the events; 0, or -EINVAL if a result is read before it was made. */
static int profile_build(struct fsa_row *r)
{
    memset(r->use, 0, (size_t)r->n_items * sizeof *r->use);
    memset(r->ends, 0, (size_t)r->n_slots * sizeof *r->ends);
    for (int v = 0; v < r->c->n; v++) {
        const struct event_list *e = &r->ev[v];
        const double bytes = (double)r->c->mem[v];
        if (e->n && !MADE(e->at[0]))
            return -EINVAL;
        for (int32_t i = 0, j; i < e->n; i = j + 1) {
            for (j = i; !last_of_life(e, j); j++)
                continue;
            hold(r, fsa_rank(r, SLOT(e->at[i])), fsa_rank(r, SLOT(e->at[j])), bytes);
            r->ends[SLOT(e->at[j])] += bytes;
        }
    }
    r->excess = 0;
    for (int32_t k = 0; k < r->n_items; k++)
        r->excess += over(r, r->use[k]);
    return 0;
}

int fsa_load(struct fsa_row *r, const int32_t *order, int32_t n)
{
    const struct checkmate *c = r->c;
    if (n > r->cap_items)
        return -ENOSPC;
    memset(r->slot, 0xff, (size_t)r->n_slots * sizeof *r->slot);
    memset(r->made, 0, (size_t)c->n * sizeof *r->made);
    for (int v = 0; v < c->n; v++)
        r->ev[v].n = 0;
    r->n_items = n;
    r->cost = 0;
    for (int32_t k = 0; k < n; k++) {
        const int32_t v = order[k], s = (int32_t)((int64_t)(k + 1) * r->n_slots / (n + 1));
        r->slot[s] = v;
        r->slot_at[k] = s;
        if (!r->made[v]++)
            r->first[v] = s;
        r->cost += (double)c->cost[v];
        if (event_list_reserve(&r->ev[v], r->ev[v].n + 1))
            return -ENOMEM;
        r->ev[v].at[r->ev[v].n++] = 2 * s + 1;
        for (int q = c->dep_at[v]; q < c->dep_at[v + 1]; q++) {
            struct event_list *e = &r->ev[c->dep[q]];
            if (event_list_reserve(e, e->n + 1))
                return -ENOMEM;
            e->at[e->n++] = 2 * s;
        }
    }
    for (int32_t s = 0, k = 0; s < r->n_slots; s++) {
        if (s % 64 == 0)
            r->block[s / 64] = (uint16_t)k;
        r->in_block[s] = (uint8_t)(k - r->block[s / 64]);
        k += r->slot[s] >= 0;
    }
    r->bends = 0;
    for (int32_t k = 0; k < n; k++)
        r->bends += bend(r, k);
    return profile_build(r);
}

int32_t fsa_save(const struct fsa_row *r, int32_t *order)
{
    for (int32_t k = 0; k < r->n_items; k++)
        order[k] = r->slot[r->slot_at[k]];
    return r->n_items;
}

int fsa_spread(struct fsa_row *r) { return fsa_load(r, r->spare, fsa_save(r, r->spare)); }

int32_t fsa_gap(const struct fsa_row *r, int32_t k)
{
    const int32_t lo = k ? r->slot_at[k - 1] : 0, hi = k < r->n_items ? r->slot_at[k] : r->n_slots - 1;
    return hi - lo < 2 ? -1 : lo + (hi - lo) / 2;
}

/* ---- one op more or less -------------------------------------------------------------------------------------------- */

static void rank_shift(struct fsa_row *r, int32_t s, int by)
{
    const int32_t b = s / 64, end = (b + 1) * 64;
    for (int32_t i = s + 1; i < end; i++)
        r->in_block[i] = (uint8_t)(r->in_block[i] + by);
    for (int32_t i = b + 1; i < r->n_slots / 64; i++)
        r->block[i] = (uint16_t)(r->block[i] + by);
}

int fsa_may_add(struct fsa_row *r, int32_t v, int32_t s)
{
    const struct checkmate *c = r->c;
    if (r->slot[s] >= 0 || r->n_items >= r->cap_items || event_list_reserve(&r->ev[v], r->ev[v].n + 1))
        return 0;
    for (int q = c->dep_at[v]; q < c->dep_at[v + 1]; q++) {
        struct event_list *e = &r->ev[c->dep[q]];
        if (!e->n || SLOT(e->at[0]) >= s || event_list_reserve(e, e->n + 1))
            return 0;
    }
    return 1;
}

void fsa_add(struct fsa_row *r, int32_t v, int32_t s)
{
    const struct checkmate *c = r->c;
    const int32_t p = fsa_rank(r, s);
    const size_t after = (size_t)(r->n_items - p);
    const double through = p ? r->use[p - 1] - r->ends[r->slot_at[p - 1]] : 0; /* bytes held over the new item for later */
    r->bends -= bend(r, p - 1);
    memmove(r->use + p + 1, r->use + p, after * sizeof *r->use);
    memmove(r->slot_at + p + 1, r->slot_at + p, after * sizeof *r->slot_at);
    r->use[p] = through;
    r->excess += over(r, through);
    r->slot_at[p] = s;
    r->slot[s] = v;
    r->ends[s] = 0;
    r->n_items++;
    r->bends += bend(r, p - 1) + bend(r, p);
    rank_shift(r, s, 1);
    for (int q = c->dep_at[v]; q < c->dep_at[v + 1]; q++) {
        struct event_list *e = &r->ev[c->dep[q]];
        const int32_t i = fsa_after(e, s);
        if (last_of_life(e, i - 1)) { /* the new item is the last reader: hold the input up to it */
            const int32_t was = SLOT(e->at[i - 1]);
            const double bytes = (double)c->mem[c->dep[q]];
            hold(r, fsa_rank(r, was) + 1, p, bytes);
            r->ends[was] -= bytes;
            r->ends[s] += bytes;
        }
        event_list_insert(e, i, 2 * s);
    }
    struct event_list *e = &r->ev[v];
    const int32_t i = fsa_after(e, s);
    const double bytes = (double)c->mem[v];
    if (i < e->n && !MADE(e->at[i])) { /* later readers read the new item's result: the life before it ends sooner */
        if (i > 0) {
            const int32_t was = SLOT(e->at[i - 1]);
            hold(r, fsa_rank(r, was) + 1, p - 1, -bytes);
            r->ends[was] += bytes;
        }
    } else {
        hold(r, p, p, bytes);
        r->ends[s] += bytes;
    }
    event_list_insert(e, i, 2 * s + 1);
    r->made[v]++;
    r->cost += (double)c->cost[v];
}

int fsa_may_remove(const struct fsa_row *r, int32_t s)
{
    const int32_t v = r->slot[s];
    const struct event_list *e = &r->ev[v];
    if (r->made[v] < 2)
        return 0;
    const int32_t i = fsa_after(e, s) - 1;
    return i > 0 || last_of_life(e, i);
}

void fsa_remove(struct fsa_row *r, int32_t s)
{
    const struct checkmate *c = r->c;
    const int32_t v = r->slot[s], p = fsa_rank(r, s);
    struct event_list *e = &r->ev[v];
    int32_t i = fsa_after(e, s) - 1;
    double bytes = (double)c->mem[v];
    if (!last_of_life(e, i)) {
        if (i > 0) {
            const int32_t was = SLOT(e->at[i - 1]);
            hold(r, fsa_rank(r, was) + 1, p - 1, bytes);
            r->ends[was] -= bytes;
        }
    } else {
        hold(r, p, p, -bytes);
        r->ends[s] -= bytes;
    }
    event_list_erase(e, i);
    for (int q = c->dep_at[v]; q < c->dep_at[v + 1]; q++) {
        e = &r->ev[c->dep[q]];
        i = fsa_after(e, s) - 1;
        if (last_of_life(e, i)) {
            const int32_t was = SLOT(e->at[i - 1]);
            bytes = (double)c->mem[c->dep[q]];
            hold(r, fsa_rank(r, was) + 1, p, -bytes);
            r->ends[was] += bytes;
            r->ends[s] -= bytes;
        }
        event_list_erase(e, i);
    }
    r->excess -= over(r, r->use[p]);
    r->bends -= bend(r, p - 1) + bend(r, p);
    r->n_items--;
    const size_t after = (size_t)(r->n_items - p);
    memmove(r->use + p, r->use + p + 1, after * sizeof *r->use);
    memmove(r->slot_at + p, r->slot_at + p + 1, after * sizeof *r->slot_at);
    r->slot[s] = -1;
    r->bends += bend(r, p - 1);
    rank_shift(r, s, -1);
    r->made[v]--;
    r->cost -= (double)c->cost[v];
}

double fsa_peak(const struct fsa_row *r) { return fsa_profile_max(r->use, r->n_items); }

int fsa_check(const struct fsa_row *r)
{
    struct fsa_row *twin = fsa_new(r->c, r->cap_items);
    int rc = twin ? fsa_load(twin, twin->spare, fsa_save(r, twin->spare)) : -ENOMEM;
    if (!rc && (twin->cost != r->cost || twin->excess != r->excess || twin->n_items != r->n_items ||
                memcmp(twin->use, r->use, (size_t)r->n_items * sizeof *r->use)))
        rc = -EIO;
    for (int32_t k = 0; !rc && k < r->n_items; k++)
        if (fsa_rank(r, r->slot_at[k]) != k || r->ends[r->slot_at[k]] != twin->ends[twin->slot_at[k]])
            rc = -EIO;
    fsa_free(twin);
    return rc;
}
