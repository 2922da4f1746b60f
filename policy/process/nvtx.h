/* nvtx.h: ranges for NVIDIA's profilers (`--nvtx`): the mode remat is in, each iteration, each replay, each swap.
 *
 * Made through the library of NVTX that is installed (libnvtx3interop.so.1 of CUDA 13, libnvToolsExt.so.1 before it; PyTorch's wheels bring
 * one), which hands them to the tool that started the program (NVTX_INJECTION64_PATH) and to nobody where there is none. It is loaded
 * when the program initialises the driver; without it that is said once.
 *
 * Threads: under the engine's mutex; ranges of modes and iterations belong to the process, the others to the calling thread. Cost:
 * one test where ranges are off. Errors: none; a range that cannot be made is left out.
 */
#ifndef REMAT_POLICY_NVTX_H
#define REMAT_POLICY_NVTX_H

#include <stdbool.h>
#include <stdint.h>

extern bool nvtx_wanted; /* set once, before any other call */
/* Without a lock of ours (tracer/loader.h). Until it has come to an end no ranges are made. */
void nvtx_load(void);

void nvtx_mode_is(const char *name);
void nvtx_iteration_is(uint64_t n, const char *mode);
/* "remat VERB NAME (N MiB)"; `bytes` 0: without the size. Each push has its pop, in the same thread. */
void nvtx_push_now(const char *verb, const char *name, uint64_t bytes);
void nvtx_pop_now(void);

static inline void nvtx_push(const char *verb, const char *name, uint64_t bytes)
{
    if (nvtx_wanted)
        nvtx_push_now(verb, name, bytes);
}
static inline void nvtx_pop(void)
{
    if (nvtx_wanted)
        nvtx_pop_now();
}
static inline void nvtx_mode(const char *name)
{
    if (nvtx_wanted)
        nvtx_mode_is(name);
}
static inline void nvtx_iteration(uint64_t n, const char *mode)
{
    if (nvtx_wanted)
        nvtx_iteration_is(n, mode);
}

#endif
