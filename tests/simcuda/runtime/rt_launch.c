/*
 * Launches, and questions about kernels. nvcc's <<<>>> becomes: __cudaPushCallConfiguration, then a function that asks for its
 * kernel once (__cudaGetKernel), pops the configuration and calls __cudaLaunchKernel with the addresses of its parameters.
 */
#include <string.h>

#include "tests/simcuda/runtime/rt.h"

/* ---- the stack of configurations ------------------------------------------------------------------------------------------ */

/* A push is followed by its pop unless an argument's constructor launches in between: a few levels are plenty. */
enum { DEPTH = 64 };
static __thread struct {
    rt_dim3 grid, block;
    size_t shared_bytes;
    CUstream stream;
} stack[DEPTH];
static __thread unsigned depth;

RT_EXPORT unsigned __cudaPushCallConfiguration(rt_dim3 grid, rt_dim3 block, size_t shared_bytes, CUstream stream)
{
    if (depth == DEPTH)
        return (unsigned)rt_done(RT_INVALID_CONFIGURATION);
    stack[depth].grid = grid;
    stack[depth].block = block;
    stack[depth].shared_bytes = shared_bytes;
    stack[depth++].stream = stream;
    return RT_SUCCESS;
}

RT_EXPORT int __cudaPopCallConfiguration(rt_dim3 *grid, rt_dim3 *block, size_t *shared_bytes, void *stream)
{
    if (!depth)
        return rt_done(RT_MISSING_CONFIGURATION);
    depth--;
    *grid = stack[depth].grid;
    *block = stack[depth].block;
    *shared_bytes = stack[depth].shared_bytes;
    *(CUstream *)stream = stack[depth].stream;
    return RT_SUCCESS;
}

/* ---- launches --------------------------------------------------------------------------------------------------------------- */

static bool shape_is_possible(rt_dim3 grid, rt_dim3 block)
{
    return grid.x && grid.y && grid.z && block.x && block.y && block.z && grid.x <= 0x7fffffff && grid.y <= 65535 &&
           grid.z <= 65535 && block.x <= 1024 && block.y <= 1024 && block.z <= 64 &&
           (uint64_t)block.x * block.y * block.z <= 1024;
}

/* The driver says "invalid value" for a shape no device has, "not found" for a kernel without code. */
static int launch_error(CUresult r, rt_dim3 grid, rt_dim3 block)
{
    if (r == CUDA_ERROR_INVALID_VALUE && !shape_is_possible(grid, block))
        return RT_INVALID_CONFIGURATION;
    if (r == CUDA_ERROR_NOT_FOUND || r == CUDA_ERROR_INVALID_HANDLE)
        return RT_INVALID_DEVICE_FUNCTION;
    return (int)r;
}

static int launch(CUkernel k, rt_dim3 grid, rt_dim3 block, void **args, size_t shared_bytes, CUstream stream)
{
    if (!k)
        return rt_done(RT_INVALID_DEVICE_FUNCTION);
    int e = rt_use();
    if (e)
        return rt_done(e);
    if (shared_bytes > UINT32_MAX)
        return rt_done(RT_INVALID_VALUE);
    /* a kernel is accepted where the driver wants a function: it means that of the current context */
    CUresult r = rt_drv.cuLaunchKernel((CUfunction)k, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                       (unsigned)shared_bytes, stream, args, NULL);
    return rt_done(launch_error(r, grid, block));
}

RT_EXPORT int __cudaGetKernel(CUkernel *out, const void *host)
{
    return rt_done(rt_kernel(host, out));
}

RT_EXPORT int cudaGetKernel(CUkernel *out, const void *host)
{
    return rt_done(out ? rt_kernel(host, out) : RT_INVALID_VALUE);
}

RT_EXPORT int cudaGetFuncBySymbol(CUfunction *out, const void *host)
{
    CUkernel k;
    int e = out ? rt_kernel(host, &k) : RT_INVALID_VALUE;
    return rt_done(e ? e : (int)rt_drv.cuKernelGetFunction(out, k));
}

RT_EXPORT int __cudaLaunchKernel(CUkernel k, rt_dim3 grid, rt_dim3 block, void **args, size_t shared_bytes, CUstream stream)
{
    return launch(k, grid, block, args, shared_bytes, stream);
}

