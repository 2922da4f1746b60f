/* calls.c: a program that makes one call of nearly every hooked kind and prints what came back: result codes, sizes, data,
 * never an address. Run bare and run under the doors it must print the same.
 *
 *   calls LIBCUDA [FAKE_NCCL FAKE_NVML]
 *
 * Exit status 0, or 77 when the driver cannot be opened.
 */
#include "preload/abi_extra.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *lib;

/* Calls the driver's `sym` and prints the result; -1 where this driver lacks it. */
#define CALL(sym, ...)                                                                                                 \
    __extension__({                                                                                                    \
        __typeof__(&sym) fn_ = (__typeof__(fn_))dlsym(lib, #sym);                                                      \
        int r_ = fn_ ? (int)fn_(__VA_ARGS__) : -1;                                                                     \
        printf("%s %d\n", #sym, r_);                                                                                   \
        r_;                                                                                                            \
    })

enum { N = 4096 };
static unsigned char host[N], back[N];

static void show(const char *what)
{
    unsigned sum = 0;
    for (int i = 0; i < N; i++)
        sum = sum * 31 + back[i];
    printf("  %s %08x\n", what, sum);
    memset(back, 0, N);
}

static void plain_memory(void)
{
    CUdeviceptr p = 0, base = 0, q = 0;
    size_t pitch = 0, bytes = 0, free_b = 0, total = 0, again = 0;
    CALL(cuMemGetInfo_v2, &free_b, &total);
    CALL(cuMemAlloc_v2, &p, N);
    CALL(cuMemGetAddressRange_v2, &base, &bytes, p + 100);
    printf("  offset %llu bytes %zu\n", p + 100 - base, bytes);
    CALL(cuMemcpyHtoD_v2, p, host, N);
    CALL(cuMemcpyDtoH_v2, back, p, N);
    show("round trip");
    unsigned type = 0;
    CALL(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5);
    printf("  memory type %u\n", type);
    CUpointer_attribute attrs[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    int ordinal = -1;
    void *data[] = {&type, &ordinal};
    CALL(cuPointerGetAttributes, 2, attrs, data, p);
    printf("  memory type %u device %d\n", type, ordinal);
    CALL(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host);
    CALL(cuMemAllocPitch_v2, &q, &pitch, 1000, 16, 4);
    printf("  pitch at least the width: %d\n", pitch >= 1000);
    CALL(cuMemFree_v2, q);
    CALL(cuMemFree_v2, p);
    CALL(cuMemFree_v2, p); /* twice: an error, the driver's own */
    CALL(cuMemAlloc_v2, &p, 0);
    CALL(cuMemAlloc_v2, &p, (size_t)1 << 50);
    if (CALL(cuMemAllocManaged, &p, N, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS)
        CALL(cuMemFree_v2, p);
    CALL(cuMemGetInfo_v2, &again, &total);
    printf("  as much free as before: %d\n", again == free_b);
}

static void arrays(void)
{
    CUarray a = NULL;
    CUmipmappedArray m = NULL;
    CUDA_ARRAY_DESCRIPTOR d = {64, 64, CU_AD_FORMAT_FLOAT, 1};
    CUDA_ARRAY3D_DESCRIPTOR d3 = {16, 16, 16, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
    if (CALL(cuArrayCreate_v2, &a, &d) == CUDA_SUCCESS)
        CALL(cuArrayDestroy, a);
    if (CALL(cuArray3DCreate_v2, &a, &d3) == CUDA_SUCCESS)
        CALL(cuArrayDestroy, a);
    if (CALL(cuMipmappedArrayCreate, &m, &d3, 3) == CUDA_SUCCESS)
        CALL(cuMipmappedArrayDestroy, m);
}

static atomic_int host_calls;
static void host_fn(void *data)
{
    (void)data;
    host_calls++;
}

/* Copies and fills of every shape on one stream; `s` NULL: the null stream of the variant. */
static void stream_work(CUstream s, CUmemoryPool pool)
{
    CUdeviceptr p = 0, q = 0;
    if (CALL(cuMemAllocAsync, &p, 1 << 20, s) || CALL(cuMemAllocFromPoolAsync, &q, 1 << 20, pool, s))
        return;
    CALL(cuMemcpyHtoDAsync_v2, p, host, N, s);
    CALL(cuMemcpyDtoDAsync_v2, q, p, N, s);
    CALL(cuMemcpyDtoHAsync_v2, back, q, N, s);
    CALL(cuStreamSynchronize, s);
    show("three copies");
    CALL(cuMemcpyAsync, p + N, (CUdeviceptr)(uintptr_t)host, N, s);
    CALL(cuMemcpyAsync, q, p + N, N, s);
    CALL(cuMemcpyAsync, (CUdeviceptr)(uintptr_t)back, q, N, s);
    CALL(cuStreamSynchronize, s);
    show("unified copies");
    CALL(cuMemcpy, p, (CUdeviceptr)(uintptr_t)host, N);
    CALL(cuMemcpy, (CUdeviceptr)(uintptr_t)back, p, N);
    show("unified, waited for");
    CALL(cuMemcpy, (CUdeviceptr)(uintptr_t)back, (CUdeviceptr)(uintptr_t)host, N);
    show("host to host");
    CALL(cuMemsetD8Async, p, 0x5a, N, s);
    CALL(cuMemsetD16Async, p, 0x1234, 100, s);
    CALL(cuMemsetD32Async, p + 1024, 0xdeadbeef, 100, s);
    CALL(cuMemsetD2D8Async, p, 64, 7, 10, 20, s);
    CALL(cuMemsetD2D16Async, p + 2048, 64, 0x0102, 10, 4, s);
    CALL(cuMemsetD2D32Async, p + 3072, 64, 0x01020304, 10, 4, s);
    CALL(cuStreamSynchronize, s);
    CALL(cuMemcpyDtoH_v2, back, p, N);
    show("fills");
    CALL(cuMemsetD8_v2, p, 1, N);
    CALL(cuMemsetD16_v2, p, 0x0203, 64);
    CALL(cuMemsetD32_v2, p + 512, 0x04050607, 64);
    CALL(cuMemsetD2D8_v2, p + 1024, 64, 9, 10, 4);
    CALL(cuMemsetD2D16_v2, p + 2048, 64, 0x0a0b, 10, 4);
    CALL(cuMemsetD2D32_v2, p + 3072, 64, 0x0c0d0e0f, 10, 4);
    CALL(cuMemcpyDtoH_v2, back, p, N);
    show("fills, waited for");
    CALL(cuMemcpyDtoD_v2, q, p, N);
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = 64,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = p, .dstPitch = 128, .dstXInBytes = 3, .dstY = 1,
                       .WidthInBytes = 40, .Height = 8};
    CALL(cuMemcpy2D_v2, &c);
    CALL(cuMemcpy2DUnaligned_v2, &c);
    CALL(cuStreamSynchronize, NULL); /* copies within the device are awaited by nobody, and s may be ordered behind no other stream */
    CALL(cuMemcpy2DAsync_v2, &c, s);
    CALL(cuStreamSynchronize, s);
    CUDA_MEMCPY3D c3 = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = p, .srcPitch = 64, .srcHeight = 8,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = q, .dstPitch = 64, .dstHeight = 8,
                        .WidthInBytes = 30, .Height = 4, .Depth = 3};
    CALL(cuMemcpy3D_v2, &c3);
    CALL(cuStreamSynchronize, NULL);
    CALL(cuMemcpy3DAsync_v2, &c3, s);
    CALL(cuStreamSynchronize, s);
    CALL(cuMemcpyDtoH_v2, back, p, N);
    show("boxes, there");
    CALL(cuMemcpyDtoH_v2, back, q, N);
    show("boxes, on");
    CALL(cuLaunchHostFunc, s, host_fn, NULL);
    CALL(cuStreamWriteValue32_v2, s, p, 77, 0);
    CALL(cuStreamWaitValue32_v2, s, p, 77, CU_STREAM_WAIT_VALUE_EQ);
    CALL(cuStreamSynchronize, s);
    printf("  host functions %d\n", (int)host_calls);
    CUpointer_attribute attr = CU_POINTER_ATTRIBUTE_IS_MANAGED;
    unsigned managed = 9;
    void *data[] = {&managed};
    CALL(cuPointerGetAttributes, 1, &attr, data, q + 100);
    printf("  managed in CUDA's sense %u\n", managed);
    CALL(cuMemFreeAsync, q, s);
    CALL(cuMemFreeAsync, p, s);
    CALL(cuStreamSynchronize, s);
}

/* The same calls in the flavour whose stream 0 is the thread's own. */
static void thread_flavour(void)
{
    CUdeviceptr p = 0;
    if (CALL(cuMemAllocAsync_ptsz, &p, 1 << 20, NULL))
        return;
    CALL(cuMemcpyHtoDAsync_v2_ptsz, p, host, N, NULL);
    CALL(cuMemsetD8Async_ptsz, p, 3, 100, NULL);
    CALL(cuMemcpyDtoH_v2_ptds, back, p, N);
    show("per thread");
    CALL(cuMemFreeAsync_ptsz, p, NULL);
    CALL(cuStreamSynchronize_ptsz, NULL);
}

static void pools(CUdevice dev)
{
    CUmemoryPool pool = NULL, mine = NULL, shared = NULL;
    cuuint64_t value = 0;
    CUdeviceptr p = 0;
    if (CALL(cuDeviceGetDefaultMemPool, &pool, dev))
        return;
    CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
    printf("  threshold %llu\n", (unsigned long long)value);
    value = 1 << 20;
    CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
    CALL(cuMemPoolTrimTo, pool, 0);
    CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
    printf("  used %llu\n", (unsigned long long)value);
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, dev}};
    if (CALL(cuMemPoolCreate, &mine, &props) == CUDA_SUCCESS) {
        CUmemAccessDesc own = {{CU_MEM_LOCATION_TYPE_DEVICE, dev}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CALL(cuMemPoolSetAccess, mine, &own, 1);
        CALL(cuMemAllocFromPoolAsync, &p, 1 << 20, mine, NULL);
        CALL(cuMemFreeAsync, p, NULL);
        CALL(cuStreamSynchronize, NULL);
        CALL(cuMemPoolDestroy, mine);
    }
    /* exportable: the engine must not serve it */
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (CALL(cuMemPoolCreate, &shared, &props) == CUDA_SUCCESS) {
        CALL(cuMemAllocFromPoolAsync, &p, 1 << 20, shared, NULL);
        CALL(cuMemFreeAsync, p, NULL);
        CALL(cuStreamSynchronize, NULL);
        CALL(cuMemPoolDestroy, shared);
    }
}

static void own_mappings(CUdevice dev)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, dev}};
    CUmemAccessDesc rw = {{CU_MEM_LOCATION_TYPE_DEVICE, dev}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h = 0, h2 = 0;
    CUdeviceptr va = 0;
    size_t g = 0;
    if (CALL(cuMemGetAllocationGranularity, &g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM))
        return;
    CALL(cuMemAddressReserve, &va, 2 * g, 0, 0, 0);
    CALL(cuMemCreate, &h, g, &prop, 0);
    CALL(cuMemCreate, &h2, g, &prop, 0);
    CALL(cuMemMap, va, g, 0, h, 0);
    CALL(cuMemMap, va + g, g, 0, h2, 0);
    CALL(cuMemSetAccess, va, 2 * g, &rw, 1);
    CALL(cuMemRelease, h); /* lives on behind its mapping */
    CALL(cuMemcpyHtoD_v2, va + g - N / 2, host, N); /* across the seam */
    CALL(cuMemcpyDtoH_v2, back, va + g - N / 2, N);
    show("own mappings");
    CALL(cuMemUnmap, va, g);
    CALL(cuMemUnmap, va + g, g);
    CALL(cuMemRelease, h2);
    CALL(cuMemAddressFree, va, 2 * g);
}

