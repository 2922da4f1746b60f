/*
 * Green contexts: contexts with a share of a device's multiprocessors. Each has a default stream and streams of its own; what is
 * allocated or loaded in one is its primary context's, which it keeps alive. A green context is no CUcontext to any call before
 * cuCtxFromGreenCtx has been asked for it. How many multiprocessors there are changes nothing here but what is told.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu_graph.h"

enum { SM_COUNT = 108, SM_LEAST = 4, SM_ALIGN = 2 };

/* What a resource is, where NVIDIA's driver has its own: in the padding. */
typedef struct {
    uint64_t magic;
    CUdevice device;
    unsigned split; /* which call of cuDevSmResourceSplitByCount made it; 0: none */
} origin;
static const uint64_t MAGIC = 0x7265736f75726365u;

struct CUdevResourceDesc_st {
    CUdevice device;
    unsigned sms;
};

struct CUgreenCtx_st {
    CUcontext ctx;
    unsigned sms;
    bool converted;
};

static unsigned splits;

static CUresult sm_resource(CUdevice dev, CUdevResource *out, CUdevResourceType type, unsigned sms, unsigned split)
{
    const origin o = { MAGIC, dev, split };
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    memset(out, 0, sizeof *out);
    out->type = type;
    memcpy(out->_internal_padding, &o, sizeof o);
    out->sm = (CUdevSmResource){ sms, SM_LEAST, SM_ALIGN };
    return CUDA_SUCCESS;
}

static CUresult origin_of(const CUdevResource *r, origin *o)
{
    memcpy(o, r->_internal_padding, sizeof *o);
    return r->type != CU_DEV_RESOURCE_TYPE_SM || o->magic != MAGIC ? CUDA_ERROR_INVALID_RESOURCE_TYPE : CUDA_SUCCESS;
}

static CUresult of_device(CUdevice dev, CUdevResource *out, CUdevResourceType type)
{
    return gpu_device_known(dev) ? sm_resource(dev, out, type, SM_COUNT, 0) : CUDA_ERROR_INVALID_DEVICE;
}

