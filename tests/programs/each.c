/* each CASE: memory of cuMemAlloc, which --allocator each manages; prints what a program sees of it.
 *
 *   chain    tensors that fill 96 MiB, made of each other, given back; twelve times
 *   waits    cuMemFree waits for the device: what a copy has queued for the host is there
 *   asked    what the driver says of such memory: where it begins, whose it is
 *   wrong    calls that are refused
 *   ipc      it is to be handed to another process
 *   fork     a child gives back what its parent had
 *   capture  memory of captures that are broken off, never launched, or launched, given back; and what was never given out
 *   totals   cuDeviceTotalMem and cuMemGetInfo: before there is a context, with nothing, with 40 MiB held
 *   env      what the process finds in its environment, and after it has set something else */
#include "tests/programs/program.h"

#include <sys/wait.h>

enum { MIB = 1 << 20, TENSORS = 12, BYTES = 8 * MIB, WORDS = BYTES / 4 };
static CUfunction f_map;
static uint32_t *host;
static uint32_t all = ~0u;

static const char *name(CUresult r)
{
    const char *n = "?";
    cuGetErrorName(r, &n);
    return n;
}

static CUdeviceptr take(size_t bytes)
{
    CUdeviceptr p;
    MUST(cuMemAlloc_v2(&p, bytes));
    return p;
}

static void map(CUdeviceptr out, CUdeviceptr in, uint32_t k)
{
    uint32_t n = WORDS;
    LAUNCH_ON(f_map, NULL, &out, &in, &n, &k, &all);
}

static uint64_t sum_of(CUdeviceptr p)
{
    uint64_t h = 0;
    MUST(cuMemcpyDtoH_v2(host, p, BYTES));
    for (int i = 0; i < WORDS; i++)
        h = h * 31 + host[i];
    return h;
}

static void chain(void)
{
    for (uint32_t i = 0; i < 12; i++) {
        CUdeviceptr t[TENSORS], small = take(4096);
        t[0] = take(BYTES);
        MUST(cuMemsetD32_v2(t[0], 7 + i, WORDS));
        MUST(cuMemsetD8_v2(small, 1, 4096));
        for (int k = 1; k < TENSORS; k++)
            map(t[k] = take(BYTES), t[k - 1], (uint32_t)k);
        for (int k = TENSORS - 2; k >= 0; k--)
            map(t[k], t[k + 1], 3);
        printf("%u %016llx\n", i, (unsigned long long)sum_of(t[0]));
        for (int k = 0; k < TENSORS; k++)
            MUST(cuMemFree_v2(t[k]));
        MUST(cuMemFree_v2(small));
    }
}

static void waits(void)
{
    CUstream s;
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 4; i++) {
        CUdeviceptr a = take(BYTES), b = take(BYTES), c = take(4096);
        uint32_t n = WORDS, k = 1;
        memset(host, 0, BYTES);
        MUST(cuMemsetD32Async(a, 5, WORDS, s));
        LAUNCH_ON(f_map, s, &b, &a, &n, &k, &all);
        LAUNCH_ON(f_map, s, &a, &b, &n, &k, &all);
        MUST(cuMemcpyDtoHAsync_v2(host, a, BYTES, s));
        MUST(cuMemFree_v2(c));
        printf("%u %u\n", ((volatile uint32_t *)host)[0], ((volatile uint32_t *)host)[WORDS - 1]);
        MUST(cuMemFree_v2(a));
        MUST(cuMemFree_v2(b));
    }
}

