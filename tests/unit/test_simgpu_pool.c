/*
 * Stream-ordered allocation of the simulated GPU.
 */
#include "tests/simgpu/testing.h"

static cuuint64_t attribute(CUmemoryPool p, CUmemPool_attribute a)
{
    cuuint64_t v = 0;
    OK(cuMemPoolGetAttribute(p, a, &v));
    return v;
}

START_TEST(bytes_count_in_call_order)
{
    setenv("SIMGPU_MEM", "64M", 1);
    start();
    CUstream s, t;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    CUmemoryPool pool;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    CUdeviceptr p, q;
    OK(cuMemAllocAsync(&p, (40 << 20) - 100, s));
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 40 << 20); /* in units of 512 bytes */
    FAILS(cuMemAllocAsync(&q, 30 << 20, s), CUDA_ERROR_OUT_OF_MEMORY);
    launch_nap(3000, s);
    launch_fill(p, 1, 1000, s);
    OK(cuMemFreeAsync(p, s));
    /* freed, though the stream is not there yet: another stream may have the bytes (not the address) */
    OK(cuMemAllocAsync(&q, 30 << 20, t));
    launch_fill(q, 2, 1000, t);
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 30 << 20);
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 40 << 20);
    FAILS(cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemFreeAsync(q + 512, s), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
    unsigned got;
    OK(cuMemcpyDtoHAsync_v2(&got, q + 3996, 4, t));
    ck_assert_uint_eq(got, 2);
    OK(cuMemFreeAsync(q, t));
    OK(cuCtxSynchronize());
    OK(cuMemFreeAsync(0, t));
    FAILS(cuMemAllocAsync(&p, 0, s), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Memory freed in a stream serves the same stream at once; what others wrote before does not shine through. */
START_TEST(reuse_is_stream_ordered)
{
    char seed[16];
    snprintf(seed, sizeof seed, "%d", _i);
    if (_i)
        setenv("SIMGPU_CHAOS", seed, 1);
    start();
    CUstream s[3];
    CUdeviceptr sums = alloc_words(3), one = alloc_words(1);
    OK(cuMemsetD32_v2(sums, 0, 3));
    for (int i = 0; i < 3; i++)
        OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
    OK(cuMemsetD32_v2(one, 1, 1));
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < 90; i++) {
        unsigned k = i % 3;
        CUdeviceptr p;
        uint64_t n = 4096, one_word = 1;
        CUdeviceptr sum = sums + 4 * k;
        OK(cuMemAllocAsync(&p, n * 4, s[k]));
        launch_fill(p, i, n, s[k]);
        CUdeviceptr last = p + (n - 1) * 4;
        LAUNCH("add", s[k], &sum, &last, &sum, &one_word);
        OK(cuMemFreeAsync(p, s[k]));
    }
    OK(cuCtxSynchronize());
    for (unsigned k = 0; k < 3; k++)
        ck_assert_uint_eq(read_word(sums + 4 * k), 30 * k + 3 * (29 * 30 / 2));
}
END_TEST

/* With nothing reused, the address dies when the stream reaches the free. */
START_TEST(use_after_free_faults_under_chaos)
{
    setenv("SIMGPU_CHAOS", "7", 1);
    start();
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p;
    OK(cuMemAllocAsync(&p, 4096, s));
    launch_fill(p, 1, 10, s);
    OK(cuStreamSynchronize(s));
    OK(cuMemFreeAsync(p, s));
    launch_fill(p, 1, 10, s);
    FAILS(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(attributes)
{
    start();
    CUmemoryPool pool, now;
    CUdeviceptr p, q;
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuDeviceGetMemPool(&pool, 0));
    OK(cuDeviceGetDefaultMemPool(&now, 0));
    ck_assert_ptr_eq(pool, now);
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
    int on = 0;
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
    ck_assert_int_eq(on, 1);
    OK(cuMemAllocAsync(&p, 10 << 20, s));
    OK(cuMemAllocAsync(&q, 20 << 20, s));
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 30 << 20);
    OK(cuMemFreeAsync(q, s));
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 10 << 20);
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 30 << 20);
    OK(cuStreamSynchronize(s)); /* threshold 0: given back */
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 10 << 20);
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 30 << 20);

    cuuint64_t all = UINT64_MAX, zero = 0, one = 1;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    OK(cuMemAllocAsync(&q, 20 << 20, s));
    OK(cuMemFreeAsync(q, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 30 << 20);
    size_t available, total;
    OK(cuMemGetInfo_v2(&available, &total));
    ck_assert_uint_eq(total - available, 30 << 20);
    OK(cuMemPoolTrimTo(pool, 16 << 20));
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 16 << 20);
    OK(cuMemPoolTrimTo(pool, 0));
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 10 << 20);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 10 << 20);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 10 << 20);
    FAILS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(p)); /* the plain free takes it too */
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
}
END_TEST

START_TEST(pools)
{
    start();
    CUmemPoolProps props;
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.maxSize = 8 << 20;
    CUmemoryPool pool, now, the_default;
    OK(cuMemPoolCreate(&pool, &props));
    CUdeviceptr p, q;
    OK(cuMemAllocFromPoolAsync(&p, 6 << 20, pool, NULL));
    FAILS(cuMemAllocFromPoolAsync(&q, 6 << 20, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    CUmemoryPool of = NULL;
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    ck_assert_ptr_eq(of, pool);
    OK(cuDeviceSetMemPool(0, pool));
    FAILS(cuMemAllocAsync(&q, 6 << 20, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemPoolDestroy(pool)); /* its allocation lives on */
    OK(cuDeviceGetMemPool(&now, 0));
    OK(cuDeviceGetDefaultMemPool(&the_default, 0));
    ck_assert_ptr_eq(now, the_default);
    launch_fill(p, 3, 100, NULL);
    ck_assert_uint_eq(read_word(p + 396), 3);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuCtxSynchronize());
    FAILS(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemPoolDestroy(the_default), CUDA_ERROR_INVALID_VALUE);
    props.location.id = 1;
    FAILS(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_DEVICE);
    CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    OK(cuMemPoolSetAccess(the_default, &desc, 1));
    CUmemAccess_flags flags;
    OK(cuMemPoolGetAccess(&flags, the_default, &desc.location));
    ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    FAILS(cuMemPoolExportToShareableHandle(&p, the_default, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* A pool that holds memory back gives way to somebody who needs it. */
START_TEST(held_memory_gives_way)
{
    setenv("SIMGPU_MEM", "64M", 1);
    start();
    CUmemoryPool pool;
    cuuint64_t all = UINT64_MAX;
    CUdeviceptr p;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    OK(cuMemAllocAsync(&p, 60 << 20, NULL));
    OK(cuMemFreeAsync(p, NULL));
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 60 << 20);
    OK(cuMemAlloc_v2(&p, 50 << 20));
    ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 14 << 20);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("simgpu_pool");
    TCase *t = tcase_create("pool");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, bytes_count_in_call_order);
    tcase_add_loop_test(t, reuse_is_stream_ordered, 0, 5);
    tcase_add_test(t, use_after_free_faults_under_chaos);
    tcase_add_test(t, attributes);
    tcase_add_test(t, pools);
    tcase_add_test(t, held_memory_gives_way);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
