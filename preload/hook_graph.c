/* hook_graph.c: capture, graphs made by hand, graph launches. A graph's addresses are out of sight when it runs: every buffer
 * that is live while a graph is captured or edited becomes unevictable.
 */
#include "policy/allocations.h"
#include "policy/engine.h"
#include "policy/reach.h"
#include "preload/door.h"

ISSUE2(graph_launch, cuGraphLaunch, CUgraphExec, CUstream)

static int on_graph_launch(__typeof__(&cuGraphLaunch) real, CUstream nul, CUgraphExec g, CUstream s)
{
    struct call_graph_launch call = {real, g, s};
    eng_unconfined("a graph is launched");
    struct eng_touch waits = door_may_wait;
    int r = eng_other("cuGraphLaunch", door_stream(s, nul), &waits, 1, issue_graph_launch, &call);
    eng_graph_issued();
    return r;
}

static int on_graph_upload(__typeof__(&cuGraphUpload) real, CUstream nul, CUgraphExec g, CUstream s)
{
    (void)nul;
    int r = real(g, s);
    eng_graph_issued();
    return r;
}

/* ---- capture: the engine is told before a capture begins, and when it has ended or never began --------------------------------- */

static int began(int r, CUstream s)
{
    if (r)
        eng_capture_ends(s);
    else
        eng_capture_began(s);
    return r;
}

static int on_begin_capture_old(__typeof__(&cuStreamBeginCapture) real, CUstream nul, CUstream s)
{
    DOOR_TRY(eng_capture_begins(door_stream(s, nul)));
    return began(real(s), door_stream(s, nul));
}

static int on_begin_capture(__typeof__(&cuStreamBeginCapture_v2) real, CUstream nul, CUstream s, CUstreamCaptureMode mode)
{
    DOOR_TRY(eng_capture_begins(door_stream(s, nul)));
    return began(real(s, mode), door_stream(s, nul));
}

static int on_begin_capture_to(__typeof__(&cuStreamBeginCaptureToGraph) real, CUstream nul, CUstream s, CUgraph g,
                               const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode)
{
    DOOR_TRY(eng_capture_begins(door_stream(s, nul)));
    return began(real(s, g, deps, edges, n, mode), door_stream(s, nul));
}

static int on_begin_recapture(__typeof__(&cuStreamBeginRecaptureToGraph) real, CUstream nul, CUstream s, CUstreamCaptureMode mode,
                              CUgraph g, void *callback, void *data)
{
    DOOR_TRY(eng_capture_begins(door_stream(s, nul)));
    return began(real(s, mode, g, callback, data), door_stream(s, nul));
}

static int on_begin_capture_to_cig(__typeof__(&cuStreamBeginCaptureToCig) real, CUstream nul, CUstream s, void *p)
{
    DOOR_TRY(eng_capture_begins(door_stream(s, nul)));
    return began(real(s, p), door_stream(s, nul));
}

/* True if the capture is over. A cuStreamEndCapture that fails leaves no capture behind, unless the stream had none to end here. */
enum { GRAPH_RECAPTURE_FAILURE = 918 }; /* CUDA 13.3 */
static bool has_ended(int r)
{
    switch (r) {
    case CUDA_SUCCESS: case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED: case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: case GRAPH_RECAPTURE_FAILURE:
        return true;
    default:
        return false;
    }
}

static int on_end_capture(__typeof__(&cuStreamEndCapture) real, CUstream nul, CUstream s, CUgraph *g)
{
    int r = real(s, g);
    if (has_ended(r))
        eng_capture_ends(door_stream(s, nul));
    return r;
}

static int on_end_capture_to_cig(__typeof__(&cuStreamEndCaptureToCig) real, CUstream nul, CUstream s)
{
    int r = real(s);
    if (has_ended(r))
        eng_capture_ends(door_stream(s, nul));
    return r;
}

/* ---- graphs made or changed by hand -------------------------------------------------------------------------------------------- */

static int on_add_kernel_node_old(__typeof__(&cuGraphAddKernelNode) real, CUgraphNode *n, CUgraph g,
                                  const CUgraphNode *deps, size_t n_deps, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    DOOR_TRY(eng_pin_everything());
    return real(n, g, deps, n_deps, p);
}

static int on_add_kernel_node(__typeof__(&cuGraphAddKernelNode_v2) real, CUgraphNode *n, CUgraph g,
                              const CUgraphNode *deps, size_t n_deps, const CUDA_KERNEL_NODE_PARAMS *p)
{
    DOOR_TRY(eng_pin_everything());
    return real(n, g, deps, n_deps, p);
}

static int on_add_memcpy_node(__typeof__(&cuGraphAddMemcpyNode) real, CUgraphNode *n, CUgraph g, const CUgraphNode *deps,
                              size_t n_deps, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    DOOR_TRY(eng_pin_everything());
    return real(n, g, deps, n_deps, p, ctx);
}

static int on_add_memset_node(__typeof__(&cuGraphAddMemsetNode) real, CUgraphNode *n, CUgraph g, const CUgraphNode *deps,
                              size_t n_deps, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
    DOOR_TRY(eng_pin_everything());
    return real(n, g, deps, n_deps, p, ctx);
}

static int on_add_opaque_node(__typeof__(&cuGraphAddBatchMemOpNode) real, CUgraphNode *n, CUgraph g,
                              const CUgraphNode *deps, size_t n_deps, const void *p)
{
    DOOR_TRY(eng_pin_everything());
    return real(n, g, deps, n_deps, p);
}

static int on_add_node(__typeof__(&cuGraphAddNode) real, CUgraphNode *n, CUgraph g, const CUgraphNode *deps,
                       size_t n_deps, void *p)
{
    DOOR_TRY(eng_pin_everything());
    return real(n, g, deps, n_deps, p);
}

static int on_add_node_edges(__typeof__(&cuGraphAddNode_v2) real, CUgraphNode *n, CUgraph g, const CUgraphNode *deps,
                             const CUgraphEdgeData *edges, size_t n_deps, void *p)
{
    DOOR_TRY(eng_pin_everything());
    return real(n, g, deps, edges, n_deps, p);
}

static int on_node_set(__typeof__(&cuGraphNodeSetParams) real, CUgraphNode n, const void *p)
{
    DOOR_TRY(eng_pin_everything());
    return real(n, p);
}

static int on_exec_set(__typeof__(&cuGraphExecNodeSetParams) real, CUgraphExec e, CUgraphNode n, const void *p)
{
    DOOR_TRY(eng_pin_everything());
    return real(e, n, p);
}

static int on_exec_set_in(__typeof__(&cuGraphExecMemcpyNodeSetParams) real, CUgraphExec e, CUgraphNode n, const void *p,
                          CUcontext ctx)
{
    DOOR_TRY(eng_pin_everything());
    return real(e, n, p, ctx);
}

HOOKS_GRAPH(DOOR_EXPORT)
