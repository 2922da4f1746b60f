/* newer.c: see newer.h. */
#include "tests/simgpu/newer/newer.h"

#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

/* A stub that loses an argument on its way makes the call fail. */
PUBLIC CUresult cuMemsetD32Async_v2(CUdeviceptr to, unsigned value, size_t n, CUstream s, unsigned a, unsigned b, unsigned c, unsigned d)
{
    return a == 1 && b == 2 && c == 3 && d == 4 ? cuMemsetD32Async(to, value, n, s) : CUDA_ERROR_INVALID_VALUE;
}

PUBLIC CUresult cuMemcpyHtoDAsync_v3(double weight, CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
    return weight == 0.75 ? cuMemcpyHtoDAsync_v2(to, from, bytes, s) : CUDA_ERROR_INVALID_VALUE;
}

PUBLIC CUresult cuFreshFill(CUdeviceptr to, unsigned value, size_t n, CUstream s) { return cuMemsetD32Async(to, value, n, s); }

static CUresult unnamed(CUdeviceptr to, unsigned short value, size_t n, CUstream s, unsigned a) { return a == 1 ? cuMemsetD16Async(to, value, n, s) : CUDA_ERROR_INVALID_VALUE; }

__attribute__((visibility("hidden"))) void *simgpu_newer_call(const char *name, int version);
void *simgpu_newer_call(const char *name, int version)
{
    if (!strcmp(name, "cuFreshFill"))
        return (void *)cuFreshFill;
    if (version < NEWER_VERSION)
        return NULL;
    return !strcmp(name, "cuMemsetD32Async")    ? (void *)cuMemsetD32Async_v2
           : !strcmp(name, "cuMemcpyHtoDAsync") ? (void *)cuMemcpyHtoDAsync_v3
           : !strcmp(name, "cuMemsetD16Async")  ? (void *)unnamed
                                                : NULL;
}
