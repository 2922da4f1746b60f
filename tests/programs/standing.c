/* standing CASE: a stream stands still, in a function of the host's that waits for the host. Beside it the host makes a call that does not
 * wait for that stream; only then the stream goes on. Who waits there, in any call, waits for ever. Prints what lies in memory after that.
 *
 *   alloc          memory is asked for in stream order, used and given back
 *   plain          memory is asked for
 *   launch         a kernel reads memory that was used least recently
 *   to_device      a copy from pinned memory, and one from memory that is not
 *   to_host        a copy to pinned memory, and one to memory that is not
 *   within         a copy within the device
 *   box            a two-dimensional copy within the device, and one to pinned memory
 *   batch          a batch of copies to pinned memory
 *   events         events are recorded, waited for and asked
 *   behind         another stream waits for the one that stands still, is used, and asked whether it is done
 *   streams        streams are made, used and destroyed
 *   destroy        the stream that stands still is destroyed
 *   free_behind    memory that the stream still uses is given back there; others ask for memory
 *   free_ordered   the same in a stream that waits for it
 *   free_now       memory that nobody uses any more is given back without a stream; others ask for memory
 *   churn          memory comes and goes in the stream that stands still, 40 times; others ask for memory
 *   questions      how much memory is free, and what an address is
 *   pinned         pinned memory comes
 *   register       memory of the program's own is pinned
 *   managed        managed memory comes
 *   array          an array comes
 *   pools          a pool is made, used, trimmed and destroyed
 *   mapped         physical memory is made, mapped and used
 *   module         a module is loaded and used
 *   capture        a stream is captured, and its graph launched
 *   graph          the same where the captured work is in memory that the stream uses
 *   retain         an allocation is taken by its handle
 *   collect        enough launches for a loop to be found among them
 *   words          words are written by a stream
 *   huge           more memory than a device has
 *   thread         another thread makes some of these calls */
#include "tests/programs/crowd.h"

#include <pthread.h>

static CUstream a, s, t; /* a stands still */
static CUdeviceptr p, q, old;
static uint32_t *pinned_host;

static void alloc_(void)
{
    for (int i = 0; i < 4; i++) {
        CUdeviceptr m = alloc(s);
        fill(m, 3u + (uint32_t)i, s);
        map(q, m, s);
        MUST(cuMemFreeAsync(m, s));
    }
}

static void plain(void)
{
    CUdeviceptr m;
    MUST(cuMemAlloc_v2(&m, BYTES));
    fill(m, 4, s);
    map(q, m, s);
}

static void launch(void) { map(q, old, s); }

static void to_device(void)
{
    MUST(cuMemcpyHtoDAsync_v2(old, pinned_host, BYTES, s));
    map(q, old, s);
    MUST(cuMemcpyHtoDAsync_v2(old, host, BYTES, s));
    map(q, old, s);
}

static void to_host(void)
{
    MUST(cuMemcpyDtoHAsync_v2(pinned_host, old, BYTES, s));
    MUST(cuStreamSynchronize(s));
    MUST(cuMemcpyDtoHAsync_v2(host, old, BYTES, s));
    MUST(cuStreamSynchronize(s));
}

static void within(void) { MUST(cuMemcpyDtoDAsync_v2(q, old, BYTES, s)); }

static void box(void)
{
    CUDA_MEMCPY2D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = old;
    c.dstDevice = q;
    c.srcPitch = c.dstPitch = c.WidthInBytes = BYTES / 64;
    c.Height = 64;
    MUST(cuMemcpy2DAsync_v2(&c, s));
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = pinned_host;
    MUST(cuMemcpy2DAsync_v2(&c, s));
    MUST(cuStreamSynchronize(s));
}

static void batch(void)
{
    CUdeviceptr to[2] = {(CUdeviceptr)(uintptr_t)pinned_host, q}, from[2] = {old, old};
    size_t bytes[2] = {BYTES, BYTES}, first = 0, bad = 0;
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    MUST(cuMemcpyBatchAsync(to, from, bytes, 2, &how, &first, 1, &bad, s));
    MUST(cuStreamSynchronize(s));
}

