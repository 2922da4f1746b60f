/* stream.h: the streams that fences speak of (fence.h). Each stream has an index, from the first call on it until it has been destroyed and its work is
 * done. Indices are as many as streams, so that no stream waits for another to get one: any of them may stand still for the host.
 *
 * A gate is an event in front of an op that may wait for the host (a word in memory, a function of the host's, a semaphore or an event of another process).
 * A wait for work in front of a gate waits for the gate's event, and does not stand still with the op behind it.
 *
 * Threads: under the engine's mutex. Errors: see fence.h.
 */
#ifndef REMAT_POLICY_STREAM_H
#define REMAT_POLICY_STREAM_H

#include "preload/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct device;

/* remat's own streams have the first indices. */
enum { STREAM_OUT = 0, STREAM_IN = 1, STREAM_FIRST_PROGRAM = 2 };
#define STREAM_NONE UINT32_MAX
/* Copies queue up on remat's own streams: each of the latest STREAM_MARKS has an event of its own. */
enum { STREAM_MARKS = 256 };

struct gate {
    CUevent event; /* NULL: all work in front had ended when the gate was made */
    CUevent after; /* recorded behind the op that may wait; NULL: none */
    bool over;     /* the op behind the gate does not stand still, or has ended */
    uint64_t seq;  /* work up to this number lies in front of the gate */
    unsigned users; /* threads that wait for the event with the mutex free */
};

struct stream_row {
    CUstream handle;
    CUcontext ctx;   /* context of the stream */
    CUevent event;
    bool gone;       /* destroyed by the program; `event` stands at the stream's last tail */
    uint64_t done;   /* the host has seen the end of all work up to this number */
    uint64_t apart;  /* remat's own stream: no memory waits for work from `done` up to this number */
    uint64_t holder; /* CU_STREAM_PER_THREAD: the thread whose stream this is */
    struct gate *gates; /* in the order of seq; what lies in front of the first has been seen to end, or has more in front */
    uint32_t n_gates, cap_gates;
    uint64_t stands_from, stands_look; /* work later than stands_from may stand still, as seen in the look numbered stands_look */
    uint64_t *waited; /* [u]: this stream is ordered behind stream u up to this number; u >= n_waited: not at all */
    uint32_t n_waited;
};

struct streams {
    struct stream_row *row;
    unsigned n, cap, last; /* last: index that was looked up last, or of one of remat's own streams; never of another context's default stream */
    CUevent mark[STREAM_FIRST_PROGRAM][STREAM_MARKS];
    uint64_t marked[STREAM_FIRST_PROGRAM][STREAM_MARKS]; /* sequence number that each event of `mark` stands for */
    uint64_t looks;         /* see stream_looks_anew() */
    bool gated;             /* some stream has had a gate */
    bool several;           /* the device's own context is not always current */
    CUevent *spare; /* events of gates that have been passed */
    uint32_t n_spare, cap_spare;
    struct fence_sets *sets; /* private to fence.c */
};

int stream_init(struct device *d);
/* Index of a stream handle; a new handle gets a row. Without memory for the row, the index returned is another stream's. A default stream's handle means
 * the default stream of the device's own context. */
unsigned stream_index(struct device *d, CUstream s);
/* As stream_index() == t, without a call where t was looked up last. CU_STREAM_PER_THREAD has another index in each thread. */
static inline bool stream_has_index(struct device *d, const struct streams *st, CUstream s, unsigned t)
{
    const bool last = st->last == t && t < st->n && st->row[t].handle == s && !st->row[t].gone && s != CU_STREAM_PER_THREAD;
    return last || stream_index(d, s) == t;
}
/* Another context than the device's own is current: from here on the driver is asked for the current context where that matters. */
void stream_is_elsewhere(struct device *d);
/* stream_index() for a default stream of another context (`ctx`): all contexts have its handle in common. */
unsigned stream_index_in(struct device *d, CUcontext ctx, CUstream s);
/* The handle has an index, and has not been destroyed since. */
bool stream_is_known(const struct device *d, CUstream s);
/* Work was queued on stream t: gives it the next sequence number, so that fence_add(t) means it. */
void stream_issued(struct device *d, unsigned t);
/* stream_issued() for a copy on one of remat's own streams, with an event of its own: a wait for the copy waits for nothing later. */
void stream_mark(struct device *d, unsigned u);
/* The next op on stream t may wait for the host: makes a gate, so that waits for earlier work do not wait for that op too. True: the caller queues the op,
 * then calls stream_may_stand(); the op and work behind it count as standing still until the op has passed. */
