/*
 * SIMGPU_COSTS: the host's time of calls, the program's own, and what waits for what.
 */
#include <dlfcn.h>
#include <jansson.h>
#include <sys/wait.h>

#include "tests/simgpu/times.h"

static void costs(const char *text)
{
    char path[] = "/tmp/simgpu-costs-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    setenv("SIMGPU_COSTS", path, 1);
    setenv("SIMGPU_FLOPS", "1e9", 1); /* one a nanosecond */
    setenv("SIMGPU_BW", "1e11", 1);
    setenv("SIMGPU_LAUNCH_NS", "0", 1);
    FAILS(cuInit(0), CUDA_SUCCESS);
    unlink(path);
    start();
}

static const char some[] = "# of a launch and an event\n"
                           "cuLaunchKernel 5000\n"
                           "cuEventRecord  100 # a comment\n"
                           "cuStreamWait*  200\n\n"
                           "gap 10000\n"
                           "host_bw 1e10\n";

/* Whichever of the two is behind says how long it takes: ten launches at 15,000 ns of the host's, or at the device's. */
START_TEST(the_later_clock)
{
    costs(some);
    CUstream s = stream();
    for (int k = 0; k < 2; k++) {
        const long ns = k ? 100000 : 1000;
        CUevent a = mark(s);
        for (int i = 0; i < 10; i++)
            launch_work((uint64_t)ns, 0, s);
        CUevent b = mark(s);
        OK(cuStreamSynchronize(s));
        ck_assert_int_eq(between(a, b), k ? 15000 + 10 * ns : 10 * 15000 + ns);
    }
}
END_TEST

/* A copy behind an event of another stream; beside it, without. */
START_TEST(events_order)
{
    enum { MB = 1000000 };
    costs(some);
    CUstream s = stream(), t = stream();
    CUdeviceptr p;
    char *pinned;
    OK(cuMemAllocHost_v2((void **)&pinned, MB));
    OK(cuMemAlloc_v2(&p, MB));
    for (int waits = 0; waits < 2; waits++) {
        OK(cuCtxSynchronize());
        CUevent a = mark(s);
        launch_work(400000, 0, s);
        CUevent b = mark(s);
        if (waits)
            OK(cuStreamWaitEvent(t, b, 0));
        OK(cuMemcpyHtoDAsync_v2(p, pinned, MB, t)); /* 100,000 */
        CUevent c = mark(t);
        OK(cuCtxSynchronize());
        ck_assert_int_eq(between(a, b), 415000);
        ck_assert_int_eq(between(a, c), waits ? 515000 : 15000 + 100 + 100000);
    }
}
END_TEST

/* What waits for the device goes on when that has come there: a copy that is waited for, a stream, an event. */
START_TEST(the_host_waits)
{
    enum { MB = 1000000 };
    costs(some);
    CUstream s = stream();
    CUdeviceptr p;
    char *pinned;
    OK(cuMemAllocHost_v2((void **)&pinned, MB));
    OK(cuMemAlloc_v2(&p, MB));
    for (int how = 0; how < 3; how++) {
        CUevent a = mark(s);
        launch_work(how ? 200000 : 0, 0, s);
        CUevent b = mark(s);
        if (how == 0)
            OK(cuMemcpyHtoD_v2(p, pinned, MB));
        else if (how == 1)
            OK(cuStreamSynchronize(s));
        else
            OK(cuEventSynchronize(b));
        launch_work(1000, 0, s); /* 15,000 ns later */
        CUevent c = mark(s);
        OK(cuStreamSynchronize(s));
        ck_assert_int_eq(between(a, c), how ? 15000 + 200000 + 15000 + 1000 : 15000 + 100 + 100000 + 15000 + 1000);
    }
}
END_TEST

START_TEST(both_directions)
{
    enum { MB = 1000000 };
    costs("host_bw 1e10\nhost_bw_both 1.25e10\n");
    CUstream s = stream(), t = stream();
    CUdeviceptr p;
    char *pinned;
    OK(cuMemAllocHost_v2((void **)&pinned, MB));
    OK(cuMemAlloc_v2(&p, MB));
    CUevent a = mark(s);
    OK(cuMemcpyHtoDAsync_v2(p, pinned, MB / 2, s));
    CUevent alone = mark(s);
    OK(cuStreamSynchronize(s));
    CUevent b = mark(s);
    OK(cuMemcpyHtoDAsync_v2(p, pinned, MB / 2, s));
    OK(cuMemcpyDtoHAsync_v2(pinned + MB / 2, p + MB / 2, MB / 2, t));
    CUevent c = mark(t);
    OK(cuCtxSynchronize());
    ck_assert_int_eq(between(a, alone), 50000);
    ck_assert_int_eq(between(b, c), 80000); /* 1 MB at 12.5 bytes a nanosecond */
}
END_TEST