static CUstream per_thread(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

RT_EXPORT int __cudaLaunchKernel_ptsz(CUkernel k, rt_dim3 grid, rt_dim3 block, void **args, size_t shared_bytes,
                                      CUstream stream)
{
    return launch(k, grid, block, args, shared_bytes, per_thread(stream));
}

RT_EXPORT int cudaLaunchKernel(const void *host, rt_dim3 grid, rt_dim3 block, void **args, size_t shared_bytes,
                               CUstream stream)
{
    CUkernel k;
    int e = rt_kernel(host, &k);
    return e ? rt_done(e) : launch(k, grid, block, args, shared_bytes, stream);
}

RT_EXPORT int cudaLaunchKernel_ptsz(const void *host, rt_dim3 grid, rt_dim3 block, void **args, size_t shared_bytes,
                                    CUstream stream)
{
    return cudaLaunchKernel(host, grid, block, args, shared_bytes, per_thread(stream));
}

RT_EXPORT int cudaLaunchCooperativeKernel(const void *host, rt_dim3 grid, rt_dim3 block, void **args, size_t shared_bytes,
                                          CUstream stream)
{
    CUkernel k;
    int e = rt_kernel(host, &k);
    if (!e && shared_bytes > UINT32_MAX)
        e = RT_INVALID_VALUE;
    if (e)
        return rt_done(e);
    CUresult r = rt_drv.cuLaunchCooperativeKernel((CUfunction)k, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                  (unsigned)shared_bytes, stream, args);
    return rt_done(launch_error(r, grid, block));
}

RT_EXPORT int cudaLaunchKernelExC(const struct rt_launch_config *c, const void *host, void **args)
{
    CUkernel k;
    int e = c ? rt_kernel(host, &k) : RT_INVALID_VALUE;
    if (!e && c->dynamic_shared_bytes > UINT32_MAX)
        e = RT_INVALID_VALUE;
    if (e)
        return rt_done(e);
    CUlaunchConfig config = { .gridDimX = c->grid.x, .gridDimY = c->grid.y, .gridDimZ = c->grid.z,
                              .blockDimX = c->block.x, .blockDimY = c->block.y, .blockDimZ = c->block.z,
                              .sharedMemBytes = (unsigned)c->dynamic_shared_bytes, .hStream = c->stream,
                              .attrs = c->attrs, .numAttrs = c->n_attrs };
    return rt_done(launch_error(rt_drv.cuLaunchKernelEx(&config, (CUfunction)k, args, NULL), c->grid, c->block));
}

/* ---- questions about kernels -------------------------------------------------------------------------------------------------- */

RT_EXPORT int cudaFuncGetAttributes(struct rt_func_attributes *a, const void *host)
{
    CUkernel k;
    int e = a ? rt_kernel(host, &k) : RT_INVALID_VALUE;
    if (e)
        return rt_done(e);
    memset(a, 0, sizeof *a);
    int shared = 0, constant = 0, local = 0;
    int *to[] = { [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = &a->max_threads_per_block,
                  [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = &shared,
                  [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = &constant,
                  [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = &local,
                  [CU_FUNC_ATTRIBUTE_NUM_REGS] = &a->num_regs,
                  [CU_FUNC_ATTRIBUTE_PTX_VERSION] = &a->ptx_version,
                  [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = &a->binary_version,
                  [CU_FUNC_ATTRIBUTE_CACHE_MODE_CA] = &a->cache_mode_ca,
                  [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = &a->max_dynamic_shared_bytes,
                  [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = &a->carveout,
                  [CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] = &a->cluster_dim_must_be_set,
                  [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = &a->cluster_width,
                  [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = &a->cluster_height,
                  [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = &a->cluster_depth,
                  [CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = &a->non_portable_cluster,
                  [CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE] = &a->cluster_policy };
    for (unsigned i = 0; !e && i < sizeof to / sizeof to[0]; i++)
        e = (int)rt_drv.cuKernelGetAttribute(to[i], (CUfunction_attribute)i, k, rt_current_device());
    a->shared_bytes = (size_t)shared;
    a->const_bytes = (size_t)constant;
    a->local_bytes = (size_t)local;
    return rt_done(e);
}

RT_EXPORT int cudaKernelSetAttributeForDevice(CUkernel k, int attr, int value, int device)
{
    RT_DO(cuKernelSetAttribute((CUfunction_attribute)attr, value, k, device));
}

RT_EXPORT int cudaFuncSetAttribute(const void *host, int attr, int value)
{
    CUkernel k;
    int e = rt_kernel(host, &k);
    return rt_done(e ? e : (int)rt_drv.cuKernelSetAttribute((CUfunction_attribute)attr, value, k, rt_current_device()));
}

RT_EXPORT int cudaFuncSetCacheConfig(const void *host, int config)
{
    CUkernel k;
    int e = rt_kernel(host, &k);
    return rt_done(e ? e : (int)rt_drv.cuKernelSetCacheConfig(k, (CUfunc_cache)config, rt_current_device()));
}

RT_EXPORT int cudaFuncGetName(const char **name, const void *host)
{
    CUkernel k;
    int e = rt_kernel(host, &k);
    return rt_done(e ? e : (int)rt_drv.cuKernelGetName(name, k));
}

RT_EXPORT int cudaFuncGetParamInfo(const void *host, size_t index, size_t *offset, size_t *bytes)
{
    CUkernel k;
    int e = rt_kernel(host, &k);
    return rt_done(e ? e : (int)rt_drv.cuKernelGetParamInfo(k, index, offset, bytes));
}

RT_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int block_size,
                                                                     size_t shared_bytes, unsigned flags)
{
    CUkernel k;
    CUfunction f;
    int e = rt_kernel(host, &k);
    if (!e)
        e = (int)rt_drv.cuKernelGetFunction(&f, k);
    if (!e)
        e = (int)rt_drv.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, block_size, shared_bytes, flags);
    return rt_done(e);
}

RT_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int block_size,
                                                            size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, block_size, shared_bytes, 0);
}

RT_EXPORT int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *host, int blocks, int block_size)
{
    CUkernel k;
    CUfunction f;
    int e = rt_kernel(host, &k);
    if (!e)
        e = (int)rt_drv.cuKernelGetFunction(&f, k);
    if (!e)
        e = (int)rt_drv.cuOccupancyAvailableDynamicSMemPerBlock(bytes, f, blocks, block_size);
    return rt_done(e);
}
