/*
 * Several simulated devices in one process: SIMGPU_DEVICES.
 */
#include "tests/simgpu/testing.h"

#include <sys/mman.h>

static CUcontext contexts[2];

static void two(void)
{
    setenv("SIMGPU_DEVICES", "2", 1);
    setenv("SIMGPU_MEM", "64M", 1);
    start();
    contexts[0] = test_ctx;
    OK(cuDevicePrimaryCtxRetain(&contexts[1], 1));
}

static void use(int dev)
{
    OK(cuCtxSetCurrent(contexts[dev]));
}

START_TEST(identities)
{
    int n, value, can;
    CUdevice dev;
    CUuuid a, b;
    char bus[2][32];
    two();
    OK(cuDeviceGetCount(&n));
    ck_assert_int_eq(n, 2);
    OK(cuDeviceGet(&dev, 1));
    ck_assert_int_eq(dev, 1);
    FAILS(cuDeviceGet(&dev, 2), CUDA_ERROR_INVALID_DEVICE);
    FAILS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 2), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceGetUuid_v2(&a, 0));
    OK(cuDeviceGetUuid_v2(&b, 1));
    ck_assert_mem_ne(a.bytes, b.bytes, sizeof a.bytes);
    for (int i = 0; i < 2; i++) {
        OK(cuDeviceGetPCIBusId(bus[i], sizeof bus[i], i));
        OK(cuDeviceGetByPCIBusId(&dev, bus[i]));
        ck_assert_int_eq(dev, i);
        OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
        ck_assert_int_eq(value, i + 1);
    }
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    ck_assert_int_eq(can, 0);
    use(0);
    FAILS(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    use(1);
    OK(cuCtxGetDevice(&dev));
    ck_assert_int_eq(dev, 1);
}
END_TEST

