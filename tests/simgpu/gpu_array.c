/*
 * Arrays: device memory in rows that the copy calls reach, and kernels by textures and surfaces.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu.h"

static size_t format_bytes(CUarray_format f)
{
    switch (f) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
    }
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    if (!out || !d || !d->Width || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4) ||
        (d->Depth && !d->Height && !(d->Flags & CUDA_ARRAY3D_LAYERED)))
        return CUDA_ERROR_INVALID_VALUE;
    size_t element = format_bytes(d->Format) * d->NumChannels;
    if (!element || d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (d->Width > 131072 || d->Height > 65536 || d->Depth > 16384)
        return CUDA_ERROR_INVALID_VALUE;
    CUarray a = calloc(1, sizeof *a);
    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;
    a->desc = *d;
    a->ctx = gpu_ctx_owner(gpu_ctx_current());
    a->element_bytes = element;
    a->row_bytes = d->Width * element;
    a->rows = d->Height ? d->Height : 1;
    a->slices = d->Depth ? d->Depth : 1;
    CUresult e = gpu_alloc_linear(&a->va, a->row_bytes * a->rows * a->slices);
    if (!e) {
        gpu_lock();
        e = gpu_handle_add(a, GPU_ARRAY);
        if (e)
            gpu_alloc_release(gpu_range_find(a->va));
        gpu_unlock();
    }
    if (e)
        free(a);
    else
        *out = a;
    return e;
}

static CUresult create_2d(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR full = { d->Width, d->Height, 0, d->Format, d->NumChannels, 0 };
    return create(out, &full);
}

static CUresult destroy(CUarray a)
{
    gpu_lock();
    CUresult e = gpu_handle_kind(a) == GPU_ARRAY ? gpu_ctx_wait_host(a->ctx) : CUDA_ERROR_INVALID_HANDLE;
    if (!e) {
        gpu_handle_drop(a);
        gpu_alloc_release(gpu_range_find(a->va));
        free(a);
    }
    gpu_unlock();
    return e;
}

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *full, CUDA_ARRAY_DESCRIPTOR *flat, CUarray a)
{
    if (!full && !flat)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    bool ok = gpu_handle_kind(a) == GPU_ARRAY;
    if (ok && full)
        *full = a->desc;
    else if (ok)
        *flat = (CUDA_ARRAY_DESCRIPTOR){ a->desc.Width, a->desc.Height, a->desc.Format, a->desc.NumChannels };
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static void free_of_ctx(void *h, void *ctx)
{
    CUarray a = h;
    if (a->ctx != ctx)
        return;
    gpu_handle_drop(a);
    free(a); /* its memory goes with the context's */
}

void gpu_array_free_ctx(CUcontext ctx)
{
    gpu_handle_each(GPU_ARRAY, free_of_ctx, ctx);
}

GPU_API(cuArrayCreate_v2, (CUarray *a, const CUDA_ARRAY_DESCRIPTOR *d), GPU_NEED_CTX, create_2d(a, d))
GPU_API(cuArray3DCreate_v2, (CUarray *a, const CUDA_ARRAY3D_DESCRIPTOR *d), GPU_NEED_CTX, create(a, d))
GPU_API(cuArrayDestroy, (CUarray a), GPU_NEED_CTX, destroy(a))
GPU_API(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR *d, CUarray a), GPU_NEED_CTX, describe(NULL, d, a))
GPU_API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR *d, CUarray a), GPU_NEED_CTX, describe(d, NULL, a))
