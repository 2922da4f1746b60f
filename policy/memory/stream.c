/* stream.c: see stream.h. */
#include "policy/device.h"
#include "policy/process/capture_mode.h"
#include "policy/process/check.h"
#include "tracer/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Events and streams work together within one context, and a default stream's handle means another stream in each. So every call on
 * the stream of a row is made in that row's context. */
struct visit {
    CUcontext before;
    bool away;
};

static struct visit visit(struct device *d, CUcontext ctx)
{
    struct visit v = {NULL, false};
    v.away = d->streams->several && d->drv->cuCtxGetCurrent(&v.before) == CUDA_SUCCESS && v.before != ctx && d->drv->cuCtxSetCurrent(ctx) == CUDA_SUCCESS;
    return v;
}

static void back(struct device *d, struct visit v)
{
    if (v.away)
        d->drv->cuCtxSetCurrent(v.before);
}

static CUresult record(struct device *d, const struct stream_row *r, CUevent e)
{
    const struct visit v = visit(d, r->ctx);
    const CUresult c = d->drv->cuEventRecord(e, r->handle);
    back(d, v);
    return c;
}

static CUresult sync_stream(struct device *d, const struct stream_row *r)
{
    const struct visit v = visit(d, r->ctx);
    const CUresult c = d->drv->cuStreamSynchronize(r->handle);
    back(d, v);
    return c;
}

static CUresult sync_context(struct device *d, const struct stream_row *r)
{
    const struct visit v = visit(d, r->ctx);
    const CUresult c = d->drv->cuCtxSynchronize();
    back(d, v);
    return c;
}

