/* waits CASE: what the host waits for, and who waits for the host, one case each. Prints what is computed; natively none of it hangs.
 *
 *   wait_copy      one thread copies to the host behind a stream that waits for a word, another thread writes the word
 *   wait_pageable  the same with an asynchronous copy to memory that is not pinned
 *   wait_box       the same with a two-dimensional copy
 *   wait_batch     the same with a batch of copies
 *   wait_boxes     the same with a batch of boxes
 *   host_free      memory is given back in a stream that then waits for a word of the host's; another stream is given that memory
 *   host_room      a stream waits for a word of the host's; beside it memory goes to the host
 *   host_batch     the same where it waits by a batch of operations on words
 *   host_many      the same with more streams than have an index in remat
 *   func_free      host_free where a function of the host's waits in the stream, until the host has done the rest
 *   func_room      host_room likewise
 *   func_many      host_many likewise
 *   func_six       memory that six streams have used, which all wait so then, goes to the host
 *   func_own       another thread's own stream (CU_STREAM_PER_THREAD) waits so; this thread works in its own, and takes memory from others
 *   many_own       more threads than there are indices, one after another, each in its own stream
 *   func_calls     a function of the host's makes calls, which the driver refuses; beside it memory goes to the host
 *   sync_fill      a fill of pinned memory, and of managed memory, without a stream: the host sees it when the call returns */
#include "tests/programs/crowd.h"

#include <pthread.h>

/* ---- waits that another thread ends --------------------------------------------------------------------------------------- */

static CUdeviceptr word;

static void *write_word(void *arg)
{
    CUstream s = arg;
    MUST(cuCtxSetCurrent(ctx));
    usleep(300000); /* the other one waits by now */
    MUST(cuStreamWriteValue32(s, word, 1, 0));
    MUST(cuStreamSynchronize(s));
    return NULL;
}

static void wait_with(void (*copy)(CUdeviceptr p, CUstream s))
{
    pthread_t other;
    CUstream a = stream(1), b = stream(1);
    CUdeviceptr p = alloc(a), q = alloc(a);
    MUST(cuMemAlloc_v2(&word, 4));
    MUST(cuMemsetD32_v2(word, 0, 1));
    fill(p, 5, a);
    map(q, p, a);
    MUST(cuCtxSynchronize());
    fill(p, 9, a);
    MUST(cuStreamWaitValue32(a, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    map(q, p, a);
    if (pthread_create(&other, NULL, write_word, b))
        exit(3);
    copy(q, a);
    pthread_join(other, NULL);
    printf("%016llx\n", (unsigned long long)hash());
}

static void copy_plain(CUdeviceptr p, CUstream s)
{
    CUevent e; /* the legacy stream comes after a stream that does not block it */
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(e, s));
    MUST(cuStreamWaitEvent(CU_STREAM_LEGACY, e, 0));
    MUST(cuMemcpyDtoH_v2(host, p, BYTES));
}
static void copy_pageable(CUdeviceptr p, CUstream s) { MUST(cuMemcpyDtoHAsync_v2(host, p, BYTES, s)); }
static void copy_box(CUdeviceptr p, CUstream s)
{
    CUDA_MEMCPY2D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = p;
    c.srcPitch = BYTES / 64;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = host;
    c.dstPitch = BYTES / 64;
    c.WidthInBytes = BYTES / 64;
    c.Height = 64;
    MUST(cuMemcpy2DAsync_v2(&c, s));
}

static void copy_batch(CUdeviceptr p, CUstream s)
{
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)host;
    size_t n = BYTES, first = 0, failed = 0;
    CUmemcpyAttributes a = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    MUST(cuMemcpyBatchAsync(&to, &p, &n, 1, &a, &first, 1, &failed, s));
    MUST(cuStreamSynchronize(s));
}
static void copy_boxes(CUdeviceptr p, CUstream s)
{
    size_t failed = 0;
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = {BYTES, 1, 1}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = p;
    op.dst.op.ptr.ptr = (CUdeviceptr)(uintptr_t)host;
    MUST(cuMemcpy3DBatchAsync(1, &op, &failed, 0, s));
    MUST(cuStreamSynchronize(s));
}

static void wait_batch(void) { wait_with(copy_batch); }
static void wait_boxes(void) { wait_with(copy_boxes); }
static void wait_copy(void) { wait_with(copy_plain); }
static void wait_pageable(void) { wait_with(copy_pageable); }
static void wait_box(void) { wait_with(copy_box); }

