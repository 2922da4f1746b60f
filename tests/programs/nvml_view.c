/* nvml_view LIBRARY: what NVML tells a program of its memory, beside what CUDA tells it: before cuInit, with nothing allocated, with
 * 24 MiB held. Bytes, one line an answer.
 * nvml_view LIBRARY fork: children ask, forked while another thread is inside the driver; how many never got an answer.
 */
#include "tests/programs/program.h"

#include "preload/abi_extra.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define ASK(lib, sym) ((__typeof__(&sym))dlsym(lib, #sym))
enum { HELD = 3, HELD_BYTES = 8 << 20 };

static void memory(void *nvml, const char *when)
{
    struct nvml_memory m = {0};
    struct nvml_memory_v2 v = {.version = 0x02000028};
    ASK(nvml, nvmlDeviceGetMemoryInfo)((nvmlDevice_t)1, &m);
    ASK(nvml, nvmlDeviceGetMemoryInfo_v2)((nvmlDevice_t)1, &v);
    printf("%s v1 %llu %llu %llu\n", when, m.total, m.free, m.used);
    printf("%s v2 %llu %llu %llu %llu\n", when, v.total, v.free, v.used, v.reserved);
    ASK(nvml, nvmlDeviceGetMemoryInfo)((nvmlDevice_t)2, &m);
    printf("%s other %llu %llu %llu\n", when, m.total, m.free, m.used);
}

#define LIST(sym, type)                                                                                                \
    do {                                                                                                               \
        struct type list[4];                                                                                           \
        unsigned n = 1;                                                                                                \
        int short_list = ASK(nvml, sym)((nvmlDevice_t)1, &n, list);                                                    \
        n = 4;                                                                                                         \
        int r = ASK(nvml, sym)((nvmlDevice_t)1, &n, list);                                                             \
        printf("processes %d %d %u %llu %llu\n", short_list, r, n, list[0].used, list[1].used);                        \
    } while (0)

static atomic_bool enough;
static CUcontext ctx;

static void *fills(void *arg)
{
    CUdeviceptr p;
    (void)arg;
    MUST(cuCtxSetCurrent(ctx));
    MUST(cuMemAllocAsync(&p, 4096, NULL));
    while (!atomic_load(&enough)) {
        for (int i = 0; i < 20; i++)
            MUST(cuMemsetD8Async(p, 1, 4096, NULL));
        MUST(cuStreamSynchronize(NULL));
    }
    return NULL;
}

static int children_ask(void *nvml)
{
    enum { CHILDREN = 400, PATIENCE_S = 20 };
    struct nvml_memory m;
    pthread_t other;
    int hung = 0, status = 0;
    ctx = primary_context();
    ASK(nvml, nvmlDeviceGetMemoryInfo)((nvmlDevice_t)1, &m);
    if (pthread_create(&other, NULL, fills, NULL))
        return 3;
    for (int i = 0; i < CHILDREN && !hung; i++) {
        pid_t child = fork();
        if (!child) {
            alarm(PATIENCE_S);
            _exit(ASK(nvml, nvmlDeviceGetMemoryInfo)((nvmlDevice_t)1, &m));
        }
        waitpid(child, &status, 0);
        hung += !WIFEXITED(status) || WEXITSTATUS(status);
        usleep(500);
    }
    atomic_store(&enough, true);
    pthread_join(other, NULL);
    printf("hung %d\n", hung);
    return 0;
}

int main(int argc, char **argv)
{
    void *nvml = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!nvml) {
        fprintf(stderr, "usage: nvml_view LIBRARY\n");
        return 2;
    }
    if (argc > 2 && !strcmp(argv[2], "fork"))
        return children_ask(nvml);
    memory(nvml, "before");
    primary_context();
    memory(nvml, "empty");
    CUdeviceptr p[HELD];
    for (int i = 0; i < HELD; i++) {
        MUST(cuMemAllocAsync(&p[i], HELD_BYTES, NULL));
        MUST(cuMemsetD8Async(p[i], 1, HELD_BYTES, NULL));
    }
    MUST(cuStreamSynchronize(NULL));
    memory(nvml, "held");
    size_t free_bytes = 0, total = 0;
    MUST(cuMemGetInfo_v2(&free_bytes, &total));
    printf("held cuda %zu %zu\n", total, free_bytes);
    LIST(nvmlDeviceGetComputeRunningProcesses, nvml_process_v1);
    LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process);
    LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process);
    LIST(nvmlDeviceGetGraphicsRunningProcesses, nvml_process_v1);
    LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_process);
    LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_process);
    LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvml_process_v1);
    LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_process);
    LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_process);
    struct nvml_process_detail details[4];
    struct nvml_process_details m = {.n = 4, .list = details};
    int r = ASK(nvml, nvmlDeviceGetRunningProcessDetailList)((nvmlDevice_t)1, &m);
    printf("processes 7 %d %u %llu %llu\n", r, m.n, details[0].used, details[1].used);
    return 0;
}
