/* spoils CASE ITERATION: iterations that are alike, but that in one of them something is changed, or given back, that was only read in the
 * others. What was made of it before is as it was; a plan that has dropped it must not make it again of what is there now. In the first two
 * a number among a launch's arguments makes it change the tensor that it reads.
 *   after   the launch comes when no step of the plan makes anything of that tensor any more. The large tensor that was made of it is held
 *           until the end, and looked at in that iteration alone
 *   behind  the launch changes in place what stands between that tensor and the large one
 *   own     memory of the program's own is given back when it has been used, and other memory taken, perhaps where that was
 * Nothing else of an iteration can be made again, so a plan has no other choice. Prints a checksum for every iteration. */
#include "tests/programs/list_args.h"
#include "tests/programs/tensors.h"

enum { ITERATIONS = 18, INPUT = 40000, OUTPUT = 400000, BULK = 8, ALSO = 2 /* iterations before, in which numbers differ and change nothing */ };

static CUstream s;
static CUfunction join, add, number;
static struct tensor w, v, all, bulk[BULK];

/* What no launch makes. */
static void rows(const struct tensor *to, const struct tensor *from)
{
    const CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from->p, .srcPitch = 4000, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                             .dstDevice = to->p, .dstPitch = 4000, .WidthInBytes = 4000, .Height = to->n / 1000};
    MUST(cuMemcpy2DAsync_v2(&c, s));
}

/* to = f(from); from changes too where `changes` says so. */
static void numbered(const struct tensor *to, const struct tensor *from, uint32_t n, bool changes)
{
    const struct count_args a = {.out = to->p, .in = from->p, .number = n + changes, .base = n, .words = to->n};
    LAUNCH(number, s, (void *)&a);
}

static void press(void)
{
    for (int k = 0; k < BULK; k++) {
        bulk[k] = tensor_make(OUTPUT, NULL, s);
        rows(&bulk[k], &w);
    }
    for (int k = 0; k < BULK; k++) {
        LAUNCH(add, s, &all.p, &bulk[k].p, &all.n, &bulk[k].n);
        drop(&bulk[k], s);
    }
}

static struct tensor own_memory(uint32_t value)
{
    struct tensor t = {.n = INPUT};
    MUST(cuMemAlloc_v2(&t.p, 4 * INPUT));
    MUST(cuMemsetD32Async(t.p, value, t.n, s));
    return t;
}

int main(int argc, char **argv)
{
    const bool after = argc == 3 && !strcmp(argv[1], "after"), own = argc == 3 && !strcmp(argv[1], "own");
    if (argc != 3 || (!after && !own && strcmp(argv[1], "behind"))) {
        fprintf(stderr, "usage: spoils after|behind|own ITERATION\n");
        return 2;
    }
    const int late = atoi(argv[2]);
    primary_context();
    CUmodule m = load_kernels();
    join = kernel(m, "join");
    add = kernel(m, "add");
    number = kernel(m, "number");
    CUfunction f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    w = tensor_make(OUTPUT, NULL, s);
    if (own)
        v = own_memory(8);
    else
        v = tensor_make(INPUT, NULL, s);
    all = tensor_make(INPUT, NULL, s);
    struct tensor sum = tensor_make(2, NULL, s);
    MUST(cuMemsetD32Async(w.p, 7, w.n, s));
    if (!own)
        MUST(cuMemsetD32Async(v.p, 8, v.n, s));
    MUST(cuMemsetD32Async(all.p, 9, all.n, s));
    for (int i = 0; i < ITERATIONS; i++) {
        const bool now = i == late;
        const uint32_t n = i >= late - ALSO && i <= late ? (uint32_t)i : 0;
        uint64_t seen = 0;
        struct tensor x = tensor_make(INPUT, NULL, s), y = tensor_make(OUTPUT, NULL, s);
        LAUNCH(join, s, &x.p, &w.p, &w.p, &x.n, &w.n, &w.n);
        LAUNCH(join, s, &y.p, &x.p, &v.p, &y.n, &x.n, &v.n);
        LAUNCH(add, s, &all.p, &y.p, &all.n, &y.n);
        if (!after) {
            press();
            numbered(&x, &w, own ? 0 : n, now && !own);
            drop(&x, s);
        }
        press();
        if (own && now) {
            MUST(cuMemFree_v2(v.p));
            v = own_memory(80);
        }
        if (after) {
            LAUNCH(add, s, &x.p, &w.p, &x.n, &w.n);
            struct tensor z = tensor_make(INPUT, NULL, s);
            numbered(&z, &w, now, now);
            LAUNCH(add, s, &all.p, &z.p, &all.n, &z.n);
            drop(&z, s);
            LAUNCH(add, s, &all.p, &x.p, &all.n, &x.n);
            if (now)
                seen = checksum(f_sum, s, sum.p, y.p, y.n);
        } else
            LAUNCH(add, s, &all.p, &y.p, &all.n, &y.n);
        drop(&x, s);
        drop(&y, s);
        LAUNCH(add, s, &all.p, &w.p, &all.n, &w.n);
        printf("iter %d loss %016llx %016llx\n", i, (unsigned long long)checksum(f_sum, s, sum.p, all.p, all.n), (unsigned long long)seen);
    }
    return 0;
}
