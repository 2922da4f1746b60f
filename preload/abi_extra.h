/* abi_extra.h: entry points that have a door but are neither called nor simulated by this project: graph editing and
 * texture references of the driver, and the few calls of NVML and NCCL. Parameter blocks the doors only hand on are `void`.
 *
 * No code, no state. NVML calls answer 0 or an NVML code, NCCL calls 0 or an ncclResult_t.
 */
#ifndef REMAT_PRELOAD_ABI_EXTRA_H
#define REMAT_PRELOAD_ABI_EXTRA_H

#include "preload/cuda_abi.h"

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode, const void *);
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec, CUgraphNode, const void *);
CUresult cuGraphAddBatchMemOpNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *);
CUresult cuGraphAddNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, void *);
CUresult cuGraphAddNode_v3(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, void *);
CUresult cuGraphAddNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, void *);
CUresult cuGraphKernelNodeSetParams(CUgraphNode, const void *);
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode, const void *);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode, const void *);
CUresult cuGraphMemsetNodeSetParams(CUgraphNode, const void *);
CUresult cuGraphNodeSetParams(CUgraphNode, const void *);
CUresult cuGraphNodeSetParams_v2(CUgraphNode, const void *);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode, const void *);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode, const void *);
CUresult cuGraphExecNodeSetParams(CUgraphExec, CUgraphNode, const void *);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec, CUgraphNode, const void *, CUcontext);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec, CUgraphNode, const void *, CUcontext);
CUDA_ABI_BOTH(cuMemBatchDecompressAsync, _ptsz, (void *, size_t, unsigned, size_t *, CUstream));
CUDA_ABI_BOTH(cuStreamBeginCaptureToCig, _ptsz, (CUstream, void *));
CUDA_ABI_BOTH(cuStreamEndCaptureToCig, _ptsz, (CUstream));
CUDA_ABI_BOTH(cuStreamBeginRecaptureToGraph, _ptsz, (CUstream, CUstreamCaptureMode, CUgraph, void *, void *));
CUDA_ABI_BOTH(cuLaunchHostFunc_v2, _ptsz, (CUstream, CUhostFn, void *, unsigned));
CUDA_ABI_BOTH(cuFabricCpyBatchAsync, _ptsz, (size_t, void *, unsigned long long, CUstream));
CUresult cuLogicalEndpointBindMem(cuuint32_t, CUdevice, cuuint64_t, CUmemGenericAllocationHandle, cuuint64_t, cuuint64_t, unsigned long long);
CUresult cuLogicalEndpointBindAddr(cuuint32_t, CUdevice, cuuint64_t, void *, cuuint64_t, unsigned long long);
CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle, CUdevice, size_t, CUmemGenericAllocationHandle, size_t, size_t, unsigned long long);
CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle, CUdevice, size_t, CUdeviceptr, size_t, unsigned long long);
/* oldest variants, from before CUDA 3.2 and 4.0: a program that looks a name up without a suffix gets these */
CUresult cuMemAllocHost(void **, unsigned);
CUresult cuCtxCreate(CUcontext *, unsigned, CUdevice);
CUresult cuCtxDestroy(CUcontext);
CUresult cuCtxPushCurrent(CUcontext);
CUresult cuCtxPopCurrent(CUcontext *);
CUresult cuStreamDestroy(CUstream);
typedef struct CUgraphicsResource_st *CUgraphicsResource;
CUresult cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *, size_t *, CUgraphicsResource);
CUresult cuTexRefSetAddress_v2(size_t *, CUtexref, CUdeviceptr, size_t);
CUresult cuTexRefSetAddress2D_v2(CUtexref, const CUDA_ARRAY_DESCRIPTOR *, CUdeviceptr, size_t);
CUresult cuTexRefSetAddress2D_v3(CUtexref, const CUDA_ARRAY_DESCRIPTOR *, CUdeviceptr, size_t);
CUresult cuTexRefSetArray(CUtexref, CUarray, unsigned);
CUresult cuTexRefSetMipmappedArray(CUtexref, CUmipmappedArray, unsigned);
CUresult cuSurfRefSetArray(CUsurfref, CUarray, unsigned);

