/*
 * The simulated CUDA runtime as a program compiled by nvcc uses it: registration, host functions, configurations, launches, errors,
 * memory, streams, threads, processes. The program's machine code is made in memory, its kernels come from a small catalogue.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include "tests/simcuda/runtime/rt_abi.h"
#include "tests/simgpu/made_code.h"
#include "tests/simgpu/testing.h"

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(rt_dim3, rt_dim3, size_t, CUstream);
int __cudaPopCallConfiguration(rt_dim3 *, rt_dim3 *, size_t *, void *);
int __cudaGetKernel(CUkernel *, const void *);
int __cudaLaunchKernel(CUkernel, rt_dim3, rt_dim3, void **, size_t, CUstream);
int cudaLaunchKernel(const void *, rt_dim3, rt_dim3, void **, size_t, CUstream);
int cudaLaunchKernelExC(const struct rt_launch_config *, const void *, void **);
int cudaFuncGetAttributes(struct rt_func_attributes *, const void *);
int cudaFuncSetAttribute(const void *, int, int);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t);
int cudaGetLastError(void), cudaPeekAtLastError(void), cudaDeviceSynchronize(void), cudaSetDevice(int);
int cudaGetDevice(int *), cudaGetDeviceCount(int *), cudaGetDeviceProperties(struct rt_device_prop *, int);
int cudaMalloc(void **, size_t), cudaFree(void *), cudaMemcpy(void *, const void *, size_t, int);
int cudaMallocAsync(void **, size_t, CUstream), cudaFreeAsync(void *, CUstream);
int cudaMemcpyPeerAsync(void *, int, const void *, int, size_t, CUstream), cudaMemset(void *, int, size_t);
int cudaMemcpy2DAsync(void *, size_t, const void *, size_t, size_t, size_t, int, CUstream);
int cudaGetSymbolAddress(void **, const void *), cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int);
int cudaPointerGetAttributes(struct rt_pointer_attributes *, const void *), cudaHostAlloc(void **, size_t, unsigned);
int cudaStreamCreate(CUstream *), cudaStreamSynchronize(CUstream), cudaEventCreate(CUevent *), cudaEventQuery(CUevent);
int cudaEventRecord(CUevent, CUstream), cudaEventSynchronize(CUevent), cudaEventDestroy(CUevent), cudaStreamQuery(CUstream);
int cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long, CUdriverProcAddressQueryResult *);
int cudaGraphAddNode(void);
const char *cudaGetErrorName(int), *cudaGetErrorString(int);

#define RT(call, want)                                                                                                \
    do {                                                                                                              \
        int got_ = (call);                                                                                            \
        ck_assert_msg(got_ == (want), "%s: %s, want %s", #call, cudaGetErrorName(got_), cudaGetErrorName(want));      \
    } while (0)

static const uint32_t fill_sizes[] = { 8, 4, 8 }, init_words[] = { 11, 22, 33 };
static const struct made_kernel kernels[] = { { "k_fill", 3, fill_sizes, 256, 64, 40, false },
                                              { "k_missing", 3, fill_sizes, 0, 0, 24, false } };
static const struct made_variable variables[] = { { "words", 12, init_words } };

static char fill_host, missing_host, absent_host, unknown_host, words_shadow; /* their addresses are what counts */
static struct {
    int magic, version;
    const void *data;
    void *more;
} wrapper = { 0x466243b1, 1, NULL, NULL };
static void **handle;
static const rt_dim3 one = { 1, 1, 1 };

static void program(void)
{
    setenv("SIMGPU_CATALOGUE", built("testcatalogue.so"), 1);
    struct made_image code = made_cubin(kernels, 2, variables, 1);
    wrapper.data = made_fat((struct made_image){ NULL, 0 }, 2, 80, code.at, code.n, 0).at;
    free(code.at);
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, &fill_host, NULL, "k_fill", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, &missing_host, NULL, "k_missing", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, &absent_host, NULL, "k_not_in_the_code", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, &words_shadow, NULL, "words", 0, 12, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
}

