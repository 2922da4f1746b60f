/*
 * Devices: how many, which, what they can do; versions; the profiler's switch.
 */
#include <string.h>

#include "tests/simcuda/runtime/rt.h"

RT_EXPORT int cudaGetDeviceCount(int *count)
{
    if (!count)
        return rt_done(RT_INVALID_VALUE);
    *count = 0;
    int e = rt_init();
    if (e)
        return rt_done(e);
    *count = rt_device_count();
    return rt_done(*count ? RT_SUCCESS : RT_NO_DEVICE);
}

/* The most frequent call of all: thousands an iteration. A read of a thread-local variable. */
RT_EXPORT int cudaGetDevice(int *device)
{
    if (!device)
        return rt_done(RT_INVALID_VALUE);
    int e = rt_init();
    if (e)
        return rt_done(e);
    *device = rt_current_device();
    return RT_SUCCESS;
}

RT_EXPORT int cudaSetDevice(int device)
{
    return rt_done(rt_set_device(device));
}

RT_EXPORT int cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
    (void)device_flags;
    CUcontext ctx;
    return rt_done(flags > 1 ? RT_INVALID_VALUE : rt_context(device, &ctx));
}

RT_EXPORT int cudaDeviceSynchronize(void)
{
    RT_DO(cuCtxSynchronize());
}

RT_EXPORT int cudaDeviceReset(void)
{
    int e = rt_use();
    if (e)
        return rt_done(e);
    CUresult r = rt_drv.cuDevicePrimaryCtxReset_v2(rt_current_device());
    rt_forget_contexts();
    return rt_result(r);
}

RT_EXPORT int cudaSetDeviceFlags(unsigned flags)
{
    int e = rt_init();
    return rt_done(e ? e : (int)rt_drv.cuDevicePrimaryCtxSetFlags_v2(rt_current_device(), flags));
}

RT_EXPORT int cudaGetDeviceFlags(unsigned *flags)
{
    int e = rt_init(), active;
    return rt_done(e ? e : (int)rt_drv.cuDevicePrimaryCtxGetState(rt_current_device(), flags, &active));
}

RT_EXPORT int cudaDriverGetVersion(int *version)
{
    if (!version)
        return rt_done(RT_INVALID_VALUE);
    *version = 0; /* no driver: no error, but version 0 */
    return rt_done(rt_init() ? RT_SUCCESS : (int)rt_drv.cuDriverGetVersion(version));
}

RT_EXPORT int cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return rt_done(RT_INVALID_VALUE);
    *version = RT_VERSION;
    return RT_SUCCESS;
}

RT_EXPORT int cudaDeviceGetAttribute(int *value, int attr, int device)
{
    int e = rt_init();
    return rt_done(e ? e : (int)rt_drv.cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device));
}

RT_EXPORT int cudaDeviceGetPCIBusId(char *out, int room, int device)
{
    int e = rt_init();
    return rt_done(e ? e : (int)rt_drv.cuDeviceGetPCIBusId(out, room, device));
}

RT_EXPORT int cudaDeviceGetByPCIBusId(int *device, const char *id)
{
    int e = rt_init();
    return rt_done(e ? e : (int)rt_drv.cuDeviceGetByPCIBusId(device, id));
}

RT_EXPORT int cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    int e = rt_init();
    return rt_done(e ? e : (int)rt_drv.cuDeviceCanAccessPeer(can, device, peer));
}

RT_EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    CUcontext ctx;
    int e = rt_context(peer, &ctx);
    if (e)
        return rt_done(e);
    RT_DO(cuCtxEnablePeerAccess(ctx, flags));
}

RT_EXPORT int cudaDeviceDisablePeerAccess(int peer)
{
    CUcontext ctx;
    int e = rt_context(peer, &ctx);
    if (e)
        return rt_done(e);
    RT_DO(cuCtxDisablePeerAccess(ctx));
}

RT_EXPORT int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    RT_DO(cuCtxGetStreamPriorityRange(least, greatest));
}

RT_EXPORT int cudaDeviceGetLimit(size_t *value, int which)
{
    RT_DO(cuCtxGetLimit(value, (CUlimit)which));
}

RT_EXPORT int cudaDeviceSetLimit(int which, size_t value)
{
    RT_DO(cuCtxSetLimit((CUlimit)which, value));
}

RT_EXPORT int cudaProfilerStart(void)
{
    RT_DO(cuProfilerStart());
}

RT_EXPORT int cudaProfilerStop(void)
{
    RT_DO(cuProfilerStop());
}

