/* unusual CASE: programs that a driver serves and that a library in front of it easily gets wrong. Prints what they compute and which
 * codes they get; natively all of it is as the program says.
 *
 *   contexts       a second context of the device comes and goes while the first one is at work
 *   legacies       two contexts of a device, each with a legacy stream of its own
 *   no_context     a thread that has given its context back gets the driver's error
 *   other_stream   memory is asked for in a stream of the device that is not the current one
 *   other_copy     memory of a device is copied while another device is the current one
 *   pool_most      a pool that is made with a maximum, and one that is gone
 *   pool_peaks     what two pools say of their peaks
 *   pool_gone      a pool that is there, one that is gone, and none, are asked for the same things
 *   wrong_way      copies that are named for one direction and given addresses for another
 *   no_arguments   a launch without the arguments that its kernel has
 *   bad_stream     memory is asked for and given back in a stream that is gone
 *   dead_stream    a stream that is gone is given work, and what that would have worked on gives way to others
 *   huge           sizes that no device has
 *   early          launches that may begin before the one in front of them has ended
 *   batch_many     a batch of thousands of copies; the last of them are of memory that none of the others touches
 *   lone_batch     a copy with a batch's attributes, and a box, of memory that was used least recently
 *   retained       physical memory is held by a handle that was asked for by its address; other memory is asked for beside it
 *   mapped         stream-ordered memory is taken for memory that the program maps itself
 *   failed         a kernel writes where no memory is; what is asked for after that gets the code of that
 *   past_end       the first byte behind an allocation, and copies that reach far beyond it
 *   attributes     what little is known of memory that is not in memory */
#include "tests/programs/crowd.h"

enum { ROUNDS = 4 };

/* ---- contexts ------------------------------------------------------------------------------------------------------------- */

static void contexts(void)
{
    CUcontext first, second;
    CUdeviceptr more[CROWD] = {0};
    MUST(cuDevicePrimaryCtxRelease_v2(0)); /* none but the program's own */
    MUST(cuCtxCreate_v2(&first, 0, 0));
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), out = alloc(s);
    fill(p, 17, s);
    crowd(more, s);
    MUST(cuCtxCreate_v2(&second, 0, 0));
    MUST(cuCtxDestroy_v2(second));
    MUST(cuCtxSetCurrent(first));
    map(out, p, s);
    look("out", out, s);
    look("in", p, s);
    crowd(more, s);
    look("out", out, s);
}

static void legacies(void)
{
    CUcontext second;
    CUdeviceptr more[CROWD] = {0};
    CUdeviceptr p = alloc(NULL), q = alloc(NULL), out = alloc(NULL);
    fill(p, 3, NULL);
    MUST(cuCtxSynchronize());
    MUST(cuCtxCreate_v2(&second, 0, 0));
    CUmodule m = load_kernels();
    CUfunction here = f_map, there = kernel(m, "map");
    for (int r = 0; r < ROUNDS; r++) {
        MUST(cuCtxSetCurrent(ctx));
        f_map = here;
        fill(p, (uint32_t)r, NULL);
        map(q, p, NULL);
        MUST(cuCtxSynchronize());
        MUST(cuCtxSetCurrent(second));
        f_map = there;
        crowd(more, NULL);
        map(out, q, NULL);
        MUST(cuCtxSynchronize());
        MUST(cuCtxSetCurrent(ctx));
        f_map = here;
        map(q, q, NULL);   /* queued in one context, */
        CUdeviceptr t = alloc(NULL);
        fill(t, 7, NULL);
        map(q, t, NULL);
        MUST(cuMemFreeAsync(t, NULL));
        MUST(cuCtxSetCurrent(second)); /* while the other one makes room */
        f_map = there;
        crowd(more, NULL);
        MUST(cuCtxSetCurrent(ctx));
        look("q", q, NULL);
        look("out", out, NULL);
    }
}

static void no_context(void)
{
    CUdeviceptr p = alloc(NULL), q = 0;
    fill(p, 1, NULL);
    MUST(cuCtxSynchronize());
    MUST(cuCtxSetCurrent(NULL));
    size_t a, b;
    printf("alloc %s\n", name(cuMemAllocAsync(&q, BYTES, NULL)));
    printf("alloc %s\n", name(cuMemAlloc_v2(&q, BYTES)));
    printf("fill %s\n", name(cuMemsetD32Async(p, 1, WORDS, NULL)));
    printf("copy %s\n", name(cuMemcpyDtoH_v2(host, p, BYTES)));
    printf("info %s\n", name(cuMemGetInfo_v2(&a, &b)));
    printf("free %s\n", name(cuMemFreeAsync(p, NULL)));
    MUST(cuCtxSetCurrent(ctx));
    look("p", p, NULL);
    printf("free %s\n", name(cuMemFreeAsync(p, NULL)));
}

