/*
 * What the kernels and the programs that launch them share: parameter structs and the few formulas by which a
 * launch is sized. Plain C that is also CUDA C; KERNEL_SHARED is how a function is declared on the side at hand.
 */
#ifndef WORKLOADS_KERNEL_TYPES_H
#define WORKLOADS_KERNEL_TYPES_H

#ifdef __CUDACC__
#define KERNEL_SHARED static __device__ __forceinline__
#else
#define KERNEL_SHARED static inline __attribute__((always_inline))
#endif

typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;

enum {
    TILE = 16,          /* columns that one work item of a matrix kernel computes */
    TILE_ROWS = 4,      /* its rows */
    CHUNK = 64,         /* elements of one work item in chunked kernels */
    ADAM_TENSORS = 24   /* tensors that one Adam launch can update */
};

/* By-value parameter of one Adam launch. Only the first n entries count; what stands behind them is left over
   from earlier launches and must not be read. */
typedef struct {
    int n;
    float *param[ADAM_TENSORS], *grad[ADAM_TENSORS], *m[ADAM_TENSORS], *v[ADAM_TENSORS];
    int size[ADAM_TENSORS];     /* elements */
} adam_pack;

KERNEL_SHARED int tiles(int n, int tile)
{
    return (n + tile - 1) / tile;
}

KERNEL_SHARED u64 adam_elements(const adam_pack *a)
{
    u64 n = 0;
    for (int t = 0; t < a->n; t++)
        n += (u64)a->size[t];
    return n;
}

KERNEL_SHARED int adam_chunks(const adam_pack *a)
{
    int n = 0;
    for (int t = 0; t < a->n; t++)
        n += tiles(a->size[t], CHUNK);
    return n;
}

#endif
