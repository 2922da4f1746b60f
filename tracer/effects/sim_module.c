/* The device hash as a module of the simulated GPU. */
#include "tracer/effects/hash.h"
#include "tests/simgpu/simgpu.h"

static void hash_run(const simgpu_launch *l, void *const *params)
{
    (void)l; /* the sums do not depend on the grid */
    const hash_word *w = *(const hash_word *const *)params[0];
    hash_word bytes = *(const hash_word *)params[1], *out = *(hash_word *const *)params[2], n = bytes / 8, a = 0, b = 0;
    for (hash_word i = 0; i < n; i++) {
        a += hash_first(w[i], i);
        b += hash_second(w[i], i);
    }
    if (bytes % 8) {
        hash_word v = hash_tail((const unsigned char *)(w + n), bytes % 8);
        a += hash_first(v, n);
        b += hash_second(v, n);
    }
    out[0] += a;
    out[1] += b;
}

static void hash_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 0;
    *bytes = *(const hash_word *)params[1];
}

static const size_t hash_params[] = {8, 8, 8};
static const simgpu_kernel kernels[] = {{"remat_hash", 3, hash_params, hash_run, hash_cost}};
__attribute__((visibility("default"))) const simgpu_module_info simgpu_module = {1, 1, kernels};