/* As nvcc writes the host side of a kernel: the kernel is asked for once. */
static int fill(uint32_t *p, uint32_t value, uint64_t n)
{
    static CUkernel kernel;
    rt_dim3 grid, block;
    size_t shared;
    CUstream stream;
    if (!kernel && __cudaGetKernel(&kernel, &fill_host))
        return cudaPeekAtLastError();
    int e = __cudaPopCallConfiguration(&grid, &block, &shared, &stream);
    void *args[] = { &p, &value, &n };
    return e ? e : __cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

START_TEST(launches)
{
    program();
    uint32_t *p, got[4];
    RT(cudaMalloc((void **)&p, 16), 0);
    ck_assert_uint_eq(__cudaPushCallConfiguration(one, (rt_dim3){ 32, 1, 1 }, 0, NULL), 0);
    RT(fill(p, 5, 4), 0);
    RT(cudaMemcpy(got, p, 16, RT_DEVICE_TO_HOST), 0);
    ck_assert_uint_eq(got[3], 5);
    RT(fill(p, 5, 4), RT_MISSING_CONFIGURATION); /* each push is for one pop */
    RT(cudaGetLastError(), RT_MISSING_CONFIGURATION);
    uint32_t value = 9;
    uint64_t n = 4;
    void *args[] = { &p, &value, &n };
    RT(cudaLaunchKernel(&fill_host, one, one, args, 0, NULL), 0);
    RT(cudaMemcpy(got, p, 16, RT_COPY_DEFAULT), 0);
    ck_assert_uint_eq(got[0], 9);
    struct rt_launch_config config = { .grid = one, .block = one };
    value = 10;
    RT(cudaLaunchKernelExC(&config, &fill_host, args), 0);
    RT(cudaMemcpy(got, p, 16, RT_DEVICE_TO_HOST), 0);
    ck_assert_uint_eq(got[0], 10);
    /* shapes that no device has, and that this kernel cannot have */
    RT(cudaLaunchKernel(&fill_host, (rt_dim3){ 0, 1, 1 }, one, args, 0, NULL), RT_INVALID_CONFIGURATION);
    RT(cudaLaunchKernel(&fill_host, one, (rt_dim3){ 2048, 1, 1 }, args, 0, NULL), RT_INVALID_CONFIGURATION);
    RT(cudaLaunchKernel(&fill_host, one, one, args, 1 << 20, NULL), RT_INVALID_VALUE);
    RT(cudaLaunchKernel(&fill_host, one, (rt_dim3){ 512, 1, 1 }, args, 0, NULL), 701);
    RT(cudaDeviceSynchronize(), 0);
}
END_TEST

START_TEST(kernels_without_code)
{
    program();
    uint32_t *p = NULL, value = 1;
    uint64_t n = 1;
    void *args[] = { &p, &value, &n };
    CUkernel k;
    RT(__cudaGetKernel(&k, &missing_host), 0); /* it is in the code, but not in the catalogue */
    RT(__cudaLaunchKernel(k, one, one, args, 0, NULL), RT_INVALID_DEVICE_FUNCTION);
    RT(__cudaGetKernel(&k, &absent_host), RT_INVALID_DEVICE_FUNCTION);
    ck_assert_ptr_null(k);
    RT(__cudaLaunchKernel(k, one, one, args, 0, NULL), RT_INVALID_DEVICE_FUNCTION);
    RT(cudaLaunchKernel(&unknown_host, one, one, args, 0, NULL), RT_INVALID_DEVICE_FUNCTION);
    RT(cudaGetLastError(), RT_INVALID_DEVICE_FUNCTION);
    RT(cudaGetLastError(), 0);
    RT(cudaDeviceSynchronize(), 0); /* nothing sticks */
    __cudaUnregisterFatBinary(handle);
    RT(cudaLaunchKernel(&fill_host, one, one, args, 0, NULL), RT_INVALID_DEVICE_FUNCTION);
}
END_TEST

START_TEST(attributes)
{
    program();
    struct rt_func_attributes a;
    int blocks;
    RT(cudaFuncGetAttributes(&a, &fill_host), 0);
    ck_assert_int_eq(a.max_threads_per_block, 256);
    ck_assert_uint_eq(a.shared_bytes, 64);
    ck_assert_int_eq(a.num_regs, 40);
    ck_assert_int_eq(a.binary_version, 80);
    RT(cudaFuncSetAttribute(&fill_host, 8, 100 << 10), 0);
    RT(cudaFuncGetAttributes(&a, &fill_host), 0);
    ck_assert_int_eq(a.max_dynamic_shared_bytes, 100 << 10);
    RT(cudaFuncSetAttribute(&fill_host, 8, 1 << 20), RT_INVALID_VALUE);
    RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &fill_host, 256, 0), 0);
    ck_assert_int_eq(blocks, 8);
}
END_TEST

START_TEST(variables_by_shadow)
{
    program();
    uint32_t *p, got[3], two[] = { 7, 8 };
    RT(cudaGetSymbolAddress((void **)&p, &words_shadow), 0);
    RT(cudaMemcpyToSymbol(&words_shadow, two, 8, 4, RT_HOST_TO_DEVICE), 0);
    RT(cudaMemcpy(got, p, 12, RT_DEVICE_TO_HOST), 0);
    ck_assert_uint_eq(got[0], 11);
    ck_assert_uint_eq(got[2], 8);
    RT(cudaMemcpyToSymbol(&words_shadow, two, 8, 8, RT_HOST_TO_DEVICE), RT_INVALID_VALUE);
    RT(cudaMemcpyToSymbol(&words_shadow, two, 8, 0, RT_DEVICE_TO_HOST), RT_INVALID_MEMCPY_DIRECTION);
    RT(cudaGetSymbolAddress((void **)&p, &unknown_host), RT_INVALID_SYMBOL);
}
END_TEST

