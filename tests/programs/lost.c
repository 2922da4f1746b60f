/* An optimizer's list, entries of which are changed by nothing while they are learnt: counters that are high, where low ones alone are raised.
 * The launch before it, whose list has the same entries, raises them all. Prints a checksum of every iteration.
 *
 *   lost [ITERATIONS]
 */
#include "tests/programs/list_args.h"
#include "tests/programs/program.h"

enum { LAYERS = 6, WORDS = 131072, COUNTER_WORDS = 64, HIGH = 5000, LOW = 100 };

static CUstream stream;

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static CUdeviceptr layer(CUfunction raise, CUdeviceptr in, int iter)
{
    struct bundle_args all = {.out = make(WORDS), .in = {in}, .words = WORDS, .n = BUNDLE_MAX, .junk = UINT32_MAX}, low;
    for (int k = 1; k < BUNDLE_MAX; k++) {
        all.in[k] = make(COUNTER_WORDS);
        MUST(cuMemsetD32Async(all.in[k], HIGH, COUNTER_WORDS, stream));
    }
    low = all;
    low.out = make(WORDS);
    low.junk = LOW + (uint32_t)iter;
    LAUNCH_ON(raise, stream, &all);
    LAUNCH_ON(raise, stream, &low);
    for (int k = 1; k < BUNDLE_MAX; k++)
        MUST(cuMemFreeAsync(all.in[k], stream));
    MUST(cuMemFreeAsync(all.out, stream));
    return low.out;
}

int main(int argc, char **argv)
{
    const int iterations = argc > 1 ? atoi(argv[1]) : 16;
    primary_context();
    CUmodule m = load_kernels();
    CUfunction raise = kernel(m, "raise"), f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr sum = make(64);
    for (int iter = 0; iter < iterations; iter++) {
        CUdeviceptr act[LAYERS + 1] = {make(WORDS)};
        MUST(cuMemsetD32Async(act[0], (unsigned)iter, WORDS, stream));
        for (int i = 0; i < LAYERS; i++)
            act[i + 1] = layer(raise, act[i], iter);
        printf("iter %d %016llx\n", iter, (unsigned long long)checksum(f_sum, stream, sum, act[LAYERS], WORDS));
        for (int i = 0; i <= LAYERS; i++)
            MUST(cuMemFreeAsync(act[i], stream));
    }
    return 0;
}
