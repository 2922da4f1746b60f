/* unmet CASE: launches that need more at once than a limit of 48 MiB leaves; each prints the codes of its calls and what can be read. Natively all succeed.
 *
 *   told       a launch, then allocations: as many of them are refused as PyTorch asks for; half the size goes through
 *   chain      what a launch left out should have made is read by the next launch, and by a copy to the host
 *   read       it is copied to the host at once
 *   in_place   an update of memory that was written before
 *   updates    what a launch left out should have made is added to memory that was written before, which stays as it was
 *   workspace  the launch's only new memory is given back before anything else happens: what it had beside may not be looked at
 *   garbage    the next launch needs none of it, and runs; what it made is not looked at before an allocation has been refused
 *   other      another thread allocates, in a stream of its own
 *   freed      all of it is freed; the next allocation is refused all the same, and then all goes on
 *   again      thirty times, with learning and a plan for what fits between */
#include "tests/programs/program.h"

#include <pthread.h>

enum { MIB = 1 << 20, LARGE = 32 * MIB, SMALL = 4 * MIB, WORDS = SMALL / 4 };
static CUcontext ctx;
static CUmemoryPool pool;
static CUstream s;
static uint32_t host[WORDS];
static CUfunction f_map, f_add;
static const uint32_t all = ~0u;

static const char *name(CUresult r)
{
    const char *n = "?";
    cuGetErrorName(r, &n);
    return n;
}

static CUdeviceptr take(size_t bytes)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, bytes, s));
    return p;
}
static CUresult may_take(CUdeviceptr *p, size_t bytes) { return cuMemAllocAsync(p, bytes, s); }
static void give(CUdeviceptr p) { MUST(cuMemFreeAsync(p, s)); }

static CUdeviceptr filled(size_t bytes, uint32_t v)
{
    const CUdeviceptr p = take(bytes);
    MUST(cuMemsetD32Async(p, v, bytes / 4, s));
    return p;
}

static CUresult map(CUdeviceptr out, CUdeviceptr in, size_t bytes)
{
    uint32_t n = (uint32_t)(bytes / 4), k = 1, mask = all;
    void *args[] = {&out, &in, &n, &k, &mask};
    return cuLaunchKernel(f_map, 64, 1, 1, 128, 1, 1, 0, s, args, NULL);
}
static CUresult add(CUdeviceptr x, CUdeviceptr a, size_t bytes)
{
    uint32_t n = (uint32_t)(bytes / 4);
    void *args[] = {&x, &a, &n, &n};
    return cuLaunchKernel(f_add, 64, 1, 1, 128, 1, 1, 0, s, args, NULL);
}

/* The code, and what a few words of it are. */
static void look(const char *what, CUdeviceptr p)
{
    host[0] = host[1] = 0;
    CUresult r = cuMemcpyDtoHAsync_v2(host, p, 8, s);
    if (!r)
        r = cuStreamSynchronize(s);
    printf("%s %s", what, name(r));
    if (!r)
        printf(" %u %u", host[0], host[1]);
    printf("\n");
}

static void try_take(const char *what, size_t bytes)
{
    CUdeviceptr p;
    const CUresult r = may_take(&p, bytes);
    printf("%s %s\n", what, name(r));
    if (!r)
        give(p);
}

static void told(void)
{
    CUdeviceptr a = filled(LARGE, 7), b = take(LARGE);
    printf("launch %s\n", name(map(b, a, LARGE)));
    for (int i = 0; i < 3; i++) {
        try_take("take", SMALL);
        MUST(cuMemPoolTrimTo(pool, 0));
    }
    give(b);
    look("in", a);
    give(a);
    a = filled(LARGE / 2, 7);
    b = take(LARGE / 2);
    printf("launch %s\n", name(map(b, a, LARGE / 2)));
    look("out", b);
    try_take("take", SMALL);
}