START_TEST(memory)
{
    setenv("SIMGPU_MEM", "16M", 1);
    uint32_t *p, *q, *host, row[] = { 1, 2, 3, 4 }, got[4] = { 0 };
    struct rt_pointer_attributes a;
    RT(cudaMalloc((void **)&p, 0), 0);
    ck_assert_ptr_null(p);
    RT(cudaFree(NULL), 0);
    RT(cudaMalloc((void **)&p, 17 << 20), RT_MEMORY_ALLOCATION);
    ck_assert_str_eq(cudaGetErrorString(cudaGetLastError()), "out of memory");
    RT(cudaMalloc((void **)&p, 16), 0); /* and goes on */
    RT(cudaMallocAsync((void **)&q, 32, NULL), 0);
    RT(cudaMemcpy2DAsync(p, 8, row, 8, 8, 2, RT_HOST_TO_DEVICE, NULL), 0);
    RT(cudaMemcpy2DAsync(p, 4, row, 8, 8, 2, RT_HOST_TO_DEVICE, NULL), RT_INVALID_PITCH);
    RT(cudaMemcpy(p, row, 16, 9), RT_INVALID_MEMCPY_DIRECTION);
    RT(cudaMemcpy(got, p, 16, RT_DEVICE_TO_HOST), 0);
    ck_assert_mem_eq(got, row, 16);
    RT(cudaMemcpy(got, row + 2, 8, RT_HOST_TO_HOST), 0);
    ck_assert_uint_eq(got[1], 4);
    RT(cudaPointerGetAttributes(&a, p), 0);
    ck_assert_int_eq(a.type, RT_MEMORY_DEVICE);
    ck_assert_int_eq(a.device, 0);
    ck_assert_ptr_eq(a.device_pointer, p);
    RT(cudaHostAlloc((void **)&host, 64, 0), 0);
    RT(cudaPointerGetAttributes(&a, host), 0);
    ck_assert_int_eq(a.type, RT_MEMORY_HOST);
    RT(cudaGetLastError(), RT_INVALID_MEMCPY_DIRECTION);
    RT(cudaPointerGetAttributes(&a, got), 0); /* nobody's memory: an answer, no error */
    ck_assert_int_eq(a.type, RT_MEMORY_UNREGISTERED);
    RT(cudaPeekAtLastError(), 0);
    RT(cudaFreeAsync(q, NULL), 0);
    RT(cudaFree(p), 0);
    RT(cudaFree(p), RT_INVALID_VALUE);
}
END_TEST

START_TEST(an_illegal_address_sticks)
{
    program();
    uint32_t *p;
    RT(cudaMalloc((void **)&p, 16), 0);
    RT(cudaFree(p), 0);
    RT(cudaMemset(p, 0, 16), RT_INVALID_VALUE);
    uint32_t value = 9;
    uint64_t n = 4;
    void *args[] = { &p, &value, &n };
    RT(cudaLaunchKernel(&fill_host, one, one, args, 0, NULL), 0);
    RT(cudaDeviceSynchronize(), 700);
    RT(cudaGetLastError(), 700);
    RT(cudaMalloc((void **)&p, 16), 700);
}
END_TEST

START_TEST(not_ready_is_no_error)
{
    program();
    start(); /* test kernels by the driver, in the same context */
    CUstream s;
    CUevent e;
    RT(cudaStreamCreate(&s), 0);
    RT(cudaEventCreate(&e), 0);
    launch_nap(50000, s);
    RT(cudaEventRecord(e, s), 0);
    RT(cudaEventQuery(e), RT_NOT_READY);
    RT(cudaStreamQuery(s), RT_NOT_READY);
    RT(cudaPeekAtLastError(), 0);
    RT(cudaEventSynchronize(e), 0);
    RT(cudaEventQuery(e), 0);
    RT(cudaEventDestroy(e), 0);
    RT(cudaEventDestroy(e), RT_INVALID_RESOURCE_HANDLE);
}
END_TEST

/* Device, last error and configurations are each thread's own. */
static void *other_thread(void *arg)
{
    int device = -1;
    uint32_t *p;
    *(int *)arg = cudaPeekAtLastError() || cudaGetDevice(&device) || device != 0 || cudaSetDevice(1) ||
                  cudaMalloc((void **)&p, 16) || __cudaPopCallConfiguration(NULL, NULL, NULL, NULL) != RT_MISSING_CONFIGURATION;
    struct rt_pointer_attributes a;
    *(int *)arg |= cudaPointerGetAttributes(&a, p) || a.device != 1;
    return NULL;
}

