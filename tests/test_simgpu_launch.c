/*
 * Modules, libraries, parameters and launches of the simulated GPU.
 */
#include "tests/simgpu/testing.h"

START_TEST(kernel_runs)
{
    start();
    CUdeviceptr a = alloc_words(1000), b = alloc_words(1000), c = alloc_words(1000);
    uint64_t n = 1000;
    launch_fill(a, 5, n, NULL);
    launch_fill(b, 37, n, NULL);
    LAUNCH("add", NULL, &a, &b, &c, &n);
    unsigned got[1000];
    OK(cuMemcpyDtoH_v2(got, c, sizeof got));
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(got[i], 42);
    OK(cuCtxSynchronize());
}
END_TEST

RUN_SUITE("simgpu_launch", kernel_runs)
