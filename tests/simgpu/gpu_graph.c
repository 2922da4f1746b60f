/*
 * Graphs, their instances and launches, their memory, objects that live as long as they do. See gpu_graph.h.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu_graph.h"

struct CUgraphExec_st {
    CUcontext ctx; /* where it was last launched; NULL: never */
    gpu_recipe **recipes;
    unsigned n;
    cuuint64_t flags;
    gpu_kept *kept; /* the graph's objects */
    unsigned n_kept;
    int running;   /* operations of it that are enqueued */
    bool destroyed;
    CUstream last; /* of the latest launch, a reference */
    uint64_t last_seq;
};

struct CUuserObject_st {
    unsigned refs;
    void *object;
    CUhostFn destroy;
};

/* ---- sets of nodes ----------------------------------------------------------------------------------------------------------- */

CUresult gpu_nodes_add(gpu_nodes *to, CUgraphNode node)
{
    for (unsigned i = 0; i < to->n; i++)
        if (to->at[i] == node)
            return CUDA_SUCCESS;
    if (to->n == to->room) {
        unsigned room = to->room ? 2 * to->room : 4;
        CUgraphNode *more = realloc(to->at, room * sizeof *more);
        if (!more)
            return CUDA_ERROR_OUT_OF_MEMORY;
        to->at = more;
        to->room = room;
    }
    to->at[to->n++] = node;
    return CUDA_SUCCESS;
}

CUresult gpu_nodes_add_all(gpu_nodes *to, const gpu_nodes *from)
{
    CUresult e = CUDA_SUCCESS;
    for (unsigned i = 0; !e && i < from->n; i++)
        e = gpu_nodes_add(to, from->at[i]);
    return e;
}

void gpu_nodes_clear(gpu_nodes *s)
{
    free(s->at);
    *s = (gpu_nodes){ 0 };
}

/* ---- memory of graphs ----------------------------------------------------------------------------------------------------------- */

static gpu_graph_mem **mems;
static size_t n_mems, room_mems;
static uint64_t used_high, reserved_high;

static void count_memory(uint64_t *used, uint64_t *reserved)
{
    *used = *reserved = 0;
    for (size_t i = 0; i < n_mems; i++) {
        *reserved += gpu_charged(mems[i]->bytes);
        *used += mems[i]->owned ? mems[i]->bytes : 0;
    }
    if (*used > used_high)
        used_high = *used;
    if (*reserved > reserved_high)
        reserved_high = *reserved;
}

gpu_graph_mem *gpu_graph_mem_at(CUdeviceptr p)
{
    for (size_t i = 0; i < n_mems; i++)
        if (mems[i]->at == p)
            return mems[i];
    return NULL;
}

