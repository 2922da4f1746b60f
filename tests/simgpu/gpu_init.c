/*
 * Entry of every driver call, cuInit, and the ends of a process: fork and exit.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/gpu_costs.h"

pthread_mutex_t gpu_mutex = PTHREAD_MUTEX_INITIALIZER;
int gpu_driver_version = 13000;
_Atomic int gpu_exiting;

static pthread_once_t config_once = PTHREAD_ONCE_INIT;
static CUresult config_result;
static _Atomic int initialised;
static _Atomic int in_forked_child;

void gpu_lock(void)
{
    pthread_mutex_lock(&gpu_mutex);
}

void gpu_unlock(void)
{
    pthread_mutex_unlock(&gpu_mutex);
}

static void read_config(void)
{
    config_result = gpu_config_read();
    if (!config_result)
        config_result = gpu_costs_read();
}

/* The documented error that fits best when SIMGPU_FAULTS makes a call fail. */
static CUresult injected_error(const char *name)
{
    static const struct {
        const char *prefix;
        CUresult error;
    } rows[] = {
        { "cuInit", CUDA_ERROR_NO_DEVICE },
        { "cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuMemAddressReserve", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuMemMap", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuMemHost", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuMemPoolCreate", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuMemPoolExport", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuMemPoolImport", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuCtxCreate", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuModuleLoad", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuLibraryLoad", CUDA_ERROR_OUT_OF_MEMORY },
        { "cuModuleGet", CUDA_ERROR_NOT_FOUND },
        { "cuLibraryGet", CUDA_ERROR_NOT_FOUND },
        { "cuGetProcAddress", CUDA_ERROR_NOT_FOUND },
        /* "invalid value" is its answer past the last parameter, and no fault */
        { "cuFuncGetParamInfo", CUDA_ERROR_INVALID_HANDLE },
        { "cuKernelGetParamInfo", CUDA_ERROR_INVALID_HANDLE },
        { "cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES },
        { "cuLaunchCooperativeKernel", CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE },
        { "cuStream", CUDA_ERROR_INVALID_HANDLE },
        { "cuEvent", CUDA_ERROR_INVALID_HANDLE },
        { "cuCtx", CUDA_ERROR_INVALID_CONTEXT },
        { "cuArray", CUDA_ERROR_OUT_OF_MEMORY },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strncmp(name, rows[i].prefix, strlen(rows[i].prefix)))
            return rows[i].error;
    return CUDA_ERROR_INVALID_VALUE;
}

static void list_call(gpu_call *call)
{
    int expected = 0;
    if (!atomic_compare_exchange_strong(&call->listed, &expected, 1)) {
        while (call->listed != 2)
            ; /* another thread is a few instructions from done */
        return;
    }
    pthread_once(&config_once, read_config);
    call->fault = gpu_config_fault_row(call->name);
    gpu_costs_row(call);
    gpu_call *first = gpu_calls;
    do
        call->next = first;
    while (!atomic_compare_exchange_weak(&gpu_calls, &first, call));
    call->listed = 2;
}

CUresult gpu_enter(gpu_call *call, enum gpu_need need)
{
    if (call->listed != 2)
        list_call(call);
    if (in_forked_child)
        return need == GPU_NEED_NOTHING ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    call->count++;
    if (gpu_cfg.costs)
        gpu_costs_enter(call);
    if (need == GPU_NEED_NOTHING)
        return CUDA_SUCCESS;
    if (!initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (gpu_exiting)
        return CUDA_ERROR_DEINITIALIZED;
    if (gpu_exec_inside())
        return CUDA_ERROR_NOT_PERMITTED;
    if (gpu_cfg.adversary)
        gpu_adversary_settle();
    if (call->fault >= 0 && gpu_config_fault_hits(call->fault))
        return injected_error(call->name);
    if (need == GPU_NEED_INIT)
        return CUDA_SUCCESS;
    CUcontext ctx = gpu_ctx_current();
    if (!ctx)
        return need == GPU_NEED_OK ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    return gpu_ctx_health(ctx);
}

static void child_after_fork(void)
{
    if (initialised)
        in_forked_child = 1;
}

static CUresult init(unsigned flags)
{
    if (in_forked_child)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (config_result)
        return config_result;
    gpu_lock();
    CUresult r = CUDA_SUCCESS;
    if (!initialised) {
        r = gpu_phys_init();
        if (!r)
            r = gpu_shared_init();
        if (!r) {
            gpu_fault_install();
            gpu_stats_own();
            pthread_atfork(NULL, NULL, child_after_fork);
            initialised = 1;
        }
    }
    gpu_unlock();
    return r;
}

GPU_EXPORT CUresult cuInit(unsigned flags)
{
    GPU_CALL(cuInit, GPU_NEED_NOTHING);
    if (gpu_call_here.fault >= 0 && gpu_config_fault_hits(gpu_call_here.fault))
        return injected_error("cuInit");
    return init(flags);
}

static CUresult driver_version(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = gpu_driver_version;
    return CUDA_SUCCESS;
}
GPU_API(cuDriverGetVersion, (int *version), GPU_NEED_NOTHING, driver_version(version))

__attribute__((destructor)) static void at_exit(void)
{
    if (!initialised || in_forked_child)
        return;
    gpu_exec_stop_for_exit();
    gpu_stats_write();
}