static void events(void)
{
    CUevent e, f;
    float ms;
    MUST(cuEventCreate(&e, 0));
    MUST(cuEventCreate(&f, 0));
    MUST(cuEventRecord(e, s));
    map(q, old, s);
    MUST(cuEventRecord(f, s));
    MUST(cuStreamWaitEvent(t, f, 0));
    fill(old, 3, t);
    MUST(cuEventSynchronize(f));
    MUST(cuEventElapsedTime(&ms, e, f));
    MUST(cuEventDestroy_v2(e));
    MUST(cuEventDestroy_v2(f));
}

static void behind(void)
{
    CUevent e;
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(e, a));
    MUST(cuStreamWaitEvent(t, e, 0));
    map(q, p, t);
    map(old, q, t);
    printf("%s", name(cuStreamQuery(t)));
    printf(" %s", name(cuEventQuery(e)));
    printf(" %s\n", name(cuStreamQuery(a)));
    MUST(cuEventDestroy_v2(e));
    fill(alloc(s), 9, s);
}

static void streams(void)
{
    for (int i = 0; i < 4; i++) {
        CUstream u = stream((unsigned)i % 2);
        CUdeviceptr m = alloc(u);
        fill(m, (uint32_t)i, u);
        MUST(cuMemFreeAsync(m, u));
        MUST(cuStreamDestroy_v2(u));
    }
}

static void destroy(void)
{
    MUST(cuStreamDestroy_v2(a));
    map(q, old, s);
    a = stream(1);
}

static void free_behind(void)
{
    CUdeviceptr m;
    MUST(cuMemFreeAsync(p, a));
    m = alloc(s);
    fill(m, 8, s);
    map(q, m, s);
    p = m;
}

static void free_ordered(void)
{
    CUevent e;
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(e, a));
    MUST(cuStreamWaitEvent(t, e, 0));
    MUST(cuMemFreeAsync(p, t));
    MUST(cuEventDestroy_v2(e));
    p = alloc(s);
    fill(p, 8, s);
    map(q, p, s);
}

static void churn(void)
{
    for (unsigned i = 0; i < 40; i++) {
        CUdeviceptr m = alloc(a);
        fill(m, 50 + i, a);
        map(p, m, a);
        MUST(cuMemFreeAsync(m, a));
    }
    for (unsigned i = 0; i < 400; i++) { /* of less than a page */
        CUdeviceptr m;
        MUST(cuMemAllocAsync(&m, 8192, a));
        MUST(cuMemsetD32Async(m, i, 2048, a));
        MUST(cuMemFreeAsync(m, a));
    }
    alloc_();
}

static void free_now(void)
{
    CUdeviceptr m = alloc(s);
    fill(m, 6, s);
    MUST(cuStreamSynchronize(s));
    MUST(cuMemFree_v2(m));
    m = alloc(t);
    fill(m, 7, t);
    map(q, m, t);
}

static void questions(void)
{
    size_t free_bytes, total, bytes;
    CUdeviceptr base;
    unsigned ordinal = 9;
    MUST(cuMemGetInfo_v2(&free_bytes, &total));
    MUST(cuMemGetAddressRange_v2(&base, &bytes, old + 8));
    MUST(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, old));
    printf("%zu at %d of %u\n", bytes, base == old, ordinal);
}

static void pinned(void)
{
    void *m;
    MUST(cuMemHostAlloc(&m, BYTES, 0));
    memset(m, 1, BYTES);
    MUST(cuMemcpyHtoDAsync_v2(old, m, BYTES, s));
}

static void register_(void)
{
    MUST(cuMemHostRegister_v2(host, sizeof host, 0));
    MUST(cuMemcpyHtoDAsync_v2(old, host, BYTES, s));
}

static void managed(void)
{
    CUdeviceptr m;
    MUST(cuMemAllocManaged(&m, BYTES, CU_MEM_ATTACH_GLOBAL));
    fill(m, 2, s);
    map(q, m, s);
}

static void array(void)
{
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 64, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUarray r;
    MUST(cuArrayCreate_v2(&r, &d));
}