static void asked(void)
{
    CUdeviceptr p = take(BYTES), base = 0;
    CUcontext ctx, of = NULL;
    size_t n = 0;
    unsigned type = 0;
    MUST(cuCtxGetCurrent(&ctx));
    MUST(cuMemGetAddressRange_v2(&base, &n, p + 100));
    MUST(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    printf("%d %zu %d %u %d\n", base == p, n, of == ctx, type, (int)(p % 512));
    MUST(cuMemFree_v2(p));
}

static void wrong(void)
{
    CUdeviceptr p = take(BYTES), q;
    printf("half %s\n", name(cuMemFree_v2(p + 4096)));
    printf("free %s\n", name(cuMemFree_v2(p)));
    printf("none %s\n", name(cuMemAlloc_v2(&q, 0)));
    printf("much %s\n", name(cuMemAlloc_v2(&q, (size_t)1 << 50)));
    printf("nowhere %s\n", name(cuMemAlloc_v2(NULL, 4096)));
}

static void ipc(void)
{
    CUipcMemHandle h;
    printf("handle %s\n", name(cuIpcGetMemHandle(&h, take(BYTES))));
}

static void forks(void)
{
    CUdeviceptr p = take(BYTES);
    int status = 0;
    MUST(cuMemsetD32_v2(p, 9, WORDS));
    fflush(stdout);
    pid_t child = fork();
    if (!child)
        _exit(getenv("REMAT_ALLOCATOR") ? (int)cuMemFree_v2(p) : 0);
    waitpid(child, &status, 0);
    printf("child %d %016llx\n", WEXITSTATUS(status), (unsigned long long)sum_of(p));
}

static void capture(void)
{
    CUstream s;
    CUgraph g;
    CUgraphExec exec;
    CUdeviceptr p[4];
    static const char *const what[] = {"broken", "dropped", "launched"};
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 3; i++) {
        MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        for (int k = 0; k < 4; k++) {
            MUST(cuMemAllocAsync(&p[k], BYTES, s));
            MUST(cuMemsetD32Async(p[k], 3, WORDS, s));
        }
        MUST(cuMemFreeAsync(p[3], s));
        if (i == 0)
            printf("wait %s\n", name(cuStreamSynchronize(s)));
        if (i == 0)
            printf("inside %s\n", name(cuMemFreeAsync(p[2], s)));
        const CUresult r = cuStreamEndCapture(s, &g);
        printf("%s %s\n", what[i], name(r));
        if (i == 2) {
            MUST(cuGraphInstantiateWithFlags(&exec, g, 0));
            MUST(cuGraphLaunch(exec, s));
            MUST(cuStreamSynchronize(s));
        }
        for (int k = 0; k < (i == 0 ? 2 : 3); k++)
            printf("free %s\n", name(cuMemFreeAsync(p[k], s)));
    }
    MUST(cuStreamSynchronize(s));
    printf("nobody's %s\n", name(cuMemFreeAsync((CUdeviceptr)4096, s)));
}

static void tell_totals(const char *what)
{
    size_t whole = 0, free_b = 0, total = 0;
    MUST(cuDeviceTotalMem_v2(&whole, 0));
    MUST(cuMemGetInfo_v2(&free_b, &total));
    printf("%s %zu %zu %d\n", what, whole, total, free_b <= total);
}

static void totals(void)
{
    CUdeviceptr t[5];
    tell_totals("nothing");
    for (int i = 0; i < 5; i++) {
        MUST(cuMemAllocAsync(&t[i], BYTES, NULL));
        MUST(cuMemsetD32Async(t[i], 1, WORDS, NULL));
    }
    MUST(cuStreamSynchronize(NULL));
    tell_totals("held");
    tell_totals("again");
}

static void tell(const char *when)
{
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "OTHER"};
    printf("%s", when);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        printf(" %s", getenv(names[i]) ? *getenv(names[i]) ? getenv(names[i]) : "''" : "-");
    printf("\n");
}

static void env(void)
{
    tell("found");
    setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128,pinned_num_register_threads:4", 1);
    setenv("OTHER", "x", 1);
    tell("set");
    setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:native", 0);
    setenv("OTHER", "y", 0);
    tell("kept");
    static char text[] = "PYTORCH_ALLOC_CONF=expandable_segments:True", more[] = "OTHER=z";
    putenv(text);
    putenv(more);
    tell("put");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    unsetenv("OTHER");
    tell("unset");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"chain", chain}, {"waits", waits}, {"asked", asked}, {"wrong", wrong}, {"ipc", ipc}, {"fork", forks}, {"capture", capture}, {"totals", totals}};
    if (argc != 2)
        return 2;
    if (!strcmp(argv[1], "env"))
        return env(), 0;
    if (!strcmp(argv[1], "totals")) {
        size_t whole = 0;
        MUST(cuInit(0));
        MUST(cuDeviceTotalMem_v2(&whole, 0));
        printf("first %zu\n", whole);
    }
    primary_context();
    f_map = kernel(load_kernels(), "map");
    MUST(cuMemHostAlloc((void **)&host, BYTES, 0));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(cases[i].name, argv[1]))
            return cases[i].run(), 0;
    return 2;
}
