/*
 * The CUDA driver API, as far as this project calls, hooks or simulates it (interface of CUDA 13.0, with the
 * superseded variants older programs link to).
 *
 * What this is: declarations of the exported symbols under their exact names. No macro renames anything:
 * cuMemAlloc_v2 is written cuMemAlloc_v2, and a name without suffix is the oldest variant of that call.
 * CUDA_ABI_BOTH(f, _ptsz, args) declares two symbols of one type: f, for which stream 0 is the legacy
 * stream, and f_ptsz (f_ptds for calls without a stream argument), for which it is the calling thread's.
 * To get a pointer type use __typeof__(f) *.
 *
 * Threads: the driver's calls may be made by any thread; a context is current per thread. Errors: every call
 * returns a CUresult, CUDA_SUCCESS (0) or a code; errors of earlier asynchronous work may come back too.
 *
 * With CUDA_ABI_FUNCTIONS_ONLY defined the types come from elsewhere (the conformance test uses NVIDIA's).
 */
#ifndef REMAT_CUDA_ABI_H
#define REMAT_CUDA_ABI_H

#ifndef CUDA_ABI_FUNCTIONS_ONLY
#include "preload/cuda_abi_types.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_ABI_BOTH(name, suffix, args) CUresult name args; CUresult name##suffix args

/* Initialisation, versions, errors */
CUresult cuInit(unsigned);
CUresult cuDriverGetVersion(int *);
CUresult cuGetErrorName(CUresult, const char **);
CUresult cuGetErrorString(CUresult, const char **);
CUresult cuGetProcAddress(const char *, void **, int, cuuint64_t);
CUresult cuGetProcAddress_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
CUresult cuGetExportTable(const void **, const CUuuid *);

/* Devices */
CUresult cuDeviceGet(CUdevice *, int);
CUresult cuDeviceGetCount(int *);
CUresult cuDeviceGetName(char *, int, CUdevice);
CUresult cuDeviceGetUuid(CUuuid *, CUdevice);
CUresult cuDeviceGetUuid_v2(CUuuid *, CUdevice);
CUresult cuDeviceGetPCIBusId(char *, int, CUdevice);
CUresult cuDeviceGetLuid(char *, unsigned *, CUdevice);
CUresult cuDeviceTotalMem_v2(size_t *, CUdevice);
CUresult cuDeviceGetAttribute(int *, CUdevice_attribute, CUdevice);
CUresult cuDeviceGetProperties(CUdevprop *, CUdevice);
CUresult cuDeviceComputeCapability(int *, int *, CUdevice);
CUresult cuDeviceGetByPCIBusId(CUdevice *, const char *);
CUresult cuDeviceGetPCIBusId(char *, int, CUdevice);
CUresult cuDeviceCanAccessPeer(int *, CUdevice, CUdevice);
CUresult cuDeviceGetP2PAttribute(int *, CUdevice_P2PAttribute, CUdevice, CUdevice);
CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *, CUarray_format, unsigned, CUdevice);
CUresult cuDeviceGetExecAffinitySupport(int *, CUexecAffinityType, CUdevice);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *, CUdevice);
CUresult cuDeviceGetMemPool(CUmemoryPool *, CUdevice);
CUresult cuDeviceSetMemPool(CUdevice, CUmemoryPool);
CUresult cuDeviceGetGraphMemAttribute(CUdevice, CUgraphMem_attribute, void *);
CUresult cuDeviceSetGraphMemAttribute(CUdevice, CUgraphMem_attribute, void *);
CUresult cuDeviceGraphMemTrim(CUdevice);
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope);

