/* milp_search: the fastest drop-and-replay plan of a small trace, by best-first search.
 *
 * A state is (next op t, set of values in memory). A move runs op t, or replays an earlier op. Dropping values costs
 * nothing and is put off until room is needed, when every smallest sufficient set of values is tried; values of no more
 * use are dropped at once. The estimate: every value that the program will still read and that is not in memory must
 * be rebuilt at least once, and so must its producer's missing inputs, and so on; each op counted once. The estimate never
 * exceeds the true cost and never falls by more than a move costs (A*, Hart, Nilsson & Raphael 1968).
 */
#include "offline/solvers/milp/milp_search.h"
#include "offline/solvers/milp/milp_model.h"

#include "offline/solvers/frontier.h"
#include "offline/solvers/solver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STATES_MAX = 3 * 1000 * 1000 };

struct state {
    milp_set set;
    int64_t g;
    milp_set during;  /* milp_move.during of the move that led here */
    int32_t parent, t;
    int32_t op;       /* op of this move: a replay, or the program's own op if t rose */
    uint8_t closed;
};

struct search {
    const struct milp_model *m;
    int64_t room, cutoff;      /* bytes for values with bits */
    struct state *st;
    int32_t n, st_room;
    int32_t *hash;
    uint32_t mask;
    struct frontier open;
    int32_t *maker;            /* [n] producer of the value with this bit; -1: none */
    double until_s;            /* solver_now_s clock; 0: no end */
    int64_t work, work_most;   /* steps taken; most steps allowed, 0: any number */
    int err;
};

static int64_t bytes_of(const struct milp_model *m, milp_set s)
{
    int64_t b = 0;
    for (; s; s &= s - 1)
        b += m->bytes[milp_first(s)];
    return b;
}

/* Least replay time from state (t, set) on; -1: the program cannot go on from it. */
static int64_t estimate(const struct search *s, int32_t t, milp_set set)
{
    const struct milp_model *m = s->m;
    milp_set owed = m->wanted[t] & ~set, seen = owed;
    int64_t h = 0;
    for (int i = t - 1; i >= 0 && owed; i--) {
        milp_set mine = (m->op[i].out | m->op[i].side_out) & owed;
        if (!mine)
            continue;
        if (mine & (m->fixed | m->op[i].side_out) || m->op[i].until < t)
            return -1;
        owed &= ~mine;
        h += m->op[i].ns;
        milp_set more = m->op[i].in & ~set & ~seen;
        owed |= more;
        seen |= more;
    }
    /* values still owed are made by op t or later, or are initial values that are gone: no way on */
    for (; owed; owed &= owed - 1)
        if (s->maker[milp_first(owed)] < t)
            return -1;
    return h;
}

static uint32_t hash_of(milp_set set, int32_t t)
{
    uint64_t z = (uint64_t)set * UINT64_C(0x9e3779b97f4a7c15) ^ ((uint64_t)(set >> 64) + (uint64_t)t) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 29)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

static int rehash(struct search *s)
{
    uint32_t size = s->mask ? 2 * (s->mask + 1) : 4096;
    int32_t *h = malloc(size * sizeof *h);
    if (!h)
        return -ENOMEM;
    memset(h, 0xff, size * sizeof *h);
    for (int32_t i = 0; i < s->n; i++) {
        uint32_t at = hash_of(s->st[i].set, s->st[i].t) & (size - 1);
        while (h[at] >= 0)
            at = (at + 1) & (size - 1);
        h[at] = i;
    }
    free(s->hash);
    s->hash = h;
    s->mask = size - 1;
    return 0;
}

static void reach(struct search *s, struct state q)
{
    int64_t h = estimate(s, q.t, q.set);
    if (h < 0 || q.g + h >= s->cutoff || s->err)
        return;
    uint32_t at = hash_of(q.set, q.t) & s->mask;
    while (s->hash[at] >= 0 && (s->st[s->hash[at]].set != q.set || s->st[s->hash[at]].t != q.t))
        at = (at + 1) & s->mask;
    int32_t x = s->hash[at];
    if (x >= 0 && s->st[x].g <= q.g)
        return;
    if (x < 0) {
        if (s->n == STATES_MAX) {
            s->err = -E2BIG;
            return;
        }
        if (s->n == s->st_room) {
            int32_t room = s->st_room ? 2 * s->st_room : 1024;
            struct state *p = realloc(s->st, (size_t)room * sizeof *p);
            if (!p) {
                s->err = -ENOMEM;
                return;
            }
            s->st = p;
            s->st_room = room;
        }
        x = s->n++;
        s->hash[at] = x;
    }
    s->st[x] = q;
    if ((uint32_t)s->n * 2 > s->mask && (s->err = rehash(s)))
        return;
    s->err = frontier_push(&s->open, (struct frontier_entry){q.g + h, q.t, x});
}

struct step {
    int32_t from, op;
    int own;         /* 1: the program's own op, not a replay */
    milp_set need;   /* values that may not leave */
};

/* Count a step of work; look at the clock only where the caller set a time. */
static void tick(struct search *s)
{
    if (!s->err && ++s->work > s->work_most && s->work_most > 0)
        s->err = -E2BIG;
    if (!s->err && !(s->work & 4095) && s->until_s > 0 && solver_now_s() > s->until_s)
        s->err = -ETIME;
}

