/*
 * The rest of the runtime's calls: known by name, so that a program that links them starts, and refused by name when one is
 * made. To add a call, write it and take its row out of rt_absent.def (a second definition does not link).
 */
#include <stdio.h>

#include "tests/simcuda/runtime/rt.h"

static int refuse(const char *name)
{
    fprintf(stderr, "simcuda: %s is not part of the simulated CUDA runtime\n", name);
    return rt_done(RT_NOT_SUPPORTED);
}

#define RT_ABSENT(name)      \
    int name(void);          \
    RT_EXPORT int name(void) \
    {                        \
        return refuse(#name); \
    }
#include "tests/simcuda/runtime/rt_absent.def"