CUresult gpu_graph_mem_new(uint64_t bytes, gpu_graph_mem **out)
{
    CUdeviceptr at;
    gpu_graph_mem *m = calloc(1, sizeof *m);
    gpu_unlock();
    CUresult e = m ? gpu_alloc_linear(&at, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    if (!e && n_mems == room_mems) {
        gpu_graph_mem **more = realloc(mems, (room_mems + 64) * sizeof(gpu_graph_mem *));
        if (more) {
            mems = more;
            room_mems += 64;
        } else {
            gpu_alloc_release(gpu_range_find(at));
            e = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (e) {
        free(m);
        return e;
    }
    gpu_range *r = gpu_range_find(at);
    r->kind = GPU_RANGE_GRAPH;
    *m = (gpu_graph_mem){ .refs = 1, .at = at, .bytes = bytes, .id = r->id };
    mems[n_mems++] = m;
    uint64_t used, reserved;
    count_memory(&used, &reserved);
    *out = m;
    return CUDA_SUCCESS;
}

void gpu_graph_mem_unref(gpu_graph_mem *m)
{
    if (--m->refs)
        return;
    for (size_t i = 0; i < n_mems; i++)
        if (mems[i] == m) {
            mems[i] = mems[--n_mems];
            break;
        }
    gpu_range *r = gpu_range_find(m->at);
    if (r && r->id == m->id) /* else it went with its context */
        gpu_alloc_release(r);
    free(m);
}

static void own(gpu_graph_mem *m, bool owned)
{
    if (m->owned == owned)
        return;
    m->owned = owned;
    m->refs += owned ? 1 : -1; /* its recipes keep it: never the last one */
    uint64_t used, reserved;
    count_memory(&used, &reserved);
}

typedef struct {
    gpu_op op;
    gpu_graph_mem *mem;
} mem_op;

static void mem_reached(gpu_op *op)
{
    gpu_graph_mem_unref(((mem_op *)op)->mem);
    free(op);
}

CUresult gpu_graph_free_async(CUdeviceptr p, CUstream s)
{
    gpu_graph_mem *m = gpu_graph_mem_at(p);
    if (!m || !m->owned) /* before a launch, or freed already */
        return CUDA_ERROR_INVALID_VALUE;
    mem_op *op = gpu_exec_op(sizeof *op);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->mem = m; /* takes over the program's reference */
    op->op.retire = mem_reached;
    op->op.node_type = CU_GRAPH_NODE_TYPE_EMPTY;
    m->owned = false;
    gpu_exec_enqueue(s, &op->op, GPU_ENGINE_NONE, 0);
    return CUDA_SUCCESS;
}

CUresult gpu_graph_free_now(CUdeviceptr p)
{
    gpu_graph_mem *m = gpu_graph_mem_at(p);
    if (!m || !m->owned)
        return CUDA_ERROR_INVALID_VALUE;
    m->owned = false;
    gpu_graph_mem_unref(m);
    return CUDA_SUCCESS;
}

static CUresult graph_memory(CUdevice dev, CUgraphMem_attribute a, cuuint64_t *get, const cuuint64_t *set)
{
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if ((unsigned)a > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH || (!get && !set))
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    uint64_t used, reserved;
    CUresult e = CUDA_SUCCESS;
    count_memory(&used, &reserved);
    if (get)
        *get = a == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT       ? used
               : a == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH        ? used_high
               : a == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? reserved
                                                             : reserved_high;
    else if (*set == 0 && a == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        used_high = used;
    else if (*set == 0 && a == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        reserved_high = reserved;
    else
        e = CUDA_ERROR_INVALID_VALUE;
    gpu_unlock();
    return e;
}

/* ---- recipes, nodes, graphs ------------------------------------------------------------------------------------------------------- */

static void recipe_unref(gpu_recipe *r)
{
    if (--r->refs)
        return;
    if (r->op && r->op->retire)
        r->op->retire(r->op);
    else
        free(r->op);
    if (r->mem)
        gpu_graph_mem_unref(r->mem);
    free(r);
}

bool gpu_graph_is(CUgraph g)
{
    return gpu_handle_kind(g) == GPU_GRAPH;
}

CUgraph gpu_graph_new(void)
{
    CUgraph g = calloc(1, sizeof *g);
    if (g && gpu_handle_add(g, GPU_GRAPH)) {
        free(g);
        g = NULL;
    }
    return g;
}

static void object_unref(CUuserObject o, unsigned n)
{
    o->refs -= n;
    if (o->refs)
        return;
    gpu_handle_drop(o);
    gpu_unlock(); /* it is the program's code */
    o->destroy(o->object);
    gpu_lock();
    free(o);
}

void gpu_graph_free(CUgraph g)
{
    gpu_handle_drop(g);
    for (unsigned i = 0; i < g->n; i++) {
        gpu_handle_drop(g->nodes[i]);
        recipe_unref(g->nodes[i]->recipe);
        gpu_nodes_clear(&g->nodes[i]->deps);
        free(g->nodes[i]);
    }
    for (unsigned i = 0; i < g->n_kept; i++)
        object_unref(g->kept[i].object, g->kept[i].count);
    free(g->nodes);
    free(g->kept);
    free(g);
}

CUgraphNode gpu_graph_add(CUgraph g, CUgraphNodeType type, gpu_op *op, enum gpu_engine engine, uint64_t ns,
                          gpu_graph_mem *mem, const gpu_nodes *deps)
{
    if (g->n == g->room) {
        CUgraphNode *more = realloc(g->nodes, (g->room + 64) * sizeof(CUgraphNode));
        if (more) {
            g->nodes = more;
            g->room += 64;
        }
    }
    CUgraphNode n = calloc(1, sizeof *n);
    gpu_recipe *r = calloc(1, sizeof *r);
    if (g->n == g->room || !n || !r || gpu_nodes_add_all(&n->deps, deps) || gpu_handle_add(n, GPU_GRAPH_NODE)) {
        if (n)
            gpu_nodes_clear(&n->deps);
        free(n);
        free(r);
        free(op);
        return NULL;
    }
    *r = (gpu_recipe){ 1, type, op, engine, ns, mem };
    if (mem)
        mem->refs++;
    n->graph = g;
    n->recipe = r;
    g->nodes[g->n++] = n;
    return n;
}

static CUresult graph_create(CUgraph *out, unsigned flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    *out = gpu_graph_new();
    gpu_unlock();
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult graph_destroy(CUgraph g)
{
    gpu_lock();
    bool ok = gpu_graph_is(g) && !g->in_capture;
    if (ok)
        gpu_graph_free(g);
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Fills up to *n, sets the rest to NULL and *n to how many there were; without a place for them, says how many there are. */
static void list(CUgraphNode *out, size_t *n, CUgraphNode *from, size_t have)
{
    for (size_t i = 0; out && i < *n; i++)
        out[i] = i < have ? from[i] : NULL;
    *n = !out || have < *n ? have : *n;
}

static CUresult get_nodes(CUgraph g, CUgraphNode *out, size_t *n)
{
    gpu_lock();
    bool ok = gpu_graph_is(g) && n;
    if (ok)
        list(out, n, g->nodes, g->n);
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult node_type(CUgraphNode n, CUgraphNodeType *out)
{
    gpu_lock();
    bool ok = gpu_handle_kind(n) == GPU_GRAPH_NODE && out;
    if (ok)
        *out = n->recipe->type;
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult node_deps(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges, size_t *n)
{
    gpu_lock();
    bool ok = gpu_handle_kind(node) == GPU_GRAPH_NODE && n;
    if (ok) {
        if (edges)
            memset(edges, 0, (*n < node->deps.n ? *n : node->deps.n) * sizeof *edges);
        list(out, n, node->deps.at, node->deps.n);
    }
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuGraphCreate, (CUgraph *g, unsigned flags), GPU_NEED_INIT, graph_create(g, flags))
GPU_API(cuGraphDestroy, (CUgraph g), GPU_NEED_INIT, graph_destroy(g))
GPU_API(cuGraphGetNodes, (CUgraph g, CUgraphNode *nodes, size_t *n), GPU_NEED_INIT, get_nodes(g, nodes, n))
GPU_API(cuGraphNodeGetType, (CUgraphNode n, CUgraphNodeType *type), GPU_NEED_INIT, node_type(n, type))
GPU_API(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *deps, size_t *n), GPU_NEED_INIT,
        node_deps(node, deps, NULL, n))
GPU_API(cuGraphNodeGetDependencies_v2, (CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *edges, size_t *n),
        GPU_NEED_INIT, node_deps(node, deps, edges, n))
GPU_API(cuDeviceGetGraphMemAttribute, (CUdevice dev, CUgraphMem_attribute a, void *value), GPU_NEED_INIT,
        graph_memory(dev, a, value, NULL))
GPU_API(cuDeviceSetGraphMemAttribute, (CUdevice dev, CUgraphMem_attribute a, void *value), GPU_NEED_INIT,
        graph_memory(dev, a, NULL, value))

/* ---- instances ----------------------------------------------------------------------------------------------------------------------- */

static void exec_free(CUgraphExec x)
{
    for (unsigned i = 0; i < x->n; i++)
        recipe_unref(x->recipes[i]);
    if (x->last)
        gpu_stream_unref(x->last);
    for (unsigned i = 0; i < x->n_kept; i++)
        object_unref(x->kept[i].object, x->kept[i].count);
    free(x->kept);
    free(x->recipes);
    free(x);
}

static CUresult instantiate(CUgraphExec *out, CUgraph g, cuuint64_t flags)
{
    const cuuint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                             CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (!out || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUresult e = gpu_graph_is(g) && !g->in_capture ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    CUgraphExec x = NULL;
    if (!e) {
        x = calloc(1, sizeof *x);
        if (x)
            x->recipes = calloc(g->n + 1, sizeof(gpu_recipe *));
        if (x)
            x->kept = calloc(g->n_kept + 1, sizeof *x->kept);
        e = x && x->recipes && x->kept ? gpu_handle_add(x, GPU_GRAPH_EXEC) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (e && x) {
        free(x->kept);
        free(x->recipes);
        free(x);
    }
    if (!e) {
        x->flags = flags;
        for (unsigned i = 0; i < g->n_kept; i++) {
            x->kept[x->n_kept++] = (gpu_kept){ g->kept[i].object, 1 };
            g->kept[i].object->refs++;
        }
        for (unsigned i = 0; i < g->n; i++) {
            x->recipes[x->n++] = g->nodes[i]->recipe;
            g->nodes[i]->recipe->refs++;
        }
        *out = x;
    }
    gpu_unlock();
    return e;
}

static CUresult instantiate_with(CUgraphExec *out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult e = instantiate(out, g, p->flags);
    p->hErrNode_out = NULL;
    p->result_out = e ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return e;
}

static CUresult exec_destroy(CUgraphExec x)
{
    gpu_lock();
    bool ok = gpu_handle_kind(x) == GPU_GRAPH_EXEC;
    if (ok) {
        gpu_handle_drop(x);
        x->destroyed = true; /* what is enqueued of it still runs */
        if (!x->running)
            exec_free(x);
    }
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult exec_flags(CUgraphExec x, cuuint64_t *flags)
{
    gpu_lock();
    bool ok = gpu_handle_kind(x) == GPU_GRAPH_EXEC && flags;
    if (ok)
        *flags = x->flags;
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuGraphInstantiate, (CUgraphExec *x, CUgraph g, CUgraphNode *node, char *log, size_t n), GPU_NEED_CTX,
        ((void)node, (void)log, (void)n, instantiate(x, g, 0)))
GPU_API(cuGraphInstantiate_v2, (CUgraphExec *x, CUgraph g, CUgraphNode *node, char *log, size_t n), GPU_NEED_CTX,
        ((void)node, (void)log, (void)n, instantiate(x, g, 0)))
GPU_API(cuGraphInstantiateWithFlags, (CUgraphExec *x, CUgraph g, unsigned long long flags), GPU_NEED_CTX,
        instantiate(x, g, flags))
GPU_API_BOTH(cuGraphInstantiateWithParams, _ptsz, (CUgraphExec *x, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p),
             instantiate_with(x, g, p))
GPU_API(cuGraphExecDestroy, (CUgraphExec x), GPU_NEED_INIT, exec_destroy(x))
GPU_API(cuGraphExecGetFlags, (CUgraphExec x, cuuint64_t *flags), GPU_NEED_INIT, exec_flags(x, flags))

/* ---- launches ------------------------------------------------------------------------------------------------------------------------- */

typedef struct {
    gpu_op op;
    CUgraphExec exec;
    gpu_op *pattern; /* NULL: nothing to run */
    CUcontext ctx;
} step_op;

static void run_step(gpu_op *op)
{
    gpu_op *pattern = ((step_op *)op)->pattern;
    pattern->exec(pattern);
}

static void retire_step(gpu_op *op)
{
    step_op *s = (step_op *)op;
    CUgraphExec x = s->exec;
    /* after a fault the pattern is kept: threads of its kernel may still read it */
    if (--x->running == 0 && x->destroyed && !s->ctx->sticky)
        exec_free(x);
    free(s);
}

static CUresult enqueue_step(CUgraphExec x, gpu_recipe *r, CUstream s, bool first)
{
    step_op *op = gpu_exec_op(sizeof *op);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->exec = x;
    op->pattern = r && r->op && r->op->exec ? r->op : NULL;
    op->ctx = s->ctx;
    op->op.exec = op->pattern ? run_step : NULL;
    op->op.retire = retire_step;
    op->op.touches_memory = op->pattern && op->pattern->touches_memory;
    op->op.reaches = op->pattern ? op->pattern->reaches : 0;
    CUresult e = first && x->last ? gpu_exec_depend(&op->op, x->last, x->last_seq) : CUDA_SUCCESS;
    if (e) {
        free(op);
        return e;
    }
    x->running++;
    gpu_exec_enqueue(s, &op->op, r ? r->engine : GPU_ENGINE_NONE, r ? r->ns : 0);
    return CUDA_SUCCESS;
}

/* Memory that the graph allocates must not be the program's still. */
static bool may_allocate(CUgraphExec x)
{
    for (unsigned i = 0; i < x->n; i++)
        if (x->recipes[i]->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && x->recipes[i]->mem->owned)
            return x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    return true;
}

static CUresult launch(CUgraphExec x, CUstream h, bool per_thread)
{
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult e = CUDA_SUCCESS;
    if (!s)
        e = CUDA_ERROR_INVALID_HANDLE;
    else if (gpu_handle_kind(x) != GPU_GRAPH_EXEC || !may_allocate(x))
        e = CUDA_ERROR_INVALID_VALUE;
    else if (s->capture) /* a graph inside a graph */
        e = CUDA_ERROR_NOT_SUPPORTED;
    else if (s->is_legacy)
        e = gpu_capture_allows_legacy(s->ctx);
    if (!e)
        e = enqueue_step(x, NULL, s, true);
    for (unsigned i = 0; !e && i < x->n; i++) {
        gpu_recipe *r = x->recipes[i];
        if (r->mem)
            own(r->mem, r->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
        else if (r->type != CU_GRAPH_NODE_TYPE_EMPTY)
            e = enqueue_step(x, r, s, false);
    }
    if (!e) {
        gpu_stream_ref(s);
        if (x->last)
            gpu_stream_unref(x->last);
        x->last = s;
        x->last_seq = s->enqueued;
        x->ctx = s->ctx;
    }
    gpu_unlock();
    return e;
}

static CUresult upload(CUgraphExec x, CUstream h, bool per_thread)
{
    gpu_lock();
    CUresult e = !gpu_stream_resolve(h, per_thread)            ? CUDA_ERROR_INVALID_HANDLE
                 : gpu_handle_kind(x) == GPU_GRAPH_EXEC ? CUDA_SUCCESS
                                                        : CUDA_ERROR_INVALID_VALUE;
    gpu_unlock();
    return e;
}

GPU_API_BOTH(cuGraphLaunch, _ptsz, (CUgraphExec x, CUstream s), launch(x, s, per_thread))
GPU_API_BOTH(cuGraphUpload, _ptsz, (CUgraphExec x, CUstream s), upload(x, s, per_thread))

/* ---- objects that live as long as a graph ---------------------------------------------------------------------------------------------- */

static CUuserObject live_object(CUuserObject o)
{
    return gpu_handle_kind(o) == GPU_USER_OBJECT ? o : NULL;
}

static CUresult object_create(CUuserObject *out, void *object, CUhostFn destroy, unsigned refs, unsigned flags)
{
    if (!out || !destroy || !refs || flags != 1) /* CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, the one flag there is, is a must */
        return CUDA_ERROR_INVALID_VALUE;
    CUuserObject o = calloc(1, sizeof *o);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *o = (struct CUuserObject_st){ refs, object, destroy };
    gpu_lock();
    CUresult e = gpu_handle_add(o, GPU_USER_OBJECT);
    gpu_unlock();
    if (e)
        free(o);
    else
        *out = o;
    return e;
}

static CUresult object_count(CUuserObject h, int sign, unsigned n)
{
    gpu_lock();
    CUuserObject o = live_object(h);
    CUresult e = o && n && (sign > 0 || n <= o->refs) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!e && sign > 0)
        o->refs += n;
    else if (!e)
        object_unref(o, n);
    gpu_unlock();
    return e;
}

static CUresult graph_retain(CUgraph g, CUuserObject h, unsigned n, unsigned flags)
{
    gpu_lock();
    CUuserObject o = live_object(h);
    CUresult e = gpu_graph_is(g) && o && n && flags <= 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    gpu_kept *more = e ? NULL : realloc(g->kept, (g->n_kept + 1) * sizeof *more);
    if (!e && !more)
        e = CUDA_ERROR_OUT_OF_MEMORY;
    if (!e) {
        g->kept = more;
        g->kept[g->n_kept++] = (gpu_kept){ o, n };
        o->refs += flags & 1 ? 0 : n; /* CU_GRAPH_USER_OBJECT_MOVE: the caller's references */
    }
    gpu_unlock();
    return e;
}

static CUresult graph_release(CUgraph g, CUuserObject h, unsigned n)
{
    gpu_lock();
    CUresult e = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; gpu_graph_is(g) && n && i < g->n_kept; i++)
        if (g->kept[i].object == h && g->kept[i].count >= n) {
            g->kept[i].count -= n;
            if (!g->kept[i].count)
                g->kept[i] = g->kept[--g->n_kept];
            object_unref(h, n);
            e = CUDA_SUCCESS;
            break;
        }
    gpu_unlock();
    return e;
}

GPU_API(cuUserObjectCreate, (CUuserObject *o, void *object, CUhostFn destroy, unsigned refs, unsigned flags), GPU_NEED_INIT,
        object_create(o, object, destroy, refs, flags))
GPU_API(cuUserObjectRetain, (CUuserObject o, unsigned n), GPU_NEED_INIT, object_count(o, 1, n))
GPU_API(cuUserObjectRelease, (CUuserObject o, unsigned n), GPU_NEED_INIT, object_count(o, -1, n))
GPU_API(cuGraphRetainUserObject, (CUgraph g, CUuserObject o, unsigned n, unsigned flags), GPU_NEED_INIT,
        graph_retain(g, o, n, flags))
GPU_API(cuGraphReleaseUserObject, (CUgraph g, CUuserObject o, unsigned n), GPU_NEED_INIT, graph_release(g, o, n))
