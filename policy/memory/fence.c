/* Fences and the streams that they speak of. An order is one event recorded at the tail of one stream and awaited by the
 * other. */
#include "policy/device.h"
#include "policy/process/capture_mode.h"
#include "policy/process/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Copies queue up on our own streams: an event each, the latest MARKS of them. */
enum { MARKS = 256 };
/* A program's stream may wait for a word of the host's: an event in front of each such wait, the latest GATES of them. */
enum { GATES = 4 };

struct streams {
    CUstream handle[RT_MAX_STREAMS];
    CUevent event[RT_MAX_STREAMS];
    bool gone[RT_MAX_STREAMS]; /* destroyed by the program; its event stands at its last tail */
    uint64_t done[RT_MAX_STREAMS];                   /* the host has seen the end of everything up to this */
    uint64_t waited[RT_MAX_STREAMS][RT_MAX_STREAMS]; /* [t][u]: t is ordered behind u up to this */
    unsigned n, last; /* last: the index that was looked up last */
    uint64_t holder[RT_MAX_STREAMS]; /* of CU_STREAM_PER_THREAD: the thread whose stream it is */
    CUevent mark[STREAM_FIRST_PROGRAM][MARKS];
    uint64_t marked[STREAM_FIRST_PROGRAM][MARKS]; /* the sequence number that each of these events stands for */
    CUevent gate[RT_MAX_STREAMS][GATES];
    uint64_t gated[RT_MAX_STREAMS][GATES]; /* likewise; 0: for none */
    uint64_t gate_number[RT_MAX_STREAMS][GATES], gates; /* the number of each, from 1 on over all streams; the latest */
    unsigned n_gates[RT_MAX_STREAMS];      /* ever made */
    bool puts_off;          /* the host does not wait, but notes for what it would */
    struct host_wait noted; /* event NULL: for nothing */
};

/* The per-thread default stream is one handle and a stream for every thread: an index each. No other thread can record an event there, so
 * it leaves one behind each op. Where work is to be queued under another thread's index (a plan that is followed by other threads than
 * it was recorded of) the host waits for that event, and the index changes hands. */
static uint64_t me(void)
{
    static uint64_t threads; /* under the mutex, as all here */
    static __thread uint64_t my_thread;
    return my_thread ? my_thread : (my_thread = ++threads);
}

static inline unsigned point_stream(uint64_t p) { return (unsigned)(p & 63); }
static inline uint64_t point_seq(uint64_t p) { return p >> 6; }

/* ---- streams -------------------------------------------------------------------------------------------------- */

static int broken(struct device *d, CUresult r)
{
    if (capture_mode_refused(r)) { /* another time it may be allowed: the call at hand is refused, and the device is as it was */
        d->forbidden = (int)r;
        return -EIO;
    }
    if (!d->broken)
        log_say(SAY_ERROR, "the driver failed (%s) where work had to be ordered: the call at hand is refused", device_code_name(d, (int)r));
    d->broken = (int)r;
    return -EIO;
}

/* The stream of another thread: nothing can be queued there. */
static bool is_anothers(const struct streams *st, unsigned t) { return st->handle[t] == CU_STREAM_PER_THREAD && st->holder[t] != me(); }

/* Nothing can be queued there now, and the stream's event stands for all that has been. */
static bool stands_at_tail(const struct streams *st, unsigned t) { return st->gone[t] || is_anothers(st, t); }

int stream_own(struct device *d, unsigned t)
{
    struct streams *st = d->streams;
    if (!is_anothers(st, t))
        return 0;
    CUresult r = st->event[t] ? d->drv->cuEventSynchronize(st->event[t]) : d->drv->cuCtxSynchronize();
    if (r != CUDA_SUCCESS && (r = d->drv->cuCtxSynchronize()) != CUDA_SUCCESS)
        return broken(d, r);
    memset(st->waited[t], 0, sizeof st->waited[t]); /* what another thread's stream has waited for this one has not */
    st->holder[t] = me();
    return 0;
}