/* ---- devices -------------------------------------------------------------------------------------------------------------- */

static void ordinal(const char *what, CUdeviceptr p)
{
    int dev = -1;
    MUST(cuPointerGetAttribute(&dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    printf("%s on device %d\n", what, dev);
}

static void other_stream(void)
{
    CUcontext other = second_device();
    CUmemoryPool pool;
    CUdeviceptr p, q;
    MUST(cuCtxSetCurrent(other));
    CUstream s = stream(1);
    MUST(cuDeviceGetDefaultMemPool(&pool, 1));
    MUST(cuCtxSetCurrent(ctx));
    ordinal("here", alloc(NULL));
    MUST(cuMemAllocAsync(&p, BYTES, s));
    ordinal("in its stream", p);
    MUST(cuMemAllocFromPoolAsync(&q, BYTES, pool, NULL));
    ordinal("of its pool", q);
    MUST(cuCtxSetCurrent(other));
    fill(p, 4, s);
    look("p", p, s);
    MUST(cuCtxSynchronize());
    MUST(cuMemFreeAsync(p, s));
    MUST(cuMemFreeAsync(q, s));
    MUST(cuCtxSynchronize());
}

static void other_copy(void)
{
    CUcontext other = second_device();
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q;
    MUST(cuCtxSetCurrent(other));
    CUstream t = stream(1);
    q = alloc(t);
    fill(q, 1, t);
    MUST(cuCtxSynchronize());
    for (int r = 0; r < ROUNDS; r++) {
        MUST(cuCtxSetCurrent(ctx));
        fill(p, 11 + (uint32_t)r, s);
        crowd(more, s);
        MUST(cuCtxSetCurrent(other));
        look("p", p, t);
        MUST(cuMemcpyPeerAsync(q, other, p, ctx, BYTES, t));
        look("q", q, t);
        MUST(cuCtxSetCurrent(ctx));
        crowd(more, s);
        MUST(cuCtxSetCurrent(other));
        for (int i = 0; i < WORDS; i++)
            host[i] = (uint32_t)(i * r);
        MUST(cuMemcpyHtoDAsync_v2(p, host, BYTES, t));
        MUST(cuCtxSynchronize());
        MUST(cuCtxSetCurrent(ctx));
        look("p", p, s);
    }
}

/* ---- batches -------------------------------------------------------------------------------------------------------------- */

static void batch_many(void)
{
    enum { MANY = 6000, EACH = 16 };
    static CUdeviceptr to[MANY + 1], from[MANY + 1];
    static size_t bytes[MANY + 1];
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s);
    size_t at = 0, failed = 0;
    CUmemcpyAttributes attr;
    memset(&attr, 0, sizeof attr);
    attr.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    fill(p, 5, s);
    fill(q, 6, s);
    crowd(more, s);
    for (int i = 0; i < MANY; i++) {
        from[i] = more[0] + (unsigned)i * EACH % BYTES;
        to[i] = more[1] + (unsigned)i * EACH % BYTES;
        bytes[i] = EACH;
    }
    from[MANY] = p;
    to[MANY] = q;
    bytes[MANY] = BYTES;
    MUST(cuMemcpyBatchAsync(to, from, bytes, MANY + 1, &attr, &at, 1, &failed, s));
    look("q", q, s);
    crowd(more, s);
    look("q", q, s);
    look("more", more[1], s);
}

static void lone_batch(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s), r = alloc(s);
    CUmemcpyAttributes attr;
    CUDA_MEMCPY3D_BATCH_OP op;
    memset(&attr, 0, sizeof attr);
    memset(&op, 0, sizeof op);
    attr.srcAccessOrder = op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    fill(p, 5, s);
    fill(q, 6, s);
    fill(r, 7, s);
    crowd(more, s);
    MUST(cuMemcpyWithAttributesAsync(q, p, BYTES, &attr, s));
    look("q", q, s);
    crowd(more, s);
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = q;
    op.dst.op.ptr.ptr = r;
    op.extent = (CUextent3D){BYTES, 1, 1};
    MUST(cuMemcpy3DWithAttributesAsync(&op, 0, s));
    crowd(more, s);
    look("r", r, s);
    look("more", more[1], s);
}

/* ---- launches that may begin early ---------------------------------------------------------------------------------------- */

