/* hook_nvml.c: NVML's memory queries answer with the limit: schedulers and libraries size themselves by them.
 *
 * NVML knows devices by its own handles; the answer changes only when the handle is the device of the caller's current
 * context, told by their UUIDs.
 */
#include "preload/door.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef int nvml_get_uuid(nvmlDevice_t, char *, unsigned);

/* "GPU-8f7e6d5c-..." of the current context's device. */
static bool current_uuid(char text[64])
{
    __typeof__(&cuCtxGetDevice) device = (__typeof__(device))door_driver_symbol("cuCtxGetDevice");
    __typeof__(&cuDeviceGetUuid) uuid = (__typeof__(uuid))door_driver_symbol("cuDeviceGetUuid_v2");
    CUdevice d;
    CUuuid u;
    if (!uuid)
        uuid = (__typeof__(uuid))door_driver_symbol("cuDeviceGetUuid");
    if (!device || !uuid || device(&d) != CUDA_SUCCESS || uuid(&u, d) != CUDA_SUCCESS)
        return false;
    char *to = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", (unsigned char)u.bytes[i]);
    return true;
}

/* The limit's view of handle `d`; false: NVML's own answer stands. Called with the door shut. */
static bool limited(nvmlDevice_t d, size_t *free_b, size_t *total_b)
{
    static _Atomic(void *) found;
    nvml_get_uuid *get = (nvml_get_uuid *)atomic_load(&found);
    if (!get) {
        Dl_info info;
        void *h = dladdr((void *)door_real.nvmlDeviceGetMemoryInfo, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                                                                           : NULL;
        get = h ? (nvml_get_uuid *)door_real_dlsym(h, "nvmlDeviceGetUUID") : NULL;
        atomic_store(&found, (void *)get);
    }
    char theirs[96] = "", ours[64];
    return get && get(d, theirs, sizeof theirs) == 0 && current_uuid(ours) && strcasecmp(theirs, ours) == 0 &&
           eng_mem_info(free_b, total_b) == CUDA_SUCCESS;
}

static bool limit_of(enum hook_id id, nvmlDevice_t d, size_t *free_b, size_t *total_b)
{
    int depth = door_enter(id, DOOR_OPEN);
    if (depth < 0)
        return false;
    bool yes = limited(d, free_b, total_b);
    door_leave(depth);
    return yes;
}

DOOR_PUBLIC int nvmlDeviceGetMemoryInfo(nvmlDevice_t d, struct nvml_memory *m)
{
    size_t free_b, total_b;
    door_resolve(DOOR_NVML);
    int r = door_real.nvmlDeviceGetMemoryInfo(d, m);
    if (!r && limit_of(HOOK_nvmlDeviceGetMemoryInfo, d, &free_b, &total_b))
        *m = (struct nvml_memory){.total = total_b, .free = free_b, .used = total_b - free_b};
    return r;
}
DOOR_ALIAS(nvmlDeviceGetMemoryInfo)

DOOR_PUBLIC int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, struct nvml_memory_v2 *m)
{
    size_t free_b, total_b;
    door_resolve(DOOR_NVML);
    int r = door_real.nvmlDeviceGetMemoryInfo_v2(d, m);
    if (!r && limit_of(HOOK_nvmlDeviceGetMemoryInfo_v2, d, &free_b, &total_b)) {
        /* what the driver keeps for itself is no part of the limit */
        m->total = total_b;
        m->reserved = 0;
        m->free = free_b;
        m->used = total_b - free_b;
    }
    return r;
}
DOOR_ALIAS(nvmlDeviceGetMemoryInfo_v2)