/* An event that is recorded in a capture stands for nothing that runs. */
static bool thread_is_captured(struct device *d)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return d->capturing && d->drv->cuStreamIsCapturing && d->drv->cuStreamIsCapturing(CU_STREAM_PER_THREAD, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

unsigned stream_alive(const struct device *d, unsigned t)
{
    const struct streams *st = d->streams;
    if (t < st->n && !st->gone[t])
        return t;
    for (unsigned i = STREAM_FIRST_PROGRAM; i < st->n; i++)
        if (!st->gone[i])
            return i;
    return STREAM_IN; /* of ours */
}

void stream_issued(struct device *d, unsigned t)
{
    d->seq[t]++;
    if (d->streams->handle[t] != CU_STREAM_PER_THREAD || thread_is_captured(d) ||
        d->drv->cuEventRecord(d->streams->event[t], CU_STREAM_PER_THREAD) == CUDA_SUCCESS)
        return;
    CUresult r = d->drv->cuStreamSynchronize(CU_STREAM_PER_THREAD); /* by this thread, whose stream it is */
    if (r != CUDA_SUCCESS)
        broken(d, r);
}

void stream_acts(struct device *d, unsigned t)
{
    struct streams *st = d->streams;
    if (!d->blocking_streams || (st->event[t] && d->drv->cuEventRecord(st->event[t], st->handle[t]) == CUDA_SUCCESS))
        return;
    CUresult r = d->drv->cuCtxSynchronize(); /* the host has seen all of it: nothing is left to be ordered */
    if (r != CUDA_SUCCESS)
        broken(d, r);
}

static int stream_enter(struct device *d, unsigned i, CUstream s)
{
    struct streams *st = d->streams;
    if (!st->event[i] && d->drv->cuEventCreate(&st->event[i], CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return -EIO;
    st->handle[i] = s;
    d->blocking_streams |= s == CU_STREAM_PER_THREAD;
    return 0;
}

int stream_init(struct device *d)
{
    CUstream s[2];
    d->streams = calloc(1, sizeof *d->streams);
    if (!d->streams)
        return -ENOMEM;
    d->streams->last = STREAM_FIRST_PROGRAM;
    for (unsigned i = 0; i < 2; i++) {
        if (d->drv->cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || stream_enter(d, i, s[i]))
            return -EIO;
        d->stream[i] = s[i];
    }
    d->streams->n = STREAM_FIRST_PROGRAM;
    return 0;
}

/* The index means another stream from now on, which is ordered behind nothing, and nothing of the old one is left to wait
 * for: the host has seen its end. */
static void index_reused(struct device *d, unsigned i)
{
    struct streams *st = d->streams;
    memset(st->waited[i], 0, sizeof st->waited[i]);
    st->done[i] = d->seq[i];
    st->gone[i] = false;
}

/* Its stream is gone, and what was queued there has ended. While there is a capture nobody may ask: it would be invalidated. */
static bool may_be_reused(struct device *d, unsigned i)
{
    const struct streams *st = d->streams;
    return st->gone[i] && (!st->event[i] || st->done[i] >= d->seq[i] || (!d->capturing && d->drv->cuEventQuery(st->event[i]) == CUDA_SUCCESS));
}

/* The index of a stream of the program's that has nothing to do, as soon as there is one: any may stand still for the host, so none is
 * waited for. The last one where nobody may be asked (a capture), or all have failed. */
static unsigned index_to_share(struct device *d)
{
    const struct streams *st = d->streams;
    for (bool busy = true; busy; nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL)) {
        busy = false;
        for (unsigned i = RT_MAX_STREAMS; i-- > STREAM_FIRST_PROGRAM;) {
            CUstream s = st->handle[i];
            if (s == CU_STREAM_LEGACY || (s == CU_STREAM_PER_THREAD && !is_anothers(st, i)))
                continue;
            if (st->gone[i] ? may_be_reused(d, i) : st->done[i] >= d->seq[i])
                return i;
            if (d->capturing || st->gone[i])
                continue;
            const CUresult r = (CUresult)stream_query_drv(d, i);
            if (r == CUDA_SUCCESS)
                return i;
            busy |= r == CUDA_ERROR_NOT_READY;
        }
    }
    return RT_MAX_STREAMS - 1;
}

/* An index for a stream never seen before. Where its own work cannot be kept apart from another stream's (broken) that other one keeps it,
 * and ready_op() refuses. */
static unsigned new_index(struct device *d, CUstream s)
{
    struct streams *st = d->streams;
    unsigned i = STREAM_FIRST_PROGRAM;
    while (i < st->n && !may_be_reused(d, i))
        i++;
    if (i < st->n)
        index_reused(d, i);
    else if (st->n < RT_MAX_STREAMS)
        st->n++;
    else { /* whatever was queued under an index must be done before it means another stream */
        i = index_to_share(d);
        CUresult r = !stands_at_tail(st, i) ? d->drv->cuStreamSynchronize(st->handle[i])
                     : st->event[i]         ? d->drv->cuEventSynchronize(st->event[i])
                                            : CUDA_SUCCESS;
        if (r != CUDA_SUCCESS) {
            broken(d, r);
            return i;
        }
        index_reused(d, i);
    }
    st->holder[i] = me();
    /* Without an event of its own the stream can still be waited for by the host. */
    if (stream_enter(d, i, s))
        st->handle[i] = s;
    d->stream[i] = s;
    return i;
}

static __attribute__((noinline)) unsigned other_index(struct device *d, CUstream s)
{
    struct streams *st = d->streams;
    unsigned i = st->last;
    if (i >= st->n || st->handle[i] != s || st->gone[i] || is_anothers(st, i)) {
        for (i = STREAM_FIRST_PROGRAM; i < st->n; i++)
            if (st->handle[i] == s && !st->gone[i] && !is_anothers(st, i))
                break;
        if (i == st->n)
            i = new_index(d, s);
        st->last = i;
    }
    return i;
}

unsigned stream_index(struct device *d, CUstream s)
{
    const struct streams *st = d->streams;
    unsigned i = st->last;
    if (st->handle[i] == s && !st->gone[i] && s != CU_STREAM_PER_THREAD && i < st->n)
        return i; /* nearly always */
    return other_index(d, s);
}

bool stream_is_known(const struct device *d, CUstream s)
{
    const struct streams *st = d->streams;
    for (unsigned i = STREAM_FIRST_PROGRAM; i < st->n; i++)
        if (st->handle[i] == s && !st->gone[i])
            return true;
    return false;
}

void stream_mark(struct device *d, unsigned u)
{
    struct streams *st = d->streams;
    uint64_t q = ++d->seq[u];
    CUevent *e = &st->mark[u][q % MARKS];
    if (!*e && d->drv->cuEventCreate(e, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        *e = NULL;
    st->marked[u][q % MARKS] = *e && d->drv->cuEventRecord(*e, st->handle[u]) == CUDA_SUCCESS ? q : 0;
}

void stream_may_wait(struct device *d, unsigned t)
{
    struct streams *st = d->streams;
    const uint64_t q = d->seq[t];
    unsigned n = st->n_gates[t];
    if (d->capturing || st->done[t] >= q || st->gated[t][(n + GATES - 1) % GATES] == q)
        return;
    CUevent *e = &st->gate[t][n % GATES];
    if (!*e && d->drv->cuEventCreate(e, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        *e = NULL;
    st->gated[t][n % GATES] = *e && d->drv->cuEventRecord(*e, st->handle[t]) == CUDA_SUCCESS ? q : 0;
    st->gate_number[t][n % GATES] = ++st->gates;
    st->n_gates[t]++;
}

/* The earliest of the gates of stream u that all up to q lies in front of; -1: none. */
static int gate_behind(const struct streams *st, unsigned u, uint64_t q)
{
    int best = -1;
    for (int i = 0; i < GATES; i++)
        if (st->gated[u][i] >= q && (best < 0 || st->gated[u][i] < st->gated[u][best]))
            best = i;
    return best;
}

void stream_look(struct device *d)
{
    struct streams *st = d->streams;
    for (unsigned u = 0; u < STREAM_FIRST_PROGRAM && !d->capturing; u++) /* a capture may forbid to ask */
        if (st->done[u] < d->seq[u] && d->drv->cuStreamQuery(st->handle[u]) == CUDA_SUCCESS)
            st->done[u] = d->seq[u];
}

/* Destroying a stream does not wait for its work, and must not begin to: an event stands for its tail instead. */
void stream_forget(struct device *d, CUstream s)
{
    struct streams *st = d->streams;
    for (unsigned i = STREAM_FIRST_PROGRAM; i < st->n; i++) {
        if (st->handle[i] != s || st->gone[i])
            continue;
        if (!st->event[i] || d->drv->cuEventRecord(st->event[i], s) != CUDA_SUCCESS) {
            d->drv->cuStreamSynchronize(s);
            st->done[i] = d->seq[i];
        }
        st->gone[i] = true;
    }
}

void stream_context_ends(struct device *d, CUcontext ctx)
{
    struct streams *st = d->streams;
    CUcontext of;
    for (unsigned i = STREAM_FIRST_PROGRAM; i < st->n && d->drv->cuStreamGetCtx; i++) {
        CUstream s = st->handle[i];
        if (st->gone[i] || s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD || d->drv->cuStreamGetCtx(s, &of) != CUDA_SUCCESS || of != ctx)
            continue;
        d->drv->cuStreamSynchronize(s);
        st->done[i] = d->seq[i];
        st->event[i] = NULL; /* if it is of that context it goes with it; if not, it is small */
        memset(st->gate[i], 0, sizeof st->gate[i]);
        memset(st->gated[i], 0, sizeof st->gated[i]);
        st->gone[i] = true;
    }
}

/* ---- fences --------------------------------------------------------------------------------------------------- */

static void add_point(struct device *d, struct fence *f, uint64_t p)
{
    unsigned u = point_stream(p);
    if (!p || point_seq(p) <= d->streams->done[u])
        return;
    if (!rt_check(d, point_seq(p) <= d->seq[u]))
        p = d->seq[u] << 6 | u;
    int at = -1;
    for (int i = 0; i < FENCE_POINTS && !(f->tails >> u & 1); i++) {
        if (f->point[i] && point_stream(f->point[i]) == u) {
            if (f->point[i] < p)
                f->point[i] = p;
            return;
        }
        if (at < 0 && (!f->point[i] || point_seq(f->point[i]) <= d->streams->done[point_stream(f->point[i])]))
            at = i;
    }
    if (at >= 0) {
        f->point[at] = p;
        return;
    }
    const int gate = gate_behind(d->streams, u, point_seq(p));
    const uint64_t before = gate < 0 ? d->streams->gates : d->streams->gate_number[u][gate] - 1;
    f->gates = before > f->gates ? before : f->gates;
    f->tails |= 1ull << u;
}

/* Up to where stream u is awaited as one of the tails. */
static uint64_t tail_seq(const struct device *d, const struct fence *f, unsigned u)
{
    const struct streams *st = d->streams;
    uint64_t q = d->seq[u];
    for (int i = 0; i < GATES; i++)
        if (st->gated[u][i] && st->gate_number[u][i] > f->gates && st->gated[u][i] < q)
            q = st->gated[u][i];
    return q;
}

void fence_trim(struct device *d, struct fence *f)
{
    const uint64_t *done = d->streams->done;
    int n = 0;
    for (int i = 0; i < FENCE_POINTS; i++) {
        uint64_t p = f->point[i];
        f->point[i] = 0;
        if (p && point_seq(p) > done[point_stream(p)])
            f->point[n++] = p;
    }
    for (uint64_t m = f->tails; m; m &= m - 1) {
        unsigned u = (unsigned)__builtin_ctzll(m);
        if (tail_seq(d, f, u) <= done[u])
            f->tails &= ~(1ull << u);
    }
}

void fence_add(struct device *d, struct fence *f, unsigned u)
{
    uint64_t p = d->seq[u] << 6 | u;
    if (!fence_only_on(f, u))
        fence_trim(d, f);
    if (fence_only_on(f, u) && d->seq[u] > d->streams->done[u])
        f->point[0] = p; /* nearly always */
    else
        add_point(d, f, p);
}

void fence_merge_all(struct device *d, struct fence *f, const struct fence *g)
{
    for (int i = 0; i < FENCE_POINTS; i++)
        if (g->point[i] && g->point[i] != f->point[i])
            add_point(d, f, g->point[i]);
    f->tails |= g->tails;
    f->gates = g->tails && g->gates > f->gates ? g->gates : f->gates;
}

/* Notes that the host would have to wait for stream u, up to this gate of it or (-1) to its tail; false: it need not, or there is no event
 * to wait for. */
static bool put_off(struct device *d, unsigned u, int gate)
{
    struct streams *st = d->streams;
    struct host_wait w = {.event = gate < 0 ? st->event[u] : st->gate[u][gate], .stream = u, .seq = gate < 0 ? d->seq[u] : st->gated[u][gate]};
    if (st->noted.event)
        return true;
    if (d->drv->cuEventQuery(w.event) != CUDA_ERROR_NOT_READY)
        return false;
    if (gate >= 0) { /* goes with it: once it has passed nobody asks for this gate */
        w.ours = true;
        st->gate[u][gate] = NULL;
        st->gated[u][gate] = 0;
    } else if (!stands_at_tail(st, u)) { /* its own is recorded again by whoever comes next */
        if (d->drv->cuEventCreate(&w.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
            return false;
        w.ours = true;
        if (d->drv->cuEventRecord(w.event, st->handle[u]) != CUDA_SUCCESS) {
            d->drv->cuEventDestroy_v2(w.event);
            return false;
        }
    }
    st->noted = w;
    return true;
}

void fence_put_off(struct device *d) { d->streams->puts_off = true; }

bool fence_put_off_ends(struct device *d, struct host_wait *w)
{
    *w = d->streams->noted;
    d->streams->noted = (struct host_wait){0};
    d->streams->puts_off = false;
    return w->event;
}

void fence_waited(struct device *d, struct host_wait *w, bool passed)
{
    uint64_t *done = &d->streams->done[w->stream];
    if (passed && *done < w->seq)
        *done = w->seq;
    if (w->ours)
        d->drv->cuEventDestroy_v2(w->event);
}

/* The host waits for stream u up to q, and for more where no gate is behind that: up to its tail. What ends with it may be a free that the
 * driver never saw: on a blocking stream that free comes after the legacy stream's work, and only something that is queued there now says so. */
static int sync_up_to(struct device *d, unsigned u, uint64_t q)
{
    struct streams *st = d->streams;
    const int gate = gate_behind(st, u, q);
    CUevent e = gate < 0 ? st->event[u] : st->gate[u][gate];
    bool there = gate >= 0 || (e && (stands_at_tail(st, u) || d->drv->cuEventRecord(e, st->handle[u]) == CUDA_SUCCESS));
    q = gate < 0 ? d->seq[u] : st->gated[u][gate];
    if (st->puts_off && there && put_off(d, u, gate))
        return -EAGAIN;
    CUresult r = there                 ? d->drv->cuEventSynchronize(e)
                 : is_anothers(st, u) ? d->drv->cuCtxSynchronize()
                                      : d->drv->cuStreamSynchronize(st->handle[u]);
    if (r != CUDA_SUCCESS)
        return broken(d, r);
    if (st->done[u] < q)
        st->done[u] = q;
    return 0;
}

/* Stream t is ordered behind stream u up to q. */
static int order(struct device *d, unsigned t, unsigned u, uint64_t q)
{
    struct streams *st = d->streams;
    if (!rt_check(d, q <= d->seq[u]))
        q = d->seq[u];
    if (!rt_check(d, st->done[u] <= d->seq[u] && st->waited[t][u] <= d->seq[u]))
        st->done[u] = st->waited[t][u] = 0; /* all of it is waited for once more */
    if (t == u || st->done[u] >= q)
        return 0;
    int r = stream_own(d, t);
    if (r || st->waited[t][u] >= q)
        return r;
    if (u < STREAM_FIRST_PROGRAM && q + MARKS > d->seq[u] && st->marked[u][q % MARKS] == q) {
        if (d->drv->cuStreamWaitEvent(st->handle[t], st->mark[u][q % MARKS], 0) != CUDA_SUCCESS)
            return sync_up_to(d, u, q);
        st->waited[t][u] = q;
        return 0;
    }
    int gate = gate_behind(st, u, q);
    if (gate >= 0) {
        if (d->drv->cuStreamWaitEvent(st->handle[t], st->gate[u][gate], 0) != CUDA_SUCCESS)
            return sync_up_to(d, u, q);
        st->waited[t][u] = st->gated[u][gate];
        return 0;
    }
    if (!st->event[u] || (!stands_at_tail(st, u) && d->drv->cuEventRecord(st->event[u], st->handle[u]) != CUDA_SUCCESS) ||
        d->drv->cuStreamWaitEvent(st->handle[t], st->event[u], 0) != CUDA_SUCCESS)
        return sync_up_to(d, u, q);
    st->waited[t][u] = d->seq[u];
    return 0;
}

int fence_wait_all(struct device *d, unsigned t, const struct fence *f)
{
    int first = 0;
    for (int i = 0; i < FENCE_POINTS; i++) {
        int r = f->point[i] ? order(d, t, point_stream(f->point[i]), point_seq(f->point[i])) : 0;
        if (r && !first)
            first = r;
    }
    for (uint64_t m = f->tails & ~(1ull << t); m; m &= m - 1) {
        unsigned u = (unsigned)__builtin_ctzll(m);
        int r = order(d, t, u, tail_seq(d, f, u));
        if (r && !first)
            first = r;
    }
    return first;
}

int fence_sync(struct device *d, const struct fence *f)
{
    int first = 0;
    for (int i = 0; i < FENCE_POINTS; i++) {
        uint64_t p = f->point[i];
        int r = p && d->streams->done[point_stream(p)] < point_seq(p) ? sync_up_to(d, point_stream(p), point_seq(p)) : 0;
        if (r && !first)
            first = r;
    }
    for (uint64_t m = f->tails; m; m &= m - 1) {
        unsigned u = (unsigned)__builtin_ctzll(m);
        const uint64_t q = tail_seq(d, f, u);
        int r = d->streams->done[u] < q ? sync_up_to(d, u, q) : 0;
        if (r && !first)
            first = r;
    }
    return first;
}

bool fence_has_passed(struct device *d, const struct fence *f)
{
    struct streams *st = d->streams;
    bool passed = !f->tails;
    for (int i = 0; i < FENCE_POINTS && passed; i++) {
        const unsigned u = point_stream(f->point[i]);
        if (!f->point[i] || st->done[u] >= point_seq(f->point[i]))
            continue;
        const int gate = gate_behind(st, u, point_seq(f->point[i]));
        passed = (gate < 0 ? stream_query_drv(d, u) : (int)d->drv->cuEventQuery(st->gate[u][gate])) == CUDA_SUCCESS;
        if (passed)
            st->done[u] = gate < 0 ? d->seq[u] : st->gated[u][gate];
    }
    return passed;
}

bool fence_is_sound(const struct device *d, const struct fence *f)
{
    bool sound = true;
    for (int i = 0; i < FENCE_POINTS; i++)
        sound &= point_seq(f->point[i]) <= d->seq[point_stream(f->point[i])];
    return sound && f->gates <= d->streams->gates;
}

bool stream_is_sound(const struct device *d, unsigned u)
{
    bool sound = d->streams->done[u] <= d->seq[u];
    for (unsigned t = 0; t < d->streams->n; t++)
        sound &= d->streams->waited[t][u] <= d->seq[u];
    return sound;
}

unsigned stream_count(const struct device *d) { return d->streams->n; }

int stream_failure_drv(const struct device *d)
{
    const CUresult r = d->broken    ? (CUresult)d->broken
                       : d->forbidden ? (CUresult)d->forbidden
                       : d->capturing ? CUDA_SUCCESS /* nobody may ask: the capture would be invalidated */
                                      : d->drv->cuStreamQuery(d->streams->handle[STREAM_IN]);
    return r == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : (int)r;
}

int fence_forbidden_drv(const struct device *d)
{
    const bool ours = capture_mode_call_begins(d->drv);
    const CUresult r = d->drv->cuEventQuery(d->streams->event[STREAM_IN]); /* the cheapest of them */
    capture_mode_call_ended(d->drv, ours);
    return capture_mode_refused(r) ? (int)r : CUDA_SUCCESS;
}

int stream_query_drv(struct device *d, unsigned t)
{
    struct streams *st = d->streams;
    if (!stands_at_tail(st, t))
        return (int)d->drv->cuStreamQuery(st->handle[t]);
    return st->event[t] ? (int)d->drv->cuEventQuery(st->event[t]) : CUDA_SUCCESS; /* without one the host has waited */
}
