/* fake_nvml.c: a library with NVML's names that knows two devices: 1 is CUDA's device 0, 2 is another one.
 */
#include "preload/abi_extra.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int nvmlDeviceGetMemoryInfo(nvmlDevice_t d, struct nvml_memory *m)
{
    (void)d;
    *m = (struct nvml_memory){.total = 1000, .free = 600, .used = 400};
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
