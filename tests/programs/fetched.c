/* fetched [ITERATIONS [KEPT]]: a training loop whose batches are fetched ahead. While a step works on one, the next is copied to the device and made
 * ready on a stream of its own; the one before is given back when that has been queued, in the order of both streams. Each batch is alive in
 * three iterations. In iteration KEPT the one before is kept, and read in the next. Saved activations are consumed in reverse. Prints a
 * checksum every iteration. */
#include "tests/programs/program.h"

enum { LAYERS = 12, WORDS = 32768, FEW = 64 };

static CUstream stream, side;
static CUevent there, back;
static CUfunction f_map, f_join, f_sum;

static struct batch {
    CUdeviceptr data, few; /* few: words that go with it, too few for pages of their own */
} fetch(unsigned i)
{
    static uint32_t *host[2]; /* pinned; what is copied from one of them lasts until the second fetch from here */
    uint32_t n = WORDS, k = 5, mask = ~0u;
    CUdeviceptr raw;
    struct batch out;
    for (unsigned h = 0; h < 2 && !host[h]; h++)
        MUST(cuMemHostAlloc((void **)&host[h], 4 * WORDS, 0));
    MUST(cuStreamSynchronize(side));
    for (uint32_t w = 0; w < WORDS; w++)
        host[i % 2][w] = w * 31 + i;
    MUST(cuMemAllocAsync(&raw, 4ull * WORDS, side));
    MUST(cuMemcpyHtoDAsync_v2(raw, host[i % 2], 4ull * WORDS, side));
    MUST(cuMemAllocAsync(&out.few, 4 * FEW, side));
    MUST(cuMemcpyHtoDAsync_v2(out.few, host[i % 2] + FEW, 4 * FEW, side));
    MUST(cuMemAllocAsync(&out.data, 4ull * WORDS, side));
    LAUNCH_ON(f_map, side, &out.data, &raw, &n, &k, &mask);
    MUST(cuMemFreeAsync(raw, side));
    return out;
}

int main(int argc, char **argv)
{
    const unsigned iterations = argc > 1 ? (unsigned)atoi(argv[1]) : 40, kept_at = argc > 2 ? (unsigned)atoi(argv[2]) : UINT32_MAX - 1;
    uint32_t n = WORDS, few = FEW, mask = ~0u, k = 1;
    CUdeviceptr weight[LAYERS], act[LAYERS + 1], sum;
    struct batch next = {0}, batch = {0}, kept = {0};
    primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_join = kernel(m, "join");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&there, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
    for (unsigned l = 0; l < LAYERS; l++) {
        MUST(cuMemAllocAsync(&weight[l], 4ull * WORDS, stream));
        MUST(cuMemsetD32Async(weight[l], 3 + l, WORDS, stream));
    }
    MUST(cuMemAllocAsync(&sum, 8, stream));
    for (unsigned i = 0; i < iterations; i++) {
        const struct batch before = batch;
        CUdeviceptr g;
        batch = i ? next : fetch(0);
        MUST(cuEventRecord(there, side));
        MUST(cuStreamWaitEvent(stream, there, 0));
        next = fetch(i + 1);
        if (i == kept_at)
            kept = before;
        else if (before.data) {
            MUST(cuEventRecord(back, stream));
            MUST(cuStreamWaitEvent(side, back, 0));
            MUST(cuMemFreeAsync(before.data, side));
            MUST(cuMemFreeAsync(before.few, side));
        }
        MUST(cuMemAllocAsync(&act[0], 4ull * WORDS, stream));
        LAUNCH_ON(f_join, stream, &act[0], &batch.data, &weight[0], &n, &n, &n);
        LAUNCH_ON(f_join, stream, &act[0], &act[0], &batch.few, &few, &few, &few);
        for (unsigned l = 0; l < LAYERS; l++) {
            MUST(cuMemAllocAsync(&act[l + 1], 4ull * WORDS, stream));
            LAUNCH_ON(f_join, stream, &act[l + 1], &act[l], l % 5 == 4 ? &batch.data : &weight[l], &n, &n, &n);
        }
        MUST(cuMemAllocAsync(&g, 4ull * WORDS, stream));
        LAUNCH_ON(f_map, stream, &g, &act[LAYERS], &n, &k, &mask);
        for (unsigned l = LAYERS + 1; l-- > 0;) {
            CUdeviceptr made;
            MUST(cuMemAllocAsync(&made, 4ull * WORDS, stream));
            LAUNCH_ON(f_join, stream, &made, &g, &act[l], &n, &n, &n);
            MUST(cuMemFreeAsync(g, stream));
            MUST(cuMemFreeAsync(act[l], stream));
            g = made;
            if (l < LAYERS)
                LAUNCH_ON(f_map, stream, &weight[l], &g, &n, &k, &mask);
        }
        LAUNCH_ON(f_join, stream, &weight[0], &g, &batch.data, &n, &n, &n);
        if (i == kept_at + 1) {
            LAUNCH_ON(f_join, stream, &weight[1], &kept.data, &weight[1], &n, &n, &n);
            MUST(cuMemFreeAsync(kept.data, stream));
        }
        printf("iter %u %016llx\n", i, (unsigned long long)checksum(f_sum, stream, sum, weight[0], n));
        MUST(cuMemFreeAsync(g, stream));
    }
    return 0;
}
