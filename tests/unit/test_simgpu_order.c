/*
 * Streams, events and callbacks of the simulated GPU: what is ordered is, under every interleaving, and what is
 * asynchronous really is. The loops run under several SIMGPU_CHAOS seeds, and under the adversary with several.
 */
#include <pthread.h>

#include "tests/simgpu/testing.h"

enum { PLAIN_SEEDS = 6, ADVERSARIES = 16, SEEDS = PLAIN_SEEDS + ADVERSARIES };

static void start_with_chaos(int seed)
{
    char text[32];
    if (seed < PLAIN_SEEDS)
        snprintf(text, sizeof text, "%d", seed + 1);
    else if (seed == PLAIN_SEEDS)
        snprintf(text, sizeof text, "adversary");
    else
        snprintf(text, sizeof text, "adversary:%d", seed - PLAIN_SEEDS);
    setenv("SIMGPU_CHAOS", text, 1);
    start();
}

START_TEST(one_stream_is_in_order)
{
    start_with_chaos(_i);
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = alloc_words(1);
    OK(cuMemsetD32Async(p, 1, 1, s));
    unsigned want = 1;
    for (unsigned i = 0; i < 200; i++) {
        launch_step(p, 3, i, s);
        want = want * 3 + i;
    }
    unsigned got = 0;
    OK(cuMemcpyDtoHAsync_v2(&got, p, 4, s));
    ck_assert_uint_eq(got, want);
}
END_TEST

/* Ping-pong between two streams through one event each. */
START_TEST(events_order_streams)
{
    start_with_chaos(_i);
    CUstream s[2];
    CUevent e[2];
    for (int i = 0; i < 2; i++) {
        OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
    }
    CUdeviceptr p = alloc_words(1);
    OK(cuMemsetD32Async(p, 1, 1, s[0]));
    unsigned want = 1;
    for (unsigned i = 0; i < 60; i++) {
        launch_step(p, 5, i, s[i & 1]);
        want = want * 5 + i;
        OK(cuEventRecord(e[i & 1], s[i & 1]));
        OK(cuStreamWaitEvent(s[!(i & 1)], e[i & 1], 0));
    }
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(read_word(p), want);
}
END_TEST

