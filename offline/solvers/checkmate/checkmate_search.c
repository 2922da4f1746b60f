/* checkmate_search: the exact optimum of small Checkmate instances by best-first search.
 *
 * A state is (stage t, last slot k computed in it, set of results in memory). Computing j > k costs cost[j];
 * dropping results is free and put off until room is needed, when every smallest sufficient set of results is
 * tried. Results of no more use are dropped at once. The estimate adds, to the nodes still to be computed
 * for the first time, every missing result that one of these nodes reads, and its missing inputs in turn: each must be
 * computed at least once more, so the estimate never exceeds the true cost (A*, Hart, Nilsson & Raphael 1968).
 */
#include "offline/solvers/checkmate/checkmate_search.h"
#include "offline/solvers/checkmate/checkmate.h"

#include "offline/solvers/frontier.h"
#include "offline/solvers/solver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 62, STATES_MAX = 6 * 1000 * 1000 };

struct state {
    uint64_t set;
    int64_t g;
    int32_t parent;
    int8_t t, k, made; /* made: the node whose computation led here; -1 at the start */
    int8_t closed;
};

struct search {
    const struct checkmate *c;
    uint64_t *deps, *useful;   /* useful[t]: results that a computation at stage t or later may read */
    uint64_t *readers;         /* readers[t]: results read by a node of index t or more */
    int64_t *ahead;            /* ahead[t]: cost of nodes t .. n - 1 together */
    struct state *st;
    int n, room;
    int32_t *hash;
    uint32_t mask;
    struct frontier open;
    int64_t cutoff;
    int err;
};

static int64_t set_bytes(const struct checkmate *c, uint64_t set)
{
    int64_t s = 0;
    for (; set; set &= set - 1)
        s += c->mem[__builtin_ctzll(set)];
    return s;
}

static int64_t estimate(const struct search *s, int t, uint64_t set)
{
    if (t >= s->c->n)
        return 0;
    uint64_t missing = s->readers[t] & ~set & ((UINT64_C(1) << t) - 1), owed = missing;
    int64_t h = s->ahead[t];
    while (owed) {
        int i = 63 - __builtin_clzll(owed);
        owed &= ~(UINT64_C(1) << i);
        h += s->c->cost[i];
        uint64_t more = s->deps[i] & ~set & ~missing;
        missing |= more;
        owed |= more;
    }
    return h;
}

static uint32_t hash_of(uint64_t set, int t, int k)
{
    uint64_t z = set * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)(t * 64 + k + 1) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 30)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

static int rehash(struct search *s)
{
    uint32_t size = s->mask ? 2 * (s->mask + 1) : 4096;
    int32_t *h = malloc(size * sizeof *h);
    if (!h)
        return -ENOMEM;
    memset(h, 0xff, size * sizeof *h);
    for (int i = 0; i < s->n; i++) {
        uint32_t at = hash_of(s->st[i].set, s->st[i].t, s->st[i].k) & (size - 1);
        while (h[at] >= 0)
            at = (at + 1) & (size - 1);
        h[at] = i;
    }
    free(s->hash);
    s->hash = h;
    s->mask = size - 1;
    return 0;
}

static void reach(struct search *s, uint64_t set, int t, int k, int64_t g, int32_t parent, int made)
{
    int64_t f = g + estimate(s, t, set);
    if (f >= s->cutoff || s->err)
        return;
    uint32_t at = hash_of(set, t, k) & s->mask;
    while (s->hash[at] >= 0) {
        struct state *q = &s->st[s->hash[at]];
        if (q->set == set && q->t == t && q->k == k)
            break;
        at = (at + 1) & s->mask;
    }
    int32_t x = s->hash[at];
    if (x >= 0 && s->st[x].g <= g)
        return;
    if (x < 0) {
        if (s->n == STATES_MAX) {
            s->err = -E2BIG;
            return;
        }
        if (s->n == s->room) {
            int room = s->room ? 2 * s->room : 2048;
            void *p = realloc(s->st, (size_t)room * sizeof *s->st);
            if (!p) {
                s->err = -ENOMEM;
                return;
            }
            s->st = p;
            s->room = room;
        }
        x = s->n++;
        s->hash[at] = x;
    }
    s->st[x] = (struct state){ set, g, parent, (int8_t)t, (int8_t)k, (int8_t)made, 0 };
    if ((uint32_t)s->n * 2 > s->mask && (s->err = rehash(s)))
        return;
    s->err = frontier_push(&s->open, (struct frontier_entry){f, g, x});
}

