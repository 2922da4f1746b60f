/* captures CASE: streams that are captured, one case each. Prints what is computed, and which codes the driver gives.
 *
 *   capture_free   memory is freed inside a capture that did not allocate it
 *   capture_lost   a stream is destroyed while it is being captured
 *   capture_loop   a loop that goes on while a stream is being captured, long enough to be taken for a program's
 *   capture_thread the stream of a thread is captured, then used by it and by another thread
 *   other_capture  two captures of two devices end the other way round
 *   capture_fresh  a stream that is used for the first time while it is captured, after another one has gone
 *   host_capture   memory is given back in a stream that then waits for a word of the host's; beside it another stream is captured
 *   other_global   a capture of the mode `global`; meanwhile another thread works on another device, on more than fits there
 *   other_local    likewise, of the mode `thread local`, and on the other device it is this thread that works
 *   other_relaxed  the same with a capture that forbids nothing
 *   other_unsafe   beside a global capture another thread makes calls that it forbids: they are refused, and the capture is lost
 *   other_spans    a capture into which a stream of another device comes, by an event; there its memory was on the host
 *   other_beside   the same, and another thread works on that device meanwhile
 *   other_twice    two captures span two devices, one after the other; a third ends before they do
 *   graph_memory   a graph allocates memory, beside much other; when it has gone its memory can be had for something else
 *   graph_full     a graph that allocates more than there may be room for: then the program does without it */
#include "tests/programs/crowd.h"

#include <pthread.h>

enum { ROUNDS = 4 };

static void capture_free(void)
{
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), out = alloc(s);
    CUgraph g = NULL;
    fill(p, 6, s);
    MUST(cuStreamSynchronize(s));
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    map(out, p, s);
    printf("free %s\n", name(cuMemFreeAsync(p, s)));
    printf("end %s\n", name(cuStreamEndCapture(s, &g)));
    look("p", p, s);
    printf("free %s\n", name(cuMemFreeAsync(p, s)));
}

static void capture_lost(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1), t = stream(1);
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuStreamDestroy_v2(s));
    crowd(more, t); /* no capture is under way: this is evicted as ever */
    look("first", more[0], t);
    look("last", more[CROWD - 1], t);
}

static void run_graph(CUgraph g, CUstream s)
{
    CUgraphExec e;
    MUST(cuGraphInstantiateWithFlags(&e, g, 0));
    for (int i = 0; i < ROUNDS; i++)
        MUST(cuGraphLaunch(e, s));
    MUST(cuStreamSynchronize(s));
    MUST(cuGraphExecDestroy(e));
    MUST(cuGraphDestroy(g));
}

static void capture_loop(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUgraph g;
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s);
    fill(p, 3, s);
    crowd(more, s);
    fill(q, 4, s);
    look("p", p, s);
    for (int i = 0; i < CROWD; i++)
        MUST(cuMemFreeAsync(more[i], s));
    MUST(cuStreamSynchronize(s));
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < 40; i++) {
        map(q, p, s);
        fill(q, 1, s);
        map(q, p, s);
        map(p, q, s);
    }
    MUST(cuStreamEndCapture(s, &g));
    run_graph(g, s);
    look("p", p, s);
    look("q", q, s);
}

static void *thread_works(void *arg)
{
    CUdeviceptr *p = arg;
    MUST(cuCtxSetCurrent(ctx));
    map(p[1], p[0], CU_STREAM_PER_THREAD);
    look("other thread", p[1], CU_STREAM_PER_THREAD);
    return NULL;
}