static void early(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s);
    CUlaunchAttribute may = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmaticStreamSerializationAllowed = 1};
    const CUlaunchConfig config = {.gridDimX = 8, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 64, .blockDimY = 1, .blockDimZ = 1,
                                   .hStream = s, .attrs = &may, .numAttrs = 1};
    fill(p, 5, s);
    crowd(more, s);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t n = WORDS, mask = 0xffffffffu;
        MUST(cuLaunchKernelEx(&config, f_map, (void *[]){i % 2 ? &p : &q, i % 2 ? &q : &p, &n, &i, &mask}, NULL));
    }
    look("p", p, s);
    look("q", q, s);
}

/* ---- pools ---------------------------------------------------------------------------------------------------------------- */

static void pool_most(void)
{
    CUdeviceptr p = 0, q = 0, r = 0;
    CUmemoryPool pool = make_pool(4 << 20);
    CUstream s = stream(1);
    printf("within %s\n", name(cuMemAllocFromPoolAsync(&p, 3 << 20, pool, s)));
    printf("beyond %s\n", name(cuMemAllocFromPoolAsync(&q, 2 << 20, pool, s)));
    printf("within %s\n", name(cuMemAllocFromPoolAsync(&r, 1 << 20, pool, s)));
    printf("free %s\n", name(cuMemFreeAsync(p, s)));
    printf("free %s\n", name(cuMemFreeAsync(r, s)));
    MUST(cuStreamSynchronize(s));
    printf("within %s\n", name(cuMemAllocFromPoolAsync(&p, 4 << 20, pool, s)));
    fill(p, 1, s);
    MUST(cuMemFreeAsync(p, s));
    MUST(cuStreamSynchronize(s));
    MUST(cuMemPoolDestroy(pool));
    printf("gone %s\n", name(cuMemAllocFromPoolAsync(&p, 1 << 20, pool, s)));
    printf("none %s\n", name(cuMemAllocFromPoolAsync(&p, 1 << 20, NULL, s)));
}

static void peak(const char *what, CUmemoryPool pool)
{
    uint64_t high = 0, now = 0;
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high));
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &now));
    printf("%s: used %llu, at most %llu\n", what, (unsigned long long)now, (unsigned long long)high);
}

static void pool_peaks(void)
{
    CUdeviceptr p, q;
    uint64_t zero = 0;
    CUmemoryPool one = make_pool(0), two = make_pool(0);
    CUstream s = stream(1);
    MUST(cuMemAllocFromPoolAsync(&p, 3 << 20, one, s));
    MUST(cuMemAllocFromPoolAsync(&q, 1 << 20, two, s));
    peak("one", one);
    peak("two", two);
    MUST(cuMemFreeAsync(p, s));
    MUST(cuStreamSynchronize(s));
    peak("one", one);
    MUST(cuMemPoolSetAttribute(one, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    peak("one", one);
    MUST(cuMemFreeAsync(q, s));
    MUST(cuStreamSynchronize(s));
    peak("two", two);
}

static void ask(const char *what, CUmemoryPool pool)
{
    CUdeviceptr p;
    uint64_t v = 0;
    printf("%s: trim %s\n", what, name(cuMemPoolTrimTo(pool, 0)));
    printf("%s: used %s\n", what, name(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v)));
    v = 0;
    printf("%s: reset %s\n", what, name(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v)));
    printf("%s: alloc %s\n", what, name(cuMemAllocFromPoolAsync(&p, BYTES, pool, NULL)));
}

static void pool_gone(void)
{
    CUmemoryPool pool = make_pool(0);
    CUdeviceptr p = alloc(NULL);
    fill(p, 8, NULL);
    ask("there", pool);
    MUST(cuMemPoolDestroy(pool));
    ask("gone", pool);
    ask("none", NULL);
    look("p", p, NULL);
}

/* ---- calls that are wrong, or look it ------------------------------------------------------------------------------------- */

static void wrong_way(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s), r = alloc(s), t = alloc(s);
    CUDA_MEMCPY2D c;
    memset(&c, 0, sizeof c);
    fill(p, 41, s);
    map(p, p, s);
    fill(q, 0, s);
    fill(r, 0, s);
    fill(t, 0, s);
    crowd(more, s);
    printf("to the device %s\n", name(cuMemcpyHtoDAsync_v2(q, (void *)(uintptr_t)p, BYTES, s)));
    crowd(more, s);
    look("q", q, s);
    crowd(more, s);
    printf("to the host %s\n", name(cuMemcpyDtoHAsync_v2((void *)(uintptr_t)r, q, BYTES, s)));
    crowd(more, s);
    look("r", r, s);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = (void *)(uintptr_t)r;
    c.srcPitch = c.dstPitch = c.WidthInBytes = BYTES / 64;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = (void *)(uintptr_t)t;
    c.Height = 64;
    crowd(more, s);
    printf("a box %s\n", name(cuMemcpy2DAsync_v2(&c, s)));
    crowd(more, s);
    look("t", t, s);
}

