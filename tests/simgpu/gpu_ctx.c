/*
 * Contexts: each device's primary one and those a program creates; which is current is a stack per thread. Green ones: gpu_green.c.
 *
 * A destroyed context's object is kept, so that an old handle is recognised and answered with
 * CUDA_ERROR_CONTEXT_IS_DESTROYED (the primary one comes back to life when it is retained again).
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu_graph.h"

enum { STACK = 64 };
static __thread CUcontext stack[STACK];
static __thread unsigned depth;

static struct CUctx_st primaries[GPU_MAX_DEVICES];
static unsigned long long last_id;

CUcontext gpu_ctx_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult gpu_ctx_health(CUcontext ctx)
{
    return !ctx->alive ? CUDA_ERROR_CONTEXT_IS_DESTROYED : ctx->sticky;
}

void gpu_ctx_fail(CUcontext ctx, CUresult why)
{
    CUcontext all = gpu_ctx_owner(ctx);
    if (!all->sticky)
        all->sticky = why;
    for (CUcontext g = all->greens; g; g = g->next_green)
        if (!g->sticky)
            g->sticky = why;
    gpu_exec_progress();
}

static CUresult start(CUcontext ctx)
{
    static const size_t limits[] = { [CU_LIMIT_STACK_SIZE] = 1024,
                                     [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
                                     [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
                                     [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
                                     [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
                                     [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64 };
    memcpy(ctx->limits, limits, sizeof limits);
    ctx->sticky = CUDA_SUCCESS;
    ctx->id = ++last_id;
    ctx->streams = NULL;
    ctx->legacy = gpu_stream_new(ctx, CU_STREAM_DEFAULT, 0);
    if (!ctx->legacy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ctx->legacy->is_legacy = true;
    ctx->legacy->blocking = false;
    ctx->alive = true;
    return CUDA_SUCCESS;
}

static void close_stream(void *h, void *arg)
{
    if (((CUstream)h)->ctx == arg)
        gpu_stream_close(h);
}

/* Waits for the context's work, then frees all it owns. */
static void stop(CUcontext ctx)
{
    ctx->alive = false; /* nothing new from other threads */
    gpu_ctx_wait_host(ctx);
    gpu_exec_drain(ctx);
    for (CUcontext g = ctx->greens; g; g = g->next_green)
        if (g->alive)
            stop(g);
    gpu_handle_each(GPU_STREAM, close_stream, ctx);
    for (CUstream s = ctx->streams, next; s; s = next) {
        next = s->next_in_ctx;
        gpu_stream_close(s); /* the legacy stream and the threads' own: they have no handle */
    }
    ctx->legacy = NULL;
    if (ctx->of)
        return;
    gpu_pool_free_ctx(ctx);
    gpu_array_free_ctx(ctx);
    gpu_alloc_free_ctx(ctx);
    gpu_module_free_ctx(ctx);
}

static bool known(CUcontext ctx)
{
    return gpu_handle_kind(ctx) == GPU_CTX;
}

static CUresult push(CUcontext ctx)
{
    if (depth == STACK)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = ctx;
    return CUDA_SUCCESS;
}

/* ---- the primary context ------------------------------------------------------------------------------------ */

static CUresult retain(CUcontext *out, CUdevice dev)
{
    CUresult r = CUDA_SUCCESS;
    CUcontext ctx = &primaries[dev];
    if (!ctx->primary && !(r = gpu_handle_add(ctx, GPU_CTX))) {
        ctx->primary = true;
        ctx->device = dev;
    }
    if (!r && !ctx->alive)
        r = start(ctx);
    if (!r) {
        ctx->primary_refs++;
        *out = ctx;
    }
    return r;
}

static CUresult primary_retain(CUcontext *out, CUdevice dev)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    gpu_lock();
    CUresult r = retain(out, dev);
    gpu_unlock();
    return r;
}

CUresult gpu_ctx_green_begin(CUdevice dev, CUgreenCtx green, CUcontext *out)
{
    CUcontext of, ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = retain(&of, dev);
    if (r) {
        free(ctx);
        return r;
    }
    ctx->device = dev;
    ctx->of = of;
    ctx->green = green;
    if ((r = start(ctx))) {
        if (--of->primary_refs == 0)
            stop(of);
        free(ctx);
        return r;
    }
    ctx->sticky = of->sticky;
    ctx->next_green = of->greens;
    of->greens = ctx;
    *out = ctx;
    return CUDA_SUCCESS;
}

