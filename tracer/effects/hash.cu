// The hash kernels add the two sums of hash.h over the bytes of row blockIdx.y to its out[0] and out[1]; the find kernel adds to out[0] how many whole
// words of the row may be addresses (find_may_be). Any grid in x, a row each in y; 256 threads a block. `all_bytes` only tells a simulated device what the
// launch costs.
//
// A block adds up what its threads found before it goes to memory: additions to one address are done one after the other, and one
// a thread takes a hundred times as long as reading the bytes does.
#include "hash.h"

enum { WARP = 32, WARPS = 256 / WARP };
static const unsigned ALL_LANES = ~0u;

// The sum over a warp, in its first lane.
static __device__ hash_word sum_of_warp(hash_word v)
{
    for (int lanes = WARP / 2; lanes; lanes /= 2)
        v += __shfl_down_sync(ALL_LANES, v, lanes);
    return v;
}

// Every thread of the block comes here. (Not static: the name of what it shares would have the path of this file in it.)
inline __device__ void add_of_block(hash_word *out, hash_word a, hash_word b)
{
    __shared__ hash_word first[WARPS], second[WARPS];
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    a = sum_of_warp(a);
    b = sum_of_warp(b);
    if (!lane) {
        first[warp] = a;
        second[warp] = b;
    }
    __syncthreads();
    if (warp)
        return;
    a = sum_of_warp(lane < WARPS ? first[lane] : 0);
    b = sum_of_warp(lane < WARPS ? second[lane] : 0);
    if (!lane) {
        atomicAdd(&out[0], a);
        atomicAdd(&out[1], b);
    }
}

static __device__ void hash_one(const void *ptr, hash_word bytes, hash_word *out)
{
    const hash_word *w = (const hash_word *)ptr;
    hash_word n = bytes / 8, a = 0, b = 0;
    hash_word step = (hash_word)gridDim.x * blockDim.x, first = (hash_word)blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x && first - threadIdx.x >= n) // of a shorter row than others of this launch: nothing is left for the whole block
        return;
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
    add_of_block(out, a, b);
}

static __device__ void hash_row_of(const struct hash_row *r) { hash_one((const void *)r->ptr, r->bytes, (hash_word *)r->out); }

extern "C" __global__ void remat_hash_few(const __grid_constant__ struct hash_few few, hash_word all_bytes) { hash_row_of(&few.row[blockIdx.y]); }

extern "C" __global__ void remat_hash_list(const struct hash_row *rows, hash_word all_bytes) { hash_row_of(&rows[blockIdx.y]); }

extern "C" __global__ void remat_find_list(const struct hash_row *rows, hash_word all_bytes, const __grid_constant__ struct find_spans spans)
{
    const struct hash_row *r = &rows[blockIdx.y];
    const hash_word *w = (const hash_word *)r->ptr, n = r->bytes / 8;
    const hash_word step = (hash_word)gridDim.x * blockDim.x;
    hash_word found = 0;
    for (hash_word i = (hash_word)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        found += find_may_be(&spans, w[i]);
    add_of_block((hash_word *)r->out, found, 0);
}
