/* room CASE: every iteration changes A in place, makes C from B, and for a moment has memory of its own, which never moves. The sizes are
 * such that each step fits under the limit alone, and nothing else beside it: what learning has set aside must give way. Prints what C
 * sums up to, every iteration.
 *
 *   launch   to the launch that makes C from B: both are larger than A
 *   create   to memory of the program's own (cuMemCreate), right after A was changed
 *   alloc    so (cuMemAllocPitch)
 */
#include "tests/programs/program.h"

enum { ITERATIONS = 20, PAGE = 65536, PAGE_WORDS = PAGE / 4, A_PAGES = 25, B_PAGES = 40, BESIDE_PAGES = 40, MOST_PAGES = 80 };

static const char *what;
static CUstream stream;
static CUfunction f_map, f_sum;
static CUdeviceptr a, sum;

#define LAUNCH(f, ...) LAUNCH_ON(f, stream, __VA_ARGS__)

static bool is(const char *c) { return !strcmp(what, c); }

static CUdeviceptr make(size_t bytes)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, bytes, stream));
    return p;
}

static void own(size_t pages)
{
    CUmemGenericAllocationHandle h;
    const CUmemAllocationProp prop = memory_of(0);
    CUdeviceptr p;
    size_t pitch;
    if (is("alloc")) {
        MUST(cuMemAllocPitch_v2(&p, &pitch, PAGE, pages, 4));
        MUST(cuMemFree_v2(p));
    } else {
        MUST(cuMemCreate(&h, pages * PAGE, &prop, 0));
        MUST(cuMemRelease(h));
    }
}

static uint64_t from_b(void)
{
    uint32_t n = B_PAGES * PAGE_WORDS, k = 3, mask = ~0u;
    uint64_t h;
    CUdeviceptr b = make(4ull * n), c = make(4ull * n);
    MUST(cuMemsetD32Async(b, 7, n, stream));
    LAUNCH(f_map, &c, &b, &n, &k, &mask);
    LAUNCH(f_sum, &sum, &c, &n);
    MUST(cuMemcpyDtoHAsync_v2(&h, sum, 8, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemFreeAsync(b, stream));
    MUST(cuMemFreeAsync(c, stream));
    return h;
}

int main(int argc, char **argv)
{
    uint32_t n = A_PAGES * PAGE_WORDS, k = 3, mask = ~0u;
    what = argc > 1 ? argv[1] : "launch";
    primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    a = make(4ull * n);
    sum = make(64);
    MUST(cuMemsetD32Async(a, 5, n, stream));
    for (int i = 0; i < ITERATIONS; i++) {
        if (!is("launch"))
            own(MOST_PAGES); /* the limit is felt before the first iteration is learnt */
        LAUNCH(f_map, &a, &a, &n, &k, &mask);
        MUST(cuStreamSynchronize(stream));
        if (!is("launch"))
            own(MOST_PAGES);
        printf("iter %d loss %016llx\n", i, (unsigned long long)from_b());
        if (is("launch"))
            own(BESIDE_PAGES);
    }
    uint64_t h;
    LAUNCH(f_sum, &sum, &a, &n);
    MUST(cuMemcpyDtoHAsync_v2(&h, sum, 8, stream));
    MUST(cuStreamSynchronize(stream));
    printf("checksum %016llx\n", (unsigned long long)h);
    return 0;
}