static void capture_thread(void)
{
    CUdeviceptr more[CROWD] = {0}, p[2] = {alloc(NULL), alloc(NULL)};
    CUgraph g;
    pthread_t other;
    fill(p[0], 3, CU_STREAM_PER_THREAD);
    fill(p[1], 4, CU_STREAM_PER_THREAD);
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    MUST(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    map(p[1], p[0], CU_STREAM_PER_THREAD);
    map(p[0], p[1], CU_STREAM_PER_THREAD);
    MUST(cuStreamEndCapture(CU_STREAM_PER_THREAD, &g));
    if (pthread_create(&other, NULL, thread_works, p))
        exit(3);
    pthread_join(other, NULL);
    run_graph(g, CU_STREAM_PER_THREAD);
    crowd(more, NULL);
    look("this thread", p[0], CU_STREAM_PER_THREAD);
    look("crowd", more[0], CU_STREAM_PER_THREAD);
}

static void other_capture(void)
{
    CUcontext other = second_device();
    CUdeviceptr more[CROWD] = {0};
    CUgraph g;
    CUstream s = stream(1), u = stream(1);
    CUdeviceptr p = alloc(s);
    MUST(cuCtxSetCurrent(other));
    CUstream t = stream(1);
    CUdeviceptr q = alloc(t);
    MUST(cuStreamBeginCapture_v2(t, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuCtxSetCurrent(ctx));
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    fill(p, 3, s);
    fill(q, 3, t);
    MUST(cuStreamEndCapture(t, &g));
    MUST(cuCtxSetCurrent(other));
    MUST(cuStreamEndCapture(s, &g));
    MUST(cuCtxSetCurrent(ctx));
    crowd(more, u);
    look("first", more[0], u);
}

/* ---- another device, of its own context and kernels --------------------------------------------------------------------------------- */

static struct {
    CUcontext ctx;
    CUfunction map;
    CUstream s;
    CUdeviceptr more[CROWD];
} there;

static void set_up_there(void)
{
    there.ctx = second_device();
    MUST(cuCtxSetCurrent(there.ctx));
    there.map = kernel(load_kernels(), "map");
    there.s = stream(1);
    MUST(cuStreamSynchronize(there.s));
    MUST(cuCtxSetCurrent(ctx));
}

static void map_there(CUdeviceptr out, CUdeviceptr in, CUstream s)
{
    uint32_t n = WORDS, k = 1, all = 0xffffffffu;
    MUST(cuLaunchKernel(there.map, 8, 1, 1, 64, 1, 1, 0, s, (void *[]){&out, &in, &n, &k, &all}, NULL));
}

/* Nothing that a capture elsewhere forbids: allocations in stream order, fills and launches. */
static void work_there(void)
{
    for (int i = 0; i < CROWD; i++) {
        there.more[i] = alloc(there.s);
        fill(there.more[i], 70u + (uint32_t)i, there.s);
    }
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < CROWD; i++)
            map_there(there.more[i], there.more[i], there.s);
}

static void *works_there(void *unused)
{
    MUST(cuCtxSetCurrent(there.ctx));
    work_there();
    return unused;
}

static void look_there(void)
{
    MUST(cuCtxSetCurrent(there.ctx));
    for (int i = 0; i < CROWD; i++)
        look("there", there.more[i], there.s);
    MUST(cuCtxSetCurrent(ctx));
}

static void in_thread(void *(*work)(void *), void *arg)
{
    pthread_t other;
    if (pthread_create(&other, NULL, work, arg))
        exit(3);
    pthread_join(other, NULL);
}

static void capture_beside_work(CUstreamCaptureMode mode, bool same_thread)
{
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s);
    CUgraph g;
    set_up_there();
    fill(p, 3, s);
    MUST(cuStreamSynchronize(s));
    MUST(cuStreamBeginCapture_v2(s, mode));
    map(p, p, s);
    if (same_thread) {
        MUST(cuCtxSetCurrent(there.ctx));
        work_there();
        MUST(cuCtxSetCurrent(ctx));
    } else
        in_thread(works_there, NULL);
    map(p, p, s);
    MUST(cuStreamEndCapture(s, &g));
    run_graph(g, s);
    look("p", p, s);
    look_there();
    CUdeviceptr q = alloc(s); /* and goes on after it */
    fill(q, 9, s);
    map(q, p, s);
    look("q", q, s);
}

static void other_global(void) { capture_beside_work(CU_STREAM_CAPTURE_MODE_GLOBAL, false); }
static void other_local(void) { capture_beside_work(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true); }
static void other_relaxed(void) { capture_beside_work(CU_STREAM_CAPTURE_MODE_RELAXED, true); }

