/*
 * Questions about functions and kernels, and their settings. What machine code says of itself (threads, registers, shared
 * memory) is told as it says it; a function of our own modules has round numbers.
 */
#include "tests/simgpu/gpu.h"
#include "tests/simgpu/gpu_code.h"
#include "tests/simgpu/ptx/ptx.h"

CUfunction gpu_module_function(CUfunction f)
{
    switch (gpu_handle_kind(f)) {
    case GPU_FUNCTION: return f;
    case GPU_KERNEL: return ((CUkernel)f)->function;
    default: return NULL;
    }
}

/* 48 KiB with the function's own, unless the program has asked for more. */
int gpu_function_dynamic_shared(const struct CUfunc_st *f)
{
    int fixed = f->code ? (int)f->code->meta.static_shared_bytes : 0, plain = (48 << 10) - fixed;
    return f->max_dynamic_shared > plain ? f->max_dynamic_shared : plain > 0 ? plain : 0;
}

static CUfunction function_locked(void *h)
{
    gpu_lock();
    CUfunction f = gpu_module_function(h);
    gpu_unlock();
    return f;
}

static CUresult param_info(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!offset || index >= f->k->n_params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = f->offsets[index];
    if (size)
        *size = f->k->param_bytes[index];
    return CUDA_SUCCESS;
}

static CUresult get_attribute(int *out, CUfunction_attribute a, CUfunction f)
{
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    switch (a) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = f->code ? (int)f->code->meta.max_threads : 1024; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = f->code ? (int)f->code->meta.registers : 32; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *out = f->code ? (int)f->code->meta.arch : 80; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = f->code ? (int)f->code->meta.static_shared_bytes : 0; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = f->max_dynamic_shared ? f->max_dynamic_shared : gpu_function_dynamic_shared(f);
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *out = f->carveout; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *out = f->code && f->code->ptx ? (int)f->code->ptx->local_bytes : 0; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *out = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction f, CUfunction_attribute a, int value)
{
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 &&
        value <= (163 << 10) - (f->code ? (int)f->code->meta.static_shared_bytes : 0))
        f->max_dynamic_shared = value;
    else if (a == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= -1 && value <= 100)
        f->carveout = value;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult function_module(CUmodule *out, CUfunction f)
{
    if (f && out)
        *out = f->module;
    return !f ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult function_name(const char **out, CUfunction f)
{
    if (f && out)
        *out = f->k->name;
    return !f ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult function_loaded(CUfunctionLoadingState *out, CUfunction f)
{
    if (f && out)
        *out = CU_FUNCTION_LOADING_STATE_LOADED;
    return !f ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#define KNOWN(f) (function_locked(f) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)
#define ON_DEVICE(dev, expression) (!gpu_device_known(dev) ? CUDA_ERROR_INVALID_DEVICE : (expression))

GPU_API(cuFuncGetParamInfo, (CUfunction f, size_t i, size_t *offset, size_t *size), GPU_NEED_CTX,
        param_info(function_locked(f), i, offset, size))
GPU_API(cuKernelGetParamInfo, (CUkernel k, size_t i, size_t *offset, size_t *size), GPU_NEED_INIT,
        param_info(function_locked(k), i, offset, size))
GPU_API(cuFuncGetAttribute, (int *value, CUfunction_attribute a, CUfunction f), GPU_NEED_CTX,
        get_attribute(value, a, function_locked(f)))
GPU_API(cuKernelGetAttribute, (int *value, CUfunction_attribute a, CUkernel k, CUdevice dev), GPU_NEED_INIT,
        ON_DEVICE(dev, get_attribute(value, a, function_locked(k))))
GPU_API(cuFuncSetAttribute, (CUfunction f, CUfunction_attribute a, int value), GPU_NEED_CTX,
        set_attribute(function_locked(f), a, value))
GPU_API(cuKernelSetAttribute, (CUfunction_attribute a, int value, CUkernel k, CUdevice dev), GPU_NEED_INIT,
        ON_DEVICE(dev, set_attribute(function_locked(k), a, value)))
GPU_API(cuFuncSetCacheConfig, (CUfunction f, CUfunc_cache config), GPU_NEED_CTX, ((void)config, KNOWN(f)))
GPU_API(cuKernelSetCacheConfig, (CUkernel k, CUfunc_cache config, CUdevice dev), GPU_NEED_INIT,
        ((void)config, ON_DEVICE(dev, KNOWN(k))))
GPU_API(cuFuncSetSharedMemConfig, (CUfunction f, CUsharedconfig config), GPU_NEED_CTX, ((void)config, KNOWN(f)))
GPU_API(cuFuncGetModule, (CUmodule *m, CUfunction f), GPU_NEED_CTX, function_module(m, function_locked(f)))
GPU_API(cuFuncGetName, (const char **name, CUfunction f), GPU_NEED_CTX, function_name(name, function_locked(f)))
GPU_API(cuFuncIsLoaded, (CUfunctionLoadingState *state, CUfunction f), GPU_NEED_CTX,
        function_loaded(state, function_locked(f)))
GPU_API(cuFuncLoad, (CUfunction f), GPU_NEED_CTX, KNOWN(f))