/* Contexts */
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuDevicePrimaryCtxRelease(CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxSetFlags(CUdevice, unsigned);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned);
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned *, int *);
CUresult cuDevicePrimaryCtxReset(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuCtxCreate_v3(CUcontext *, CUexecAffinityParam *, int, unsigned, CUdevice);
CUresult cuCtxCreate_v4(CUcontext *, CUctxCreateParams *, unsigned, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxPushCurrent_v2(CUcontext);
CUresult cuCtxPopCurrent_v2(CUcontext *);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxGetCurrent(CUcontext *);
CUresult cuCtxGetDevice(CUdevice *);
CUresult cuCtxGetDevice_v2(CUdevice *, CUcontext);
CUresult cuCtxGetFlags(unsigned *);
CUresult cuCtxSetFlags(unsigned);
CUresult cuCtxGetId(CUcontext, unsigned long long *);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CUcontext);
CUresult cuCtxSetLimit(CUlimit, size_t);
CUresult cuCtxGetLimit(size_t *, CUlimit);
CUresult cuCtxGetCacheConfig(CUfunc_cache *);
CUresult cuCtxSetCacheConfig(CUfunc_cache);
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *);
CUresult cuCtxSetSharedMemConfig(CUsharedconfig);
CUresult cuCtxGetApiVersion(CUcontext, unsigned *);
CUresult cuCtxGetStreamPriorityRange(int *, int *);
CUresult cuCtxResetPersistingL2Cache(void);
CUresult cuCtxGetExecAffinity(CUexecAffinityParam *, CUexecAffinityType);
CUresult cuCtxEnablePeerAccess(CUcontext, unsigned);
CUresult cuCtxDisablePeerAccess(CUcontext);
CUresult cuCtxAttach(CUcontext *, unsigned);
CUresult cuCtxDetach(CUcontext);
CUresult cuCtxRecordEvent(CUcontext, CUevent);
CUresult cuCtxWaitEvent(CUcontext, CUevent);

/* Modules and linking */
CUresult cuModuleLoad(CUmodule *, const char *);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleLoadDataEx(CUmodule *, const void *, unsigned, CUjit_option *, void **);
CUresult cuModuleLoadFatBinary(CUmodule *, const void *);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuModuleGetFunctionCount(unsigned *, CUmodule);
CUresult cuModuleEnumerateFunctions(CUfunction *, unsigned, CUmodule);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
CUresult cuModuleGetTexRef(CUtexref *, CUmodule, const char *);
CUresult cuModuleGetSurfRef(CUsurfref *, CUmodule, const char *);
CUresult cuLinkCreate_v2(unsigned, CUjit_option *, void **, CUlinkState *);
CUresult cuLinkAddData_v2(CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned, CUjit_option *,
    void **);
CUresult cuLinkAddFile_v2(CUlinkState, CUjitInputType, const char *, unsigned, CUjit_option *, void **);
CUresult cuLinkComplete(CUlinkState, void **, size_t *);
CUresult cuLinkDestroy(CUlinkState);

/* Libraries and kernels */
CUresult cuLibraryLoadData(CUlibrary *, const void *, CUjit_option *, void **, unsigned, CUlibraryOption *,
    void **, unsigned);
CUresult cuLibraryLoadFromFile(CUlibrary *, const char *, CUjit_option *, void **, unsigned, CUlibraryOption *,
    void **, unsigned);
CUresult cuLibraryUnload(CUlibrary);
CUresult cuLibraryGetKernel(CUkernel *, CUlibrary, const char *);
CUresult cuLibraryGetKernelCount(unsigned *, CUlibrary);
CUresult cuLibraryEnumerateKernels(CUkernel *, unsigned, CUlibrary);
CUresult cuLibraryGetModule(CUmodule *, CUlibrary);
CUresult cuLibraryGetGlobal(CUdeviceptr *, size_t *, CUlibrary, const char *);
CUresult cuLibraryGetManaged(CUdeviceptr *, size_t *, CUlibrary, const char *);
CUresult cuLibraryGetUnifiedFunction(void **, CUlibrary, const char *);
CUresult cuKernelGetFunction(CUfunction *, CUkernel);
CUresult cuKernelGetLibrary(CUlibrary *, CUkernel);
CUresult cuKernelGetAttribute(int *, CUfunction_attribute, CUkernel, CUdevice);
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice);
CUresult cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice);
CUresult cuKernelGetName(const char **, CUkernel);
CUresult cuKernelGetParamInfo(CUkernel, size_t, size_t *, size_t *);

