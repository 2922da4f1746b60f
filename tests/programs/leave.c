/* leave HOW: trains a little, then leaves the way HOW says: exit, _exit, quick_exit, work (until it is killed), signal (the
 * same, with a handler of SIGTERM that calls _exit), exec (of true), abort, context (destroyed with memory live), fork (a
 * child that lives on and exits), child (the same, and it frees what its parent has), wait (sleeps until it is killed), reload
 * (modules unloaded and loaded again on the way). */
#include "tests/programs/program.h"

#include <signal.h>
#include <sys/wait.h>

enum { LAYERS = 24, WORDS = 175000 };

static CUmodule module;
static CUfunction map, join, sum;

static void load(void)
{
    module = load_kernels();
    map = kernel(module, "map");
    join = kernel(module, "join");
    sum = kernel(module, "sum");
}

static void run_map(CUdeviceptr out, CUdeviceptr in)
{
    uint32_t n = WORDS, k = 5, mask = 0xffffffffu;
    void *args[] = {&out, &in, &n, &k, &mask};
    MUST(cuLaunchKernel(map, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
}

static void run_join(CUdeviceptr out, CUdeviceptr a, CUdeviceptr b)
{
    uint32_t n = WORDS;
    void *args[] = {&out, &a, &b, &n, &n, &n};
    MUST(cuLaunchKernel(join, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
}

static uint64_t iteration(CUdeviceptr weight, CUdeviceptr out8)
{
    CUdeviceptr act[LAYERS + 1], g;
    uint32_t n = WORDS;
    uint64_t v;
    for (int i = 0; i <= LAYERS; i++) {
        MUST(cuMemAllocAsync(&act[i], 4ull * WORDS, NULL));
        run_map(act[i], i ? act[i - 1] : weight);
    }
    g = act[LAYERS];
    for (int i = LAYERS; i-- > 0;) {
        CUdeviceptr next;
        MUST(cuMemAllocAsync(&next, 4ull * WORDS, NULL));
        run_join(next, g, act[i]);
        MUST(cuMemFreeAsync(g, NULL));
        MUST(cuMemFreeAsync(act[i], NULL));
        g = next;
    }
    run_join(weight, weight, g);
    MUST(cuMemFreeAsync(g, NULL));
    void *args[] = {&out8, &weight, &n};
    MUST(cuLaunchKernel(sum, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    MUST(cuMemcpyDtoH_v2(&v, out8, 8));
    return v;
}

static void leave_now(int number)
{
    (void)number;
    _exit(9);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "exit";
    setenv("SIMGPU_GRANULARITY", "524288", 0); /* pages as much smaller than usual as these tensors */
    CUcontext ctx = primary_context();
    CUdeviceptr weight, out8, left;
    load();
    MUST(cuMemAllocAsync(&weight, 4ull * WORDS, NULL));
    MUST(cuMemAllocAsync(&out8, 8, NULL));
    MUST(cuMemAllocAsync(&left, 1250000, NULL));
    MUST(cuMemsetD8Async(weight, 3, 4ull * WORDS, NULL));
    for (int i = 0; i < 9; i++) {
        printf("iter %d %016llx\n", i, (unsigned long long)iteration(weight, out8));
        fflush(stdout);
        const bool frees = !strcmp(how, "child");
        if ((frees || !strcmp(how, "fork")) && i == 6) {
            pid_t child = fork();
            if (!child) {
                CUdeviceptr p;
                if (frees)
                    printf("free %d\n", cuMemFreeAsync(left, NULL));
                printf("child %d\n", cuMemAlloc_v2(&p, 4096) != CUDA_SUCCESS);
                exit(7);
            }
            int status = 0;
            waitpid(child, &status, 0);
            printf("status %d\n", WEXITSTATUS(status));
        }
        if (!strcmp(how, "reload")) {
            MUST(cuModuleUnload(module));
            load();
        }
    }
    fflush(stdout);
    for (int i = 0; i < 3; i++) /* too few for the statistics to be written for them alone */
        run_map(left, weight);
    if (!strcmp(how, "_exit"))
        _exit(5);
    if (!strcmp(how, "quick_exit"))
        quick_exit(6);
    if (!strcmp(how, "exec"))
        execlp("true", "true", (char *)NULL);
    if (!strcmp(how, "signal"))
        signal(SIGTERM, leave_now);
    if (!strcmp(how, "signal") || !strcmp(how, "work")) {
        puts("on");
        fflush(stdout);
        for (;;)
            iteration(weight, out8);
    }
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "context")) {
        CUdevice dev;
        MUST(cuDeviceGet(&dev, 0));
        (void)ctx;
        MUST(cuDevicePrimaryCtxReset_v2(dev));
        puts("reset");
    }
    if (!strcmp(how, "wait"))
        for (;;)
            pause();
    return 0;
}
