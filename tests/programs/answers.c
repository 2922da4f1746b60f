/* answers: questions about memory and calls that must fail, one line each, to be compared with what the bare driver says. */
#include "tests/programs/program.h"

static const char *name(CUresult r)
{
    const char *n = "?";
    cuGetErrorName(r, &n);
    return n;
}

static void about(const char *what, CUdeviceptr p, CUdeviceptr origin, CUcontext ctx)
{
    CUdeviceptr base = 0, start = 0, dptr = 0;
    size_t bytes = 0, range = 0;
    unsigned type = 0;
    int ordinal = -1, managed = -1, mapped = -1;
    CUcontext c = NULL;
    CUresult r = cuMemGetAddressRange_v2(&base, &bytes, p);
    printf("%s: range %s base %d bytes %zu\n", what, name(r), r == CUDA_SUCCESS ? base == origin : -1, r == CUDA_SUCCESS ? bytes : 0);
    printf("  type %s", name(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p)));
    printf(" %u ordinal %s", type, name(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p)));
    printf(" %d managed %s", ordinal, name(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p)));
    printf(" %d mapped %s", managed, name(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, p)));
    printf(" %d context %s", mapped, name(cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p)));
    printf(" %d\n", c == ctx);
    CUpointer_attribute attrs[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void *data[] = {&start, &range, &dptr, &type};
    type = 9;
    r = cuPointerGetAttributes(4, attrs, data, p);
    printf("  several %s start %d size %zu pointer %d type %u\n", name(r), start ? start == origin : -1, range, dptr ? dptr == p : -1, type);
}

int main(void)
{
    CUcontext ctx = primary_context();
    CUdeviceptr a = 0, b = 0, c = 0, d = 0;
    CUstream s;
    CUmemoryPool pool;
    size_t free_bytes = 0, total = 0;
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAllocAsync(&a, 3000000, s));
    MUST(cuMemAllocAsync(&b, 1000, s));
    MUST(cuMemAlloc_v2(&c, 100000));
    MUST(cuStreamSynchronize(s));
    about("large", a, a, ctx);
    about("large inside", a + 12345, a, ctx);
    about("large last", a + 2999999, a, ctx);
    about("small", b, b, ctx);
    about("small inside", b + 999, b, ctx);
    about("legacy", c + 5, c, ctx);
    about("nothing", 64, 0, ctx);
    MUST(cuMemGetInfo_v2(&free_bytes, &total));
    printf("info %d %d\n", free_bytes <= total, free_bytes > 0);
    printf("zero bytes: %s\n", name(cuMemAllocAsync(&d, 0, s)));
    printf("no pointer: %s\n", name(cuMemAllocAsync(NULL, 100, s)));
    printf("zero bytes, legacy: %s\n", name(cuMemAlloc_v2(&d, 0)));
    printf("far too much: %s\n", name(cuMemAllocAsync(&d, 1ull << 45, s)));
    printf("far too much, legacy: %s\n", name(cuMemAlloc_v2(&d, 1ull << 45)));
    printf("afterwards: %s\n", name(cuMemAllocAsync(&d, 2000000, s)));
    printf("free inside: %s\n", name(cuMemFreeAsync(a + 256, s)));
    printf("free: %s\n", name(cuMemFreeAsync(a, s)));
    printf("free again: %s\n", name(cuMemFreeAsync(a, s)));
    printf("free by cuMemFree: %s\n", name(cuMemFree_v2(d)));
    printf("again: %s\n", name(cuMemFree_v2(d)));
    printf("free small: %s\n", name(cuMemFreeAsync(b, s)));
    printf("again: %s\n", name(cuMemFreeAsync(b, s)));
    printf("free wild: %s\n", name(cuMemFree_v2(0x123456789000ull)));
    printf("free nothing: %s\n", name(cuMemFree_v2(0)));
    printf("free legacy in order: %s\n", name(cuMemFreeAsync(c, s)));
    about("freed", a, 0, ctx);
    about("freed small", b, 0, ctx);
    printf("fill freed: %s\n", name(cuMemsetD8Async(c, 1, 0, s)));
    pool = make_pool(0);
    MUST(cuMemAllocFromPoolAsync(&a, 4 << 20, pool, s));
    CUmemoryPool asked = NULL;
    printf("pool of it: %s", name(cuPointerGetAttribute(&asked, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a)));
    printf(" %d\n", asked == pool);
    CUmemoryPool def = NULL, was = NULL;
    CUdeviceptr e;
    MUST(cuDeviceGetDefaultMemPool(&def, 0));
    MUST(cuMemAllocAsync(&d, 4 << 20, s));
    printf("pool of one that names none: %s", name(cuPointerGetAttribute(&asked, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, d)));
    printf(" %d\n", asked == def);
    MUST(cuDeviceGetMemPool(&was, 0));
    MUST(cuDeviceSetMemPool(0, pool));
    MUST(cuMemAllocAsync(&e, 4 << 20, s));
    printf("after another was chosen: %s", name(cuPointerGetAttribute(&asked, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, e)));
    printf(" %d", asked == pool);
    printf(" %s", name(cuPointerGetAttribute(&asked, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, d)));
    printf(" %d\n", asked == def);
    MUST(cuDeviceSetMemPool(0, was));
    MUST(cuMemFreeAsync(d, s));
    MUST(cuMemFreeAsync(e, s));
    MUST(cuStreamSynchronize(s));
    uint64_t used = 0;
    printf("used: %s", name(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used)));
    printf(" %llu\n", (unsigned long long)used);
    printf("trim: %s\n", name(cuMemPoolTrimTo(pool, 0)));
    printf("free: %s\n", name(cuMemFreeAsync(a, s)));
    MUST(cuStreamSynchronize(s));
    printf("used: %s", name(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used)));
    printf(" %llu\n", (unsigned long long)used);
    printf("destroy: %s\n", name(cuMemPoolDestroy(pool)));
    uint32_t h = 0;
    MUST(cuMemAllocAsync(&a, 3000000, s));
    MUST(cuMemsetD32Async(a, 0x11111111, 750000, s));
    MUST(cuMemcpyDtoHAsync_v2(&h, a + 2999996, 4, s));
    MUST(cuStreamSynchronize(s));
    printf("last word %x\n", h);
    printf("past its end: %s\n", name(cuMemcpyDtoH_v2(&h, a + 3000000 + (64 << 20), 4)));
    return 0;
}
