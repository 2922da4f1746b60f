/* A buffer's content told as one line, other memory that pushes out what was used before it, a second device, and a word that a stream
 * waits for and the host writes. */
#ifndef PROGRAMS_CROWD_H
#define PROGRAMS_CROWD_H

#include "tests/programs/equal_buffers.h"

#include <unistd.h>

enum { CROWD = 12 };

static inline const char *name(CUresult r)
{
    const char *n = "?";
    cuGetErrorName(r, &n);
    return n;
}

static inline uint64_t hash(void)
{
    uint64_t h = 1469598103934665603ull;
    for (int i = 0; i < WORDS; i++)
        h = (h ^ host[i]) * 1099511628211ull;
    return h;
}

static inline void look(const char *what, CUdeviceptr p, CUstream s)
{
    MUST(cuMemcpyDtoHAsync_v2(host, p, BYTES, s));
    MUST(cuStreamSynchronize(s));
    printf("%s %016llx\n", what, (unsigned long long)hash());
}

/* Enough other memory is used for the rest to have been used least recently; it stays. */
static inline void crowd(CUdeviceptr *more, CUstream s)
{
    for (int i = 0; i < CROWD; i++) {
        if (!more[i])
            more[i] = alloc(s);
        fill(more[i], 1000u + (uint32_t)i, s);
    }
    MUST(cuStreamSynchronize(s));
}

static inline CUcontext second_device(void)
{
    int n = 0;
    CUcontext other;
    MUST(cuDeviceGetCount(&n));
    if (n < 2)
        exit(77);
    MUST(cuDevicePrimaryCtxRetain(&other, 1));
    return other;
}

static uint32_t *flag;

static inline CUdeviceptr new_flag(void)
{
    CUdeviceptr at;
    MUST(cuMemHostAlloc((void **)&flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = 0;
    MUST(cuMemHostGetDevicePointer_v2(&at, flag, 0));
    return at;
}

static inline void wait_for_flag(CUstream s) { MUST(cuStreamWaitValue32(s, new_flag(), 1, CU_STREAM_WAIT_VALUE_EQ)); }
static inline void set_flag(void) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }

/* A function of the host's that waits for it too. */
static inline void until_flag(void *data)
{
    (void)data;
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(1000);
}

static inline void wait_in_function(CUstream s)
{
    new_flag();
    MUST(cuLaunchHostFunc(s, until_flag, NULL));
}

#endif
