#include "tests/workloads/tensor.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/cuda_abi.h"
#include "tests/workloads/launch.h"

enum {
    BLOCK = 128,                /* threads of a block */
    PARAM_BYTES = 4096,         /* the most parameters a launch can carry */
    MARKS = 8,
    LATE = 16,                  /* tensors that can be waiting for a late free */
    LATE_EVERY = 3, LATE_LAUNCHES = 4
};

#define DRIVER(symbol, name) __typeof__(symbol) *symbol;
static struct {
#include "tests/workloads/driver.def"
} driver;
#undef DRIVER

static const char *const kernel_names[] = {
#define KERNEL(name, ...) #name,
#include "tests/workloads/kernels.def"
#undef KERNEL
};

static struct {
    dev_options options;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUlibrary library;
    CUfunction function[KERNELS];       /* a CUkernel in disguise when options.kernel_handles */
    CUstream stream[2];
    enum dev_stream current;
    CUevent handoff[2];                 /* last point of stream i that another one waited for */
    CUevent mark[MARKS];
    CUevent *stamp;
    int stamps, stamps_room;
    void **pinned;
    int n_pinned;
    bool late, late_read;
    uint64_t late_seen;
    unsigned long launches, dropped;
    struct { tensor *t; enum dev_stream last; unsigned long due; } waiting[LATE];     /* t NULL: free place */
} dev;

static const char *error_name(CUresult r)
{
    const char *name = NULL;
    if (!driver.cuGetErrorName || driver.cuGetErrorName(r, &name) != CUDA_SUCCESS || !name)
        return "unknown error";
    return name;
}

static void check(CUresult r, const char *call, int line)
{
    if (r == CUDA_SUCCESS)
        return;
    fprintf(stderr, "tensor.c:%d: %s: %s (%d)\n", line, call, error_name(r), (int)r);
    exit(1);
}

#define CALL(name, ...) check(driver.name(__VA_ARGS__), #name, __LINE__)

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "tensor.c: %s: %s\n", what, detail ? detail : "no reason given");
    exit(1);
}

/* ---- finding the driver ------------------------------------------------------------------------------ */

static void *find_symbol(void *library, const char *symbol)
{
    void *p = dlsym(library, symbol);
    if (!p)
        fail("dlsym", dlerror());
    return p;
}