/* Functions and launches */
CUresult cuFuncGetAttribute(int *, CUfunction_attribute, CUfunction);
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int);
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache);
CUresult cuFuncSetSharedMemConfig(CUfunction, CUsharedconfig);
CUresult cuFuncGetModule(CUmodule *, CUfunction);
CUresult cuFuncGetName(const char **, CUfunction);
CUresult cuFuncGetParamInfo(CUfunction, size_t, size_t *, size_t *);
CUresult cuFuncIsLoaded(CUfunctionLoadingState *, CUfunction);
CUresult cuFuncLoad(CUfunction);
CUDA_ABI_BOTH(cuLaunchKernel, _ptsz, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
    unsigned, CUstream, void **, void **));
CUDA_ABI_BOTH(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig *, CUfunction, void **, void **));
CUDA_ABI_BOTH(cuLaunchCooperativeKernel, _ptsz, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
    unsigned, unsigned, CUstream, void **));
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *, unsigned, unsigned);
CUDA_ABI_BOTH(cuLaunchHostFunc, _ptsz, (CUstream, CUhostFn, void *));
CUresult cuFuncSetBlockShape(CUfunction, int, int, int);
CUresult cuFuncSetSharedSize(CUfunction, unsigned);
CUresult cuParamSetSize(CUfunction, unsigned);
CUresult cuParamSeti(CUfunction, int, unsigned);
CUresult cuParamSetf(CUfunction, int, float);
CUresult cuParamSetv(CUfunction, int, void *, unsigned);
CUresult cuLaunch(CUfunction);
CUresult cuLaunchGrid(CUfunction, int, int);
CUresult cuLaunchGridAsync(CUfunction, int, int, CUstream);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, CUfunction, int, size_t);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *, CUfunction, int, size_t, unsigned);
CUresult cuOccupancyMaxPotentialBlockSize(int *, int *, CUfunction, CUoccupancyB2DSize, size_t, int);
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *, int *, CUfunction, CUoccupancyB2DSize, size_t, int,
    unsigned);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *, CUfunction, int, int);
CUresult cuOccupancyMaxPotentialClusterSize(int *, CUfunction, const CUlaunchConfig *);
CUresult cuOccupancyMaxActiveClusters(int *, CUfunction, const CUlaunchConfig *);

/* Streams */
CUresult cuStreamCreate(CUstream *, unsigned);
CUresult cuStreamCreateWithPriority(CUstream *, unsigned, int);
CUresult cuStreamDestroy_v2(CUstream);
CUDA_ABI_BOTH(cuStreamGetPriority, _ptsz, (CUstream, int *));
CUDA_ABI_BOTH(cuStreamGetFlags, _ptsz, (CUstream, unsigned *));
CUDA_ABI_BOTH(cuStreamGetId, _ptsz, (CUstream, unsigned long long *));
CUDA_ABI_BOTH(cuStreamGetCtx, _ptsz, (CUstream, CUcontext *));
CUDA_ABI_BOTH(cuStreamGetCtx_v2, _ptsz, (CUstream, CUcontext *, CUgreenCtx *));
CUDA_ABI_BOTH(cuStreamGetDevice, _ptsz, (CUstream, CUdevice *));
CUDA_ABI_BOTH(cuStreamWaitEvent, _ptsz, (CUstream, CUevent, unsigned));
CUDA_ABI_BOTH(cuStreamAddCallback, _ptsz, (CUstream, CUstreamCallback, void *, unsigned));
CUDA_ABI_BOTH(cuStreamSynchronize, _ptsz, (CUstream));
CUDA_ABI_BOTH(cuStreamQuery, _ptsz, (CUstream));
CUDA_ABI_BOTH(cuStreamAttachMemAsync, _ptsz, (CUstream, CUdeviceptr, size_t, unsigned));
CUDA_ABI_BOTH(cuStreamCopyAttributes, _ptsz, (CUstream, CUstream));
CUDA_ABI_BOTH(cuStreamGetAttribute, _ptsz, (CUstream, CUstreamAttrID, CUstreamAttrValue *));
CUDA_ABI_BOTH(cuStreamSetAttribute, _ptsz, (CUstream, CUstreamAttrID, const CUstreamAttrValue *));

