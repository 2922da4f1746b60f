/* devices [ITERATIONS]: one process trains on two devices at once: a layered loop with its own weights on each, a launch on one and a launch
 * on the other in turn. Saved activations are consumed in reverse. Prints a checksum of each device every iteration: the same on both, as
 * they do the same work; then what each device says is free and in all, in MiB. */
#include "tests/programs/program.h"

enum { DEVICES = 2, LAYERS = 12, WORDS = 131072 };

static struct one {
    CUcontext ctx;
    CUfunction map, join, sum;
    CUstream stream;
    CUdeviceptr weight[LAYERS], act[LAYERS + 1], grad, out;
} dev[DEVICES];

#define LAUNCH(d, f, ...) LAUNCH_ON(f, (d)->stream, __VA_ARGS__)

static struct one *on(int i)
{
    MUST(cuCtxSetCurrent(dev[i].ctx));
    return &dev[i];
}

static CUdeviceptr make(const struct one *d, uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, d->stream));
    return p;
}

static void set_up(int i)
{
    struct one *d = &dev[i];
    MUST(cuDevicePrimaryCtxRetain(&d->ctx, i));
    on(i);
    CUmodule m = load_kernels();
    d->map = kernel(m, "map");
    d->join = kernel(m, "join");
    d->sum = kernel(m, "sum");
    MUST(cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING));
    for (int l = 0; l < LAYERS; l++) {
        d->weight[l] = make(d, WORDS);
        MUST(cuMemsetD32Async(d->weight[l], 3 + (unsigned)l, WORDS, d->stream));
    }
    d->out = make(d, 64);
    MUST(cuCtxSynchronize());
}

static void forward(struct one *d, int l)
{
    uint32_t n = WORDS, k = 3 + (uint32_t)l, mask = ~0u;
    d->act[l + 1] = make(d, WORDS);
    LAUNCH(d, d->map, &d->act[l + 1], &d->act[l], &n, &k, &mask);
}

static void backward(struct one *d, int l)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    CUdeviceptr next = make(d, WORDS);
    LAUNCH(d, d->join, &next, &d->grad, &d->act[l], &n, &n, &n);
    MUST(cuMemFreeAsync(d->grad, d->stream));
    MUST(cuMemFreeAsync(d->act[l], d->stream));
    d->grad = next;
    if (l < LAYERS)
        LAUNCH(d, d->map, &d->weight[l], &d->grad, &n, &k, &mask);
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 24, n = 0;
    uint32_t words = WORDS, k = 1, mask = ~0u;
    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&n));
    if (n < DEVICES)
        return 77;
    for (int i = 0; i < DEVICES; i++)
        set_up(i);
    for (int it = 0; it < iterations; it++) {
        for (int i = 0; i < DEVICES; i++) {
            struct one *d = on(i);
            d->act[0] = make(d, WORDS);
            LAUNCH(d, d->map, &d->act[0], &d->weight[0], &words, &k, &mask);
        }
        for (int l = 0; l < LAYERS; l++)
            for (int i = 0; i < DEVICES; i++)
                forward(on(i), l);
        for (int i = 0; i < DEVICES; i++) {
            struct one *d = on(i);
            d->grad = make(d, WORDS);
            LAUNCH(d, d->map, &d->grad, &d->act[LAYERS], &words, &k, &mask);
        }
        for (int l = LAYERS; l >= 0; l--)
            for (int i = 0; i < DEVICES; i++)
                backward(on(i), l);
        for (int i = 0; i < DEVICES; i++) {
            struct one *d = on(i);
            uint64_t h;
            LAUNCH(d, d->sum, &d->out, &d->grad, &words);
            MUST(cuMemcpyDtoHAsync_v2(&h, d->out, 8, d->stream));
            MUST(cuStreamSynchronize(d->stream));
            MUST(cuMemFreeAsync(d->grad, d->stream));
            printf("iter %d device %d sum %016llx\n", it, i, (unsigned long long)h);
        }
    }
    for (int i = 0; i < DEVICES; i++) {
        size_t avail, total;
        on(i);
        MUST(cuMemGetInfo_v2(&avail, &total));
        fprintf(stderr, "device %d total %zu\n", i, total >> 20);
    }
    return 0;
}