static void find_driver(enum dev_route route)
{
    if (route == ROUTE_LINKED) {
#define DRIVER(symbol, name) driver.symbol = symbol;
#include "tests/workloads/driver.def"
#undef DRIVER
        return;
    }
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail("dlopen", dlerror());
    if (route == ROUTE_DLSYM) {
#define DRIVER(symbol, name) *(void **)&driver.symbol = find_symbol(library, #symbol);
#include "tests/workloads/driver.def"
#undef DRIVER
        return;
    }
    __typeof__(cuGetProcAddress_v2) *ask;
    CUdriverProcAddressQueryResult found;
    *(void **)&ask = find_symbol(library, "cuGetProcAddress_v2");
#define DRIVER(symbol, name) \
    if (ask(#name, (void **)&driver.symbol, 12040, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS || \
        found != CU_GET_PROC_ADDRESS_SUCCESS) \
        fail("cuGetProcAddress", #name);
#include "tests/workloads/driver.def"
#undef DRIVER
}

/* ---- kernels ----------------------------------------------------------------------------------------- */

static CUresult load_from(const char *path)
{
    if (dev.options.kernel_handles)
        return driver.cuLibraryLoadFromFile(&dev.library, path, NULL, NULL, 0, NULL, NULL, 0);
    return driver.cuModuleLoad(&dev.module, path);
}

/* The module named by WORKLOAD_KERNELS; else, beside the program, the one for the simulated GPU or the PTX
   text: a driver refuses what is not made for it. */
static void load_kernels(void)
{
    const char *const names[] = {"kernels.so", "kernels.ptx"};
    const char *named = getenv("WORKLOAD_KERNELS");
    char self[PATH_MAX - 16], path[PATH_MAX];
    CUresult r = CUDA_ERROR_FILE_NOT_FOUND;

    if (named) {
        snprintf(path, sizeof path, "%s", named);
        r = load_from(path);
    } else {
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        self[n > 0 ? n : 0] = 0;
        const char *folder = dirname(self);
        for (unsigned i = 0; i < sizeof names / sizeof *names && r != CUDA_SUCCESS; i++) {
            snprintf(path, sizeof path, "%s/%s", folder, names[i]);
            r = load_from(path);
        }
    }
    if (r != CUDA_SUCCESS)
        fprintf(stderr, "tensor.c: no kernels could be loaded, last tried: %s\n", path);
    check(r, dev.options.kernel_handles ? "cuLibraryLoadFromFile" : "cuModuleLoad", __LINE__);
    for (int i = 0; i < KERNELS; i++)
        if (dev.options.kernel_handles) {
            CUkernel kernel;
            CALL(cuLibraryGetKernel, &kernel, dev.library, kernel_names[i]);
            dev.function[i] = (CUfunction)kernel;
        } else {
            CALL(cuModuleGetFunction, &dev.function[i], dev.module, kernel_names[i]);
        }
}

/* Each parameter is aligned to its size's largest power of two, up to 8: true of every type in kernels.def. */
static size_t pack(unsigned char *buffer, const dev_arg *args, int n_args)
{
    size_t end = 0;
    for (int i = 0; i < n_args; i++) {
        size_t align = args[i].bytes & -args[i].bytes;
        align = align > 8 ? 8 : align;
        end = (end + align - 1) / align * align;
        if (end + args[i].bytes > PARAM_BYTES)
            fail("launch", "too many parameter bytes");
        memcpy(buffer + end, args[i].value, args[i].bytes);
        end += args[i].bytes;
    }
    return end;
}

static void free_late(bool all);

void dev_launch(int kernel, int items, const dev_arg *args, int n_args)
{
    unsigned grid = (unsigned)tiles(items, BLOCK);
    CUfunction f = dev.function[kernel];
    CUstream stream = dev.stream[dev.current];
    unsigned char buffer[PARAM_BYTES];
    size_t size;
    void *pointers[16];
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
        CU_LAUNCH_PARAM_END};
    CUresult r;

    if (items <= 0)
        fail("launch of nothing", kernel_names[kernel]);
    for (int i = 0; i < n_args; i++)
        pointers[i] = (void *)(uintptr_t)args[i].value;
    if (dev.options.extra)
        size = pack(buffer, args, n_args);
    void **by_pointer = dev.options.extra ? NULL : pointers, **by_buffer = dev.options.extra ? extra : NULL;
    if (dev.options.kernel_handles) {
        const CUlaunchConfig config = {.gridDimX = grid, .gridDimY = 1, .gridDimZ = 1, .blockDimX = BLOCK,
            .blockDimY = 1, .blockDimZ = 1, .hStream = stream};
        r = driver.cuLaunchKernelEx(&config, f, by_pointer, by_buffer);
    } else {
        r = driver.cuLaunchKernel(f, grid, 1, 1, BLOCK, 1, 1, 0, stream, by_pointer, by_buffer);
    }
    check(r, kernel_names[kernel], __LINE__);
    dev.launches++;
    free_late(false);
}

/* ---- opening and closing ----------------------------------------------------------------------------- */

void dev_open(const dev_options *options)
{
    CUmemoryPool pool;
    cuuint64_t keep = UINT64_MAX;       /* what is freed stays in the driver's pool */

    dev.options = *options;
    find_driver(options->route);
    CALL(cuInit, 0);
    CALL(cuDeviceGet, &dev.device, 0);
    CALL(cuDevicePrimaryCtxRetain, &dev.context, dev.device);
    CALL(cuCtxSetCurrent, dev.context);
    CALL(cuDeviceGetDefaultMemPool, &pool, dev.device);
    CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    load_kernels();
    dev.stream[MAIN] = NULL;
    CALL(cuStreamCreate, &dev.stream[SIDE], CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 2; i++)
        CALL(cuEventCreate, &dev.handoff[i], CU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < MARKS; i++)
        CALL(cuEventCreate, &dev.mark[i], CU_EVENT_DISABLE_TIMING);
}

void dev_close(void)
{
    free_late(true);
    dev_synchronize();
    for (int i = 0; i < dev.n_pinned; i++)
        CALL(cuMemFreeHost, dev.pinned[i]);
    free(dev.pinned);
    for (int i = 0; i < 2; i++)
        CALL(cuEventDestroy_v2, dev.handoff[i]);
    for (int i = 0; i < MARKS; i++)
        CALL(cuEventDestroy_v2, dev.mark[i]);
    for (int i = 0; i < dev.stamps; i++)
        CALL(cuEventDestroy_v2, dev.stamp[i]);
    free(dev.stamp);
    CALL(cuStreamDestroy_v2, dev.stream[SIDE]);
    if (dev.options.kernel_handles)
        CALL(cuLibraryUnload, dev.library);
    else
        CALL(cuModuleUnload, dev.module);
    CALL(cuDevicePrimaryCtxRelease_v2, dev.device);
}

void dev_synchronize(void)
{
    CALL(cuCtxSynchronize, );
}

void dev_use(enum dev_stream stream)
{
    dev.current = stream;
}

static void order(enum dev_stream first, enum dev_stream then)
{
    CALL(cuEventRecord, dev.handoff[first], dev.stream[first]);
    CALL(cuStreamWaitEvent, dev.stream[then], dev.handoff[first], 0);
}

void dev_wait(enum dev_stream other)
{
    if (other != dev.current)
        order(other, dev.current);
}

void dev_mark(int mark)
{
    CALL(cuEventRecord, dev.mark[mark], dev.stream[dev.current]);
}

void dev_mark_wait(int mark)
{
    CALL(cuEventSynchronize, dev.mark[mark]);
}

void dev_profile(bool on)
{
    if (on)
        CALL(cuProfilerStart);
    else
        CALL(cuProfilerStop);
}

int dev_time_stamp(void)
{
    if (dev.stamps == dev.stamps_room) {
        dev.stamps_room = dev.stamps_room ? 2 * dev.stamps_room : 64;
        dev.stamp = realloc(dev.stamp, (size_t)dev.stamps_room * sizeof *dev.stamp);
        if (!dev.stamp)
            fail("realloc", "out of memory");
    }
    CALL(cuEventCreate, &dev.stamp[dev.stamps], CU_EVENT_DEFAULT);
    CALL(cuEventRecord, dev.stamp[dev.stamps], dev.stream[dev.current]);
    return dev.stamps++;
}

float dev_time_between(int from, int to)
{
    float ms;
    CALL(cuEventSynchronize, dev.stamp[to]);
    CALL(cuEventElapsedTime, &ms, dev.stamp[from], dev.stamp[to]);
    return ms;
}

void *dev_pinned(size_t bytes)
{
    void *p;
    dev.pinned = realloc(dev.pinned, ((size_t)dev.n_pinned + 1) * sizeof *dev.pinned);
    if (!dev.pinned)
        fail("realloc", "out of memory");
    CALL(cuMemAllocHost_v2, &p, bytes);
    return dev.pinned[dev.n_pinned++] = p;
}

const char *dev_try_alloc(size_t bytes)
{
    CUdeviceptr p;
    CUresult r = driver.cuMemAllocAsync(&p, bytes, dev.stream[dev.current]);
    if (r == CUDA_SUCCESS)
        CALL(cuMemFreeAsync, p, dev.stream[dev.current]);
    return error_name(r);
}

/* ---- tensors ----------------------------------------------------------------------------------------- */

tensor *tensor_new(size_t bytes)
{
    tensor *t = malloc(sizeof *t);
    CUdeviceptr p;
    if (!t)
        fail("malloc", "out of memory");
    CALL(cuMemAllocAsync, &p, bytes, dev.stream[dev.current]);
    *t = (tensor){.p = (void *)(uintptr_t)p, .bytes = bytes, .refs = 1, .home = dev.current};
    return t;
}

tensor *tensor_ref(tensor *t)
{
    t->refs++;
    return t;
}

/* The tensor's last use is behind us in stream `last`; its home may be another one. */
static void tensor_free(tensor *t, enum dev_stream last)
{
    if (t->home != last)
        order(last, t->home);
    CALL(cuMemFreeAsync, (CUdeviceptr)(uintptr_t)t->p, dev.stream[t->home]);
    free(t);
}

static void free_late(bool all)
{
    for (int i = 0; i < LATE; i++)
        if (dev.waiting[i].t && (all || dev.waiting[i].due <= dev.launches)) {
            if (dev.late_read) {
                dev_synchronize();
                dev.late_seen = tensor_hash(dev.late_seen, dev.waiting[i].t);
            }
            tensor_free(dev.waiting[i].t, dev.waiting[i].last);
            dev.waiting[i].t = NULL;
        }
}

void dev_late_free(bool on)
{
    dev.late = on;
}

void dev_late_read(bool on) { dev.late_read = on; }

uint64_t dev_late_seen(void) { return dev.late_seen; }

void tensor_drop(tensor *t)
{
    if (!t || --t->refs)
        return;
    if (dev.late && ++dev.dropped % LATE_EVERY == 0)
        for (int i = 0; i < LATE; i++)
            if (!dev.waiting[i].t) {
                dev.waiting[i].t = t;
                dev.waiting[i].last = dev.current;
                dev.waiting[i].due = dev.launches + LATE_LAUNCHES;
                return;
            }
    tensor_free(t, dev.current);
}

void tensor_upload(tensor *t, const void *host)
{
    CALL(cuMemcpyHtoD_v2, (CUdeviceptr)(uintptr_t)t->p, host, t->bytes);
}

void tensor_download(void *host, const tensor *t)
{
    CALL(cuMemcpyDtoH_v2, host, (CUdeviceptr)(uintptr_t)t->p, t->bytes);
}

uint64_t tensor_hash(uint64_t h, const tensor *t)
{
    if (!t)
        return h;
    unsigned char *bytes = malloc(t->bytes);
    if (!bytes)
        fail("host memory", "out of memory");
    tensor_download(bytes, t);
    for (size_t i = 0; i < t->bytes; i++)
        h = (h ^ bytes[i]) * 0x100000001B3u;
    free(bytes);
    return h;
}

void tensor_upload_async(tensor *t, const void *pinned)
{
    CALL(cuMemcpyHtoDAsync_v2, (CUdeviceptr)(uintptr_t)t->p, pinned, t->bytes, dev.stream[dev.current]);
}

void tensor_download_async(void *pinned, const tensor *t)
{
    CALL(cuMemcpyDtoHAsync_v2, pinned, (CUdeviceptr)(uintptr_t)t->p, t->bytes, dev.stream[dev.current]);
}

void tensor_clear(tensor *t)
{
    CALL(cuMemsetD8Async, (CUdeviceptr)(uintptr_t)t->p, 0, t->bytes, dev.stream[dev.current]);
}
