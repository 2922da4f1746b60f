/*
 * Stream capture. A capture is a set of streams that record into one graph; each of them knows the nodes that its next operation
 * will depend on. Other streams join by waiting for an event recorded in one of them. What cannot be recorded (waiting for
 * a captured stream, for instance) fails and invalidates the capture, whose end then fails too. Streams of other devices may join: their
 * operations are recorded for their own device, and run in the launching stream with the others, one after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu_graph.h"

struct gpu_capture {
    struct gpu_capture *next;
    CUgraph graph;
    CUstream origin, streams; /* that began it; that take part, through capture_next */
    CUstreamCaptureMode mode;
    pthread_t thread;
    cuuint64_t id;
    CUresult invalid; /* why, once it is */
    bool graph_is_given; /* cuStreamBeginCaptureToGraph */
};

static struct gpu_capture *captures;
static cuuint64_t last_id;
static __thread CUstreamCaptureMode my_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static void invalidate(struct gpu_capture *c, CUresult why)
{
    if (!c->invalid)
        c->invalid = why;
}

static void join(struct gpu_capture *c, CUstream s)
{
    s->capture = c;
    s->capture_next = c->streams;
    c->streams = s;
}

static void leave(CUstream s)
{
    CUstream *at = &s->capture->streams;
    while (*at != s)
        at = &(*at)->capture_next;
    *at = s->capture_next;
    s->capture = NULL;
    gpu_nodes_clear(&s->capture_deps);
}