/* One run with statistics, as a value. */
static json_t *run(int seed)
{
    char stats[] = "/tmp/simgpu-stats-XXXXXX";
    int fd = mkstemp(stats), status;
    ck_assert_int_ge(fd, 0);
    close(fd);
    pid_t child = fork();
    if (child == 0) {
        void (*works)(uint64_t);
        char text[16], *pinned;
        CUdeviceptr p;
        snprintf(text, sizeof text, "%d", seed);
        if (seed)
            setenv("SIMGPU_CHAOS", text, 1);
        setenv("SIMGPU_STATS", stats, 1);
        costs("cuLaunchKernel 5000\ncuMemAllocHost 1 1000\ncuMemcpy* 3\ngap 10\n");
        CUstream s = stream(), t = stream();
        OK(cuMemAllocHost_v2((void **)&pinned, 4 << 20));
        OK(cuMemAlloc_v2(&p, 4 << 20));
        for (int i = 0; i < 50; i++) {
            launch_work(1000, 0, i % 3 ? s : t);
            OK(cuMemcpyDtoHAsync_v2(pinned, p, 100000, s));
            CUevent e = mark(s);
            OK(cuStreamWaitEvent(t, e, 0));
            if (i % 10 == 9)
                OK(cuStreamSynchronize(t));
        }
        *(void **)&works = dlsym(RTLD_DEFAULT, "simgpu_host_works");
        works(12345);
        exit(0);
    }
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    json_error_t error;
    json_t *j = json_load_file(stats, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(j != NULL, "%s: %s", stats, error.text);
    unlink(stats);
    return j;
}

static long long number(json_t *j, const char *call, const char *what)
{
    return json_integer_value(json_object_get(json_object_get(json_object_get(json_object_get(j, "host"), "calls"), call), what));
}

START_TEST(told)
{
    json_t *j = run(0);
    ck_assert_int_eq(number(j, "cuLaunchKernel", "ns"), 50 * 5000);
    ck_assert_int_eq(number(j, "cuMemAllocHost_v2", "ns"), 1 + 4 * 1000);
    ck_assert_int_eq(number(j, "cuMemcpyDtoHAsync_v2", "ns"), 50 * 3);
    ck_assert_int_gt(number(j, "cuStreamSynchronize", "wait_ns"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(j, "host"), "program_ns")), 50 * 10 + 12345);
    long long waited = number(j, "cuStreamSynchronize", "wait_ns"), sum = 50 * (5000 + 3 + 10) + 4001 + 12345 + waited;
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(j, "host"), "end_ns")), sum); /* it works, or it waits */
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(j, "device_busy_ns"), "compute")), 50 * 1000);
    for (int seed = 1; seed < 4; seed++) {
        json_t *other = run(seed);
        ck_assert_msg(json_equal(json_object_get(j, "host"), json_object_get(other, "host")) &&
                          json_equal(json_object_get(j, "device_ns"), json_object_get(other, "device_ns")),
                      "another order, other times (seed %d)", seed);
        json_decref(other);
    }
    json_decref(j);
}
END_TEST

START_TEST(a_table)
{
    setenv("SIMGPU_COSTS", "h200", 1);
    setenv("SIMGPU_FLOPS", "1e9", 1);
    setenv("SIMGPU_LAUNCH_NS", "0", 1);
    start();
    CUstream s = stream();
    CUevent a = mark(s);
    for (int i = 0; i < 100; i++)
        launch_work(10, 0, s);
    CUevent b = mark(s);
    OK(cuStreamSynchronize(s));
    ck_assert_int_eq(between(a, b), 100 * 3106 + 123); /* the host, which records an event yet, is behind the kernel of 10 ns */
}
END_TEST

START_TEST(nonsense)
{
    static const char *const bad[] = {"cuLaunchKernel\n", "cuLaunchKernel x\n", "launch 3\n", "cuLaunchKernel 1 2 3\n", "gap -1\n", "host_bw 0\n"};
    char path[] = "/tmp/simgpu-costs-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(write(fd, bad[_i], strlen(bad[_i])), 0);
    close(fd);
    setenv("SIMGPU_COSTS", path, 1);
    FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("costs");
    TCase *c = tcase_create("costs");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, the_later_clock);
    tcase_add_test(c, events_order);
    tcase_add_test(c, the_host_waits);
    tcase_add_test(c, both_directions);
    tcase_add_test(c, told);
    tcase_add_test(c, a_table);
    tcase_add_loop_test(c, nonsense, 0, 6);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
