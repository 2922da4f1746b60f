/* fence.h: "not before". The one type that says who must wait for whom.
 *
 * A fence is a set of points; a point (stream u, sequence q) stands for the end of the q-th thing queued on stream u, and of
 * all that was queued on u before it. Three verbs, and no other way to order anything:
 *
 *   publish   fence_add(f, u)       the point of the latest thing queued on stream u belongs to f from now on
 *   merge     fence_merge(f, g)     all points of g belong to f too
 *   wait      fence_wait(t, f)      work queued on stream t from now on comes after every point of f
 *             fence_sync(f)         the host waits for every point of f
 *
 * Rules. Memory is never handed on without its fence. With
 *     ready(s)   points that any use of slot s comes after: the memory's earlier owners, the copy or replay that made its content
 *     unseen(s)  remat's own work that reads s, unknown to the program: any write of s comes after these points
 *     users(s)   all that has touched s since it got its memory; after a free, the free's own point in its stream, since
 *                the program has promised that its uses come before the free
 * the invariant is, whenever a chunk changes its owner from slot a to slot b,
 *     ready(b)  >=  ready(a) + unseen(a) + users(a)                                                      (as sets of points)
 * ready(a) is part of ready(b) even if nothing touched a: earlier owners of the chunk may still be at work.
 * Removing a mapping waits on the host for ready + unseen + users of the slot and of all its earlier lives (`stale`), because
 * unmapping is not ordered by any stream.
 *
 * A free counts as a thing queued, as the driver's own free would: its stream may have waited for events (which no door counts)
 * since the last launch there. So stream_issued() comes before the free's point is published.
 *
 * How stream t waits for point (u, q): t awaits one event, that of the first gate behind q (stream.h: an event in front of an op that may wait for the
 * host), or else one recorded at the tail of u. The event orders at least as much as asked; stream_waited(t, u) remembers how far t is ordered behind u,
 * so a program with one stream never makes a call here. A fence of more than FENCE_POINTS streams keeps the further points in a set. Points are never
 * widened to other streams: such a stream may stand still for the host for ever.
 *
 * Threads: under the engine's mutex. Errors: where the driver refuses the event, the host waits instead; where that wait fails too, -EIO, and the driver's
 * code is in d->broken (or in d->forbidden, where a capture forbade the wait: until the next op). The caller must not go on then: nothing is ordered.
 * Results must be used.
 */
#ifndef REMAT_POLICY_FENCE_H
#define REMAT_POLICY_FENCE_H

#include "policy/memory/stream.h"

#include <stdbool.h>
#include <stdint.h>

struct device;

enum { FENCE_POINTS = 4 };
/* A point: sequence << FENCE_STREAM_BITS | stream. */
enum { FENCE_STREAM_BITS = 20, FENCE_MOST_STREAMS = 1 << FENCE_STREAM_BITS };

struct fence {
    uint64_t point[FENCE_POINTS]; /* 0: none. At most one for each stream */
    uint64_t set;                 /* further points: a set that several fences may have in common (fence.c); 0: none */
};

static inline uint64_t fence_point(unsigned u, uint64_t seq) { return seq << FENCE_STREAM_BITS | u; }
static inline unsigned fence_point_stream(uint64_t p) { return (unsigned)(p & (FENCE_MOST_STREAMS - 1)); }
static inline uint64_t fence_point_seq(uint64_t p) { return p >> FENCE_STREAM_BITS; }

#define FENCE_MUST_USE __attribute__((warn_unused_result))

static inline bool fence_empty(const struct fence *f)
{
    return !(f->set | f->point[0] | f->point[1] | f->point[2] | f->point[3]);
}
/* f has no point outside stream t: work queued on t has nothing to wait for. */
static inline bool fence_only_on(const struct fence *f, unsigned t)
{
    uint64_t others = f->point[1] | f->point[2] | f->point[3] | f->set;
    return !others && (!f->point[0] || fence_point_stream(f->point[0]) == t);
}
void fence_add(struct device *d, struct fence *f, unsigned u);
/* fence_add(), where the latest sequence number of stream u is at hand. */
static inline void fence_add_latest(struct device *d, struct fence *f, unsigned u, uint64_t seq)
{
    if (fence_only_on(f, u))
        f->point[0] = fence_point(u, seq); /* nearly always */
    else
        fence_add(d, f, u);
}
void fence_merge_all(struct device *d, struct fence *f, const struct fence *g);
static inline void fence_merge(struct device *d, struct fence *f, const struct fence *g)
{
    uint64_t p = g->point[0];
    if (p && !(g->point[1] | g->point[2] | g->point[3] | g->set) && fence_only_on(f, fence_point_stream(p)))
        f->point[0] = p > f->point[0] ? p : f->point[0]; /* nearly always: points of one stream compare by their sequence */
    else if (!fence_empty(g))
        fence_merge_all(d, f, g);
}
FENCE_MUST_USE int fence_wait_all(struct device *d, unsigned t, const struct fence *f);
FENCE_MUST_USE static inline int fence_wait(struct device *d, unsigned t, const struct fence *f)
{
    return fence_only_on(f, t) ? 0 : fence_wait_all(d, t, f);
}
FENCE_MUST_USE int fence_sync(struct device *d, const struct fence *f);

/* The host waits for all that is queued on the device, except ops that stand still for the host with no other work behind them: the host would stand still
 * with them, for a later call of the program. A standing stream with work behind is waited for, or with `refuses` (the caller can do without) nothing is: -EBUSY. */
FENCE_MUST_USE int fence_sync_queued(struct device *d, bool refuses);

/* A wait of the host may end only by a call of another thread of the program, which needs the mutex. So a caller that can begin again from the start
 * asks for waits to be put off: from fence_put_off() on, fence_sync() answers -EAGAIN where it would have to wait, and its callers undo what they
 * have done. fence_put_off_ends() says whether there was such a wait, and describes it in *w: the caller waits for w->event with the mutex free,
 * calls fence_waited(), and begins again. */
struct host_wait {
    CUevent event;
    bool ours; /* made for this wait, and destroyed after it; else the event is a gate's, which is kept until then */
    unsigned stream;
    uint64_t seq;
};
void fence_put_off(struct device *d);
/* Some wait has been put off since fence_put_off(). */
bool fence_is_put_off(const struct device *d);
bool fence_put_off_ends(struct device *d, struct host_wait *w);
void fence_waited(struct device *d, struct host_wait *w, bool passed);
/* Looks, without waiting, whether every point of f has passed; not to be called while a stream is captured. */
bool fence_has_passed(struct device *d, const struct fence *f);
/* Some point of f may stand still for the host: a wait for f may last until the program has made a later call. Streams are asked once for each
 * stream_looks_anew(). */
bool fence_stands(struct device *d, const struct fence *f);
/* As fence_stands(), but for the points on stream t: what comes next on that stream is behind them anyway. */
bool fence_stands_beside(struct device *d, const struct fence *f, unsigned t);
/* Drops the points whose end the host has seen: no wait needs them. */
void fence_trim(struct device *d, struct fence *f);
/* Every point of f stands for something that has been queued. */
bool fence_is_sound(const struct device *d, const struct fence *f);

#endif