static void no_arguments(void)
{
    printf("launch %s\n", name(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL)));
    printf("launch %s\n", name(cuLaunchKernel(NULL, 8, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL)));
    CUdeviceptr p = alloc(NULL);
    char bytes[64] = {0};
    size_t n = sizeof bytes;
    void *params[5] = {bytes, bytes, bytes, bytes, bytes};
    void *both[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &n, CU_LAUNCH_PARAM_END};
    void *other[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, (void *)77, &n, CU_LAUNCH_PARAM_END};
    void *nothing[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, NULL, CU_LAUNCH_PARAM_END};
    printf("launch %s\n", name(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, NULL, params, both)));
    printf("launch %s\n", name(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, NULL, NULL, other)));
    printf("launch %s\n", name(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, NULL, NULL, nothing)));
    fill(p, 1, NULL);
    look("p", p, NULL);
}

static void bad_stream(void)
{
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = 0;
    MUST(cuStreamDestroy_v2(s));
    printf("alloc %s\n", name(cuMemAllocAsync(&q, BYTES, s)));
    printf("free %s\n", name(cuMemFreeAsync(p, s)));
    fill(p, 2, NULL);
    look("p", p, NULL);
    printf("free %s\n", name(cuMemFreeAsync(p, NULL)));
}

static void dead_stream(void)
{
    CUstream s = stream(1), gone = stream(1);
    CUdeviceptr p = alloc(s), more[CROWD] = {0};
    uint32_t n = WORDS, k = 1, all = 0xffffffffu;
    fill(p, 8, s);
    MUST(cuStreamSynchronize(s));
    MUST(cuStreamDestroy_v2(gone));
    printf("launch %s\n", name(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, gone, (void *[]){&p, &p, &n, &k, &all}, NULL)));
    printf("fill %s\n", name(cuMemsetD32Async(p, 1, WORDS, gone)));
    printf("read %s\n", name(cuMemcpyDtoHAsync_v2(host, p, BYTES, gone)));
    printf("write %s\n", name(cuMemcpyHtoDAsync_v2(p, host, BYTES, gone)));
    crowd(more, s);
    look("p", p, s);
}

static void huge(void)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 512, SIZE_MAX - (4 << 20), (size_t)1 << 63, (size_t)1 << 48};
    CUdeviceptr p = alloc(NULL), q;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        printf("alloc %s\n", name(cuMemAllocAsync(&q, sizes[i], NULL)));
        printf("alloc %s\n", name(cuMemAlloc_v2(&q, sizes[i])));
    }
    fill(p, 8, NULL);
    look("p", p, NULL);
}

static void retained(void)
{
    const CUmemAllocationProp prop = memory_of(0);
    CUmemGenericAllocationHandle h, again;
    CUdeviceptr va, p[4];
    CUstream s = stream(1);
    MUST(cuMemAddressReserve(&va, 8 * BYTES, 0, 0, 0));
    MUST(cuMemCreate(&h, 8 * BYTES, &prop, 0));
    MUST(cuMemMap(va, 8 * BYTES, 0, h, 0));
    MUST(cuMemRelease(h));
    MUST(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)va));
    MUST(cuMemUnmap(va, 8 * BYTES));
    for (unsigned i = 0; i < 4; i++)
        fill(p[i] = alloc(s), i, s);
    for (unsigned i = 0; i < 4; i++)
        look("p", p[i], s);
    MUST(cuMemRelease(again));
}

static void mapped(void)
{
    const CUmemAllocationProp prop = memory_of(0);
    const CUmemAccessDesc none = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
    CUmemGenericAllocationHandle h;
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), more[CROWD] = {0};
    fill(p, 8, s);
    for (int i = 0; i < 2; i++) { /* when it is in memory, and when it may be elsewhere */
        MUST(cuStreamSynchronize(s));
        MUST(cuMemCreate(&h, BYTES, &prop, 0));
        printf("access %s\n", name(cuMemSetAccess(p, BYTES, &none, 1)));
        printf("unmap %s\n", name(cuMemUnmap(p, BYTES)));
        printf("map %s\n", name(cuMemMap(p, BYTES, 0, h, 0)));
        printf("free %s\n", name(cuMemAddressFree(p, BYTES)));
        MUST(cuMemRelease(h));
        crowd(more, s);
    }
    look("p", p, s);
}

