/*
 * Texture and surface objects. A kernel takes a handle of 64 bits in place of an address; what it looks like is the driver's affair. Here it is the
 * address of what it shows, scrambled as in a tensor map, so that nobody can find it by reading it as an address: simgpu_tensor_map_address()
 * (simgpu.h) reads it in a kernel. Two objects over one place have the same handle, and each is destroyed for itself. Filtering,
 * address modes and normalised reading are checked and change nothing; of a mipmapped array it shows where the first level begins.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu.h"
#include "tests/simgpu/simgpu.h"

enum { TEXTURE_ALIGN = 512, PITCH_ALIGN = 32 };

typedef struct object {
    uint64_t handle;
    bool surface;
    CUDA_RESOURCE_DESC shows;
    CUDA_TEXTURE_DESC how;
    struct object *next;
} object;
static object *objects;

static bool is_format(CUarray_format f)
{
    switch (f) {
    case CU_AD_FORMAT_UNSIGNED_INT8: case CU_AD_FORMAT_UNSIGNED_INT16: case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT8: case CU_AD_FORMAT_SIGNED_INT16: case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_HALF: case CU_AD_FORMAT_FLOAT:
        return true;
    default:
        return false;
    }
}

static bool is_channels(unsigned n) { return n == 1 || n == 2 || n == 4; }

/* All of it is device memory, and mapped. Under gpu_lock. */
static bool is_there(CUdeviceptr at, size_t bytes)
{
    gpu_range *r = gpu_range_find(at);
    if (!bytes || !r || (r->kind != GPU_RANGE_LINEAR && r->kind != GPU_RANGE_POOL && r->kind != GPU_RANGE_IMPORTED && r->kind != GPU_RANGE_MANAGED && r->kind != GPU_RANGE_RESERVATION))
        return false;
    if (r->kind != GPU_RANGE_RESERVATION)
        return at - r->start <= r->bytes && bytes <= r->bytes - (at - r->start);
    for (CUdeviceptr p = at; p < at + bytes;) {
        const gpu_mapping *m = gpu_range_find(p) == r ? gpu_range_mapping(r, p) : NULL;
        if (!m)
            return false;
        p = m->va + m->bytes;
    }
    return true;
}

/* The address that it shows; 0: it is none that can be shown. Under gpu_lock. */
static CUdeviceptr place_of(const CUDA_RESOURCE_DESC *r, bool surface)
{
    const CUarray a = r->res.array.hArray;
    const CUmipmappedArray m = r->res.mipmap.hMipmappedArray;
    if (r->flags)
        return 0;
    switch (r->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return gpu_handle_kind(a) == GPU_ARRAY && (!surface || a->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST) ? a->va : 0;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return !surface && gpu_handle_kind(m) == GPU_MIPMAP ? m->va : 0;
    case CU_RESOURCE_TYPE_LINEAR:
        return !surface && is_format(r->res.linear.format) && is_channels(r->res.linear.numChannels) && r->res.linear.devPtr % TEXTURE_ALIGN == 0 &&
                       is_there(r->res.linear.devPtr, r->res.linear.sizeInBytes)
                   ? r->res.linear.devPtr
                   : 0;
    case CU_RESOURCE_TYPE_PITCH2D:
        return !surface && is_format(r->res.pitch2D.format) && is_channels(r->res.pitch2D.numChannels) && r->res.pitch2D.devPtr % TEXTURE_ALIGN == 0 &&
                       r->res.pitch2D.pitchInBytes % PITCH_ALIGN == 0 && r->res.pitch2D.width && r->res.pitch2D.height && r->res.pitch2D.height <= 65536 &&
                       is_there(r->res.pitch2D.devPtr, r->res.pitch2D.pitchInBytes * (r->res.pitch2D.height - 1) + r->res.pitch2D.width)
                   ? r->res.pitch2D.devPtr
                   : 0;
    default:
        return 0;
    }
}

static bool is_way(const CUDA_TEXTURE_DESC *t)
{
    const unsigned flags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
    bool ok = t && !(t->flags & ~flags) && t->filterMode <= CU_TR_FILTER_MODE_LINEAR && t->mipmapFilterMode <= CU_TR_FILTER_MODE_LINEAR;
    for (int i = 0; ok && i < 3; i++)
        ok = t->addressMode[i] <= CU_TR_ADDRESS_MODE_BORDER;
    return ok;
}

static CUresult create(unsigned long long *out, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t, bool surface)
{
    if (!out || !r || (!surface && !is_way(t)))
        return CUDA_ERROR_INVALID_VALUE;
    object *o = calloc(1, sizeof *o);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    const CUdeviceptr at = place_of(r, surface);
    if (at) {
        o->handle = simgpu_tensor_map_scramble(at);
        o->surface = surface;
        o->shows = *r;
        if (t)
            o->how = *t;
        o->next = objects;
        objects = o;
        *out = o->handle;
    }
    gpu_unlock();
    if (!at)
        free(o);
    return at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static object **find(uint64_t handle, bool surface)
{
    object **at = &objects;
    while (*at && ((*at)->handle != handle || (*at)->surface != surface))
        at = &(*at)->next;
    return at;
}

static CUresult destroy(uint64_t handle, bool surface)
{
    gpu_lock();
    object **at = find(handle, surface), *o = *at;
    if (o)
        *at = o->next;
    gpu_unlock();
    free(o);
    return o ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult describe(uint64_t handle, bool surface, CUDA_RESOURCE_DESC *shows, CUDA_TEXTURE_DESC *how)
{
    gpu_lock();
    const object *o = shows || how ? *find(handle, surface) : NULL;
    if (o && shows)
        *shows = o->shows;
    if (o && how)
        *how = o->how;
    gpu_unlock();
    return o ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuTexObjectCreate, (CUtexObject *t, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d, const CUDA_RESOURCE_VIEW_DESC *v), GPU_NEED_CTX,
        v ? CUDA_ERROR_NOT_SUPPORTED : create(t, r, d, false))
GPU_API(cuTexObjectDestroy, (CUtexObject t), GPU_NEED_CTX, destroy(t, false))
GPU_API(cuTexObjectGetResourceDesc, (CUDA_RESOURCE_DESC *r, CUtexObject t), GPU_NEED_CTX, describe(t, false, r, NULL))
GPU_API(cuTexObjectGetTextureDesc, (CUDA_TEXTURE_DESC *d, CUtexObject t), GPU_NEED_CTX, describe(t, false, NULL, d))
GPU_API(cuSurfObjectCreate, (CUsurfObject *s, const CUDA_RESOURCE_DESC *r), GPU_NEED_CTX, create(s, r, NULL, true))
GPU_API(cuSurfObjectDestroy, (CUsurfObject s), GPU_NEED_CTX, destroy(s, true))
GPU_API(cuSurfObjectGetResourceDesc, (CUDA_RESOURCE_DESC *r, CUsurfObject s), GPU_NEED_CTX, describe(s, true, r, NULL))