static void pools(void)
{
    CUmemoryPool pool = make_pool(0);
    CUdeviceptr m;
    MUST(cuMemAllocFromPoolAsync(&m, BYTES, pool, s));
    fill(m, 5, s);
    map(q, m, s);
    MUST(cuMemFreeAsync(m, s));
    MUST(cuMemPoolTrimTo(pool, 0));
    MUST(cuMemPoolDestroy(pool));
}

static void mapped(void)
{
    CUdeviceptr va = map_own(BYTES);
    fill(va, 6, s);
    map(q, va, s);
}

static void module(void)
{
    CUfunction was = f_map;
    f_map = kernel(load_kernels(), "map");
    map(q, old, s);
    f_map = was;
}

static void capture_of(CUdeviceptr to, CUdeviceptr from)
{
    CUgraph g;
    CUgraphExec e;
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    map(to, from, s);
    MUST(cuStreamEndCapture(s, &g));
    MUST(cuGraphInstantiateWithFlags(&e, g, 0));
    MUST(cuGraphLaunch(e, t));
}

static void capture(void) { capture_of(q, old); }

static void graph(void)
{
    CUevent e;
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(e, a));
    MUST(cuStreamWaitEvent(t, e, 0));
    capture_of(p, old);
}

static void retain(void)
{
    CUmemGenericAllocationHandle h;
    printf("%s\n", name(cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)old)));
    map(q, old, s);
}

static void collect(void)
{
    for (int i = 0; i < 400; i++) {
        CUdeviceptr m = alloc(s);
        map(m, q, s);
        fill(old, (uint32_t)i % 5, s);
        map(q, m, s);
        MUST(cuMemFreeAsync(m, s));
        if (i % 4 == 3) {
            MUST(cuMemcpyDtoHAsync_v2(host, q, BYTES, s));
            MUST(cuStreamSynchronize(s));
        }
    }
}

static void words(void)
{
    MUST(cuStreamWriteValue32(s, old, 7, 0));
    MUST(cuStreamWriteValue64(s, q, 7, 0));
}

static void huge(void)
{
    CUdeviceptr m;
    printf("%s", name(cuMemAlloc_v2(&m, 1ull << 45)));
    printf(" %s\n", name(cuMemAllocAsync(&m, 1ull << 45, s)));
}

static void *other_thread(void *arg)
{
    (void)arg;
    MUST(cuCtxSetCurrent(ctx));
    alloc_();
    to_host();
    launch();
    events();
    return NULL;
}

static void thread(void)
{
    pthread_t o;
    if (pthread_create(&o, NULL, other_thread, NULL))
        exit(3);
    pthread_join(o, NULL);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"alloc", alloc_}, {"register", register_}, CASE(plain), CASE(launch), CASE(to_device), CASE(to_host), CASE(within), CASE(box),
        CASE(batch), CASE(events), CASE(behind), CASE(streams), CASE(destroy), CASE(free_behind), CASE(free_ordered), CASE(free_now), CASE(churn), CASE(questions),
        CASE(pinned), CASE(managed), CASE(array), CASE(pools), CASE(mapped), CASE(module), CASE(capture), CASE(graph), CASE(retain),
        CASE(collect), CASE(words), CASE(huge), CASE(thread)};
    CUdeviceptr more[CROWD] = {0};
    start();
    a = stream(1), s = stream(1), t = stream(1);
    MUST(cuMemHostAlloc((void **)&pinned_host, BYTES, 0));
    p = alloc(a), q = alloc(s), old = alloc(s);
    fill(p, 1, a);
    fill(q, 2, s);
    fill(old, 3, s);
    MUST(cuCtxSynchronize());
    crowd(more, s);
    map(p, p, a);
    map(q, q, s);
    MUST(cuCtxSynchronize());
    wait_in_function(a);
    map(p, p, a);
    int r = run_case("standing", cases, sizeof cases / sizeof *cases, argc, argv);
    set_flag();
    MUST(cuCtxSynchronize());
    look("p", p, s);
    look("q", q, s);
    look("old", old, s);
    for (int i = 0; i < CROWD; i++)
        look("more", more[i], s);
    return r;
}
