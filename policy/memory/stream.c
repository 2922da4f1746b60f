/* Streams: who is ordered behind whom. An order is one event recorded at the tail of one stream and awaited by the
 * other; rt.waited remembers what is ordered already, so a program with one stream never makes a call here. */
#include "policy/rt.h"

#include <errno.h>
#include <string.h>

static int stream_order_tail(unsigned t, unsigned u);

/* The per-thread default stream is one handle and a stream for every thread: its index stands for the stream of the thread
 * that used it last. Work of another thread's is not ours to wait for on the device, so it leaves an event behind each op, and
 * the host waits for that when the index changes hands. */
static __thread uint64_t my_thread;
static uint64_t holder; /* of the per-thread index; 0 none */

void stream_own(unsigned t)
{
    static uint64_t threads;
    if (rt.stream[t] != CU_STREAM_PER_THREAD || (my_thread && my_thread == holder))
        return;
    if (!my_thread)
        my_thread = ++threads;
    if (holder)
        rt.drv->cuEventSynchronize(rt.stream_event[t]);
    holder = my_thread;
}

void stream_issued(unsigned t)
{
    if (rt.stream[t] == CU_STREAM_PER_THREAD)
        rt.drv->cuEventRecord(rt.stream_event[t], rt.stream[t]);
}

static int stream_enter(unsigned i, CUstream s)
{
    if (!rt.stream_event[i] && rt.drv->cuEventCreate(&rt.stream_event[i], CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return -EIO;
    rt.stream[i] = s;
    return 0;
}

int stream_init(void)
{
    CUstream s[2];
    for (unsigned i = 0; i < 2; i++) {
        if (rt.drv->cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || stream_enter(i, s[i]))
            return -EIO;
    }
    rt.n_streams = STREAM_FIRST_PROGRAM;
    return 0;
}

unsigned stream_index(CUstream s)
{
    static unsigned last = STREAM_FIRST_PROGRAM;
    if (last < rt.n_streams && rt.stream[last] == s) {
        stream_own(last);
        return last;
    }
    for (unsigned i = STREAM_FIRST_PROGRAM; i < rt.n_streams; i++)
        if (rt.stream[i] == s) {
            stream_own(i);
            return last = i;
        }
    if (rt.n_streams < RT_MAX_STREAMS) {
        if (stream_enter(rt.n_streams, s))
            return STREAM_FIRST_PROGRAM;
        last = rt.n_streams++;
        stream_own(last);
        for (unsigned u = 0; u < last && !rt.capturing; u++) /* with one stream nobody noted what replays and copies left */
            if (rt.seq[u])
                stream_order_tail(last, u);
        return last;
    }
    /* the last index is shared: whatever was queued under it must be done before it means another stream */
    stream_own(RT_MAX_STREAMS - 1);
    rt.drv->cuStreamSynchronize(rt.stream[RT_MAX_STREAMS - 1]);
    rt.stream[RT_MAX_STREAMS - 1] = s;
    stream_own(RT_MAX_STREAMS - 1);
    return last = RT_MAX_STREAMS - 1;
}

static int stream_order_tail(unsigned t, unsigned u)
{
    stream_own(t);
    stream_own(u);
    if (rt.drv->cuEventRecord(rt.stream_event[u], rt.stream[u]) != CUDA_SUCCESS ||
        rt.drv->cuStreamWaitEvent(rt.stream[t], rt.stream_event[u], 0) != CUDA_SUCCESS)
        return -EIO;
    rt.waited[t][u] = rt.seq[u];
    return 0;
}

/* Copies queue up on our own streams: an event each, the latest MARKS of them. */
enum { MARKS = 256 };
static CUevent mark[STREAM_FIRST_PROGRAM][MARKS];
static uint64_t marked[STREAM_FIRST_PROGRAM][MARKS]; /* what each event stands for */

uint64_t stream_mark(unsigned u)
{
    uint64_t q = ++rt.seq[u];
    CUevent *e = &mark[u][q % MARKS];
    if (!*e && rt.drv->cuEventCreate(e, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        *e = NULL;
    marked[u][q % MARKS] = *e && rt.drv->cuEventRecord(*e, rt.stream[u]) == CUDA_SUCCESS ? q : 0;
    return q;
}

int stream_order_seq(unsigned t, unsigned u, uint64_t q)
{
    if (t == u || rt.waited[t][u] >= q)
        return 0;
    if (u < STREAM_FIRST_PROGRAM && q + MARKS > rt.seq[u] && mark[u][q % MARKS] && marked[u][q % MARKS] == q) {
        if (rt.drv->cuStreamWaitEvent(rt.stream[t], mark[u][q % MARKS], 0) != CUDA_SUCCESS)
            return -EIO;
        rt.waited[t][u] = q;
        return 0;
    }
    return stream_order_tail(t, u);
}

int stream_order(unsigned t, uint64_t mask)
{
    int r = 0;
    for (mask &= ~(1ull << t); mask; mask &= mask - 1) {
        unsigned u = (unsigned)__builtin_ctzll(mask);
        int e = stream_order_seq(t, u, rt.seq[u]);
        if (e && !r)
            r = e;
    }
    return r;
}

int stream_sync(uint64_t mask)
{
    int r = 0;
    for (; mask; mask &= mask - 1) {
        stream_own((unsigned)__builtin_ctzll(mask));
        if (rt.drv->cuStreamSynchronize(rt.stream[__builtin_ctzll(mask)]) != CUDA_SUCCESS)
            r = -EIO;
    }
    return r;
}

/* The handle may come back as another stream: what was queued is finished first, so its index needs no waits. */
void stream_forget(CUstream s)
{
    for (unsigned i = STREAM_FIRST_PROGRAM; i < rt.n_streams; i++) {
        if (rt.stream[i] != s)
            continue;
        rt.drv->cuStreamSynchronize(s);
        for (unsigned t = 0; t < rt.n_streams; t++)
            rt.waited[t][i] = rt.seq[i];
        /* records on a dead handle must not happen: the legacy stream stands in, and is ordered behind nothing new */
        rt.stream[i] = CU_STREAM_LEGACY;
    }
}
