/*
 * Memory that is not stream-ordered: device memory (cuMemAlloc), managed memory, pinned and registered host
 * memory. cuMemFree and cuMemFreeHost wait for the context's work first, as the driver may.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simgpu/gpu_costs.h"
#include "tests/simgpu/gpu_graph.h"

enum { CHARGE_UNIT = 512, HUGE_ALIGN = 2 << 20 };

uint64_t gpu_charged(uint64_t bytes) { return gpu_round_up(bytes, CHARGE_UNIT); }

static uint64_t page(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static gpu_range *new_range(enum gpu_range_kind kind, uint64_t bytes)
{
    gpu_range *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->kind = kind;
    r->bytes = bytes;
    r->span = gpu_round_up(bytes, page());
    r->ctx = gpu_ctx_owner(gpu_ctx_current());
    r->device = r->ctx->device;
    r->id = gpu_range_new_id();
    return r;
}

CUresult gpu_alloc_linear(CUdeviceptr *out, size_t bytes)
{
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > gpu_cfg.mem_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_range *r = new_range(GPU_RANGE_LINEAR, bytes);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUresult e = gpu_phys_take(r->device, r->span, gpu_charged(bytes), false, &r->phys);
    if (!e) {
        r->start = gpu_range_address(r->span, bytes >= HUGE_ALIGN ? HUGE_ALIGN : page(), 0);
        e = r->start ? gpu_phys_map(r->start, r->span, r->phys, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                     : CUDA_ERROR_OUT_OF_MEMORY;
        if (e)
            gpu_phys_unref(r->phys);
    }
    if (!e) {
        gpu_range_insert(r);
        *out = r->start;
    }
    gpu_unlock();
    if (e)
        free(r);
    return e;
}

static CUresult alloc_pitch(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t row = gpu_round_up(width, 512);
    if (row < width || height > UINT64_MAX / row)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult e = gpu_alloc_linear(out, row * height);
    if (!e)
        *pitch = row;
    return e;
}

static CUresult alloc_managed(CUdeviceptr *out, size_t bytes, unsigned flags)
{
    if (!out || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > gpu_cfg.mem_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_range *r = new_range(GPU_RANGE_MANAGED, bytes);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUresult e = gpu_phys_charge(r->device, gpu_charged(bytes));
    if (!e) {
        r->start = gpu_range_address(r->span, page(), 0);
        void *p = r->start ? mmap((void *)(uintptr_t)r->start, r->span, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0)
                           : MAP_FAILED;
        if (p == MAP_FAILED) {
            e = CUDA_ERROR_OUT_OF_MEMORY;
            gpu_phys_uncharge(r->device, gpu_charged(bytes));
        }
    }
    if (!e) {
        gpu_range_insert(r);
        *out = r->start;
    }
    gpu_unlock();
    if (e)
        free(r);
    return e;
}

/* Takes a linear, managed or host range away, whose users are done. */
void gpu_alloc_release(gpu_range *r)
{
    gpu_range_remove(r);
    switch (r->kind) {
    case GPU_RANGE_LINEAR:
    case GPU_RANGE_GRAPH:
    case GPU_RANGE_IMPORTED:
        gpu_phys_unmap(r->start, r->span);
        gpu_phys_unref(r->phys);
        break;
    case GPU_RANGE_MANAGED:
        gpu_phys_unmap(r->start, r->span);
        gpu_phys_uncharge(r->device, gpu_charged(r->bytes));
        break;
    case GPU_RANGE_HOST:
        munmap((void *)(uintptr_t)r->start, r->span);
        break;
    default:
        break;
    }
    free(r);
}

static CUresult alloc_device(CUdeviceptr *out, size_t bytes)
{
    CUresult e = gpu_capture_allows_unsafe();
    return e ? e : gpu_alloc_linear(out, bytes);
}

