/* What programs that train do with tensors: words of 32 bits in stream-ordered memory. */
#ifndef PROGRAMS_TENSORS_H
#define PROGRAMS_TENSORS_H

#include "tests/programs/program.h"

struct tensor {
    CUdeviceptr p; /* 0: there is none */
    uint32_t n;    /* words */
};

#define LAUNCH LAUNCH_ON

static inline struct tensor tensor_make(uint32_t words, CUmemoryPool pool, CUstream s)
{
    struct tensor t = {.n = words};
    if (pool)
        MUST(cuMemAllocFromPoolAsync(&t.p, 4ull * words, pool, s));
    else
        MUST(cuMemAllocAsync(&t.p, 4ull * words, s));
    return t;
}

static inline void drop(struct tensor *t, CUstream s)
{
    if (t->p)
        MUST(cuMemFreeAsync(t->p, s));
    t->p = 0;
}

/* `to` goes on after all that `from` has been given. */
static inline void after(CUstream to, CUstream from)
{
    CUevent e;
    if (to == from)
        return;
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(e, from));
    MUST(cuStreamWaitEvent(to, e, 0));
    MUST(cuEventDestroy_v2(e));
}

#endif