/* Computes j from state x after dropping just enough of `may`, in every smallest way. */
static void compute(struct search *s, int32_t x, int j, uint64_t keep, uint64_t may, uint64_t gone, int64_t over)
{
    const struct checkmate *c = s->c;
    if (s->err)
        return;
    if (over <= 0) {
        for (uint64_t q = gone; q; q &= q - 1)  /* not smallest if a dropped result could have stayed */
            if (over + c->mem[__builtin_ctzll(q)] <= 0)
                return;
        int t = s->st[x].t, next = j == t ? t + 1 : t;
        uint64_t set = (keep | may | UINT64_C(1) << j) & s->useful[next];
        reach(s, set, next, j == t ? -1 : j, s->st[x].g + c->cost[j], x, j);
        return;
    }
    if (set_bytes(c, may) < over)
        return;
    uint64_t b = may & -may;
    if (!b)
        return;
    compute(s, x, j, keep, may & ~b, gone | b, over - c->mem[__builtin_ctzll(b)]);
    compute(s, x, j, keep | b, may & ~b, gone, over);
}

static void expand(struct search *s, int32_t x)
{
    const struct checkmate *c = s->c;
    struct state q = s->st[x];
    uint64_t all = q.set & s->useful[q.t];
    for (int j = q.k + 1; j <= q.t; j++) {
        uint64_t bit = UINT64_C(1) << j;
        if ((all & bit) || (s->deps[j] & ~all) || (j < q.t && !(s->useful[q.t] & bit)))
            continue;
        int64_t over = c->fixed + set_bytes(c, all) + c->mem[j] - c->budget;
        compute(s, x, j, s->deps[j], all & ~s->deps[j], 0, over);
    }
}

static void unwind(const struct search *s, int32_t x, struct checkmate_plan *p)
{
    const struct checkmate *c = s->c;
    size_t n = (size_t)c->n;
    memset(p->R, 0, 2 * n * n);
    for (; x >= 0 && s->st[x].made >= 0; x = s->st[x].parent) {
        const struct state *from = &s->st[s->st[x].parent];
        p->R[(size_t)from->t * n + (size_t)s->st[x].made] = 1;
        if (s->st[x].t > from->t && (size_t)s->st[x].t < n)
            for (int i = 0; i < s->st[x].t; i++)
                p->S[(size_t)s->st[x].t * n + (size_t)i] = s->st[x].set >> i & 1;
    }
    /* a result computed again in a stage need not have been held into it: drops were put off too long */
    for (size_t k = 0; k < n * n; k++)
        if (p->R[k])
            p->S[k] = 0;
}

static int prepare(struct search *s)
{
    const struct checkmate *c = s->c;
    size_t n = (size_t)c->n;
    s->deps = calloc(n + 1, sizeof *s->deps);
    s->useful = calloc(n + 1, sizeof *s->useful);
    s->readers = calloc(n + 1, sizeof *s->readers);
    s->ahead = calloc(n + 1, sizeof *s->ahead);
    if (!s->deps || !s->useful || !s->readers || !s->ahead)
        return -ENOMEM;
    for (int i = 0; i < c->n; i++)
        for (int q = c->dep_at[i]; q < c->dep_at[i + 1]; q++)
            s->deps[i] |= UINT64_C(1) << c->dep[q];
    for (int t = c->n - 1; t >= 0; t--) {
        s->readers[t] = s->readers[t + 1] | s->deps[t];
        s->ahead[t] = s->ahead[t + 1] + c->cost[t];
    }
    for (int t = 0; t < c->n; t++) {
        uint64_t u = s->readers[t];
        for (int i = t - 1; i >= 0; i--)
            if (u >> i & 1)
                u |= s->deps[i];
        s->useful[t] = u;
    }
    return rehash(s);
}

int checkmate_search(const struct checkmate *c, double time_limit_s, struct checkmate_plan *p, struct checkmate_answer *a)
{
    if (c->n > NODES_MAX)
        return -E2BIG;
    double until = solver_now_s() + time_limit_s;
    struct search s = { .c = c, .cutoff = a->found ? a->cost : INT64_MAX };
    int e = prepare(&s), settled = 0;
    if (!e)
        reach(&s, 0, 0, -1, 0, -1, -1);
    while (!e && !s.err && s.open.n && !settled) {
        const struct frontier_entry top = frontier_pop(&s.open);
        const int32_t x = top.state;
        if ((double)top.f > a->bound)
            a->bound = (double)top.f;
        if (s.st[x].closed)
            continue;
        s.st[x].closed = 1;
        if (s.st[x].t == c->n) {
            unwind(&s, x, p);
            int64_t cost, peak;
            checkmate_prune(c, p);
            if (checkmate_replay(c, p, &cost, &peak) || peak > c->budget) {
                e = -EPROTO;
                break;
            }
            *a = (struct checkmate_answer){ .found = 1, .cost = cost, .peak = peak, .bound = (double)cost };
            settled = 1;
        } else {
            expand(&s, x);
        }
        if (time_limit_s > 0 && (s.n & 255) == 0 && solver_now_s() > until)
            s.err = -ETIME;
    }
    if (!e && !s.err && (settled || !s.open.n)) {
        a->proved_optimal = a->found;
        a->proved_infeasible = !a->found;
        if (a->found)
            a->bound = (double)a->cost;
    }
    free(s.deps);
    free(s.useful);
    free(s.readers);
    free(s.ahead);
    free(s.st);
    free(s.hash);
    frontier_free(&s.open);
    return e ? e : s.err;
}