/* A wait means the record before it, not one that comes later. */
START_TEST(wait_takes_the_latest_record)
{
    start_with_chaos(_i);
    CUstream a, b;
    CUevent e;
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, 0));
    OK(cuEventQuery(e)); /* never recorded: complete */
    OK(cuStreamWaitEvent(b, e, 0));
    unsigned *flag;
    OK(cuMemAllocHost_v2((void **)&flag, 4));
    *flag = 0;
    CUdeviceptr out = alloc_words(1);
    OK(cuMemsetD32_v2(out, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuEventRecord(e, a));
    OK(cuStreamWaitEvent(b, e, 0));
    LAUNCH("wait_flag", a, &flag, &out);
    OK(cuEventRecord(e, a));
    OK(cuStreamSynchronize(b)); /* would hang if the wait meant the second record */
    FAILS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    FAILS(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(cuEventSynchronize(e));
    OK(cuEventQuery(e));
    OK(cuStreamQuery(a));
    ck_assert_uint_eq(read_word(out), 1);
}
END_TEST

/* The legacy stream comes after what blocking streams have, and before what they get; not so non-blocking ones. */
START_TEST(legacy_stream)
{
    start_with_chaos(_i);
    CUstream a, b, free_running;
    OK(cuStreamCreate(&a, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&b, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = alloc_words(1), out = alloc_words(1);
    unsigned *flag;
    OK(cuMemAllocHost_v2((void **)&flag, 4));
    *flag = 0;
    OK(cuMemsetD32_v2(p, 1, 1));
    OK(cuMemsetD32_v2(out, 0, 1));
    OK(cuCtxSynchronize());
    unsigned want = 1;
    for (unsigned i = 0; i < 30; i++) {
        launch_step(p, 3, i, a);
        launch_step(p, 5, i, i & 1 ? NULL : CU_STREAM_LEGACY);
        launch_step(p, 7, i, b);
        launch_step(p, 9, i, NULL);
        want = (((want * 3 + i) * 5 + i) * 7 + i) * 9 + i;
    }
    OK(cuStreamSynchronize(NULL));
    ck_assert_uint_eq(read_word(p), want);

    LAUNCH("wait_flag", free_running, &flag, &out);
    launch_step(p, 1, 1, NULL);
    OK(cuStreamSynchronize(NULL)); /* would hang if it waited for the non-blocking stream */
    FAILS(cuStreamQuery(free_running), CUDA_ERROR_NOT_READY);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(cuCtxSynchronize());

    *flag = 0;
    LAUNCH("wait_flag", a, &flag, &out);
    launch_step(p, 1, 1, NULL);
    launch_step(p, 1, 1, b);
    usleep(2000);
    FAILS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    FAILS(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(read_word(p), want + 3);
}
END_TEST

typedef struct {
    CUdeviceptr p;
    unsigned *flag;
} thread_arg;

static void *other_thread(void *arg)
{
    thread_arg *t = arg;
    CUdeviceptr q;
    OK(cuCtxSetCurrent(test_ctx));
    OK(cuMemAlloc_v2(&q, 4));
    OK(cuMemsetD32Async(q, 6, 1, CU_STREAM_PER_THREAD));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD)); /* not the main thread's stream: that one is held up */
    OK(cuStreamSynchronize_ptsz(NULL));
    ck_assert_uint_eq(__atomic_load_n(t->flag, __ATOMIC_ACQUIRE), 0);
    return NULL;
}

START_TEST(per_thread_stream)
{
    start();
    unsigned *flag;
    OK(cuMemAllocHost_v2((void **)&flag, 4));
    *flag = 0;
    CUdeviceptr p = alloc_words(1);
    LAUNCH("wait_flag", CU_STREAM_PER_THREAD, &flag, &p);
    thread_arg arg = { p, flag };
    pthread_t t;
    pthread_create(&t, NULL, other_thread, &arg);
    pthread_join(t, NULL);
    FAILS(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    FAILS(cuStreamQuery_ptsz(NULL), CUDA_ERROR_NOT_READY);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize_ptsz(0));
    OK(cuStreamQuery(CU_STREAM_PER_THREAD));
}
END_TEST

/* Calls return before the work is done; pinned memory is read when the stream gets there, pageable at once. */
START_TEST(asynchronous_copies)
{
    start();
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    unsigned *flag, *pinned, *back, pageable = 5;
    OK(cuMemAllocHost_v2((void **)&flag, 4));
    OK(cuMemHostAlloc((void **)&pinned, 4, CU_MEMHOSTALLOC_PORTABLE));
    OK(cuMemHostAlloc((void **)&back, 4096, 0));
    CUdeviceptr p = alloc_words(1), q = alloc_words(1), out = alloc_words(1);
    *flag = 0;
    *pinned = 1;
    *back = 0;
    LAUNCH("wait_flag", s, &flag, &out);
    OK(cuMemcpyHtoDAsync_v2(p, pinned, 4, s));
    OK(cuMemcpyHtoDAsync_v2(q, &pageable, 4, s));
    OK(cuMemcpyDtoHAsync_v2(back, p, 4, s));
    OK(cuMemsetD32Async(out, 77, 1, s));
    FAILS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    *pinned = 2;
    pageable = 6;
    ck_assert_uint_eq(*back, 0);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(*back, 2);
    ck_assert_uint_eq(read_word(p), 2);
    ck_assert_uint_eq(read_word(q), 5);
    ck_assert_uint_eq(read_word(out), 77);

    /* registered memory is pinned memory */
    unsigned mine = 8;
    OK(cuMemHostRegister_v2(&mine, 4, 0));
    *flag = 0;
    LAUNCH("wait_flag", s, &flag, &out);
    OK(cuMemcpyHtoDAsync_v2(p, &mine, 4, s));
    mine = 9;
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(read_word(p), 9);
    OK(cuMemHostUnregister(&mine));
}
END_TEST

/* Device to device copies and fills return at once even in their synchronous form. */
START_TEST(device_copies_do_not_wait)
{
    start();
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    unsigned *flag;
    OK(cuMemAllocHost_v2((void **)&flag, 4));
    *flag = 0;
    CUdeviceptr p = alloc_words(4), q = alloc_words(4), out = alloc_words(1);
    LAUNCH("wait_flag", s, &flag, &out);
    OK(cuMemsetD32_v2(p, 3, 4));
    OK(cuMemcpyDtoD_v2(q, p, 16));
    FAILS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    ck_assert_uint_eq(read_word(q + 12), 3);
}
END_TEST

static int called_back;
static CUresult inside;

static void host_fn(void *arg)
{
    CUdeviceptr p;
    inside = cuMemAlloc_v2(&p, 4);
    *(int *)arg += 1;
}

static void callback(CUstream s, CUresult status, void *arg)
{
    ck_assert_ptr_nonnull(s);
    *(int *)arg += status == CUDA_SUCCESS ? 10 : 1000;
}

START_TEST(host_callbacks)
{
    start_with_chaos(_i);
    CUstream s;
    OK(cuStreamCreate(&s, 0));
    launch_nap(3000, s);
    OK(cuLaunchHostFunc(s, host_fn, &called_back));
    OK(cuStreamAddCallback(s, callback, &called_back, 0));
    OK(cuStreamSynchronize(s));
    ck_assert_int_eq(called_back, 11);
    ck_assert_int_eq(inside, CUDA_ERROR_NOT_PERMITTED);
    FAILS(cuLaunchHostFunc(s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(handles)
{
    start();
    CUstream s;
    CUevent e, f;
    unsigned flags;
    int priority, least, greatest;
    float ms;
    FAILS(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuStreamCreate(&s, 8), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    ck_assert_int_gt(least, greatest);
    OK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -100));
    OK(cuStreamGetPriority(s, &priority));
    ck_assert_int_eq(priority, greatest);
    OK(cuStreamGetFlags(s, &flags));
    ck_assert_uint_eq(flags, CU_STREAM_NON_BLOCKING);
    CUcontext ctx;
    OK(cuStreamGetCtx(s, &ctx));
    ck_assert_ptr_eq(ctx, test_ctx);
    unsigned long long id, legacy_id;
    OK(cuStreamGetId(s, &id));
    OK(cuStreamGetId(NULL, &legacy_id));
    ck_assert_uint_ne(id, legacy_id);
    OK(cuEventCreate(&e, 0));
    OK(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
    FAILS(cuEventElapsedTime(&ms, e, e), CUDA_ERROR_INVALID_HANDLE); /* not recorded */
    OK(cuEventRecord(e, s));
    OK(cuEventRecord(f, s));
    OK(cuStreamSynchronize(s));
    FAILS(cuEventElapsedTime(&ms, e, f), CUDA_ERROR_INVALID_HANDLE); /* takes no times */
    OK(cuEventElapsedTime_v2(&ms, e, e));
    CUstreamCaptureStatus capture;
    OK(cuStreamIsCapturing(s, &capture));
    ck_assert_int_eq(capture, CU_STREAM_CAPTURE_STATUS_NONE);
    /* a destroyed stream still finishes its work, and its event stays usable */
    CUdeviceptr p = alloc_words(1);
    launch_nap(3000, s);
    OK(cuMemsetD32Async(p, 4, 1, s));
    OK(cuEventRecord(e, s));
    OK(cuStreamDestroy_v2(s));
    FAILS(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventSynchronize(e));
    ck_assert_uint_eq(read_word(p), 4);
    OK(cuEventDestroy_v2(e));
    FAILS(cuEventDestroy_v2(e), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuEventRecord(e, NULL), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(contexts)
{
    CUcontext a, b, now;
    CUdevice dev;
    CUdeviceptr p;
    FAILS(cuCtxGetCurrent(&now), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    OK(cuCtxGetCurrent(&now));
    ck_assert_ptr_null(now);
    FAILS(cuMemAlloc_v2(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuCtxGetDevice(&dev), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    OK(cuCtxCreate_v2(&b, 0, 0)); /* becomes current */
    OK(cuCtxGetCurrent(&now));
    ck_assert_ptr_eq(now, b);
    OK(cuCtxPushCurrent_v2(a));
    OK(cuCtxPopCurrent_v2(&now));
    ck_assert_ptr_eq(now, a);
    CUstream s;
    CUevent e;
    OK(cuStreamCreate(&s, 0));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuCtxSetCurrent(a));
    OK(cuEventCreate(&e, 0));
    FAILS(cuEventRecord(e, s), CUDA_ERROR_INVALID_HANDLE); /* event and stream of two contexts */
    OK(cuCtxDestroy_v2(b));
    FAILS(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE); /* went with its context */
    OK(cuCtxSetCurrent(b));
    FAILS(cuMemAlloc_v2(&p, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuCtxSetCurrent(NULL));
    unsigned flags;
    int active;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 1);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 0);
    FAILS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuDevicePrimaryCtxRetain(&a, 1), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

START_TEST(words_in_memory)
{
    start_with_chaos(_i);
    CUstream a, b;
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = alloc_words(4), q = alloc_words(1);
    OK(cuMemsetD32_v2(p, 0, 4));
    OK(cuMemsetD32_v2(q, 2, 1));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32_v2(b, p, 3, CU_STREAM_WAIT_VALUE_GEQ));
    launch_step(q, 10, 1, b);
    usleep(1000);
    FAILS(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    launch_step(q, 3, 0, a);
    OK(cuStreamWriteValue32_v2(a, p, 3, 0));
    OK(cuStreamWriteValue64_v2(a, p + 8, 1ull << 40, 0));
    OK(cuStreamSynchronize(b));
    ck_assert_uint_eq(read_word(q), 61);
    CUstreamBatchMemOpParams ops[2];
    memset(ops, 0, sizeof ops);
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = p;
    ops[0].writeValue.value = 8;
    ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    ops[1].waitValue.address = p + 8;
    ops[1].waitValue.value64 = 1ull << 40;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    OK(cuStreamBatchMemOp_v2(b, 2, ops, 0));
    OK(cuStreamSynchronize(b));
    ck_assert_uint_eq(read_word(p), 8);
    FAILS(cuStreamWaitValue32_v2(b, p + 1, 3, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("simgpu_order");
    TCase *t = tcase_create("order");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, one_stream_is_in_order, 0, SEEDS);
    tcase_add_loop_test(t, events_order_streams, 0, SEEDS);
    tcase_add_loop_test(t, wait_takes_the_latest_record, 0, SEEDS);
    tcase_add_loop_test(t, legacy_stream, 0, SEEDS);
    tcase_add_test(t, per_thread_stream);
    tcase_add_test(t, asynchronous_copies);
    tcase_add_test(t, device_copies_do_not_wait);
    tcase_add_loop_test(t, host_callbacks, 0, SEEDS);
    tcase_add_test(t, handles);
    tcase_add_test(t, contexts);
    tcase_add_loop_test(t, words_in_memory, 0, SEEDS);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
