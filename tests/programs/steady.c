/* steady CASE [ITERATIONS]: a training loop in which one launch is the same as an iteration ago but for what CASE says, in every second
 * iteration only: whoever takes it for the same is wrong. Saved activations are consumed in reverse. Prints a checksum every iteration.
 *
 *   scalar    a number of four bytes
 *   stream    the stream, ordered by events
 */
#include "tests/programs/program.h"

enum { LAYERS = 12, WORDS = 131072 };

static const char *what;
static CUfunction f_map, f_join, f_sum;
static CUstream stream, other;
static CUevent there, back;
static CUdeviceptr weight[LAYERS], act[LAYERS + 1], sum;

static bool is(const char *c) { return !strcmp(what, c); }

static void launch(CUfunction f, CUstream s, void **args) { MUST(cuLaunchKernel(f, 64, 1, 1, 128, 1, 1, 0, s, args, NULL)); }
#define LAUNCH(f, ...) launch(f, stream, (void *[]){__VA_ARGS__})

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static void drop(CUdeviceptr p) { MUST(cuMemFreeAsync(p, stream)); }

static void forward(int l, int iter)
{
    uint32_t n = WORDS, k = 3 + (uint32_t)l, mask = ~0u;
    void *args[] = {&act[l + 1], &act[l], &n, &k, &mask};
    unsigned turn = (unsigned)iter / 2;
    act[l + 1] = make(WORDS);
    if (is("scalar"))
        k += turn;
    if (is("stream") && l % 3 == 1 && turn % 2) {
        MUST(cuEventRecord(there, stream));
        MUST(cuStreamWaitEvent(other, there, 0));
        launch(f_map, other, args);
        MUST(cuEventRecord(back, other));
        MUST(cuStreamWaitEvent(stream, back, 0));
    } else
        launch(f_map, stream, args);
}

static uint64_t train(int iter)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    uint64_t h;
    act[0] = make(WORDS);
    LAUNCH(f_map, &act[0], &weight[0], &n, &k, &mask);
    for (int l = 0; l < LAYERS; l++)
        forward(l, iter);
    CUdeviceptr g = make(WORDS);
    LAUNCH(f_map, &g, &act[LAYERS], &n, &k, &mask);
    for (int l = LAYERS; l >= 0; l--) {
        CUdeviceptr next = make(WORDS);
        LAUNCH(f_join, &next, &g, &act[l], &n, &n, &n);
        drop(g);
        drop(act[l]);
        g = next;
        if (l < LAYERS)
            LAUNCH(f_map, &weight[l], &g, &n, &k, &mask);
    }
    LAUNCH(f_sum, &sum, &g, &n);
    MUST(cuMemcpyDtoHAsync_v2(&h, sum, 8, stream));
    MUST(cuStreamSynchronize(stream));
    drop(g);
    return h;
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "scalar";
    int iterations = argc > 2 ? atoi(argv[2]) : 40;
    primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_join = kernel(m, "join");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&there, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
    for (int l = 0; l < LAYERS; l++) {
        weight[l] = make(WORDS);
        MUST(cuMemsetD32Async(weight[l], 3 + (unsigned)l, WORDS, stream));
    }
    sum = make(64);
    MUST(cuCtxSynchronize());
    for (int iter = 0; iter < iterations; iter++)
        printf("iter %d sum %016llx\n", iter, (unsigned long long)train(iter));
    return 0;
}
