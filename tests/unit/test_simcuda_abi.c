/*
 * Our declarations of the runtime's types against NVIDIA's header, where one is installed (else 77): every size and offset
 * that a program compiled with the real one relies on.
 */
#include <stdio.h>

#include "tests/simcuda/runtime/rt_abi.h"

#if __has_include(<driver_types.h>)
#define CU_UUID_HAS_BEEN_DEFINED
#include <driver_types.h>
#include <string.h>

static int failed;
#define SAME(what, a, b)                                                                     \
    do {                                                                                     \
        if ((size_t)(a) != (size_t)(b)) {                                                    \
            printf("%s: %zu here, %zu in the header\n", what, (size_t)(a), (size_t)(b));     \
            failed = 1;                                                                      \
        }                                                                                    \
    } while (0)
#define FIELD(ours, a, theirs, b) SAME(#theirs "." #b, offsetof(ours, a), offsetof(theirs, b))
#define PROP(name)                                                                  \
    FIELD(struct rt_device_prop, name, struct cudaDeviceProp, name);                \
    SAME("size of " #name, sizeof ((struct rt_device_prop *)0)->name, sizeof ((struct cudaDeviceProp *)0)->name)
#define ERROR_ROW(code, name) SAME(#name, code, name)

static void sizes(void)
{
    SAME("cudaDeviceProp", sizeof(struct rt_device_prop), sizeof(struct cudaDeviceProp));
    SAME("cudaPointerAttributes", sizeof(struct rt_pointer_attributes), sizeof(struct cudaPointerAttributes));
    SAME("cudaFuncAttributes", sizeof(struct rt_func_attributes), sizeof(struct cudaFuncAttributes));
    SAME("cudaLaunchConfig_t", sizeof(struct rt_launch_config), sizeof(cudaLaunchConfig_t));
    SAME("cudaLaunchAttribute", sizeof(CUlaunchAttribute), sizeof(cudaLaunchAttribute));
    SAME("cudaMemPoolProps", sizeof(CUmemPoolProps), sizeof(struct cudaMemPoolProps));
    SAME("cudaMemAccessDesc", sizeof(CUmemAccessDesc), sizeof(struct cudaMemAccessDesc));
    SAME("cudaGraphEdgeData", sizeof(CUgraphEdgeData), sizeof(cudaGraphEdgeData));
    SAME("cudaIpcMemHandle_t", sizeof(CUipcMemHandle), sizeof(cudaIpcMemHandle_t));
    SAME("dim3", sizeof(rt_dim3), sizeof(dim3));
}

static void fields(void)
{
    PROP(name); PROP(uuid); PROP(luid); PROP(luidDeviceNodeMask); PROP(totalGlobalMem); PROP(sharedMemPerBlock);
    PROP(regsPerBlock); PROP(warpSize); PROP(memPitch); PROP(maxThreadsPerBlock); PROP(maxThreadsDim); PROP(maxGridSize);
    PROP(totalConstMem); PROP(major); PROP(minor); PROP(textureAlignment); PROP(multiProcessorCount); PROP(canMapHostMemory);
    PROP(maxTexture2DLinear); PROP(maxTexture3DAlt); PROP(maxSurfaceCubemapLayered); PROP(surfaceAlignment);
    PROP(concurrentKernels); PROP(pciBusID); PROP(pciDomainID); PROP(asyncEngineCount); PROP(unifiedAddressing);
    PROP(l2CacheSize); PROP(maxThreadsPerMultiProcessor); PROP(sharedMemPerMultiprocessor); PROP(managedMemory);
    PROP(cooperativeLaunch); PROP(sharedMemPerBlockOptin); PROP(maxBlocksPerMultiProcessor); PROP(reservedSharedMemPerBlock);
    PROP(memoryPoolsSupported); PROP(gpuDirectRDMAFlushWritesOptions); PROP(memoryPoolSupportedHandleTypes);
    PROP(ipcEventSupported); PROP(clusterLaunch); PROP(hostNumaId); PROP(gpuPciSubsystemID); PROP(reserved);
    FIELD(struct rt_pointer_attributes, type, struct cudaPointerAttributes, type);
    FIELD(struct rt_pointer_attributes, device, struct cudaPointerAttributes, device);
    FIELD(struct rt_pointer_attributes, device_pointer, struct cudaPointerAttributes, devicePointer);
    FIELD(struct rt_pointer_attributes, host_pointer, struct cudaPointerAttributes, hostPointer);
    FIELD(struct rt_func_attributes, shared_bytes, struct cudaFuncAttributes, sharedSizeBytes);
    FIELD(struct rt_func_attributes, max_threads_per_block, struct cudaFuncAttributes, maxThreadsPerBlock);
    FIELD(struct rt_func_attributes, num_regs, struct cudaFuncAttributes, numRegs);
    FIELD(struct rt_func_attributes, binary_version, struct cudaFuncAttributes, binaryVersion);
    FIELD(struct rt_func_attributes, max_dynamic_shared_bytes, struct cudaFuncAttributes, maxDynamicSharedSizeBytes);
    FIELD(struct rt_func_attributes, carveout, struct cudaFuncAttributes, preferredShmemCarveout);
    FIELD(struct rt_func_attributes, cluster_policy, struct cudaFuncAttributes, clusterSchedulingPolicyPreference);
    FIELD(struct rt_func_attributes, non_portable_cluster, struct cudaFuncAttributes, nonPortableClusterSizeAllowed);
    FIELD(struct rt_launch_config, dynamic_shared_bytes, cudaLaunchConfig_t, dynamicSmemBytes);
    FIELD(struct rt_launch_config, stream, cudaLaunchConfig_t, stream);
    FIELD(struct rt_launch_config, attrs, cudaLaunchConfig_t, attrs);
    FIELD(struct rt_launch_config, n_attrs, cudaLaunchConfig_t, numAttrs);
    FIELD(CUlaunchAttribute, value, cudaLaunchAttribute, val);
}

static void values(void)
{
#define RT_ERROR(code, name, text) ERROR_ROW(code, name);
#include "tests/simcuda/runtime/rt_error.def"
    SAME("cudaMemcpyDefault", RT_COPY_DEFAULT, cudaMemcpyDefault);
    SAME("cudaMemcpyDeviceToHost", RT_DEVICE_TO_HOST, cudaMemcpyDeviceToHost);
    SAME("cudaMemoryTypeManaged", RT_MEMORY_MANAGED, cudaMemoryTypeManaged);
    SAME("cudaDevAttrMultiProcessorCount", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, cudaDevAttrMultiProcessorCount);
    SAME("cudaMemPoolAttrUsedMemHigh", CU_MEMPOOL_ATTR_USED_MEM_HIGH, cudaMemPoolAttrUsedMemHigh);
    SAME("cudaFuncAttributeMaxDynamicSharedMemorySize", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
         cudaFuncAttributeMaxDynamicSharedMemorySize);
    SAME("cudaStreamCaptureModeRelaxed", CU_STREAM_CAPTURE_MODE_RELAXED, cudaStreamCaptureModeRelaxed);
    SAME("cudaGraphMemAttrReservedMemHigh", CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, cudaGraphMemAttrReservedMemHigh);
    SAME("cudaGraphInstantiateFlagAutoFreeOnLaunch", CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
         cudaGraphInstantiateFlagAutoFreeOnLaunch);
}

int main(void)
{
    sizes();
    fields();
    values();
    if (!failed)
        printf("ok: as NVIDIA's header has it\n");
    return failed;
}
#else
int main(void)
{
    printf("no driver_types.h here\n");
    return 77;
}
#endif
