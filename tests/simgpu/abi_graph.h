/*
 * Calls of the driver that the simulated device has and nothing else of this project uses: about graphs (see
 * preload/cuda_abi.h for the rest).
 */
#ifndef SIMGPU_ABI_GRAPH_H
#define SIMGPU_ABI_GRAPH_H

#include "preload/cuda_abi.h"

typedef struct CUuserObject_st *CUuserObject;

CUresult cuGraphNodeGetDependencies(CUgraphNode, CUgraphNode *, size_t *);
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode, CUgraphNode *, CUgraphEdgeData *, size_t *);
CUresult cuUserObjectCreate(CUuserObject *, void *, CUhostFn, unsigned, unsigned);
CUresult cuUserObjectRetain(CUuserObject, unsigned);
CUresult cuUserObjectRelease(CUuserObject, unsigned);
CUresult cuGraphRetainUserObject(CUgraph, CUuserObject, unsigned, unsigned);
CUresult cuGraphReleaseUserObject(CUgraph, CUuserObject, unsigned);

#endif