void gpu_ctx_green_end(CUcontext ctx)
{
    stop(ctx);
    if (ctx->of->alive && ctx->of->primary_refs && --ctx->of->primary_refs == 0)
        stop(ctx->of);
}

static CUresult primary_release(CUdevice dev)
{
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    gpu_lock();
    CUresult r = CUDA_SUCCESS;
    if (!primaries[dev].alive || !primaries[dev].primary_refs)
        r = CUDA_ERROR_INVALID_CONTEXT;
    else if (--primaries[dev].primary_refs == 0)
        stop(&primaries[dev]);
    gpu_unlock();
    return r;
}

static CUresult primary_reset(CUdevice dev)
{
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    gpu_lock();
    CUresult r = CUDA_SUCCESS;
    if (primaries[dev].alive) {
        /* the references stay: the program's next use of the handle finds a fresh context */
        stop(&primaries[dev]);
        r = primaries[dev].primary_refs ? start(&primaries[dev]) : CUDA_SUCCESS;
    }
    gpu_unlock();
    return r;
}

static CUresult check_flags(unsigned flags)
{
    unsigned sched = flags & CU_CTX_SCHED_MASK;
    return flags & ~(unsigned)CU_CTX_FLAGS_MASK || (sched & (sched - 1)) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult primary_set_flags(CUdevice dev, unsigned flags)
{
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult r = check_flags(flags);
    if (!r)
        primaries[dev].flags = flags;
    return r;
}

static CUresult primary_state(CUdevice dev, unsigned *flags, int *active)
{
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    *flags = primaries[dev].flags;
    *active = primaries[dev].alive;
    gpu_unlock();
    return CUDA_SUCCESS;
}

GPU_API(cuDevicePrimaryCtxRetain, (CUcontext *ctx, CUdevice dev), GPU_NEED_INIT, primary_retain(ctx, dev))
GPU_API(cuDevicePrimaryCtxRelease, (CUdevice dev), GPU_NEED_INIT, primary_release(dev))
GPU_API(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), GPU_NEED_INIT, primary_release(dev))
GPU_API(cuDevicePrimaryCtxReset, (CUdevice dev), GPU_NEED_INIT, primary_reset(dev))
GPU_API(cuDevicePrimaryCtxReset_v2, (CUdevice dev), GPU_NEED_INIT, primary_reset(dev))
GPU_API(cuDevicePrimaryCtxSetFlags, (CUdevice dev, unsigned flags), GPU_NEED_INIT, primary_set_flags(dev, flags))
GPU_API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned flags), GPU_NEED_INIT,
        primary_set_flags(dev, flags))
GPU_API(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned *flags, int *active), GPU_NEED_INIT,
        primary_state(dev, flags, active))

/* ---- contexts of the program -------------------------------------------------------------------------------- */

