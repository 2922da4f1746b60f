/* Running steps of enum kind. */
#include "tests/programs/api/run.h"

enum { NAMED_BYTES = 8192 }; /* as much as a table has */

/* Of a run: what its program has made beside tensors. Graphs and textures that are made anew stay until the end: work that uses the old ones may be
 * on its way. */
struct kinds_of_run {
    CUgraphExec graph[MAX_GRAPHS], old_graph[64];
    unsigned long long texture[MAX_TEXTURES], old_texture[64];
    bool surface[MAX_TEXTURES], old_surface[64];
    unsigned n_old_graphs, n_old_textures;
    CUarray array[MAX_TENSORS];
    CUmemGenericAllocationHandle handle[MAX_TENSORS];
};

const unsigned run_context_kind[CONTEXTS] = {[CONTEXT_GREEN] = KIND_CONTEXT, [CONTEXT_PEER] = KIND_PEER};

static CUgreenCtx green;
static CUstream peer_stream, capturing;
static CUdeviceptr named;

/* ---- contexts ------------------------------------------------------------------------------------------------------------------ */

static void make_green(void)
{
    CUdevResource sms;
    CUdevResourceDesc desc;
    MUST(cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_SM));
    MUST(cuDevResourceGenerateDesc(&desc, &sms, 1));
    MUST(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST(cuCtxFromGreenCtx(&run_contexts[CONTEXT_GREEN], green));
}

void run_kinds_second_device(void)
{
    CUcontext c;
    MUST(cuDevicePrimaryCtxRetain(&c, 1));
    MUST(cuCtxSetCurrent(c));
    run_load(&run_functions[1]);
    MUST(cuCtxEnablePeerAccess(run_contexts[CONTEXT_PRIMARY], 0));
    MUST(cuStreamCreate(&peer_stream, CU_STREAM_NON_BLOCKING));
    MUST(cuCtxSetCurrent(run_contexts[CONTEXT_PRIMARY]));
    MUST(cuCtxEnablePeerAccess(c, 0));
    run_contexts[CONTEXT_PEER] = c;
}