/* Events */
CUresult cuEventCreate(CUevent *, unsigned);
CUDA_ABI_BOTH(cuEventRecord, _ptsz, (CUevent, CUstream));
CUDA_ABI_BOTH(cuEventRecordWithFlags, _ptsz, (CUevent, CUstream, unsigned));
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuEventElapsedTime(float *, CUevent, CUevent);
CUresult cuEventElapsedTime_v2(float *, CUevent, CUevent);

/* Stream memory operations */
CUDA_ABI_BOTH(cuStreamWaitValue32, _ptsz, (CUstream, CUdeviceptr, cuuint32_t, unsigned));
CUDA_ABI_BOTH(cuStreamWaitValue64, _ptsz, (CUstream, CUdeviceptr, cuuint64_t, unsigned));
CUDA_ABI_BOTH(cuStreamWriteValue32, _ptsz, (CUstream, CUdeviceptr, cuuint32_t, unsigned));
CUDA_ABI_BOTH(cuStreamWriteValue64, _ptsz, (CUstream, CUdeviceptr, cuuint64_t, unsigned));
CUDA_ABI_BOTH(cuStreamBatchMemOp, _ptsz, (CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned));
CUDA_ABI_BOTH(cuStreamWaitValue32_v2, _ptsz, (CUstream, CUdeviceptr, cuuint32_t, unsigned));
CUDA_ABI_BOTH(cuStreamWaitValue64_v2, _ptsz, (CUstream, CUdeviceptr, cuuint64_t, unsigned));
CUDA_ABI_BOTH(cuStreamWriteValue32_v2, _ptsz, (CUstream, CUdeviceptr, cuuint32_t, unsigned));
CUDA_ABI_BOTH(cuStreamWriteValue64_v2, _ptsz, (CUstream, CUdeviceptr, cuuint64_t, unsigned));
CUDA_ABI_BOTH(cuStreamBatchMemOp_v2, _ptsz, (CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned));

/* Capture and graphs */
CUDA_ABI_BOTH(cuStreamBeginCapture, _ptsz, (CUstream));
CUDA_ABI_BOTH(cuStreamBeginCapture_v2, _ptsz, (CUstream, CUstreamCaptureMode));
CUDA_ABI_BOTH(cuStreamBeginCaptureToGraph, _ptsz, (CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData
    *, size_t, CUstreamCaptureMode));
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *);
CUDA_ABI_BOTH(cuStreamEndCapture, _ptsz, (CUstream, CUgraph *));
CUDA_ABI_BOTH(cuStreamIsCapturing, _ptsz, (CUstream, CUstreamCaptureStatus *));
CUDA_ABI_BOTH(cuStreamGetCaptureInfo, _ptsz, (CUstream, CUstreamCaptureStatus *, cuuint64_t *));
CUDA_ABI_BOTH(cuStreamGetCaptureInfo_v2, _ptsz, (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
    const CUgraphNode **, size_t *));
CUDA_ABI_BOTH(cuStreamGetCaptureInfo_v3, _ptsz, (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
    const CUgraphNode **, const CUgraphEdgeData **, size_t *));
CUDA_ABI_BOTH(cuStreamUpdateCaptureDependencies, _ptsz, (CUstream, CUgraphNode *, size_t, unsigned));
CUDA_ABI_BOTH(cuStreamUpdateCaptureDependencies_v2, _ptsz, (CUstream, CUgraphNode *, const CUgraphEdgeData *,
    size_t, unsigned));
CUresult cuGraphCreate(CUgraph *, unsigned);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGraphClone(CUgraph *, CUgraph);
CUresult cuGraphAddKernelNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const
    CUDA_KERNEL_NODE_PARAMS_v1 *);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const
    CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphAddMemcpyNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMCPY3D *,
    CUcontext);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode, CUDA_MEMCPY3D *);
