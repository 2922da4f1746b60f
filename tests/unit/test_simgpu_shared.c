/*
 * SIMGPU_SHARED: several processes, one device memory. A killed process's memory is the device's again.
 */
#include <signal.h>
#include <sys/wait.h>

#include "tests/simgpu/testing.h"

#define MIB (1ull << 20)

static char path[] = "/tmp/simgpu-shared-XXXXXX";

static void use(const char *mem)
{
    setenv("SIMGPU_SHARED", path, 1);
    setenv("SIMGPU_MEM", mem, 1);
}

/* A process that takes this much, says so, and waits to be ended. */
static pid_t taker(uint64_t bytes)
{
    int done[2];
    ck_assert_int_eq(pipe(done), 0);
    pid_t pid = fork();
    if (pid == 0) {
        CUdeviceptr p;
        start();
        char ok = cuMemAlloc_v2(&p, bytes) == CUDA_SUCCESS ? 'y' : 'n';
        if (write(done[1], &ok, 1) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    char ok = 0;
    close(done[1]);
    ck_assert_int_eq(read(done[0], &ok, 1), 1);
    ck_assert_int_eq(ok, 'y');
    close(done[0]);
    return pid;
}

START_TEST(one_memory)
{
    use("64M");
    pid_t a = taker(40 * MIB);
    CUdeviceptr p, q;
    size_t available, total;
    start();
    OK(cuMemGetInfo_v2(&available, &total));
    ck_assert_uint_eq(total, 64 * MIB);
    ck_assert_uint_eq(available, 24 * MIB);
    FAILS(cuMemAlloc_v2(&p, 25 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(cuMemAllocAsync(&p, 25 * MIB, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&p, 20 * MIB));
    OK(cuMemsetD8_v2(p, 7, 20 * MIB));
    kill(a, SIGKILL); /* its parent does not look, and it was not asked to tidy up */
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)a, &info, WEXITED | WNOWAIT), 0);
    OK(cuMemAlloc_v2(&q, 40 * MIB));
    OK(cuMemFree_v2(q));
    OK(cuMemFree_v2(p));
    OK(cuMemGetInfo_v2(&available, &total));
    ck_assert_uint_eq(available, 64 * MIB);
    waitpid(a, NULL, 0);
}
END_TEST

START_TEST(another_size)
{
    use("64M");
    pid_t a = taker(MIB);
    setenv("SIMGPU_MEM", "32M", 1);
    FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
    kill(a, SIGKILL);
    waitpid(a, NULL, 0);
}
END_TEST

START_TEST(no_device)
{
    static const char *const names[] = {"relative", "/proc/version", "/nowhere/at/all"};
    use("64M");
    setenv("SIMGPU_SHARED", names[_i], 1);
    FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    Suite *s = suite_create("simgpu_shared");
    TCase *t = tcase_create("simgpu_shared");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, one_memory);
    tcase_add_test(t, another_size);
    tcase_add_loop_test(t, no_device, 0, 3);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    unlink(path);
    return failed ? 1 : 0;
}
