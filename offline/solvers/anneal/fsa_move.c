#include "offline/solvers/anneal/fsa_move.h"

#include <math.h>

enum { CHAIN_DEPTH = 6, JOURNAL_FULL = FSA_JOURNAL - 64, TRIES = 50 };
static const double SHIFT_SHARE = 0.6, ADD_SHARE_FREE = 0.2, ADD_SHARE = 0.5;

/* ---- chance ---------------------------------------------------------------------------------------------------------- */

static inline uint64_t draw(struct fsa_mover *m) /* xorshift64* */
{
    uint64_t x = m->rng;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    m->rng = x;
    return x * 0x2545F4914F6CDD1Dull;
}

int32_t fsa_draw_below(struct fsa_mover *m, int32_t n) { return (int32_t)(((draw(m) >> 32) * (uint64_t)n) >> 32); }
double fsa_draw(struct fsa_mover *m) { return (double)(draw(m) >> 11) * 0x1p-53; }

/* Draw a rank in lo .. hi to stand before: with probability 1/2 a few items from p (geometric), else any. */
static int32_t draw_place(struct fsa_mover *m, int32_t p, int32_t lo, int32_t hi)
{
    if (fsa_draw(m) < 0.5)
        return lo + fsa_draw_below(m, hi - lo + 1);
    const int32_t far = 1 + (int32_t)(-3 * log(1 - fsa_draw(m)));
    const int32_t k = fsa_draw(m) < 0.5 ? p - far : p + 1 + far;
    return k < lo ? lo : k > hi ? hi : k;
}

/* ---- journal --------------------------------------------------------------------------------------------------------- */

static void note(struct fsa_mover *m, int32_t added, int32_t node, int32_t slot)
{
    m->journal[m->n_journal].added = added;
    m->journal[m->n_journal].node = node;
    m->journal[m->n_journal++].slot = slot;
}

static int add(struct fsa_mover *m, int32_t v, int32_t s)
{
    if (s < 0 || m->n_journal >= JOURNAL_FULL || !fsa_may_add(m->row, v, s))
        return 0;
    fsa_add(m->row, v, s);
    note(m, 1, v, s);
    return 1;
}

static int take(struct fsa_mover *m, int32_t s)
{
    if (m->n_journal >= FSA_JOURNAL || !fsa_may_remove(m->row, s))
        return 0;
    note(m, 0, m->row->slot[s], s);
    fsa_remove(m->row, s);
    return 1;
}

void fsa_undo(struct fsa_mover *m)
{
    while (m->n_journal > 0) {
        const int32_t k = --m->n_journal;
        if (m->journal[k].added)
            fsa_remove(m->row, m->journal[k].slot);
        else
            fsa_add(m->row, m->journal[k].node, m->journal[k].slot);
    }
}

/* ---- places ---------------------------------------------------------------------------------------------------------- */

static inline int is_first(const struct fsa_mover *m, int32_t v, int32_t s)
{
    return m->freedom != FSA_FREE && m->row->first[v] == s;
}

/* The rank nearest to k in its stage before which v may stand; -1: the stage computes v already. */
static int32_t staged_place(const struct fsa_mover *m, int32_t v, int32_t k)
{
    const struct fsa_row *r = m->row;
    if (m->freedom != FSA_STAGES)
        return k;
    for (; k > 0; k--) {
        const int32_t s = r->slot_at[k - 1], w = r->slot[s];
        if (w == v && !is_first(m, w, s))
            return -1;
        if (is_first(m, w, s) || w < v)
            break;
    }
    for (; k < r->n_items; k++) {
        const int32_t s = r->slot_at[k], w = r->slot[s];
        if (w == v && !is_first(m, w, s))
            return -1;
        if (is_first(m, w, s) || w > v)
            break;
    }
    return k;
}

/* Add a replay of v before rank k; an input that is held only for the replay is itself replayed with probability `chance`, and so on. */
static int add_chain(struct fsa_mover *m, int32_t v, int32_t k, int depth, double chance)
{
    struct fsa_row *r = m->row;
    k = staged_place(m, v, k);
    const int32_t s = k < 0 ? -1 : fsa_gap(r, k);
    if (!add(m, v, s))
        return 0;
    for (int q = r->c->dep_at[v]; depth > 0 && chance > 0 && q < r->c->dep_at[v + 1]; q++) {
        const int32_t d = r->c->dep[q];
        const struct event_list *e = &r->ev[d];
        const int32_t i = fsa_after(e, s) - 1; /* the read in slot s */
        if (i + 1 < e->n && !(e->at[i + 1] & 1))
            continue; /* the input is in memory for a later reader as well */
        const int32_t from = fsa_rank(r, e->at[i - 1] >> 1), here = fsa_rank(r, s);
        if (here - from < 3 || fsa_draw(m) >= chance)
            continue;
        const int32_t at = fsa_draw(m) < 0.3 ? from + 1 + fsa_draw_below(m, here - from) : here;
        add_chain(m, d, at, depth - 1, chance);
    }
    return 1;
}

