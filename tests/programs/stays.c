/* stays CASE ITERATION: iterations that are alike, but that in one of them a tensor is looked at that nobody uses then in the others.
 *   input   it is freed later. It is what a large tensor was made of, and has been changed in place since: a plan makes the large one
 *           again from what it was
 *   output  it is that large tensor, and is freed later: to make it again, what it was made of must be for a while what it was, and then
 *           what it is
 *   gone    it is that large tensor, and what it was made of is no longer what it was: the plan makes it again before, or nobody can
 *   back    likewise, but that can be made again, too
 *   small   it is small, freed with the iteration, and given to a launch in place of another one. A large one is made of what it was once
 *   stream  none: each iteration has a stream of its own
 * Nothing else of an iteration can be made again, so a plan has no other choice. Prints a checksum for every iteration. */
#include "tests/programs/tensors.h"

enum { ITERATIONS = 18, INPUT = 40000, OUTPUT = 400000, BULK = 8, SMALL = 1000 };

/* What no launch makes. */
static void rows(const struct tensor *to, const struct tensor *from, CUstream s)
{
    const CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from->p, .srcPitch = 4000, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                             .dstDevice = to->p, .dstPitch = 4000, .WidthInBytes = 4000, .Height = to->n / 1000};
    MUST(cuMemcpy2DAsync_v2(&c, s));
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"input", "output", "gone", "back", "small", "stream"};
    enum { AN_INPUT, AN_OUTPUT, GONE, BACK, A_SMALL_ONE, STREAMS, N_CASES } what = 0;
    while (argc == 3 && what < N_CASES && strcmp(argv[1], names[what]))
        what++;
    if (argc != 3 || what == N_CASES) {
        fprintf(stderr, "usage: stays input|output|gone|back|small|stream ITERATION\n");
        return 2;
    }
    const bool input = what == AN_INPUT, gone = what == GONE, changes = gone || what == BACK, small = what == A_SMALL_ONE,
               streams = what == STREAMS;
    const int late = atoi(argv[2]);
    primary_context();
    CUmodule m = load_kernels();
    CUfunction join = kernel(m, "join"), add = kernel(m, "add"), f_sum = kernel(m, "sum");
    CUstream s;
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    struct tensor w = tensor_make(OUTPUT, NULL, s), all = tensor_make(INPUT, NULL, s), sum = tensor_make(2, NULL, s), bulk[BULK];
    MUST(cuMemsetD32Async(w.p, 7, w.n, s));
    MUST(cuMemsetD32Async(all.p, 9, all.n, s));
    for (int i = 0; i < ITERATIONS; i++) {
        const bool now = i == late;
        if (streams)
            LAUNCH(add, s, &all.p, &w.p, &all.n, &w.n);
        struct tensor x = tensor_make(small ? SMALL : INPUT, NULL, s), other = {0}, y = tensor_make(OUTPUT, NULL, s);
        if (small)
            other = tensor_make(SMALL, NULL, s);
        uint64_t seen = 0;
        if (gone)
            rows(&x, &w, s);
        else
            LAUNCH(join, s, &x.p, &w.p, &w.p, &x.n, &w.n, &w.n);
        LAUNCH(join, s, &y.p, &x.p, &w.p, &y.n, &x.n, &w.n);
        if (!changes)
            LAUNCH(add, s, &x.p, &w.p, &x.n, &w.n);
        if (input && !now)
            drop(&x, s);
        for (int k = 0; k < BULK; k++) {
            bulk[k] = tensor_make(OUTPUT, NULL, s);
            rows(&bulk[k], &w, s);
        }
        for (int k = 0; k < BULK; k++) {
            LAUNCH(add, s, &all.p, &bulk[k].p, &all.n, &bulk[k].n);
            drop(&bulk[k], s);
        }
        if (small)
            LAUNCH(join, s, &other.p, &w.p, &all.p, &other.n, &w.n, &all.n);
        if (input || small || streams)
            LAUNCH(add, s, &all.p, &y.p, &all.n, &y.n);
        if (!changes && (input || small || streams || !now))
            drop(&y, s);
        if (small) {
            LAUNCH(add, s, &all.p, now ? &x.p : &other.p, &all.n, &x.n);
            drop(&other, s);
        } else if (!input)
            LAUNCH(add, s, &all.p, &x.p, &all.n, &x.n);
        if (changes)
            LAUNCH(add, s, &x.p, &w.p, &x.n, &w.n);
        LAUNCH(add, s, &all.p, &w.p, &all.n, &w.n);
        LAUNCH(add, s, &all.p, &w.p, &all.n, &w.n);
        if (changes && !now)
            drop(&y, s);
        if (changes)
            LAUNCH(add, s, &all.p, &w.p, &all.n, &w.n);
        if (x.p && input)
            seen = checksum(f_sum, s, sum.p, x.p, x.n);
        if (changes)
            LAUNCH(add, s, &all.p, &x.p, &all.n, &x.n);
        drop(&x, s);
        if (y.p && now)
            seen = checksum(f_sum, s, sum.p, y.p, y.n);
        drop(&y, s);
        printf("iter %d loss %016llx %016llx\n", i, (unsigned long long)checksum(f_sum, s, sum.p, all.p, all.n), (unsigned long long)seen);
        if (streams) {
            MUST(cuStreamDestroy_v2(s));
            MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        }
    }
    return 0;
}