static void chain(void)
{
    CUdeviceptr a = filled(LARGE, 7), b = take(LARGE), c = take(SMALL);
    printf("launch %s\n", name(map(b, a, LARGE)));
    printf("next %s\n", name(map(c, b, SMALL)));
    look("end", c);
    look("middle", b);
    try_take("take", SMALL);
    give(c);
    give(b);
    c = filled(SMALL, 3);
    look("new", c);
}

static void just_read(void)
{
    CUdeviceptr a = filled(LARGE, 7), b = take(LARGE);
    printf("launch %s\n", name(map(b, a, LARGE)));
    look("out", b);
    look("in", a);
}

static void in_place(void)
{
    CUdeviceptr a = filled(LARGE, 7), b = filled(LARGE, 9);
    printf("launch %s\n", name(add(b, a, LARGE)));
    look("out", b);
    try_take("take", SMALL);
}

static void updates(void)
{
    CUdeviceptr a = filled(LARGE, 7), b = take(LARGE), sum = filled(SMALL, 5);
    printf("launch %s\n", name(map(b, a, LARGE)));
    printf("update %s\n", name(add(sum, b, SMALL)));
    look("sum", sum);
}

static void workspace(void)
{
    CUdeviceptr a = filled(LARGE, 7), w = take(LARGE);
    printf("launch %s\n", name(map(w, a, LARGE)));
    give(w);
    look("in", a);
    try_take("take", SMALL);
}

static void garbage(void)
{
    CUdeviceptr a = filled(LARGE, 7), b = take(LARGE), c = take(SMALL), d = filled(SMALL, 2);
    printf("launch %s\n", name(map(b, a, LARGE)));
    printf("next %s\n", name(map(c, d, SMALL)));
    look("end", c);
}

static void *takes(void *arg)
{
    CUstream mine;
    CUdeviceptr p;
    (void)arg;
    MUST(cuCtxSetCurrent(ctx));
    MUST(cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
    printf("theirs %s\n", name(cuMemAllocAsync(&p, SMALL, mine)));
    return NULL;
}

static void other(void)
{
    pthread_t t;
    CUdeviceptr a = filled(LARGE, 7), b = take(LARGE);
    printf("launch %s\n", name(map(b, a, LARGE)));
    if (pthread_create(&t, NULL, takes, NULL))
        exit(3);
    pthread_join(t, NULL);
    try_take("mine", SMALL);
}

static void freed(void)
{
    CUdeviceptr a = filled(LARGE, 7), b = take(LARGE), c = take(SMALL);
    printf("launch %s\n", name(map(b, a, LARGE)));
    printf("next %s\n", name(map(c, b, SMALL)));
    give(c);
    give(b);
    give(a);
    try_take("take", SMALL);
    a = filled(SMALL, 1);
    b = take(SMALL);
    printf("launch %s\n", name(map(b, a, SMALL)));
    look("out", b);
}

static void again(void)
{
    for (int i = 0; i < 30; i++) {
        CUdeviceptr x[5], a, b;
        x[0] = filled(LARGE / 2, (uint32_t)i);
        for (int k = 1; k < 5; k++)
            MUST(map(x[k] = take(LARGE / 2), x[k - 1], LARGE / 2));
        for (int k = 4; k > 0; k--)
            MUST(add(x[k - 1], x[k], LARGE / 2));
        look("sum", x[0]);
        for (int k = 0; k < 5; k++)
            give(x[k]);
        if (i % 10 == 9) {
            a = filled(LARGE, 7);
            b = take(LARGE);
            printf("launch %s\n", name(map(b, a, LARGE)));
            try_take("take", SMALL);
            try_take("take", SMALL);
            give(b);
            give(a);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"told", told}, {"chain", chain}, {"read", just_read}, {"in_place", in_place}, {"updates", updates}, {"workspace", workspace},
                 {"garbage", garbage}, {"other", other}, {"freed", freed}, {"again", again}};
    if (argc != 2)
        return 2;
    ctx = primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_add = kernel(m, "add");
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(cases[i].name, argv[1]))
            return cases[i].run(), 0;
    return 2;
}
