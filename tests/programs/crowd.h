/* What awkward and unusual share: a buffer's content told as one line, and other memory that pushes out what was used before it. */
#ifndef PROGRAMS_CROWD_H
#define PROGRAMS_CROWD_H

#include "tests/programs/equal_buffers.h"

enum { CROWD = 12 };

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

#endif