static void capture(CUstream s)
{
    CUgraph g = NULL;
    CUgraphExec e = NULL;
    CUdeviceptr p = 0;
    CALL(cuMemAllocAsync, &p, 1 << 20, s);
    CALL(cuStreamSynchronize, s);
    if (CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS) {
        CALL(cuMemsetD8Async, p, 0x21, N, s);
        if (CALL(cuStreamEndCapture, s, &g) == CUDA_SUCCESS &&
            CALL(cuGraphInstantiateWithFlags, &e, g, 0) == CUDA_SUCCESS) {
            CALL(cuGraphLaunch, e, s);
            CALL(cuStreamSynchronize, s);
            CALL(cuMemcpyDtoH_v2, back, p, N);
            show("a graph");
            CALL(cuGraphExecDestroy, e);
        }
    }
    CALL(cuMemFreeAsync, p, s);
    CALL(cuStreamSynchronize, s);
}

static void collectives(const char *nccl, const char *nvml)
{
    void *h = dlopen(nccl, RTLD_NOW);
    CUdeviceptr a = 0, b = 0;
    if (h) {
        __typeof__(&ncclAllReduce) all = (__typeof__(all))dlsym(h, "ncclAllReduce");
        __typeof__(&ncclGroupEnd) end = (__typeof__(end))dlsym(h, "ncclGroupEnd");
        CALL(cuMemAllocAsync, &a, N, NULL);
        CALL(cuMemAllocAsync, &b, N, NULL);
        CALL(cuMemcpyHtoD_v2, a, host, N);
        printf("ncclAllReduce %d\n", all((void *)(uintptr_t)a, (void *)(uintptr_t)b, N, 0, 0, NULL, NULL));
        printf("ncclGroupEnd %d\n", end());
        CALL(cuMemcpyDtoH_v2, back, b, N);
        show("reduced");
        CALL(cuMemFreeAsync, a, NULL);
        CALL(cuMemFreeAsync, b, NULL);
        CALL(cuStreamSynchronize, NULL);
    }
    h = dlopen(nvml, RTLD_NOW);
    if (h) {
        struct nvml_memory m = {0};
        __typeof__(&nvmlDeviceGetMemoryInfo) info = (__typeof__(info))dlsym(h, "nvmlDeviceGetMemoryInfo");
        int r = info((nvmlDevice_t)1, &m);
        printf("nvmlDeviceGetMemoryInfo %d adds up %d\n", r, m.free + m.used == m.total);
        r = info((nvmlDevice_t)2, &m);
        printf("nvmlDeviceGetMemoryInfo of another device %d total %llu\n", r, m.total);
    }
}

