/* driver.h: the real driver, as `policy` is handed it.
 *
 * One table of pointers to the driver's own entry points, filled by `preload` (which resolves them past its own
 * hooks) and by unit tests. Nothing in `policy` or `tracer` calls a cu* function in any other way. Pointers that the
 * installed driver lacks are NULL; DRV_REQUIRED ones never are once drv_complete() has answered true.
 *
 * Threads: filled once, read-only afterwards. Errors: the entries return CUresult, as the driver does.
 */
#ifndef REMAT_POLICY_DRIVER_H
#define REMAT_POLICY_DRIVER_H

#include "preload/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* DRV(name): the entry is declared with that very name in cuda_abi.h. */
#define DRV_REQUIRED(DRV)                                                                                              \
    DRV(cuCtxGetDevice) DRV(cuCtxGetCurrent) DRV(cuCtxSetCurrent) DRV(cuCtxSynchronize)                                \
    DRV(cuDeviceTotalMem_v2) DRV(cuMemGetInfo_v2)                                                                      \
    DRV(cuMemAddressReserve) DRV(cuMemAddressFree) DRV(cuMemCreate) DRV(cuMemRelease) DRV(cuMemMap) DRV(cuMemUnmap)    \
    DRV(cuMemSetAccess) DRV(cuMemGetAllocationGranularity)                                                             \
    DRV(cuMemHostAlloc) DRV(cuMemFreeHost) DRV(cuMemFree_v2)                                                           \
    DRV(cuMemAllocFromPoolAsync) DRV(cuMemAllocAsync) DRV(cuMemFreeAsync)                                              \
    DRV(cuMemcpyHtoD_v2) DRV(cuMemcpyDtoH_v2) DRV(cuMemcpyDtoD_v2)                                                     \
    DRV(cuMemcpyHtoDAsync_v2) DRV(cuMemcpyDtoHAsync_v2) DRV(cuMemcpyDtoDAsync_v2)                                      \
    DRV(cuMemsetD8Async) DRV(cuMemsetD16Async) DRV(cuMemsetD32Async)                                                   \
    DRV(cuMemsetD2D8Async) DRV(cuMemsetD2D16Async) DRV(cuMemsetD2D32Async)                                             \
    DRV(cuStreamCreate) DRV(cuStreamDestroy_v2) DRV(cuStreamSynchronize) DRV(cuStreamQuery) DRV(cuStreamWaitEvent)     \
    DRV(cuEventCreate) DRV(cuEventDestroy_v2) DRV(cuEventRecord) DRV(cuEventQuery) DRV(cuEventSynchronize)             \
    DRV(cuLaunchKernel) DRV(cuModuleLoadData) DRV(cuModuleGetFunction) DRV(cuPointerGetAttribute)
#define DRV_OPTIONAL(DRV)                                                                                              \
    DRV(cuLaunchKernelEx) DRV(cuFuncGetParamInfo) DRV(cuKernelGetParamInfo) DRV(cuFuncGetName) DRV(cuKernelGetName)    \
    DRV(cuModuleLoad) DRV(cuEventElapsedTime) DRV(cuGetErrorName) DRV(cuDriverGetVersion)                                   \
    DRV(cuDeviceGetUuid) DRV(cuDeviceGetUuid_v2) DRV(cuDeviceGetMemPool) DRV(cuDeviceGetPCIBusId) DRV(cuDeviceGetCount)                \
    DRV(cuFuncGetModule) DRV(cuKernelGetLibrary) DRV(cuLibraryGetModule)                                              \
    DRV(cuDeviceGetAttribute) DRV(cuStreamGetCtx) DRV(cuStreamGetCtx_v2) DRV(cuStreamIsCapturing) DRV(cuMemPoolGetAttribute) DRV(cuDevicePrimaryCtxGetState)  \
    DRV(cuMemPoolTrimTo) DRV(cuDeviceGraphMemTrim)                                                                                       \
    DRV(cuDeviceGetGraphMemAttribute) DRV(cuFuncGetAttribute) DRV(cuFuncSetAttribute) DRV(cuKernelGetAttribute)                        \
    DRV(cuKernelSetAttribute) DRV(cuThreadExchangeStreamCaptureMode) DRV(cuStreamGetCaptureInfo)

struct drv {
#define DRV_FIELD(name) __typeof__(&name) name;
    DRV_REQUIRED(DRV_FIELD)
    DRV_OPTIONAL(DRV_FIELD)
#undef DRV_FIELD
    /* NVML's, not the driver's: the memory limits for the cgroup at this path, on the device of this PCI address. hard
     * UINT64_MAX, soft 0: none. 0, or a negative errno: nothing is known. NULL: NVML cannot be asked. */
    int (*nvml_limits)(const char *pci, const char *cgroup, uint64_t *soft_bytes, uint64_t *hard_bytes, uint64_t *used_bytes);
};

/* True when every DRV_REQUIRED entry is there; else *missing names the first that is not. */
static inline bool drv_complete(const struct drv *d, const char **missing)
{
#define DRV_TEST(name)                                                                                                 \
    if (!d->name) {                                                                                                    \
        *missing = #name;                                                                                              \
        return false;                                                                                                  \
    }
    DRV_REQUIRED(DRV_TEST)
#undef DRV_TEST
    return true;
}

#endif