static CUresult free_device(CUdeviceptr p)
{
    if (!p)
        return CUDA_SUCCESS;
    CUresult e = gpu_capture_allows_unsafe();
    if (e)
        return e;
    gpu_lock();
    gpu_range *r = gpu_range_find(p);
    if (!r || r->start != p)
        e = CUDA_ERROR_INVALID_VALUE;
    else if (r->kind == GPU_RANGE_POOL)
        e = gpu_pool_free_now(r);
    else if (r->kind == GPU_RANGE_GRAPH)
        e = (e = gpu_ctx_wait_host(r->ctx)) ? e : gpu_graph_free_now(p);
    else if (r->kind != GPU_RANGE_LINEAR && r->kind != GPU_RANGE_MANAGED && (r->kind != GPU_RANGE_IMPORTED || r->import == GPU_IMPORT_HANDLE))
        e = CUDA_ERROR_INVALID_VALUE;
    else if (!(e = gpu_ctx_wait_host(r->ctx))) {
        r = gpu_range_find(p); /* the lock was open: another thread may have freed it */
        if (r && r->start == p)
            gpu_alloc_release(r);
        else
            e = CUDA_ERROR_INVALID_VALUE;
    }
    gpu_unlock();
    return e;
}

static CUresult get_info(size_t *available, size_t *total)
{
    if (!available || !total)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    *total = gpu_cfg.mem_bytes;
    CUdevice dev = gpu_ctx_current()->device;
    gpu_shared_look();
    *available = gpu_phys_room(dev);
    gpu_unlock();
    return CUDA_SUCCESS;
}

static CUresult address_range(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
    gpu_lock();
    gpu_range *r = gpu_range_find(p);
    CUdeviceptr start = 0;
    uint64_t bytes = 0;
    if (r && r->kind == GPU_RANGE_RESERVATION) {
        gpu_mapping *m = gpu_range_mapping(r, p);
        if (m) {
            start = m->va;
            bytes = m->bytes;
        }
    } else if (r && r->kind != GPU_RANGE_POOL_FREE && p - r->start < r->bytes) {
        start = r->start;
        bytes = r->bytes;
    }
    gpu_unlock();
    if (!start)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = start;
    if (size)
        *size = bytes;
    return CUDA_SUCCESS;
}

GPU_API(cuMemAlloc_v2, (CUdeviceptr *p, size_t bytes), GPU_NEED_CTX, alloc_device(p, bytes))
GPU_API(cuMemAllocPitch_v2, (CUdeviceptr *p, size_t *pitch, size_t width, size_t height, unsigned element),
        GPU_NEED_CTX, alloc_pitch(p, pitch, width, height, element))
GPU_API(cuMemAllocManaged, (CUdeviceptr *p, size_t bytes, unsigned flags), GPU_NEED_CTX,
        alloc_managed(p, bytes, flags))
GPU_API(cuMemFree_v2, (CUdeviceptr p), GPU_NEED_CTX, free_device(p))
GPU_API(cuMemGetInfo_v2, (size_t *available, size_t *total), GPU_NEED_CTX, get_info(available, total))
GPU_API(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *size, CUdeviceptr p), GPU_NEED_CTX,
        address_range(base, size, p))

/* ---- host memory --------------------------------------------------------------------------------------------------- */