START_TEST(threads_and_devices)
{
    setenv("SIMGPU_DEVICES", "2", 1);
    program();
    int n, device, failed;
    pthread_t t;
    struct rt_device_prop prop;
    RT(cudaGetDeviceCount(&n), 0);
    ck_assert_int_eq(n, 2);
    RT(cudaGetDeviceProperties(&prop, 1), 0);
    ck_assert_str_eq(prop.name, "Simulated GPU");
    ck_assert_int_eq(prop.major, 8);
    ck_assert_int_eq(prop.multiProcessorCount, 108);
    ck_assert_int_eq(prop.warpSize, 32);
    ck_assert_int_eq(prop.pciBusID, 2);
    ck_assert_uint_eq(prop.sharedMemPerBlockOptin, 163 << 10);
    RT(cudaSetDevice(2), RT_INVALID_DEVICE);
    __cudaPushCallConfiguration(one, one, 0, NULL);
    ck_assert_int_eq(pthread_create(&t, NULL, other_thread, &failed), 0);
    pthread_join(t, NULL);
    ck_assert_int_eq(failed, 0);
    RT(cudaGetDevice(&device), 0);
    ck_assert_int_eq(device, 0);
    /* the same kernel on both devices */
    uint32_t *p[2], got;
    for (int i = 0; i < 2; i++) {
        RT(cudaSetDevice(i), 0);
        RT(cudaMalloc((void **)&p[i], 16), 0);
        __cudaPushCallConfiguration(one, one, 0, NULL);
        RT(fill(p[i], 20 + (unsigned)i, 4), 0);
        RT(cudaDeviceSynchronize(), 0); /* nothing orders one device's work before the other's */
    }
    RT(cudaMemcpyPeerAsync(p[0], 0, p[1], 1, 4, NULL), 0);
    RT(cudaDeviceSynchronize(), 0);
    RT(cudaMemcpy(&got, p[0], 4, RT_DEVICE_TO_HOST), 0);
    ck_assert_uint_eq(got, 21);
}
END_TEST

START_TEST(driver_entry_points)
{
    void *f = NULL;
    CUdriverProcAddressQueryResult status;
    RT(cudaGetDriverEntryPointByVersion("cuMemCreate", &f, 12000, 0, &status), 0);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
    RT(cudaGetDriverEntryPointByVersion("cuNothing", &f, 12000, 0, &status), 0);
    ck_assert_ptr_null(f);
    ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    RT(cudaGetDriverEntryPointByVersion("cuMemCreate", &f, 3000, 0, &status), 0);
    ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}
END_TEST

/* What is not written says its name. */
START_TEST(absent_calls)
{
    char text[256] = "";
    FILE *f = tmpfile();
    int keep = dup(2);
    dup2(fileno(f), 2);
    int e = cudaGraphAddNode();
    dup2(keep, 2);
    rewind(f);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
    RT(e, RT_NOT_SUPPORTED);
    ck_assert_str_eq(text, "simcuda: cudaGraphAddNode is not part of the simulated CUDA runtime\n");
}
END_TEST

static int ends(void (*child)(void), const char *stats)
{
    unlink(stats);
    pid_t pid = fork();
    if (!pid) {
        setenv("SIMGPU_STATS", stats, 1);
        child();
        abort();
    }
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void allocate_and_leave(void)
{
    void *p;
    pid_t pid;
    if (cudaMalloc(&p, 4096))
        _exit(1);
    if (!(pid = fork()))
        _exit(cudaMalloc(&p, 4096) == RT_INITIALIZATION_ERROR ? 5 : 6); /* a child has no device, and no statistics to write */
    int status;
    waitpid(pid, &status, 0);
    if (WEXITSTATUS(status) != 5 || cudaMalloc(&p, 4096))
        _exit(2);
    _exit(7);
}

START_TEST(statistics_at_once_leaving)
{
    char stats[64], text[4096] = "";
    snprintf(stats, sizeof stats, "/tmp/simcuda-stats-%d", (int)getpid());
    ck_assert_int_eq(ends(allocate_and_leave, stats), 7);
    FILE *f = fopen(stats, "r");
    ck_assert_msg(f != NULL, "no statistics after _exit");
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
    fclose(f);
    unlink(stats);
    ck_assert_msg(strstr(text, "\"peak_physical_bytes\": 8192"), "statistics: %s", text);
}
END_TEST

RUN_SUITE("simcuda_runtime", launches, kernels_without_code, attributes, variables_by_shadow, memory,
          an_illegal_address_sticks, not_ready_is_no_error, threads_and_devices, driver_entry_points, absent_calls,
          statistics_at_once_leaving)
