/* loading CASE: one thread loads a library, whose constructor or destructor makes calls of the driver, as an extension module or libcudart may; the
 * loader's lock is held meanwhile. Beside it this thread works. Whoever asks the loader something with a lock of his own held, and is asked for that
 * lock by such a call, stands still for ever. Prints what is computed.
 *
 *   set_up       a constructor asks how much memory is free, while this thread makes the first call that needs a device
 *   launch       constructors launch kernels on memory of their own, while this thread launches, for the first time too
 *   train        a training loop, in which constructors, again and again, ask how much memory is free
 *   goes         the same with destructors
 *   names        the same with constructors that look up the driver's functions by name and call what they find
 *   modules      constructors allocate and free, while this thread loads modules and looks up kernels */
#include "tests/programs/tensors.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

enum { LAYERS = 8, ITERATIONS = 24, WORDS = 65536, SMALL = 4096 };

static CUcontext ctx;
static CUfunction f_map, f_join, f_sum;
static CUstream s;
static CUdeviceptr sum;
static atomic_int inside, done;
static void (*on_coming)(void), (*on_going)(void);

void library_comes(void);
void library_goes(void);
void library_comes(void)
{
    if (on_coming)
        on_coming();
}
void library_goes(void)
{
    if (on_going)
        on_going();
}

static void load_and_unload(void)
{
    char path[4096];
    kernels_path(path, sizeof path, "loading_library.so");
    void *h = dlopen(path, RTLD_NOW);
    if (!h) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    dlclose(h);
}

static void *loads_once(void *unused)
{
    MUST(cuCtxSetCurrent(ctx));
    load_and_unload();
    return unused;
}

static void *loads_again_and_again(void *unused)
{
    MUST(cuCtxSetCurrent(ctx));
    while (!atomic_load(&done)) {
        load_and_unload();
        usleep(500);
    }
    return unused;
}

/* `work` beside a thread that loads. */
static void beside(void *(*loads)(void *), void (*work)(void))
{
    pthread_t t;
    if (pthread_create(&t, NULL, loads, NULL))
        exit(3);
    work();
    atomic_store(&done, 1);
    pthread_join(t, NULL);
}

static void ready(void)
{
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_join = kernel(m, "join");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAllocAsync(&sum, 8, s));
}

/* ---- what constructors do ------------------------------------------------------------------------------------------------- */

static void ask(void)
{
    size_t free_bytes, total;
    atomic_store(&inside, 1);
    for (int i = 0; i < 3; i++) {
        usleep(1000);
        MUST(cuMemGetInfo_v2(&free_bytes, &total));
    }
}

static void ask_late(void)
{
    size_t free_bytes, total;
    atomic_store(&inside, 1);
    usleep(300000); /* the other thread is in the middle of its call */
    MUST(cuMemGetInfo_v2(&free_bytes, &total));
}

static void launch_own(void)
{
    static uint64_t told;
    static CUstream own;
    uint32_t n = SMALL, k = 3, mask = ~0u;
    CUdeviceptr p, at;
    if (!own)
        MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAllocAsync(&at, 8, own));
    MUST(cuMemAllocAsync(&p, 4 * SMALL, own));
    MUST(cuMemsetD32Async(p, 7, SMALL, own));
    atomic_store(&inside, 1);
    usleep(2000);
    LAUNCH(f_map, own, &p, &p, &n, &k, &mask);
    const uint64_t h = checksum(f_sum, own, at, p, SMALL);
    if (told && told != h)
        printf("a constructor got %016llx\n", (unsigned long long)h);
    told = h;
    MUST(cuMemFreeAsync(p, own));
    MUST(cuMemFreeAsync(at, own));
}

static void look_up(void)
{
    CUresult (*get)(size_t *, size_t *);
    size_t free_bytes, total;
    void *f = NULL;
    atomic_store(&inside, 1);
    usleep(1000);
    *(void **)&get = dlsym(RTLD_DEFAULT, "cuMemGetInfo_v2");
    MUST(get(&free_bytes, &total));
    MUST(cuGetProcAddress_v2("cuMemGetInfo", &f, 12000, 0, NULL));
    *(void **)&get = f;
    MUST(get(&free_bytes, &total));
}

