// remat_hash(ptr, bytes, out): adds the two sums of hash.h over `bytes` at `ptr` to out[0] and out[1].
// ptr is 8-byte aligned. Any grid of one dimension; 256 threads a block.
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

extern "C" __global__ void remat_hash(const void *ptr, hash_word bytes, hash_word *out) { hash_one(ptr, bytes, out); }

// The same for row blockIdx.y of a table. `all_bytes` only tells a simulated device what it costs.
extern "C" __global__ void remat_hash_list(const struct hash_row *rows, hash_word all_bytes)
{
    struct hash_row r = rows[blockIdx.y];
    hash_one((const void *)r.ptr, r.bytes, (hash_word *)r.out);
}
