/*
 * What the simulated GPU's tests share: a context, the test kernels, and short forms of the calls.
 *
 * Each test runs in a process of its own (Check forks), so a test may set SIMGPU_* before it calls start().
 * Every check fails the running test with the call's text and the error's name.
 */
#ifndef SIMGPU_TESTING_H
#define SIMGPU_TESTING_H

#include <check.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/cuda_abi.h"

static inline const char *error_name(CUresult r)
{
    const char *name = "?";
    cuGetErrorName(r, &name);
    return name;
}

#define OK(call)                                                                                                      \
    do {                                                                                                              \
        CUresult ok_ = (call);                                                                                        \
        ck_assert_msg(ok_ == CUDA_SUCCESS, "%s: %s", #call, error_name(ok_));                                         \
    } while (0)
#define FAILS(call, want)                                                                                             \
    do {                                                                                                              \
        CUresult got_ = (call);                                                                                       \
        ck_assert_msg(got_ == (want), "%s: %s, want %s", #call, error_name(got_), #want);                             \
    } while (0)

/* Path of a file the build put beside the library. Valid until the next call. */
static inline const char *built(const char *name)
{
    static char path[PATH_MAX];
    char exe[PATH_MAX - 64];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    ck_assert_int_gt(n, 0);
    exe[n] = 0;
    snprintf(path, sizeof path, "%s/../simgpu/%s", dirname(exe), name);
    return path;
}

static CUmodule test_module;
static CUcontext test_ctx;

static inline void start(void)
{
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&test_ctx, 0));
    OK(cuCtxPushCurrent_v2(test_ctx));
    OK(cuModuleLoad(&test_module, built("testkernels.so")));
}

static inline CUfunction kernel(const char *name)
{
    CUfunction f;
    OK(cuModuleGetFunction(&f, test_module, name));
    return f;
}

/* Launches with one thread; the parameters are lvalues. */
#define LAUNCH(name, stream, ...)                                                                                     \
    OK(cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, (stream), (void *[]){ __VA_ARGS__ }, NULL))

static inline void launch_fill(CUdeviceptr p, unsigned value, uint64_t n, CUstream s)
{
    LAUNCH("fill", s, &p, &value, &n);
}

static inline void launch_step(CUdeviceptr p, unsigned multiply, unsigned plus, CUstream s)
{
    LAUNCH("step", s, &p, &multiply, &plus);
}

static inline void launch_nap(unsigned us, CUstream s)
{
    LAUNCH("nap", s, &us);
}

static inline void launch_work(uint64_t flops, uint64_t bytes, CUstream s)
{
    LAUNCH("work", s, &flops, &bytes);
}

static inline unsigned read_word(CUdeviceptr p)
{
    unsigned v = 0;
    OK(cuMemcpyDtoH_v2(&v, p, sizeof v));
    return v;
}

static inline CUdeviceptr alloc_words(uint64_t n)
{
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, n * 4));
    return p;
}

static inline CUmemAllocationProp device_prop(void)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return prop;
}

static inline int run_suite(const char *name, const TTest *const *tests, size_t n)
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 120);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
#define RUN_SUITE(name, ...)                                                                                          \
    int main(void)                                                                                                    \
    {                                                                                                                 \
        const TTest *const tests[] = { __VA_ARGS__ };                                                                 \
        return run_suite(name, tests, sizeof tests / sizeof tests[0]);                                                \
    }

#endif