static void allocate(void)
{
    CUdeviceptr p;
    atomic_store(&inside, 1);
    usleep(1000);
    MUST(cuMemAlloc_v2(&p, 4096));
    MUST(cuMemFree_v2(p));
}

/* ---- what this thread does -------------------------------------------------------------------------------------------------- */

static void until_inside(void)
{
    while (!atomic_load(&inside))
        usleep(200);
}

static void first_call(void)
{
    CUdeviceptr p;
    until_inside();
    MUST(cuMemAlloc_v2(&p, 1 << 20));
}

static void launches(void)
{
    uint32_t n = WORDS, k = 5, mask = ~0u;
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4 * WORDS, s));
    MUST(cuMemsetD32Async(p, 1, WORDS, s));
    for (int i = 0; i < 60; i++) {
        atomic_store(&inside, 0);
        until_inside();
        LAUNCH(f_map, s, &p, &p, &n, &k, &mask);
    }
    printf("%016llx\n", (unsigned long long)checksum(f_sum, s, sum, p, WORDS));
}

static void train(void)
{
    uint32_t n = WORDS, mask = ~0u;
    struct tensor act[LAYERS + 1], weight = tensor_make(WORDS, NULL, s);
    MUST(cuMemsetD32Async(weight.p, 2, WORDS, s));
    until_inside();
    for (int it = 0; it < ITERATIONS; it++) {
        act[0] = tensor_make(WORDS, NULL, s);
        MUST(cuMemsetD32Async(act[0].p, 11, WORDS, s));
        for (uint32_t l = 0; l < LAYERS; l++) {
            act[l + 1] = tensor_make(WORDS, NULL, s);
            uint32_t k = 3 + l;
            LAUNCH(f_map, s, &act[l + 1].p, &act[l].p, &n, &k, &mask);
        }
        for (int l = LAYERS; l >= 0; l--) {
            LAUNCH(f_join, s, &weight.p, &weight.p, &act[l].p, &n, &n, &n);
            drop(&act[l], s);
        }
        printf("%d %016llx\n", it, (unsigned long long)checksum(f_sum, s, sum, weight.p, WORDS));
    }
}

static void modules(void)
{
    for (int i = 0; i < 20; i++) {
        CUmodule m = load_kernels();
        atomic_store(&inside, 0);
        until_inside();
        CUfunction was = f_map;
        f_map = kernel(m, "map");
        uint32_t n = SMALL, k = 5, mask = ~0u;
        CUdeviceptr p;
        MUST(cuMemAllocAsync(&p, 4 * SMALL, s));
        MUST(cuMemsetD32Async(p, 1, SMALL, s));
        LAUNCH(f_map, s, &p, &p, &n, &k, &mask);
        if (i % 5 == 0)
            printf("%016llx\n", (unsigned long long)checksum(f_sum, s, sum, p, SMALL));
        MUST(cuMemFreeAsync(p, s));
        MUST(cuStreamSynchronize(s));
        f_map = was;
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*coming)(void), (*going)(void), (*work)(void);
        bool once; /* and nothing has been called before it */
    } cases[] = {{"set_up", ask_late, NULL, first_call, true}, {"launch", launch_own, NULL, launches, false}, {"train", ask, NULL, train, false},
                 {"goes", NULL, ask, train, false},            {"names", look_up, NULL, train, false},      {"modules", allocate, NULL, modules, false}};
    ctx = primary_context();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
            on_coming = cases[i].coming;
            on_going = cases[i].going;
            if (!cases[i].once)
                ready();
            beside(cases[i].once ? loads_once : loads_again_and_again, cases[i].work);
            puts("done");
            return 0;
        }
    fprintf(stderr, "usage: loading set_up|launch|train|goes|names|modules\n");
    return 2;
}