static void finish(struct gpu_capture *c)
{
    while (c->streams)
        leave(c->streams);
    for (struct gpu_capture **p = &captures; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    free(c);
}

/* ---- what is recorded --------------------------------------------------------------------------------------------------------- */

static CUresult add_node(CUstream s, CUgraphNodeType type, gpu_op *op, enum gpu_engine engine, uint64_t ns, gpu_graph_mem *mem)
{
    struct gpu_capture *c = s->capture;
    CUgraphNode n = gpu_graph_add(c->graph, type, op, engine, ns, mem, &s->capture_deps);
    s->capture_deps.n = 0;
    CUresult e = n ? gpu_nodes_add(&s->capture_deps, n) : CUDA_ERROR_OUT_OF_MEMORY;
    if (e)
        invalidate(c, e);
    return e;
}

void gpu_capture_enqueue(CUstream s, gpu_op *op, enum gpu_engine engine, uint64_t ns)
{
    op->reaches = gpu_exec_reaches(op, s); /* wherever it is launched */
    add_node(s, op->node_type, op, engine, ns, NULL);
}

CUresult gpu_capture_alloc(CUstream s, uint64_t bytes, CUdeviceptr *out)
{
    gpu_graph_mem *m;
    CUresult e = gpu_graph_mem_new(bytes, &m);
    if (e)
        return e;
    if (!s->capture) { /* the lock was open: another thread ended it */
        gpu_graph_mem_unref(m);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    CUdeviceptr at = m->at;
    e = add_node(s, CU_GRAPH_NODE_TYPE_MEM_ALLOC, NULL, GPU_ENGINE_NONE, 0, m);
    gpu_graph_mem_unref(m);
    if (!e)
        *out = at;
    return e;
}

CUresult gpu_capture_free(CUstream s, CUdeviceptr p)
{
    gpu_graph_mem *m = gpu_graph_mem_at(p);
    if (!m) /* only what graphs allocated can be freed in one */
        return CUDA_ERROR_INVALID_VALUE;
    return add_node(s, CU_GRAPH_NODE_TYPE_MEM_FREE, NULL, GPU_ENGINE_NONE, 0, m);
}

void gpu_capture_forget(CUevent e)
{
    e->capture_id = 0;
    gpu_nodes_clear(&e->captured);
}

void gpu_capture_record(CUstream s, CUevent e)
{
    gpu_capture_forget(e);
    if (!s->capture)
        return;
    e->capture_id = s->capture->id;
    CUresult r = gpu_nodes_add_all(&e->captured, &s->capture_deps);
    if (r)
        invalidate(s->capture, r);
}

static struct gpu_capture *by_id(cuuint64_t id)
{
    struct gpu_capture *c = captures;
    while (c && c->id != id)
        c = c->next;
    return c;
}

CUresult gpu_capture_wait(CUstream s, CUevent e, bool *done)
{
    *done = s->capture || e->capture_id;
    if (!*done)
        return CUDA_SUCCESS;
    if (!e->capture_id) {
        if (!e->stream)
            return CUDA_SUCCESS; /* never recorded: nothing to wait for */
        invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    struct gpu_capture *c = by_id(e->capture_id);
    if (!c)
        return CUDA_ERROR_CAPTURED_EVENT; /* that capture is over */
    if (s->capture && s->capture != c) {
        invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
        invalidate(c, CUDA_ERROR_STREAM_CAPTURE_MERGE);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (s->is_legacy) {
        invalidate(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!s->capture)
        join(c, s);
    CUresult r = gpu_nodes_add_all(&s->capture_deps, &e->captured);
    if (r)
        invalidate(c, r);
    return r;
}

/* ---- what is forbidden --------------------------------------------------------------------------------------------------------- */

CUresult gpu_capture_may_wait(CUstream s)
{
    if (!s->capture)
        return s->is_legacy ? gpu_capture_allows_legacy(s->ctx) : CUDA_SUCCESS;
    invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult gpu_capture_may_wait_ctx(CUcontext ctx)
{
    CUresult e = CUDA_SUCCESS;
    for (CUstream s = ctx->streams; s; s = s->next_in_ctx)
        if (s->capture) {
            invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            e = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return e;
}

/* What a question about the legacy stream is answered beside a captured blocking one; it does no harm to that. */
static CUresult ask_legacy(CUcontext ctx)
{
    for (CUstream s = captures ? ctx->streams : NULL; s; s = s->next_in_ctx)
        if (s->capture && s->blocking)
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return CUDA_SUCCESS;
}

CUresult gpu_capture_allows_legacy(CUcontext ctx)
{
    CUresult e = CUDA_SUCCESS;
    for (CUstream s = captures ? ctx->streams : NULL; s; s = s->next_in_ctx)
        if (s->capture && s->blocking) {
            invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
            e = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    return e;
}

CUresult gpu_capture_allows_work(CUstream s)
{
    if (s->is_legacy)
        return gpu_capture_allows_legacy(s->ctx);
    return s->capture && s->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

/* cuThreadExchangeStreamCaptureMode: a thread heeds the captures that were begun as `global` anywhere, or the less lenient
   ones of its own, or none. */
static bool heeds(const struct gpu_capture *c)
{
    if (my_mode == CU_STREAM_CAPTURE_MODE_RELAXED || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    bool mine = pthread_equal(c->thread, pthread_self());
    return mine || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && my_mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult gpu_capture_allows_unsafe(void)
{
    CUresult e = CUDA_SUCCESS;
    gpu_lock();
    for (struct gpu_capture *c = captures; c; c = c->next)
        if (heeds(c)) {
            invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            e = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    gpu_unlock();
    return e;
}

void gpu_capture_stream_gone(CUstream s)
{
    if (!s->capture)
        return;
    struct gpu_capture *c = s->capture;
    invalidate(c, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    leave(s);
    if (c->origin != s)
        return;
    if (!c->graph_is_given)
        gpu_graph_free(c->graph);
    finish(c);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------------ */

static CUresult begin(CUstream h, bool per_thread, CUgraph graph, const CUgraphNode *deps, size_t n, CUstreamCaptureMode mode)
{
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED || (n && !deps))
        return CUDA_ERROR_INVALID_VALUE;
    struct gpu_capture *c = calloc(1, sizeof *c);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult e = CUDA_SUCCESS;
    if (!s)
        e = CUDA_ERROR_INVALID_HANDLE;
    else if (s->is_legacy)
        e = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    else if (s->capture)
        e = CUDA_ERROR_ILLEGAL_STATE;
    else if (graph && !gpu_graph_is(graph))
        e = CUDA_ERROR_INVALID_VALUE;
    if (!e) {
        *c = (struct gpu_capture){ captures, graph, s, NULL, mode, pthread_self(), ++last_id, CUDA_SUCCESS, graph != NULL };
        if (!graph)
            c->graph = gpu_graph_new();
        e = c->graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; !e && i < n; i++)
        e = deps[i]->graph == graph ? gpu_nodes_add(&s->capture_deps, deps[i]) : CUDA_ERROR_INVALID_VALUE;
    if (!e) {
        captures = c;
        join(c, s);
        c->graph->in_capture = true;
        c = NULL;
    } else if (s && !s->capture) {
        gpu_nodes_clear(&s->capture_deps);
        if (c->graph && !graph)
            gpu_graph_free(c->graph);
    }
    gpu_unlock();
    free(c);
    return e;
}

static void mark(CUgraphNode n)
{
    n->mark = true;
}

/* Everything that other streams of the capture recorded must come before what the origin would do next. */
static bool joined(const struct gpu_capture *c)
{
    CUgraph g = c->graph;
    for (unsigned i = 0; i < g->n; i++)
        g->nodes[i]->mark = false;
    for (unsigned i = 0; i < c->origin->capture_deps.n; i++)
        mark(c->origin->capture_deps.at[i]);
    for (unsigned i = g->n; i--;) /* dependencies stand before those that depend on them */
        for (unsigned j = 0; g->nodes[i]->mark && j < g->nodes[i]->deps.n; j++)
            mark(g->nodes[i]->deps.at[j]);
    for (CUstream s = c->streams; s; s = s->capture_next)
        for (unsigned i = 0; i < s->capture_deps.n; i++)
            if (!s->capture_deps.at[i]->mark)
                return false;
    return true;
}

static CUresult end(CUstream h, bool per_thread, CUgraph *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    struct gpu_capture *c = s ? s->capture : NULL;
    CUresult e = !s                  ? CUDA_ERROR_INVALID_HANDLE
                 : !c                ? CUDA_ERROR_ILLEGAL_STATE
                 : c->origin != s    ? CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
                 : c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->thread, pthread_self())
                     ? CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
                     : CUDA_SUCCESS;
    if (e) {
        gpu_unlock();
        return e;
    }
    e = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : joined(c) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    CUgraph g = c->graph;
    g->in_capture = false;
    bool given = c->graph_is_given;
    finish(c);
    if (e && !given)
        gpu_graph_free(g);
    *out = e ? NULL : g;
    gpu_unlock();
    return e;
}

static CUresult info(CUstream h, bool per_thread, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                     const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *n)
{
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult e = !s ? CUDA_ERROR_INVALID_HANDLE : s->is_legacy ? ask_legacy(s->ctx) : CUDA_SUCCESS;
    struct gpu_capture *c = s ? s->capture : NULL;
    if (!e) {
        *status = !c           ? CU_STREAM_CAPTURE_STATUS_NONE
                  : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        if (id)
            *id = c ? c->id : 0;
        if (graph)
            *graph = c ? c->graph : NULL;
        if (deps)
            *deps = c ? s->capture_deps.at : NULL;
        if (edges)
            *edges = NULL;
        if (n)
            *n = c ? s->capture_deps.n : 0;
    }
    gpu_unlock();
    return e;
}

static CUresult update(CUstream h, bool per_thread, CUgraphNode *deps, size_t n, unsigned flags)
{
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n && !deps))
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult e = !s ? CUDA_ERROR_INVALID_HANDLE : !s->capture ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
    for (size_t i = 0; !e && i < n; i++)
        if (!deps[i] || deps[i]->graph != s->capture->graph)
            e = CUDA_ERROR_INVALID_VALUE;
    if (!e && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        s->capture_deps.n = 0;
    for (size_t i = 0; !e && i < n; i++)
        e = gpu_nodes_add(&s->capture_deps, deps[i]);
    gpu_unlock();
    return e;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = my_mode;
    my_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

GPU_API_BOTH(cuStreamBeginCapture, _ptsz, (CUstream s), begin(s, per_thread, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL))
GPU_API_BOTH(cuStreamBeginCapture_v2, _ptsz, (CUstream s, CUstreamCaptureMode mode),
             begin(s, per_thread, NULL, NULL, 0, mode))
GPU_API_BOTH(cuStreamBeginCaptureToGraph, _ptsz,
             (CUstream s, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n,
              CUstreamCaptureMode mode),
             ((void)edges, !g ? CUDA_ERROR_INVALID_VALUE : begin(s, per_thread, g, deps, n, mode)))
GPU_API_BOTH(cuStreamEndCapture, _ptsz, (CUstream s, CUgraph *g), end(s, per_thread, g))
GPU_API_BOTH(cuStreamIsCapturing, _ptsz, (CUstream s, CUstreamCaptureStatus *status),
             info(s, per_thread, status, NULL, NULL, NULL, NULL, NULL))
GPU_API_BOTH(cuStreamGetCaptureInfo, _ptsz, (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id),
             info(s, per_thread, status, id, NULL, NULL, NULL, NULL))
GPU_API_BOTH(cuStreamGetCaptureInfo_v2, _ptsz,
             (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
              size_t *n),
             info(s, per_thread, status, id, graph, deps, NULL, n))
GPU_API_BOTH(cuStreamGetCaptureInfo_v3, _ptsz,
             (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
              const CUgraphEdgeData **edges, size_t *n),
             info(s, per_thread, status, id, graph, deps, edges, n))
GPU_API_BOTH(cuStreamUpdateCaptureDependencies, _ptsz, (CUstream s, CUgraphNode *deps, size_t n, unsigned flags),
             update(s, per_thread, deps, n, flags))
GPU_API_BOTH(cuStreamUpdateCaptureDependencies_v2, _ptsz,
             (CUstream s, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n, unsigned flags),
             ((void)edges, update(s, per_thread, deps, n, flags)))
GPU_API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode), GPU_NEED_INIT, exchange_mode(mode))