static CUresult create(CUcontext *out, unsigned flags, CUdevice dev)
{
    if (!out || check_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (depth == STACK) /* asked first: a context that has begun cannot just be freed */
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUcontext ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    ctx->flags = flags;
    ctx->device = dev;
    ctx->attached = 1;
    CUresult r = gpu_handle_add(ctx, GPU_CTX);
    if (!r && (r = start(ctx)))
        gpu_handle_drop(ctx);
    if (!r)
        r = push(ctx);
    gpu_unlock();
    if (!r)
        *out = ctx;
    else
        free(ctx);
    return r;
}

static CUresult destroy(CUcontext ctx)
{
    gpu_lock();
    CUresult r = CUDA_SUCCESS;
    if (!known(ctx) || ctx->primary || ctx->of)
        r = CUDA_ERROR_INVALID_CONTEXT;
    else if (!ctx->alive)
        r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    else
        stop(ctx);
    gpu_unlock();
    if (!r && gpu_ctx_current() == ctx)
        depth--;
    return r;
}

static CUresult attach(CUcontext *out, unsigned flags)
{
    CUcontext ctx = gpu_ctx_current();
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    ctx->attached++;
    *out = ctx;
    return CUDA_SUCCESS;
}

/* The last one destroys it; it must be current. */
static CUresult detach(CUcontext ctx)
{
    gpu_lock();
    bool ok = known(ctx) && ctx == gpu_ctx_current() && ctx->attached > 0;
    bool last = ok && --ctx->attached == 0;
    gpu_unlock();
    return !ok ? CUDA_ERROR_INVALID_CONTEXT : last && !ctx->primary && !ctx->of ? destroy(ctx) : CUDA_SUCCESS;
}

GPU_API(cuCtxAttach, (CUcontext *ctx, unsigned flags), GPU_NEED_CTX, attach(ctx, flags))
GPU_API(cuCtxDetach, (CUcontext ctx), GPU_NEED_CTX, detach(ctx))
GPU_API(cuCtxCreate_v2, (CUcontext *ctx, unsigned flags, CUdevice dev), GPU_NEED_INIT, create(ctx, flags, dev))
GPU_API(cuCtxCreate_v3, (CUcontext *ctx, CUexecAffinityParam *affinity, int n, unsigned flags, CUdevice dev),
        GPU_NEED_INIT, affinity || n ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(ctx, flags, dev))
GPU_API(cuCtxCreate_v4, (CUcontext *ctx, CUctxCreateParams *params, unsigned flags, CUdevice dev), GPU_NEED_INIT,
        params && (params->numExecAffinityParams || params->cigParams) ? CUDA_ERROR_NOT_SUPPORTED
                                                                       : create(ctx, flags, dev))
GPU_API(cuCtxDestroy_v2, (CUcontext ctx), GPU_NEED_INIT, destroy(ctx))

/* ---- which one is current --------------------------------------------------------------------------------------- */

static CUresult push_current(CUcontext ctx)
{
    gpu_lock();
    bool ok = known(ctx);
    gpu_unlock();
    return ok ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult pop_current(CUcontext *out)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (out)
        *out = stack[depth];
    return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext ctx)
{
    if (!ctx) {
        depth -= depth > 0;
        return CUDA_SUCCESS;
    }
    gpu_lock();
    bool ok = known(ctx);
    gpu_unlock();
    if (!ok)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth -= depth > 0;
    return push(ctx);
}

static CUresult get_current(CUcontext *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = gpu_ctx_current();
    return CUDA_SUCCESS;
}

GPU_API(cuCtxPushCurrent_v2, (CUcontext ctx), GPU_NEED_INIT, push_current(ctx))
GPU_API(cuCtxPopCurrent_v2, (CUcontext *ctx), GPU_NEED_INIT, pop_current(ctx))
GPU_API(cuCtxSetCurrent, (CUcontext ctx), GPU_NEED_INIT, set_current(ctx))
GPU_API(cuCtxGetCurrent, (CUcontext *ctx), GPU_NEED_INIT, get_current(ctx))

/* ---- questions and settings ---------------------------------------------------------------------------------- */

/* The context a call means: the one named, else the current one. */
static CUresult pick(CUcontext *ctx)
{
    bool ok = true;
    if (*ctx) {
        gpu_lock();
        ok = known(*ctx);
        gpu_unlock();
    } else
        ok = (*ctx = gpu_ctx_current()) != NULL;
    return ok ? gpu_ctx_health(*ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult synchronize(CUcontext ctx)
{
    CUresult r = pick(&ctx);
    if (r)
        return r;
    gpu_lock();
    r = gpu_capture_may_wait_ctx(ctx);
    if (!r)
        r = gpu_ctx_wait_host(ctx);
    gpu_unlock();
    return r;
}

static CUresult get_device(CUdevice *dev, CUcontext ctx)
{
    CUresult r = pick(&ctx);
    if (r)
        return r;
    if (!dev)
        return CUDA_ERROR_INVALID_VALUE;
    *dev = ctx->device;
    return CUDA_SUCCESS;
}

static CUresult get_flags(unsigned *flags)
{
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = gpu_ctx_current()->flags;
    return CUDA_SUCCESS;
}

static CUresult set_flags(unsigned flags)
{
    CUresult r = check_flags(flags);
    if (!r)
        gpu_ctx_current()->flags = flags;
    return r;
}

static CUresult get_id(CUcontext ctx, unsigned long long *id)
{
    CUresult r = pick(&ctx);
    if (r)
        return r;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = ctx->id;
    return CUDA_SUCCESS;
}

static CUresult limit(CUlimit which, size_t *get, const size_t *set)
{
    CUcontext ctx = gpu_ctx_current();
    if ((unsigned)which > CU_LIMIT_PERSISTING_L2_CACHE_SIZE || which == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (set)
        ctx->limits[which] = *set;
    else if (get)
        *get = ctx->limits[which];
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult api_version(CUcontext ctx, unsigned *version)
{
    CUresult r = pick(&ctx);
    if (r)
        return r;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
}

static CUresult priority_range(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

#define GET_OR_INVALID(out, value) ((out) ? (*(out) = (value), CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE)

GPU_API(cuCtxSynchronize, (void), GPU_NEED_CTX, synchronize(NULL))
GPU_API(cuCtxSynchronize_v2, (CUcontext ctx), GPU_NEED_INIT, synchronize(ctx))
GPU_API(cuCtxGetDevice, (CUdevice *dev), GPU_NEED_CTX, get_device(dev, NULL))
GPU_API(cuCtxGetDevice_v2, (CUdevice *dev, CUcontext ctx), GPU_NEED_INIT, get_device(dev, ctx))
GPU_API(cuCtxGetFlags, (unsigned *flags), GPU_NEED_CTX, get_flags(flags))
GPU_API(cuCtxSetFlags, (unsigned flags), GPU_NEED_CTX, set_flags(flags))
GPU_API(cuCtxGetId, (CUcontext ctx, unsigned long long *id), GPU_NEED_INIT, get_id(ctx, id))
GPU_API(cuCtxGetLimit, (size_t *value, CUlimit which), GPU_NEED_CTX, limit(which, value, NULL))
GPU_API(cuCtxSetLimit, (CUlimit which, size_t value), GPU_NEED_CTX, limit(which, NULL, &value))
GPU_API(cuCtxGetCacheConfig, (CUfunc_cache *config), GPU_NEED_CTX,
        GET_OR_INVALID(config, gpu_ctx_current()->cache_config))
GPU_API(cuCtxSetCacheConfig, (CUfunc_cache config), GPU_NEED_CTX,
        (gpu_ctx_current()->cache_config = config, CUDA_SUCCESS))
GPU_API(cuCtxGetSharedMemConfig, (CUsharedconfig *config), GPU_NEED_CTX,
        GET_OR_INVALID(config, gpu_ctx_current()->shared_config))
GPU_API(cuCtxSetSharedMemConfig, (CUsharedconfig config), GPU_NEED_CTX,
        (gpu_ctx_current()->shared_config = config, CUDA_SUCCESS))
GPU_API(cuCtxGetApiVersion, (CUcontext ctx, unsigned *version), GPU_NEED_INIT, api_version(ctx, version))
GPU_API(cuCtxGetStreamPriorityRange, (int *least, int *greatest), GPU_NEED_CTX, priority_range(least, greatest))
GPU_API(cuCtxResetPersistingL2Cache, (void), GPU_NEED_CTX, CUDA_SUCCESS)
GPU_API(cuProfilerStart, (void), GPU_NEED_CTX, (gpu_stats_profile(true), CUDA_SUCCESS))
GPU_API(cuProfilerStop, (void), GPU_NEED_CTX, (gpu_stats_profile(false), CUDA_SUCCESS))

/* Kernels of the current context may use the memory of the other one's device; that of pools, and what the program maps, is opened by other calls.
 * (That it is mapped memory is not looked at: such a kernel gets away with it.) */
static CUresult set_peer(CUcontext peer, unsigned flags, bool on)
{
    CUcontext here = gpu_ctx_owner(gpu_ctx_current());
    gpu_lock();
    const unsigned bit = known(peer) ? 1u << peer->device : 0;
    CUresult e = flags                             ? CUDA_ERROR_INVALID_VALUE
                 : !bit                            ? CUDA_ERROR_INVALID_CONTEXT
                 : on && peer->device == here->device ? CUDA_ERROR_INVALID_DEVICE
                 : on && !gpu_cfg.peers            ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
                 : on && here->peers & bit         ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
                 : !on && !(here->peers & bit)     ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
                                                   : CUDA_SUCCESS;
    if (!e)
        here->peers ^= bit;
    gpu_unlock();
    return e;
}

GPU_API(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags), GPU_NEED_CTX, set_peer(peer, flags, true))
GPU_API(cuCtxDisablePeerAccess, (CUcontext peer), GPU_NEED_CTX, set_peer(peer, 0, false))
