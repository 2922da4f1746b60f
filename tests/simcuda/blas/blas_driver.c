#include "tests/simcuda/blas/blas_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/cuda_abi.h"

#define CALLS(X)                                                                                                       \
    X(cuInit, "cuInit") X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain") X(cuCtxGetCurrent, "cuCtxGetCurrent")  \
    X(cuCtxSetCurrent, "cuCtxSetCurrent") X(cuLibraryLoadFromFile, "cuLibraryLoadFromFile")                            \
    X(cuLibraryGetKernel, "cuLibraryGetKernel") X(cuLaunchKernel, "cuLaunchKernel") X(cuMemAlloc_v2, "cuMemAlloc")     \
    X(cuMemFree_v2, "cuMemFree") X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync") X(cuStreamSynchronize, "cuStreamSynchronize")

#define DRIVER_VERSION 12080
#define MAX_KERNELS 64

static struct {
    pthread_once_t once;
    cublasStatus_t state;
    CUlibrary library;
    pthread_mutex_t lock;   /* of the kernels found so far */
    struct { const char *name; CUkernel kernel; } kernel[MAX_KERNELS];
    int n_kernels;
    const char *refused[MAX_KERNELS];
    int n_refused;
#define X(f, name) __typeof__(f) *f;
    CALLS(X)
#undef X
} drv = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .state = CUBLAS_STATUS_NOT_INITIALIZED };

static void say(const char *what, const char *detail)
{
    fprintf(stderr, "simulated cuBLAS: %s%s\n", what, detail ? detail : "");
}

static int module_path(char *out, size_t bytes)
{
    Dl_info me;
    const char *slash;

    if (!dladdr((void *)module_path, &me) || !(slash = strrchr(me.dli_fname, '/')))
        return -ENOENT;
    int n = snprintf(out, bytes, "%.*s/blas_kernels.so", (int)(slash - me.dli_fname), me.dli_fname);
    return n < 0 || (size_t)n >= bytes ? -ENAMETOOLONG : 0;
}

static void bring_up(void)
{
    __typeof__(cuGetProcAddress_v2) *get;
    CUdriverProcAddressQueryResult answer;
    char path[4096];
    void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!so || !(get = (__typeof__(get))dlsym(so, "cuGetProcAddress_v2"))) {
        say("no driver: ", dlerror());
        return;
    }
#define X(f, name)                                                                                                     \
    if (get(name, (void **)&drv.f, DRIVER_VERSION, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &answer) || !drv.f) {            \
        say("the driver lacks ", name);                                                                                \
        return;                                                                                                        \
    }
    CALLS(X)
#undef X
    if (drv.cuInit(0)) {
        say("cuInit failed", NULL);
        return;
    }
    if (module_path(path, sizeof path) || drv.cuLibraryLoadFromFile(&drv.library, path, NULL, NULL, 0, NULL, NULL, 0)) {
        say("its kernels cannot be loaded: ", path);
        return;
    }
    drv.state = CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_driver_ready(void)
{
    CUcontext now = NULL;

    pthread_once(&drv.once, bring_up);
    if (drv.state)
        return drv.state;
    if (drv.cuCtxGetCurrent(&now))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!now && (drv.cuDevicePrimaryCtxRetain(&now, 0) || drv.cuCtxSetCurrent(now)))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return CUBLAS_STATUS_SUCCESS;
}

static CUkernel kernel_of(const char *name)
{
    CUkernel k = NULL;

    pthread_mutex_lock(&drv.lock);
    for (int i = 0; i < drv.n_kernels && !k; i++)
        if (!strcmp(drv.kernel[i].name, name))
            k = drv.kernel[i].kernel;
    if (!k && !drv.cuLibraryGetKernel(&k, drv.library, name) && drv.n_kernels < MAX_KERNELS) {
        drv.kernel[drv.n_kernels].name = name;
        drv.kernel[drv.n_kernels++].kernel = k;
    }
    pthread_mutex_unlock(&drv.lock);
    return k;
}

cublasStatus_t blas_launch(const char *kernel, struct blas_grid grid, unsigned block, const void *params, cudaStream_t stream)
{
    cublasStatus_t rc = blas_driver_ready();
    CUkernel k;
    void *list[] = { (void *)params };

    if (rc)
        return rc;
    if (!(k = kernel_of(kernel))) {
        say("its module has no kernel ", kernel);
        return CUBLAS_STATUS_INTERNAL_ERROR;
    }
    return drv.cuLaunchKernel((CUfunction)k, grid.x, grid.y, grid.z, block, 1, 1, 0, (CUstream)stream, list, NULL)
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_scalar_alloc(uint64_t *at)
{
    CUdeviceptr p;
    cublasStatus_t rc = blas_driver_ready();

    if (rc)
        return rc;
    if (drv.cuMemAlloc_v2(&p, 16))
        return CUBLAS_STATUS_ALLOC_FAILED;
    *at = p;
    return CUBLAS_STATUS_SUCCESS;
}

void blas_scalar_free(uint64_t at)
{
    if (at)
        drv.cuMemFree_v2((CUdeviceptr)at);
}

cublasStatus_t blas_scalar_read(uint64_t at, void *to, size_t bytes, cudaStream_t stream)
{
    if (drv.cuMemcpyDtoHAsync_v2(to, (CUdeviceptr)at, bytes, (CUstream)stream) || drv.cuStreamSynchronize((CUstream)stream))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_refuse(const char *what)
{
    int known = 0;

    pthread_mutex_lock(&drv.lock);
    for (int i = 0; i < drv.n_refused; i++)
        known |= !strcmp(drv.refused[i], what);
    if (!known && drv.n_refused < MAX_KERNELS)
        drv.refused[drv.n_refused++] = what;
    pthread_mutex_unlock(&drv.lock);
    if (!known)
        fprintf(stderr, "simulated cuBLAS: %s is not among what it can do (tests/simcuda/blas)\n", what);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}
