/* hook_nvml.c: NVML's answers about memory agree with the limit: schedulers and libraries size themselves by them, and so does
 * nvidia-smi when it runs under the limit.
 *
 * NVML knows devices by its own handles; the UUID tells which of CUDA's devices a handle means. A device that the process cannot see
 * (CUDA_VISIBLE_DEVICES) keeps NVML's own answer; before cuInit any device may be the one that will be used, so all have the limit.
 * Answers left alone: the aperture that nvmlDeviceGetBAR1MemoryInfo tells of (a window of addresses, no memory), and other processes'
 * use.
 */
#include "policy/answers.h"
#include "preload/door.h"
#include "preload/libc_dlsym.h"
#include "tracer/loader.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { NVML_SUCCESS = 0, UUID_TEXT = 96, MAX_DEVICES = 64 };

/* ---- the device of a handle ------------------------------------------------------------------------------------------------------- */

static void uuid_text(const CUuuid *u, char text[UUID_TEXT])
{
    char *to = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", (unsigned char)u->bytes[i]);
}

/* NVML's own function, by its name: some functions that are used here have no door. */
static void *nvml_symbol(const char *name)
{
    Dl_info info;
    void *h = loader_address((void *)door_real.nvmlDeviceGetMemoryInfo, &info) ? loader_open(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return h ? libc_dlsym(h, name) : NULL;
}

/* The CUDA device that NVML calls `d`; ENG_DEVICE_UNKNOWN before cuInit; -1: no device of this process's. Called with the door shut. */
static int device_of(nvmlDevice_t d)
{
    static _Atomic(void *) found;
    typedef int get_uuid(nvmlDevice_t, char *, unsigned);
    get_uuid *get = (get_uuid *)atomic_load(&found);
    if (!get) {
        get = (get_uuid *)nvml_symbol("nvmlDeviceGetUUID");
        atomic_store(&found, (void *)get);
    }
    __typeof__(&cuDeviceGetCount) count = (__typeof__(count))provider_driver_symbol("cuDeviceGetCount");
    __typeof__(&cuDeviceGetUuid) uuid = (__typeof__(uuid))provider_driver_symbol("cuDeviceGetUuid_v2");
    char theirs[UUID_TEXT] = "", ours[UUID_TEXT];
    int n = 0;
    if (!uuid)
        uuid = (__typeof__(uuid))provider_driver_symbol("cuDeviceGetUuid");
    if (!count || !uuid || count(&n) != CUDA_SUCCESS)
        return ENG_DEVICE_UNKNOWN;
    if (!get || get(d, theirs, sizeof theirs) != NVML_SUCCESS)
        return -1;
    for (CUdevice dev = 0; dev < n && dev < MAX_DEVICES; dev++) {
        CUuuid u;
        if (uuid(&u, dev) != CUDA_SUCCESS)
            continue;
        uuid_text(&u, ours);
        if (!strcasecmp(ours, theirs))
            return dev;
    }
    return -1;
}

/* Turns *m, the device's memory as the machine tells it, into what this process is told; false: *m stands. */
static bool within_limit(enum hook_id id, nvmlDevice_t d, struct eng_memory *m)
{
    if (door_disabled() || door_depth > DOOR_OPEN)
        return false;
    int depth = door_enter(id, DOOR_OPEN); /* -1: the engine is not active; asking NVML does not start it */
    int before = door_depth;
    door_depth = DOOR_SHUT;
    int dev = device_of(d);
    bool yes = dev != -1 && eng_device_memory(dev, m);
    door_depth = before;
    if (depth >= 0)
        door_leave(depth, SWEEP_ALL);
    return yes;
}

/* Makes NVML's own call, with the doors shut: questions that NVML asks itself through them are answered by the machine. */
#define NVML_REAL(r, call)                                                                                                    \
    do {                                                                                                                      \
        int real_depth_ = door_depth;                                                                                         \
        door_depth = DOOR_SHUT;                                                                                               \
        r = door_real.call;                                                                                                   \
        door_depth = real_depth_;                                                                                             \
    } while (0)

/* ---- memory ------------------------------------------------------------------------------------------------------------------ */

DOOR_PUBLIC int nvmlDeviceGetMemoryInfo(nvmlDevice_t d, struct nvml_memory *m)
{
    provider_resolve(DOOR_NVML);
    int r;
    NVML_REAL(r, nvmlDeviceGetMemoryInfo(d, m));
    if (r)
        return r;
    struct eng_memory e = {.total_bytes = m->total, .free_bytes = m->free};
    if (within_limit(HOOK_nvmlDeviceGetMemoryInfo, d, &e))
        *m = (struct nvml_memory){.total = e.total_bytes, .free = e.free_bytes, .used = e.total_bytes - e.free_bytes};
    return r;
}
DOOR_ALIAS(nvmlDeviceGetMemoryInfo)

DOOR_PUBLIC int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, struct nvml_memory_v2 *m)
{
    provider_resolve(DOOR_NVML);
    int r;
    NVML_REAL(r, nvmlDeviceGetMemoryInfo_v2(d, m));
    if (r)
        return r;
    struct eng_memory e = {.total_bytes = m->total, .free_bytes = m->free};
    if (within_limit(HOOK_nvmlDeviceGetMemoryInfo_v2, d, &e)) {
        /* memory that the driver keeps for itself is no part of the limit */
        m->total = e.total_bytes;
        m->reserved = 0;
        m->free = e.free_bytes;
        m->used = e.total_bytes - e.free_bytes;
    }
    return r;
}
DOOR_ALIAS(nvmlDeviceGetMemoryInfo_v2)

