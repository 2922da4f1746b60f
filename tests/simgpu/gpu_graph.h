/*
 * Graphs: recorded operations that can be enqueued again and again, and the capture that records them.
 *
 * A recipe is one recorded operation: the very gpu_op that would have run, kept as a pattern. Nodes of graphs and
 * instantiated graphs share recipes by counting. A launch enqueues one operation a recipe, in the order of capture, in one
 * stream: that order keeps every dependency, and is one of those the driver may choose. Launches of one instantiated graph
 * run one after the other, so a pattern never runs twice at a time.
 *
 * Memory that a capture allocates belongs to the graph: it has its address from the capture on, counts as long as the
 * graph or an instance of it lives, and is the program's between a launch and its free.
 *
 * Threads: everything here under gpu_lock unless it says otherwise.
 */
#ifndef SIMGPU_GPU_GRAPH_H
#define SIMGPU_GPU_GRAPH_H

#include "tests/simgpu/abi_graph.h"
#include "tests/simgpu/gpu.h"

typedef struct gpu_graph_mem {
    int refs;            /* of recipes, and one while the program owns it */
    CUdeviceptr at;
    uint64_t bytes;
    unsigned long long id; /* of its range */
    bool owned;          /* by the program: launched and not freed */
} gpu_graph_mem;

typedef struct gpu_recipe {
    int refs;
    CUgraphNodeType type;
    gpu_op *op;          /* NULL: an empty node */
    enum gpu_engine engine;
    uint64_t ns;
    gpu_graph_mem *mem;  /* of allocations and frees */
} gpu_recipe;

struct CUgraphNode_st {
    CUgraph graph;
    gpu_recipe *recipe;
    gpu_nodes deps;
    bool mark;
};

typedef struct gpu_kept { /* a user object that a graph keeps */
    CUuserObject object;
    unsigned count;
} gpu_kept;

struct CUgraph_st {
    CUgraphNode *nodes; /* in the order they were made: dependencies first */
    unsigned n, room;
    gpu_kept *kept;
    unsigned n_kept;
    bool in_capture; /* not yet the program's */
};

/* ---- graphs (gpu_graph.c) ------------------------------------------------------------------------------------------------- */

CUgraph gpu_graph_new(void); /* NULL: no memory */
void gpu_graph_free(CUgraph g);
bool gpu_graph_is(CUgraph g);
/* Adds a node; takes op. NULL: no memory (op is gone all the same). */
CUgraphNode gpu_graph_add(CUgraph g, CUgraphNodeType type, gpu_op *op, enum gpu_engine engine, uint64_t ns,
                          gpu_graph_mem *mem, const gpu_nodes *deps);
CUresult gpu_nodes_add(gpu_nodes *to, CUgraphNode node); /* once; CUDA_ERROR_OUT_OF_MEMORY */
CUresult gpu_nodes_add_all(gpu_nodes *to, const gpu_nodes *from);
void gpu_nodes_clear(gpu_nodes *s);
/* The graph memory that begins at p, NULL: none. */
gpu_graph_mem *gpu_graph_mem_at(CUdeviceptr p);
/* Memory for an allocation node. Drops gpu_lock meanwhile. */
CUresult gpu_graph_mem_new(uint64_t bytes, gpu_graph_mem **out);
void gpu_graph_mem_unref(gpu_graph_mem *m);
/* The program frees what a launch allocated, in stream order or at once. CUDA_ERROR_INVALID_VALUE: it does not own it. */
CUresult gpu_graph_free_async(CUdeviceptr p, CUstream s);
CUresult gpu_graph_free_now(CUdeviceptr p);

/* ---- capture (gpu_capture.c) ------------------------------------------------------------------------------------------------ */

/* Work enqueued in a capturing stream. Takes op. */
void gpu_capture_enqueue(CUstream s, gpu_op *op, enum gpu_engine engine, uint64_t ns);
/* cuStreamWaitEvent, if s or e has to do with a capture: *done says so and the result is the call's. */
CUresult gpu_capture_wait(CUstream s, CUevent e, bool *done);
/* cuEventRecord in a capturing stream; in any other, forgets what was captured. */
void gpu_capture_record(CUstream s, CUevent e);
void gpu_capture_forget(CUevent e);
CUresult gpu_capture_alloc(CUstream s, uint64_t bytes, CUdeviceptr *out);
CUresult gpu_capture_free(CUstream s, CUdeviceptr p);
/* CUDA_SUCCESS, or what a call that waits for s (for anything of ctx) must return: its captures are over then. */
CUresult gpu_capture_may_wait(CUstream s);
CUresult gpu_capture_may_wait_ctx(CUcontext ctx);
/* The same for calls that may wait for other work: allocations that are not stream-ordered, questions about events. Takes the
   lock itself. */
CUresult gpu_capture_allows_unsafe(void);
/* Work in the legacy stream would wait for capturing streams. */
CUresult gpu_capture_allows_legacy(CUcontext ctx);
/* What enqueueing in s must return first: the above, or that its capture is invalid. */
CUresult gpu_capture_allows_work(CUstream s);
void gpu_capture_stream_gone(CUstream s);

#endif
