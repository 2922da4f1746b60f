/* kernels_sim.c: kernels.ptx, kernel for kernel, as a module of the simulated GPU (FORMATS 3).
 *
 * fact_spin sleeps on the host: the questions "does this call wait for a running kernel" are asked with the host's
 * clock, and on the simulated device a kernel occupies its stream for as long as its function runs.
 */
#include "tests/simgpu/simgpu.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#define ARG(type, i) (*(const type *)params[i])

static void fill_run(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint32_t *dst = (uint32_t *)(uintptr_t)ARG(uint64_t, 0);
    for (uint64_t i = 0; i < ARG(uint64_t, 1); i++)
        dst[i] = ARG(uint32_t, 2);
}

static void fill_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 0;
    *bytes = 4 * ARG(uint64_t, 1);
}

static void add_run(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint32_t *dst = (uint32_t *)(uintptr_t)ARG(uint64_t, 0);
    const uint32_t *src = (const uint32_t *)(uintptr_t)ARG(uint64_t, 1);
    for (uint64_t i = 0; i < ARG(uint64_t, 2); i++)
        dst[i] = src[i] + ARG(uint32_t, 3);
}

static void add_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = ARG(uint64_t, 2);
    *bytes = 8 * ARG(uint64_t, 2);
}

static void count_bad_run(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const uint32_t *src = (const uint32_t *)(uintptr_t)ARG(uint64_t, 0);
    uint32_t *bad = (uint32_t *)(uintptr_t)ARG(uint64_t, 3);
    for (uint64_t i = 0; i < ARG(uint64_t, 1); i++)
        *bad += src[i] != ARG(uint32_t, 2);
}

static void count_bad_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = ARG(uint64_t, 1);
    *bytes = 4 * ARG(uint64_t, 1);
}

static void spin_run(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint64_t ns = ARG(uint64_t, 1);
    nanosleep(&(struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)}, NULL);
    *(uint32_t *)(uintptr_t)ARG(uint64_t, 0) = 1;
}

static void spin_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = ARG(uint64_t, 1) * 1000; /* a nanosecond a thousand operations, whatever SIMGPU_FLOPS makes of it */
    *bytes = 4;
}

struct layout_block {
    uint64_t word[5];
};

static void layout_run(const simgpu_launch *l, void *const *params)
{
    (void)l;
    *(uint64_t *)(uintptr_t)ARG(uint64_t, 1) = ARG(struct layout_block, 2).word[1];
}

static void layout_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    (void)params;
    *flops = 1;
    *bytes = 8;
}

static const size_t fill_params[] = {8, 8, 4};
static const size_t add_params[] = {8, 8, 8, 4};
static const size_t count_bad_params[] = {8, 8, 4, 8};
static const size_t spin_params[] = {8, 8};
static const size_t layout_params[] = {4, 8, 40, 2};

static const simgpu_kernel kernels[] = {
    {"fact_fill", 3, fill_params, fill_run, fill_cost},
    {"fact_add", 4, add_params, add_run, add_cost},
    {"fact_count_bad", 4, count_bad_params, count_bad_run, count_bad_cost},
    {"fact_spin", 2, spin_params, spin_run, spin_cost},
    {"fact_layout", 4, layout_params, layout_run, layout_cost},
};

__attribute__((visibility("default"))) const simgpu_module_info simgpu_module = {
    .abi = 1, .n_kernels = sizeof kernels / sizeof kernels[0], .kernels = kernels};
