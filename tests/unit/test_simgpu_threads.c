/*
 * Many host threads on one simulated GPU. Meant for ThreadSanitizer as much as for its own checks.
 */
#include <pthread.h>

#include "tests/simgpu/testing.h"

enum { THREADS = 6, ROUNDS = 40 };

typedef struct {
    int number;
    CUstream shared;
    CUdeviceptr counter; /* every thread adds to it, in the shared stream */
} job;

static void *allocate_and_run(void *arg)
{
    job *j = arg;
    OK(cuCtxSetCurrent(test_ctx));
    CUfunction fill = kernel("fill"), step = kernel("step");
    CUstream s;
    CUevent e;
    unsigned *host;
    OK(cuStreamCreate(&s, j->number & 1 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAllocHost_v2((void **)&host, 4096));
    for (unsigned i = 0; i < ROUNDS; i++) {
        CUdeviceptr p, q;
        uint64_t n = 1024;
        unsigned value = i * 16 + (unsigned)j->number, one = 1;
        OK(cuMemAllocAsync(&p, 4096, s));
        OK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, s, (void *[]){ &p, &value, &n }, NULL));
        OK(cuMemcpyDtoHAsync_v2(host, p, 4096, s));
        OK(cuMemFreeAsync(p, s));
        OK(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, j->shared, (void *[]){ &j->counter, &one, &one }, NULL));
        OK(cuEventRecord(e, s));
        OK(cuStreamWaitEvent(j->shared, e, 0));
        if (i % 8 == 3) {
            OK(cuMemAlloc_v2(&q, 100000));
            OK(cuMemsetD8_v2(q, 1, 100000));
            OK(cuMemFree_v2(q));
        }
        OK(cuEventSynchronize(e));
        ck_assert_uint_eq(host[0], value);
        ck_assert_uint_eq(host[1023], value);
    }
    OK(cuStreamDestroy_v2(s));
    OK(cuEventDestroy_v2(e));
    OK(cuMemFreeHost(host));
    return NULL;
}

static void *map_and_run(void *arg)
{
    job *j = arg;
    enum { G = 2 << 20 };
    OK(cuCtxSetCurrent(test_ctx));
    CUmemAllocationProp prop = device_prop();
    CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemGenericAllocationHandle h;
    CUdeviceptr range;
    OK(cuMemAddressReserve(&range, 4 * G, 0, 0, 0));
    OK(cuMemCreate(&h, G, &prop, 0));
    for (unsigned i = 0; i < ROUNDS; i++) {
        CUdeviceptr p = range + (uint64_t)(i % 4) * G;
        OK(cuMemMap(p, G, 0, h, 0));
        OK(cuMemSetAccess(p, G, &access, 1));
        if (i)
            launch_step(p, 1, 1, CU_STREAM_PER_THREAD);
        else
            launch_fill(p, (unsigned)j->number, 1, CU_STREAM_PER_THREAD);
        unsigned got = 0;
        OK(cuMemcpyDtoHAsync_v2(&got, p, 4, CU_STREAM_PER_THREAD));
        ck_assert_uint_eq(got, (unsigned)j->number + i);
        OK(cuMemUnmap(p, G));
    }
    OK(cuMemRelease(h));
    OK(cuMemAddressFree(range, 4 * G));
    return NULL;
}

START_TEST(many_threads)
{
    char seed[16];
    snprintf(seed, sizeof seed, "%d", _i);
    if (_i)
        setenv("SIMGPU_CHAOS", seed, 1);
    start();
    CUstream shared;
    CUdeviceptr counter = alloc_words(1);
    OK(cuStreamCreate(&shared, CU_STREAM_NON_BLOCKING));
    OK(cuMemsetD32Async(counter, 0, 1, shared));
    pthread_t t[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){ i, shared, counter };
        pthread_create(&t[i], NULL, i % 3 == 2 ? map_and_run : allocate_and_run, &jobs[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    OK(cuStreamSynchronize(shared));
    ck_assert_uint_eq(read_word(counter), THREADS / 3 * 2 * ROUNDS);
    OK(cuDevicePrimaryCtxRelease_v2(0));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("simgpu_threads");
    TCase *t = tcase_create("threads");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, many_threads, 0, 4);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