/* Runs the step with `stay` in memory, after dropping just enough of `may`, in every smallest way. */
static void leave(struct search *s, const struct step *q, milp_set stay, milp_set may, milp_set gone, int64_t over)
{
    const struct milp_model *m = s->m;
    /* one step alone may have exponentially many ways to make room */
    tick(s);
    if (s->err)
        return;
    if (over <= 0) {
        for (milp_set x = gone; x; x &= x - 1) /* not smallest if a dropped value could have stayed */
            if (over + m->bytes[milp_first(x)] <= 0)
                return;
        const struct milp_op *o = &m->op[q->op];
        struct state from = s->st[q->from];
        milp_set during = stay | may, cover = o->gone, make = o->out;
        if (q->own) {
            cover |= o->side_gone;
            make |= o->side_out;
        }
        int32_t t = from.t + q->own;
        reach(s, (struct state){ .set = ((during & ~cover) | make) & m->useful[t], .g = from.g + (q->own ? 0 : o->ns),
                                 .during = during, .parent = q->from, .t = t, .op = q->op });
        return;
    }
    if (!may || bytes_of(m, may) < over)
        return;
    milp_set b = milp_bit(milp_first(may));
    int64_t size = m->bytes[milp_first(may)];
    leave(s, q, stay, may & ~b, gone | b, over - size);
    leave(s, q, stay | b, may & ~b, gone, over);
}

static void expand(struct search *s, int32_t x)
{
    const struct milp_model *m = s->m;
    int32_t t = s->st[x].t;
    milp_set set = s->st[x].set;
    if (t < m->n_ops) {
        const struct milp_op *o = &m->op[t];
        struct step q = { x, t, 1, o->in | o->side_in };
        if (!(q.need & ~set)) {
            milp_set held = set & ~((o->gone | o->side_gone) & ~q.need); /* old contents of buffers it writes leave */
            int64_t use = bytes_of(m, (held & ~(o->gone | o->side_gone)) | o->out | o->side_out);
            leave(s, &q, q.need, held & ~q.need, 0, use - s->room);
        }
    }
    for (int32_t i = 0; i < t && !s->err; i++) {
        const struct milp_op *o = &m->op[i];
        if (o->until < t || (o->in & ~set) || !(o->out & ~set & m->useful[t] & ~m->fixed))
            continue;
        struct step q = { x, i, 0, o->in };
        milp_set held = set & ~(o->gone & ~q.need);
        int64_t use = bytes_of(m, (held & ~o->gone) | o->out) + o->side_bytes;
        leave(s, &q, q.need, held & ~q.need, 0, use - s->room);
    }
}

static int unwind(const struct search *s, int32_t x, struct plan *out)
{
    int64_t n = 0, k;
    for (int32_t y = x; s->st[y].parent >= 0; y = s->st[y].parent)
        n++;
    struct milp_move *moves = malloc(((size_t)n + 1) * sizeof *moves);
    if (!moves)
        return -ENOMEM;
    k = n;
    for (int32_t y = x; s->st[y].parent >= 0; y = s->st[y].parent) {
        const struct state *q = &s->st[y];
        moves[--k] = (struct milp_move){ q->op, q->t == s->st[q->parent].t, q->during, q->set };
    }
    int e = milp_emit(s->m, moves, n, out);
    free(moves);
    return e;
}

int milp_search(const struct milp_model *m, int64_t limit_bytes, int64_t cutoff_ns, const struct milp_effort *effort,
                struct plan *out, struct milp_found *f)
{
    struct search s = { .m = m, .room = limit_bytes - m->always_bytes, .cutoff = cutoff_ns > 0 ? cutoff_ns : INT64_MAX,
                        .until_s = effort->until_s, .work_most = effort->work_most };
    memset(f, 0, sizeof *f);
    s.maker = malloc(((size_t)m->n + 1) * sizeof *s.maker);
    int e = s.maker ? rehash(&s) : -ENOMEM;
    for (int v = 0; v < m->n && !e; v++)
        s.maker[v] = m->g->vals[m->val[v]].producer;
    if (!e && m->start_bytes <= limit_bytes)
        reach(&s, (struct state){ .set = m->start & m->useful[0], .parent = -1, .op = -1 });
    while (!e && !s.err && s.open.n && !f->found) {
        const struct frontier_entry top = frontier_pop(&s.open);
        struct state *q = &s.st[top.state];
        if ((double)top.f > f->bound_ns)
            f->bound_ns = (double)top.f;
        if (q->closed)
            continue;
        q->closed = 1;
        if (q->t == m->n_ops && !(m->wanted[m->n_ops] & ~q->set)) {
            f->found = f->proved_optimal = 1;
            f->replay_ns = q->g;
            e = unwind(&s, top.state, out);
        } else {
            expand(&s, top.state);
        }
        tick(&s);
    }
    if (!e && !s.err && !f->found) {
        if (cutoff_ns > 0)
            f->bound_ns = (double)cutoff_ns;
        else
            f->proved_infeasible = 1;
    }
    f->states = s.n;
    free(s.st);
    free(s.hash);
    frontier_free(&s.open);
    free(s.maker);
    return e ? e : f->found ? 0 : s.err;
}
