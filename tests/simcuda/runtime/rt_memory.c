/*
 * Memory: allocations, pools, copies, fills, questions about pointers, memory of other processes.
 */
#include <string.h>

#include "tests/simcuda/runtime/rt.h"

static CUdeviceptr address(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

/* ---- allocations ---------------------------------------------------------------------------------------------------- */

/* An allocation of no bytes succeeds and gives no address; the runtime is initialised all the same. */
static int nothing(void **out)
{
    *out = NULL;
    return rt_done(rt_use());
}

RT_EXPORT int cudaMalloc(void **out, size_t bytes)
{
    if (!out)
        return rt_done(RT_INVALID_VALUE);
    if (!bytes)
        return nothing(out);
    RT_DO(cuMemAlloc_v2((CUdeviceptr *)out, bytes));
}

RT_EXPORT int cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    RT_DO(cuMemAllocPitch_v2((CUdeviceptr *)out, pitch, width, height, 4));
}

RT_EXPORT int cudaMallocManaged(void **out, size_t bytes, unsigned flags)
{
    RT_DO(cuMemAllocManaged((CUdeviceptr *)out, bytes, flags));
}

RT_EXPORT int cudaFree(void *p)
{
    if (!p)
        return rt_done(rt_use());
    RT_DO(cuMemFree_v2(address(p)));
}

RT_EXPORT int cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    if (!out)
        return rt_done(RT_INVALID_VALUE);
    if (!bytes)
        return nothing(out);
    RT_DO(cuMemHostAlloc(out, bytes, flags));
}

RT_EXPORT int cudaMallocHost(void **out, size_t bytes)
{
    return cudaHostAlloc(out, bytes, 0);
}

RT_EXPORT int cudaFreeHost(void *p)
{
    if (!p)
        return rt_done(rt_use());
    RT_DO(cuMemFreeHost(p));
}

RT_EXPORT int cudaHostRegister(void *p, size_t bytes, unsigned flags)
{
    RT_DO(cuMemHostRegister_v2(p, bytes, flags));
}

RT_EXPORT int cudaHostUnregister(void *p)
{
    RT_DO(cuMemHostUnregister(p));
}

RT_EXPORT int cudaHostGetDevicePointer(void **out, void *host, unsigned flags)
{
    RT_DO(cuMemHostGetDevicePointer_v2((CUdeviceptr *)out, host, flags));
}

RT_EXPORT int cudaHostGetFlags(unsigned *flags, void *host)
{
    RT_DO(cuMemHostGetFlags(flags, host));
}

RT_EXPORT int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    RT_DO(cuMemGetInfo_v2(free_bytes, total_bytes));
}

/* ---- stream-ordered allocations and pools ------------------------------------------------------------------------------ */

RT_EXPORT int cudaMallocAsync(void **out, size_t bytes, CUstream stream)
{
    if (!out)
        return rt_done(RT_INVALID_VALUE);
    if (!bytes)
        return nothing(out);
    RT_DO(cuMemAllocAsync((CUdeviceptr *)out, bytes, stream));
}

RT_EXPORT int cudaMallocFromPoolAsync(void **out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    if (!out)
        return rt_done(RT_INVALID_VALUE);
    if (!bytes)
        return nothing(out);
    RT_DO(cuMemAllocFromPoolAsync((CUdeviceptr *)out, bytes, pool, stream));
}

RT_EXPORT int cudaFreeAsync(void *p, CUstream stream)
{
    RT_DO(cuMemFreeAsync(address(p), stream));
}

RT_EXPORT int cudaDeviceGetDefaultMemPool(CUmemoryPool *pool, int device)
{
    RT_DO(cuDeviceGetDefaultMemPool(pool, device));
}

RT_EXPORT int cudaDeviceGetMemPool(CUmemoryPool *pool, int device)
{
    RT_DO(cuDeviceGetMemPool(pool, device));
}

RT_EXPORT int cudaDeviceSetMemPool(int device, CUmemoryPool pool)
{
    RT_DO(cuDeviceSetMemPool(device, pool));
}

RT_EXPORT int cudaMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    RT_DO(cuMemPoolCreate(pool, props));
}

