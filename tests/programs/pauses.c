/* pauses ITERATIONS PACE [CHANGE AT]: trains, an iteration every PACE ms, and says on stderr for how many ms the longest call held it up: times that
 * the machine gave to others are not counted. What it computes goes to stdout.
 *
 * From iteration AT on: `other` layers, of twice as many words; `anew` weights, at other addresses.
 */
#include "tests/programs/program.h"

#include <time.h>

enum { LAYERS = 12, WORDS = 16384 /* a page of the tests */ };

static CUfunction map, join, f_sum;
static CUdeviceptr sum, weight[LAYERS];
static double longest_ms;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* How long this thread has been ready and another one ran instead; 0: the kernel does not say. */
static double others_ms(void)
{
    unsigned long long ran, waited = 0;
    FILE *f = fopen("/proc/thread-self/schedstat", "re");
    if (f && fscanf(f, "%llu %llu", &ran, &waited) != 2)
        waited = 0;
    if (f)
        fclose(f);
    return (double)waited / 1e6;
}

/* The call, timed. */
#define TIMED(call)                                                                                                    \
    do {                                                                                                               \
        const double others = others_ms(), began = now_ms();                                                           \
        MUST(call);                                                                                                    \
        const double took = now_ms() - began - (others_ms() - others);                                                 \
        longest_ms = took > longest_ms ? took : longest_ms;                                                            \
    } while (0)

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    TIMED(cuMemAllocAsync(&p, 4ull * words, NULL));
    return p;
}

static void run_map(CUdeviceptr out, CUdeviceptr in, uint32_t n)
{
    uint32_t k = 5, mask = 0xffffffffu;
    void *args[] = {&out, &in, &n, &k, &mask};
    TIMED(cuLaunchKernel(map, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
}

static void run_join(CUdeviceptr out, CUdeviceptr a, CUdeviceptr b, uint32_t n)
{
    uint32_t few = WORDS;
    void *args[] = {&out, &a, &b, &n, &n, &few};
    TIMED(cuLaunchKernel(join, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
}

static uint64_t iteration(uint32_t n)
{
    CUdeviceptr act[LAYERS + 1], g;
    act[0] = make(n);
    run_map(act[0], weight[0], WORDS);
    if (n > WORDS)
        MUST(cuMemsetD32Async(act[0] + 4ull * WORDS, 9, n - WORDS, NULL));
    for (int i = 0; i < LAYERS; i++) {
        act[i + 1] = make(n);
        run_join(act[i + 1], act[i], weight[i], n);
    }
    g = act[LAYERS];
    for (int i = LAYERS; i-- > 0;) {
        CUdeviceptr next = make(n);
        run_join(next, g, act[i], n);
        MUST(cuMemFreeAsync(g, NULL));
        MUST(cuMemFreeAsync(act[i], NULL));
        run_map(weight[i], next, WORDS);
        g = next;
    }
    const uint64_t h = checksum(f_sum, NULL, sum, g, n);
    MUST(cuMemFreeAsync(g, NULL));
    return h;
}

int main(int argc, char **argv)
{
    const int iterations = argc > 1 ? atoi(argv[1]) : 20, pace_ms = argc > 2 ? atoi(argv[2]) : 0, at = argc > 4 ? atoi(argv[4]) : iterations;
    const char *change = argc > 3 ? argv[3] : "";
    primary_context();
    CUmodule m = load_kernels();
    map = kernel(m, "map"), join = kernel(m, "join"), f_sum = kernel(m, "sum");
    sum = make(2);
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WORDS);
        MUST(cuMemsetD32Async(weight[i], 3 + (unsigned)i, WORDS, NULL));
    }
    for (int i = 0; i < iterations; i++) {
        for (int k = 0; i == at && !strcmp(change, "anew") && k < LAYERS; k++) {
            const CUdeviceptr old = weight[k];
            weight[k] = make(WORDS);
            MUST(cuMemcpyDtoDAsync_v2(weight[k], old, 4ull * WORDS, NULL));
            MUST(cuMemFreeAsync(old, NULL));
        }
        printf("iteration %d %016llx\n", i, (unsigned long long)iteration(i >= at && !strcmp(change, "other") ? 2 * WORDS : WORDS));
        usleep((unsigned)pace_ms * 1000);
    }
    fprintf(stderr, "longest call: %.0f ms\n", longest_ms);
    return 0;
}
