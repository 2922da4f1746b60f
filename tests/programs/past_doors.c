/* past_doors CASE [full]: a training loop in which, from iteration CHANGE_AT on, something writes two tensors that no call known to remat shows: one that has been
 * out of use since it was filled, and one that nobody has written. Before that the loop takes all memory, afterwards a part of it. Prints a checksum of both and of
 * the weights in every iteration. `full`: then memory is asked for until there is no more, and how much there was is printed on stderr.
 *
 * Calls of a driver that is newer than remat (build/simgpu/newer):
 *   dlsym, default, proc  a newer variant of a call that has a door: by dlsym, by dlsym without a handle, by cuGetProcAddress
 *   copy       another, with an argument in a register for numbers
 *   unnamed    one that no symbol names
 *   fresh, fresh_proc  a call that nobody has heard of
 *   linked     the program is linked with the newer variant
 *   plugin     a library is, which is opened late and bound at the first call
 *   nccl, pnccl, nccl_plugin  a function of NCCL that nobody has heard of: by dlsym, under its second name, by a library that is linked with it
 *   first      it is called before the driver is initialised, and fails; and never again
 * Libraries that work past the driver (tests/programs/engines):
 *   encode, optix_thread  it is opened in iteration CHANGE_AT; by another thread
 *   early      before the driver is initialised
 *   needs      the program is linked with it (past_doors_needs), and does not use it
 *   registers  the library says by its constructor that it is there, and nobody asks for a name of it
 *   file, file_plugin  cuFile is called: by dlsym, by a library that is linked with it
 *   rdma, rdma_plugin  memory is registered for a network card
 * What must change nothing:
 *   known      the variants of today are asked for: by every way
 *   asked      the newer ones are asked for, as a runtime library asks for all, and not called
 *   file_idle  cuFile is in the process, and is asked a question
 *   rdma_host  host memory is registered
 */
#include "tests/programs/tensors.h"
#include "tests/simgpu/newer/newer.h"

#include <dlfcn.h>
#include <pthread.h>

enum { LAYERS = 12, FEW = 3, WORDS = 32768, WEIGHT = WORDS / 4, CHANGE_AT = 12, ITERATIONS = 16 };

typedef CUresult fill_fn(CUdeviceptr, unsigned, size_t, CUstream);
typedef CUresult variant_fn(CUdeviceptr, unsigned, size_t, CUstream, unsigned, unsigned, unsigned, unsigned);
typedef CUresult copy_fn(double, CUdeviceptr, const void *, size_t, CUstream);
typedef CUresult halves_fn(CUdeviceptr, unsigned short, size_t, CUstream, unsigned);
typedef int engine_fn(uint64_t, unsigned, size_t);
typedef long file_fn(void *, void *, size_t, long, long);

static const char *what;
static CUstream s;
static CUfunction map, join, f_sum;
static CUdeviceptr weight[LAYERS], act[LAYERS + 1], sum, table, frame;
static engine_fn *registered;

static bool is(const char *c) { return !strcmp(what, c); }

void past_doors_register(engine_fn *f);
void past_doors_register(engine_fn *f) { registered = f; }

static void *opened(const char *file)
{
    char path[4200];
    kernels_path(path, sizeof path - 100, "engines/");
    strcat(path, file);
    void *h = dlopen(path, RTLD_LAZY);
    if (!h) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(3);
    }
    return h;
}

static void *driver(void) { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD); }

static void *proc(const char *name, int version)
{
    void *f = NULL;
    CUdriverProcAddressQueryResult status;
    MUST(cuGetProcAddress_v2(name, &f, version, 0, &status));
    return f;
}

static void *open_optix(void *unused)
{
    (void)unused;
    return opened("libnvoptix.so.1");
}

static void *by_thread(void)
{
    pthread_t t;
    void *h;
    pthread_create(&t, NULL, open_optix, NULL);
    pthread_join(t, &h);
    return h;
}

static void halves(CUdeviceptr to, uint32_t value)
{
    static halves_fn *f;
    f = f ? f : (halves_fn *)proc("cuMemsetD16Async", NEWER_VERSION);
    MUST(f(to, (unsigned short)value, 2 * WORDS, s, 1));
}

