/*
 * Faults of the simulated GPU: illegal addresses stick, host threads may not touch device memory, injected
 * failures, forked children.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/simgpu/testing.h"

START_TEST(illegal_address_sticks)
{
    start();
    CUdeviceptr p = alloc_words(1), q;
    CUstream s;
    CUevent e;
    int ran = 0;
    unsigned host;
    size_t a, b;
    CUcontext now;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, 0));
    OK(cuMemsetD32Async(p, 1, 1, s));
    OK(cuStreamSynchronize(s));
    launch_nap(20000, s); /* time to enqueue what follows */
    launch_fill(0x10000, 1, 1, s);
    launch_fill(p, 2, 1, s); /* comes after the fault: does not happen */
    OK(cuLaunchHostFunc(s, (CUhostFn)abort, &ran));
    FAILS(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    /* on every later call */
    FAILS(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuStreamQuery(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuEventRecord(e, s), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuEventQuery(e), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuMemAlloc_v2(&q, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuMemAllocAsync(&q, 4, s), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuMemcpyDtoH_v2(&host, p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuMemGetInfo_v2(&a, &b), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuMemAddressReserve(&q, 2 << 20, 0, 0, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuModuleLoad(&test_module, built("testkernels.so")), CUDA_ERROR_ILLEGAL_ADDRESS);
    /* what does not need the context still works */
    OK(cuCtxGetCurrent(&now));
    OK(cuDeviceTotalMem_v2(&a, 0));
    /* only a fresh context helps */
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuModuleLoad(&test_module, built("testkernels.so")));
    p = alloc_words(1);
    launch_fill(p, 3, 1, NULL);
    ck_assert_uint_eq(read_word(p), 3);
}
END_TEST

START_TEST(copy_faults)
{
    start();
    CUdeviceptr p;
    OK(cuMemAddressReserve(&p, 2 << 20, 0, 0, 0));
    OK(cuMemsetD8Async(p, 0, 100, NULL)); /* asynchronous: the error comes later */
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* A fault is its context's own affair. */
START_TEST(other_contexts_go_on)
{
    start();
    CUcontext other;
    CUdeviceptr p;
    unsigned got = 0;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuCtxPushCurrent_v2(test_ctx));
    launch_fill(0x10000, 1, 1, NULL);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuMemsetD32_v2(p, 6, 1));
    OK(cuMemcpyDtoH_v2(&got, p, 4));
    ck_assert_uint_eq(got, 6);
    OK(cuCtxDestroy_v2(other));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* Threads that a kernel starts cannot be unwound; the kernel ends and the fault counts all the same. */
START_TEST(fault_in_a_kernels_thread)
{
    start();
    CUdeviceptr p, good = alloc_words(64);
    uint64_t n = 64;
    LAUNCH("threads", NULL, &good, &n);
    ck_assert_uint_eq(read_word(good + 63 * 4), 7);
    OK(cuMemAddressReserve(&p, 2 << 20, 0, 0, 0));
    LAUNCH("threads", NULL, &p, &n);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* Faults in two streams at once. */
START_TEST(faults_in_many_streams)
{
    setenv("SIMGPU_CHAOS", "3", 1);
    start();
    CUstream s[8];
    for (int i = 0; i < 8; i++)
        OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
    CUfunction fill = kernel("fill");
    for (int i = 0; i < 8; i++) {
        CUdeviceptr p = 0x10000u * (i + 1u); /* one each: ThreadSanitizer takes writes that fault for writes */
        unsigned v = 1;
        uint64_t n = 1;
        CUresult r = cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, s[i], (void *[]){ &p, &v, &n }, NULL);
        ck_assert(r == CUDA_SUCCESS || r == CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* With SIMGPU_GUARD (or protection keys) a host thread that touches device memory dies of it. */
START_TEST(guard_catches_the_host)
{
    setenv("SIMGPU_GUARD", "1", 1);
    start();
    CUdeviceptr p = alloc_words(1000);
    launch_fill(p, 1, 1000, NULL);
    ck_assert_uint_eq(read_word(p), 1);
    launch_step(p, 2, 0, NULL);
    ck_assert_uint_eq(read_word(p), 2);
    OK(cuCtxSynchronize());
    *(volatile unsigned *)(uintptr_t)p = 5;
}
END_TEST

/* A host thread's fault on an address nobody mapped goes the program's own way. */
START_TEST(host_fault_is_the_programs)
{
    start();
    CUdeviceptr p;
    OK(cuMemAddressReserve(&p, 2 << 20, 0, 0, 0));
    *(volatile unsigned *)(uintptr_t)p = 5;
}
END_TEST

static void my_handler(int sig)
{
    (void)sig;
    _exit(33);
}

/* The program's handler gets the program's faults and no others, whenever it was set. */
START_TEST(programs_handler_is_called)
{
    if (_i == 0)
        signal(SIGSEGV, my_handler);
    start();
    if (_i == 1)
        signal(SIGSEGV, my_handler);
    launch_fill(0x10000, 1, 1, NULL);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS); /* ours, not the program's */
    volatile uintptr_t nowhere = 8;
    *(volatile unsigned *)nowhere = 5;
}
END_TEST

START_TEST(injected_failures)
{
    setenv("SIMGPU_FAULTS", "cuMemCreate:2,cuMemAlloc:1,cuMemAlloc:3,cuLaunchKernel:2", 1);
    start();
    CUmemAllocationProp prop = device_prop();
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    OK(cuMemCreate(&h, 2 << 20, &prop, 0));
    FAILS(cuMemCreate(&h, 2 << 20, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemCreate(&h, 2 << 20, &prop, 0));
    FAILS(cuMemAlloc_v2(&p, 4), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&p, 4));
    FAILS(cuMemAlloc_v2(&p, 4), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAllocAsync(&p, 4, NULL)); /* another call */
    OK(cuLaunchKernel(kernel("none"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    FAILS(cuLaunchKernel(kernel("none"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    OK(cuLaunchKernel(kernel("none"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize()); /* an injected failure has no after-effect */
}
END_TEST

START_TEST(bad_settings)
{
    static const char *const bad[][2] = {
        { "SIMGPU_MEM", "lots" },       { "SIMGPU_GRANULARITY", "3000" }, { "SIMGPU_FLOPS", "-1" },
        { "SIMGPU_FAULTS", "cuMemMap" }, { "SIMGPU_CHAOS", "x" },          { "SIMGPU_BW", "0" },
    };
    setenv(bad[_i][0], bad[_i][1], 1);
    FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
    CUcontext ctx;
    FAILS(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_ERROR_NOT_INITIALIZED);
}
END_TEST

START_TEST(forked_child)
{
    start();
    CUdeviceptr p = alloc_words(1);
    launch_nap(2000, NULL);
    pid_t child = fork();
    if (child == 0) {
        CUdeviceptr q;
        alarm(20);
        _exit(cuMemAlloc_v2(&q, 4) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                      cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED &&
                      cuMemFree_v2(p) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    launch_fill(p, 3, 1, NULL);
    ck_assert_uint_eq(read_word(p), 3);
}
END_TEST

static void *exit_soon(void *arg)
{
    (void)arg;
    usleep(5000);
    exit(0);
}

/* exit() while streams are busy neither hangs nor crashes. */
START_TEST(exit_with_work_queued)
{
    start();
    CUstream s[4];
    for (int i = 0; i < 4; i++)
        OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 400; i++)
        launch_nap(1000, s[i % 4]);
    pthread_t t;
    pthread_create(&t, NULL, exit_soon, NULL);
    pthread_join(t, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("simgpu_fault");
    TCase *t = tcase_create("fault");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, illegal_address_sticks);
    tcase_add_test(t, copy_faults);
    tcase_add_test(t, other_contexts_go_on);
    tcase_add_test(t, fault_in_a_kernels_thread);
    tcase_add_test(t, faults_in_many_streams);
    tcase_add_test_raise_signal(t, guard_catches_the_host, SIGSEGV);
    tcase_add_test_raise_signal(t, host_fault_is_the_programs, SIGSEGV);
    tcase_add_loop_exit_test(t, programs_handler_is_called, 33, 0, 2);
    tcase_add_test(t, injected_failures);
    tcase_add_loop_test(t, bad_settings, 0, 6);
    tcase_add_test(t, forked_child);
    tcase_add_exit_test(t, exit_with_work_queued, 0);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
