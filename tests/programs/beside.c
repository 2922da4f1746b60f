/* beside CASE [ITERATIONS]: a training loop, and what else a program does beside it. A forward pass saves an activation a layer, the
 * backward pass consumes them in reverse. Prints a checksum every iteration.
 *
 * A saved activation is copied from memory that changes later in the iteration, before the backward pass, from iteration 12 on:
 *   managed   managed memory, which the host writes
 *   pinned    pinned memory, by its address on the device, which the host writes
 *   own       memory that the program maps itself, which is copied to
 *   plain     memory that is not stream-ordered, which is copied to
 *   graph     stream-ordered memory, which a graph changes
 *   graph_late so, a graph that is captured in iteration 12
 *   peer      stream-ordered memory, which is copied to from another device's context
 *   peer_late so, for the first time in iteration 12
 *   peer_plain  so, memory that is not stream-ordered
 *   peer_plain_late
 *   context   memory that is not stream-ordered, which is filled in another context of the device
 *   context_late
 * Another stream stands still until the loop is over, when the host writes the word that it waits for:
 *   stands       from the start
 *   stands_late  from iteration 12 on
 *   stands_thread  it is the per-thread default stream of this thread, where the loop was until then: another thread goes on with it
 *   stands_within  in each iteration until its last launch, with a launch behind that
 * A plan is left between the passes, when activations have given way to a workspace that is gone again:
 *   elsewhere_capture  a stream of another context of the device is captured, from iteration 12 on
 */
#include "tests/programs/program.h"

#include <pthread.h>

enum { LAYERS = 12, WORDS = 131072, BYTES = 4 * WORDS, CHANGE_AT = 12, FROM = 3 /* that layer copies */, WHEN = 6, WORKSPACE = 8 * WORDS };

static const char *what;
static CUcontext ctx, ctx_other;
static CUfunction f_map, f_join, f_sum;
static CUdeviceptr weight[LAYERS], act[LAYERS + 1], sum, from, remote;
static uint32_t *host;
static CUstream stream, other;
static CUgraphExec graph;

#define LAUNCH(f, ...) LAUNCH_ON(f, stream, __VA_ARGS__)

static bool is(const char *c) { return !strcmp(what, c); }

static bool stands(void) { return !strncmp(what, "stands", 6); }

static bool is_peer(void) { return !strncmp(what, "peer", 4); }

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static void drop(CUdeviceptr p) { MUST(cuMemFreeAsync(p, stream)); }

