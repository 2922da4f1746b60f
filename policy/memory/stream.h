/* stream.h: the streams that fences speak of (fence.h). Each has an index, from the first call on it until it has been destroyed and its work is done; there
 * are as many as the program has streams, and nobody waits for one to get another: any of them may stand still for the host.
 *
 * A gate is an event in front of an op that may wait for the host (a word in memory, a function of the host's, a semaphore or an event of another process).
 * Who waits for something in front of it waits for the gate, and does not stand still with what comes behind.
 *
 * Threads: under the engine's mutex. Errors: see fence.h.
 */
#ifndef REMAT_POLICY_STREAM_H
#define REMAT_POLICY_STREAM_H

#include "preload/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct device;

/* Streams of our own have the first indices. */
enum { STREAM_OUT = 0, STREAM_IN = 1, STREAM_FIRST_PROGRAM = 2 };
#define STREAM_NONE UINT32_MAX
/* Copies queue up on our own streams: an event each, the latest so many of them. */
enum { STREAM_MARKS = 256 };

struct gate {
    CUevent event; /* NULL: all in front of it had ended when it was made */
    CUevent after; /* behind the op that may wait; NULL: none */
    bool over;     /* nothing stands still there, or not any more */
    uint64_t seq;  /* all up to this lies in front of it */
    unsigned users; /* threads that wait for the event with the mutex free */
};

struct stream_row {
    CUstream handle;
    CUcontext ctx;   /* the stream is of this context */
    CUevent event;
    bool gone;       /* destroyed by the program; its event stands at its last tail */
    uint64_t done;   /* the host has seen the end of everything up to this */
    uint64_t apart;  /* of ours: no memory waits for what was queued from `done` to here */
    uint64_t holder; /* of CU_STREAM_PER_THREAD: the thread whose stream it is */
    struct gate *gates; /* in the order of seq; what lies in front of the first has been seen to end, or has more in front */
    uint32_t n_gates, cap_gates;
    uint64_t stands_from, stands_look; /* what is later than the first may stand still, as was seen in the look of this number */
    uint64_t *waited; /* [u]: it is ordered behind stream u up to this; u beyond n_waited: behind nothing */
    uint32_t n_waited;
};

struct streams {
    struct stream_row *row;
    unsigned n, cap, last; /* last: the index that was looked up last, or that of a stream of ours; never that of another context's default stream */
    CUevent mark[STREAM_FIRST_PROGRAM][STREAM_MARKS];
    uint64_t marked[STREAM_FIRST_PROGRAM][STREAM_MARKS]; /* the sequence number that each of these events stands for */
    uint64_t looks;         /* see stream_looks_anew() */
    bool gated;             /* some stream has had a gate */
    bool several;           /* the device's own context is not always current */
    CUevent *spare; /* events of gates that have been passed */
    uint32_t n_spare, cap_spare;
    struct fence_sets *sets; /* fence.c's */
};

int stream_init(struct device *d);
/* Index of a stream handle; new ones are entered. Without memory for it the index still means another stream. A default stream's handle means that of the
 * device's own context. */
unsigned stream_index(struct device *d, CUstream s);
/* As stream_index() == t, without a call where t was looked up last. CU_STREAM_PER_THREAD has another index in each thread. */
static inline bool stream_has_index(struct device *d, const struct streams *st, CUstream s, unsigned t)
{
    const bool last = st->last == t && t < st->n && st->row[t].handle == s && !st->row[t].gone && s != CU_STREAM_PER_THREAD;
    return last || stream_index(d, s) == t;
}
/* Another context than the device's own is current now: from here on it is asked which one is, where that matters. */
void stream_is_elsewhere(struct device *d);
/* The same for a default stream of another context (`ctx`), whose handle all contexts have in common. */
unsigned stream_index_in(struct device *d, CUcontext ctx, CUstream s);
/* The handle has an index, and has not been destroyed since. */
bool stream_is_known(const struct device *d, CUstream s);
/* Something was queued on stream t: it has a sequence number now, so fence_add(t) means it. */
void stream_issued(struct device *d, unsigned t);
/* The same for a copy on one of our own streams, with an event of its own: who waits for it waits for nothing later. */
void stream_mark(struct device *d, unsigned u);
/* What comes next on stream t may wait for the host: who waits for what is in front of it shall not wait for that too. True: once that is queued,
 * stream_may_stand() says so, and what comes behind it counts as standing still until it has passed. */