static void *makes_unsafe_calls(void *unused)
{
    CUdeviceptr p = 0;
    MUST(cuCtxSetCurrent(there.ctx));
    printf("alloc %s\n", name(cuMemAlloc_v2(&p, BYTES)));
    printf("copy %s\n", name(cuMemcpyDtoH_v2(host, there.more[0], BYTES)));
    printf("fill %s\n", name(cuMemsetD32_v2(there.more[0], 3, WORDS)));
    printf("copy %s\n", name(cuMemcpyHtoD_v2(there.more[0], host, BYTES)));
    printf("free %s\n", name(cuMemFree_v2(there.more[2])));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    printf("was %d, copy %s\n", (int)mode, name(cuMemcpyDtoH_v2(host, there.more[1], BYTES)));
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    printf("was %d\n", (int)mode);
    return unused;
}

static void other_unsafe(void)
{
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s);
    CUgraph g = NULL;
    set_up_there();
    in_thread(works_there, NULL);
    fill(p, 3, s);
    MUST(cuStreamSynchronize(s));
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    map(p, p, s);
    in_thread(makes_unsafe_calls, NULL);
    printf("end %s\n", name(cuStreamEndCapture(s, &g)));
    map(p, p, s);
    look("p", p, s);
    look_there();
}

/* One more stream comes into the capture of s, works, and s goes on after it. */
static void span(CUstream s, CUstream t, CUdeviceptr q)
{
    CUevent e, f;
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(e, s));
    MUST(cuCtxSetCurrent(there.ctx));
    MUST(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamWaitEvent(t, e, 0));
    map_there(q, q, t);
    MUST(cuEventRecord(f, t));
    MUST(cuCtxSetCurrent(ctx));
    MUST(cuStreamWaitEvent(s, f, 0));
}

/* Memory of that device which was used so long ago that it is not in memory where that is short. */
static CUdeviceptr used_long_ago(CUstream t)
{
    MUST(cuCtxSetCurrent(there.ctx));
    CUdeviceptr q = alloc(t), more[CROWD] = {0};
    fill(q, 21, t);
    map_there(q, q, t);
    crowd(more, t);
    for (int i = 0; i < CROWD; i++)
        MUST(cuMemFreeAsync(more[i], t));
    MUST(cuStreamSynchronize(t));
    MUST(cuCtxSetCurrent(ctx));
    return q;
}

static void push_out(void)
{
    CUdeviceptr more[CROWD] = {0};
    MUST(cuCtxSetCurrent(there.ctx));
    crowd(more, there.s);
    look("last", more[CROWD - 1], there.s);
    for (int i = 0; i < CROWD; i++)
        MUST(cuMemFreeAsync(more[i], there.s));
    MUST(cuCtxSetCurrent(ctx));
}

static void *works_beside(void *unused)
{
    CUdeviceptr own[3];
    MUST(cuCtxSetCurrent(there.ctx));
    for (int i = 0; i < 3; i++) {
        own[i] = alloc(there.s);
        fill(own[i], 30u + (uint32_t)i, there.s);
        map_there(own[i], own[i], there.s);
    }
    for (int i = 0; i < 3; i++) {
        look("beside", own[i], there.s);
        MUST(cuMemFreeAsync(own[i], there.s));
    }
    return unused;
}

static void capture_spanning(bool beside, int rounds)
{
    set_up_there();
    MUST(cuCtxSetCurrent(there.ctx));
    CUstream t = stream(1);
    CUdeviceptr q = used_long_ago(t);
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s);
    fill(p, 3, s);
    MUST(cuStreamSynchronize(s));
    for (int i = 0; i < rounds; i++) {
        CUgraph g, small;
        CUgraphExec e;
        CUstream own = stream(1);
        MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        if (rounds > 1)
            MUST(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_RELAXED));
        map(p, p, s);
        span(s, t, q);
        if (rounds > 1)
            MUST(cuStreamEndCapture(own, &small));
        if (beside)
            in_thread(works_beside, NULL);
        span(s, t, q);
        map(p, p, s);
        MUST(cuStreamEndCapture(s, &g));
        MUST(cuGraphInstantiateWithFlags(&e, g, 0));
        for (int k = 0; k < ROUNDS; k++) {
            push_out();
            MUST(cuGraphLaunch(e, s));
            MUST(cuStreamSynchronize(s));
        }
        look("p", p, s);
        MUST(cuCtxSetCurrent(there.ctx));
        look("q", q, there.s);
        map_there(q, q, t); /* the stream is its own again */
        look("q", q, t);
        MUST(cuCtxSetCurrent(ctx));
    }
}

