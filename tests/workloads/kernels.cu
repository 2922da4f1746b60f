/*
 * The kernels for a real GPU: one thread an item. kernels.ptx is made from this file by kernels_ptx.sh.
 */
#include "tests/workloads/kernel_args.h"
#include "tests/workloads/kernel_items.h"

#ifdef __cplusplus
#define ENTRY extern "C" __global__
#else
#define ENTRY __global__            /* kernels_cuda.c: as C, on the host */
#endif

#define KERNEL(name, items, flops, bytes, ...) \
    ENTRY void name(EACH(ARGS_DECLARE, ARGS_COMMA, __VA_ARGS__)) \
    { \
        int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); \
        if (i < (items)) \
            name##_item(i, EACH(ARGS_NAME, ARGS_COMMA, __VA_ARGS__)); \
    }
#include "tests/workloads/kernels.def"
#undef KERNEL