RT_EXPORT int cudaMemPoolDestroy(CUmemoryPool pool)
{
    RT_DO(cuMemPoolDestroy(pool));
}

RT_EXPORT int cudaMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    RT_DO(cuMemPoolTrimTo(pool, keep_bytes));
}

RT_EXPORT int cudaMemPoolGetAttribute(CUmemoryPool pool, int attr, void *value)
{
    RT_DO(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attr, value));
}

RT_EXPORT int cudaMemPoolSetAttribute(CUmemoryPool pool, int attr, void *value)
{
    RT_DO(cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attr, value));
}

RT_EXPORT int cudaMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t n)
{
    RT_DO(cuMemPoolSetAccess(pool, list, n));
}

RT_EXPORT int cudaMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location)
{
    RT_DO(cuMemPoolGetAccess((CUmemAccess_flags *)flags, pool, location));
}

RT_EXPORT int cudaDeviceGetGraphMemAttribute(int device, int attr, void *value)
{
    RT_DO(cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attr, value));
}

RT_EXPORT int cudaDeviceSetGraphMemAttribute(int device, int attr, void *value)
{
    RT_DO(cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attr, value));
}

RT_EXPORT int cudaDeviceGraphMemTrim(int device)
{
    RT_DO(cuDeviceGraphMemTrim(device));
}

/* ---- copies ---------------------------------------------------------------------------------------------------------- */

RT_EXPORT int cudaMemcpy(void *dst, const void *src, size_t bytes, int kind)
{
    switch (kind) {
    case RT_HOST_TO_DEVICE: RT_DO(cuMemcpyHtoD_v2(address(dst), src, bytes));
    case RT_DEVICE_TO_HOST: RT_DO(cuMemcpyDtoH_v2(dst, address(src), bytes));
    case RT_DEVICE_TO_DEVICE: RT_DO(cuMemcpyDtoD_v2(address(dst), address(src), bytes));
    case RT_HOST_TO_HOST:
    case RT_COPY_DEFAULT: RT_DO(cuMemcpy(address(dst), address(src), bytes));
    default: return rt_done(RT_INVALID_MEMCPY_DIRECTION);
    }
}

RT_EXPORT int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, CUstream stream)
{
    switch (kind) {
    case RT_HOST_TO_DEVICE: RT_DO(cuMemcpyHtoDAsync_v2(address(dst), src, bytes, stream));
    case RT_DEVICE_TO_HOST: RT_DO(cuMemcpyDtoHAsync_v2(dst, address(src), bytes, stream));
    case RT_DEVICE_TO_DEVICE: RT_DO(cuMemcpyDtoDAsync_v2(address(dst), address(src), bytes, stream));
    case RT_HOST_TO_HOST:
    case RT_COPY_DEFAULT: RT_DO(cuMemcpyAsync(address(dst), address(src), bytes, stream));
    default: return rt_done(RT_INVALID_MEMCPY_DIRECTION);
    }
}

static int peers(int dst_device, int src_device, CUcontext *dst, CUcontext *src)
{
    int e = rt_context(dst_device, dst);
    return e ? e : rt_context(src_device, src);
}

RT_EXPORT int cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes)
{
    CUcontext to, from;
    int e = peers(dst_device, src_device, &to, &from);
    if (e)
        return rt_done(e);
    RT_DO(cuMemcpyPeer(address(dst), to, address(src), from, bytes));
}

RT_EXPORT int cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t bytes, CUstream stream)
{
    CUcontext to, from;
    int e = peers(dst_device, src_device, &to, &from);
    if (e)
        return rt_done(e);
    RT_DO(cuMemcpyPeerAsync(address(dst), to, address(src), from, bytes, stream));
}