bool stream_may_wait(struct device *d, unsigned t);
void stream_may_stand(struct device *d, unsigned t);
/* Some stream stands still for the host now. */
bool stream_any_stands(struct device *d);
/* So many ops lie in the driver's queue of stream t, which stands still for the host: once they are 1,024, the next call waits for room. 0: not standing. */
uint64_t stream_queued(struct device *d, unsigned t);
/* Some stream has stood still for the host, or may: else nobody needs to ask. */
bool stream_gated(const struct device *d);
/* What follows is asked again who stands still; in between what was seen first counts. */
void stream_looks_anew(struct device *d);
/* The host has seen the end of everything up to q on stream u: an event behind it has passed. */
void stream_seen(struct device *d, unsigned u, uint64_t q);
/* As stream_issued() on one of our own streams, for what no memory waits for: hashes on their way to the host, of which an event tells. */
void stream_issued_apart(struct device *d, unsigned u);
/* Looks, without waiting, whether our own streams have done all that was queued on them, where memory may wait for some of that. Copies of long ago would otherwise stay in the
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
/* t, or where its stream has been destroyed, or stands still for the host, another one that work of ours can be queued on. */
unsigned stream_alive(struct device *d, unsigned t);
/* Whether all that is queued on stream t has ended, without waiting: the driver's code. */
int stream_query_drv(struct device *d, unsigned t);
/* What a device that has failed answers to every call from then on; CUDA_SUCCESS: it has not, as far as one can tell without waiting. */
int stream_failure_drv(const struct device *d);
/* What the driver answers the program for a call that a capture may forbid its thread (process/capture_mode.h): where remat answers such a call in the
 * driver's place it asks this first. */
int stream_forbidden_drv(const struct device *d);
unsigned stream_count(const struct device *d);
/* The host has seen the end of no more, and no other stream is ordered behind more, than has been queued on stream u. */
bool stream_is_sound(const struct device *d, unsigned u);
/* The handle is about to be destroyed and may come back as another stream. */
void stream_forget(struct device *d, CUstream s);
/* A context is about to be destroyed, with its streams and events: the host has seen the end of what was queued there. */
void stream_context_ends(struct device *d, CUcontext ctx);

/* For fence.c alone. */

/* Calls of the driver on a stream, made in its context: an event is recorded at its tail, is awaited by it, or the host waits for all of it. */
CUresult stream_record_drv(struct device *d, unsigned u, CUevent e);
CUresult stream_await_drv(struct device *d, unsigned t, CUevent e);
CUresult stream_sync_drv(struct device *d, unsigned u);
/* A new event at the tail of stream u; NULL: the driver refuses it. */
CUevent stream_event_drv(struct device *d, unsigned u);
/* The driver has refused to order something: says so, and -EIO. */
int stream_broken(struct device *d, CUresult r);
/* It is CU_STREAM_PER_THREAD of another thread: nothing can be queued there. */
bool stream_is_anothers(const struct streams *st, unsigned t);
/* Nothing can be queued there now, and the stream's event stands for all that has been. */
bool stream_stands_at_tail(const struct streams *st, unsigned t);
/* The first gate of stream u that all up to q lies in front of; NULL: none. */
struct gate *stream_gate_behind(struct streams *st, unsigned u, uint64_t q);
static inline uint64_t stream_waited(const struct streams *st, unsigned t, unsigned u) { return u < st->row[t].n_waited ? st->row[t].waited[u] : 0; }
void stream_has_waited(struct streams *st, unsigned t, unsigned u, uint64_t q);
/* Whether what was queued on stream u up to q may stand still for the host, as far as one can tell without waiting. */
bool stream_stands(struct device *d, unsigned u, uint64_t q);
/* What stands still there is all that is queued there behind r->stands_from: no work of anybody's comes after it. */
bool stream_only_stands(const struct stream_row *r, uint64_t seq);
/* Whether all up to q has ended on stream u, without waiting. */
bool stream_has_passed(struct device *d, unsigned u, uint64_t q);

#endif
