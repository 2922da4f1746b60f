/*
 * The simulated clock and the statistics: times follow from the calls alone.
 */
#include <jansson.h>
#include <sys/wait.h>

#include "tests/simgpu/times.h"

static void settings(void)
{
    setenv("SIMGPU_FLOPS", "1e12", 1); /* 1000 a nanosecond */
    setenv("SIMGPU_BW", "1e11", 1);    /* 100 bytes a nanosecond */
    setenv("SIMGPU_HOST_BW", "1e10", 1);
    setenv("SIMGPU_LAUNCH_NS", "1000", 1);
}

START_TEST(costs)
{
    settings();
    start();
    CUstream s = stream();
    char *pinned;
    enum { MB = 1000000 };
    OK(cuMemAllocHost_v2((void **)&pinned, MB));
    CUdeviceptr p, q;
    OK(cuMemAlloc_v2(&p, MB));
    OK(cuMemAlloc_v2(&q, MB));
    CUevent e[8];
    e[0] = mark(s);
    launch_work(5000000, 100, s); /* 5000 by work, 1 by bytes, and the launch */
    e[1] = mark(s);
    launch_work(1000, 700000, s); /* 7000 by bytes */
    e[2] = mark(s);
    OK(cuMemcpyHtoDAsync_v2(p, pinned, MB, s)); /* 10 bytes a nanosecond */
    e[3] = mark(s);
    OK(cuMemcpyDtoDAsync_v2(q, p, MB, s));
    e[4] = mark(s);
    OK(cuMemsetD32Async(p, 0, MB / 4, s));
    e[5] = mark(s);
    OK(cuMemcpyDtoHAsync_v2(pinned, q, MB, s));
    e[6] = mark(s);
    OK(cuStreamSynchronize(s));
    ck_assert_int_eq(between(e[0], e[1]), 6000);
    ck_assert_int_eq(between(e[1], e[2]), 8000);
    ck_assert_int_eq(between(e[2], e[3]), 100000);
    ck_assert_int_eq(between(e[3], e[4]), 10000);
    ck_assert_int_eq(between(e[4], e[5]), 10000);
    ck_assert_int_eq(between(e[5], e[6]), 100000);
    ck_assert_int_eq(between(e[6], e[0]), -234000);
}
END_TEST

/* Copies run beside kernels and beside each other's direction; kernels of two streams share one engine. */
START_TEST(engines)
{
    settings();
    start();
    CUstream compute = stream(), in = stream(), out = stream(), other = stream();
    char *pinned;
    OK(cuMemAllocHost_v2((void **)&pinned, 2000000));
    CUdeviceptr p, q;
    OK(cuMemAlloc_v2(&p, 1000000));
    OK(cuMemAlloc_v2(&q, 1000000));
    int n;
    OK(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 0));
    ck_assert_int_eq(n, 2);
    CUevent zero = mark(compute);
    launch_work(99000000, 0, compute); /* 100000 with the launch */
    OK(cuMemcpyHtoDAsync_v2(p, pinned, 1000000, in));
    OK(cuMemcpyDtoHAsync_v2(pinned + 1000000, q, 500000, out));
    launch_work(9000000, 0, other);
    CUevent e_compute = mark(compute), e_in = mark(in), e_out = mark(out), e_other = mark(other);
    OK(cuCtxSynchronize());
    ck_assert_int_eq(between(zero, e_compute), 100000);
    ck_assert_int_eq(between(zero, e_in), 100000);
    ck_assert_int_eq(between(zero, e_out), 50000);
    ck_assert_int_eq(between(zero, e_other), 110000);
}
END_TEST

