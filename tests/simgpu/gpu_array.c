/*
 * Arrays: device memory in rows that the copy calls reach, and kernels by textures and surfaces. A mipmapped one is a row of arrays, its levels, in one
 * piece of memory.
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

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    if (!d || !d->Width || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4) ||
        (d->Depth && !d->Height && !(d->Flags & CUDA_ARRAY3D_LAYERED)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!format_bytes(d->Format) || d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (d->Width > 131072 || d->Height > 65536 || d->Depth > 16384)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* All of it but where it lies. */
static struct CUarray_st describes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    const size_t element = format_bytes(d->Format) * d->NumChannels;
    return (struct CUarray_st){ .desc = *d, .ctx = gpu_ctx_owner(gpu_ctx_current()), .element_bytes = element, .row_bytes = d->Width * element,
                                .rows = d->Height ? d->Height : 1, .slices = d->Depth ? d->Depth : 1 };
}

static size_t bytes_of(const struct CUarray_st *a)
{
    return a->row_bytes * a->rows * a->slices;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    CUresult e = out ? check(d) : CUDA_ERROR_INVALID_VALUE;
    if (e)
        return e;
    CUarray a = calloc(1, sizeof *a);
    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *a = describes(d);
    e = gpu_alloc_linear(&a->va, bytes_of(a));
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
    CUresult e = gpu_handle_kind(a) == GPU_ARRAY && !a->of ? gpu_ctx_wait_host(a->ctx) : CUDA_ERROR_INVALID_HANDLE; /* a level goes with the others */
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

/* ---- mipmapped -------------------------------------------------------------------------------------------------------------------- */

enum { LEVEL_ALIGN = 512 };

static unsigned halved(unsigned n, unsigned level)
{
    return !n ? 0 : n >> level ? n >> level : 1;
}

static CUresult create_levels(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
    CUresult e = out ? check(d) : CUDA_ERROR_INVALID_VALUE;
    CUmipmappedArray m = e ? NULL : calloc(1, sizeof *m);
    if (!m)
        return e ? e : CUDA_ERROR_OUT_OF_MEMORY;
    const bool layered = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    size_t most = d->Width > d->Height ? d->Width : d->Height, bytes = 0;
    most = d->Depth > most && !layered ? d->Depth : most;
    for (m->n_levels = 1; m->n_levels < levels && most >> m->n_levels && m->n_levels < GPU_MOST_LEVELS; m->n_levels++)
        ;
    m->ctx = gpu_ctx_owner(gpu_ctx_current());
    for (unsigned i = 0; i < m->n_levels; i++) {
        CUDA_ARRAY3D_DESCRIPTOR of = *d;
        of.Width = halved((unsigned)d->Width, i);
        of.Height = halved((unsigned)d->Height, i);
        of.Depth = layered ? d->Depth : halved((unsigned)d->Depth, i);
        m->level[i] = describes(&of);
        m->level[i].of = m;
        m->level[i].va = bytes; /* from the first one, as yet */
        bytes += gpu_round_up(bytes_of(&m->level[i]), LEVEL_ALIGN);
    }
    e = gpu_alloc_linear(&m->va, bytes);
    if (!e) {
        gpu_lock();
        e = gpu_handle_add(m, GPU_MIPMAP);
        for (unsigned i = 0; i < m->n_levels && !e; i++) {
            m->level[i].va += m->va;
            e = gpu_handle_add(&m->level[i], GPU_ARRAY);
        }
        gpu_unlock();
    }
    if (!e)
        *out = m;
    return e;
}

static CUresult get_level(CUarray *out, CUmipmappedArray m, unsigned level)
{
    gpu_lock();
    const bool known = gpu_handle_kind(m) == GPU_MIPMAP, ok = known && out && level < m->n_levels;
    if (ok)
        *out = &m->level[level];
    gpu_unlock();
    return ok ? CUDA_SUCCESS : known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

static void drop_levels(CUmipmappedArray m)
{
    for (unsigned i = 0; i < m->n_levels; i++)
        gpu_handle_drop(&m->level[i]);
    gpu_handle_drop(m);
}

static CUresult destroy_levels(CUmipmappedArray m)
{
    gpu_lock();
    CUresult e = gpu_handle_kind(m) == GPU_MIPMAP ? gpu_ctx_wait_host(m->ctx) : CUDA_ERROR_INVALID_HANDLE;
    if (!e) {
        drop_levels(m);
        gpu_alloc_release(gpu_range_find(m->va));
        free(m);
    }
    gpu_unlock();
    return e;
}

/* ---- when their context ends: their memory goes with the context's ---------------------------------------------------------------- */

static void free_of_ctx(void *h, void *ctx)
{
    CUarray a = h;
    if (a->ctx != ctx || a->of)
        return;
    gpu_handle_drop(a);
    free(a);
}

static void free_levels_of_ctx(void *h, void *ctx)
{
    CUmipmappedArray m = h;
    if (m->ctx != ctx)
        return;
    drop_levels(m);
    free(m);
}

void gpu_array_free_ctx(CUcontext ctx)
{
    gpu_handle_each(GPU_MIPMAP, free_levels_of_ctx, ctx);
    gpu_handle_each(GPU_ARRAY, free_of_ctx, ctx);
}

GPU_API(cuArrayCreate_v2, (CUarray *a, const CUDA_ARRAY_DESCRIPTOR *d), GPU_NEED_CTX, create_2d(a, d))
GPU_API(cuArray3DCreate_v2, (CUarray *a, const CUDA_ARRAY3D_DESCRIPTOR *d), GPU_NEED_CTX, create(a, d))
GPU_API(cuArrayDestroy, (CUarray a), GPU_NEED_CTX, destroy(a))
GPU_API(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR *d, CUarray a), GPU_NEED_CTX, describe(NULL, d, a))
GPU_API(cuMipmappedArrayCreate, (CUmipmappedArray *m, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels), GPU_NEED_CTX, create_levels(m, d, levels))
GPU_API(cuMipmappedArrayGetLevel, (CUarray *a, CUmipmappedArray m, unsigned level), GPU_NEED_CTX, get_level(a, m, level))
GPU_API(cuMipmappedArrayDestroy, (CUmipmappedArray m), GPU_NEED_CTX, destroy_levels(m))
GPU_API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR *d, CUarray a), GPU_NEED_CTX, describe(d, NULL, a))