static CUevent new_event(struct device *d, CUcontext ctx)
{
    CUevent e = NULL;
    const struct visit v = visit(d, ctx);
    if (d->drv->cuEventCreate(&e, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        e = NULL;
    back(d, v);
    return e;
}

CUresult stream_record_drv(struct device *d, unsigned u, CUevent e) { return record(d, &d->streams->row[u], e); }

CUresult stream_sync_drv(struct device *d, unsigned u)
{
    const struct stream_row *r = &d->streams->row[u];
    return stream_is_anothers(d->streams, u) ? sync_context(d, r) : sync_stream(d, r);
}

CUresult stream_await_drv(struct device *d, unsigned t, CUevent e)
{
    const struct stream_row *r = &d->streams->row[t];
    const struct visit v = visit(d, r->ctx);
    const CUresult c = d->drv->cuStreamWaitEvent(r->handle, e, 0);
    back(d, v);
    return c;
}

CUevent stream_event_drv(struct device *d, unsigned u)
{
    const struct stream_row *r = &d->streams->row[u];
    CUevent e = new_event(d, r->ctx);
    if (e && record(d, r, e) == CUDA_SUCCESS)
        return e;
    if (e)
        d->drv->cuEventDestroy_v2(e);
    return NULL;
}

/* The per-thread default stream is one handle, but another stream in every thread: each has an index. No other thread can record an event there, so
 * the thread records one behind each op. Where work is to be queued under another thread's index (a plan followed by other threads than
 * those it was recorded of) this thread's stream waits for that event, and the index becomes this thread's. */
static uint64_t me(void)
{
    static uint64_t threads; /* guarded by the engine's mutex */
    static __thread uint64_t my_thread;
    return my_thread ? my_thread : (my_thread = ++threads);
}

int stream_broken(struct device *d, CUresult r)
{
    if (capture_mode_refused(r)) { /* a capture forbids the call for a while: the call at hand is refused, and the device is not broken */
        d->forbidden = (int)r;
        return -EIO;
    }
    if (!d->broken)
        log_say(SAY_ERROR, "the driver failed (%s) where work had to be ordered: the call at hand is refused", device_code_name(d, (int)r));
    d->broken = (int)r;
    return -EIO;
}

bool stream_is_anothers(const struct streams *st, unsigned t) { return st->row[t].handle == CU_STREAM_PER_THREAD && st->row[t].holder != me(); }

bool stream_stands_at_tail(const struct streams *st, unsigned t) { return st->row[t].gone || stream_is_anothers(st, t); }

int stream_own(struct device *d, unsigned t)
{
    struct streams *st = d->streams;
    if (!stream_is_anothers(st, t))
        return 0;
    CUresult r = st->row[t].event ? stream_await_drv(d, t, st->row[t].event) : CUDA_ERROR_INVALID_HANDLE;
    if (r != CUDA_SUCCESS && (r = sync_context(d, &st->row[t])) != CUDA_SUCCESS)
        return stream_broken(d, r);
    st->row[t].n_waited = 0; /* this thread's stream has waited for none of the work that the other thread's stream has */
    st->row[t].holder = me();
    return 0;
}

/* The stream is being captured: an event recorded there stands for no work that runs. */
static bool is_captured(struct device *d, CUstream s)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return d->capturing && d->drv->cuStreamIsCapturing &&
           (d->drv->cuStreamIsCapturing(s, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Work that remat queues on stream i runs without a later call of the program. */
static bool goes_on(struct device *d, unsigned i)
{
    return i < d->streams->n && !d->streams->row[i].gone && !(d->streams->gated && stream_stands(d, i, d->seq[i]));
}

unsigned stream_alive(struct device *d, unsigned t)
{
    if (d->streams->gated)
        stream_looks_anew(d);
    for (unsigned i = STREAM_FIRST_PROGRAM; i < d->streams->n && !goes_on(d, t); i++)
        t = goes_on(d, i) ? i : t;
    return goes_on(d, t) ? t : STREAM_IN; /* remat's own */
}

void stream_issued(struct device *d, unsigned t)
{
    const struct stream_row *row = &d->streams->row[t];
    d->seq[t]++;
    if (row->handle != CU_STREAM_PER_THREAD || is_captured(d, CU_STREAM_PER_THREAD) || record(d, row, row->event) == CUDA_SUCCESS)
        return;
    CUresult r = sync_stream(d, row); /* allowed: the stream is this thread's */
    if (r != CUDA_SUCCESS)
        stream_broken(d, r);
}

void stream_acts(struct device *d, unsigned t)
{
    struct stream_row *s = &d->streams->row[t];
    if (!d->blocking_streams || (s->event && record(d, s, s->event) == CUDA_SUCCESS))
        return;
    CUresult r = sync_context(d, s); /* the host has seen the end of all work: none is left to be ordered */
    if (r != CUDA_SUCCESS)
        stream_broken(d, r);
}

/* ---- indices --------------------------------------------------------------------------------------------------- */

static int enter(struct device *d, unsigned i, CUcontext ctx, CUstream s)
{
    struct stream_row *r = &d->streams->row[i];
    if (r->event && r->ctx != ctx) {
        d->drv->cuEventDestroy_v2(r->event);
        r->event = NULL;
    }
    r->handle = s;
    r->ctx = ctx;
    if (!r->event && !(r->event = new_event(d, ctx)))
        return -EIO;
    d->blocking_streams |= s == CU_STREAM_PER_THREAD;
    return 0;
}

/* Room for one more row. */
static int grow(struct device *d)
{
    struct streams *st = d->streams;
    if (st->n < st->cap)
        return 0;
    const unsigned cap = st->cap ? 2 * st->cap : 64;
    struct stream_row *row = cap <= FENCE_MOST_STREAMS ? realloc(st->row, cap * sizeof *row) : NULL;
    if (row)
        st->row = row;
    CUstream *stream = row ? realloc(d->stream, cap * sizeof *stream) : NULL;
    if (stream)
        d->stream = stream;
    uint64_t *seq = stream ? realloc(d->seq, cap * sizeof *seq) : NULL;
    if (!seq)
        return -ENOMEM;
    d->seq = seq;
    memset(row + st->cap, 0, (cap - st->cap) * sizeof *row);
    memset(stream + st->cap, 0, (cap - st->cap) * sizeof *stream);
    memset(seq + st->cap, 0, (cap - st->cap) * sizeof *seq);
    st->cap = cap;
    return 0;
}

int stream_init(struct device *d)
{
    CUstream s[2];
    d->streams = calloc(1, sizeof *d->streams);
    if (!d->streams || grow(d))
        return -ENOMEM;
    d->streams->last = STREAM_OUT;
    for (unsigned i = 0; i < 2; i++) {
        if (d->drv->cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || enter(d, i, d->ctx, s[i]))
            return -EIO;
        d->stream[i] = s[i];
    }
    d->streams->n = STREAM_FIRST_PROGRAM;
    return 0;
}

/* Events of passed gates are kept for later gates, if they are of the device's own context. */
static void event_drop(struct device *d, const struct stream_row *r, CUevent e)
{
    struct streams *st = d->streams;
    if (!e)
        return;
    if (r->ctx == d->ctx && grow_room(&st->spare, st->n_spare, &st->cap_spare, 16))
        st->spare[st->n_spare++] = e;
    else
        d->drv->cuEventDestroy_v2(e);
}

/* An event recorded at the tail of a stream; NULL: the driver refuses it. */
static CUevent event_at(struct device *d, const struct stream_row *r)
{
    struct streams *st = d->streams;
    CUevent e = r->ctx == d->ctx && st->n_spare ? st->spare[--st->n_spare] : new_event(d, r->ctx);
    if (!e || record(d, r, e) == CUDA_SUCCESS)
        return e;
    d->drv->cuEventDestroy_v2(e);
    return NULL;
}

static void gates_drop(struct device *d, struct stream_row *r, uint32_t n)
{
    if (!n)
        return;
    for (uint32_t i = 0; i < n; i++) {
        event_drop(d, r, r->gates[i].event);
        event_drop(d, r, r->gates[i].after);
    }
    r->n_gates -= n;
    memmove(r->gates, r->gates + n, r->n_gates * sizeof *r->gates);
}

/* The index is given to another stream, which is ordered behind nothing. No work of the old stream is left to wait for: the host has seen
 * its end. */
static void index_reused(struct device *d, unsigned i)
{
    struct stream_row *r = &d->streams->row[i];
    r->n_waited = 0;
    r->done = d->seq[i];
    r->gone = false;
    uint32_t n = 0;
    while (n < r->n_gates && !r->gates[n].users)
        n++;
    gates_drop(d, r, n);
}

/* True where all work under the index has ended, and its stream is destroyed or another thread's per-thread stream (that thread has perhaps ended). Below FEW
 * indices no thread's index is taken, so that two living threads do not take each other's. */
static bool may_be_reused(struct device *d, unsigned i)
{
    enum { FEW = 64 };
    struct streams *st = d->streams;
    struct stream_row *r = &st->row[i];
    if (!r->gone && !(st->n >= FEW && stream_is_anothers(st, i)))
        return false;
    return !r->event || r->done >= d->seq[i] || d->drv->cuEventQuery(r->event) == CUDA_SUCCESS;
}

/* An index for a stream never seen before. Without memory for one: the last stream's index, the device is broken, and ready_op() refuses. */
static unsigned new_index(struct device *d, CUcontext ctx, CUstream s)
{
    struct streams *st = d->streams;
    unsigned i = STREAM_FIRST_PROGRAM;
    while (i < st->n && !may_be_reused(d, i))
        i++;
    if (i < st->n)
        index_reused(d, i);
    else if (grow(d)) {
        stream_broken(d, CUDA_ERROR_OUT_OF_MEMORY);
        return st->n - 1;
    } else
        st->n++;
    st->row[i].holder = me();
    /* A stream without an event of its own can still be waited for by the host. */
    (void)!enter(d, i, ctx, s);
    d->stream[i] = s;
    return i;
}

static bool is_default(CUstream s) { return s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD; }

void stream_is_elsewhere(struct device *d) { d->streams->several = true; }

/* The context of a stream that has no index yet: the device's own, unless another context is current and the stream belongs to another context. */
static CUcontext context_of(struct device *d, CUstream s)
{
    CUcontext here = NULL, of = NULL;
    if (d->drv->cuCtxGetCurrent(&here) != CUDA_SUCCESS || here == d->ctx)
        return d->ctx;
    stream_is_elsewhere(d);
    return !is_default(s) && d->drv->cuStreamGetCtx && d->drv->cuStreamGetCtx(s, &of) == CUDA_SUCCESS ? of : d->ctx;
}

static __attribute__((noinline)) unsigned other_index(struct device *d, CUstream s)
{
    struct streams *st = d->streams;
    unsigned i = st->last;
    if (i >= st->n || st->row[i].handle != s || st->row[i].gone || stream_is_anothers(st, i)) {
        for (i = STREAM_FIRST_PROGRAM; i < st->n; i++)
            if (st->row[i].handle == s && !st->row[i].gone && !stream_is_anothers(st, i) && (st->row[i].ctx == d->ctx || !is_default(s)))
                break;
        if (i == st->n)
            i = new_index(d, context_of(d, s), s);
        st->last = i;
    }
    return i;
}

unsigned stream_index_in(struct device *d, CUcontext ctx, CUstream s)
{
    const struct streams *st = d->streams;
    stream_is_elsewhere(d);
    for (unsigned i = STREAM_FIRST_PROGRAM; i < st->n; i++)
        if (st->row[i].handle == s && st->row[i].ctx == ctx && !st->row[i].gone && !stream_is_anothers(st, i))
            return i;
    const unsigned i = new_index(d, ctx, s);
    if (d->streams->last == i) /* stream_index() looks `last` up by the handle alone */
        d->streams->last = STREAM_OUT;
    return i;
}

unsigned stream_index(struct device *d, CUstream s)
{
    const struct streams *st = d->streams;
    unsigned i = st->last;
    if (i < st->n && st->row[i].handle == s && !st->row[i].gone && s != CU_STREAM_PER_THREAD)
        return i; /* nearly always */
    return other_index(d, s);
}

bool stream_is_known(const struct device *d, CUstream s)
{
    const struct streams *st = d->streams;
    for (unsigned i = STREAM_FIRST_PROGRAM; i < st->n; i++)
        if (st->row[i].handle == s && !st->row[i].gone)
            return true;
    return false;
}

unsigned stream_count(const struct device *d) { return d->streams->n; }

/* ---- events ---------------------------------------------------------------------------------------------------- */

void stream_mark(struct device *d, unsigned u)
{
    struct streams *st = d->streams;
    uint64_t q = ++d->seq[u];
    CUevent *e = &st->mark[u][q % STREAM_MARKS];
    if (!*e && d->drv->cuEventCreate(e, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        *e = NULL;
    st->marked[u][q % STREAM_MARKS] = *e && d->drv->cuEventRecord(*e, st->row[u].handle) == CUDA_SUCCESS ? q : 0;
}

/* The op behind gate g does not stand still, or has ended. */
static bool is_over(struct device *d, const struct stream_row *r, struct gate *g)
{
    if (!g->over && (r->done > g->seq || (g->after && d->drv->cuEventQuery(g->after) == CUDA_SUCCESS))) {
        event_drop(d, r, g->after);
        g->after = NULL;
        g->over = true;
    }
    return g->over;
}

/* Drops gates that have been passed, while a stream has SOME gates or more. */
static void gates_look(struct device *d, struct stream_row *r)
{
    enum { SOME = 4 };
    uint32_t n = 0;
    while (r->n_gates - n >= SOME && !r->gates[n].users && is_over(d, r, &r->gates[n]) &&
           (r->done >= r->gates[n].seq || d->drv->cuEventQuery(r->gates[n].event) == CUDA_SUCCESS)) {
        r->done = r->done < r->gates[n].seq ? r->gates[n].seq : r->done;
        n++;
    }
    gates_drop(d, r, n);
}

bool stream_may_wait(struct device *d, unsigned t)
{
    struct streams *st = d->streams;
    struct stream_row *r = &st->row[t];
    const uint64_t q = d->seq[t];
    if (is_captured(d, r->handle))
        return false;
    if (r->n_gates && r->gates[r->n_gates - 1].seq == q)
        return true;
    gates_look(d, r);
    if (!grow_room(&r->gates, r->n_gates, &r->cap_gates, 4))
        return false; /* without a gate, a wait for earlier work stands still with the stream */
    CUevent e = r->done < q ? event_at(d, r) : NULL;
    if (r->done < q && !e)
        return false;
    r->gates[r->n_gates++] = (struct gate){.event = e, .seq = q, .over = true};
    return true;
}

void stream_may_stand(struct device *d, unsigned t)
{
    struct stream_row *r = &d->streams->row[t];
    struct gate *g = &r->gates[r->n_gates - 1];
    event_drop(d, r, g->after);
    g->after = event_at(d, r);
    g->over = false;
    d->streams->gated = true;
}

uint64_t stream_queued(struct device *d, unsigned t)
{
    const struct stream_row *r = &d->streams->row[t];
    if (!d->streams->gated || !r->n_gates)
        return 0;
    stream_looks_anew(d);
    if (!stream_stands(d, t, d->seq[t]))
        return 0;
    const uint64_t each = r->handle == CU_STREAM_PER_THREAD ? 2 : 1; /* an event is recorded behind each op */
    return (d->seq[t] - r->stands_from) * each;
}

bool stream_gated(const struct device *d) { return d->streams->gated; }

void stream_looks_anew(struct device *d) { d->streams->looks++; }

bool stream_stands(struct device *d, unsigned u, uint64_t q)
{
    struct streams *st = d->streams;
    struct stream_row *r = &st->row[u];
    if (!r->n_gates || r->done >= q)
        return false;
    if (r->stands_look != st->looks || !st->looks) {
        uint32_t i = 0;
        while (i < r->n_gates && is_over(d, r, &r->gates[i]))
            i++;
        r->stands_from = i < r->n_gates ? r->gates[i].seq : UINT64_MAX;
        r->stands_look = st->looks;
    }
    return q > r->stands_from;
}

bool stream_only_stands(const struct stream_row *r, uint64_t seq)
{
    uint64_t standing = 0; /* ops that stand, or stood, for the host: each has a gate in front */
    for (uint32_t i = 0; i < r->n_gates; i++)
        standing += r->gates[i].seq >= r->stands_from;
    return seq - r->stands_from <= standing;
}

bool stream_any_stands(struct device *d)
{
    bool any = false;
    if (!d->streams->gated)
        return false;
    stream_looks_anew(d);
    for (unsigned u = STREAM_FIRST_PROGRAM; u < d->streams->n && !any; u++)
        any = stream_stands(d, u, d->seq[u]);
    return any;
}

struct gate *stream_gate_behind(struct streams *st, unsigned u, uint64_t q)
{
    struct stream_row *r = &st->row[u];
    for (uint32_t i = 0; i < r->n_gates; i++)
        if (r->gates[i].seq >= q && r->gates[i].event)
            return &r->gates[i];
    return NULL;
}

void stream_has_waited(struct streams *st, unsigned t, unsigned u, uint64_t q)
{
    enum { MOST = 1024 }; /* waits for streams of higher indices are not remembered, and are made again */
    struct stream_row *r = &st->row[t];
    if (u >= r->n_waited) {
        const uint32_t n = u < MOST ? u + 1 : 0;
        uint64_t *p = n ? realloc(r->waited, n * sizeof *p) : NULL;
        if (!p)
            return;
        memset(p + r->n_waited, 0, (n - r->n_waited) * sizeof *p);
        r->waited = p;
        r->n_waited = n;
    }
    r->waited[u] = q;
}

void stream_seen(struct device *d, unsigned u, uint64_t q)
{
    struct stream_row *r = &d->streams->row[u];
    r->done = q > r->done ? q : r->done;
}

void stream_issued_apart(struct device *d, unsigned u)
{
    struct stream_row *r = &d->streams->row[u];
    const bool only = r->done == d->seq[u] || r->apart == d->seq[u];
    stream_issued(d, u);
    if (only)
        r->apart = d->seq[u];
}

void stream_look(struct device *d)
{
    struct streams *st = d->streams;
    for (unsigned u = 0; u < STREAM_FIRST_PROGRAM && !d->capturing; u++) /* a capture may forbid the query */
        if (st->row[u].done < d->seq[u] && st->row[u].apart != d->seq[u] && d->drv->cuStreamQuery(st->row[u].handle) == CUDA_SUCCESS)
            st->row[u].done = d->seq[u];
}

bool stream_has_passed(struct device *d, unsigned u, uint64_t q)
{
    struct streams *st = d->streams;
    struct stream_row *r = &st->row[u];
    if (r->done >= q)
        return true;
    struct gate *g = stream_gate_behind(st, u, q);
    if ((g ? (int)d->drv->cuEventQuery(g->event) : stream_query_drv(d, u)) != CUDA_SUCCESS)
        return false;
    r->done = g ? g->seq : d->seq[u];
    return true;
}

/* Destroying a stream does not wait for its work, and must not under remat: an event at the stream's tail stands for the work. */
void stream_forget(struct device *d, CUstream s)
{
    struct streams *st = d->streams;
    for (unsigned i = STREAM_FIRST_PROGRAM; i < st->n; i++) {
        struct stream_row *r = &st->row[i];
        if (r->handle != s || r->gone)
            continue;
        if (!r->event || record(d, r, r->event) != CUDA_SUCCESS) {
            sync_stream(d, r);
            r->done = d->seq[i];
        }
        r->gone = true;
    }
}

void stream_context_ends(struct device *d, CUcontext ctx)
{
    struct streams *st = d->streams;
    CUcontext of;
    for (unsigned i = STREAM_FIRST_PROGRAM; i < st->n; i++) {
        struct stream_row *r = &st->row[i];
        if (r->gone || (is_default(r->handle) ? r->ctx != ctx : !d->drv->cuStreamGetCtx || d->drv->cuStreamGetCtx(r->handle, &of) != CUDA_SUCCESS || of != ctx))
            continue;
        stream_sync_drv(d, i);
        r->done = d->seq[i];
        r->event = NULL; /* an event of that context is destroyed with the context; one of another context leaks, and is small */
        r->n_gates = 0;
        r->gone = true;
    }
}

bool stream_is_sound(const struct device *d, unsigned u)
{
    bool sound = d->streams->row[u].done <= d->seq[u];
    for (unsigned t = 0; t < d->streams->n; t++)
        sound &= stream_waited(d->streams, t, u) <= d->seq[u];
    return sound;
}

int stream_failure_drv(const struct device *d)
{
    const CUresult r = d->broken      ? (CUresult)d->broken
                       : d->forbidden ? (CUresult)d->forbidden
                       : d->capturing ? CUDA_SUCCESS /* a query would invalidate the capture */
                                      : d->drv->cuStreamQuery(d->streams->row[STREAM_IN].handle);
    return r == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : (int)r;
}

int stream_forbidden_drv(const struct device *d)
{
    const bool ours = capture_mode_call_begins(d->drv);
    const CUresult r = d->drv->cuEventQuery(d->streams->row[STREAM_IN].event); /* the cheapest call that a capture forbids */
    capture_mode_call_ended(d->drv, ours);
    return capture_mode_refused(r) ? (int)r : CUDA_SUCCESS;
}

int stream_query_drv(struct device *d, unsigned t)
{
    struct streams *st = d->streams;
    if (!stream_stands_at_tail(st, t)) {
        const struct visit v = visit(d, st->row[t].ctx);
        const CUresult r = d->drv->cuStreamQuery(st->row[t].handle);
        back(d, v);
        return (int)r;
    }
    return st->row[t].event ? (int)d->drv->cuEventQuery(st->row[t].event) : CUDA_SUCCESS; /* a stream without an event was waited for by the host */
}