/* With one copy engine the directions take turns. */
START_TEST(one_copy_engine)
{
    settings();
    setenv("SIMGPU_COPY_ENGINES", "1", 1);
    start();
    int n;
    OK(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 0));
    ck_assert_int_eq(n, 1);
    CUstream compute = stream(), in = stream(), out = stream();
    char *pinned;
    OK(cuMemAllocHost_v2((void **)&pinned, 2000000));
    CUdeviceptr p, q;
    OK(cuMemAlloc_v2(&p, 1000000));
    OK(cuMemAlloc_v2(&q, 1000000));
    CUevent zero = mark(compute);
    launch_work(99000000, 0, compute);
    OK(cuMemcpyHtoDAsync_v2(p, pinned, 1000000, in));
    OK(cuMemcpyDtoHAsync_v2(pinned + 1000000, q, 500000, out));
    CUevent e_compute = mark(compute), e_in = mark(in), e_out = mark(out);
    OK(cuCtxSynchronize());
    ck_assert_int_eq(between(zero, e_compute), 100000);
    ck_assert_int_eq(between(zero, e_in), 100000);
    ck_assert_int_eq(between(zero, e_out), 150000);
}
END_TEST

START_TEST(three_copy_engines)
{
    setenv("SIMGPU_COPY_ENGINES", "3", 1);
    FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Work that could start earlier fills the gap before work that is waiting. */
START_TEST(gaps_are_filled)
{
    settings();
    start();
    CUstream a = stream(), b = stream(), in = stream();
    char *pinned;
    OK(cuMemAllocHost_v2((void **)&pinned, 1000000));
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 1000000));
    CUevent zero = mark(a);
    OK(cuMemcpyHtoDAsync_v2(p, pinned, 1000000, in)); /* until 100000 */
    CUevent arrived = mark(in);
    OK(cuStreamWaitEvent(a, arrived, 0));
    launch_work(9000000, 0, a); /* 100000 to 110000 */
    launch_work(49000000, 0, b); /* 0 to 50000 */
    launch_work(69000000, 0, b); /* does not fit before 100000: 110000 to 180000 */
    launch_work(9000000, 0, in); /* 180000 to 190000 */
    CUevent e_a = mark(a), e_b = mark(b), e_in = mark(in);
    OK(cuCtxSynchronize());
    ck_assert_int_eq(between(zero, e_a), 110000);
    ck_assert_int_eq(between(zero, e_b), 180000);
    ck_assert_int_eq(between(zero, e_in), 190000);
}
END_TEST

/* The host's waiting takes part: what it launches after a wait starts after what it waited for. */
START_TEST(host_waits_count)
{
    settings();
    start();
    CUstream a = stream(), b = stream();
    CUevent zero = mark(a);
    launch_work(99000000, 0, a);
    OK(cuStreamSynchronize(a));
    CUevent late = mark(b);
    OK(cuCtxSynchronize());
    ck_assert_int_eq(between(zero, late), 100000);
    /* the legacy stream stands behind blocking streams, on the clock too */
    CUstream blocking;
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    launch_work(99000000, 0, blocking);
    CUevent legacy = mark(NULL);
    OK(cuCtxSynchronize());
    ck_assert_int_eq(between(late, legacy), 100000);
}
END_TEST

