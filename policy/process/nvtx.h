/* nvtx.h: ranges for NVIDIA's profilers (`--nvtx`): the mode remat is in, each iteration, each replay, each swap.
 *
 * The installed NVTX library makes these ranges (libnvtx3interop.so.1 of CUDA 13, libnvToolsExt.so.1 in earlier versions; PyTorch's wheels bring one). The library hands
 * each range to the tool that started the program (NVTX_INJECTION64_PATH), and drops the range without a tool. The library is loaded when the program
 * initialises the driver; one warning says so if none is installed.
 *
 * Threads: under the engine's mutex; ranges of modes and iterations belong to the process, ranges of replays and swaps to the calling thread.
 * Cost: one test where ranges are off. Errors: none; a range that cannot be made is left out.
 */
#ifndef REMAT_POLICY_NVTX_H
#define REMAT_POLICY_NVTX_H

#include <stdbool.h>
#include <stdint.h>

extern bool nvtx_wanted; /* set once, before any other call */
/* Loads the library; call without a lock of remat's (tracer/loader.h). No ranges are made before it has returned. */
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
