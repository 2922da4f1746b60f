/*
 * Fills. Asynchronous to the host in every form when the target is device memory; the forms without Async wait
 * when it is pinned host memory.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu_graph.h"

typedef struct {
    gpu_op op;
    uintptr_t at;
    size_t pitch, width, height; /* width in elements */
    unsigned value, element_bytes;
} fill_op;

static void run(gpu_op *op)
{
    fill_op *f = (fill_op *)op;
    for (size_t y = 0; y < f->height; y++) {
        void *row = (void *)(f->at + y * f->pitch);
        if (f->element_bytes == 1) {
            memset(row, (int)f->value, f->width);
        } else if (f->element_bytes == 2) {
            uint16_t *p = row;
            for (size_t i = 0; i < f->width; i++)
                p[i] = (uint16_t)f->value;
        } else {
            uint32_t *p = row;
            for (size_t i = 0; i < f->width; i++)
                p[i] = f->value;
        }
    }
}

static CUresult fill(CUdeviceptr at, size_t pitch, unsigned value, unsigned element_bytes, size_t width, size_t height,
                     bool sync, CUstream h, bool per_thread)
{
    if (!width || !height)
        return CUDA_SUCCESS;
    if (width > SIZE_MAX / element_bytes / height)
        return CUDA_ERROR_INVALID_VALUE;
    size_t row = width * element_bytes;
    if (height > 1 && pitch < row)
        return CUDA_ERROR_INVALID_VALUE;
    if (!at || at % element_bytes || (height > 1 && (pitch % element_bytes || height - 1 > (1ull << 47) / pitch)))
        return CUDA_ERROR_INVALID_VALUE;
    size_t extent = (height - 1) * pitch + row;
    CUresult unsafe = sync ? gpu_capture_allows_unsafe() : CUDA_SUCCESS;
    if (unsafe)
        return unsafe;
    fill_op *op = gpu_exec_op(sizeof *op);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *op = (fill_op){ { .exec = run, .touches_memory = true, .node_type = CU_GRAPH_NODE_TYPE_MEMSET }, at, pitch, width, height, value, element_bytes };
    gpu_lock();
    gpu_range *r = gpu_range_find(at);
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult e = CUDA_SUCCESS;
    if (!s)
        e = CUDA_ERROR_INVALID_HANDLE;
    else if (!r || (r->kind != GPU_RANGE_RESERVATION && extent > r->start + r->span - at))
        e = CUDA_ERROR_INVALID_VALUE;
    else
        e = gpu_capture_allows_work(s);
    if (e)
        free(op);
    else {
        uint64_t seq = gpu_exec_enqueue(s, &op->op, GPU_ENGINE_COMPUTE, gpu_clock_device_ns(row * height));
        if (sync && (gpu_range_is_host(r) || gpu_range_is_managed(r))) {
            uint64_t end_ns = s->end_ns;
            e = gpu_exec_wait(s, seq);
            gpu_clock_host_reached(end_ns);
        }
    }
    gpu_unlock();
    return e;
}

#define FILL(bits, type)                                                                                              \
    GPU_API_BOTH(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr p, type value, size_t n),                                  \
                 fill(p, 0, value, bits / 8, n, 1, true, NULL, per_thread))                                           \
    GPU_API_BOTH(cuMemsetD##bits##Async, _ptsz, (CUdeviceptr p, type value, size_t n, CUstream h),                    \
                 fill(p, 0, value, bits / 8, n, 1, false, h, per_thread))                                             \
    GPU_API_BOTH(cuMemsetD2D##bits##_v2, _ptds, (CUdeviceptr p, size_t pitch, type value, size_t w, size_t n),        \
                 fill(p, pitch, value, bits / 8, w, n, true, NULL, per_thread))                                       \
    GPU_API_BOTH(cuMemsetD2D##bits##Async, _ptsz,                                                                     \
                 (CUdeviceptr p, size_t pitch, type value, size_t w, size_t n, CUstream h),                           \
                 fill(p, pitch, value, bits / 8, w, n, false, h, per_thread))

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
