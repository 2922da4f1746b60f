/* covers CASE [ITERATIONS]: each layer's tensor first holds what the host has sent, which is read; then a kernel stores the layer's activation over
 * it. The backward pass consumes the activations in reverse. Who takes the store for a change of what the host has sent can make no activation again,
 * since that copy is not repeated. Prints a checksum every iteration.
 *
 *   whole     the store is over all of it
 *   byte      over all but its last byte; the host has sent words that are all the same
 *   larger    words of it that are large stay; the host has sent none until iteration 12
 *   seen      the store is over all of it; but for one layer's last byte
 *   argument  over all of it; from iteration 12 on one layer's leaves a byte, as an argument says
 *   said      over all of it; from iteration 12 on its second half stays, as a word in memory says
 */
#include "tests/programs/program.h"

enum { LAYERS = 12, WORDS = 32768, CHANGE_AT = 12, WHOLE = 0, ALL_BUT_A_BYTE, BUT_LARGE, AS_SAID };

static const char *what;
static CUfunction f_map, f_join, f_cover, f_sum;
static CUdeviceptr weight[LAYERS], act[LAYERS + 1], sum, word;
static CUstream stream;
static uint32_t sent[LAYERS][WORDS];

#define LAUNCH LAUNCH_ON

static bool is(const char *c) { return !strcmp(what, c); }

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static void drop(CUdeviceptr p) { MUST(cuMemFreeAsync(p, stream)); }

static void layer(int i, int iter)
{
    uint32_t n = WORDS, mode = is("byte") ? ALL_BUT_A_BYTE : is("larger") ? BUT_LARGE : is("said") ? AS_SAID : WHOLE;
    const bool large = is("larger") && iter >= CHANGE_AT;
    if ((is("argument") && iter >= CHANGE_AT && i == 5) || (is("seen") && i == 7))
        mode = ALL_BUT_A_BYTE;
    sent[i][WORDS - 1] = large ? 0xf1234567u : 0x1234567u;
    act[i + 1] = make(WORDS);
    MUST(cuMemcpyHtoDAsync_v2(act[i + 1], sent[i], sizeof sent[i], stream));
    LAUNCH(f_join, stream, &weight[i], &weight[i], &act[i + 1], &n, &n, &n);
    LAUNCH(f_cover, stream, &act[i + 1], &act[i], &word, &n, &mode);
    MUST(cuStreamSynchronize(stream));
}

static uint64_t look(CUdeviceptr p)
{
    uint64_t h;
    uint32_t n = WORDS;
    LAUNCH(f_sum, stream, &sum, &p, &n);
    MUST(cuMemcpyDtoHAsync_v2(&h, sum, 8, stream));
    MUST(cuStreamSynchronize(stream));
    return h;
}

static uint64_t train(int iter)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    const uint32_t says = is("said") && iter >= CHANGE_AT;
    MUST(cuMemcpyHtoDAsync_v2(word, &says, sizeof says, stream));
    act[0] = make(WORDS);
    LAUNCH(f_map, stream, &act[0], &weight[0], &n, &k, &mask);
    for (int i = 0; i < LAYERS; i++)
        layer(i, iter);
    CUdeviceptr g = make(WORDS);
    LAUNCH(f_map, stream, &g, &act[LAYERS], &n, &k, &mask);
    for (int i = LAYERS; i >= 0; i--) {
        CUdeviceptr next = make(WORDS);
        LAUNCH(f_join, stream, &next, &g, &act[i], &n, &n, &n);
        drop(g);
        drop(act[i]);
        g = next;
        if (i < LAYERS)
            LAUNCH(f_map, stream, &weight[i], &g, &n, &k, &mask);
    }
    const uint64_t h = look(g);
    drop(g);
    return h;
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "whole";
    const int iterations = argc > 2 ? atoi(argv[2]) : 20;
    uint64_t rng = 5;
    primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_join = kernel(m, "join");
    f_cover = kernel(m, "cover");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WORDS);
        MUST(cuMemsetD32Async(weight[i], 3 + (unsigned)i, WORDS, stream));
        for (int j = 0; j < WORDS; j++)
            sent[i][j] = is("byte") ? 0x1234567u : (uint32_t)next_random(&rng) >> 4;
    }
    sum = make(64);
    word = make(64);
    MUST(cuCtxSynchronize());
    for (int iter = 0; iter < iterations; iter++)
        printf("iter %d loss %016llx\n", iter, (unsigned long long)train(iter));
    uint64_t h = 0;
    for (int i = 0; i < LAYERS; i++)
        h = h * 31 + look(weight[i]);
    printf("checksum %016llx\n", (unsigned long long)h);
    return 0;
}