/* ---- a stream that waits for the host ------------------------------------------------------------------------------------- */

static void free_behind(void (*wait)(CUstream s))
{
    CUstream a = stream(1), b = stream(1);
    CUdeviceptr p = alloc(a);
    fill(p, 5, a);
    MUST(cuMemFreeAsync(p, a));
    MUST(cuStreamSynchronize(a));
    wait(a);
    p = alloc(b);
    fill(p, 6, b);
    MUST(cuStreamSynchronize(b));
    set_flag();
    look("p", p, b);
}

static void make_room(void (*wait)(CUstream s))
{
    CUdeviceptr more[CROWD] = {0};
    CUstream a = stream(1), s = stream(1);
    CUdeviceptr p = alloc(a);
    fill(p, 7, a);
    MUST(cuCtxSynchronize());
    wait(a);
    crowd(more, s);
    set_flag();
    look("p", p, a);
}

static void wait_in_batch(CUstream s)
{
    CUstreamBatchMemOpParams op;
    memset(&op, 0, sizeof op);
    op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    op.waitValue.address = new_flag();
    op.waitValue.value = 1;
    op.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    MUST(cuStreamBatchMemOp(s, 1, &op, 0));
}

static void host_free(void) { free_behind(wait_for_flag); }
static void func_free(void) { free_behind(wait_in_function); }
static void func_room(void) { make_room(wait_in_function); }
static void host_room(void) { make_room(wait_for_flag); }
static void host_batch(void) { make_room(wait_in_batch); }

static void func_six(void)
{
    enum { SIX = 6 };
    CUstream s[SIX], t = stream(1);
    CUdeviceptr more[CROWD] = {0}, out[SIX], p = alloc(t);
    fill(p, 7, t);
    MUST(cuStreamSynchronize(t));
    for (int i = 0; i < SIX; i++)
        map(out[i] = alloc(t), p, s[i] = stream(1));
    new_flag();
    for (int i = 0; i < SIX; i++) {
        MUST(cuLaunchHostFunc(s[i], until_flag, NULL));
        map(out[i], out[i], s[i]);
    }
    for (int i = 0; i < 4; i++)
        fill(more[i] = alloc(t), 1000u + (uint32_t)i, t);
    look("first", more[0], t);
    set_flag();
    crowd(more, t);
    for (int i = 0; i < SIX; i++)
        look("out", out[i], s[i]);
    look("p", p, t);
}

static _Atomic bool stands;

