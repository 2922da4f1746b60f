/*
 * libnvidia-ml.so.1 of the simulated GPU: what programs ask NVML of memory, processes and names. PyTorch asks it when it maps segments that grow
 * (expandable_segments) and for its out-of-memory messages, and has no other way where it is missing.
 *
 * It reads the driver's settings from the environment as the driver does, and asks the driver that is in the process, if one is, how much memory is left: what
 * other processes hold is not seen, but through SIMGPU_SHARED. Memory, power, clocks and links that the device has not are answered with "not supported".
 *
 * Threads: any; nvmlInit_v2 reads the settings, once.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "preload/abi_extra.h"
#include "tests/simgpu/gpu.h"

enum { NVML_OK = 0, NVML_UNINITIALIZED = 1, NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6, NVML_INSUFFICIENT_SIZE = 7, NVML_UNKNOWN = 999 };
enum { CUDA_VERSION_SAID = 13000 };

#define NVML_EXPORT __attribute__((visibility("default")))
/* Declared where it is defined: no header of ours has NVML's calls but those that remat stands in front of. */
#define NVML(name, params) NVML_EXPORT int name params; NVML_EXPORT int name params

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static bool is_read;

static int begin(void)
{
    pthread_mutex_lock(&lock);
    int r = is_read || gpu_config_read() == CUDA_SUCCESS ? NVML_OK : NVML_UNKNOWN;
    is_read |= r == NVML_OK;
    users += r == NVML_OK;
    pthread_mutex_unlock(&lock);
    return r;
}

/* Devices are numbers from 1 on, as handles. */
static int number_of(nvmlDevice_t d) { return (int)(uintptr_t)d - 1; }
static int check(nvmlDevice_t d)
{
    return !users ? NVML_UNINITIALIZED : number_of(d) < 0 || number_of(d) >= gpu_cfg.n_devices ? NVML_INVALID_ARGUMENT : NVML_OK;
}

static int handle(int number, nvmlDevice_t *d)
{
    if (!users || !d)
        return users ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
    if (number < 0 || number >= gpu_cfg.n_devices)
        return NVML_NOT_FOUND;
    *d = (nvmlDevice_t)(uintptr_t)(number + 1);
    return NVML_OK;
}

static int text(char *out, unsigned room, const char *from)
{
    if (!out || strlen(from) >= room)
        return out ? NVML_INSUFFICIENT_SIZE : NVML_INVALID_ARGUMENT;
    strcpy(out, from);
    return NVML_OK;
}

static void uuid_text(int number, char out[64])
{
    char bytes[16] = "simulated GPU 0", *to = out + sprintf(out, "GPU-");
    bytes[14] = (char)('0' + number);
    for (int i = 0; i < 16; i++)
        to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", (unsigned char)bytes[i]);
}

/* What is left of the device, as the driver in this process sees it; all of it where there is none. */
static unsigned long long room(int number)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    uint64_t (*ask)(CUdevice) = (uint64_t (*)(CUdevice))(driver ? dlsym(driver, "simgpu_memory_room") : NULL);
    unsigned long long left = ask ? ask(number) : gpu_cfg.mem_bytes;
    if (driver)
        dlclose(driver);
    return left < gpu_cfg.mem_bytes ? left : gpu_cfg.mem_bytes;
}

NVML(nvmlInit_v2, (void)) { return begin(); }
NVML(nvmlInit, (void)) { return begin(); }
NVML(nvmlInitWithFlags, (unsigned flags)) { return (void)flags, begin(); }
NVML(nvmlShutdown, (void))
{
    pthread_mutex_lock(&lock);
    int r = users ? NVML_OK : NVML_UNINITIALIZED;
    users -= users > 0;
    pthread_mutex_unlock(&lock);
    return r;
}

NVML_EXPORT const char *nvmlErrorString(int r);
NVML_EXPORT const char *nvmlErrorString(int r)
{
    return r == NVML_OK                ? "The operation was successful"
           : r == NVML_UNINITIALIZED     ? "NVML was not first initialized with nvmlInit()"
           : r == NVML_INVALID_ARGUMENT  ? "A supplied argument is invalid"
           : r == NVML_NOT_SUPPORTED     ? "The requested operation is not available on the simulated device"
           : r == NVML_NOT_FOUND         ? "A query to find an object was unsuccessful"
           : r == NVML_INSUFFICIENT_SIZE ? "An input argument is not large enough"
                                         : "An internal driver error occurred";
}

