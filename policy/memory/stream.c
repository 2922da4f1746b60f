/* Streams: who is ordered behind whom. An order is one event recorded at the tail of one stream and awaited by the
 * other; d->waited remembers what is ordered already, so a program with one stream never makes a call here. */
#include "policy/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int stream_order_tail(struct device *d, unsigned t, unsigned u);

/* The per-thread default stream is one handle and a stream for every thread: its index stands for the stream of the thread
 * that used it last. Work of another thread's is not ours to wait for on the device, so it leaves an event behind each op, and
 * the host waits for that when the index changes hands. */
static __thread uint64_t my_thread;

/* Copies queue up on our own streams: an event each, the latest MARKS of them. */
enum { MARKS = 256 };
struct streams {
    uint64_t holder; /* of the per-thread index; 0 none */
    unsigned last;   /* looked up last */
    CUevent mark[STREAM_FIRST_PROGRAM][MARKS];
    uint64_t marked[STREAM_FIRST_PROGRAM][MARKS]; /* what each event stands for */
};

void stream_own(struct device *d, unsigned t)
{
    static uint64_t threads;
    if (d->stream[t] != CU_STREAM_PER_THREAD || (my_thread && my_thread == d->streams->holder))
        return;
    if (!my_thread)
        my_thread = ++threads;
    if (d->streams->holder)
        d->drv->cuEventSynchronize(d->stream_event[t]);
    d->streams->holder = my_thread;
}

void stream_issued(struct device *d, unsigned t)
{
    if (d->stream[t] == CU_STREAM_PER_THREAD)
        d->drv->cuEventRecord(d->stream_event[t], d->stream[t]);
}

static int stream_enter(struct device *d, unsigned i, CUstream s)
{
    if (!d->stream_event[i] && d->drv->cuEventCreate(&d->stream_event[i], CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return -EIO;
    d->stream[i] = s;
    return 0;
}

int stream_init(struct device *d)
{
    d->streams = calloc(1, sizeof *d->streams);
    if (!d->streams)
        return -ENOMEM;
    d->streams->last = STREAM_FIRST_PROGRAM;
    CUstream s[2];
    for (unsigned i = 0; i < 2; i++) {
        if (d->drv->cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || stream_enter(d, i, s[i]))
            return -EIO;
    }
    d->n_streams = STREAM_FIRST_PROGRAM;
    return 0;
}

unsigned stream_index(struct device *d, CUstream s)
{
    if (d->streams->last < d->n_streams && d->stream[d->streams->last] == s) {
        stream_own(d, d->streams->last);
        return d->streams->last;
    }
    for (unsigned i = STREAM_FIRST_PROGRAM; i < d->n_streams; i++)
        if (d->stream[i] == s) {
            stream_own(d, i);
            return d->streams->last = i;
        }
    if (d->n_streams < RT_MAX_STREAMS) {
        if (stream_enter(d, d->n_streams, s))
            return STREAM_FIRST_PROGRAM;
        d->streams->last = d->n_streams++;
        stream_own(d, d->streams->last);
        for (unsigned u = 0; u < d->streams->last && !d->capturing; u++) /* with one stream nobody noted what replays and copies left */
            if (d->seq[u])
                stream_order_tail(d, d->streams->last, u);
        return d->streams->last;
    }
    /* the d->streams->last index is shared: whatever was queued under it must be done before it means another stream */
    stream_own(d, RT_MAX_STREAMS - 1);
    d->drv->cuStreamSynchronize(d->stream[RT_MAX_STREAMS - 1]);
    d->stream[RT_MAX_STREAMS - 1] = s;
    stream_own(d, RT_MAX_STREAMS - 1);
    return d->streams->last = RT_MAX_STREAMS - 1;
}

static int stream_order_tail(struct device *d, unsigned t, unsigned u)
{
    stream_own(d, t);
    stream_own(d, u);
    if (d->drv->cuEventRecord(d->stream_event[u], d->stream[u]) != CUDA_SUCCESS ||
        d->drv->cuStreamWaitEvent(d->stream[t], d->stream_event[u], 0) != CUDA_SUCCESS)
        return -EIO;
    d->waited[t][u] = d->seq[u];
    return 0;
}

uint64_t stream_mark(struct device *d, unsigned u)
{
    uint64_t q = ++d->seq[u];
    CUevent *e = &d->streams->mark[u][q % MARKS];
    if (!*e && d->drv->cuEventCreate(e, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        *e = NULL;
    d->streams->marked[u][q % MARKS] = *e && d->drv->cuEventRecord(*e, d->stream[u]) == CUDA_SUCCESS ? q : 0;
    return q;
}

int stream_order_seq(struct device *d, unsigned t, unsigned u, uint64_t q)
{
    if (t == u || d->waited[t][u] >= q)
        return 0;
    if (u < STREAM_FIRST_PROGRAM && q + MARKS > d->seq[u] && d->streams->mark[u][q % MARKS] && d->streams->marked[u][q % MARKS] == q) {
        if (d->drv->cuStreamWaitEvent(d->stream[t], d->streams->mark[u][q % MARKS], 0) != CUDA_SUCCESS)
            return -EIO;
        d->waited[t][u] = q;
        return 0;
    }
    return stream_order_tail(d, t, u);
}

int stream_order(struct device *d, unsigned t, uint64_t mask)
{
    int r = 0;
    for (mask &= ~(1ull << t); mask; mask &= mask - 1) {
        unsigned u = (unsigned)__builtin_ctzll(mask);
        int e = stream_order_seq(d, t, u, d->seq[u]);
        if (e && !r)
            r = e;
    }
    return r;
}

int stream_sync(struct device *d, uint64_t mask)
{
    int r = 0;
    for (; mask; mask &= mask - 1) {
        stream_own(d, (unsigned)__builtin_ctzll(mask));
        if (d->drv->cuStreamSynchronize(d->stream[__builtin_ctzll(mask)]) != CUDA_SUCCESS)
            r = -EIO;
    }
    return r;
}

/* The handle may come back as another stream: what was queued is finished first, so its index needs no waits. */
void stream_forget(struct device *d, CUstream s)
{
    for (unsigned i = STREAM_FIRST_PROGRAM; i < d->n_streams; i++) {
        if (d->stream[i] != s)
            continue;
        d->drv->cuStreamSynchronize(s);
        for (unsigned t = 0; t < d->n_streams; t++)
            d->waited[t][i] = d->seq[i];
        /* records on a dead handle must not happen: the legacy stream stands in, and is ordered behind nothing new */
        d->stream[i] = CU_STREAM_LEGACY;
    }
}