typedef struct nvmlDevice_st *nvmlDevice_t;
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct nvml_process_v1 {
    unsigned pid;
    unsigned long long used;
};
struct nvml_process { /* filled by the calls' _v2 and _v3 */
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
struct nvml_process_detail {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
    unsigned long long protected_used;
};
struct nvml_process_details {
    unsigned version, mode, n;
    struct nvml_process_detail *list;
};
struct nvml_limits { /* limits of the cgroup whose folder has the path `cgroup`; CUDA 13.4 */
    const char *cgroup;
    unsigned long long soft, hard, used;
};
int nvmlDeviceGetMemoryInfo(nvmlDevice_t, struct nvml_memory *);
int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t, struct nvml_memory_v2 *);
int nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t, unsigned *, struct nvml_process_v1 *);
int nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t, unsigned *, struct nvml_process *);
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned *, struct nvml_process *);
int nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t, unsigned *, struct nvml_process_v1 *);
int nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t, unsigned *, struct nvml_process *);
int nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t, unsigned *, struct nvml_process *);
int nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t, unsigned *, struct nvml_process_v1 *);
int nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t, unsigned *, struct nvml_process *);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t, unsigned *, struct nvml_process *);
int nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t, struct nvml_process_details *);

typedef struct ncclComm *ncclComm_t;
/* each NCCL call has two names, ncclX and pncclX */
#define ABI_NCCL(f, params) int f params; int p##f params
ABI_NCCL(ncclAllReduce, (const void *, void *, size_t, int type, int op, ncclComm_t, CUstream));
ABI_NCCL(ncclReduce, (const void *, void *, size_t, int type, int op, int root, ncclComm_t, CUstream));
ABI_NCCL(ncclBroadcast, (const void *, void *, size_t, int type, int root, ncclComm_t, CUstream));
ABI_NCCL(ncclBcast, (void *, size_t, int type, int root, ncclComm_t, CUstream));
ABI_NCCL(ncclAllGather, (const void *, void *, size_t, int type, ncclComm_t, CUstream));
ABI_NCCL(ncclReduceScatter, (const void *, void *, size_t, int type, int op, ncclComm_t, CUstream));
ABI_NCCL(ncclAlltoAll, (const void *, void *, size_t, int type, ncclComm_t, CUstream));
ABI_NCCL(ncclGather, (const void *, void *, size_t, int type, int root, ncclComm_t, CUstream));
ABI_NCCL(ncclScatter, (const void *, void *, size_t, int type, int root, ncclComm_t, CUstream));
ABI_NCCL(ncclSend, (const void *, size_t, int type, int peer, ncclComm_t, CUstream));
ABI_NCCL(ncclRecv, (void *, size_t, int type, int peer, ncclComm_t, CUstream));
ABI_NCCL(ncclAllReduceConfig, (const void *, void *, size_t, int type, int op, ncclComm_t, CUstream, const void *));
ABI_NCCL(ncclBroadcastConfig, (const void *, void *, size_t, int type, int root, ncclComm_t, CUstream, const void *));
ABI_NCCL(ncclReduceConfig, (const void *, void *, size_t, int type, int op, int root, ncclComm_t, CUstream, const void *));
ABI_NCCL(ncclAllGatherConfig, (const void *, void *, size_t, int type, ncclComm_t, CUstream, const void *));
ABI_NCCL(ncclReduceScatterConfig, (const void *, void *, size_t, int type, int op, ncclComm_t, CUstream, const void *));
ABI_NCCL(ncclAlltoAllConfig, (const void *, void *, size_t, int type, ncclComm_t, CUstream, const void *));
ABI_NCCL(ncclGatherConfig, (const void *, void *, size_t, int type, int root, ncclComm_t, CUstream, const void *));
ABI_NCCL(ncclScatterConfig, (const void *, void *, size_t, int type, int root, ncclComm_t, CUstream, const void *));
ABI_NCCL(ncclGroupStart, (void));
ABI_NCCL(ncclGroupEnd, (void));
ABI_NCCL(ncclCommRegister, (ncclComm_t, void *, size_t, void **));
ABI_NCCL(ncclCommWindowRegister, (ncclComm_t, void *, size_t, void **, int));
ABI_NCCL(ncclPutSignal, (const void *, size_t, int type, int peer, void *window, size_t, int signal, int ctx, unsigned, ncclComm_t, CUstream));
ABI_NCCL(ncclSignal, (int peer, int signal, int ctx, unsigned, ncclComm_t, CUstream));
ABI_NCCL(ncclWaitSignal, (int, void *, ncclComm_t, CUstream));
#undef ABI_NCCL

#endif