/* Fields of cudaDeviceProp that are device attributes: field, attribute. */
#define PROPS(X)                                                                       \
    X(regsPerBlock, MAX_REGISTERS_PER_BLOCK)                                           \
    X(warpSize, WARP_SIZE)                                                             \
    X(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)                                       \
    X(maxThreadsDim[0], MAX_BLOCK_DIM_X)                                               \
    X(maxThreadsDim[1], MAX_BLOCK_DIM_Y)                                               \
    X(maxThreadsDim[2], MAX_BLOCK_DIM_Z)                                               \
    X(maxGridSize[0], MAX_GRID_DIM_X)                                                  \
    X(maxGridSize[1], MAX_GRID_DIM_Y)                                                  \
    X(maxGridSize[2], MAX_GRID_DIM_Z)                                                  \
    X(major, COMPUTE_CAPABILITY_MAJOR)                                                 \
    X(minor, COMPUTE_CAPABILITY_MINOR)                                                 \
    X(multiProcessorCount, MULTIPROCESSOR_COUNT)                                       \
    X(integrated, INTEGRATED)                                                          \
    X(canMapHostMemory, CAN_MAP_HOST_MEMORY)                                           \
    X(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH)                                           \
    X(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH)                                        \
    X(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT)                                       \
    X(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH)                                        \
    X(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT)                                       \
    X(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH)                                        \
    X(concurrentKernels, CONCURRENT_KERNELS)                                           \
    X(ECCEnabled, ECC_ENABLED)                                                         \
    X(pciBusID, PCI_BUS_ID)                                                            \
    X(pciDeviceID, PCI_DEVICE_ID)                                                      \
    X(pciDomainID, PCI_DOMAIN_ID)                                                      \
    X(tccDriver, TCC_DRIVER)                                                           \
    X(asyncEngineCount, ASYNC_ENGINE_COUNT)                                            \
    X(unifiedAddressing, UNIFIED_ADDRESSING)                                           \
    X(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH)                                         \
    X(l2CacheSize, L2_CACHE_SIZE)                                                      \
    X(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE)                          \
    X(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)                     \
    X(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)                          \
    X(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED)                               \
    X(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED)                                 \
    X(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)                         \
    X(managedMemory, MANAGED_MEMORY)                                                   \
    X(isMultiGpuBoard, MULTI_GPU_BOARD)                                                \
    X(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID)                                  \
    X(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED)                         \
    X(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS)                                    \
    X(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)                              \
    X(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED)                        \
    X(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)      \
    X(cooperativeLaunch, COOPERATIVE_LAUNCH)                                           \
    X(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) \
    X(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST)             \
    X(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR)                       \
    X(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE)                        \
    X(hostRegisterSupported, HOST_REGISTER_SUPPORTED)                                  \
    X(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED)                           \
    X(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED)                \
    X(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED)         \
    X(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)                                    \
    X(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED)                               \
    X(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)        \
    X(ipcEventSupported, IPC_EVENT_SUPPORTED)                                          \
    X(clusterLaunch, CLUSTER_LAUNCH)                                                   \
    X(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS)                              \
    X(deviceNumaConfig, NUMA_CONFIG)                                                   \
    X(deviceNumaId, NUMA_ID)                                                           \
    X(mpsEnabled, MPS_ENABLED)                                                         \
    X(hostNumaId, HOST_NUMA_ID)

/* The same for fields of type size_t and unsigned. */
#define WIDE_PROPS(X)                                                  \
    X(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)                  \
    X(memPitch, MAX_PITCH)                                             \
    X(totalConstMem, TOTAL_CONSTANT_MEMORY)                            \
    X(textureAlignment, TEXTURE_ALIGNMENT)                             \
    X(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT)                  \
    X(surfaceAlignment, SURFACE_ALIGNMENT)                             \
    X(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) \
    X(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)       \
    X(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)     \
    X(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES)  \
    X(gpuPciDeviceID, GPU_PCI_DEVICE_ID)

RT_EXPORT int cudaGetDeviceProperties(struct rt_device_prop *p, int device)
{
    if (!p)
        return rt_done(RT_INVALID_VALUE);
    int e = rt_init(), value;
    if (e)
        return rt_done(e);
    memset(p, 0, sizeof *p);
    e = (int)rt_drv.cuDeviceGetName(p->name, sizeof p->name, device);
    if (!e)
        e = (int)rt_drv.cuDeviceGetUuid_v2(&p->uuid, device);
    if (!e)
        e = (int)rt_drv.cuDeviceTotalMem_v2(&p->totalGlobalMem, device);
#define ASK(field, attribute, type)                                                              \
    if (!e)                                                                                      \
        e = (int)rt_drv.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_##attribute, device);   \
    if (!e)                                                                                      \
        p->field = (type)value;
#define ASK_INT(field, attribute) ASK(field, attribute, int)
#define ASK_WIDE(field, attribute) ASK(field, attribute, unsigned)
    PROPS(ASK_INT)
    WIDE_PROPS(ASK_WIDE)
    return rt_done(e);
}

/* ---- the way to driver calls that the runtime has no name for ----------------------------------------------------------- */

RT_EXPORT int cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags,
                                               CUdriverProcAddressQueryResult *status)
{
    if (!name || !out || flags > 2)
        return rt_done(RT_INVALID_VALUE);
    int e = rt_init();
    if (e)
        return rt_done(e);
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult r = rt_drv.cuGetProcAddress_v2(name, out, (int)version, flags, &found);
    if (r == CUDA_ERROR_NOT_FOUND && status)
        r = CUDA_SUCCESS; /* the status says it */
    if (status)
        *status = found;
    return rt_result(r);
}

RT_EXPORT int cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags,
                                      CUdriverProcAddressQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(name, out, RT_VERSION, flags, status);
}
