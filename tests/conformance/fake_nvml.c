/* fake_nvml.c: a library with NVML's names that knows two devices: 1 is CUDA's device 0, 2 is another one.
 *
 * FAKE_NVML_TOTAL: bytes of each device (default 1000), of which six tenths are free. The calling process and process 1 use it; with
 * FAKE_NVML_SOFT, FAKE_NVML_HARD, FAKE_NVML_USED every cgroup has limits.
 */
#include "preload/abi_extra.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long long number(const char *name, unsigned long long otherwise)
{
    const char *v = getenv(name);
    return v && *v ? strtoull(v, NULL, 10) : otherwise;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t d, struct nvml_memory *m)
{
    (void)d;
    unsigned long long total = number("FAKE_NVML_TOTAL", 1000);
    *m = (struct nvml_memory){.total = total, .free = total / 10 * 6, .used = total - total / 10 * 6};
    return 0;
}

int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, struct nvml_memory_v2 *m)
{
    struct nvml_memory one;
    nvmlDeviceGetMemoryInfo(d, &one);
    *m = (struct nvml_memory_v2){.version = m->version, .total = one.total, .reserved = 1, .free = one.free, .used = one.used - 1};
    return 0;
}

#define LIST(sym, type)                                                                                                \
    int sym(nvmlDevice_t d, unsigned *n, struct type *list)                                                            \
    {                                                                                                                  \
        (void)d;                                                                                                       \
        if (*n < 2)                                                                                                    \
            return 7; /* the list is too short */                                                                      \
        *n = 2;                                                                                                        \
        list[0] = (struct type){.pid = 1, .used = 11};                                                                 \
        list[1] = (struct type){.pid = (unsigned)getpid(), .used = 22};                                                \
        return 0;                                                                                                      \
    }
LIST(nvmlDeviceGetComputeRunningProcesses, nvml_process_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvml_process_v1)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_process)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_process)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvml_process_v1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_process)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_process)

int nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t d, struct nvml_process_details *m)
{
    (void)d;
    if (m->n < 2)
        return 7;
    m->n = 2;
    m->list[0] = (struct nvml_process_detail){.pid = 1, .used = 11};
    m->list[1] = (struct nvml_process_detail){.pid = (unsigned)getpid(), .used = 22};
    return 0;
}

int nvmlDeviceGetUUID(nvmlDevice_t d, char *text, unsigned n);
int nvmlDeviceGetUUID(nvmlDevice_t d, char *text, unsigned n)
{
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    __typeof__(&cuDeviceGetUuid) get = lib ? (__typeof__(get))dlsym(lib, "cuDeviceGetUuid_v2") : NULL;
    CUuuid u;
    if (!get || get(&u, 0) != CUDA_SUCCESS)
        return 999;
    if (d != (nvmlDevice_t)1)
        u.bytes[0] ^= 1;
    const unsigned char *b = (const unsigned char *)u.bytes;
    snprintf(text, n, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
             b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    return 0;
}

/* ---- what remat itself asks, in a driver's place ------------------------------------------------------------------- */

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvmlDevice_t *d);
int nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t d, struct nvml_limits *l);

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvmlDevice_t *d)
{
    *d = (nvmlDevice_t)1;
    return pci && *pci ? 0 : 2;
}
int nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t d, struct nvml_limits *l)
{
    if (d != (nvmlDevice_t)1 || !l->cgroup || l->cgroup[0] != '/')
        return 2;
    l->soft = number("FAKE_NVML_SOFT", 0);
    l->hard = number("FAKE_NVML_HARD", ~0ull);
    l->used = number("FAKE_NVML_USED", 0);
    return 0;
}