CUstream run_kinds_stream(const struct program *p, int s)
{
    if (p->start.context[s] == CONTEXT_PEER) {
        run_use(CONTEXT_PEER);
        return peer_stream;
    }
    if (p->start.kind[s] == STREAM_LEGACY)
        return p->seed % 2 ? NULL : CU_STREAM_LEGACY;
    CUstream of;
    run_use(CONTEXT_GREEN);
    if (p->start.kind[s] == STREAM_FREE && p->seed % 3)
        MUST(cuGreenCtxStreamCreate(&of, green, CU_STREAM_NON_BLOCKING, 0));
    else
        MUST(cuStreamCreate(&of, p->start.kind[s] == STREAM_BLOCKING ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    return of;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------------- */

static size_t granularity(void)
{
    const CUmemAllocationProp prop = memory_of(0);
    size_t g;
    MUST(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    return g;
}

static size_t rounded(uint32_t words)
{
    const size_t g = granularity();
    return (4ull * words + g - 1) / g * g;
}

/* Every device of the program's may use it. */
static CUdeviceptr map(struct run *r, int t, size_t bytes)
{
    const CUmemAllocationProp prop = memory_of(0);
    const CUmemAccessDesc access[] = {{.location = memory_of(0).location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                                      {.location = memory_of(1).location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    MUST(cuMemAddressReserve(&p, bytes, 0, 0, 0));
    MUST(cuMemCreate(&h, bytes, &prop, 0));
    MUST(cuMemMap(p, bytes, 0, h, 0));
    MUST(cuMemSetAccess(p, bytes, access, r->p->kinds & KIND_PEER ? 2 : 1));
    r->kinds->handle[t] = h;
    return p;
}

void run_alloc(struct run *r, const struct step *s)
{
    const int t = s->t[0];
    const size_t bytes = 4ull * s->value;
    void *host;
    r->memory[t] = s->how;
    switch (s->how) {
    case MEM_MAPPED: r->tensor[t] = map(r, t, rounded(s->value)); break;
    case MEM_MANAGED: MUST(cuMemAllocManaged(&r->tensor[t], bytes, CU_MEM_ATTACH_GLOBAL)); break;
    case MEM_PINNED:
        MUST(cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
        MUST(cuMemHostGetDevicePointer_v2(&r->tensor[t], host, 0));
        break;
    case MEM_NAMED: r->tensor[t] = named; break;
    case MEM_ARRAY: {
        const CUDA_ARRAY3D_DESCRIPTOR d = {.Width = ARRAY_WORDS, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SURFACE_LDST};
        MUST(cuArray3DCreate_v2(&r->kinds->array[t], &d));
        break;
    }
    default: MUST(cuMemAlloc_v2(&r->tensor[t], bytes)); break;
    }
}

void run_free(struct run *r, const struct step *s)
{
    const int t = s->t[0];
    const CUdeviceptr p = r->tensor[t];
    const size_t bytes = rounded(r->words[t]);
    switch (r->memory[t]) {
    case MEM_MAPPED:
        MUST(cuMemUnmap(p, bytes));
        MUST(cuMemRelease(r->kinds->handle[t]));
        MUST(cuMemAddressFree(p, bytes));
        break;
    case MEM_PINNED: MUST(cuMemFreeHost((void *)(uintptr_t)p)); break;
    case MEM_NAMED: break;
    case MEM_ARRAY: MUST(cuArrayDestroy(r->kinds->array[t])); break;
    default: MUST(cuMemFree_v2(p)); break;
    }
    r->memory[t] = MEM_POOL;
}

/* ---- graphs, textures ------------------------------------------------------------------------------------------------------------- */

static void capture_begins(const struct step *s)
{
    run_use(CONTEXT_PRIMARY);
    MUST(cuStreamBeginCapture_v2(capturing, s->value % 2 ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static CUgraph capture_ends(void)
{
    CUgraph g;
    run_use(CONTEXT_PRIMARY);
    MUST(cuStreamEndCapture(capturing, &g));
    return g;
}

static void make_graph(struct run *r, const struct step *s, const uint32_t *host)
{
    struct kinds_of_run *k = r->kinds;
    const struct functions *f = &run_functions[0];
    CUgraphExec *exec = &k->graph[s->event];
    CUdeviceptr t[3] = {0}, scratch;
    uint32_t n[3] = {0}, zero = 0, all = ~0u;
    for (int i = 0; i < 3; i++)
        if (s->t[i] >= 0) {
            t[i] = r->tensor[s->t[i]];
            n[i] = r->words[s->t[i]];
        }
    if (*exec && k->n_old_graphs < sizeof k->old_graph / sizeof *k->old_graph)
        k->old_graph[k->n_old_graphs++] = *exec;
    capture_begins(s);
    switch (s->how) {
    case 1:
        MUST(cuMemsetD32Async(t[0], s->value, n[0], capturing));
        RUN_LAUNCH(f->add, capturing, &t[0], &t[1], &n[0], &n[1]);
        RUN_LAUNCH(f->add, capturing, &t[0], &t[2], &n[0], &n[2]);
        break;
    case 3:
        MUST(cuMemAllocAsync(&scratch, 4ull * n[0], capturing));
        RUN_LAUNCH(f->join, capturing, &scratch, &t[1], &t[2], &n[0], &n[1], &n[2]);
        RUN_LAUNCH(f->map, capturing, &t[0], &scratch, &n[0], &zero, &all);
        MUST(cuMemFreeAsync(scratch, capturing));
        break;
    case 4: MUST(cuMemcpyHtoDAsync_v2(t[0], host, 4ull * n[0], capturing)); break;
    default:
        RUN_LAUNCH(f->join, capturing, &t[0], &t[1], &t[2], &n[0], &n[1], &n[2]);
        if (s->how == 2)
            RUN_LAUNCH(f->relu, capturing, &t[0], &n[0]);
        break;
    }
    CUgraph g = capture_ends();
    MUST(cuGraphInstantiateWithFlags(exec, g, 0));
    MUST(cuGraphDestroy(g));
}

static void show(struct run *r, const struct step *s)
{
    struct kinds_of_run *k = r->kinds;
    const CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
    CUDA_RESOURCE_DESC what = {.resType = CU_RESOURCE_TYPE_LINEAR};
    unsigned long long *at = &k->texture[s->event];
    if (*at && k->n_old_textures < sizeof k->old_texture / sizeof *k->old_texture) {
        k->old_surface[k->n_old_textures] = k->surface[s->event];
        k->old_texture[k->n_old_textures++] = *at;
    }
    if (r->memory[s->t[2]] == MEM_ARRAY) {
        what.resType = CU_RESOURCE_TYPE_ARRAY;
        what.res.array.hArray = k->array[s->t[2]];
    } else {
        what.res.linear.devPtr = r->tensor[s->t[2]];
        what.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
        what.res.linear.numChannels = 1;
        what.res.linear.sizeInBytes = 4ull * r->words[s->t[2]];
    }
    k->surface[s->event] = s->how;
    if (s->how)
        MUST(cuSurfObjectCreate(at, &what));
    else
        MUST(cuTexObjectCreate(at, &what, &how, NULL));
}

static CUtensorMap tensor_map(CUdeviceptr p, uint32_t words, unsigned how)
{
    CUtensorMap m;
    CUtensorMapAllocClass got;
    MUST(cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_UINT32, 1, (void *)(uintptr_t)p, &(cuuint64_t){words}, NULL, &(cuuint32_t){256},
                                &(cuuint32_t){1}, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    if (how & 1)
        MUST(cuTensorMapSetAllocationClass(&m, CU_TENSOR_MAP_ALLOC_CLASS_LARGE, &got));
    if (how & 2)
        MUST(cuTensorMapReplaceAddress(&m, (void *)(uintptr_t)p));
    return m;
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------------ */

static void batch(CUdeviceptr to, CUdeviceptr from, uint32_t words, const struct step *s, CUstream on)
{
    enum { PIECES = 3 };
    CUmemcpyAttributes a[PIECES];
    CUdeviceptr d[PIECES], b[PIECES];
    size_t bytes[PIECES], first[PIECES], failed;
    memset(a, 0, sizeof a);
    for (unsigned i = 0; i < PIECES; i++) {
        const uint32_t at = words / PIECES * i;
        d[i] = to + 4ull * at;
        b[i] = from + 4ull * at;
        bytes[i] = 4ull * (i + 1 < PIECES ? words / PIECES : words - at);
        first[i] = i;
        a[i].srcAccessOrder = s->how ? (CUmemcpySrcAccessOrder)s->how : (CUmemcpySrcAccessOrder)(1 + (s->value + i) % 3);
    }
    const unsigned n = s->how ? 1 : PIECES;
    if (s->value % 5 == 0 && s->how) {
        bytes[0] = 4ull * words;
        MUST(cuMemcpyWithAttributesAsync(to, from, bytes[0], &a[0], on));
    } else if (s->value % 2)
        MUST(cuMemcpyBatchAsync_v2(d, b, bytes, PIECES, a, first, n, on));
    else
        MUST(cuMemcpyBatchAsync(d, b, bytes, PIECES, a, first, n, &failed, on));
}

/* ---- steps -------------------------------------------------------------------------------------------------------------------------- */

static void from_list(struct run *r, const struct step *s, CUstream to)
{
    const struct functions *f = run_functions_of(s);
    CUdeviceptr out = r->tensor[s->t[0]], list = r->tensor[s->t[1]], in = r->tensor[s->t[3]];
    const bool direct = s->verb == V_FROM_NAMED, by_name = r->memory[s->t[1]] == MEM_NAMED;
    uint32_t n = r->words[s->t[0]], n_in = r->words[s->t[3]], n_t = r->words[direct ? s->t[1] : s->t[2]], k = s->value, through = !direct;
    if (by_name)
        RUN_LAUNCH(f->from_named, to, &out, &in, &n, &n_in, &n_t, &k, &through);
    else
        RUN_LAUNCH(f->from_list, to, &out, &in, &list, &n, &n_in, &n_t, &k);
}

static void to_list(struct run *r, const struct step *s, CUstream to)
{
    const struct functions *f = run_functions_of(s);
    CUdeviceptr list = r->tensor[s->t[1]], in = r->tensor[s->t[3]];
    uint32_t n = r->words[s->t[2]], n_in = r->words[s->t[3]], k = s->value;
    if (r->memory[s->t[1]] == MEM_NAMED)
        RUN_LAUNCH(f->named_to_list, to, &in, &n, &n_in, &k);
    else
        RUN_LAUNCH(f->to_list, to, &list, &in, &n, &n_in, &k);
}

static void trim(const struct step *s)
{
    CUmemoryPool pool;
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemPoolTrimTo(s->value % 2 ? pool : run_pool, s->value % 65536));
}

static void alloc_beside_capture(struct run *r, const struct step *s, CUstream to)
{
    capture_begins(s);
    run_use(s->context);
    if (s->value % 2)
        MUST(cuMemAllocAsync(&r->tensor[s->t[0]], 4ull * s->value, to));
    else
        MUST(cuMemAllocFromPoolAsync(&r->tensor[s->t[0]], 4ull * s->value, run_pool, to));
    MUST(cuGraphDestroy(capture_ends()));
}

bool run_kinds_step(struct run *r, int step)
{
    const struct step *s = &r->p->step[step];
    const struct functions *f = run_functions_of(s);
    struct kinds_of_run *k = r->kinds;
    CUstream to = r->stream[s->stream];
    CUdeviceptr a = s->t[0] >= 0 ? r->tensor[s->t[0]] : 0, b = s->t[1] >= 0 ? r->tensor[s->t[1]] : 0;
    uint32_t n = s->t[0] >= 0 ? r->words[s->t[0]] : 0, m = s->t[1] >= 0 ? r->words[s->t[1]] : 0, *host = (uint32_t *)(uintptr_t)a;
    uint64_t list[LIST_WORDS / 2] = {b};
    switch (s->verb) {
    case V_LIST_UP: MUST(cuMemcpyHtoDAsync_v2(a, list, sizeof list, to)); break;
    case V_LIST_POKE: memcpy(host, list, sizeof list); break;
    case V_LIST_LAY: RUN_LAUNCH(f->put, to, &a, &b); break;
    case V_LIST_COPY: MUST(cuMemcpyDtoDAsync_v2(a, b, sizeof list, to)); break;
    case V_FROM_LIST:
    case V_FROM_NAMED: from_list(r, s, to); break;
    case V_TO_LIST: to_list(r, s, to); break;
    case V_POKE: run_pattern(host, n, s->value); break;
    case V_PEEK: r->notes[step] = run_hash(host, n); break;
    case V_GRAPH_MAKE: make_graph(r, s, run_pinned(r->side, s->host)); break;
    case V_GRAPH_RUN:
    case V_GRAPH_UP: MUST(cuGraphLaunch(k->graph[s->event], to)); break;
    case V_SHOW: show(r, s); break;
    case V_TEXTURED: RUN_LAUNCH(f->textured, to, &a, &b, &k->texture[s->event], &n); break;
    case V_SURFACE: RUN_LAUNCH(f->surface, to, &a, &b, &k->texture[s->event], &n); break;
    case V_ARRAY_UP:
        run_pattern(r->paged, ARRAY_WORDS, s->value);
        MUST(cuMemcpyHtoAAsync_v2(k->array[s->t[0]], 0, r->paged, 4 * ARRAY_WORDS, to));
        memset(r->paged, 0, 4 * ARRAY_WORDS);
        break;
    case V_TENSOR_MAP: {
        CUtensorMap out = tensor_map(a, n, s->how), in = tensor_map(b, n, s->how);
        uint32_t number = s->value;
        RUN_LAUNCH(f->tensor, to, &out, &in, &number);
        break;
    }
    case V_BATCH: batch(a, b, n, s, to); break;
    case V_BATCH_UP: {
        struct step during = *s;
        during.how = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
        run_pattern(r->paged, n, s->value);
        batch(a, (CUdeviceptr)(uintptr_t)r->paged, n, &during, to);
        memset(r->paged, 0, 4ull * n);
        break;
    }
    case V_PEER_COPY: {
        CUcontext here = run_contexts[CONTEXT_PRIMARY], there = run_contexts[CONTEXT_PEER];
        MUST(cuMemcpyPeerAsync(a, r->memory[s->t[0]] == MEM_REMOTE ? there : here, b, r->memory[s->t[1]] == MEM_REMOTE ? there : here, 4ull * order_least(n, m), to));
        break;
    }
    case V_BESIDE_CAPTURE: alloc_beside_capture(r, s, to); break;
    case V_TRIM: trim(s); break;
    default: return false;
    }
    return true;
}

void run_kinds_begin(struct run *r)
{
    if (!(r->kinds = calloc(1, sizeof *r->kinds)))
        exit(4);
    run_use(CONTEXT_PRIMARY);
    if (!capturing)
        MUST(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
    if (r->p->kinds & KIND_CONTEXT && !green)
        make_green();
    if (r->p->kinds & KIND_PEER)
        run_use(CONTEXT_PEER);
    if (r->p->kinds & KIND_NAMED && !named) {
        run_use(CONTEXT_PRIMARY);
        named = map_own(NAMED_BYTES);
        RUN_LAUNCH(run_functions[0].variable, NULL, &named);
        MUST(cuCtxSynchronize());
    }
    if (r->p->kinds & KIND_POOL) {
        const cuuint64_t keeps[] = {0, 65536, UINT64_MAX};
        CUmemoryPool pool;
        run_use(CONTEXT_PRIMARY);
        MUST(cuDeviceGetDefaultMemPool(&pool, 0));
        MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (void *)(uintptr_t)&keeps[r->p->seed % 3]));
        MUST(cuMemPoolSetAttribute(run_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (void *)(uintptr_t)&keeps[r->p->seed / 3 % 3]));
    }
    run_use(CONTEXT_PRIMARY);
}

static void hide(unsigned long long handle, bool surface)
{
    if (handle && surface)
        MUST(cuSurfObjectDestroy(handle));
    else if (handle)
        MUST(cuTexObjectDestroy(handle));
}

void run_kinds_end(struct run *r)
{
    struct kinds_of_run *k = r->kinds;
    for (unsigned i = 0; i < MAX_GRAPHS; i++)
        if (k->graph[i])
            MUST(cuGraphExecDestroy(k->graph[i]));
    for (unsigned i = 0; i < k->n_old_graphs; i++)
        MUST(cuGraphExecDestroy(k->old_graph[i]));
    run_use(CONTEXT_PRIMARY);
    for (unsigned i = 0; i < MAX_TEXTURES; i++)
        hide(k->texture[i], k->surface[i]);
    for (unsigned i = 0; i < k->n_old_textures; i++)
        hide(k->old_texture[i], k->old_surface[i]);
    for (int s = 0; s < MAX_STREAMS; s++)
        if (r->p->start.context[s] == CONTEXT_GREEN && r->p->start.kind[s] != STREAM_LEGACY)
            MUST(cuStreamDestroy_v2(r->stream[s]));
    free(k);
}
