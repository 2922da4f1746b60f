// Both kernels add the two sums of hash.h over the bytes of row blockIdx.y to its out[0] and out[1]. Any grid in x, a row each in y;
// 256 threads a block. `all_bytes` only tells a simulated device what the launch costs.
#include "hash.h"

static __device__ void hash_one(const void *ptr, hash_word bytes, hash_word *out)
{
    const hash_word *w = (const hash_word *)ptr;
    hash_word n = bytes / 8, a = 0, b = 0;
    hash_word step = (hash_word)gridDim.x * blockDim.x, first = (hash_word)blockIdx.x * blockDim.x + threadIdx.x;
    for (hash_word i = first; i < n; i += step) {
        hash_word v = w[i];
        a += hash_first(v, i);
        b += hash_second(v, i);
    }
    if (first == 0 && bytes % 8) {
        hash_word v = hash_tail((const unsigned char *)(w + n), bytes % 8);
        a += hash_first(v, n);
        b += hash_second(v, n);
    }
    atomicAdd(&out[0], a);
    atomicAdd(&out[1], b);
}

static __device__ void hash_row_of(const struct hash_row *r) { hash_one((const void *)r->ptr, r->bytes, (hash_word *)r->out); }

extern "C" __global__ void remat_hash_few(const __grid_constant__ struct hash_few few, hash_word all_bytes) { hash_row_of(&few.row[blockIdx.y]); }

extern "C" __global__ void remat_hash_list(const struct hash_row *rows, hash_word all_bytes) { hash_row_of(&rows[blockIdx.y]); }
