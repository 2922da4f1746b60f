/* What order and unusual share: buffers that are all of one size, and what is done with them. */
#ifndef PROGRAMS_EQUAL_BUFFERS_H
#define PROGRAMS_EQUAL_BUFFERS_H

#include "tests/programs/program.h"

enum { WORDS = 16384, BYTES = 4 * WORDS };

static CUfunction f_map;
static uint32_t host[WORDS];

static inline CUstream stream(unsigned flags)
{
    CUstream s;
    MUST(cuStreamCreate(&s, flags));
    return s;
}

static inline CUdeviceptr alloc(CUstream s)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, BYTES, s));
    return p;
}

static inline void fill(CUdeviceptr p, uint32_t v, CUstream s) { MUST(cuMemsetD32Async(p, v, WORDS, s)); }

/* Each word of out is made of the one of in (the kernel "map"). */
static inline void map(CUdeviceptr out, CUdeviceptr in, CUstream s)
{
    uint32_t n = WORDS, k = 1, all = 0xffffffffu;
    MUST(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, s, (void *[]){&out, &in, &n, &k, &all}, NULL));
}

#endif