static void other_spans(void) { capture_spanning(false, 1); }
static void other_beside(void) { capture_spanning(true, 1); }
static void other_twice(void) { capture_spanning(false, 2); }

static void capture_fresh(void)
{
    CUstream gone = stream(1), fresh = stream(1);
    CUdeviceptr p = alloc(gone), q = alloc(gone);
    CUgraph g;
    CUgraphExec e;
    fill(p, 3, gone);
    fill(q, 4, gone);
    MUST(cuStreamSynchronize(gone));
    MUST(cuStreamDestroy_v2(gone));
    MUST(cuStreamBeginCapture_v2(fresh, CU_STREAM_CAPTURE_MODE_GLOBAL));
    map(q, p, fresh);
    MUST(cuStreamEndCapture(fresh, &g));
    MUST(cuGraphInstantiateWithFlags(&e, g, 0));
    MUST(cuGraphLaunch(e, fresh));
    look("q", q, fresh);
}

static void host_capture(void)
{
    CUstream a = stream(1), s = stream(1);
    CUdeviceptr q = alloc(s), p = alloc(a);
    CUgraph g;
    fill(q, 3, s);
    fill(p, 1, a);
    MUST(cuMemFreeAsync(p, a));
    MUST(cuCtxSynchronize());
    wait_for_flag(a);
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    map(q, q, s);
    MUST(cuStreamEndCapture(s, &g));
    run_graph(g, s);
    set_flag();
    look("q", q, s);
}

static void graph_memory(void)
{
    CUdeviceptr more[CROWD] = {0}, own[4], large;
    CUstream s = stream(1);
    CUgraph g;
    CUgraphExec e;
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (uint32_t i = 0; i < 4; i++)
        fill(own[i] = alloc(s), i, s);
    MUST(cuStreamEndCapture(s, &g));
    MUST(cuGraphInstantiateWithFlags(&e, g, 0));
    crowd(more, s);
    MUST(cuGraphLaunch(e, s));
    crowd(more, s);
    look("own", own[3], s);
    look("first", more[0], s);
    for (int i = 0; i < 4; i++)
        MUST(cuMemFreeAsync(own[i], s));
    MUST(cuStreamSynchronize(s));
    MUST(cuGraphExecDestroy(e));
    MUST(cuGraphDestroy(g));
    MUST(cuMemAlloc_v2(&large, 8 * BYTES));
    fill(large, 9, s);
    look("large", large, s);
    look("last", more[CROWD - 1], s);
}

static void graph_full(void)
{
    CUdeviceptr p = alloc(NULL), own[CROWD];
    CUstream s = stream(1);
    CUgraph g;
    CUresult r = CUDA_SUCCESS;
    fill(p, 5, NULL);
    MUST(cuCtxSynchronize());
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (uint32_t i = 0; i < CROWD && r == CUDA_SUCCESS; i++)
        if ((r = cuMemAllocAsync(&own[i], BYTES, s)) == CUDA_SUCCESS) {
            map(own[i], p, s);
            MUST(cuMemFreeAsync(own[i], s));
        }
    map(p, p, s);
    MUST(cuStreamEndCapture(s, &g));
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        MUST(cuGraphDestroy(g));
        for (int i = 0; i < ROUNDS; i++)
            map(p, p, s);
    } else {
        MUST(r);
        run_graph(g, s);
    }
    look("p", p, s);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(capture_free), CASE(capture_lost), CASE(capture_loop), CASE(capture_thread), CASE(other_capture), CASE(other_global), CASE(other_local), CASE(other_relaxed),
        CASE(other_unsafe), CASE(other_spans), CASE(other_beside), CASE(other_twice),
        CASE(capture_fresh), CASE(host_capture), CASE(graph_memory), CASE(graph_full)};
    start();
    return run_case("captures", cases, sizeof cases / sizeof *cases, argc, argv);
}