static void failed(void)
{
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), m = 0, more[CROWD] = {0};
    crowd(more, s);
    map(p + (1ull << 40), p, s);
    printf("launch %s\n", name(cuStreamSynchronize(s)));
    for (int i = 0; i < 3; i++) {
        printf("alloc %s\n", name(cuMemAllocAsync(&m, 1ull << 45, s)));
        printf("plain %s\n", name(cuMemAlloc_v2(&m, 64 * BYTES)));
        printf("read %s\n", name(cuMemcpyDtoHAsync_v2(host, more[i], BYTES, s)));
        printf("fill %s\n", name(cuMemsetD32Async(p, 3, WORDS, s)));
    }
}

static void past_end(void)
{
    CUstream s = stream(1);
    CUdeviceptr p, q, base;
    size_t n;
    static char big[64 * BYTES];
    unsigned type;
    CUarray array;
    const CUDA_ARRAY_DESCRIPTOR row = {.Width = 128, .Height = 1, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .srcPitch = 64, .dstPitch = 64,
                         .WidthInBytes = 64, .Height = 2};
    MUST(cuArrayCreate_v2(&array, &row));
    box.dstDevice = (q = alloc(s)) + BYTES - 64;
    box.srcDevice = p = alloc(s); /* nothing lies behind it */
    fill(p, 8, s);
    fill(q, 9, s);
    printf("range %s\n", name(cuMemGetAddressRange_v2(&base, &n, p + BYTES)));
    printf("attribute %s\n", name(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + BYTES)));
    printf("to the host %s\n", name(cuMemcpyDtoHAsync_v2(big, p, sizeof big, s)));
    printf("to the device %s\n", name(cuMemcpyHtoDAsync_v2(p, big, sizeof big, s)));
    printf("fill %s\n", name(cuMemsetD8Async(p, 1, sizeof big, s)));
    printf("fill %s\n", name(cuMemsetD2D8Async(p, BYTES, 1, 64, 64, s)));
    printf("box %s\n", name(cuMemcpy2DAsync_v2(&box, s)));
    printf("peer %s\n", name(cuMemcpyPeerAsync(p, ctx, q + BYTES - 64, ctx, 128, s)));
    printf("array %s\n", name(cuMemcpyAtoD_v2(q + BYTES - 64, array, 0, 128)));
    look("q", q, s);
    look("p", p, s);
}

/* Asked as a list; told byte by byte, and not beyond what the driver writes. */
static void list(const char *what, CUpointer_attribute last, CUdeviceptr p)
{
    unsigned char said[4][8];
    CUpointer_attribute attrs[] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_HOST_POINTER, last};
    void *data[] = {said[0], said[1], said[2], said[3]};
    memset(said, 0x55, sizeof said);
    printf("%s %s", what, name(cuPointerGetAttributes(4, attrs, data, p)));
    for (size_t i = 0; i < sizeof said; i++)
        printf(" %02x", said[i / 8][i % 8]);
    printf("\n");
}

static void attributes(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUmemGenericAllocationHandle h;
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s);
    unsigned long long handles = 9;
    unsigned flags = 9;
    fill(p, 8, s);
    fill(q, 8, s);
    crowd(more, s);
    printf("handles %s", name(cuPointerGetAttribute(&handles, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p)));
    printf(" %llu\n", handles);
    printf("access %s", name(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p)));
    printf(" %u\n", flags);
    printf("retain %s\n", name(cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)p)));
    list("list", CU_POINTER_ATTRIBUTE_MAPPED, p);
    list("wrong list", (CUpointer_attribute)999, p);
    MUST(cuMemFreeAsync(q, s));
    MUST(cuStreamSynchronize(s));
    list("of what is gone", CU_POINTER_ATTRIBUTE_MAPPED, q);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(contexts), CASE(legacies), CASE(no_context), CASE(other_stream), CASE(other_copy), CASE(pool_most), CASE(pool_peaks), CASE(pool_gone),
        CASE(wrong_way), CASE(no_arguments), CASE(bad_stream), CASE(dead_stream), CASE(huge), CASE(early), CASE(batch_many), CASE(lone_batch),
        CASE(retained), CASE(mapped), CASE(failed), CASE(past_end), CASE(attributes)};
    start();
    return run_case("unusual", cases, sizeof cases / sizeof *cases, argc, argv);
}
