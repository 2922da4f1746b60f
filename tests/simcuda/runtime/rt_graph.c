/*
 * Capture and graphs.
 */
#include "tests/simcuda/runtime/rt.h"

RT_EXPORT int cudaStreamBeginCapture(CUstream stream, int mode)
{
    RT_DO(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode));
}

RT_EXPORT int cudaStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *deps,
                                            const CUgraphEdgeData *edges, size_t n, int mode)
{
    RT_DO(cuStreamBeginCaptureToGraph(stream, graph, deps, edges, n, (CUstreamCaptureMode)mode));
}

RT_EXPORT int cudaStreamEndCapture(CUstream stream, CUgraph *graph)
{
    RT_DO(cuStreamEndCapture(stream, graph));
}

RT_EXPORT int cudaStreamIsCapturing(CUstream stream, int *status)
{
    RT_DO(cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}

RT_EXPORT int cudaStreamGetCaptureInfo(CUstream stream, int *status, cuuint64_t *id, CUgraph *graph,
                                       const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *n)
{
    RT_DO(cuStreamGetCaptureInfo_v3(stream, (CUstreamCaptureStatus *)status, id, graph, deps, edges, n));
}

RT_EXPORT int cudaStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n,
                                                  unsigned flags)
{
    RT_DO(cuStreamUpdateCaptureDependencies_v2(stream, deps, edges, n, flags));
}

RT_EXPORT int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    RT_DO(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}

RT_EXPORT int cudaGraphCreate(CUgraph *graph, unsigned flags)
{
    RT_DO(cuGraphCreate(graph, flags));
}

RT_EXPORT int cudaGraphDestroy(CUgraph graph)
{
    RT_DO(cuGraphDestroy(graph));
}

RT_EXPORT int cudaGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    RT_DO(cuGraphGetNodes(graph, nodes, n));
}

RT_EXPORT int cudaGraphNodeGetType(CUgraphNode node, int *type)
{
    RT_DO(cuGraphNodeGetType(node, (CUgraphNodeType *)type));
}

RT_EXPORT int cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    RT_DO(cuGraphInstantiateWithFlags(exec, graph, flags));
}

RT_EXPORT int cudaGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    RT_DO(cuGraphInstantiateWithFlags(exec, graph, flags));
}

RT_EXPORT int cudaGraphExecDestroy(CUgraphExec exec)
{
    RT_DO(cuGraphExecDestroy(exec));
}

RT_EXPORT int cudaGraphLaunch(CUgraphExec exec, CUstream stream)
{
    RT_DO(cuGraphLaunch(exec, stream));
}

RT_EXPORT int cudaGraphUpload(CUgraphExec exec, CUstream stream)
{
    RT_DO(cuGraphUpload(exec, stream));
}

RT_EXPORT int cudaGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *edges, size_t *n)
{
    RT_DO(cuGraphNodeGetDependencies_v2(node, deps, edges, n));
}

RT_EXPORT int cudaUserObjectCreate(CUuserObject *out, void *object, CUhostFn destroy, unsigned refs, unsigned flags)
{
    RT_DO(cuUserObjectCreate(out, object, destroy, refs, flags));
}

RT_EXPORT int cudaUserObjectRetain(CUuserObject object, unsigned n)
{
    RT_DO(cuUserObjectRetain(object, n));
}

RT_EXPORT int cudaUserObjectRelease(CUuserObject object, unsigned n)
{
    RT_DO(cuUserObjectRelease(object, n));
}

RT_EXPORT int cudaGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned n, unsigned flags)
{
    RT_DO(cuGraphRetainUserObject(graph, object, n, flags));
}

RT_EXPORT int cudaGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned n)
{
    RT_DO(cuGraphReleaseUserObject(graph, object, n));
}