/* *groups alike of at least so many each, and what is left. */
static CUresult split(CUdevResource *result, unsigned *groups, const CUdevResource *in, CUdevResource *rest, unsigned flags, unsigned least)
{
    origin o;
    if (!groups || !in || flags > (CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult e = origin_of(in, &o);
    if (e)
        return e;
    if (o.split)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION; /* not before a green context has been made of it */
    if (least > in->sm.smCount || (result && !*groups))
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned each = least < SM_LEAST ? SM_LEAST : (least + SM_ALIGN - 1) / SM_ALIGN * SM_ALIGN;
    unsigned n = in->sm.smCount / each;
    n = result && *groups < n ? *groups : n;
    gpu_lock();
    const unsigned id = ++splits;
    gpu_unlock();
    for (unsigned i = 0; result && i < n; i++)
        sm_resource(o.device, &result[i], CU_DEV_RESOURCE_TYPE_SM, each, id);
    if (rest)
        sm_resource(o.device, rest, CU_DEV_RESOURCE_TYPE_SM, in->sm.smCount - n * each, id);
    *groups = n;
    return CUDA_SUCCESS;
}

static CUresult describe(CUdevResourceDesc *out, const CUdevResource *r, unsigned n)
{
    origin first, o;
    unsigned sms = 0;
    if (!out || !r || !n)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        CUresult e = origin_of(&r[i], &o);
        if (e)
            return e;
        first = i ? first : o;
        if (i && (o.device != first.device || !o.split || o.split != first.split))
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        sms += r[i].sm.smCount;
    }
    CUdevResourceDesc d = malloc(sizeof *d);
    if (!d)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *d = (struct CUdevResourceDesc_st){ first.device, sms };
    gpu_lock();
    CUresult e = gpu_handle_add(d, GPU_RESOURCES);
    gpu_unlock();
    if (e)
        free(d);
    else
        *out = d;
    return e;
}

/* Under gpu_lock. */
static CUgreenCtx known(CUgreenCtx g) { return gpu_handle_kind(g) == GPU_GREEN ? g : NULL; }

static CUresult create(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice dev, unsigned flags)
{
    if (!out || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    CUgreenCtx g = calloc(1, sizeof *g);
    if (!g)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUresult e = gpu_handle_kind(desc) != GPU_RESOURCES || desc->device != dev ? CUDA_ERROR_INVALID_VALUE : gpu_ctx_green_begin(dev, g, &g->ctx);
    if (!e) {
        g->sms = desc->sms;
        if ((e = gpu_handle_add(g, GPU_GREEN)))
            gpu_ctx_green_end(g->ctx);
    }
    gpu_unlock();
    if (e)
        free(g);
    else
        *out = g;
    return e;
}

/* The object stays, so that an old handle is recognised. */
static CUresult destroy(CUgreenCtx g)
{
    gpu_lock();
    CUresult e = !known(g) ? CUDA_ERROR_INVALID_CONTEXT : !g->ctx->alive ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
    if (!e)
        gpu_ctx_green_end(g->ctx);
    gpu_unlock();
    return e;
}

static CUresult as_context(CUcontext *out, CUgreenCtx g)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUresult e = !known(g) || !g->ctx->alive ? CUDA_ERROR_INVALID_CONTEXT : g->converted ? CUDA_SUCCESS : gpu_handle_add(g->ctx, GPU_CTX);
    if (!e) {
        g->converted = true;
        *out = g->ctx;
    }
    gpu_unlock();
    return e;
}

static CUresult stream_create(CUstream *out, CUgreenCtx g, unsigned flags, int priority)
{
    if (!out || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUresult e = !known(g) || !g->ctx->alive ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    CUstream s = e ? NULL : gpu_stream_new(g->ctx, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    if (!e && !(e = s ? gpu_handle_add(s, GPU_STREAM) : CUDA_ERROR_OUT_OF_MEMORY))
        *out = s;
    else if (s)
        gpu_stream_close(s);
    gpu_unlock();
    return e;
}

static CUresult of_green(CUgreenCtx g, CUdevResource *out, CUdevResourceType type)
{
    gpu_lock();
    CUresult e = known(g) && g->ctx->alive ? sm_resource(g->ctx->device, out, type, g->sms, 0) : CUDA_ERROR_INVALID_CONTEXT;
    gpu_unlock();
    return e;
}

static CUresult of_context(CUcontext c, CUdevResource *out, CUdevResourceType type)
{
    gpu_lock();
    CUresult e = gpu_handle_kind(c) == GPU_CTX ? sm_resource(c->device, out, type, c->green ? c->green->sms : SM_COUNT, 0) : CUDA_ERROR_INVALID_CONTEXT;
    gpu_unlock();
    return e;
}

static CUresult green_of_stream(CUstream h, CUgreenCtx *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, false);
    if (s)
        *out = s->ctx->green;
    gpu_unlock();
    return s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult id_of(CUgreenCtx g, unsigned long long *out)
{
    CUcontext here = gpu_ctx_current();
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    g = g ? g : here ? here->green : NULL;
    gpu_lock();
    CUresult e = !known(g) ? CUDA_ERROR_INVALID_CONTEXT : !g->ctx->alive ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
    if (!e)
        *out = g->ctx->id;
    gpu_unlock();
    return e;
}

GPU_API(cuDeviceGetDevResource, (CUdevice dev, CUdevResource *r, CUdevResourceType type), GPU_NEED_INIT, of_device(dev, r, type))
GPU_API(cuCtxGetDevResource, (CUcontext c, CUdevResource *r, CUdevResourceType type), GPU_NEED_INIT, of_context(c, r, type))
GPU_API(cuGreenCtxGetDevResource, (CUgreenCtx g, CUdevResource *r, CUdevResourceType type), GPU_NEED_INIT, of_green(g, r, type))
GPU_API(cuDevSmResourceSplitByCount, (CUdevResource *result, unsigned *n, const CUdevResource *in, CUdevResource *rest, unsigned flags, unsigned least),
        GPU_NEED_INIT, split(result, n, in, rest, flags, least))
GPU_API(cuDevResourceGenerateDesc, (CUdevResourceDesc *desc, CUdevResource *r, unsigned n), GPU_NEED_INIT, describe(desc, r, n))
GPU_API(cuGreenCtxCreate, (CUgreenCtx *g, CUdevResourceDesc desc, CUdevice dev, unsigned flags), GPU_NEED_INIT, create(g, desc, dev, flags))
GPU_API(cuGreenCtxDestroy, (CUgreenCtx g), GPU_NEED_INIT, destroy(g))
GPU_API(cuCtxFromGreenCtx, (CUcontext *c, CUgreenCtx g), GPU_NEED_INIT, as_context(c, g))
GPU_API(cuGreenCtxStreamCreate, (CUstream *s, CUgreenCtx g, unsigned flags, int priority), GPU_NEED_INIT, stream_create(s, g, flags, priority))
GPU_API(cuStreamGetGreenCtx, (CUstream s, CUgreenCtx *g), GPU_NEED_CTX, green_of_stream(s, g))
GPU_API(cuGreenCtxGetId, (CUgreenCtx g, unsigned long long *id), GPU_NEED_INIT, id_of(g, id))
