/*
 * Events, stream dependencies and host callbacks. An event is a place in a stream's queue and the simulated
 * time at that place; a wait captures the place of the latest record at the moment the wait is enqueued.
 */
#include <stdlib.h>

#include "tests/simgpu/gpu_graph.h"

static bool live(CUevent e)
{
    return gpu_handle_kind(e) == GPU_EVENT;
}

static bool done(CUevent e)
{
    return e->page ? e->page->done >= e->page->recorded : !e->stream || e->stream->done >= e->seq;
}

static CUresult create(CUevent *out, unsigned flags)
{
    if (!out || flags & ~7u || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    CUevent e = calloc(1, sizeof *e);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->flags = flags;
    e->ctx = gpu_ctx_current();
    gpu_lock();
    CUresult r = gpu_handle_add(e, GPU_EVENT);
    gpu_unlock();
    if (r)
        free(e);
    else
        *out = e;
    return r;
}

CUresult gpu_event_of_page(struct gpu_event_page *p, CUevent *out)
{
    CUresult r = create(out, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    if (!r)
        (*out)->page = p;
    return r;
}

static CUresult destroy(CUevent e)
{
    gpu_lock();
    bool ok = live(e);
    if (ok) {
        if (e->page)
            gpu_event_page_drop(e->page);
        gpu_handle_drop(e);
        gpu_capture_forget(e);
        if (e->stream)
            gpu_stream_unref(e->stream);
        free(e);
    }
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void gpu_event_capture(CUevent e, CUstream s)
{
    gpu_capture_record(s, e);
    if (s->capture)
        return;
    gpu_stream_ref(s);
    if (e->stream)
        gpu_stream_unref(e->stream);
    e->stream = s;
    e->seq = s->enqueued;
    e->ns = s->end_ns;
}

/* A record, or a wait, of an event that another process has too. */
typedef struct {
    gpu_op op;
    struct gpu_event_page *page;
    CUstream stream;
    uint64_t n;
} page_op;

static void pass(gpu_op *op)
{
    page_op *p = (page_op *)op;
    uint64_t before = p->page->done;
    while (before < p->n && !atomic_compare_exchange_weak(&p->page->done, &before, p->n))
        ;
}

static bool has_passed(const void *op)
{
    const page_op *p = op;
    return p->page->done >= p->n;
}

static void run_page_wait(gpu_op *op)
{
    gpu_memop_until(((page_op *)op)->stream, has_passed, op);
}

static CUresult record(CUevent e, CUstream h, bool per_thread, unsigned flags)
{
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    page_op *p = gpu_exec_op(sizeof *p);
    gpu_op *op = p ? &p->op : NULL;
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult r = s && live(e) && e->ctx == s->ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        r = gpu_capture_allows_work(s);
    if (!r && s->capture) {
        if (flags & CU_EVENT_RECORD_EXTERNAL)
            r = CUDA_ERROR_NOT_SUPPORTED; /* no node of a graph records an event here */
        else
            gpu_event_capture(e, s);
    } else if (!r) {
        if (e->page)
            *p = (page_op){ { .exec = pass }, e->page, s, ++e->page->recorded };
        gpu_exec_enqueue(s, op, GPU_ENGINE_NONE, 0);
        gpu_event_capture(e, s);
        op = NULL;
    }
    gpu_unlock();
    free(op);
    return r;
}

static CUresult stream_wait(CUstream h, bool per_thread, CUevent e, unsigned flags)
{
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    page_op *p = gpu_exec_op(sizeof *p);
    gpu_op *op = p ? &p->op : NULL;
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult r = s && live(e) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    bool captured = false;
    if (!r)
        r = gpu_capture_allows_work(s);
    if (!r)
        r = gpu_capture_wait(s, e, &captured);
    if (!r && !captured && e->page) {
        *p = (page_op){ { .exec = run_page_wait }, e->page, s, e->page->recorded };
        gpu_exec_enqueue(s, op, GPU_ENGINE_NONE, 0);
        op = NULL;
    } else if (!r && !captured && e->stream && !(r = gpu_exec_depend(op, e->stream, e->seq))) {
        if (e->ns > s->end_ns)
            s->end_ns = e->ns;
        gpu_exec_enqueue(s, op, GPU_ENGINE_NONE, 0);
        op = NULL;
    }
    gpu_unlock();
    free(op);
    return r;
}

static CUresult query(CUevent e)
{
    gpu_lock();
    CUresult r = !live(e)        ? CUDA_ERROR_INVALID_HANDLE
                 : e->capture_id ? CUDA_ERROR_CAPTURED_EVENT
                 : done(e)       ? CUDA_SUCCESS
                                 : CUDA_ERROR_NOT_READY;
    if (r == CUDA_ERROR_NOT_READY && e->stream && gpu_adversary_asked(&e->asked))
        gpu_adversary_demand(e->stream, e->seq);
    gpu_unlock();
    return r;
}

static CUresult synchronize(CUevent e)
{
    gpu_lock();
    CUresult r = !live(e) ? CUDA_ERROR_INVALID_HANDLE : e->capture_id ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
    const uint64_t n = !r && e->page ? (uint64_t)e->page->recorded : 0;
    while (n && e->page->done < n && !gpu_exiting) { /* wherever it was recorded */
        if (e->stream)
            gpu_adversary_demand(e->stream, e->seq);
        gpu_exec_wait_a_moment(1000000);
    }
    if (!r && !n && e->stream) {
        CUstream s = e->stream;
        uint64_t ns = e->ns;
        r = gpu_exec_wait(s, e->seq);
        gpu_clock_host_reached(ns);
        gpu_pool_host_synced();
        gpu_stats_refresh();
    }
    gpu_unlock();
    return r;
}

static CUresult elapsed(float *ms, CUevent from, CUevent to)
{
    if (!ms)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUresult r = CUDA_SUCCESS;
    if (!live(from) || !live(to) || !from->stream || !to->stream ||
        (from->flags | to->flags) & CU_EVENT_DISABLE_TIMING || from->ctx != to->ctx)
        r = CUDA_ERROR_INVALID_HANDLE;
    else if (!done(from) || !done(to))
        r = CUDA_ERROR_NOT_READY;
    else
        *ms = (float)(((double)to->ns - (double)from->ns) / 1e6);
    gpu_unlock();
    return r;
}

GPU_API(cuEventCreate, (CUevent *e, unsigned flags), GPU_NEED_CTX, create(e, flags))
GPU_API(cuEventDestroy_v2, (CUevent e), GPU_NEED_CTX, destroy(e))
GPU_API_BOTH(cuEventRecord, _ptsz, (CUevent e, CUstream s), record(e, s, per_thread, 0))
GPU_API_BOTH(cuEventRecordWithFlags, _ptsz, (CUevent e, CUstream s, unsigned flags), record(e, s, per_thread, flags))
/* The call, unless a capture that this thread heeds forbids it. */
static CUresult unless_captured(CUresult (*call)(CUevent), CUevent e)
{
    CUresult r = gpu_capture_allows_unsafe();
    return r ? r : call(e);
}

GPU_API(cuEventQuery, (CUevent e), GPU_NEED_CTX, unless_captured(query, e))
GPU_API(cuEventSynchronize, (CUevent e), GPU_NEED_CTX, unless_captured(synchronize, e))
GPU_API(cuEventElapsedTime, (float *ms, CUevent from, CUevent to), GPU_NEED_CTX, elapsed(ms, from, to))
GPU_API(cuEventElapsedTime_v2, (float *ms, CUevent from, CUevent to), GPU_NEED_CTX, elapsed(ms, from, to))
GPU_API_BOTH(cuStreamWaitEvent, _ptsz, (CUstream s, CUevent e, unsigned flags), stream_wait(s, per_thread, e, flags))

/* ---- host callbacks ------------------------------------------------------------------------------------------ */

typedef struct {
    gpu_op op;
    CUhostFn fn;
    CUstreamCallback callback;
    CUstream stream, handle;
    void *arg;
} host_op;

static void run_host_fn(gpu_op *op)
{
    host_op *h = (host_op *)op;
    h->fn(h->arg);
}

static void run_callback(gpu_op *op)
{
    host_op *h = (host_op *)op;
    gpu_lock();
    CUresult status = h->stream->ctx->sticky;
    gpu_unlock();
    h->callback(h->handle, status, h->arg);
}

static CUresult host_call(CUstream h, bool per_thread, CUhostFn fn, CUstreamCallback callback, void *arg,
                          unsigned flags)
{
    if ((!fn && !callback) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    host_op *op = gpu_exec_op(sizeof *op);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->fn = fn;
    op->callback = callback;
    op->arg = arg;
    op->handle = h;
    op->op.exec = fn ? run_host_fn : run_callback;
    op->op.runs_when_failed = callback != NULL;
    op->op.node_type = CU_GRAPH_NODE_TYPE_HOST;
    gpu_lock();
    op->stream = gpu_stream_resolve(h, per_thread);
    CUresult r = op->stream ? gpu_capture_allows_work(op->stream) : CUDA_ERROR_INVALID_HANDLE;
    if (!r && callback && op->stream->capture)
        r = gpu_capture_may_wait(op->stream); /* a callback wants the stream's state, which a graph has none of */
    if (!r)
        gpu_exec_enqueue(op->stream, &op->op, GPU_ENGINE_NONE, 0);
    gpu_unlock();
    if (r)
        free(op);
    return r;
}

GPU_API_BOTH(cuLaunchHostFunc, _ptsz, (CUstream s, CUhostFn fn, void *arg), host_call(s, per_thread, fn, NULL, arg, 0))
GPU_API_BOTH(cuStreamAddCallback, _ptsz, (CUstream s, CUstreamCallback fn, void *arg, unsigned flags),
             host_call(s, per_thread, NULL, fn, arg, flags))
