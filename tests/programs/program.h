/* What the programs share: calls that must succeed, and a driver that is just linked. */
#ifndef PROGRAMS_PROGRAM_H
#define PROGRAMS_PROGRAM_H

#include "preload/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        CUresult must_r = (call);                                                                                      \
        if (must_r != CUDA_SUCCESS) {                                                                                  \
            const char *must_name = "?";                                                                               \
            cuGetErrorName(must_r, &must_name);                                                                        \
            fflush(stdout);                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, must_name);                                  \
            _exit(3);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* A launch of a kernel of kernels.c on stream s, given the addresses of its arguments. */
#define LAUNCH_ON(f, s, ...)                                                                                           \
    do {                                                                                                               \
        void *args_[] = {__VA_ARGS__};                                                                                 \
        MUST(cuLaunchKernel(f, 64, 1, 1, 128, 1, 1, 0, s, args_, NULL));                                               \
    } while (0)

static inline uint32_t next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*s >> 33);
}

/* A module that lies beside the program. */
static inline void kernels_path(char *path, size_t n, const char *file)
{
    ssize_t k = readlink("/proc/self/exe", path, n - 1);
    path[k > 0 ? k : 0] = 0;
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, n - (size_t)(slash ? slash + 1 - path : 0), "%s", file);
}

static inline CUmodule load_kernels_of(const char *file)
{
    char path[4096];
    CUmodule m;
    kernels_path(path, sizeof path, file);
    MUST(cuModuleLoad(&m, path));
    return m;
}

static inline CUmodule load_kernels(void) { return load_kernels_of("kernels.so"); }

static inline CUfunction kernel(CUmodule m, const char *name)
{
    CUfunction f;
    MUST(cuModuleGetFunction(&f, m, name));
    return f;
}

static inline CUcontext primary_context(void)
{
    CUdevice dev;
    CUcontext ctx;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&dev, 0));
    MUST(cuDevicePrimaryCtxRetain(&ctx, dev));
    MUST(cuCtxSetCurrent(ctx));
    return ctx;
}

/* What cuMemCreate makes device memory of. */
static inline CUmemAllocationProp memory_of(int dev)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev}};
}

/* So much of it on the first device, which a kernel may read and write, at an address of its own. It stays. */
static inline CUdeviceptr map_own(size_t bytes)
{
    const CUmemAllocationProp prop = memory_of(0);
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    MUST(cuMemAddressReserve(&p, bytes, 0, 0, 0));
    MUST(cuMemCreate(&h, bytes, &prop, 0));
    MUST(cuMemMap(p, bytes, 0, h, 0));
    MUST(cuMemSetAccess(p, bytes, &access, 1));
    return p;
}

/* A pool on the first device that holds so many bytes at most; 0: as many as there are. */
static inline CUmemoryPool make_pool(size_t most)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}, .maxSize = most};
    CUmemoryPool pool;
    MUST(cuMemPoolCreate(&pool, &props));
    return pool;
}

/* What the kernel "sum" makes of so many words at p; sum: 8 bytes on the device. Waits for the stream. */
static inline uint64_t checksum(CUfunction f_sum, CUstream stream, CUdeviceptr sum, CUdeviceptr p, uint32_t words)
{
    uint64_t h;
    void *args[] = {&sum, &p, &words};
    MUST(cuLaunchKernel(f_sum, 64, 1, 1, 128, 1, 1, 0, stream, args, NULL));
    MUST(cuMemcpyDtoHAsync_v2(&h, sum, 8, stream));
    MUST(cuStreamSynchronize(stream));
    return h;
}

#endif
