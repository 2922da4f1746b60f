/*
 * Questions about addresses, and advice about managed memory (which the simulated device takes without effect:
 * managed memory is one memory here).
 */
#include <string.h>

#include "tests/simgpu/gpu.h"

/* Bytes of an attribute's value; 0: no such attribute. */
static size_t value_bytes(CUpointer_attribute a)
{
    switch (a) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return 8;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return 16;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return 4;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return 1;
    }
    return 0;
}

/* The range a program may ask about; NULL: not a pointer of this driver. */
static gpu_range *known(CUdeviceptr p)
{
    gpu_range *r = gpu_range_find(p);
    return r && r->kind != GPU_RANGE_POOL_FREE && p - r->start < r->bytes ? r : NULL;
}

/* Writes value_bytes(a) bytes. Under gpu_lock. */
static CUresult answer(void *out, CUpointer_attribute a, CUdeviceptr p, const gpu_range *r)
{
    gpu_mapping *m = r->kind == GPU_RANGE_RESERVATION ? gpu_range_mapping(r, p) : NULL;
    bool host = gpu_range_is_host(r);
    bool mapped = r->kind != GPU_RANGE_RESERVATION || m;
    uint64_t n = 0;
    switch (a) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        /* virtual memory and pools belong to the device, not to a context */
        n = r->kind == GPU_RANGE_RESERVATION || r->kind == GPU_RANGE_POOL ? 0 : (uintptr_t)r->ctx;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        if (!mapped)
            return CUDA_ERROR_INVALID_VALUE;
        n = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        if (!mapped)
            return CUDA_ERROR_INVALID_VALUE;
        n = p;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host && !gpu_range_is_managed(r))
            return CUDA_ERROR_INVALID_VALUE;
        n = p;
        break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return CUDA_ERROR_NOT_SUPPORTED;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: n = (unsigned)r->sync_memops; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: n = m ? m->id : r->id; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: n = gpu_range_is_managed(r); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: n = (unsigned)(m ? m->phys->device : r->device); break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: n = r->kind == GPU_RANGE_LINEAR; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: n = r->start; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: n = r->bytes; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: n = mapped; break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: n = m ? (unsigned)m->phys->prop.requestedHandleTypes : 0; break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: n = 0; break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        n = m ? (unsigned)m->access : mapped ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: n = r->kind == GPU_RANGE_POOL ? (uintptr_t)r->pool : 0; break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: n = m ? m->bytes : r->kind == GPU_RANGE_RESERVATION ? 0 : r->bytes; break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: n = m ? m->va : r->kind == GPU_RANGE_RESERVATION ? 0 : r->start; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: n = m ? m->id : r->id; break;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: n = 0; break;
    }
    memcpy(out, &n, value_bytes(a)); /* little-endian: the low bytes are the narrow value */
    return CUDA_SUCCESS;
}

static CUresult get(void *out, CUpointer_attribute a, CUdeviceptr p)
{
    if (!out || !value_bytes(a))
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    gpu_range *r = known(p);
    CUresult e = r ? answer(out, a, p, r) : CUDA_ERROR_INVALID_VALUE;
    gpu_unlock();
    return e;
}

static CUresult get_many(unsigned n, CUpointer_attribute *a, void **out, CUdeviceptr p)
{
    if (!n || !a || !out)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++)
        if (!out[i] || !value_bytes(a[i]))
            return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    gpu_range *r = known(p);
    for (unsigned i = 0; i < n; i++)
        if (!r || answer(out[i], a[i], p, r)) {
            memset(out[i], 0, value_bytes(a[i]));
            if (a[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
                *(int *)out[i] = CU_DEVICE_INVALID;
        }
    gpu_unlock();
    return CUDA_SUCCESS;
}

static CUresult set(const void *in, CUpointer_attribute a, CUdeviceptr p)
{
    if (!in || a != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    gpu_range *r = known(p);
    if (r)
        r->sync_memops = *(const unsigned *)in != 0;
    gpu_unlock();
    return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuPointerGetAttribute, (void *out, CUpointer_attribute a, CUdeviceptr p), GPU_NEED_CTX, get(out, a, p))
GPU_API(cuPointerGetAttributes, (unsigned n, CUpointer_attribute *a, void **out, CUdeviceptr p), GPU_NEED_CTX,
        get_many(n, a, out, p))
GPU_API(cuPointerSetAttribute, (const void *in, CUpointer_attribute a, CUdeviceptr p), GPU_NEED_CTX, set(in, a, p))

/* ---- managed memory ------------------------------------------------------------------------------------------------ */

static CUresult managed(CUdeviceptr p, size_t bytes)
{
    gpu_lock();
    gpu_range *r = gpu_range_find(p);
    bool ok = r && r->kind == GPU_RANGE_MANAGED && bytes && bytes <= r->start + r->span - p;
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult prefetch(CUdeviceptr p, size_t bytes, CUstream h, bool per_thread)
{
    gpu_lock();
    bool known_stream = gpu_stream_resolve(h, per_thread) != NULL;
    gpu_unlock();
    return known_stream ? managed(p, bytes) : CUDA_ERROR_INVALID_HANDLE;
}

GPU_API(cuMemAdvise, (CUdeviceptr p, size_t bytes, CUmem_advise advice, CUdevice dev), GPU_NEED_CTX,
        ((void)advice, (void)dev, managed(p, bytes)))
GPU_API(cuMemAdvise_v2, (CUdeviceptr p, size_t bytes, CUmem_advise advice, CUmemLocation at), GPU_NEED_CTX,
        ((void)advice, (void)at, managed(p, bytes)))
GPU_API_BOTH(cuMemPrefetchAsync, _ptsz, (CUdeviceptr p, size_t bytes, CUdevice dev, CUstream s),
             ((void)dev, prefetch(p, bytes, s, per_thread)))
GPU_API_BOTH(cuMemPrefetchAsync_v2, _ptsz,
             (CUdeviceptr p, size_t bytes, CUmemLocation at, unsigned flags, CUstream s),
             ((void)at, flags ? CUDA_ERROR_INVALID_VALUE : prefetch(p, bytes, s, per_thread)))
