/*
 * Modules, libraries, parameters and launches of the simulated GPU.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

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

/* The launch has copied the parameters: the caller's memory may change before the kernel runs. */
START_TEST(parameters_are_copied)
{
    start();
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = alloc_words(1);
    OK(cuMemsetD32_v2(p, 0, 1));
    OK(cuCtxSynchronize());
    launch_nap(20000, s);
    unsigned value = 11;
    uint64_t n = 1;
    void *params[] = { &p, &value, &n };
    OK(cuLaunchKernel(kernel("fill"), 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    value = 99;
    memset(params, 0, sizeof params);
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(read_word(p), 11);
}
END_TEST

/* Sizes 1, 12, 8, 2: aligned to 1, 4, 8, 2. */
START_TEST(parameter_layout)
{
    static const size_t want_offset[] = { 0, 4, 16, 24 }, want_size[] = { 1, 12, 8, 2 };
    start();
    CUfunction f = kernel("mixed");
    size_t offset, size;
    for (size_t i = 0; i < 4; i++) {
        OK(cuFuncGetParamInfo(f, i, &offset, &size));
        ck_assert_uint_eq(offset, want_offset[i]);
        ck_assert_uint_eq(size, want_size[i]);
    }
    OK(cuFuncGetParamInfo(f, 3, &offset, NULL));
    FAILS(cuFuncGetParamInfo(f, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuFuncGetParamInfo(kernel("none"), 0, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static void check_mixed(CUdeviceptr out)
{
    uint64_t got[4];
    OK(cuMemcpyDtoH_v2(got, out, sizeof got));
    ck_assert_uint_eq(got[0], 'x');
    ck_assert_uint_eq(got[1], 2001);
    ck_assert_uint_eq(got[2], 3);
    ck_assert_uint_eq(got[3], 77);
}

START_TEST(extra_buffer)
{
    start();
    CUdeviceptr out = alloc_words(8);
    CUfunction f = kernel("mixed");
    char a = 'x';
    struct {
        unsigned x, y, z;
    } b = { 1, 2, 3 };
    short c = 77;
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &a, &b, &out, &c }, NULL));
    check_mixed(out);
    OK(cuMemsetD8_v2(out, 0, 32));

    char buffer[32] = { 0 };
    size_t bytes = 26;
    memcpy(buffer, &a, 1);
    memcpy(buffer + 4, &b, 12);
    memcpy(buffer + 16, &out, 8);
    memcpy(buffer + 24, &c, 2);
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END };
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    check_mixed(out);
    bytes = 25;
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    bytes = 26;
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &a, &b, &out, &c }, extra), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuLaunchKernel(kernel("none"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(launch_ex)
{
    start();
    CUstream s;
    CUevent e;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    CUdeviceptr out = alloc_words(7);
    CUlaunchAttribute attrs[5];
    memset(attrs, 0, sizeof attrs);
    attrs[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attrs[0].value.programmaticStreamSerializationAllowed = 1;
    attrs[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attrs[1].value.priority = -1;
    attrs[2].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attrs[2].value.cooperative = 1;
    attrs[3].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attrs[3].value.clusterDim.x = attrs[3].value.clusterDim.y = attrs[3].value.clusterDim.z = 1;
    attrs[4].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    attrs[4].value.launchCompletionEvent.event = e;
    CUlaunchConfig c = { .gridDimX = 2, .gridDimY = 3, .gridDimZ = 4, .blockDimX = 5, .blockDimY = 6, .blockDimZ = 7,
                         .sharedMemBytes = 800, .hStream = s, .attrs = attrs, .numAttrs = 5 };
    OK(cuLaunchKernelEx(&c, kernel("shape"), (void *[]){ &out }, NULL));
    OK(cuEventSynchronize(e));
    unsigned got[7];
    OK(cuMemcpyDtoH_v2(got, out, sizeof got));
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(got[i], i + 2);
    ck_assert_uint_eq(got[6], 800);

    attrs[3].value.clusterDim.x = 2;
    FAILS(cuLaunchKernelEx(&c, kernel("shape"), (void *[]){ &out }, NULL), CUDA_ERROR_NOT_SUPPORTED);
    attrs[3].id = 999;
    FAILS(cuLaunchKernelEx(&c, kernel("shape"), (void *[]){ &out }, NULL), CUDA_ERROR_INVALID_VALUE);
    c.numAttrs = 3;
    c.gridDimX = 1000000;
    FAILS(cuLaunchKernelEx(&c, kernel("shape"), (void *[]){ &out }, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    FAILS(cuLaunchCooperativeKernel(kernel("shape"), 108 * 32 + 1, 1, 1, 1, 1, 1, 0, s, (void *[]){ &out }),
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    OK(cuLaunchCooperativeKernel(kernel("shape"), 108 * 32, 1, 1, 1, 1, 1, 0, s, (void *[]){ &out }));
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(bad_launches)
{
    start();
    CUdeviceptr out = alloc_words(7);
    CUfunction f = kernel("shape");
    void *p[] = { &out };
    FAILS(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, p, NULL), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLaunchKernel((CUfunction)&out, 1, 1, 1, 1, 1, 1, 0, NULL, p, NULL), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, p, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 0, 1, 0, NULL, p, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1024, 2, 1, 0, NULL, p, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, p, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, (CUstream)&out, p, NULL), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 100000, NULL, p, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 100000, NULL, p, NULL));
    int bytes = 0;
    OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    ck_assert_int_eq(bytes, 100000);
    FAILS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
}
END_TEST

static void *read_file(const char *path, size_t slack)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    char *image = malloc((size_t)st.st_size + slack);
    ck_assert_ptr_nonnull(image);
    ck_assert_int_eq(read(fd, image, (size_t)st.st_size), st.st_size);
    memset(image + st.st_size, 0xee, slack);
    close(fd);
    return image;
}

/* The size of an image comes from its headers: nothing tells the driver where the bytes end. */
START_TEST(module_from_bytes)
{
    start();
    void *image = read_file(built("testkernels.so"), 0);
    CUmodule m[3];
    CUfunction f[3];
    for (int i = 0; i < 3; i++) {
        OK(i == 2 ? cuModuleLoadDataEx(&m[i], image, 0, NULL, NULL) : cuModuleLoadData(&m[i], image));
        OK(cuModuleGetFunction(&f[i], m[i], "fill"));
    }
    free(image);
    ck_assert_ptr_ne(f[0], f[1]);
    CUdeviceptr p = alloc_words(3);
    uint64_t n = 1;
    for (unsigned i = 0; i < 3; i++) {
        CUdeviceptr at = p + 4 * i;
        unsigned v = i + 10;
        OK(cuLaunchKernel(f[i], 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &at, &v, &n }, NULL));
    }
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(read_word(p + 4 * i), i + 10);
    OK(cuModuleUnload(m[1]));
    FAILS(cuModuleUnload(m[1]), CUDA_ERROR_INVALID_HANDLE);
    uint64_t one = 1;
    unsigned v = 5;
    FAILS(cuLaunchKernel(f[1], 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &p, &v, &one }, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuLaunchKernel(f[0], 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &p, &v, &one }, NULL));
    ck_assert_uint_eq(read_word(p), 5);
}
END_TEST

START_TEST(foreign_images)
{
    start();
    CUmodule m;
    CUlibrary l;
    FAILS(cuModuleLoad(&m, "/nowhere/module.so"), CUDA_ERROR_FILE_NOT_FOUND);
    FAILS(cuModuleLoad(&m, "/dev/null"), CUDA_ERROR_INVALID_IMAGE);
    FAILS(cuModuleLoad(NULL, built("testkernels.so")), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuModuleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleLoadData(&m, "\n//\n.version 8.0\n.target sm_80\n"));
    FAILS(cuModuleLoadDataEx(&m, ".version 8.0\n", 0, NULL, NULL), CUDA_ERROR_INVALID_PTX);
    FAILS(cuLibraryLoadData(&l, ".version 8.0\n", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_PTX);
    FAILS(cuModuleLoadData(&m, "hello"), CUDA_ERROR_INVALID_IMAGE);
    FAILS(cuModuleLoadData(&m, ""), CUDA_ERROR_INVALID_IMAGE);
    FAILS(cuModuleLoadFatBinary(&m, "\x50\xed\x55\xba\x01\x00\x10\x00\0\0\0\0\0\0\0"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    /* an ELF file that is no kernel module: the driver itself */
    FAILS(cuModuleLoad(&m, built("libcuda.so.1")), CUDA_ERROR_NO_BINARY_FOR_GPU);
    void *image = read_file("/proc/self/exe", 64);
    CUresult r = cuModuleLoadData(&m, image);
    ck_assert(r == CUDA_ERROR_NO_BINARY_FOR_GPU || r == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
    free(image);
}
END_TEST

START_TEST(names)
{
    start();
    CUfunction f, all[32];
    CUmodule m;
    unsigned n;
    const char *name;
    CUdeviceptr p;
    size_t bytes;
    FAILS(cuModuleGetFunction(&f, test_module, "nothing"), CUDA_ERROR_NOT_FOUND);
    FAILS(cuModuleGetFunction(&f, (CUmodule)&f, "fill"), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuModuleGetFunction(&f, test_module, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuModuleGetGlobal_v2(&p, &bytes, test_module, "fill"), CUDA_ERROR_NOT_FOUND);
    f = kernel("step");
    OK(cuFuncGetName(&name, f));
    ck_assert_str_eq(name, "step");
    OK(cuFuncGetModule(&m, f));
    ck_assert_ptr_eq(m, test_module);
    OK(cuModuleGetFunctionCount(&n, test_module));
    ck_assert_uint_eq(n, 10);
    OK(cuModuleEnumerateFunctions(all, n, test_module));
    OK(cuFuncGetName(&name, all[n - 1]));
    ck_assert_str_eq(name, "none");
}
END_TEST

/* A CUkernel goes wherever a launch takes a CUfunction, as cudart relies on. */
START_TEST(library_kernels)
{
    OK(cuInit(0));
    CUlibrary l, l2, back;
    CUkernel k, all[32];
    unsigned n;
    const char *name;
    size_t offset, size;
    /* no context is needed yet */
    OK(cuLibraryLoadFromFile(&l, built("testkernels.so"), NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&k, l, "fill"));
    OK(cuKernelGetName(&name, k));
    ck_assert_str_eq(name, "fill");
    OK(cuKernelGetParamInfo(k, 2, &offset, &size));
    ck_assert_uint_eq(offset, 16);
    ck_assert_uint_eq(size, 8);
    OK(cuKernelGetLibrary(&back, k));
    ck_assert_ptr_eq(back, l);
    OK(cuLibraryGetKernelCount(&n, l));
    ck_assert_uint_eq(n, 10);
    OK(cuLibraryEnumerateKernels(all, n, l));
    ck_assert_ptr_eq(all[0], k);
    FAILS(cuLibraryGetKernel(&k, l, "nothing"), CUDA_ERROR_NOT_FOUND);

    start();
    void *image = read_file(built("testkernels.so"), 0);
    OK(cuLibraryLoadData(&l2, image, NULL, NULL, 0, NULL, NULL, 0));
    free(image);
    CUdeviceptr p = alloc_words(4);
    uint64_t count = 4;
    unsigned v = 21;
    void *params[] = { &p, &v, &count };
    OK(cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ck_assert_uint_eq(read_word(p + 12), 21);
    CUfunction f;
    CUmodule m;
    OK(cuKernelGetFunction(&f, k));
    v = 22;
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ck_assert_uint_eq(read_word(p), 22);
    OK(cuFuncGetParamInfo((CUfunction)k, 1, &offset, &size));
    ck_assert_uint_eq(offset, 8);
    OK(cuLibraryGetModule(&m, l));
    OK(cuModuleGetFunction(&f, m, "fill"));
    int value;
    OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0));
    ck_assert_int_eq(value, 1024);
    FAILS(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
    OK(cuLibraryUnload(l));
    FAILS(cuLibraryUnload(l), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuLibraryUnload(l2));
}
END_TEST

RUN_SUITE("simgpu_launch", kernel_runs, parameters_are_copied, parameter_layout, extra_buffer, launch_ex, bad_launches,
          module_from_bytes, foreign_images, names, library_kernels)
