/* reads SEED [ITERATIONS]: a chain of activations, forward and back, some changed in place. What of it is read back to the host, and when,
 * is another thing in each iteration: a few places are read in most of them, as a loss is, others once in a while, as when somebody looks at
 * a tensor. Copies are pageable, pinned, whole, in part, several in a row. Every word that arrives goes into the sum of the iteration. */
#include "tests/programs/program.h"

enum { LAYERS = 14, WORDS = 200000, HABITS = 5, PINNED = 3, CALM = 6 /* iterations before anybody looks */ };

static CUfunction map, join;
static uint64_t fixed, now; /* random numbers: of the program, of the iteration */
static struct {
    int place, layer;
} habit[HABITS];
static CUdeviceptr act[LAYERS];
static uint32_t *pinned[PINNED], *plain;
static uint32_t pinned_words[PINNED], n_pinned;
static uint64_t sum;

static void run_map(CUdeviceptr out, CUdeviceptr in, uint32_t k)
{
    uint32_t n = WORDS, mask = 0xffffffffu;
    void *args[] = {&out, &in, &n, &k, &mask};
    MUST(cuLaunchKernel(map, 8, 1, 1, 128, 1, 1, 0, NULL, args, NULL));
}

static void run_join(CUdeviceptr out, CUdeviceptr a, CUdeviceptr b)
{
    uint32_t n = WORDS;
    void *args[] = {&out, &a, &b, &n, &n, &n};
    MUST(cuLaunchKernel(join, 8, 1, 1, 128, 1, 1, 0, NULL, args, NULL));
}

static void take(const uint32_t *p, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        sum = (sum ^ p[i]) * 0x100000001b3ull;
}

static void arrive(void)
{
    if (n_pinned)
        MUST(cuStreamSynchronize(NULL));
    for (uint32_t i = 0; i < n_pinned; i++)
        take(pinned[i], pinned_words[i]);
    n_pinned = 0;
}

static void read_back(CUdeviceptr p)
{
    const uint32_t words = next_random(&now) % 3 ? 1 + next_random(&now) % 64 : WORDS, from = next_random(&now) % (WORDS - words + 1);
    if (next_random(&now) % 2) {
        MUST(cuMemcpyDtoH_v2(plain, p + 4ull * from, 4ull * words));
        take(plain, words);
        return;
    }
    if (n_pinned == PINNED)
        arrive();
    MUST(cuMemcpyDtoHAsync_v2(pinned[n_pinned], p + 4ull * from, 4ull * words, NULL));
    pinned_words[n_pinned++] = words;
}

/* Between two launches: what is read in most iterations, and what somebody looks at now. */
static void look(int place, int iteration)
{
    for (int i = 0; i < HABITS; i++)
        if (habit[i].place == place && act[habit[i].layer] && (iteration < CALM || next_random(&now) % 4))
            read_back(act[habit[i].layer]);
    for (int n = iteration >= CALM && next_random(&now) % 96 == 0 ? 1 + (int)(next_random(&now) % 2) : 0; n > 0; n--) {
        const uint32_t layer = next_random(&now) % LAYERS;
        if (act[layer])
            read_back(act[layer]);
    }
}

static void iterate(CUdeviceptr weight, int iteration)
{
    int place = 0;
    for (int i = 0; i < LAYERS; i++) {
        MUST(cuMemAllocAsync(&act[i], 4ull * WORDS, NULL));
        run_map(act[i], i ? act[i - 1] : weight, (uint32_t)i + 3);
        look(place++, iteration);
        if (fixed >> i & 1 && i) /* in place */
            run_join(act[i], act[i], act[i - 1]);
        look(place++, iteration);
        if (fixed >> (i + LAYERS) & 1 && i > 1) /* once more, after somebody has used it: what made that cannot be made again from what is there */
            run_join(act[i - 1], act[i - 1], act[i - 2]);
    }
    CUdeviceptr g = act[LAYERS - 1];
    act[LAYERS - 1] = 0;
    for (int i = LAYERS - 1; i-- > 0;) {
        CUdeviceptr next;
        MUST(cuMemAllocAsync(&next, 4ull * WORDS, NULL));
        run_join(next, g, act[i]);
        look(place++, iteration);
        MUST(cuMemFreeAsync(g, NULL));
        MUST(cuMemFreeAsync(act[i], NULL));
        act[i] = 0;
        g = next;
        look(place++, iteration);
    }
    run_join(weight, weight, g);
    read_back(weight);
    MUST(cuMemFreeAsync(g, NULL));
    arrive();
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int iterations = argc > 2 ? atoi(argv[2]) : 30;
    CUdeviceptr weight;
    primary_context();
    CUmodule m = load_kernels();
    map = kernel(m, "map");
    join = kernel(m, "join");
    now = seed * 2654435761u + 7;
    fixed = next_random(&now);
    for (int i = 0; i < HABITS; i++) {
        habit[i].place = (int)(next_random(&now) % (4 * LAYERS - 2));
        habit[i].layer = (int)(next_random(&now) % LAYERS);
        if (i && next_random(&now) % 3 == 0)
            habit[i].place = habit[i - 1].place; /* two in a row */
    }
    plain = malloc(4ull * WORDS);
    if (!plain)
        abort();
    for (int i = 0; i < PINNED; i++)
        MUST(cuMemAllocHost_v2((void **)&pinned[i], 4ull * WORDS));
    MUST(cuMemAllocAsync(&weight, 4ull * WORDS, NULL));
    MUST(cuMemsetD32Async(weight, 3, WORDS, NULL));
    for (int i = 0; i < iterations; i++) {
        now = seed * 6364136223846793005ull + (uint64_t)i * 977;
        next_random(&now);
        iterate(weight, i);
        printf("iter %d %016llx\n", i, (unsigned long long)sum);
        fflush(stdout);
    }
    return 0;
}
