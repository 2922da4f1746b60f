/*
 * The three ways to the simulated driver's calls: linking, dlsym, cuGetProcAddress; and what it exports.
 */
#include <dlfcn.h>

#include "tests/simgpu/testing.h"

static void *ask(const char *name, int version, cuuint64_t flags)
{
    void *p = NULL;
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)9;
    OK(cuGetProcAddress_v2(name, &p, version, flags, &status));
    ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
    ck_assert_ptr_nonnull(p);
    return p;
}

#define SAME(name, version, flags, symbol) ck_assert_ptr_eq(ask(name, version, flags), dlsym(lib, #symbol))

START_TEST(variants)
{
    void *lib = dlopen(built("libcuda.so.1"), RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(lib);
    enum { LEGACY = CU_GET_PROC_ADDRESS_LEGACY_STREAM, OWN = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM };
    SAME("cuInit", 12000, 0, cuInit);
    SAME("cuMemAlloc", 12000, 0, cuMemAlloc_v2);
    SAME("cuMemAlloc", 12000, OWN, cuMemAlloc_v2); /* has no such variant */
    SAME("cuMemcpyHtoDAsync", 12000, 0, cuMemcpyHtoDAsync_v2);
    SAME("cuMemcpyHtoDAsync", 12000, LEGACY, cuMemcpyHtoDAsync_v2);
    SAME("cuMemcpyHtoDAsync", 12000, OWN, cuMemcpyHtoDAsync_v2_ptsz);
    SAME("cuMemcpyHtoDAsync", 6000, OWN, cuMemcpyHtoDAsync_v2); /* older than the variant */
    SAME("cuMemcpyDtoH", 12000, OWN, cuMemcpyDtoH_v2_ptds);
    SAME("cuLaunchKernel", 12000, OWN, cuLaunchKernel_ptsz);
    SAME("cuLaunchKernelEx", 12000, 0, cuLaunchKernelEx);
    SAME("cuCtxCreate", 12000, 0, cuCtxCreate_v3);
    SAME("cuCtxCreate", 11000, 0, cuCtxCreate_v2);
    SAME("cuCtxCreate", 13000, 0, cuCtxCreate_v4);
    SAME("cuEventElapsedTime", 12000, 0, cuEventElapsedTime);
    SAME("cuEventElapsedTime", 13000, 0, cuEventElapsedTime_v2);
    SAME("cuGetProcAddress", 11030, 0, cuGetProcAddress);
    SAME("cuGetProcAddress", 12000, 0, cuGetProcAddress_v2);
    SAME("cuStreamGetCaptureInfo", 11030, OWN, cuStreamGetCaptureInfo_v2_ptsz);
    SAME("cuKernelGetParamInfo", 12040, 0, cuKernelGetParamInfo);

    void *p = lib;
    CUdriverProcAddressQueryResult status;
    FAILS(cuGetProcAddress_v2("cuKernelGetParamInfo", &p, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
    ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    ck_assert_ptr_null(p);
    FAILS(cuGetProcAddress_v2("cuNothing", &p, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
    ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    FAILS(cuGetProcAddress_v2("", &p, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
    FAILS(cuGetProcAddress_v2("cuMemAlloc", &p, 12000, 8, &status), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuGetProcAddress_v2(NULL, &p, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuGetProcAddress_v2("cuMemAlloc", NULL, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    OK(cuGetProcAddress_v2("cuMemAlloc", &p, 12000, 0, NULL));
    OK(cuGetProcAddress("cuMemAlloc", &p, 12000, 0));
    ck_assert_ptr_eq(p, dlsym(lib, "cuMemAlloc_v2"));
}
END_TEST

/* A program that meets the driver through dlopen and cuGetProcAddress alone. */
START_TEST(works_through_pointers)
{
    CUcontext ctx;
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    unsigned value = 12, got = 0;
    uint64_t n = 1;
#define CALL(name, version) ((__typeof__(name) *)ask(#name, version, 2))
    OK(CALL(cuInit, 12000)(0));
    OK(CALL(cuDevicePrimaryCtxRetain, 12000)(&ctx, 0));
    OK(CALL(cuCtxSetCurrent, 12000)(ctx));
    OK(CALL(cuModuleLoad, 12000)(&m, built("testkernels.so")));
    OK(CALL(cuModuleGetFunction, 12000)(&f, m, "fill"));
    OK(((__typeof__(cuMemAlloc_v2) *)ask("cuMemAlloc", 12000, 0))(&p, 4));
    OK(CALL(cuLaunchKernel, 12000)(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &p, &value, &n }, NULL));
    OK(((__typeof__(cuMemcpyDtoH_v2) *)ask("cuMemcpyDtoH", 12000, 2))(&got, p, 4));
    ck_assert_uint_eq(got, 12);
}
END_TEST

START_TEST(odds_and_ends)
{
    int version = 0;
    OK(cuDriverGetVersion(&version));
    ck_assert_int_ge(version, 13000);
    const char *text;
    OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    ck_assert_str_eq(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    ck_assert_str_eq(text, "out of memory");
    FAILS(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    ck_assert_ptr_null(text);
    int n = 0;
    FAILS(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    FAILS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    ck_assert_int_eq(n, 1);
    CUdevice dev;
    OK(cuDeviceGet(&dev, 0));
    FAILS(cuDeviceGet(&dev, 1), CUDA_ERROR_INVALID_DEVICE);
    char name[100];
    OK(cuDeviceGetName(name, sizeof name, 0));
    ck_assert_str_eq(name, "Simulated GPU");
    int value = 0;
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    ck_assert_int_eq(value, 1);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
    ck_assert_int_eq(value, 0);
    FAILS(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0), CUDA_ERROR_INVALID_VALUE);
    const void *table = &n;
    CUuuid id = { { 1, 2, 3 } };
    FAILS(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    ck_assert_ptr_null(table);
    CUgraph graph;
    OK(cuGraphCreate(&graph, 0));
    CUgraphNode node;
    FAILS(cuGraphAddEmptyNode(&node, graph, NULL, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuGraphDestroy(graph));
}
END_TEST

RUN_SUITE("simgpu_proc", variants, works_through_pointers, odds_and_ends)
