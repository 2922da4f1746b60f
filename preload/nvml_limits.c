/* nvml_limits.c: see nvml_limits.h. */
#include "preload/nvml_limits.h"

#include "preload/abi_extra.h"
#include "preload/libc_dlsym.h"
#include "tracer/loader.h"

#include <errno.h>

enum { NVML_SUCCESS = 0 };

int nvml_limits(const char *pci, const char *cgroup, uint64_t *soft_bytes, uint64_t *hard_bytes, uint64_t *used_bytes)
{
    typedef int start_or_stop(void);
    typedef int handle_of(const char *, nvmlDevice_t *);
    typedef int limits_of(nvmlDevice_t, struct nvml_limits *);
    void *h = loader_open("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!h)
        return -ENOENT;
    start_or_stop *start = (start_or_stop *)libc_dlsym(h, "nvmlInit_v2");
    start_or_stop *stop = (start_or_stop *)libc_dlsym(h, "nvmlShutdown");
    handle_of *handle = (handle_of *)libc_dlsym(h, "nvmlDeviceGetHandleByPciBusId_v2");
    limits_of *limits = (limits_of *)libc_dlsym(h, "nvmlDeviceGetMemoryLimits_v1"); /* CUDA 13.4 */
    int rc = -ENOSYS;
    /* an older NVML knows of no limits, and is not started; NVML counts its users, so the program's own use goes on after stop() */
    if (start && stop && handle && limits && start() == NVML_SUCCESS) {
        nvmlDevice_t d;
        struct nvml_limits l = {.cgroup = cgroup};
        if (handle(pci, &d) == NVML_SUCCESS && limits(d, &l) == NVML_SUCCESS) {
            *soft_bytes = l.soft;
            *hard_bytes = l.hard;
            *used_bytes = l.used;
            rc = 0;
        }
        stop();
    }
    loader_close(h);
    return rc;
}
