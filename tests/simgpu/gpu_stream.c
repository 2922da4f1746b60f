/*
 * Streams. 0 and CU_STREAM_LEGACY name the context's legacy stream, which is ordered with every blocking
 * stream; CU_STREAM_PER_THREAD (and 0 in the _ptsz variants) a blocking stream of the calling thread.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu_graph.h"

static unsigned long long last_id;

/* ---- life ---------------------------------------------------------------------------------------------------- */

CUstream gpu_stream_new(CUcontext ctx, unsigned flags, int priority)
{
    CUstream s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->ctx = ctx;
    s->flags = flags;
    s->priority = priority;
    s->id = ++last_id;
    s->blocking = !(flags & CU_STREAM_NON_BLOCKING);
    s->refs = 1;
    s->chaos = gpu_cfg.chaos_seed * 0x9E3779B97F4A7C15ull + s->id;
    pthread_cond_init(&s->work, NULL);
    s->next_in_ctx = ctx->streams;
    ctx->streams = s;
    return s;
}

void gpu_stream_ref(CUstream s)
{
    s->refs++;
}

void gpu_stream_unref(CUstream s)
{
    if (--s->refs)
        return;
    for (CUstream *p = &s->ctx->streams; *p; p = &(*p)->next_in_ctx)
        if (*p == s) {
            *p = s->next_in_ctx;
            break;
        }
    pthread_cond_destroy(&s->work);
    free(s);
}

void gpu_stream_close(CUstream s)
{
    if (s->closing)
        return;
    s->closing = true;
    gpu_capture_stream_gone(s);
    gpu_handle_drop(s);
    pthread_cond_signal(&s->work);
    gpu_stream_unref(s);
}

/* ---- the calling thread's stream --------------------------------------------------------------------------------- */

typedef struct own {
    struct own *next;
    CUcontext ctx;
    unsigned long long ctx_id; /* a primary context that was reset is another one */
    CUstream stream;
} own;

static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void thread_ends(void *list)
{
    gpu_lock();
    for (own *o = list, *next; o; o = next) {
        next = o->next;
        if (o->ctx->alive && o->ctx->id == o->ctx_id)
            gpu_stream_close(o->stream);
        free(o);
    }
    gpu_unlock();
}

static void make_own_key(void)
{
    pthread_key_create(&own_key, thread_ends);
}

static CUstream own_stream(CUcontext ctx)
{
    pthread_once(&own_once, make_own_key);
    own *list = pthread_getspecific(own_key);
    for (own *o = list; o; o = o->next)
        if (o->ctx == ctx && o->ctx_id == ctx->id)
            return o->stream;
    own *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    *o = (own){ list, ctx, ctx->id, gpu_stream_new(ctx, CU_STREAM_DEFAULT, 0) };
    if (!o->stream || pthread_setspecific(own_key, o)) {
        if (o->stream)
            gpu_stream_close(o->stream);
        free(o);
        return NULL;
    }
    o->stream->is_per_thread = true;
    return o->stream;
}

CUstream gpu_stream_resolve(CUstream h, bool per_thread)
{
    CUcontext ctx = gpu_ctx_current();
    if (!h)
        return per_thread ? own_stream(ctx) : ctx->legacy;
    if (h == CU_STREAM_LEGACY)
        return ctx->legacy;
    if (h == CU_STREAM_PER_THREAD)
        return own_stream(ctx);
    return gpu_handle_kind(h) == GPU_STREAM && h->ctx->alive ? h : NULL;
}

/* ---- waiting --------------------------------------------------------------------------------------------------- */

typedef struct {
    CUstream s;
    uint64_t seq;
} goal;

/* Waits for all streams of ctx, or the blocking ones and the legacy stream. */
static CUresult wait_for_all(CUcontext ctx, bool blocking_only)
{
    size_t n = 0, room = 0;
    uint64_t end_ns = 0;
    for (CUstream s = ctx->streams; s; s = s->next_in_ctx)
        room++;
    goal *goals = malloc((room + 1) * sizeof *goals);
    if (!goals)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (CUstream s = ctx->streams; s; s = s->next_in_ctx) {
        if (blocking_only && !s->blocking && !s->is_legacy)
            continue;
        if (s->end_ns > end_ns)
            end_ns = s->end_ns;
        if (s->done < s->enqueued) {
            goals[n++] = (goal){ s, s->enqueued };
            s->demanded = s->enqueued; /* all at once, before the first wait */
            gpu_stream_ref(s);
        }
    }
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < n; i++) {
        CUresult one = gpu_exec_wait(goals[i].s, goals[i].seq);
        r = r ? r : one;
        gpu_stream_unref(goals[i].s);
    }
    free(goals);
    gpu_clock_host_reached(end_ns);
    gpu_pool_host_synced();
    gpu_stats_refresh();
    return r;
}

CUresult gpu_ctx_wait_host(CUcontext ctx)
{
    CUresult r = wait_for_all(ctx, false);
    for (CUcontext g = ctx->greens; g && !r; g = g->next_green)
        r = wait_for_all(g, false);
    return r ? r : ctx->sticky;
}

CUresult gpu_stream_wait_host(CUstream s)
{
    if (s->is_legacy)
        return wait_for_all(s->ctx, true);
    uint64_t end_ns = s->end_ns;
    CUresult r = gpu_exec_wait(s, s->enqueued);
    gpu_clock_host_reached(end_ns);
    gpu_pool_host_synced();
    gpu_stats_refresh();
    return r;
}