static CUresult alloc_host(void **out, size_t bytes, unsigned flags)
{
    CUresult unsafe = gpu_capture_allows_unsafe();
    if (unsafe)
        return unsafe;
    if (!out || !bytes || flags & ~7u)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > 1ull << 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_range *r = new_range(GPU_RANGE_HOST, bytes);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *p = mmap(NULL, r->span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (r->span >= 2 * HUGE_ALIGN)
        madvise(p, r->span, MADV_HUGEPAGE); /* a wish: fewer page faults */
    r->flags = flags;
    r->start = (CUdeviceptr)(uintptr_t)p;
    gpu_lock();
    gpu_range_insert(r);
    gpu_unlock();
    *out = p;
    return CUDA_SUCCESS;
}

static CUresult free_host(void *p)
{
    CUresult unsafe = gpu_capture_allows_unsafe();
    if (unsafe)
        return unsafe;
    CUresult e = CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    gpu_range *r = gpu_range_find((CUdeviceptr)(uintptr_t)p);
    if (r && r->kind == GPU_RANGE_HOST && r->start == (CUdeviceptr)(uintptr_t)p &&
        !(e = gpu_ctx_wait_host(r->ctx))) {
        r = gpu_range_find((CUdeviceptr)(uintptr_t)p);
        if (r && r->kind == GPU_RANGE_HOST)
            gpu_alloc_release(r);
        else
            e = CUDA_ERROR_INVALID_VALUE;
    }
    gpu_unlock();
    return e;
}

static CUresult host_register(void *p, size_t bytes, unsigned flags)
{
    CUresult unsafe = gpu_capture_allows_unsafe();
    if (unsafe)
        return unsafe;
    CUdeviceptr start = (CUdeviceptr)(uintptr_t)p;
    if (!p || !bytes || bytes > 1ull << 46 || flags & ~15u || gpu_range_is_device(start))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return CUDA_ERROR_NOT_SUPPORTED;
    gpu_range *r = new_range(GPU_RANGE_REGISTERED, bytes);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->start = start;
    r->span = bytes;
    r->flags = flags;
    gpu_lock();
    bool taken = gpu_range_overlap(start, bytes) != NULL;
    if (!taken)
        gpu_range_insert(r);
    gpu_unlock();
    if (taken)
        free(r);
    return taken ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_SUCCESS;
}

static CUresult host_unregister(void *p)
{
    CUresult unsafe = gpu_capture_allows_unsafe();
    if (unsafe)
        return unsafe;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult e = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    gpu_lock();
    gpu_range *r = gpu_range_find((CUdeviceptr)(uintptr_t)p);
    if (r && r->kind == GPU_RANGE_REGISTERED && r->start == (CUdeviceptr)(uintptr_t)p &&
        !(e = gpu_ctx_wait_host(r->ctx))) {
        r = gpu_range_find((CUdeviceptr)(uintptr_t)p);
        if (r && r->kind == GPU_RANGE_REGISTERED)
            gpu_alloc_release(r);
        else
            e = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    gpu_unlock();
    return e;
}

static CUresult host_device_pointer(CUdeviceptr *out, void *p, unsigned flags)
{
    if (!out || !p || flags)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    bool ok = gpu_range_is_pinned(p, 1);
    gpu_unlock();
    if (!ok)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

static CUresult host_flags(unsigned *out, void *p)
{
    if (!out || !p)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    gpu_range *r = gpu_range_find((CUdeviceptr)(uintptr_t)p);
    bool ok = r && r->kind == GPU_RANGE_HOST;
    if (ok)
        *out = r->flags;
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuMemAllocHost_v2, (void **p, size_t bytes), GPU_NEED_CTX, (gpu_costs_bytes(bytes), alloc_host(p, bytes, 0)))
GPU_API(cuMemHostAlloc, (void **p, size_t bytes, unsigned flags), GPU_NEED_CTX, (gpu_costs_bytes(bytes), alloc_host(p, bytes, flags)))
GPU_API(cuMemFreeHost, (void *p), GPU_NEED_CTX, free_host(p))
GPU_API(cuMemHostRegister, (void *p, size_t bytes, unsigned flags), GPU_NEED_CTX, host_register(p, bytes, flags))
GPU_API(cuMemHostRegister_v2, (void *p, size_t bytes, unsigned flags), GPU_NEED_CTX,
        host_register(p, bytes, flags))
GPU_API(cuMemHostUnregister, (void *p), GPU_NEED_CTX, host_unregister(p))
GPU_API(cuMemHostGetDevicePointer_v2, (CUdeviceptr *d, void *p, unsigned flags), GPU_NEED_CTX,
        host_device_pointer(d, p, flags))
GPU_API(cuMemHostGetFlags, (unsigned *flags, void *p), GPU_NEED_CTX, host_flags(flags, p))

void gpu_alloc_free_ctx(CUcontext ctx)
{
    for (gpu_range *r = gpu_range_next(0), *next; r; r = next) {
        next = gpu_range_next(r->start + 1);
        if (r->ctx == ctx && (r->kind == GPU_RANGE_LINEAR || r->kind == GPU_RANGE_GRAPH || r->kind == GPU_RANGE_MANAGED ||
                              r->kind == GPU_RANGE_HOST || r->kind == GPU_RANGE_REGISTERED || r->kind == GPU_RANGE_IMPORTED))
            gpu_alloc_release(r);
    }
}