/* Takes away replays of v that no item reads, and in turn replays that only they read. */
static void take_unread(struct fsa_mover *m, int32_t v, int depth)
{
    struct fsa_row *r = m->row;
    const struct event_list *e = &r->ev[v];
    if (r->c->user_at[v + 1] == r->c->user_at[v] || depth == 0)
        return;
    for (int32_t i = e->n - 1; i >= 0 && r->made[v] > 1; i--) {
        if (i >= e->n || !(e->at[i] & 1) || (i + 1 < e->n && !(e->at[i + 1] & 1)) || is_first(m, v, e->at[i] >> 1))
            continue;
        if (m->n_journal >= JOURNAL_FULL || !take(m, e->at[i] >> 1))
            return;
        for (int q = r->c->dep_at[v]; q < r->c->dep_at[v + 1]; q++)
            take_unread(m, r->c->dep[q], depth - 1);
    }
}

/* ---- moves ----------------------------------------------------------------------------------------------------------- */

/* Move the op of rank p: anywhere after its inputs were first made and before readers that only it can serve. */
static int move_op(struct fsa_mover *m, int32_t p)
{
    struct fsa_row *r = m->row;
    const int32_t s = r->slot_at[p], v = r->slot[s];
    const struct event_list *e = &r->ev[v];
    const int32_t i = fsa_after(e, s) - 1;
    int32_t lo = 0, hi = r->n_items;
    for (int q = r->c->dep_at[v]; q < r->c->dep_at[v + 1]; q++) {
        const int32_t k = fsa_rank(r, r->ev[r->c->dep[q]].at[0] >> 1) + 1;
        lo = k > lo ? k : lo;
    }
    if (m->freedom != FSA_FREE) { /* a replay moves between its node's events before and after it */
        const int32_t k = i > 0 ? fsa_rank(r, e->at[i - 1] >> 1) + 1 : 0;
        lo = k > lo ? k : lo;
        hi = i + 1 < e->n ? fsa_rank(r, e->at[i + 1] >> 1) : hi;
    } else if (i == 0 && e->n > 1 && !(e->at[1] & 1)) {
        hi = fsa_rank(r, e->at[1] >> 1);
    }
    if (hi < lo)
        return 0;
    const int32_t k = staged_place(m, v, draw_place(m, p, lo, hi));
    if (k < 0 || k == p || k == p + 1 || !add(m, v, fsa_gap(r, k)))
        return 0;
    if (take(m, s))
        return 1;
    fsa_undo(m);
    return 0;
}

/* Add a replay of an input of a random item, at the item or earlier in the input's life. */
static int add_replay(struct fsa_mover *m)
{
    struct fsa_row *r = m->row;
    const int32_t p = fsa_draw_below(m, r->n_items), s = r->slot_at[p], w = r->slot[s];
    const int32_t n_dep = r->c->dep_at[w + 1] - r->c->dep_at[w];
    if (!n_dep)
        return 0;
    const int32_t d = r->c->dep[r->c->dep_at[w] + fsa_draw_below(m, n_dep)];
    const struct event_list *e = &r->ev[d];
    const int32_t from = fsa_rank(r, e->at[fsa_after(e, s) - 2] >> 1);
    if (p - from < 2)
        return 0;
    if (m->sight >= 0) {
        const double full = r->budget - (fsa_draw(m) < m->sight ? 0 : (double)r->c->mem[d]);
        int32_t k = from + 1;
        while (k < p && r->use[k] <= full)
            k++;
        if (k == p)
            return 0;
    }
    const int32_t at = fsa_draw(m) < 0.7 ? p : from + 1 + fsa_draw_below(m, p - from);
    const double chance = fsa_draw(m) < 0.5 ? 0 : fsa_draw(m);
    return add_chain(m, d, at, CHAIN_DEPTH, chance);
}

static int take_replay(struct fsa_mover *m)
{
    struct fsa_row *r = m->row;
    for (int tries = 0; tries < TRIES; tries++) {
        const int32_t p = fsa_draw_below(m, r->n_items), s = r->slot_at[p], v = r->slot[s];
        if (r->made[v] < 2 || is_first(m, v, s))
            continue;
        if (m->freedom != FSA_FREE && fsa_draw(m) < 0.5)
            return move_op(m, p);
        if (!take(m, s))
            return 0;
        for (int q = r->c->dep_at[v]; q < r->c->dep_at[v + 1]; q++)
            take_unread(m, r->c->dep[q], CHAIN_DEPTH);
        return 1;
    }
    return 0;
}

int fsa_mutate(struct fsa_mover *m)
{
    const double dice = fsa_draw(m);
    const double shift = m->freedom == FSA_FREE ? SHIFT_SHARE : 0, more = m->freedom == FSA_FREE ? ADD_SHARE_FREE : ADD_SHARE;
    m->n_journal = 0;
    if (dice < shift)
        return move_op(m, fsa_draw_below(m, m->row->n_items));
    if (dice < shift + more || m->row->n_items == m->row->c->n)
        return add_replay(m);
    return take_replay(m);
}
