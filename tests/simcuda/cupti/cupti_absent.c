/*
 * libcupti.so.13 in front of NVIDIA's, which asks the driver for tables that only the real one has, and calls itself until the stack is full where it gets
 * none. Nothing is profiled on the simulated device: each call says that the library is not initialised, so PyTorch's profiler says so too, and records the
 * processor.
 *
 * Threads: any; no state.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CUPTI_SUCCESS = 0, CUPTI_ERROR_NOT_INITIALIZED = 15 };

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuptiGetResultString(int result, const char **text);
EXPORT int cuptiGetResultString(int result, const char **text)
{
    if (!text)
        return CUPTI_ERROR_NOT_INITIALIZED;
    *text = result ? "the simulated device is not profiled" : "no error";
    return CUPTI_SUCCESS;
}

/* Asked first. */
EXPORT int cuptiGetVersion(uint32_t *version);
EXPORT int cuptiGetVersion(uint32_t *version)
{
    static _Atomic int told;
    (void)version;
    if (!told++)
        fputs("simgpu: no CUPTI: profilers record the processor alone\n", stderr);
    return CUPTI_ERROR_NOT_INITIALIZED;
}

#define ABSENT(name)                                                                                                   \
    EXPORT int name(void);                                                                                             \
    EXPORT int name(void) { return CUPTI_ERROR_NOT_INITIALIZED; }
#include "tests/simcuda/cupti/cupti_absent.def"