/* A busy program, run in a child; its clock's final reading. */
static long long device_ns(int seed, const char *stats)
{
    pid_t child = fork();
    if (child == 0) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        if (seed)
            setenv("SIMGPU_CHAOS", text, 1);
        setenv("SIMGPU_STATS", stats, 1);
        settings();
        start();
        CUstream s[4];
        CUevent e[4];
        CUdeviceptr p[4];
        for (int i = 0; i < 4; i++) {
            s[i] = i == 3 ? NULL : stream();
            OK(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
            OK(cuMemAllocAsync(&p[i], 4096, s[i]));
        }
        unsigned x = 1;
        for (int i = 0; i < 300; i++) {
            x = x * 1664525u + 1013904223u;
            unsigned k = x >> 30, m = x >> 28 & 3;
            launch_work((x >> 8 & 0xffff) * 100, 0, s[k]);
            launch_fill(p[k], x, 1024, s[k]);
            if (x & 64) {
                OK(cuEventRecord(e[k], s[k]));
                OK(cuStreamWaitEvent(s[m], e[k], 0));
            }
            if ((x & 0xf00) == 0)
                OK(cuStreamSynchronize(s[k]));
        }
        OK(cuCtxSynchronize());
        exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    json_error_t error;
    json_t *j = json_load_file(stats, 0, &error);
    ck_assert_msg(j != NULL, "%s: %s", stats, error.text);
    long long ns = json_integer_value(json_object_get(j, "device_ns"));
    ck_assert_int_gt(json_integer_value(json_object_get(j, "kernels")), 600 - 1);
    json_decref(j);
    return ns;
}

START_TEST(same_in_every_interleaving)
{
    char stats[] = "/tmp/simgpu-clock-XXXXXX";
    int fd = mkstemp(stats);
    ck_assert_int_ge(fd, 0);
    close(fd);
    long long first = device_ns(0, stats);
    ck_assert_int_gt(first, 0);
    for (int seed = 0; seed < 6; seed++)
        ck_assert_int_eq(device_ns(seed, stats), first);
    unlink(stats);
}
END_TEST

/* peak_physical_bytes: created or allocated, not reserved or mapped twice; calls by exact name. */
START_TEST(statistics)
{
    char stats[] = "/tmp/simgpu-stats-XXXXXX";
    int fd = mkstemp(stats), status;
    ck_assert_int_ge(fd, 0);
    close(fd);
    pid_t child = fork();
    if (child == 0) {
        setenv("SIMGPU_STATS", stats, 1);
        start();
        CUmemAllocationProp prop = device_prop();
        CUmemGenericAllocationHandle h;
        CUdeviceptr p, q, r;
        OK(cuMemAddressReserve(&p, 1ull << 36, 0, 0, 0));
        OK(cuMemCreate(&h, 4 << 20, &prop, 0));
        OK(cuMemMap(p, 4 << 20, 0, h, 0));
        OK(cuMemMap(p + (8 << 20), 4 << 20, 0, h, 0));
        OK(cuMemRelease(h)); /* still mapped: still there */
        OK(cuMemAlloc_v2(&q, 1 << 20));
        OK(cuMemAllocAsync(&r, 100, NULL));
        OK(cuMemFreeAsync(r, NULL));
        OK(cuMemAllocAsync(&r, 200, NULL));
        OK(cuMemFreeAsync(r, NULL));
        OK(cuCtxSynchronize());
        OK(cuMemFree_v2(q));
        launch_fill(0x10000, 1, 1, NULL);
        FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
        exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    json_error_t error;
    json_t *j = json_load_file(stats, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(j != NULL, "line %d: %s", error.line, error.text);
    ck_assert_int_eq(json_integer_value(json_object_get(j, "peak_physical_bytes")), (5 << 20) + 512);
    ck_assert_int_eq(json_integer_value(json_object_get(j, "faults")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(j, "kernels")), 1);
    json_t *calls = json_object_get(j, "calls");
    ck_assert_int_eq(json_integer_value(json_object_get(calls, "cuMemMap")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(calls, "cuMemAlloc_v2")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(calls, "cuCtxSynchronize")), 2);
    ck_assert_ptr_null(json_object_get(calls, "cuMemSetAccess"));
    json_decref(j);
    unlink(stats);
}
END_TEST

/* A program that leaves without destructors still leaves its statistics. */
START_TEST(statistics_after_underscore_exit)
{
    char stats[] = "/tmp/simgpu-stats-XXXXXX";
    int fd = mkstemp(stats), status;
    ck_assert_int_ge(fd, 0);
    close(fd);
    pid_t child = fork();
    if (child == 0) {
        setenv("SIMGPU_STATS", stats, 1);
        start();
        CUdeviceptr p;
        OK(cuMemAlloc_v2(&p, 1 << 20));
        OK(cuCtxSynchronize());
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    json_error_t error;
    json_t *j = json_load_file(stats, 0, &error);
    ck_assert_msg(j != NULL, "%s", error.text);
    ck_assert_int_eq(json_integer_value(json_object_get(j, "peak_physical_bytes")), 1 << 20);
    json_decref(j);
    unlink(stats);
}
END_TEST

RUN_SUITE("simgpu_clock", costs, engines, one_copy_engine, three_copy_engines, gaps_are_filled, host_waits_count, same_in_every_interleaving, statistics,
          statistics_after_underscore_exit)