NVML(nvmlSystemGetDriverVersion, (char *out, unsigned n)) { return text(out, n, "580.00 (simulated)"); }
NVML(nvmlSystemGetNVMLVersion, (char *out, unsigned n)) { return text(out, n, "13.580.00"); }
NVML(nvmlSystemGetCudaDriverVersion, (int *v)) { return v ? *v = CUDA_VERSION_SAID, NVML_OK : NVML_INVALID_ARGUMENT; }
NVML(nvmlSystemGetCudaDriverVersion_v2, (int *v)) { return v ? *v = CUDA_VERSION_SAID, NVML_OK : NVML_INVALID_ARGUMENT; }

NVML(nvmlDeviceGetCount_v2, (unsigned *n)) { return !users ? NVML_UNINITIALIZED : !n ? NVML_INVALID_ARGUMENT : (*n = (unsigned)gpu_cfg.n_devices, NVML_OK); }
NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned i, nvmlDevice_t *d)) { return handle((int)i, d); }
NVML(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *d))
{
    char known[64];
    for (int i = 0; users && uuid && i < gpu_cfg.n_devices; i++) {
        uuid_text(i, known);
        if (!strcasecmp(uuid, known))
            return handle(i, d);
    }
    return !users ? NVML_UNINITIALIZED : uuid ? NVML_NOT_FOUND : NVML_INVALID_ARGUMENT;
}
/* "0000:01:00.0", with four digits of the domain or eight */
NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, nvmlDevice_t *d))
{
    unsigned domain, bus, slot;
    if (!users || !id || !d)
        return users ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
    return sscanf(id, "%x:%x:%x", &domain, &bus, &slot) == 3 && !domain && !slot && bus ? handle((int)bus - 1, d) : NVML_NOT_FOUND;
}

NVML(nvmlDeviceGetIndex, (nvmlDevice_t d, unsigned *i)) { return check(d) ? check(d) : i ? (*i = (unsigned)number_of(d), NVML_OK) : NVML_INVALID_ARGUMENT; }
NVML(nvmlDeviceGetName, (nvmlDevice_t d, char *out, unsigned n)) { return check(d) ? check(d) : text(out, n, "Simulated GPU"); }
NVML(nvmlDeviceGetUUID, (nvmlDevice_t d, char *out, unsigned n))
{
    char known[64];
    if (check(d))
        return check(d);
    uuid_text(number_of(d), known);
    return text(out, n, known);
}

NVML(nvmlDeviceGetMemoryInfo, (nvmlDevice_t d, struct nvml_memory *m))
{
    if (check(d) || !m)
        return m ? check(d) : NVML_INVALID_ARGUMENT;
    m->total = gpu_cfg.mem_bytes;
    m->free = room(number_of(d));
    m->used = m->total - m->free;
    return NVML_OK;
}
NVML(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t d, struct nvml_memory_v2 *m))
{
    struct nvml_memory one;
    int r = m ? nvmlDeviceGetMemoryInfo(d, &one) : NVML_INVALID_ARGUMENT;
    if (r == NVML_OK)
        *m = (struct nvml_memory_v2){.version = m->version, .total = one.total, .free = one.free, .used = one.used};
    return r;
}

/* This process, where it holds memory. */
#define LIST(sym, type)                                                                                                \
    NVML(sym, (nvmlDevice_t d, unsigned *n, struct type *list))                                                        \
    {                                                                                                                  \
        if (check(d) || !n)                                                                                            \
            return n ? check(d) : NVML_INVALID_ARGUMENT;                                                               \
        unsigned long long used = gpu_cfg.mem_bytes - room(number_of(d));                                              \
        unsigned have = *n;                                                                                            \
        *n = used > 0;                                                                                                 \
        if (!used)                                                                                                     \
            return NVML_OK;                                                                                            \
        if (have < 1 || !list)                                                                                         \
            return NVML_INSUFFICIENT_SIZE;                                                                             \
        list[0] = (struct type){.pid = (unsigned)getpid(), .used = used};                                              \
        return NVML_OK;                                                                                                \
    }
LIST(nvmlDeviceGetComputeRunningProcesses, nvml_process_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process)

struct utilization {
    unsigned gpu, memory; /* per cent */
};
NVML(nvmlDeviceGetUtilizationRates, (nvmlDevice_t d, struct utilization *u))
{
    return check(d) ? check(d) : u ? (*u = (struct utilization){0, 0}, NVML_OK) : NVML_INVALID_ARGUMENT;
}

/* Graphics, links to other devices, power, temperature and clocks. */
#define NOT_SUPPORTED(sym) NVML(sym, (nvmlDevice_t d)) { return check(d) ? check(d) : NVML_NOT_SUPPORTED; }
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
NOT_SUPPORTED(nvmlDeviceGetGpuFabricInfoV)
NOT_SUPPORTED(nvmlDeviceGetTemperature)
NOT_SUPPORTED(nvmlDeviceGetPowerUsage)
NOT_SUPPORTED(nvmlDeviceGetClockInfo)
