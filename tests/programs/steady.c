/* steady CASE [ITERATIONS]: a training loop in which one launch is the same as an iteration ago but for what CASE says: whoever takes it
 * for the same is wrong. Saved activations are consumed in reverse. Prints a checksum every iteration.
 *
 *   scalar    a number of four bytes, in every second iteration
 *   stream    the stream, ordered by events, in every second iteration
 *   ahead     nothing differs; a weight is changed on another stream that comes after the forward pass only, beside the backward op that
 *             was launched before: if something was rebuilt for that op, from this weight, the change must wait for it
 *   anew      a buffer that every layer reads, and that each iteration fills first: in one iteration it is given back before that,
 *             and another one of its size is made, which may have the same address
 *   resized   as `anew`; the other one is smaller by 64 words, and takes as many pages
 *   stray     two kernels get an address that nobody holds and do not follow it, for long; then the program holds memory again which may
 *             lie there, and a word in memory tells one to fill it, the other to read it
 *   null      in one iteration a launch is first tried with no address of an argument, which the driver refuses
 *   cluster   from one iteration on a launch asks for clusters (of one block: the simulated device has no others)
 *   fewer     launches fill half of a new buffer in every fifth iteration, where they fill all of it otherwise; no more is read then
 * In `anew`, `resized`, `stray`, `null` and `cluster` the iteration of the change is the 24th; in `anew`, `resized` and `stray` it is said on
 * stderr whether the address came back.
 */
#include "tests/programs/program.h"

enum { LAYERS = 12, WORDS = 131072, ODD_WORDS = WORDS + 16384 /* a size of its own */, CHANGE_AT = 24 };

static const char *what;
static CUfunction f_map, f_join, f_sum, f_glance;
static CUstream stream, other;
static CUevent there, back;
static CUdeviceptr weight[LAYERS], act[LAYERS + 1], sum;
static CUdeviceptr odd;        /* anew, resized: the buffer that is made anew; stray: where the stray address points */
static CUdeviceptr pad, says;  /* stray: held instead of it; the word */
static uint32_t said;
static CUdeviceptr part[LAYERS]; /* fewer */

static bool is(const char *c) { return !strcmp(what, c); }
static bool renews(void) { return is("anew") || is("resized"); }

static void launch(CUfunction f, CUstream s, void **args) { MUST(cuLaunchKernel(f, 64, 1, 1, 128, 1, 1, 0, s, args, NULL)); }
#define LAUNCH(f, ...) launch(f, stream, (void *[]){__VA_ARGS__})

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static void drop(CUdeviceptr p) { MUST(cuMemFreeAsync(p, stream)); }

static void launch_clusters(bool asks, void **args)
{
    CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1, 1, 1}};
    const CUlaunchConfig c = {.gridDimX = 64, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 128, .blockDimY = 1, .blockDimZ = 1, .hStream = stream,
                              .attrs = &a, .numAttrs = asks};
    MUST(cuLaunchKernelEx(&c, f_map, args, NULL));
}

/* Fails; nothing has run. */
static void launch_without(int l)
{
    uint32_t n = WORDS, k = 3 + (uint32_t)l, mask = ~0u;
    void *args[] = {&act[l + 1], NULL, &n, &k, &mask};
    printf("no argument: %d\n", (int)cuLaunchKernel(f_map, 64, 1, 1, 128, 1, 1, 0, stream, args, NULL));
}

static bool has_part(int l) { return is("fewer") && l > 2 && l < 6; }
static uint32_t filled(int iter) { return iter % 5 == 4 ? WORDS / 2 : WORDS; }