CUresult cuGraphAddMemsetNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMSET_NODE_PARAMS
    *, CUcontext);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode, CUDA_MEMSET_NODE_PARAMS *);
CUresult cuGraphAddHostNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_HOST_NODE_PARAMS *);
CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph);
CUresult cuGraphAddEmptyNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t);
CUresult cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS
    *);
CUresult cuGraphAddMemFreeNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *);
CUresult cuGraphNodeGetType(CUgraphNode, CUgraphNodeType *);
CUresult cuGraphInstantiate(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
CUresult cuGraphInstantiate_v2(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUDA_ABI_BOTH(cuGraphInstantiateWithParams, _ptsz, (CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *));
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphExecGetFlags(CUgraphExec, cuuint64_t *);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *);
CUDA_ABI_BOTH(cuGraphLaunch, _ptsz, (CUgraphExec, CUstream));
CUDA_ABI_BOTH(cuGraphUpload, _ptsz, (CUgraphExec, CUstream));

/* Device memory */
CUresult cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
CUresult cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
CUresult cuMemGetHandleForAddressRange(void *, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long);

/* Stream-ordered allocation and pools */
CUDA_ABI_BOTH(cuMemAllocAsync, _ptsz, (CUdeviceptr *, size_t, CUstream));
CUDA_ABI_BOTH(cuMemFreeAsync, _ptsz, (CUdeviceptr, CUstream));
CUDA_ABI_BOTH(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr *, size_t, CUmemoryPool, CUstream));
CUresult cuMemPoolCreate(CUmemoryPool *, const CUmemPoolProps *);
CUresult cuMemPoolDestroy(CUmemoryPool);
CUresult cuMemPoolTrimTo(CUmemoryPool, size_t);
CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void *);
CUresult cuMemPoolGetAttribute(CUmemoryPool, CUmemPool_attribute, void *);
CUresult cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc *, size_t);
CUresult cuMemPoolGetAccess(CUmemAccess_flags *, CUmemoryPool, CUmemLocation *);
CUresult cuMemPoolExportToShareableHandle(void *, CUmemoryPool, CUmemAllocationHandleType, unsigned long long);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *, void *, CUmemAllocationHandleType, unsigned long
    long);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *, CUdeviceptr);
CUresult cuMemPoolImportPointer(CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *);
CUresult cuMemGetDefaultMemPool(CUmemoryPool *, CUmemLocation *, CUmemAllocationType);
CUresult cuMemGetMemPool(CUmemoryPool *, CUmemLocation *, CUmemAllocationType);
CUresult cuMemSetMemPool(CUmemLocation *, CUmemAllocationType, CUmemoryPool);

/* Virtual memory management */
CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
CUresult cuMemAddressFree(CUdeviceptr, size_t);
CUresult cuMemCreate(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
CUresult cuMemRelease(CUmemGenericAllocationHandle);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
CUDA_ABI_BOTH(cuMemMapArrayAsync, _ptsz, (CUarrayMapInfo *, unsigned, CUstream));
CUresult cuMemUnmap(CUdeviceptr, size_t);
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
CUresult cuMemGetAccess(unsigned long long *, const CUmemLocation *, CUdeviceptr);
CUresult cuMemExportToShareableHandle(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned
    long long);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
CUresult cuMemGetAllocationGranularity(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *, CUmemGenericAllocationHandle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *, void *);
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *, const CUmulticastObjectProp *);
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle, CUdevice);
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t, size_t,
    unsigned long long);
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, unsigned long long);
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle, CUdevice, size_t, size_t);
CUresult cuMulticastGetGranularity(size_t *, const CUmulticastObjectProp *, CUmulticastGranularity_flags);

/* Host memory */
CUresult cuMemAllocHost_v2(void **, size_t);
CUresult cuMemFreeHost(void *);
CUresult cuMemHostAlloc(void **, size_t, unsigned);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *, void *, unsigned);
CUresult cuMemHostGetFlags(unsigned *, void *);
CUresult cuMemHostRegister(void *, size_t, unsigned);
CUresult cuMemHostRegister_v2(void *, size_t, unsigned);
CUresult cuMemHostUnregister(void *);

