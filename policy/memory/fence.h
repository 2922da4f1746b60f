/* fence.h: "not before". The one type that says who must wait for whom.
 *
 * A fence is a set of points; a point (stream u, sequence q) stands for the end of the q-th thing queued on stream u, and of
 * all that was queued on u before it. Three verbs, and no other way to order anything:
 *
 *   publish   fence_add(f, u)       what was queued last on stream u belongs to f from now on
 *   merge     fence_merge(f, g)     all points of g belong to f too
 *   wait      fence_wait(t, f)      what is queued on stream t from now on comes after every point of f
 *             fence_sync(f)         the host waits for every point of f
 *
 * Rules. Memory is never handed on without its fence. With
 *     ready(s)   who touches slot s comes after this: the memory's earlier owners, the copy or replay that made its content
 *     unseen(s)  work of ours that reads s and that the program knows nothing of: who writes s comes after this
 *     users(s)   all that has touched s since it got its memory; after a free, the free's own point in its stream, since
 *                the program has promised that its uses come before that
 * the invariant is, whenever a chunk changes its owner from slot a to slot b,
 *     ready(b)  >=  ready(a) + unseen(a) + users(a)                                                      (as sets of points)
 * ready(a) is in it even if nobody touched a: its own earlier owners may still be at work.
 * Removing a mapping waits on the host for ready + unseen + users of the slot and of all its earlier lives (`stale`), because
 * unmapping is not ordered by any stream.
 *
 * A free is something queued: the driver's own free would be, and a stream may have waited for events (which no door counts)
 * since the last launch on it. So stream_issued() comes before the free's point is published.
 *
 * How a wait is made: one event recorded at the tail of u, or in front of an op that may wait for the host where it is behind that,
 * awaited by t. That orders at least as much as asked; stream_waited(t, u)
 * remembers how far t is ordered behind u, so a program with one stream never makes a call here. A fence of more than FENCE_POINTS streams keeps the
 * others in a set; each point stays exactly what was asked for, so nobody waits for a stream that is none of his, which may stand still for
 * the host for ever. A gate (stream.h) is an event in front of an op that may wait for the host.
 *
 * Threads: under the engine's mutex. Errors: where the driver refuses the event, the host waits instead; where that fails too,
 * -EIO, the driver's code is in d->broken (or in d->forbidden, where a capture forbade it: until the next op), and the caller must not go on: nothing is ordered. Results must be used.
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
    uint64_t point[FENCE_POINTS]; /* 0 none. At most one a stream */
    uint64_t set;                 /* more points: a set of them that several fences may have in common (fence.c); 0: none */
};

static inline uint64_t fence_point(unsigned u, uint64_t seq) { return seq << FENCE_STREAM_BITS | u; }
static inline unsigned fence_point_stream(uint64_t p) { return (unsigned)(p & (FENCE_MOST_STREAMS - 1)); }
static inline uint64_t fence_point_seq(uint64_t p) { return p >> FENCE_STREAM_BITS; }

#define FENCE_MUST_USE __attribute__((warn_unused_result))

static inline bool fence_empty(const struct fence *f)
{
    return !(f->set | f->point[0] | f->point[1] | f->point[2] | f->point[3]);
}
/* Who is in stream t already waits for nothing here. */
static inline bool fence_only_on(const struct fence *f, unsigned t)
{
    uint64_t others = f->point[1] | f->point[2] | f->point[3] | f->set;
    return !others && (!f->point[0] || fence_point_stream(f->point[0]) == t);
}
void fence_add(struct device *d, struct fence *f, unsigned u);
/* The same, where the latest sequence number of stream u is at hand. */
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

/* The host waits for all that is queued on the device, but not for a stream that stands still for the host and has no work behind that: it would stand
 * still as well, for a later call of the program. One that has work behind it is waited for, or where the caller can do without (`refuses`), -EBUSY. */
FENCE_MUST_USE int fence_sync_queued(struct device *d, bool refuses);

/* What the host waits for may be up to another thread of the program, which waits for the mutex. So whoever can begin again from the start
 * asks for waits to be put off: from fence_put_off() on fence_sync() answers -EAGAIN where it would have to wait, and whatever wanted it
 * undoes what it has done. fence_put_off_ends() says whether there was such a wait, and for what: for that the caller waits with the mutex
 * free, then says so, and begins again. */
struct host_wait {
    CUevent event;
    bool ours; /* the event goes when it has been waited for; else it is a gate's, which stays until then */
    unsigned stream;
    uint64_t seq;
};
void fence_put_off(struct device *d);
/* Such a wait has been asked for since. */
bool fence_is_put_off(const struct device *d);
bool fence_put_off_ends(struct device *d, struct host_wait *w);
void fence_waited(struct device *d, struct host_wait *w, bool passed);
/* Looks, without waiting, whether every point of it has passed; while a stream is captured nobody may ask. */
bool fence_has_passed(struct device *d, const struct fence *f);
/* Some point of it may stand still for the host: who waits for it may do so until the program has made a later call. As was seen since
 * stream_looks_anew(). */
bool fence_stands(struct device *d, const struct fence *f);
/* As fence_stands(), but for the points on stream t: what comes next on that stream is behind them anyway. */
bool fence_stands_beside(struct device *d, const struct fence *f, unsigned t);
/* Drops the points whose end the host has seen: nobody has to wait for them any more. */
void fence_trim(struct device *d, struct fence *f);
/* Every point of it is of something that has been queued. */
bool fence_is_sound(const struct device *d, const struct fence *f);

#endif