bool stream_may_wait(struct device *d, unsigned t);
void stream_may_stand(struct device *d, unsigned t);
/* Some stream stands still for the host now. */
bool stream_any_stands(struct device *d);
/* Number of ops in the driver's queue of stream t, which stands still for the host: at 1,024 the next call waits for room. 0: t does not stand still. */
uint64_t stream_queued(struct device *d, unsigned t);
/* Some stream has stood still for the host, or may: until then no stream needs to be asked. */
bool stream_gated(const struct device *d);
/* From here on each stream is asked anew whether it stands still; its first answer counts until the next such call. */
void stream_looks_anew(struct device *d);
/* The host has seen the end of everything up to q on stream u: an event behind it has passed. */
void stream_seen(struct device *d, unsigned u, uint64_t q);
/* stream_issued() on one of remat's own streams, for work that no memory waits for: hashes on their way to the host, whose end is told by an event. */
void stream_issued_apart(struct device *d, unsigned u);
/* Looks, without waiting, whether remat's own streams have done all that was queued on them, where memory may wait for some of that work. Old copies would otherwise stay in
 * the fences of all memory that they touched, and every launch would look them up. */
void stream_look(struct device *d);
/* The program makes an allocation or a free in stream t. Between the legacy stream and the blocking ones such a call acts as
 * any work does: in the legacy stream it waits for all blocking streams, and they wait for it; in a blocking stream it waits for the legacy
 * stream, and a later wait for the blocking stream (by the host, by an event) covers both. remat queues no work for the call, so where there
 * are blocking streams an event takes its place; where the driver refuses the event, the host waits for everything. */
void stream_acts(struct device *d, unsigned t);
/* Index t becomes this thread's where it was another thread's (CU_STREAM_PER_THREAD): work that this thread queues there comes after all that was
 * queued under the index. On an error the other thread still has the index, and each use of it by this thread fails in the same way. */
int stream_own(struct device *d, unsigned t);
/* t; or where stream t has been destroyed, or stands still for the host, another stream that remat's work can be queued on. */
unsigned stream_alive(struct device *d, unsigned t);
/* Whether all that is queued on stream t has ended, without waiting: the driver's code. */
int stream_query_drv(struct device *d, unsigned t);
/* The code that a failed device answers to every call; CUDA_SUCCESS: the device has not failed, as far as can be told without waiting. */
int stream_failure_drv(const struct device *d);
/* The driver's code for a call that a capture may forbid the program's thread (process/capture_mode.h); CUDA_SUCCESS: not forbidden. Asked first where remat
 * answers such a call in the driver's place. */
int stream_forbidden_drv(const struct device *d);
unsigned stream_count(const struct device *d);
/* Neither `done` of stream u nor `waited[u]` of any stream is more than has been queued on stream u. */
bool stream_is_sound(const struct device *d, unsigned u);
/* The handle is about to be destroyed and may come back as another stream. */
void stream_forget(struct device *d, CUstream s);
/* A context is about to be destroyed, with its streams and events: the host waits for the work that was queued there. */
void stream_context_ends(struct device *d, CUcontext ctx);

/* For fence.c alone. */

/* Driver calls on a stream, made in its context: record an event at its tail; let the stream wait for an event; let the host wait for the stream. */
CUresult stream_record_drv(struct device *d, unsigned u, CUevent e);
CUresult stream_await_drv(struct device *d, unsigned t, CUevent e);
CUresult stream_sync_drv(struct device *d, unsigned u);
/* A new event at the tail of stream u; NULL: the driver refuses it. */
CUevent stream_event_drv(struct device *d, unsigned u);
/* The driver has refused to order work: notes and logs that. Returns -EIO. */
int stream_broken(struct device *d, CUresult r);
/* Stream t is another thread's CU_STREAM_PER_THREAD: this thread can queue nothing there. */
bool stream_is_anothers(const struct streams *st, unsigned t);
/* Nothing can be queued on stream t by this thread, and the stream's event stands for all that has been queued. */
bool stream_stands_at_tail(const struct streams *st, unsigned t);
/* The first gate of stream u behind all work up to q; NULL: none. */
struct gate *stream_gate_behind(struct streams *st, unsigned u, uint64_t q);
static inline uint64_t stream_waited(const struct streams *st, unsigned t, unsigned u) { return u < st->row[t].n_waited ? st->row[t].waited[u] : 0; }
void stream_has_waited(struct streams *st, unsigned t, unsigned u, uint64_t q);
/* Whether work queued on stream u up to q may stand still for the host, as far as can be told without waiting. */
bool stream_stands(struct device *d, unsigned u, uint64_t q);
/* Only ops that stand, or stood, for the host are queued behind r->stands_from: no other work comes after them. */
bool stream_only_stands(const struct stream_row *r, uint64_t seq);
/* Whether all up to q has ended on stream u, without waiting. */
bool stream_has_passed(struct device *d, unsigned u, uint64_t q);

#endif
