/*
 * The CUDA source as a module of the simulated GPU: kernels.cu compiled as C and called thread by thread. Slow; it
 * exists to compare, on machines without a GPU, what the CUDA source computes with what kernels.c does.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/simgpu.h"

#define __CUDACC__ 1
#define __global__ static
#define __device__
#define __forceinline__ inline __attribute__((always_inline))

static _Thread_local simgpu_dim3 blockIdx, blockDim, threadIdx;     /* kernels of two streams may run at once */

#include "tests/workloads/kernels.cu"

#define LOAD(t, n) t n = *(t const *)*arg++;
#define SIZE(t, n) sizeof(t)
#define UNUSED(t, n) (void)n;

#define KERNEL(name, items, flops_, bytes_, ...) \
    static void name##_run(const simgpu_launch *l, void *const *arg) \
    { \
        EACH(LOAD, ARGS_NOTHING, __VA_ARGS__) \
        blockDim = l->block; \
        for (blockIdx.x = 0; blockIdx.x < l->grid.x; blockIdx.x++) \
            for (threadIdx.x = 0; threadIdx.x < l->block.x; threadIdx.x++) \
                name(EACH(ARGS_NAME, ARGS_COMMA, __VA_ARGS__)); \
    } \
    static void name##_cost(const simgpu_launch *l, void *const *arg, uint64_t *flops, uint64_t *bytes) \
    { \
        EACH(LOAD, ARGS_NOTHING, __VA_ARGS__) \
        EACH(UNUSED, ARGS_NOTHING, __VA_ARGS__) \
        (void)l; \
        *flops = (uint64_t)(flops_); \
        *bytes = (uint64_t)(bytes_); \
    } \
    static const size_t name##_sizes[] = {EACH(SIZE, ARGS_COMMA, __VA_ARGS__)};
#include "tests/workloads/kernels.def"
#undef KERNEL

#define KERNEL(name, items, flops, bytes, ...) \
    {#name, sizeof name##_sizes / sizeof *name##_sizes, name##_sizes, name##_run, name##_cost},
static const simgpu_kernel kernels[] = {
#include "tests/workloads/kernels.def"
};
#undef KERNEL

__attribute__((visibility("default"))) const simgpu_module_info simgpu_module = {
    1, sizeof kernels / sizeof *kernels, kernels
};