bool gpu_stream_idle(CUstream s)
{
    if (s->done < s->enqueued)
        return false;
    if (s->is_legacy)
        for (CUstream o = s->ctx->streams; o; o = o->next_in_ctx)
            if (o->blocking && o->done < o->enqueued)
                return false;
    return true;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static CUresult create(CUstream *out, unsigned flags, int priority)
{
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    gpu_lock();
    CUstream s = gpu_stream_new(gpu_ctx_current(), flags, priority);
    CUresult r = s ? gpu_handle_add(s, GPU_STREAM) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!r)
        *out = s;
    else if (s)
        gpu_stream_close(s);
    gpu_unlock();
    return r;
}

static CUresult destroy(CUstream s)
{
    gpu_lock();
    CUresult r = gpu_handle_kind(s) == GPU_STREAM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        gpu_stream_close(s);
    gpu_unlock();
    return r;
}

static CUresult synchronize(CUstream h, bool per_thread)
{
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult r = s ? gpu_capture_may_wait(s) : CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        r = gpu_stream_wait_host(s);
    gpu_unlock();
    return r;
}

static CUresult query(CUstream h, bool per_thread)
{
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult r = s ? gpu_capture_may_wait(s) : CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        r = gpu_stream_idle(s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    if (r == CUDA_ERROR_NOT_READY && gpu_adversary_asked(&s->asked)) {
        gpu_adversary_demand(s, s->enqueued);
        for (CUstream o = s->is_legacy ? s->ctx->streams : NULL; o; o = o->next_in_ctx)
            if (o->blocking)
                gpu_adversary_demand(o, o->enqueued);
    }
    gpu_unlock();
    return r;
}

enum ask { ASK_PRIORITY, ASK_FLAGS, ASK_ID, ASK_CTX, ASK_DEVICE };

static CUresult ask(CUstream h, bool per_thread, enum ask what, void *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult r = s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (s)
        switch (what) {
        case ASK_PRIORITY: *(int *)out = s->priority; break;
        case ASK_FLAGS: *(unsigned *)out = s->flags; break;
        case ASK_ID: *(unsigned long long *)out = s->id; break;
        case ASK_CTX: *(CUcontext *)out = s->ctx; break;
        case ASK_DEVICE: *(CUdevice *)out = s->ctx->device; break;
        }
    gpu_unlock();
    return r;
}

static CUresult ask_ctx_v2(CUstream h, bool per_thread, CUcontext *ctx, CUgreenCtx *green)
{
    CUcontext here = gpu_ctx_current();
    if (here->green && (h == CU_STREAM_PER_THREAD || (!h && per_thread)))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult r = ask(h, per_thread, ASK_CTX, ctx);
    if (!r && green)
        *green = (*ctx)->green;
    if (!r)
        *ctx = gpu_ctx_owner(*ctx);
    return r;
}

static CUresult attribute(CUstream h, bool per_thread, CUstreamAttrID id, CUstreamAttrValue *get,
                          const CUstreamAttrValue *set)
{
    if (!get && !set)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult r = s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (!s) {
    } else if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        if (set)
            s->priority = set->priority > 0 ? 0 : set->priority < -5 ? -5 : set->priority;
        else
            get->priority = s->priority;
    } else if (id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
               id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
               id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) {
        /* hints about caches and spinning: kept, without effect */
        unsigned k = (unsigned)id & 15;
        if (set)
            s->hints[k] = *set;
        else
            *get = s->hints[k];
    } else
        r = CUDA_ERROR_INVALID_VALUE;
    gpu_unlock();
    return r;
}

static CUresult copy_attributes(CUstream to, CUstream from, bool per_thread)
{
    gpu_lock();
    CUstream a = gpu_stream_resolve(to, per_thread), b = gpu_stream_resolve(from, per_thread);
    if (a && b) {
        memcpy(a->hints, b->hints, sizeof a->hints);
        a->priority = b->priority;
    }
    gpu_unlock();
    return a && b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

GPU_API(cuStreamCreate, (CUstream *s, unsigned flags), GPU_NEED_CTX, create(s, flags, 0))
GPU_API(cuStreamCreateWithPriority, (CUstream *s, unsigned flags, int priority), GPU_NEED_CTX,
        create(s, flags, priority))
GPU_API(cuStreamDestroy_v2, (CUstream s), GPU_NEED_CTX, destroy(s))
GPU_API_BOTH(cuStreamSynchronize, _ptsz, (CUstream s), synchronize(s, per_thread))
GPU_API_BOTH(cuStreamQuery, _ptsz, (CUstream s), query(s, per_thread))
GPU_API_BOTH(cuStreamGetPriority, _ptsz, (CUstream s, int *out), ask(s, per_thread, ASK_PRIORITY, out))
GPU_API_BOTH(cuStreamGetFlags, _ptsz, (CUstream s, unsigned *out), ask(s, per_thread, ASK_FLAGS, out))
GPU_API_BOTH(cuStreamGetId, _ptsz, (CUstream s, unsigned long long *out), ask(s, per_thread, ASK_ID, out))
GPU_API_BOTH(cuStreamGetCtx, _ptsz, (CUstream s, CUcontext *out), ask(s, per_thread, ASK_CTX, out))
GPU_API_BOTH(cuStreamGetCtx_v2, _ptsz, (CUstream s, CUcontext *out, CUgreenCtx *green),
             ask_ctx_v2(s, per_thread, out, green))
GPU_API_BOTH(cuStreamGetDevice, _ptsz, (CUstream s, CUdevice *out), ask(s, per_thread, ASK_DEVICE, out))
GPU_API_BOTH(cuStreamGetAttribute, _ptsz, (CUstream s, CUstreamAttrID id, CUstreamAttrValue *value),
             attribute(s, per_thread, id, value, NULL))
GPU_API_BOTH(cuStreamSetAttribute, _ptsz, (CUstream s, CUstreamAttrID id, const CUstreamAttrValue *value),
             attribute(s, per_thread, id, NULL, value))
GPU_API_BOTH(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from), copy_attributes(to, from, per_thread))
