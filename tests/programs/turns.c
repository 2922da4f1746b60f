/* turns SHAPES [ITERATIONS [late]]: a training loop whose batches take so many sizes in turn, by launches that look the same: kernels, grids and
 * weights are those of every batch, the tensors are smaller. Saved activations are consumed in reverse. Prints a checksum every iteration.
 * late: as a loop over a loader has it, a batch lives until the next one has been made; and each layer makes a small tensor beside its large one. */
#include "tests/programs/program.h"

enum { LAYERS = 12, WORDS = 32768, FEW = 1250 };

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const unsigned shapes = (unsigned)atoi(argv[1]), iterations = argc > 2 ? (unsigned)atoi(argv[2]) : 40;
    const bool late = argc > 3;
    CUstream stream;
    CUdeviceptr weight[LAYERS], act[LAYERS + 1], few[LAYERS], sum, batch = 0;
    primary_context();
    CUmodule m = load_kernels();
    CUfunction f_map = kernel(m, "map"), f_join = kernel(m, "join"), f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned l = 0; l < LAYERS; l++) {
        MUST(cuMemAllocAsync(&weight[l], 4ull * WORDS, stream));
        MUST(cuMemsetD32Async(weight[l], 3 + l, WORDS, stream));
    }
    MUST(cuMemAllocAsync(&sum, 8, stream));
    for (unsigned i = 0; i < iterations; i++) {
        uint32_t n = WORDS / (1 + i % shapes), mask = ~0u, k = 1;
        const uint64_t bytes = 4ull * n;
        CUdeviceptr g, made;
        if (late) {
            MUST(cuMemAllocAsync(&made, bytes, stream));
            MUST(cuMemsetD32Async(made, i, n, stream));
            if (batch)
                MUST(cuMemFreeAsync(batch, stream));
            batch = made;
        }
        MUST(cuMemAllocAsync(&act[0], bytes, stream));
        LAUNCH_ON(f_map, stream, &act[0], &weight[0], &n, &k, &mask);
        for (unsigned l = 0; l < LAYERS; l++) {
            MUST(cuMemAllocAsync(&act[l + 1], bytes, stream));
            LAUNCH_ON(f_join, stream, &act[l + 1], &act[l], &weight[l], &n, &n, &n);
            if (late) {
                uint32_t n_few = FEW;
                MUST(cuMemAllocAsync(&few[l], 4 * FEW, stream));
                LAUNCH_ON(f_map, stream, &few[l], &act[l], &n_few, &k, &mask);
            }
        }
        if (late)
            LAUNCH_ON(f_join, stream, &act[LAYERS], &act[LAYERS], &batch, &n, &n, &n);
        MUST(cuMemAllocAsync(&g, bytes, stream));
        LAUNCH_ON(f_map, stream, &g, &act[LAYERS], &n, &k, &mask);
        for (unsigned l = LAYERS + 1; l-- > 0;) {
            CUdeviceptr next;
            MUST(cuMemAllocAsync(&next, bytes, stream));
            LAUNCH_ON(f_join, stream, &next, &g, &act[l], &n, &n, &n);
            MUST(cuMemFreeAsync(g, stream));
            MUST(cuMemFreeAsync(act[l], stream));
            g = next;
            if (late && l < LAYERS) {
                uint32_t n_few = FEW;
                LAUNCH_ON(f_join, stream, &g, &g, &few[l], &n, &n, &n_few);
                MUST(cuMemFreeAsync(few[l], stream));
            }
            if (l < LAYERS)
                LAUNCH_ON(f_map, stream, &weight[l], &g, &n, &k, &mask);
        }
        printf("iter %u %016llx\n", i, (unsigned long long)checksum(f_sum, stream, sum, g, n));
        MUST(cuMemFreeAsync(g, stream));
    }
    return 0;
}