static void copied(CUdeviceptr to, uint32_t value)
{
    static copy_fn *f;
    static uint32_t numbers[WORDS];
    f = f ? f : (copy_fn *)proc("cuMemcpyHtoDAsync", NEWER_VERSION);
    MUST(cuStreamSynchronize(s));
    for (uint32_t i = 0; i < WORDS; i++)
        numbers[i] = value + i;
    MUST(f(0.75, to, numbers, sizeof numbers, s));
}

static void *engine_library;

static void by_engine(CUdeviceptr to, uint32_t value)
{
    void *h = engine_library;
    MUST(cuStreamSynchronize(s));
    engine_library = h = h ? h : is("optix_thread") ? by_thread() : opened(is("registers") ? "libnvcuvid.so.1" : "libnvidia-encode.so.1");
    engine_fn *f = is("registers") ? registered : (engine_fn *)dlsym(h, "engine_fill");
    void *block = NULL;
    MUST(cuMemHostAlloc(&block, 4096, 0)); /* what they begin with: a call that has a door */
    MUST((CUresult)f(to, value, WORDS));
    MUST(cuMemFreeHost(block));
}

static void by_file(CUdeviceptr to, uint32_t value)
{
    static void *h;
    h = h ? h : opened(is("file") ? "libcufile.so.0" : "libplugin.so");
    MUST(cuStreamSynchronize(s));
    const long got = is("file") ? ((file_fn *)dlsym(h, "cuFileRead"))((void *)(uintptr_t)value, (void *)(uintptr_t)to, 4 * WORDS, 0, 0)
                                : ((long (*)(CUdeviceptr, unsigned, size_t))dlsym(h, "plugin_read"))(to, value, WORDS);
    if (got != 4 * WORDS)
        _exit(4);
}

static void by_network(CUdeviceptr to, uint32_t value)
{
    static void *h;
    h = h ? h : opened(is("rdma_plugin") ? "libplugin.so" : "libibverbs.so.1");
    MUST(cuStreamSynchronize(s));
    const void *region = is("rdma_plugin") ? ((void *(*)(void *, size_t))dlsym(h, "plugin_register"))((void *)(uintptr_t)to, 4 * WORDS)
                                           : ((void *(*)(void *, void *, size_t, int))dlsym(h, "ibv_reg_mr"))(NULL, (void *)(uintptr_t)to, 4 * WORDS, 7);
    if (!region)
        _exit(2);
    MUST((CUresult)((int (*)(unsigned))dlsym(h, is("rdma_plugin") ? "plugin_receive" : "network_fill"))(value));
}

static void by_collective(CUdeviceptr to, uint32_t value)
{
    static void *h;
    h = h ? h : opened(is("nccl_plugin") ? "libplugin.so" : "libnccl.so.2");
    MUST(cuStreamSynchronize(s));
    engine_fn *f = (engine_fn *)dlsym(h, is("nccl_plugin") ? "plugin_collect" : is("nccl") ? "ncclFreshFill" : "pncclFreshFill");
    MUST((CUresult)f(to, value, WORDS));
}

/* The calls of today, and those that are only asked for. */
static void known(CUdeviceptr to, uint32_t value, size_t n)
{
    static char host[4096];
    if (is("known")) {
        MUST(((fill_fn *)dlsym(driver(), "cuMemsetD32Async"))(to, value, n / 2, s));
        MUST(((fill_fn *)proc("cuMemsetD32Async", 13000))(to + 2 * n, value, n - n / 2, s));
        CUdevice dev; /* harmless, by the table */
        MUST(((CUresult (*)(CUdevice *))dlsym(driver(), "cuCtxGetDevice"))(&dev));
        return;
    }
    if (is("asked") && !(dlsym(driver(), "cuMemsetD32Async_v2") && proc("cuMemcpyHtoDAsync", NEWER_VERSION) && proc("cuFreshFill", NEWER_VERSION)))
        _exit(5);
    if (is("file_idle"))
        ((int (*)(void))dlsym(opened("libcufile.so.0"), "cuFileUseCount"))();
    if (is("rdma_host") && !((void *(*)(void *, void *, size_t, int))dlsym(opened("libibverbs.so.1"), "ibv_reg_mr"))(NULL, host, sizeof host, 7))
        _exit(6);
    MUST(cuMemsetD32Async(to, value, n, s));
}