/* Questions about pointers */
CUresult cuPointerGetAttribute(void *, CUpointer_attribute, CUdeviceptr);
CUresult cuPointerGetAttributes(unsigned, CUpointer_attribute *, void **, CUdeviceptr);
CUresult cuPointerSetAttribute(const void *, CUpointer_attribute, CUdeviceptr);
CUresult cuMemRangeGetAttribute(void *, size_t, CUmem_range_attribute, CUdeviceptr, size_t);
CUresult cuMemRangeGetAttributes(void **, size_t *, CUmem_range_attribute *, size_t, CUdeviceptr, size_t);
CUresult cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice);
CUresult cuMemAdvise_v2(CUdeviceptr, size_t, CUmem_advise, CUmemLocation);
CUDA_ABI_BOTH(cuMemPrefetchAsync, _ptsz, (CUdeviceptr, size_t, CUdevice, CUstream));
CUDA_ABI_BOTH(cuMemPrefetchAsync_v2, _ptsz, (CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream));
CUDA_ABI_BOTH(cuMemPrefetchBatchAsync, _ptsz, (CUdeviceptr *, size_t *, size_t, CUmemLocation *, size_t *,
    size_t, unsigned long long, CUstream));
CUDA_ABI_BOTH(cuMemDiscardBatchAsync, _ptsz, (CUdeviceptr *, size_t *, size_t, unsigned long long, CUstream));
CUDA_ABI_BOTH(cuMemDiscardAndPrefetchBatchAsync, _ptsz, (CUdeviceptr *, size_t *, size_t, CUmemLocation *,
    size_t *, size_t, unsigned long long, CUstream));

/* Copies */
CUDA_ABI_BOTH(cuMemcpy, _ptds, (CUdeviceptr, CUdeviceptr, size_t));
CUDA_ABI_BOTH(cuMemcpyAsync, _ptsz, (CUdeviceptr, CUdeviceptr, size_t, CUstream));
CUDA_ABI_BOTH(cuMemcpyPeer, _ptds, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t));
CUDA_ABI_BOTH(cuMemcpyPeerAsync, _ptsz, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream));
CUDA_ABI_BOTH(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr, const void *, size_t));
CUDA_ABI_BOTH(cuMemcpyDtoH_v2, _ptds, (void *, CUdeviceptr, size_t));
CUDA_ABI_BOTH(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr, CUdeviceptr, size_t));
CUDA_ABI_BOTH(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr, const void *, size_t, CUstream));
CUDA_ABI_BOTH(cuMemcpyDtoHAsync_v2, _ptsz, (void *, CUdeviceptr, size_t, CUstream));
CUDA_ABI_BOTH(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr, CUdeviceptr, size_t, CUstream));
CUDA_ABI_BOTH(cuMemcpyDtoA_v2, _ptds, (CUarray, size_t, CUdeviceptr, size_t));
CUDA_ABI_BOTH(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr, CUarray, size_t, size_t));
CUDA_ABI_BOTH(cuMemcpyHtoA_v2, _ptds, (CUarray, size_t, const void *, size_t));
CUDA_ABI_BOTH(cuMemcpyAtoH_v2, _ptds, (void *, CUarray, size_t, size_t));
CUDA_ABI_BOTH(cuMemcpyAtoA_v2, _ptds, (CUarray, size_t, CUarray, size_t, size_t));
CUDA_ABI_BOTH(cuMemcpyHtoAAsync_v2, _ptsz, (CUarray, size_t, const void *, size_t, CUstream));
CUDA_ABI_BOTH(cuMemcpyAtoHAsync_v2, _ptsz, (void *, CUarray, size_t, size_t, CUstream));
CUDA_ABI_BOTH(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *));
CUDA_ABI_BOTH(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *));
CUDA_ABI_BOTH(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *, CUstream));
CUDA_ABI_BOTH(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *));
CUDA_ABI_BOTH(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *, CUstream));
CUDA_ABI_BOTH(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *));
CUDA_ABI_BOTH(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *, CUstream));
CUDA_ABI_BOTH(cuMemcpyBatchAsync, _ptsz, (CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *,
    size_t *, size_t, size_t *, CUstream));