static void forward(int l, int iter)
{
    uint32_t n = WORDS, k = 3 + (uint32_t)l, mask = ~0u, yes = 1, no = 0;
    void *args[] = {&act[l + 1], &act[l], &n, &k, &mask};
    unsigned turn = (unsigned)iter / 2;
    act[l + 1] = make(WORDS);
    if (has_part(l)) {
        uint32_t some = filled(iter);
        part[l] = make(WORDS);
        LAUNCH(f_map, &part[l], &act[l], &some, &k, &mask);
    }
    if (is("null") && iter == CHANGE_AT && l == 5)
        launch_without(l);
    if (is("scalar"))
        k += turn;
    if (is("ahead"))
        LAUNCH(f_join, &act[l + 1], &act[l], &weight[l], &n, &n, &n);
    else if (renews())
        LAUNCH(f_join, &act[l + 1], &act[l], &odd, &n, &n, &n);
    else if (is("stray") && (l == 5 || l == 8))
        LAUNCH(f_glance, &act[l + 1], &act[l], &odd, &says, &n, l == 5 ? &yes : &no);
    else if (is("cluster") && l == 5)
        launch_clusters(iter >= CHANGE_AT, args);
    else if (is("stream") && l % 3 == 1 && turn % 2) {
        MUST(cuEventRecord(there, stream));
        MUST(cuStreamWaitEvent(other, there, 0));
        launch(f_map, other, args);
        MUST(cuEventRecord(back, other));
        MUST(cuStreamWaitEvent(stream, back, 0));
    } else
        launch(f_map, stream, args);
}

/* Another one in the place of `a`, which is given back. */
static void change(CUdeviceptr *a)
{
    CUdeviceptr before = *a;
    *a = make(is("resized") ? ODD_WORDS - 64 : ODD_WORDS);
    fprintf(stderr, "the %s address\n", *a == before ? "same" : "another");
}

static void begin(int iter)
{
    uint32_t n = WORDS, k = 7, mask = ~0u;
    if (renews()) {
        if (iter == CHANGE_AT) {
            drop(odd);
            change(&odd);
        }
        LAUNCH(f_map, &odd, &weight[0], &n, &k, &mask);
    }
    if (is("stray")) {
        if (iter == CHANGE_AT) {
            drop(pad);
            change(&odd);
        }
        said = iter >= CHANGE_AT;
        MUST(cuMemcpyHtoDAsync_v2(says, &said, 4, stream));
    }
}

static uint64_t train(int iter)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    uint64_t h;
    begin(iter);
    act[0] = make(WORDS);
    LAUNCH(f_map, &act[0], &weight[0], &n, &k, &mask);
    for (int l = 0; l < LAYERS; l++)
        forward(l, iter);
    if (is("ahead")) {
        MUST(cuEventRecord(there, stream));
        MUST(cuStreamWaitEvent(other, there, 0));
    }
    CUdeviceptr g = make(WORDS);
    LAUNCH(f_map, &g, &act[LAYERS], &n, &k, &mask);
    for (int l = LAYERS; l >= 0; l--) {
        CUdeviceptr next = make(WORDS);
        LAUNCH(f_join, &next, &g, &act[l], &n, &n, &n);
        drop(g);
        drop(act[l]);
        g = next;
        if (has_part(l)) {
            uint32_t some = filled(iter);
            LAUNCH(f_join, &g, &g, &part[l], &n, &n, &some);
            drop(part[l]);
        }
        if (is("ahead") && l > 0)
            launch(f_map, other, (void *[]){&weight[l - 1], &weight[l - 1], &n, &k, &mask});
        else if (l < LAYERS && !is("ahead"))
            LAUNCH(f_map, &weight[l], &g, &n, &k, &mask);
    }
    if (is("ahead")) {
        MUST(cuEventRecord(back, other));
        MUST(cuStreamWaitEvent(stream, back, 0));
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
    f_glance = kernel(m, "glance");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&there, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
    for (int l = 0; l < LAYERS; l++) {
        weight[l] = make(WORDS);
        MUST(cuMemsetD32Async(weight[l], 3 + (unsigned)l, WORDS, stream));
    }
    sum = make(64);
    says = make(64);
    odd = make(ODD_WORDS);
    if (is("stray")) { /* its address is kept, it is not */
        pad = make(ODD_WORDS);
        drop(odd);
    }
    MUST(cuCtxSynchronize());
    for (int iter = 0; iter < iterations; iter++)
        printf("iter %d sum %016llx\n", iter, (unsigned long long)train(iter));
    return 0;
}