/* A forked child that touches nothing of CUDA ends quietly and leaves the parent's state alone. */
static void forked(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        exit(0);
    int status = -1;
    waitpid(pid, &status, 0);
    printf("child %d\n", status);
}

static void *second_thread(void *ctx)
{
    CALL(cuCtxSetCurrent, ctx);
    thread_flavour();
    return NULL;
}

int main(int argc, char **argv)
{
    CUdevice dev = 0;
    CUcontext ctx = NULL;
    CUstream s = NULL;
    CUmemoryPool pool = NULL;
    lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!lib) {
        fputs("calls: cannot open the driver\n", stderr);
        return 77;
    }
    for (int i = 0; i < N; i++)
        host[i] = (unsigned char)(i * 7 + (i >> 8));
    CUdeviceptr p;
    CALL(cuMemAlloc_v2, &p, 16); /* before cuInit: the driver's own error */
    CALL(cuInit, 0);
    CALL(cuMemAlloc_v2, &p, 16); /* no context yet */
    CALL(cuDeviceGet, &dev, 0);
    CALL(cuDevicePrimaryCtxRetain, &ctx, dev);
    CALL(cuCtxSetCurrent, ctx);
    plain_memory();
    arrays();
    CALL(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    CALL(cuDeviceGetDefaultMemPool, &pool, dev);
    stream_work(s, pool);
    stream_work(NULL, pool);
    thread_flavour();
    pthread_t t;
    if (pthread_create(&t, NULL, second_thread, ctx) == 0)
        pthread_join(t, NULL);
    pools(dev);
    own_mappings(dev);
    capture(s);
    if (argc > 3)
        collectives(argv[2], argv[3]);
    forked();
    CALL(cuStreamDestroy_v2, s);
    CALL(cuDevicePrimaryCtxRelease_v2, dev);
    return 0;
}
