/*
 * What the simulated GPU does not have, and says so: graphs made by hand (captured ones it has), multicast, texture references, tensor maps by
 * im2col, clusters. Each call answers CUDA_ERROR_NOT_SUPPORTED.
 */
#include "tests/simgpu/gpu.h"

/* the parameters are there for the type alone */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REFUSE(symbol, params) GPU_API(symbol, params, GPU_NEED_INIT, CUDA_ERROR_NOT_SUPPORTED)
#define REFUSE_BOTH(symbol, suffix, params) GPU_API_BOTH(symbol, suffix, params, CUDA_ERROR_NOT_SUPPORTED)

/* Devices */
REFUSE(cuFlushGPUDirectRDMAWrites, (CUflushGPUDirectRDMAWritesTarget a, CUflushGPUDirectRDMAWritesScope b))

/* Contexts */
REFUSE(cuCtxGetExecAffinity, (CUexecAffinityParam *a, CUexecAffinityType b))
REFUSE(cuCtxRecordEvent, (CUcontext a, CUevent b))
REFUSE(cuCtxWaitEvent, (CUcontext a, CUevent b))

/* Modules */
REFUSE(cuModuleGetTexRef, (CUtexref *a, CUmodule b, const char *c))
REFUSE(cuModuleGetSurfRef, (CUsurfref *a, CUmodule b, const char *c))

/* Functions and launches */
REFUSE(cuLaunchCooperativeKernelMultiDevice, (CUDA_LAUNCH_PARAMS *a, unsigned b, unsigned c))
REFUSE(cuFuncSetBlockShape, (CUfunction a, int b, int c, int d))
REFUSE(cuFuncSetSharedSize, (CUfunction a, unsigned b))
REFUSE(cuParamSetSize, (CUfunction a, unsigned b))
REFUSE(cuParamSeti, (CUfunction a, int b, unsigned c))
REFUSE(cuParamSetf, (CUfunction a, int b, float c))
REFUSE(cuParamSetv, (CUfunction a, int b, void *c, unsigned d))
REFUSE(cuLaunch, (CUfunction a))
REFUSE(cuLaunchGrid, (CUfunction a, int b, int c))
REFUSE(cuLaunchGridAsync, (CUfunction a, int b, int c, CUstream d))
REFUSE(cuOccupancyMaxPotentialClusterSize, (int *a, CUfunction b, const CUlaunchConfig *c))
REFUSE(cuOccupancyMaxActiveClusters, (int *a, CUfunction b, const CUlaunchConfig *c))

/* Graphs made by hand */
REFUSE(cuGraphClone, (CUgraph *a, CUgraph b))
REFUSE(cuGraphAddKernelNode, (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const
       CUDA_KERNEL_NODE_PARAMS_v1 *e))
REFUSE(cuGraphAddKernelNode_v2, (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const
       CUDA_KERNEL_NODE_PARAMS *e))
REFUSE(cuGraphKernelNodeGetParams_v2, (CUgraphNode a, CUDA_KERNEL_NODE_PARAMS *b))
REFUSE(cuGraphAddMemcpyNode, (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const CUDA_MEMCPY3D *e,
       CUcontext f))
REFUSE(cuGraphMemcpyNodeGetParams, (CUgraphNode a, CUDA_MEMCPY3D *b))
REFUSE(cuGraphAddMemsetNode, (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const CUDA_MEMSET_NODE_PARAMS
       *e, CUcontext f))
REFUSE(cuGraphMemsetNodeGetParams, (CUgraphNode a, CUDA_MEMSET_NODE_PARAMS *b))
REFUSE(cuGraphAddHostNode, (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, const CUDA_HOST_NODE_PARAMS
       *e))
REFUSE(cuGraphAddChildGraphNode, (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, CUgraph e))
REFUSE(cuGraphAddEmptyNode, (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d))
REFUSE(cuGraphAddMemAllocNode, (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, CUDA_MEM_ALLOC_NODE_PARAMS
       *e))
REFUSE(cuGraphAddMemFreeNode, (CUgraphNode *a, CUgraph b, const CUgraphNode *c, size_t d, CUdeviceptr e))
REFUSE(cuGraphExecUpdate_v2, (CUgraphExec a, CUgraph b, CUgraphExecUpdateResultInfo *c))