/* ---- processes --------------------------------------------------------------------------------------------------------------- */

/* The bytes that this process uses, as nvmlDeviceGetMemoryInfo tells them: the list must not say more than the whole. Evicted tensors count as used for their owner. False:
 * NVML's own figure stands. */
static bool own_use(enum hook_id id, nvmlDevice_t d, unsigned long long *bytes)
{
    struct nvml_memory m;
    int r;
    NVML_REAL(r, nvmlDeviceGetMemoryInfo(d, &m));
    if (r != NVML_SUCCESS)
        return false;
    struct eng_memory e = {.total_bytes = m.total, .free_bytes = m.free};
    if (!within_limit(id, d, &e) || !e.is_set_up)
        return false;
    *bytes = e.held_bytes;
    return true;
}

#define NVML_LIST(sym, type)                                                                                                  \
    DOOR_PUBLIC int sym(nvmlDevice_t d, unsigned *n, struct type *list)                                                       \
    {                                                                                                                         \
        unsigned long long used;                                                                                              \
        provider_resolve(DOOR_NVML);                                                                                              \
        int r;                                                                                                                \
        NVML_REAL(r, sym(d, n, list));                                                                                        \
        for (unsigned i = 0; !r && list && n && i < *n; i++)                                                                  \
            if (list[i].pid == (unsigned)getpid() && own_use(HOOK_##sym, d, &used))                                           \
                list[i].used = used;                                                                                          \
        return r;                                                                                                             \
    }                                                                                                                         \
    DOOR_ALIAS(sym)

NVML_LIST(nvmlDeviceGetComputeRunningProcesses, nvml_process_v1)
NVML_LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process)
NVML_LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process)
NVML_LIST(nvmlDeviceGetGraphicsRunningProcesses, nvml_process_v1)
NVML_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_process)
NVML_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_process)
NVML_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvml_process_v1)
NVML_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_process)
NVML_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_process)

DOOR_PUBLIC int nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t d, struct nvml_process_details *m)
{
    unsigned long long used;
    provider_resolve(DOOR_NVML);
    int r;
    NVML_REAL(r, nvmlDeviceGetRunningProcessDetailList(d, m));
    for (unsigned i = 0; !r && m && m->list && i < m->n; i++)
        if (m->list[i].pid == (unsigned)getpid() && own_use(HOOK_nvmlDeviceGetRunningProcessDetailList, d, &used))
            m->list[i].used = used;
    return r;
}
DOOR_ALIAS(nvmlDeviceGetRunningProcessDetailList)
