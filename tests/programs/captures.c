/* captures CASE: streams that are captured, one case each. Prints what is computed, and which codes the driver gives.
 *
 *   capture_free   memory is freed inside a capture that did not allocate it
 *   capture_lost   a stream is destroyed while it is being captured
 *   capture_loop   a loop that goes on while a stream is being captured, long enough to be taken for a program's
 *   capture_thread the stream of a thread is captured, then used by it and by another thread
 *   other_capture  two captures of two devices end the other way round
 *   capture_fresh  a stream that is used for the first time while it is captured, after another one has gone
 *   host_capture   memory is given back in a stream that then waits for a word of the host's; beside it another stream is captured
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
        CASE(capture_free), CASE(capture_lost), CASE(capture_loop), CASE(capture_thread), CASE(other_capture),
        CASE(capture_fresh), CASE(host_capture), CASE(graph_memory), CASE(graph_full)};
    start();
    return run_case("captures", cases, sizeof cases / sizeof *cases, argc, argv);
}