static void change(CUdeviceptr to, uint32_t value)
{
    static fill_fn *fresh;
    if (is("dlsym") || is("default") || is("proc")) {
        variant_fn *f = is("proc") ? (variant_fn *)proc("cuMemsetD32Async", NEWER_VERSION)
                                   : (variant_fn *)dlsym(is("dlsym") ? driver() : RTLD_DEFAULT, "cuMemsetD32Async_v2");
        MUST(f(to, value, WORDS, s, 1, 2, 3, 4));
    } else if (is("linked")) {
        MUST(cuMemsetD32Async_v2(to, value, WORDS, s, 1, 2, 3, 4));
    } else if (is("fresh") || is("fresh_proc") || is("plugin")) {
        fresh = fresh           ? fresh
                : is("plugin") ? (fill_fn *)dlsym(opened("libplugin.so"), "plugin_fresh")
                : is("fresh")  ? (fill_fn *)dlsym(driver(), "cuFreshFill")
                               : (fill_fn *)proc("cuFreshFill", NEWER_VERSION);
        MUST(fresh(to, value, WORDS, s));
    } else if (is("unnamed"))
        halves(to, value);
    else if (is("copy"))
        copied(to, value);
    else if (!strncmp(what, "file", 4) && !is("file_idle"))
        by_file(to, value);
    else if (strstr(what, "nccl"))
        by_collective(to, value);
    else if (!strncmp(what, "rdma", 4) && !is("rdma_host"))
        by_network(to, value);
    else if (is("first") || is("needs") || is("known") || is("asked") || is("file_idle") || is("rdma_host"))
        known(to, value, WORDS);
    else
        by_engine(to, value);
}

static CUdeviceptr make(uint32_t words) { return tensor_make(words, NULL, s).p; }

static void train(int iter)
{
    const int layers = iter < CHANGE_AT ? LAYERS : FEW;
    uint32_t n = WORDS, w = WEIGHT, k = 1, mask = ~0u;
    if (iter >= CHANGE_AT) {
        change(table, 100 * (uint32_t)iter);
        change(frame, 100 * (uint32_t)iter + 50);
    }
    act[0] = make(WORDS);
    if (iter >= CHANGE_AT)
        LAUNCH(map, s, &act[0], &table, &n, &k, &mask);
    else
        LAUNCH(join, s, &act[0], &weight[0], &weight[1], &n, &w, &w);
    for (int i = 0; i < layers; i++) {
        act[i + 1] = make(WORDS);
        LAUNCH(join, s, &act[i + 1], &act[i], &weight[i], &n, &n, &w);
    }
    for (int i = layers; i > 0; i--) {
        LAUNCH(join, s, &weight[i - 1], &weight[i - 1], &act[i], &w, &w, &n);
        MUST(cuMemFreeAsync(act[i], s));
    }
    if (iter >= CHANGE_AT)
        LAUNCH(join, s, &weight[0], &weight[0], &frame, &w, &w, &n);
    MUST(cuMemFreeAsync(act[0], s));
    printf("iter %d loss %016llx\n", iter, (unsigned long long)checksum(f_sum, s, sum, weight[0], WEIGHT));
}

/* Where memory stays there is as much as the limit leaves, and no more. */
static void fill_up(void)
{
    CUdeviceptr p;
    int n = 0;
    while (n < 200 && cuMemAllocAsync(&p, 4 * WORDS, s) == CUDA_SUCCESS && cuMemsetD32Async(p, 1, WORDS, s) == CUDA_SUCCESS)
        n++;
    fprintf(stderr, "%d more\n", n);
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "dlsym";
    if (is("first") && ((fill_fn *)dlsym(driver(), "cuFreshFill"))(0, 0, 0, NULL) == CUDA_SUCCESS)
        return 7;
    if (is("early"))
        engine_library = opened("libnvidia-encode.so.1");
    primary_context();
    CUmodule m = load_kernels();
    map = kernel(m, "map");
    join = kernel(m, "join");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    table = make(WORDS);
    MUST(cuMemsetD32Async(table, 7, WORDS, s));
    frame = make(WORDS);
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WEIGHT);
        MUST(cuMemsetD32Async(weight[i], 3 + (unsigned)i, WEIGHT, s));
    }
    sum = make(2);
    for (int iter = 0; iter < ITERATIONS; iter++)
        train(iter);
    for (int i = 0; i < LAYERS; i++)
        printf("weight %d %016llx\n", i, (unsigned long long)checksum(f_sum, s, sum, weight[i], WEIGHT));
    printf("table %016llx\n", (unsigned long long)checksum(f_sum, s, sum, table, WORDS));
    if (argc > 2)
        fill_up();
    return 0;
}