/* Each device has its own memory, its own pool, and says whose a pointer is. */
START_TEST(memory_is_per_device)
{
    CUdeviceptr p[2], q, r;
    size_t available, total;
    CUmemoryPool pool[2];
    two();
    for (int i = 0; i < 2; i++) {
        use(i);
        OK(cuMemAlloc_v2(&p[i], 40 << 20));
        FAILS(cuMemAlloc_v2(&q, 40 << 20), CUDA_ERROR_OUT_OF_MEMORY);
        FAILS(cuMemAllocAsync(&q, 40 << 20, NULL), CUDA_ERROR_OUT_OF_MEMORY);
        OK(cuDeviceGetDefaultMemPool(&pool[i], i));
    }
    ck_assert_ptr_ne(pool[0], pool[1]);
    FAILS(cuDeviceSetMemPool(0, pool[1]), CUDA_ERROR_INVALID_VALUE);
    use(0);
    OK(cuMemFree_v2(p[0]));
    OK(cuMemAllocAsync(&q, 40 << 20, NULL));
    use(1);
    OK(cuMemGetInfo_v2(&available, &total));
    ck_assert_uint_eq(available, 24 << 20);
    OK(cuMemAllocFromPoolAsync(&r, 1 << 20, pool[0], NULL)); /* another device's pool: its memory */
    int ordinal;
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p[1]));
    ck_assert_int_eq(ordinal, 1);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q));
    ck_assert_int_eq(ordinal, 0);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, r));
    ck_assert_int_eq(ordinal, 0);
    cuuint64_t used;
    OK(cuMemPoolGetAttribute(pool[0], CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    ck_assert_uint_eq(used, 41 << 20);
    OK(cuMemPoolGetAttribute(pool[1], CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    ck_assert_uint_eq(used, 0);
    CUmemAllocationProp prop = device_prop();
    CUmemGenericAllocationHandle h;
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    prop.location.id = 1;
    OK(cuMemCreate(&h, 2 << 20, &prop, 0));
    OK(cuMemAddressReserve(&q, 2 << 20, 0, 0, 0));
    OK(cuMemMap(q, 2 << 20, 0, h, 0));
    FAILS(cuMemSetAccess(q, 2 << 20, &access, 1), CUDA_ERROR_INVALID_VALUE); /* no device reaches another's memory */
    access.location.id = 1;
    OK(cuMemSetAccess(q, 2 << 20, &access, 1));
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q));
    ck_assert_int_eq(ordinal, 1);
    OK(cuMemUnmap(q, 2 << 20));
    OK(cuMemRelease(h));
    OK(cuMemAddressFree(q, 2 << 20));
}
END_TEST

/* The processor has protection keys. */
static int has_keys(void)
{
    const int key = pkey_alloc(0, 0);
    if (key >= 0)
        pkey_free(key);
    return key >= 0;
}

/* A kernel reaches another device's memory where it has been opened to it, and faults elsewhere (with protection keys). */
START_TEST(peers)
{
    enum { PLAIN, MAPPED, POOLED, CLOSED, PLACES };
    CUdeviceptr p[PLACES], own;
    CUstream s;
    int can;
    setenv("SIMGPU_PEERS", "1", 1);
    two();
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    ck_assert_int_eq(can, 1);
    OK(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    ck_assert_int_eq(can, 1);
    use(0);
    p[PLAIN] = alloc_words(64);
    const CUmemAllocationProp prop = device_prop();
    const CUmemAccessDesc both[] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}, {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    CUmemGenericAllocationHandle h;
    for (int i = MAPPED; i <= CLOSED; i += CLOSED - MAPPED) {
        OK(cuMemCreate(&h, 2 << 20, &prop, 0));
        OK(cuMemAddressReserve(&p[i], 2 << 20, 0, 0, 0));
        OK(cuMemMap(p[i], 2 << 20, 0, h, 0));
        OK(cuMemSetAccess(p[i], 2 << 20, both, i == MAPPED ? 2 : 1));
    }
    CUmemoryPool pool;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocAsync(&p[POOLED], 256, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuMemPoolSetAccess(pool, &both[1], 1));
    CUmemAccess_flags flags;
    OK(cuMemPoolGetAccess(&flags, pool, (CUmemLocation *)(uintptr_t)&both[1].location));
    ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    use(1);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    own = alloc_words(64);
    OK(cuMemcpyDtoDAsync_v2(p[PLAIN], own, 256, s)); /* copies may go through the host */
    FAILS(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_INVALID_DEVICE);
    FAILS(cuCtxEnablePeerAccess(contexts[0], 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuCtxDisablePeerAccess(contexts[0]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(cuCtxEnablePeerAccess(contexts[0], 0));
    FAILS(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    launch_fill(p[PLAIN], 7, 64, s);
    OK(cuStreamSynchronize(s));
    OK(cuCtxDisablePeerAccess(contexts[0]));
    launch_fill(p[MAPPED], 8, 64, s);
    launch_fill(p[POOLED], 9, 64, s);
    OK(cuStreamSynchronize(s));
    uint32_t word;
    for (uint32_t i = 0; i < CLOSED; i++) {
        OK(cuMemcpyDtoH_v2(&word, p[i], 4));
        ck_assert_uint_eq(word, 7 + i);
    }
    if (has_keys()) {
        launch_fill(p[CLOSED], 10, 64, s);
        FAILS(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    }
}
END_TEST

/* Work of two devices runs beside each other, in simulated time too; events order it across them. */
START_TEST(work_is_per_device)
{
    CUstream s[2];
    CUevent begin[2], end[2], passed;
    CUdeviceptr p[2];
    float ms[2];
    two();
    for (int i = 0; i < 2; i++) {
        use(i);
        OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&begin[i], 0));
        OK(cuEventCreate(&end[i], 0));
        p[i] = alloc_words(1);
        OK(cuMemsetD32Async(p[i], 1, 1, s[i]));
        OK(cuEventRecord(begin[i], s[i]));
        launch_work(0, 1400000000, s[i]); /* 1 ms */
        OK(cuEventRecord(end[i], s[i]));
        CUdevice dev;
        OK(cuStreamGetDevice(s[i], &dev));
        ck_assert_int_eq(dev, i);
    }
    for (int i = 0; i < 2; i++) {
        use(i);
        OK(cuCtxSynchronize());
        OK(cuEventElapsedTime(&ms[i], begin[i], end[i]));
        ck_assert_msg(ms[i] > 0.99 && ms[i] < 1.1, "device %d: %f ms", i, ms[i]);
    }
    FAILS(cuEventRecord(end[0], s[1]), CUDA_ERROR_INVALID_HANDLE); /* of another device */
    use(0);
    OK(cuEventCreate(&passed, CU_EVENT_DISABLE_TIMING));
    launch_nap(20000, s[0]);
    launch_step(p[0], 1, 41, s[0]);
    OK(cuEventRecord(passed, s[0]));
    use(1);
    OK(cuStreamWaitEvent(s[1], passed, 0));
    OK(cuMemcpyPeerAsync(p[1], contexts[1], p[0], contexts[0], 4, s[1]));
    OK(cuStreamSynchronize(s[1]));
    ck_assert_uint_eq(read_word(p[1]), 42);
    /* a fault on one device leaves the other alone */
    CUdeviceptr gone = alloc_words(1);
    OK(cuMemFree_v2(gone));
    launch_step(gone, 1, 1, s[1]);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    use(0);
    launch_step(p[0], 1, 1, s[0]);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(read_word(p[0]), 43);
}
END_TEST

START_TEST(nonsense)
{
    static const char *const values[] = { "0", "9", "1.5", "two" };
    setenv("SIMGPU_DEVICES", values[_i], 1);
    FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* A green context has a default stream of its own and its primary context's memory; it is no context before it is asked for as one. */
START_TEST(green_contexts)
{
    CUdevResource sms, part[2];
    CUdevResourceDesc desc;
    CUgreenCtx green, of;
    CUcontext as_context, ctx;
    CUstream s, blocking;
    CUdeviceptr p;
    unsigned n = 2;
    int active;
    unsigned flags;
    OK(cuInit(0));
    FAILS(cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_INVALID), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    OK(cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevSmResourceSplitByCount(part, &n, &sms, NULL, 0, 8));
    ck_assert_uint_eq(n, 2);
    CUdevResource mixed[] = { part[0], sms };
    FAILS(cuDevResourceGenerateDesc(&desc, mixed, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    OK(cuDevResourceGenerateDesc(&desc, part, 2));
    FAILS(cuGreenCtxCreate(&green, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 1); /* it keeps it */
    OK(cuCtxFromGreenCtx(&as_context, green));
    OK(cuCtxSetCurrent(as_context));
    FAILS(cuCtxDestroy_v2(as_context), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuStreamGetCtx_v2(NULL, &ctx, &of));
    ck_assert_ptr_eq(of, green);
    ck_assert_ptr_ne(ctx, as_context); /* the primary one */
    FAILS(cuStreamGetCtx_v2(CU_STREAM_PER_THREAD, &ctx, &of), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuGreenCtxStreamCreate(&blocking, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
    OK(cuMemAlloc_v2(&p, 4096));
    OK(cuCtxSetCurrent(NULL));
    OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cuCtxSetCurrent(ctx));
    OK(cuGreenCtxDestroy(green));
    FAILS(cuGreenCtxDestroy(green), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    FAILS(cuCtxFromGreenCtx(&as_context, green), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuMemsetD32Async(p, 1, 1024, NULL)); /* the memory is there still */
    OK(cuCtxSynchronize());
    OK(cuMemFree_v2(p));
}
END_TEST

/* A capture spans devices as streams of theirs wait for its events, and says so where it is asked; then these streams are their own again. */
START_TEST(captures_span_devices)
{
    CUstream s[2];
    CUevent e[2];
    CUdeviceptr p[2];
    CUstreamCaptureStatus status;
    CUgraph g;
    CUgraphExec x;
    unsigned word;
    two();
    for (int i = 0; i < 2; i++) {
        use(i);
        OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
        OK(cuMemAlloc_v2(&p[i], 4));
        OK(cuMemsetD32_v2(p[i], 0, 1));
        OK(cuCtxSynchronize());
    }
    use(0);
    OK(cuStreamBeginCapture_v2(s[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(e[0], s[0]));
    OK(cuStreamWaitEvent(s[1], e[0], 0));
    use(1);
    OK(cuStreamIsCapturing(s[1], &status));
    ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemsetD32Async(p[1], 7, 1, s[1]));
    FAILS(cuStreamEndCapture(s[1], &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    OK(cuEventRecord(e[1], s[1]));
    use(0);
    OK(cuStreamWaitEvent(s[0], e[1], 0));
    OK(cuMemsetD32Async(p[0], 8, 1, s[0]));
    OK(cuStreamEndCapture(s[0], &g));
    use(1);
    OK(cuStreamIsCapturing(s[1], &status));
    ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuMemcpyDtoH_v2(&word, p[1], 4));
    ck_assert_uint_eq(word, 0);
    use(0);
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, s[0]));
    OK(cuStreamSynchronize(s[0]));
    for (int i = 0; i < 2; i++) {
        use(i);
        OK(cuMemcpyDtoH_v2(&word, p[i], 4));
        ck_assert_uint_eq(word, i ? 7 : 8);
    }
}
END_TEST

/* A question about the legacy stream beside a captured blocking one is refused, and does that no harm; pinned memory is refused, and does. */
START_TEST(captures_heed_questions)
{
    CUstream s;
    CUstreamCaptureStatus status;
    CUgraph g;
    void *pinned;
    start();
    OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    OK(cuStreamEndCapture(s, &g));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS(cuMemHostAlloc(&pinned, 64, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    FAILS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
END_TEST

/* A stream waits until the timeline has come so far, whoever moves it; a signal moves it. */
START_TEST(external_semaphores)
{
    CUstream s;
    CUexternalSemaphore x;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC d = { .type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD };
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait = { .params.fence.value = 3 };
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal = { .params.fence.value = 5 };
    start();
    FAILS(cuImportExternalSemaphore(&x, &d), CUDA_ERROR_NOT_SUPPORTED);
    d.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    d.handle.fd = memfd_create("timeline", 0);
    FAILS(cuImportExternalSemaphore(&x, &d), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(ftruncate(d.handle.fd, 4096), 0);
    volatile uint64_t *counter = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, d.handle.fd, 0);
    OK(cuImportExternalSemaphore(&x, &d));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuWaitExternalSemaphoresAsync(&x, &wait, 1, s));
    OK(cuSignalExternalSemaphoresAsync(&x, &signal, 1, s));
    *counter = 2;
    usleep(20000);
    FAILS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    *counter = 3;
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(*counter, 5);
    OK(cuDestroyExternalSemaphore(x));
    FAILS(cuWaitExternalSemaphoresAsync(&x, &wait, 1, s), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("simgpu_devices");
    TCase *t = tcase_create("simgpu_devices");
    tcase_add_test(t, identities);
    tcase_add_test(t, memory_is_per_device);
    tcase_add_test(t, peers);
    tcase_add_test(t, work_is_per_device);
    tcase_add_test(t, green_contexts);
    tcase_add_test(t, captures_span_devices);
    tcase_add_test(t, captures_heed_questions);
    tcase_add_test(t, external_semaphores);
    tcase_add_loop_test(t, nonsense, 0, 4);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
