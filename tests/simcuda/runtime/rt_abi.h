/*
 * Types of the CUDA runtime API (version 13) as its binary interface lays them out on 64-bit Linux: those that the calls in
 * this folder take. Our own declarations, so that building needs no toolkit; tests/test_simcuda_abi.c compares them with
 * NVIDIA's header wherever one is installed. Enumerations are plain ints; handles are the driver's. No code, no state.
 */
#ifndef SIMCUDA_RT_ABI_H
#define SIMCUDA_RT_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "preload/cuda_abi.h"
#include "tests/simgpu/abi_graph.h"

typedef struct { unsigned x, y, z; } rt_dim3;

/* cudaError_t: every code that a CUresult may become has the same number */
enum {
    RT_SUCCESS = 0,
    RT_INVALID_VALUE = 1,
    RT_MEMORY_ALLOCATION = 2,
    RT_INITIALIZATION_ERROR = 3,
    RT_INVALID_CONFIGURATION = 9,
    RT_INVALID_PITCH = 12,
    RT_INVALID_SYMBOL = 13,
    RT_INVALID_MEMCPY_DIRECTION = 21,
    RT_INSUFFICIENT_DRIVER = 35,
    RT_MISSING_CONFIGURATION = 52,
    RT_INVALID_DEVICE_FUNCTION = 98,
    RT_NO_DEVICE = 100,
    RT_INVALID_DEVICE = 101,
    RT_INVALID_RESOURCE_HANDLE = 400,
    RT_SYMBOL_NOT_FOUND = 500,
    RT_NOT_READY = 600,
    RT_NOT_SUPPORTED = 801,
};

enum { RT_HOST_TO_HOST, RT_HOST_TO_DEVICE, RT_DEVICE_TO_HOST, RT_DEVICE_TO_DEVICE, RT_COPY_DEFAULT };
enum { RT_MEMORY_UNREGISTERED, RT_MEMORY_HOST, RT_MEMORY_DEVICE, RT_MEMORY_MANAGED };

struct rt_pointer_attributes {
    int type, device;
    void *device_pointer, *host_pointer;
    long reserved[8];
};

struct rt_func_attributes {
    size_t shared_bytes, const_bytes, local_bytes;
    int max_threads_per_block, num_regs, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared_bytes, carveout,
        cluster_dim_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, non_portable_cluster;
    int reserved[16];
};

struct rt_launch_config {
    rt_dim3 grid, block;
    size_t dynamic_shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attrs;
    unsigned n_attrs;
};

/* cudaDeviceProp. The names are those of the header: tests/test_simcuda_abi.c compares field by field. */
struct rt_device_prop {
    char name[256];
    CUuuid uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int multiProcessorCount, integrated, canMapHostMemory;
    int maxTexture1D, maxTexture1DMipmap, maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3],
        maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2],
        maxTexture2DLayered[3], maxTextureCubemapLayered[2];
    int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap,
        maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing,
        memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
        globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported,
        pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
        cooperativeLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor,
        accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported,
        memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers, deviceNumaConfig,
        deviceNumaId, mpsEnabled, hostNumaId;
    unsigned gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported, reserved[56];
};

#endif