static void set_up(void)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    CUgraph g;
    if (is("managed")) {
        MUST(cuMemAllocManaged(&from, BYTES, CU_MEM_ATTACH_GLOBAL));
        host = (uint32_t *)(uintptr_t)from;
    } else if (is("pinned")) {
        MUST(cuMemHostAlloc((void **)&host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
        MUST(cuMemHostGetDevicePointer_v2(&from, host, 0));
    } else {
        MUST(cuMemHostAlloc((void **)&host, BYTES, 0));
        if (is("own"))
            from = map_own(BYTES);
        else if (is("plain") || !strncmp(what, "context", 7) || !strncmp(what, "peer_plain", 10))
            MUST(cuMemAlloc_v2(&from, BYTES));
        else
            from = make(WORDS);
        MUST(cuMemsetD32Async(from, 5, WORDS, stream));
        MUST(cuCtxSynchronize());
    }
    for (int i = 0; i < WORDS; i++)
        host[i] = 5;
    if (is("graph_late")) {
        MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        MUST(cuMemsetD32Async(from, 0, WORDS, stream));
    }
    if (is("graph")) {
        MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        k = 0;
        LAUNCH(f_map, &from, &from, &n, &k, &mask);
        MUST(cuStreamEndCapture(stream, &g));
        MUST(cuGraphInstantiateWithFlags(&graph, g, 0));
        MUST(cuMemsetD32Async(from, 0, WORDS, stream)); /* which the graph leaves as it is */
    }
    if (is_peer()) {
        MUST(cuDevicePrimaryCtxRetain(&ctx_other, 1));
        MUST(cuCtxSetCurrent(ctx_other));
        MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        MUST(cuMemAllocAsync(&remote, BYTES, other));
        MUST(cuMemsetD32Async(remote, 5, WORDS, other));
        if (!strstr(what, "_late"))
            MUST(cuMemcpyPeerAsync(from, ctx, remote, ctx_other, BYTES, other));
        MUST(cuStreamSynchronize(other));
        MUST(cuCtxSetCurrent(ctx));
    }
    if (!strncmp(what, "context", 7) || is("elsewhere_capture")) {
        MUST(cuCtxCreate_v2(&ctx_other, 0, 0));
        MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        MUST(cuCtxSetCurrent(ctx));
    }
}

/* The copy has been made; what it was made from changes. */
static void change(int iter)
{
    if (is("elsewhere_capture") || stands())
        return;
    bool changes = iter >= CHANGE_AT;
    uint32_t value = changes ? (uint32_t)iter * 77 : 5;
    MUST(cuStreamSynchronize(stream));
    if (is("graph_late")) {
        if (changes) {
            MUST(cuGraphLaunch(graph, other));
            MUST(cuStreamSynchronize(other));
        }
        return;
    }
    if (is("graph")) {
        MUST(cuGraphLaunch(graph, stream));
        return;
    }
    if (strstr(what, "_late") && !changes)
        return;
    if (!strncmp(what, "context", 7)) {
        MUST(cuCtxSetCurrent(ctx_other));
        MUST(cuMemsetD32Async(from, value, WORDS, NULL));
        MUST(cuCtxSynchronize());
        MUST(cuCtxSetCurrent(ctx));
        return;
    }
    if (is_peer()) {
        MUST(cuCtxSetCurrent(ctx_other));
        MUST(cuMemsetD32Async(remote, value, WORDS, other));
        MUST(cuMemcpyPeerAsync(from, ctx, remote, ctx_other, BYTES, other));
        MUST(cuStreamSynchronize(other));
        MUST(cuCtxSetCurrent(ctx));
        return;
    }
    for (int i = 0; i < WORDS && changes; i++)
        host[i] = value;
    if (is("own") || is("plain"))
        MUST(cuMemcpyHtoDAsync_v2(from, host, BYTES, stream));
}

static uint32_t *word;

static CUdeviceptr behind;

static void stand_still(void)
{
    CUdeviceptr at;
    MUST(cuMemHostAlloc((void **)&word, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    *word = 0;
    MUST(cuMemHostGetDevicePointer_v2(&at, word, 0));
    CUstream s = CU_STREAM_PER_THREAD;
    if (!is("stands_thread"))
        MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    if (is("stands_within")) {
        behind = make(WORDS);
        other = s;
        return;
    }
    MUST(cuStreamWaitValue32(s, at, 1, CU_STREAM_WAIT_VALUE_GEQ));
}

static void launch_behind(uint32_t iter)
{
    uint32_t n = WORDS, k = iter, mask = ~0u;
    MUST(cuStreamWaitValue32(other, (CUdeviceptr)(uintptr_t)word, iter + 1, CU_STREAM_WAIT_VALUE_GEQ));
    LAUNCH_ON(f_map, other, &behind, &weight[0], &n, &k, &mask);
}

static void capture_elsewhere(void)
{
    CUgraph g;
    MUST(cuCtxSetCurrent(ctx_other));
    MUST(cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuStreamEndCapture(other, &g));
    MUST(cuGraphDestroy(g));
    MUST(cuCtxSetCurrent(ctx));
}

static uint64_t train(int iter)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    if (is("graph_late") && iter == CHANGE_AT) {
        CUgraph g;
        k = 9;
        MUST(cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE_GLOBAL));
        LAUNCH_ON(f_map, other, &from, &from, &n, &k, &mask);
        MUST(cuStreamEndCapture(other, &g));
        MUST(cuGraphInstantiateWithFlags(&graph, g, 0));
        k = 1;
    }
    if (behind)
        launch_behind((uint32_t)iter);
    act[0] = make(WORDS);
    if (is("graph")) /* zero becomes zero, and nothing else does */
        MUST(cuMemsetD32Async(from, iter >= CHANGE_AT ? (uint32_t)iter : 0, WORDS, stream));
    LAUNCH(f_map, &act[0], &weight[0], &n, &k, &mask);
    for (int i = 0; i < LAYERS; i++) {
        k = (uint32_t)i;
        act[i + 1] = make(WORDS);
        if (i == FROM)
            MUST(cuMemcpyDtoDAsync_v2(act[i + 1], from, BYTES, stream));
        else
            LAUNCH(f_map, &act[i + 1], &act[i], &n, &k, &mask);
        if (i == WHEN)
            change(iter);
    }
    if (is("elsewhere_capture")) {
        CUdeviceptr workspace = make(WORKSPACE);
        MUST(cuMemsetD32Async(workspace, 1, WORKSPACE, stream));
        drop(workspace);
        if (iter >= CHANGE_AT)
            capture_elsewhere();
    }
    CUdeviceptr g = make(WORDS);
    LAUNCH(f_map, &g, &act[LAYERS], &n, &k, &mask);
    for (int i = LAYERS; i >= 0; i--) {
        CUdeviceptr next = make(WORDS);
        LAUNCH(f_join, &next, &g, &act[i], &n, &n, &n);
        drop(g);
        drop(act[i]);
        g = next;
        if (i < LAYERS)
            LAUNCH(f_map, &weight[i], &g, &n, &k, &mask);
    }
    uint64_t h = checksum(f_sum, stream, sum, g, WORDS);
    drop(g);
    if (behind) {
        __atomic_store_n(word, (uint32_t)iter + 1, __ATOMIC_RELEASE);
        MUST(cuStreamSynchronize(other));
        h ^= checksum(f_sum, stream, sum, behind, WORDS);
    }
    return h;
}

/* What is left of the loop. */
struct rest {
    int from, to;
};

static void *goes_on(void *arg)
{
    const struct rest *r = arg;
    MUST(cuCtxSetCurrent(ctx));
    for (int iter = r->from; iter < r->to; iter++)
        printf("iter %d loss %016llx\n", iter, (unsigned long long)train(iter));
    return NULL;
}

static void in_another_thread(int from, int to)
{
    struct rest rest = {from, to};
    pthread_t thread;
    if (pthread_create(&thread, NULL, goes_on, &rest) || pthread_join(thread, NULL))
        exit(3);
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "managed";
    int iterations = argc > 2 ? atoi(argv[2]) : 24;
    ctx = primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_join = kernel(m, "join");
    f_sum = kernel(m, "sum");
    if (is("stands_thread"))
        stream = CU_STREAM_PER_THREAD;
    else if (!is("elsewhere_capture")) /* in the legacy stream, of which each context has its own */
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WORDS);
        MUST(cuMemsetD32Async(weight[i], 3 + (unsigned)i, WORDS, stream));
    }
    sum = make(64);
    set_up();
    MUST(cuCtxSynchronize());
    for (int iter = 0; iter < iterations; iter++) {
        if (stands() && iter == (is("stands_late") || is("stands_thread") ? CHANGE_AT : 0))
            stand_still();
        if (is("stands_thread") && iter == CHANGE_AT) {
            in_another_thread(iter, iterations);
            break;
        }
        printf("iter %d loss %016llx\n", iter, (unsigned long long)train(iter));
    }
    if (stands())
        __atomic_store_n(word, (uint32_t)iterations, __ATOMIC_RELEASE);
    uint64_t h = 0;
    for (int i = 0; i < LAYERS; i++)
        h = h * 31 + checksum(f_sum, stream, sum, weight[i], WORDS);
    printf("checksum %016llx\n", (unsigned long long)h);
    return 0;
}
