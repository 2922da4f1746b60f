/* times.h: what the tests of the simulated GPU's clocks share: streams, and the time between two marks in them. */
#ifndef SIMGPU_TIMES_H
#define SIMGPU_TIMES_H

#include "tests/simgpu/testing.h"

/* Nanoseconds between two recorded events that are over. */
static inline long between(CUevent a, CUevent b)
{
    float ms;
    OK(cuEventElapsedTime(&ms, a, b));
    return (long)((double)ms * 1e6 + (ms < 0 ? -0.5 : 0.5));
}

static inline CUevent mark(CUstream s)
{
    CUevent e;
    OK(cuEventCreate(&e, 0));
    OK(cuEventRecord(e, s));
    return e;
}

static inline CUstream stream(void)
{
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

#endif