/* A pitched copy as the driver wants it described. RT_INVALID_MEMCPY_DIRECTION, RT_INVALID_PITCH. */
static int describe_2d(CUDA_MEMCPY2D *c, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                       size_t height, int kind)
{
    static const CUmemorytype from[] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE,
                                         CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED };
    static const CUmemorytype to[] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST,
                                       CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED };
    if (kind < RT_HOST_TO_HOST || kind > RT_COPY_DEFAULT)
        return RT_INVALID_MEMCPY_DIRECTION;
    if (width > dst_pitch || width > src_pitch)
        return RT_INVALID_PITCH;
    *c = (CUDA_MEMCPY2D){ .srcMemoryType = from[kind], .srcHost = src, .srcDevice = address(src), .srcPitch = src_pitch,
                          .dstMemoryType = to[kind], .dstHost = dst, .dstDevice = address(dst), .dstPitch = dst_pitch,
                          .WidthInBytes = width, .Height = height };
    return RT_SUCCESS;
}

RT_EXPORT int cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                           int kind)
{
    CUDA_MEMCPY2D c;
    int e = describe_2d(&c, dst, dst_pitch, src, src_pitch, width, height, kind);
    if (e)
        return rt_done(e);
    RT_DO(cuMemcpy2DUnaligned_v2(&c));
}

RT_EXPORT int cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                                int kind, CUstream stream)
{
    CUDA_MEMCPY2D c;
    int e = describe_2d(&c, dst, dst_pitch, src, src_pitch, width, height, kind);
    if (e)
        return rt_done(e);
    RT_DO(cuMemcpy2DAsync_v2(&c, stream));
}

/* ---- fills ------------------------------------------------------------------------------------------------------------ */

RT_EXPORT int cudaMemset(void *p, int value, size_t bytes)
{
    RT_DO(cuMemsetD8_v2(address(p), (unsigned char)value, bytes));
}

RT_EXPORT int cudaMemsetAsync(void *p, int value, size_t bytes, CUstream stream)
{
    RT_DO(cuMemsetD8Async(address(p), (unsigned char)value, bytes, stream));
}

RT_EXPORT int cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height)
{
    RT_DO(cuMemsetD2D8_v2(address(p), pitch, (unsigned char)value, width, height));
}

RT_EXPORT int cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height, CUstream stream)
{
    RT_DO(cuMemsetD2D8Async(address(p), pitch, (unsigned char)value, width, height, stream));
}

/* ---- questions about pointers -------------------------------------------------------------------------------------------- */

RT_EXPORT int cudaPointerGetAttributes(struct rt_pointer_attributes *a, const void *p)
{
    if (!a)
        return rt_done(RT_INVALID_VALUE);
    int e = rt_use();
    if (e)
        return rt_done(e);
    memset(a, 0, sizeof *a);
    unsigned type = 0, managed = 0;
    CUpointer_attribute ask[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER };
    void *answers[] = { &type, &managed, &a->device, &a->device_pointer, &a->host_pointer };
    e = (int)rt_drv.cuPointerGetAttributes(sizeof ask / sizeof ask[0], ask, answers, address(p));
    if (e && e != RT_INVALID_VALUE)
        return rt_done(e);
    if (e || !type) { /* nobody's memory is an answer, not an error */
        *a = (struct rt_pointer_attributes){ .type = RT_MEMORY_UNREGISTERED, .device = CU_DEVICE_INVALID,
                                             .host_pointer = (void *)p };
        return RT_SUCCESS;
    }
    a->type = managed ? RT_MEMORY_MANAGED : type == CU_MEMORYTYPE_HOST ? RT_MEMORY_HOST : RT_MEMORY_DEVICE;
    return RT_SUCCESS;
}

/* ---- memory of other processes -------------------------------------------------------------------------------------------- */

RT_EXPORT int cudaIpcGetMemHandle(CUipcMemHandle *handle, void *p)
{
    RT_DO(cuIpcGetMemHandle(handle, address(p)));
}

RT_EXPORT int cudaIpcOpenMemHandle(void **out, CUipcMemHandle handle, unsigned flags)
{
    RT_DO(cuIpcOpenMemHandle_v2((CUdeviceptr *)out, handle, flags));
}

RT_EXPORT int cudaIpcCloseMemHandle(void *p)
{
    RT_DO(cuIpcCloseMemHandle(address(p)));
}

RT_EXPORT int cudaIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
    RT_DO(cuIpcGetEventHandle(handle, event));
}

RT_EXPORT int cudaIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
    RT_DO(cuIpcOpenEventHandle(event, handle));
}