CUDA_ABI_BOTH(cuMemcpyBatchAsync_v2, _ptsz, (CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes
    *, size_t *, size_t, CUstream));
CUDA_ABI_BOTH(cuMemcpy3DBatchAsync, _ptsz, (size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long,
    CUstream));
CUDA_ABI_BOTH(cuMemcpy3DBatchAsync_v2, _ptsz, (size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream));

/* Fills */
CUDA_ABI_BOTH(cuMemsetD8_v2, _ptds, (CUdeviceptr, unsigned char, size_t));
CUDA_ABI_BOTH(cuMemsetD16_v2, _ptds, (CUdeviceptr, unsigned short, size_t));
CUDA_ABI_BOTH(cuMemsetD32_v2, _ptds, (CUdeviceptr, unsigned, size_t));
CUDA_ABI_BOTH(cuMemsetD8Async, _ptsz, (CUdeviceptr, unsigned char, size_t, CUstream));
CUDA_ABI_BOTH(cuMemsetD16Async, _ptsz, (CUdeviceptr, unsigned short, size_t, CUstream));
CUDA_ABI_BOTH(cuMemsetD32Async, _ptsz, (CUdeviceptr, unsigned, size_t, CUstream));
CUDA_ABI_BOTH(cuMemsetD2D8_v2, _ptds, (CUdeviceptr, size_t, unsigned char, size_t, size_t));
CUDA_ABI_BOTH(cuMemsetD2D16_v2, _ptds, (CUdeviceptr, size_t, unsigned short, size_t, size_t));
CUDA_ABI_BOTH(cuMemsetD2D32_v2, _ptds, (CUdeviceptr, size_t, unsigned, size_t, size_t));
CUDA_ABI_BOTH(cuMemsetD2D8Async, _ptsz, (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream));
CUDA_ABI_BOTH(cuMemsetD2D16Async, _ptsz, (CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream));
CUDA_ABI_BOTH(cuMemsetD2D32Async, _ptsz, (CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream));

/* Arrays */
CUresult cuArrayCreate_v2(CUarray *, const CUDA_ARRAY_DESCRIPTOR *);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *, CUarray);
CUresult cuArray3DCreate_v2(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *, CUarray);
CUresult cuArrayDestroy(CUarray);
CUresult cuArrayGetPlane(CUarray *, CUarray, unsigned);
CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *, CUarray);
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *, CUarray, CUdevice);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned);
CUresult cuMipmappedArrayGetLevel(CUarray *, CUmipmappedArray, unsigned);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray);
CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *, CUmipmappedArray);
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *, CUmipmappedArray, CUdevice);

/* Tensor maps */
CUresult cuTensorMapEncodeTiled(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
    const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
    CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
CUresult cuTensorMapEncodeIm2col(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
    const cuuint64_t *, const int *, const int *, cuuint32_t, cuuint32_t, const cuuint32_t *,
    CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
    const cuuint64_t *, int, int, cuuint32_t, cuuint32_t, const cuuint32_t *, CUtensorMapInterleave,
    CUtensorMapIm2ColWideMode, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
CUresult cuTensorMapReplaceAddress(CUtensorMap *, void *);

/* Sharing between processes */
CUresult cuIpcGetEventHandle(CUipcEventHandle *, CUevent);
CUresult cuIpcOpenEventHandle(CUevent *, CUipcEventHandle);
CUresult cuIpcGetMemHandle(CUipcMemHandle *, CUdeviceptr);
CUresult cuIpcOpenMemHandle(CUdeviceptr *, CUipcMemHandle, unsigned);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *, CUipcMemHandle, unsigned);
CUresult cuIpcCloseMemHandle(CUdeviceptr);

/* Profiler */
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

#ifdef __cplusplus
}
#endif

#endif
