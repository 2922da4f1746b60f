/*
 * Stream capture and graphs of the simulated GPU.
 */
#include "tests/simgpu/abi_graph.h"
#include "tests/simgpu/testing.h"

static CUstream side(void)
{
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

static CUevent event(void)
{
    CUevent e;
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    return e;
}

static CUdeviceptr words_of(unsigned value)
{
    CUdeviceptr p = alloc_words(1);
    OK(cuMemsetD32_v2(p, value, 1));
    OK(cuCtxSynchronize());
    return p;
}

static void begin(CUstream s)
{
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static CUgraph end(CUstream s)
{
    CUgraph g;
    OK(cuStreamEndCapture(s, &g));
    return g;
}

static CUgraphExec instance(CUgraph g, unsigned long long flags)
{
    CUgraphExec x;
    OK(cuGraphInstantiateWithFlags(&x, g, flags));
    return x;
}

/* What is captured does not run; each launch runs it, with the parameters as they were, on what memory holds then. */
START_TEST(captured_work_runs_at_each_launch)
{
    start();
    CUstream s = side();
    CUdeviceptr p = words_of(1);
    begin(s);
    launch_step(p, 3, 1, s);
    CUgraph g = end(s);
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(read_word(p), 1);
    CUgraphExec x = instance(g, 0);
    OK(cuGraphDestroy(g)); /* the instance has all it needs */
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(read_word(p), 4);
    for (int i = 0; i < 5; i++)
        OK(cuGraphLaunch(x, i & 1 ? s : side())); /* never two at a time, whatever the stream */
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(read_word(p), 4 * 243 + 121);
    OK(cuGraphLaunch(x, s));
    OK(cuGraphExecDestroy(x)); /* what is enqueued still runs */
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(read_word(p), 3 * (4 * 243 + 121) + 1);
    FAILS(cuGraphLaunch(x, s), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Kernels, fills, copies from pinned memory and host functions, in their order. */
static unsigned called;
static void host_function(void *arg)
{
    called += *(unsigned *)arg;
}

START_TEST(all_kinds_of_nodes)
{
    start();
    CUstream s = side();
    CUdeviceptr p = words_of(0);
    unsigned *pinned, three = 3;
    CUgraphNode nodes[8];
    CUgraphNodeType type[4];
    size_t n = 8, deps = 8;
    OK(cuMemHostAlloc((void **)&pinned, 8, 0));
    pinned[0] = 5;
    begin(s);
    OK(cuMemcpyHtoDAsync_v2(p, pinned, 4, s));
    launch_step(p, 2, 1, s);
    OK(cuMemcpyDtoHAsync_v2(pinned + 1, p, 4, s));
    OK(cuLaunchHostFunc(s, host_function, &three));
    OK(cuMemsetD32Async(p, 77, 1, s));
    CUgraph g = end(s);
    OK(cuGraphGetNodes(g, nodes, &n));
    ck_assert_uint_eq(n, 5);
    for (int i = 0; i < 4; i++)
        OK(cuGraphNodeGetType(nodes[i], &type[i]));
    ck_assert_int_eq(type[0], CU_GRAPH_NODE_TYPE_MEMCPY);
    ck_assert_int_eq(type[1], CU_GRAPH_NODE_TYPE_KERNEL);
    ck_assert_int_eq(type[3], CU_GRAPH_NODE_TYPE_HOST);
    CUgraphNode before[8];
    OK(cuGraphNodeGetDependencies(nodes[4], before, &deps));
    ck_assert_uint_eq(deps, 1);
    ck_assert_ptr_eq(before[0], nodes[3]);
    CUgraphExec x = instance(g, 0);
    pinned[0] = 10; /* read when the graph runs */
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(pinned[1], 21);
    ck_assert_uint_eq(called, 3);
    ck_assert_uint_eq(read_word(p), 77);
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(called, 6);
}
END_TEST

/* A second stream joins by an event and is joined again; without that the capture fails. */
START_TEST(forks_and_joins)
{
    start();
    CUstream a = side(), b = side();
    CUevent fork = event(), join = event();
    CUdeviceptr p = words_of(0), q = words_of(0);
    CUstreamCaptureStatus status;
    CUgraph g;
    begin(a);
    launch_step(p, 1, 5, a);
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    OK(cuStreamIsCapturing(b, &status));
    ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    launch_step(q, 1, 7, b);
    OK(cuEventRecord(join, b));
    OK(cuStreamWaitEvent(a, join, 0));
    OK(cuMemcpyDtoDAsync_v2(p, q, 4, a));
    g = end(a);
    OK(cuStreamIsCapturing(b, &status));
    ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuGraphLaunch(instance(g, 0), b));
    OK(cuStreamSynchronize(b));
    ck_assert_uint_eq(read_word(p), 7);
    FAILS(cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
    FAILS(cuStreamWaitEvent(a, join, 0), CUDA_ERROR_CAPTURED_EVENT); /* of a capture that is over */

    begin(a);
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    launch_step(q, 1, 7, b);
    FAILS(cuStreamEndCapture(b, &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    FAILS(cuStreamEndCapture(a, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    ck_assert_ptr_null(g);
    ck_assert_uint_eq(read_word(q), 7);
    launch_step(q, 1, 1, b); /* both streams work again */
    OK(cuStreamSynchronize(b));
    ck_assert_uint_eq(read_word(q), 8);
}
END_TEST

/* Each of these invalidates the capture it breaks, whose end says so; afterwards all is as before. */
enum breach { WAIT_STREAM, QUERY_STREAM, WAIT_CTX, ALLOC, SYNC_COPY, FOREIGN_EVENT, OTHER_CAPTURE, LEGACY, N_BREACHES };

START_TEST(what_a_capture_cannot_hold)
{
    start();
    CUstream s;
    CUstream other = side();
    CUevent e = event();
    CUgraph g;
    CUdeviceptr p = words_of(1), q;
    OK(cuStreamCreate(&s, _i == LEGACY ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    OK(cuEventRecord(e, other));
    begin(s);
    unsigned word;
    switch (_i) {
    case WAIT_STREAM: FAILS(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); break;
    case QUERY_STREAM: FAILS(cuStreamQuery(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); break;
    case WAIT_CTX: FAILS(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); break;
    case ALLOC: FAILS(cuMemAlloc_v2(&q, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); break;
    case SYNC_COPY: FAILS(cuMemcpyDtoH_v2(&word, p, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); break;
    case FOREIGN_EVENT: FAILS(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION); break;
    case OTHER_CAPTURE:
        begin(other);
        OK(cuEventRecord(e, other));
        FAILS(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
        FAILS(cuStreamEndCapture(other, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        break;
    case LEGACY: FAILS(cuMemsetD32Async(p, 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT); break;
    }
    CUstreamCaptureStatus status;
    OK(cuStreamIsCapturing(s, &status));
    ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    FAILS(cuMemsetD32Async(p, 1, 1, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    FAILS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    FAILS(cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
    launch_step(p, 4, 0, s);
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(read_word(p), 4);
    OK(cuCtxSynchronize());
}
END_TEST

/* A thread that says it knows what it does may allocate and ask; the stream itself still cannot be waited for. */
START_TEST(relaxed_threads)
{
    start();
    CUstream s = side();
    CUevent e = event();
    CUdeviceptr p;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(cuEventRecord(e, NULL));
    begin(s);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    ck_assert_int_eq(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuEventSynchronize(e));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    end(s);
    OK(cuMemFree_v2(p));
}
END_TEST

/* Memory that a capture allocates is the program's between a launch and its free. */
START_TEST(memory_of_graphs)
{
    start();
    CUstream s = side();
    CUdeviceptr keep, temporary, out = words_of(0);
    cuuint64_t used, reserved;
    size_t free_before, free_now, total;
    OK(cuMemGetInfo_v2(&free_before, &total));
    begin(s);
    OK(cuMemAllocAsync(&temporary, 1 << 20, s));
    OK(cuMemAllocAsync(&keep, 4, s));
    OK(cuMemsetD32Async(temporary, 6, 1, s));
    OK(cuMemcpyDtoDAsync_v2(keep, temporary, 4, s));
    OK(cuMemFreeAsync(temporary, s));
    FAILS(cuMemFreeAsync(out, s), CUDA_ERROR_INVALID_VALUE); /* not of a graph */
    CUgraph g = end(s);
    CUgraphExec x = instance(g, 0), lenient = instance(g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    OK(cuGraphDestroy(g));
    FAILS(cuMemFreeAsync(keep, s), CUDA_ERROR_INVALID_VALUE); /* before the first launch */
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(read_word(keep), 6);
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
    ck_assert_uint_eq(used, 4);
    ck_assert_uint_eq(reserved, (1 << 20) + 512); /* what the device has given for it */
    FAILS(cuGraphLaunch(x, s), CUDA_ERROR_INVALID_VALUE); /* it would allocate again what is not freed */
    OK(cuGraphLaunch(lenient, s));
    OK(cuMemFreeAsync(keep, s));
    FAILS(cuMemFreeAsync(keep, s), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    OK(cuGraphExecDestroy(x));
    OK(cuGraphExecDestroy(lenient));
    ck_assert_uint_eq(read_word(keep), 6); /* still the program's */
    OK(cuMemFree_v2(keep));
    OK(cuMemGetInfo_v2(&free_now, &total));
    ck_assert_uint_eq(free_now, free_before);
    FAILS(cuMemFree_v2(keep), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* A fault inside a graph sticks like any other; the graph can still be destroyed. */
START_TEST(faults_in_graphs)
{
    start();
    CUstream s = side();
    CUdeviceptr p = words_of(1);
    begin(s);
    launch_step(p, 2, 0, s);
    CUgraph g = end(s);
    CUgraphExec x = instance(g, 0);
    OK(cuMemFree_v2(p));
    OK(cuGraphLaunch(x, s));
    FAILS(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuGraphLaunch(x, s), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
}
END_TEST

static void count_down(void *arg)
{
    --*(int *)arg;
}

/* An object lives until the graph, its instances and the program have let go of it. */
START_TEST(objects_of_graphs)
{
    start();
    CUstream s = side();
    CUdeviceptr p = words_of(1);
    int alive = 1;
    CUuserObject o;
    begin(s);
    launch_step(p, 2, 0, s);
    CUgraph g = end(s);
    OK(cuUserObjectCreate(&o, &alive, count_down, 1, 1));
    OK(cuGraphRetainUserObject(g, o, 1, 1)); /* moves the program's reference */
    CUgraphExec x = instance(g, 0);
    OK(cuGraphDestroy(g));
    ck_assert_int_eq(alive, 1);
    OK(cuGraphExecDestroy(x));
    ck_assert_int_eq(alive, 0);
    FAILS(cuUserObjectRelease(o, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static int run(void)
{
    Suite *s = suite_create("simgpu_graph");
    TCase *t = tcase_create("simgpu_graph");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, captured_work_runs_at_each_launch);
    tcase_add_test(t, all_kinds_of_nodes);
    tcase_add_test(t, forks_and_joins);
    tcase_add_loop_test(t, what_a_capture_cannot_hold, 0, N_BREACHES);
    tcase_add_test(t, relaxed_threads);
    tcase_add_test(t, memory_of_graphs);
    tcase_add_test(t, faults_in_graphs);
    tcase_add_test(t, objects_of_graphs);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed;
}

int main(void)
{
    return run() ? 1 : 0;
}
