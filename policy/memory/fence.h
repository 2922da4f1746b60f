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
 * awaited by t. That orders at least as much as asked; d->waited[t][u]
 * remembers how far t is ordered behind u, so a program with one stream never makes a call here. A fence of more than
 * FENCE_POINTS streams keeps the others as `tails`: their tail at the time of the wait, later than asked, never earlier. A gate is an
 * event in front of an op that may wait for the host; gates have numbers, and where a stream has got one since it is awaited up to that.
 *
 * Threads: under the engine's mutex. Errors: where the driver refuses the event, the host waits instead; where that fails too,
 * -EIO, the driver's code is in d->broken (or in d->forbidden, where a capture forbade it: until the next op), and the caller must not go on: nothing is ordered. Results must be used.
 */
#ifndef REMAT_POLICY_FENCE_H
#define REMAT_POLICY_FENCE_H

#include "preload/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct device;

enum { RT_MAX_STREAMS = 64, FENCE_POINTS = 4 };
/* Streams of our own have the first indices. */
enum { STREAM_OUT = 0, STREAM_IN = 1, STREAM_FIRST_PROGRAM = 2 };

struct fence {
    uint64_t tails;                /* streams that are awaited up to their first gate later than `gates`, without one up to their tail */
    uint64_t gates;                /* number of a gate (below): what is meant of each of these streams lies in front of all later ones */
    uint64_t point[FENCE_POINTS];  /* sequence << 6 | stream; 0 none. At most one a stream */
};

#define FENCE_MUST_USE __attribute__((warn_unused_result))

static inline bool fence_empty(const struct fence *f)
{
    return !(f->tails | f->point[0] | f->point[1] | f->point[2] | f->point[3]);
}
/* Who is in stream t already waits for nothing here. */
static inline bool fence_only_on(const struct fence *f, unsigned t)
{
    uint64_t others = f->point[1] | f->point[2] | f->point[3] | f->tails;
    return !others && (!f->point[0] || (f->point[0] & 63) == t);
}
void fence_add(struct device *d, struct fence *f, unsigned u);
/* The same, where the latest sequence number of stream u is at hand. */
static inline void fence_add_latest(struct device *d, struct fence *f, unsigned u, uint64_t seq)
{
    if (fence_only_on(f, u))
        f->point[0] = seq << 6 | u; /* nearly always */
    else
        fence_add(d, f, u);
}
void fence_merge_all(struct device *d, struct fence *f, const struct fence *g);
static inline void fence_merge(struct device *d, struct fence *f, const struct fence *g)
{
    uint64_t p = g->point[0];
    if (p && !(g->point[1] | g->point[2] | g->point[3] | g->tails) && fence_only_on(f, p & 63))
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

/* What the host waits for may be up to another thread of the program, which waits for the mutex. So whoever can begin again from the start
 * asks for waits to be put off: from fence_put_off() on fence_sync() answers -EAGAIN where it would have to wait, and whatever wanted it
 * undoes what it has done. fence_put_off_ends() says whether there was such a wait, and for what: for that the caller waits with the mutex
 * free, then says so, and begins again. */
struct host_wait {
    CUevent event;
    bool ours; /* the event goes when it has been waited for */
    unsigned stream;
    uint64_t seq;
};
void fence_put_off(struct device *d);
bool fence_put_off_ends(struct device *d, struct host_wait *w);
void fence_waited(struct device *d, struct host_wait *w, bool passed);
/* Looks, without waiting, whether every point of it has passed; while a stream is captured nobody may ask. */
bool fence_has_passed(struct device *d, const struct fence *f);
/* Drops the points whose end the host has seen: nobody has to wait for them any more. */
void fence_trim(struct device *d, struct fence *f);
/* Every point of it is of something that has been queued. */
bool fence_is_sound(const struct device *d, const struct fence *f);

/* ---- streams -------------------------------------------------------------------------------------------------- */

int stream_init(struct device *d);
/* Index of a stream handle; new ones are entered. Past RT_MAX_STREAMS an idle stream loses its index to the new one,
 * and where none is idle the last one is waited for first. Where that fails the index still means the other stream. */
unsigned stream_index(struct device *d, CUstream s);
/* The handle has an index, and has not been destroyed since. */
bool stream_is_known(const struct device *d, CUstream s);
/* Something was queued on stream t: it has a sequence number now, so fence_add(t) means it. */
void stream_issued(struct device *d, unsigned t);
/* The same for a copy on one of our own streams, with an event of its own: who waits for it waits for nothing later. */
void stream_mark(struct device *d, unsigned u);
/* What comes next on stream t may wait for the host: who waits for what is in front of it shall not wait for that too. */
void stream_may_wait(struct device *d, unsigned t);
/* Looks, without waiting, whether our own streams have done all that was queued on them. Copies of long ago would otherwise stay in the
 * fences of all memory that they touched, and every launch would look them up. */
void stream_look(struct device *d);
/* The program makes an allocation or a free in stream t. Between the legacy stream and the blocking ones that is an action as any
 * other: in the legacy stream it waits for all blocking streams, and they wait for it; in a blocking stream it waits for the legacy
 * stream, and who waits for the blocking stream then (the host, an event) has waited for both. Nothing of ours is queued there, so an
 * event takes its place where there are such streams; where the driver refuses that, the host waits for everything. */
void stream_acts(struct device *d, unsigned t);
/* What is queued on stream t by this thread now comes after all that was queued under its index, which is this thread's from now on where it
 * was another one's (CU_STREAM_PER_THREAD). Where that fails another thread still has the index, and each use of it fails likewise. */
int stream_own(struct device *d, unsigned t);
/* t, or where its stream has been destroyed, another one that work of ours can be queued on. */
unsigned stream_alive(const struct device *d, unsigned t);
/* Whether all that is queued on stream t has ended, without waiting: the driver's code. */
int stream_query_drv(struct device *d, unsigned t);
/* What a device that has failed answers to every call from then on; CUDA_SUCCESS: it has not, as far as one can tell without waiting. */
int stream_failure_drv(const struct device *d);
/* What the driver answers the program for a call that a capture may forbid its thread (process/capture_mode.h): where remat answers such a call in the
 * driver's place it asks this first. */
int fence_forbidden_drv(const struct device *d);
unsigned stream_count(const struct device *d);
/* The host has seen the end of no more, and no other stream is ordered behind more, than has been queued on stream u. */
bool stream_is_sound(const struct device *d, unsigned u);
/* The handle is about to be destroyed and may come back as another stream. */
void stream_forget(struct device *d, CUstream s);
/* A context is about to be destroyed, with its streams and events: the host has seen the end of what was queued there. */
void stream_context_ends(struct device *d, CUcontext ctx);

#endif
