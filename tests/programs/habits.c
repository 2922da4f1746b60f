/* habits HABIT: 40 iterations of a training loop, as people write it. Prints a checksum every iteration.
 *
 *   late      what an iteration has saved is given back when its last op has been queued
 *   next      it is given back when the next one begins
 *   shared    every layer works with the same weight, and two losses are read
 *   kept      a short iteration, of which a scalar is kept each time; its batches lie on the device */
#include "tests/programs/program.h"

enum { LAYERS = 10, WORDS = 32768, ITERATIONS = 40, FEW = 64 };

static CUstream stream;
static CUfunction f_map, f_join, f_sum;
static CUdeviceptr weight[LAYERS], saved[LAYERS + 1], data, sum;

static CUdeviceptr alloc(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static void map(CUdeviceptr out, CUdeviceptr in, uint32_t k)
{
    uint32_t n = WORDS, mask = ~0u;
    LAUNCH_ON(f_map, stream, &out, &in, &n, &k, &mask);
}

static void join(CUdeviceptr out, CUdeviceptr a, CUdeviceptr b)
{
    uint32_t n = WORDS;
    LAUNCH_ON(f_join, stream, &out, &a, &b, &n, &n, &n);
}

static void loss(int iter, CUdeviceptr p)
{
    printf("iter %d %016llx\n", iter, (unsigned long long)checksum(f_sum, stream, sum, p, WORDS));
}

static void give_back(void)
{
    for (int l = 0; l <= LAYERS && saved[l]; l++) {
        MUST(cuMemFreeAsync(saved[l], stream));
        saved[l] = 0;
    }
}

/* The gradient of the first layer's input; what the layers have saved goes along the way where `given_back`. */
static CUdeviceptr backward(bool one_weight, bool given_back)
{
    CUdeviceptr g = alloc(WORDS);
    map(g, saved[LAYERS], 1);
    for (int l = LAYERS; l-- > 0;) {
        CUdeviceptr w = weight[one_weight ? 0 : l], made = alloc(WORDS);
        join(made, g, saved[l]);
        map(w, made, 3);
        MUST(cuMemFreeAsync(g, stream));
        if (given_back) {
            MUST(cuMemFreeAsync(saved[l + 1], stream));
            saved[l + 1] = 0;
        }
        g = made;
    }
    return g;
}

int main(int argc, char **argv)
{
    const char *habit = argc == 2 ? argv[1] : "";
    const bool late = !strcmp(habit, "late"), next = !strcmp(habit, "next"), shared = !strcmp(habit, "shared"), kept = !strcmp(habit, "kept");
    if (!(late | next | shared | kept)) {
        fprintf(stderr, "usage: habits late|next|shared|kept\n");
        return 2;
    }
    primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_join = kernel(m, "join");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (uint32_t l = 0; l < (shared ? 1 : LAYERS); l++)
        MUST(cuMemsetD32Async(weight[l] = alloc(WORDS), 3 + l, WORDS, stream));
    MUST(cuMemsetD32Async(data = alloc(WORDS), 5, WORDS, stream));
    MUST(cuMemAllocAsync(&sum, 8, stream));
    for (int i = 0; i < ITERATIONS; i++) {
        if (next)
            give_back();
        saved[0] = alloc(WORDS);
        if (shared) /* nothing else that outlives the iteration is used only once in it */
            MUST(cuMemsetD32Async(saved[0], (uint32_t)i, WORDS, stream));
        else
            map(saved[0], data, (uint32_t)i);
        for (int l = 0; l < LAYERS; l++)
            join(saved[l + 1] = alloc(WORDS), saved[l], weight[shared ? 0 : l]);
        if (shared)
            loss(i, saved[LAYERS]);
        if (kept) /* it stays */
            MUST(cuMemsetD32Async(alloc(FEW), (uint32_t)i, FEW, stream));
        CUdeviceptr g = backward(shared, shared || kept);
        loss(i, g);
        MUST(cuMemFreeAsync(g, stream));
        if (!next)
            give_back();
    }
    return 0;
}