/* Device memory */
REFUSE(cuMemGetHandleForAddressRange, (void *a, CUdeviceptr b, size_t c, CUmemRangeHandleType d, unsigned long long
       e))

/* Virtual memory management */
REFUSE_BOTH(cuMemMapArrayAsync, _ptsz, (CUarrayMapInfo *a, unsigned b, CUstream c))
REFUSE(cuMulticastCreate, (CUmemGenericAllocationHandle *a, const CUmulticastObjectProp *b))
REFUSE(cuMulticastAddDevice, (CUmemGenericAllocationHandle a, CUdevice b))
REFUSE(cuMulticastBindMem, (CUmemGenericAllocationHandle a, size_t b, CUmemGenericAllocationHandle c, size_t d, size_t
       e, unsigned long long f))
REFUSE(cuMulticastBindAddr, (CUmemGenericAllocationHandle a, size_t b, CUdeviceptr c, size_t d, unsigned long long e))
REFUSE(cuMulticastUnbind, (CUmemGenericAllocationHandle a, CUdevice b, size_t c, size_t d))
REFUSE(cuMulticastGetGranularity, (size_t *a, const CUmulticastObjectProp *b, CUmulticastGranularity_flags c))

/* Questions about pointers */
REFUSE(cuMemRangeGetAttribute, (void *a, size_t b, CUmem_range_attribute c, CUdeviceptr d, size_t e))
REFUSE(cuMemRangeGetAttributes, (void **a, size_t *b, CUmem_range_attribute *c, size_t d, CUdeviceptr e, size_t f))
REFUSE_BOTH(cuMemPrefetchBatchAsync, _ptsz, (CUdeviceptr *a, size_t *b, size_t c, CUmemLocation *d, size_t *e, size_t
       f, unsigned long long g, CUstream h))
REFUSE_BOTH(cuMemDiscardBatchAsync, _ptsz, (CUdeviceptr *a, size_t *b, size_t c, unsigned long long d, CUstream e))
REFUSE_BOTH(cuMemDiscardAndPrefetchBatchAsync, _ptsz, (CUdeviceptr *a, size_t *b, size_t c, CUmemLocation *d, size_t
       *e, size_t f, unsigned long long g, CUstream h))


/* Arrays */
REFUSE(cuArrayGetPlane, (CUarray *a, CUarray b, unsigned c))
REFUSE(cuArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES *a, CUarray b))
REFUSE(cuArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *a, CUarray b, CUdevice c))
REFUSE(cuMipmappedArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES *a, CUmipmappedArray b))
REFUSE(cuMipmappedArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *a, CUmipmappedArray b, CUdevice c))

/* Tensor maps */
REFUSE(cuTensorMapEncodeIm2col, (CUtensorMap *a, CUtensorMapDataType b, cuuint32_t c, void *d, const cuuint64_t *e,
       const cuuint64_t *f, const int *g, const int *h, cuuint32_t i, cuuint32_t j, const cuuint32_t *k,
       CUtensorMapInterleave l, CUtensorMapSwizzle m, CUtensorMapL2promotion n, CUtensorMapFloatOOBfill o))
REFUSE(cuTensorMapEncodeIm2colWide, (CUtensorMap *a, CUtensorMapDataType b, cuuint32_t c, void *d, const cuuint64_t
       *e, const cuuint64_t *f, int g, int h, cuuint32_t i, cuuint32_t j, const cuuint32_t *k, CUtensorMapInterleave
       l, CUtensorMapIm2ColWideMode m, CUtensorMapSwizzle n, CUtensorMapL2promotion o, CUtensorMapFloatOOBfill p))

/* Managed memory is one memory here: attaching it to a stream changes nothing. */
static CUresult attach(CUstream h, bool per_thread, CUdeviceptr p)
{
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    gpu_range *r = gpu_range_find(p);
    gpu_unlock();
    return !s ? CUDA_ERROR_INVALID_HANDLE
           : r && r->kind == GPU_RANGE_MANAGED && r->start == p ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}

GPU_API_BOTH(cuStreamAttachMemAsync, _ptsz, (CUstream s, CUdeviceptr p, size_t bytes, unsigned flags),
             attach(s, per_thread, p))