static void *stand_in_own(void *arg)
{
    CUdeviceptr *p = arg;
    MUST(cuCtxSetCurrent(ctx));
    fill(p[0], 7, CU_STREAM_PER_THREAD);
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    wait_in_function(CU_STREAM_PER_THREAD);
    map(p[1], p[0], CU_STREAM_PER_THREAD);
    stands = true;
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

static void func_own(void)
{
    CUdeviceptr more[CROWD] = {0}, p[2] = {alloc(CU_STREAM_PER_THREAD), alloc(CU_STREAM_PER_THREAD)};
    pthread_t other;
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    if (pthread_create(&other, NULL, stand_in_own, p))
        exit(3);
    while (!stands)
        usleep(100);
    for (int i = 0; i < CROWD - 6; i++) /* there is room for them */
        fill(more[i] = alloc(CU_STREAM_PER_THREAD), 1000u + (uint32_t)i, CU_STREAM_PER_THREAD);
    look("first", more[0], CU_STREAM_PER_THREAD);
    set_flag();
    pthread_join(other, NULL);
    crowd(more, CU_STREAM_PER_THREAD);
    look("other thread's", p[1], CU_STREAM_PER_THREAD);
    look("last", more[CROWD - 1], CU_STREAM_PER_THREAD);
}

static void *map_in_own(void *arg)
{
    CUdeviceptr *p = arg;
    MUST(cuCtxSetCurrent(ctx));
    map(p[1], p[0], CU_STREAM_PER_THREAD);
    map(p[0], p[1], CU_STREAM_PER_THREAD);
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

static void many_own(void)
{
    CUdeviceptr more[CROWD] = {0}, p[2] = {alloc(CU_STREAM_PER_THREAD), alloc(CU_STREAM_PER_THREAD)};
    fill(p[0], 7, CU_STREAM_PER_THREAD);
    fill(p[1], 0, CU_STREAM_PER_THREAD);
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    for (int i = 0; i < 70; i++) {
        pthread_t other;
        if (pthread_create(&other, NULL, map_in_own, p))
            exit(3);
        pthread_join(other, NULL);
        if (i % 20 == 0)
            crowd(more, CU_STREAM_PER_THREAD);
    }
    look("p", p[0], CU_STREAM_PER_THREAD);
    look("crowd", more[0], CU_STREAM_PER_THREAD);
}

static void many(void (*wait)(CUstream s))
{
    enum { MANY = 70 };
    CUstream s[MANY];
    CUdeviceptr p[MANY];
    for (int i = 0; i < MANY; i++) {
        s[i] = stream(1);
        MUST(cuMemAllocAsync(&p[i], 4096, s[i]));
        MUST(cuMemsetD32Async(p[i], (uint32_t)i, 1024, s[i]));
    }
    MUST(cuCtxSynchronize());
    wait(s[MANY - 1]);
    MUST(cuMemsetD32Async(p[MANY - 1], 200, 1024, s[MANY - 1]));
    for (int i = 0; i < MANY - 1; i++)
        MUST(cuMemsetD32Async(p[i], 100u + (uint32_t)i, 1024, s[i]));
    for (int i = 0; i < MANY - 1; i++)
        MUST(cuStreamSynchronize(s[i]));
    set_flag();
    for (int i = 0; i < MANY; i++) {
        MUST(cuMemcpyDtoHAsync_v2(host, p[i], 4096, s[i]));
        MUST(cuStreamSynchronize(s[i]));
        printf("%u ", host[1023]);
    }
}

static void host_many(void) { many(wait_for_flag); }
static void func_many(void) { many(wait_in_function); }

struct called {
    CUdeviceptr p;
    CUstream s;
    CUresult said[6];
};

static void make_calls(void *data)
{
    struct called *c = data;
    CUdeviceptr q;
    size_t a, b;
    unsigned type;
    c->said[0] = cuMemAllocAsync(&q, BYTES, c->s);
    c->said[1] = cuMemAlloc_v2(&q, BYTES);
    c->said[2] = cuMemFreeAsync(c->p, c->s);
    c->said[3] = cuMemsetD32Async(c->p, 1, WORDS, c->s);
    c->said[4] = cuMemGetInfo_v2(&a, &b);
    c->said[5] = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, c->p);
}

static void call_back(CUstream s, CUresult status, void *data)
{
    (void)s;
    (void)status;
    make_calls(data);
}

static void func_calls(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    struct called c = {.p = alloc(s), .s = s};
    fill(c.p, 5, s);
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < CROWD; i++) {
            if (!more[i])
                more[i] = alloc(s);
            fill(more[i], (uint32_t)i, s);
            if (i % 6 == 0)
                MUST(cuLaunchHostFunc(s, make_calls, &c));
            else if (i % 3 == 0)
                MUST(cuStreamAddCallback(s, call_back, &c, 0));
            map(more[i], more[i], s);
        }
        MUST(cuStreamSynchronize(s));
        for (int i = 0; i < 6; i++)
            printf("%s%c", name(c.said[i]), i < 5 ? ' ' : '\n');
    }
    look("p", c.p, s);
    look("more", more[1], s);
}

/* ---- fills that the host waits for ---------------------------------------------------------------------------------------- */

static void sync_fill(void)
{
    enum { LONG = 40 };
    uint32_t *pinned;
    CUdeviceptr managed, p = alloc(NULL), q = alloc(NULL);
    MUST(cuMemHostAlloc((void **)&pinned, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    fill(p, 3, NULL);
    for (int i = 0; i < 2; i++) {
        volatile uint32_t *seen = i ? (uint32_t *)(uintptr_t)managed : pinned;
        *seen = 1;
        for (int k = 0; k < LONG; k++)
            map(k % 2 ? p : q, k % 2 ? q : p, NULL);
        MUST(cuMemsetD32_v2((CUdeviceptr)(uintptr_t)seen, 7, 16));
        printf("%u\n", *seen);
    }
    look("p", p, NULL);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(wait_copy), CASE(wait_pageable), CASE(wait_box), CASE(wait_batch), CASE(wait_boxes), CASE(host_free),
        CASE(host_room), CASE(host_batch), CASE(host_many), CASE(func_free), CASE(func_room), CASE(func_many), CASE(func_six), CASE(func_own),
        CASE(many_own), CASE(func_calls), CASE(sync_fill)};
    start();
    return run_case("waits", cases, sizeof cases / sizeof *cases, argc, argv);
}
