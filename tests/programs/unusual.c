/* unusual CASE: programs that a driver serves and that a library in front of it easily gets wrong. Prints what they compute and which
 * codes they get; natively all of it is as the program says.
 *
 *   wait_copy      one thread copies to the host behind a stream that waits for a word, another thread writes the word
 *   wait_pageable  the same with an asynchronous copy to memory that is not pinned
 *   wait_box       the same with a two-dimensional copy
 *   wait_batch     the same with a batch of copies
 *   wait_boxes     the same with a batch of boxes
 *   host_free      memory is given back in a stream that then waits for a word of the host's; another stream is given that memory
 *   host_capture   the same, and beside it another stream is captured
 *   host_room      a stream waits for a word of the host's; beside it memory goes to the host
 *   host_many      the same with more streams than have an index in remat
 *   contexts       a second context of the device comes and goes while the first one is at work
 *   legacies       two contexts of a device, each with a legacy stream of its own
 *   no_context     a thread that has given its context back gets the driver's error
 *   other_stream   memory is asked for in a stream of the device that is not the current one
 *   other_copy     memory of a device is copied while another device is the current one
 *   one_pointer    an address among many numbers is copied to the device, and followed there
 *   box_pointer    an address that a two-dimensional copy takes along
 *   batch_pointer  an address that a batch of copies takes along
 *   word_pointer   an address that a stream writes as a word
 *   odd_pointer    an address that a copy brings to a multiple of eight, from where it was at none
 *   odd_box        the same by a two-dimensional copy
 *   boxes_pointer  an address that a batch of boxes takes along
 *   far_pointer    an address in a large copy to memory of the program's own
 *   odd_list       pinned memory whose kernel is given an address in the middle of a word
 *   pinned_list    an address that lies in pinned memory, where a kernel follows it in place; likewise in memory that the program has
 *   own_list       pinned itself, and in
 *   managed_list   managed memory
 *   gone_list      pinned memory goes with its context; a launch is given its address still, and does not follow it
 *   same_pointer   an address that is copied once, and lies in the device while its memory is freed and allocated again
 *   pool_most      a pool that is made with a maximum, and one that is gone
 *   pool_peaks     what two pools say of their peaks
 *   capture_free   memory is freed inside a capture that did not allocate it
 *   capture_lost   a stream is destroyed while it is being captured; two captures of two devices end the other way round
 *   capture_loop   a loop that goes on while a stream is being captured, long enough to be taken for a program's
 *   capture_thread the stream of a thread is captured, then used by it and by another thread
 *   wrong_way      copies that are named for one direction and given addresses for another
 *   no_arguments   a launch without the arguments that its kernel has
 *   bad_stream     memory is asked for and given back in a stream that is gone
 *   huge           sizes that no device has
 *   early          launches that may begin before the one in front of them has ended
 *   batch_many     a batch of thousands of copies; the last of them are of memory that none of the others touches
 *   lone_batch     a copy with a batch's attributes, and a box, of memory that was used least recently
 *   sync_fill      a fill of pinned memory, and of managed memory, without a stream: the host sees it when the call returns
 *   capture_fresh  a stream that is used for the first time while it is captured, after another one has gone
 *   past_end       the first byte behind an allocation, and copies that reach far beyond it
 *   attributes     what little is known of memory that is not in memory */
#include "tests/programs/crowd.h"

#include <pthread.h>

enum { ROUNDS = 4 };

static CUcontext ctx;
static CUfunction f_gather;

static const char *name(CUresult r)
{
    const char *n = "?";
    cuGetErrorName(r, &n);
    return n;
}

/* out = what lies where the words at `list` point to */
static void gather(CUdeviceptr out, CUdeviceptr list, uint32_t count, CUstream s)
{
    uint32_t n = WORDS;
    MUST(cuLaunchKernel(f_gather, 8, 1, 1, 64, 1, 1, 0, s, (void *[]){&out, &list, &count, &n, &n}, NULL));
}

/* ---- waits that another thread ends ------------------------------------------------------------------------------------ */

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

/* ---- contexts ------------------------------------------------------------------------------------------------------------ */

static void contexts(void)
{
    CUcontext first, second;
    CUdeviceptr more[CROWD] = {0};
    MUST(cuDevicePrimaryCtxRelease_v2(0)); /* none but the program's own */
    MUST(cuCtxCreate_v2(&first, 0, 0));
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), out = alloc(s);
    fill(p, 17, s);
    crowd(more, s);
    MUST(cuCtxCreate_v2(&second, 0, 0));
    MUST(cuCtxDestroy_v2(second));
    MUST(cuCtxSetCurrent(first));
    map(out, p, s);
    look("out", out, s);
    look("in", p, s);
    crowd(more, s);
    look("out", out, s);
}

static void legacies(void)
{
    CUcontext second;
    CUdeviceptr more[CROWD] = {0};
    CUdeviceptr p = alloc(NULL), q = alloc(NULL), out = alloc(NULL);
    fill(p, 3, NULL);
    MUST(cuCtxSynchronize());
    MUST(cuCtxCreate_v2(&second, 0, 0));
    CUmodule m = load_kernels();
    CUfunction here = f_map, there = kernel(m, "map");
    for (int r = 0; r < ROUNDS; r++) {
        MUST(cuCtxSetCurrent(ctx));
        f_map = here;
        fill(p, (uint32_t)r, NULL);
        map(q, p, NULL);
        MUST(cuCtxSynchronize());
        MUST(cuCtxSetCurrent(second));
        f_map = there;
        crowd(more, NULL);
        map(out, q, NULL);
        MUST(cuCtxSynchronize());
        MUST(cuCtxSetCurrent(ctx));
        f_map = here;
        map(q, q, NULL);   /* queued in one context, */
        CUdeviceptr t = alloc(NULL);
        fill(t, 7, NULL);
        map(q, t, NULL);
        MUST(cuMemFreeAsync(t, NULL));
        MUST(cuCtxSetCurrent(second)); /* while the other one makes room */
        f_map = there;
        crowd(more, NULL);
        MUST(cuCtxSetCurrent(ctx));
        look("q", q, NULL);
        look("out", out, NULL);
    }
}

static void no_context(void)
{
    CUdeviceptr p = alloc(NULL), q = 0;
    fill(p, 1, NULL);
    MUST(cuCtxSynchronize());
    MUST(cuCtxSetCurrent(NULL));
    size_t a, b;
    printf("alloc %s\n", name(cuMemAllocAsync(&q, BYTES, NULL)));
    printf("alloc %s\n", name(cuMemAlloc_v2(&q, BYTES)));
    printf("fill %s\n", name(cuMemsetD32Async(p, 1, WORDS, NULL)));
    printf("copy %s\n", name(cuMemcpyDtoH_v2(host, p, BYTES)));
    printf("info %s\n", name(cuMemGetInfo_v2(&a, &b)));
    printf("free %s\n", name(cuMemFreeAsync(p, NULL)));
    MUST(cuCtxSetCurrent(ctx));
    look("p", p, NULL);
    printf("free %s\n", name(cuMemFreeAsync(p, NULL)));
}

/* ---- devices ------------------------------------------------------------------------------------------------------------- */

static void ordinal(const char *what, CUdeviceptr p)
{
    int dev = -1;
    MUST(cuPointerGetAttribute(&dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    printf("%s on device %d\n", what, dev);
}

static CUcontext second_device(void)
{
    int n = 0;
    CUcontext other;
    MUST(cuDeviceGetCount(&n));
    if (n < 2)
        exit(77);
    MUST(cuDevicePrimaryCtxRetain(&other, 1));
    return other;
}

static void other_stream(void)
{
    CUcontext other = second_device();
    CUmemoryPool pool;
    CUdeviceptr p, q;
    MUST(cuCtxSetCurrent(other));
    CUstream s = stream(1);
    MUST(cuDeviceGetDefaultMemPool(&pool, 1));
    MUST(cuCtxSetCurrent(ctx));
    ordinal("here", alloc(NULL));
    MUST(cuMemAllocAsync(&p, BYTES, s));
    ordinal("in its stream", p);
    MUST(cuMemAllocFromPoolAsync(&q, BYTES, pool, NULL));
    ordinal("of its pool", q);
    MUST(cuCtxSetCurrent(other));
    fill(p, 4, s);
    look("p", p, s);
    MUST(cuCtxSynchronize());
    MUST(cuMemFreeAsync(p, s));
    MUST(cuMemFreeAsync(q, s));
    MUST(cuCtxSynchronize());
}

static void other_copy(void)
{
    CUcontext other = second_device();
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q;
    MUST(cuCtxSetCurrent(other));
    CUstream t = stream(1);
    q = alloc(t);
    fill(q, 1, t);
    MUST(cuCtxSynchronize());
    for (int r = 0; r < ROUNDS; r++) {
        MUST(cuCtxSetCurrent(ctx));
        fill(p, 11 + (uint32_t)r, s);
        crowd(more, s);
        MUST(cuCtxSetCurrent(other));
        look("p", p, t);
        MUST(cuMemcpyPeerAsync(q, other, p, ctx, BYTES, t));
        look("q", q, t);
        MUST(cuCtxSetCurrent(ctx));
        crowd(more, s);
        MUST(cuCtxSetCurrent(other));
        for (int i = 0; i < WORDS; i++)
            host[i] = (uint32_t)(i * r);
        MUST(cuMemcpyHtoDAsync_v2(p, host, BYTES, t));
        MUST(cuCtxSynchronize());
        MUST(cuCtxSetCurrent(ctx));
        look("p", p, s);
    }
}

/* ---- addresses that travel ------------------------------------------------------------------------------------------------ */

/* put: an address, `at` so many bytes behind list. */
static void pointers(void (*put)(CUdeviceptr list, CUdeviceptr p, CUstream s), unsigned at)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr list, p = alloc(s), out = alloc(s);
    MUST(cuMemAllocAsync(&list, 4096, s));
    MUST(cuMemsetD8Async(list, 0, 4096, s));
    fill(p, 21, s);
    MUST(cuStreamSynchronize(s));
    put(list, p, s);
    for (int r = 0; r < ROUNDS; r++) {
        crowd(more, s);
        gather(out, list + at, 1, s);
        look("out", out, s);
    }
}

static void put_one(CUdeviceptr list, CUdeviceptr p, CUstream s)
{
    uint64_t numbers[256];
    for (int i = 0; i < 256; i++)
        numbers[i] = 3 * (uint64_t)i;
    numbers[0] = p;
    MUST(cuMemcpyHtoDAsync_v2(list, numbers, sizeof numbers, s));
    MUST(cuStreamSynchronize(s));
}
static void put_box(CUdeviceptr list, CUdeviceptr p, CUstream s)
{
    uint64_t from[4] = {p, 0, 0, 0};
    CUDA_MEMCPY2D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = from;
    c.srcPitch = 16;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = list;
    c.dstPitch = 64;
    c.WidthInBytes = 16;
    c.Height = 2;
    MUST(cuMemcpy2DAsync_v2(&c, s));
    MUST(cuStreamSynchronize(s));
}
static void put_batch(CUdeviceptr list, CUdeviceptr p, CUstream s)
{
    CUdeviceptr to = list, from = (CUdeviceptr)(uintptr_t)&p;
    size_t n = 8, at = 0, failed = 0;
    CUmemcpyAttributes attr;
    memset(&attr, 0, sizeof attr);
    attr.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    MUST(cuMemcpyBatchAsync(&to, &from, &n, 1, &attr, &at, 1, &failed, s));
    MUST(cuStreamSynchronize(s));
}
static void batch_many(void)
{
    enum { MANY = 6000, EACH = 16 };
    static CUdeviceptr to[MANY + 1], from[MANY + 1];
    static size_t bytes[MANY + 1];
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s);
    size_t at = 0, failed = 0;
    CUmemcpyAttributes attr;
    memset(&attr, 0, sizeof attr);
    attr.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    fill(p, 5, s);
    fill(q, 6, s);
    crowd(more, s);
    for (int i = 0; i < MANY; i++) {
        from[i] = more[0] + (unsigned)i * EACH % BYTES;
        to[i] = more[1] + (unsigned)i * EACH % BYTES;
        bytes[i] = EACH;
    }
    from[MANY] = p;
    to[MANY] = q;
    bytes[MANY] = BYTES;
    MUST(cuMemcpyBatchAsync(to, from, bytes, MANY + 1, &attr, &at, 1, &failed, s));
    look("q", q, s);
    crowd(more, s);
    look("q", q, s);
    look("more", more[1], s);
}
static void lone_batch(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s), r = alloc(s);
    CUmemcpyAttributes attr;
    CUDA_MEMCPY3D_BATCH_OP op;
    memset(&attr, 0, sizeof attr);
    memset(&op, 0, sizeof op);
    attr.srcAccessOrder = op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    fill(p, 5, s);
    fill(q, 6, s);
    fill(r, 7, s);
    crowd(more, s);
    MUST(cuMemcpyWithAttributesAsync(q, p, BYTES, &attr, s));
    look("q", q, s);
    crowd(more, s);
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = q;
    op.dst.op.ptr.ptr = r;
    op.extent = (CUextent3D){BYTES, 1, 1};
    MUST(cuMemcpy3DWithAttributesAsync(&op, 0, s));
    crowd(more, s);
    look("r", r, s);
    look("more", more[1], s);
}
static void put_word(CUdeviceptr list, CUdeviceptr p, CUstream s)
{
    MUST(cuStreamWriteValue64(s, list, p, 0));
    MUST(cuStreamSynchronize(s));
}

struct odd {
    uint32_t a, b;
    uint64_t p;
};

static void put_odd(CUdeviceptr list, CUdeviceptr p, CUstream s)
{
    const struct odd h = {.p = p};
    MUST(cuMemcpyHtoDAsync_v2(list + 4, &h.b, 12, s)); /* from no multiple of eight */
    MUST(cuStreamSynchronize(s));
}

static void put_odd_box(CUdeviceptr list, CUdeviceptr p, CUstream s)
{
    const struct odd h = {.p = p};
    const CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = &h, .srcXInBytes = 4, .srcPitch = 16,
                             .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = list, .dstXInBytes = 4, .dstPitch = 64,
                             .WidthInBytes = 12, .Height = 1};
    MUST(cuMemcpy2DAsync_v2(&c, s));
    MUST(cuStreamSynchronize(s));
}

static void put_boxes(CUdeviceptr list, CUdeviceptr p, CUstream s)
{
    uint64_t h[4] = {0, 0, 0, p}; /* two rows of two words; the second of the second row */
    size_t failed = 0;
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = {8, 2, 1}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)(h + 1);
    op.src.op.ptr.rowLength = 16;
    op.dst.op.ptr.ptr = list;
    MUST(cuMemcpy3DBatchAsync(1, &op, &failed, 0, s));
    MUST(cuStreamSynchronize(s));
}

static void far_pointer(void)
{
    enum { FAR = (1 << 20) + 65536 };
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    static uint64_t words[FAR / 8];
    CUmemGenericAllocationHandle h;
    CUdeviceptr va, more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), out = alloc(s);
    MUST(cuMemCreate(&h, FAR, &prop, 0));
    MUST(cuMemAddressReserve(&va, FAR, 0, 0, 0));
    MUST(cuMemMap(va, FAR, 0, h, 0));
    MUST(cuMemSetAccess(va, FAR, &access, 1));
    fill(p, 21, s);
    words[FAR / 8 - 1] = p;
    MUST(cuMemcpyHtoDAsync_v2(va, words, FAR, s));
    MUST(cuStreamSynchronize(s));
    for (int r = 0; r < ROUNDS; r++) {
        crowd(more, s);
        gather(out, va + FAR - 8, 1, s);
        look("out", out, s);
    }
}

static void odd_pointer(void) { pointers(put_odd, 8); }
static void odd_box(void) { pointers(put_odd_box, 8); }
static void boxes_pointer(void) { pointers(put_boxes, 8); }
static void one_pointer(void) { pointers(put_one, 0); }
static void box_pointer(void) { pointers(put_box, 0); }
static void batch_pointer(void) { pointers(put_batch, 0); }
static void word_pointer(void) { pointers(put_word, 0); }

/* The kernel reads the list where the host has written it: no call says that there is one. */
static void follow_in_place(CUdeviceptr list, volatile CUdeviceptr *words)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr out = alloc(s);
    for (int r = 0; r < ROUNDS; r++) {
        CUdeviceptr p = alloc(s), q = alloc(s);
        fill(p, 31 + (uint32_t)r, s);
        fill(q, 57 + (uint32_t)r, s);
        crowd(more, s);
        words[r] = p;
        words[r + 1] = q;
        gather(out, list + 8 * (unsigned)r, 2, s);
        look("out", out, s);
        crowd(more, s);
        look("p", p, s);
        gather(out, list + 8 * (unsigned)r, 2, s);
        look("out", out, s);
        words[r] = 0;
        MUST(cuMemFreeAsync(p, s));
        MUST(cuMemFreeAsync(q, s));
    }
    MUST(cuStreamSynchronize(s));
}

static void pinned_list(void)
{
    CUdeviceptr *words, list;
    MUST(cuMemHostAlloc((void **)&words, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer_v2(&list, words, 0));
    follow_in_place(list + 4096, words + 512);
    MUST(cuMemFreeHost(words));
    MUST(cuMemAllocHost_v2((void **)&words, 64));
    MUST(cuMemHostGetDevicePointer_v2(&list, words, 0));
    follow_in_place(list, words);
    MUST(cuMemFreeHost(words));
}

static void own_list(void)
{
    static CUdeviceptr words[1024] __attribute__((aligned(4096)));
    CUdeviceptr list;
    MUST(cuMemHostRegister_v2(words, sizeof words, CU_MEMHOSTREGISTER_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer_v2(&list, words, 0));
    follow_in_place(list, words);
    MUST(cuMemHostUnregister(words));
}

static void odd_list(void)
{
    CUdeviceptr *words, list;
    MUST(cuMemHostAlloc((void **)&words, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer_v2(&list, words, 0));
    follow_in_place(list + 4, words + 1);
    MUST(cuMemFreeHost(words));
}

static void managed_list(void)
{
    CUdeviceptr list;
    MUST(cuMemAllocManaged(&list, BYTES, CU_MEM_ATTACH_GLOBAL));
    follow_in_place(list, (CUdeviceptr *)(uintptr_t)list);
    MUST(cuMemFree_v2(list));
}

static void gone_list(void)
{
    CUcontext second;
    CUdeviceptr *words, list;
    CUstream s = stream(1);
    CUdeviceptr out = alloc(s);
    fill(out, 5, s);
    MUST(cuCtxCreate_v2(&second, 0, 0));
    MUST(cuMemHostAlloc((void **)&words, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer_v2(&list, words, 0));
    MUST(cuCtxDestroy_v2(second));
    MUST(cuCtxSetCurrent(ctx));
    gather(out, list, 0, s);
    look("out", out, s);
}

static void same_pointer(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr list, was = 0, out = alloc(s);
    int copied = 0;
    MUST(cuMemAllocAsync(&list, 4096, s));
    for (int r = 0; r < ROUNDS; r++) {
        CUdeviceptr p = alloc(s);
        if (p != was) {
            MUST(cuMemcpyHtoDAsync_v2(list, &p, 8, s));
            MUST(cuStreamSynchronize(s));
            copied++;
        }
        was = p;
        fill(p, 31 + (uint32_t)r, s);
        crowd(more, s);
        gather(out, list, 1, s);
        look("out", out, s);
        MUST(cuMemFreeAsync(p, s));
        MUST(cuStreamSynchronize(s));
    }
    fprintf(stderr, "copied %d times\n", copied);
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

/* ---- fills that the host waits for ---------------------------------------------------------------------------------------------- */

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

/* ---- launches that may begin early -------------------------------------------------------------------------------------------- */

static void early(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s);
    CUlaunchAttribute may = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmaticStreamSerializationAllowed = 1};
    const CUlaunchConfig config = {.gridDimX = 8, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 64, .blockDimY = 1, .blockDimZ = 1,
                                   .hStream = s, .attrs = &may, .numAttrs = 1};
    fill(p, 5, s);
    crowd(more, s);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t n = WORDS, mask = 0xffffffffu;
        MUST(cuLaunchKernelEx(&config, f_map, (void *[]){i % 2 ? &p : &q, i % 2 ? &q : &p, &n, &i, &mask}, NULL));
    }
    look("p", p, s);
    look("q", q, s);
}

/* ---- pools -------------------------------------------------------------------------------------------------------------------- */

static CUmemoryPool pool_of(size_t most)
{
    CUmemPoolProps props;
    CUmemoryPool pool;
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.maxSize = most;
    MUST(cuMemPoolCreate(&pool, &props));
    return pool;
}

static void pool_most(void)
{
    CUdeviceptr p = 0, q = 0, r = 0;
    CUmemoryPool pool = pool_of(4 << 20);
    CUstream s = stream(1);
    printf("within %s\n", name(cuMemAllocFromPoolAsync(&p, 3 << 20, pool, s)));
    printf("beyond %s\n", name(cuMemAllocFromPoolAsync(&q, 2 << 20, pool, s)));
    printf("within %s\n", name(cuMemAllocFromPoolAsync(&r, 1 << 20, pool, s)));
    printf("free %s\n", name(cuMemFreeAsync(p, s)));
    printf("free %s\n", name(cuMemFreeAsync(r, s)));
    MUST(cuStreamSynchronize(s));
    printf("within %s\n", name(cuMemAllocFromPoolAsync(&p, 4 << 20, pool, s)));
    fill(p, 1, s);
    MUST(cuMemFreeAsync(p, s));
    MUST(cuStreamSynchronize(s));
    MUST(cuMemPoolDestroy(pool));
    printf("gone %s\n", name(cuMemAllocFromPoolAsync(&p, 1 << 20, pool, s)));
    printf("none %s\n", name(cuMemAllocFromPoolAsync(&p, 1 << 20, NULL, s)));
}

static void peak(const char *what, CUmemoryPool pool)
{
    uint64_t high = 0, now = 0;
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high));
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &now));
    printf("%s: used %llu, at most %llu\n", what, (unsigned long long)now, (unsigned long long)high);
}

static void pool_peaks(void)
{
    CUdeviceptr p, q;
    uint64_t zero = 0;
    CUmemoryPool one = pool_of(0), two = pool_of(0);
    CUstream s = stream(1);
    MUST(cuMemAllocFromPoolAsync(&p, 3 << 20, one, s));
    MUST(cuMemAllocFromPoolAsync(&q, 1 << 20, two, s));
    peak("one", one);
    peak("two", two);
    MUST(cuMemFreeAsync(p, s));
    MUST(cuStreamSynchronize(s));
    peak("one", one);
    MUST(cuMemPoolSetAttribute(one, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    peak("one", one);
    MUST(cuMemFreeAsync(q, s));
    MUST(cuStreamSynchronize(s));
    peak("two", two);
}

/* ---- a stream that waits for the host ------------------------------------------------------------------------------------------ */

static uint32_t *flag;

static void wait_for_flag(CUstream s)
{
    CUdeviceptr at;
    MUST(cuMemHostAlloc((void **)&flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = 0;
    MUST(cuMemHostGetDevicePointer_v2(&at, flag, 0));
    MUST(cuStreamWaitValue32(s, at, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void set_flag(void) { *(volatile uint32_t *)flag = 1; }

static void host_free(void)
{
    CUstream a = stream(1), b = stream(1);
    CUdeviceptr p = alloc(a);
    fill(p, 5, a);
    MUST(cuMemFreeAsync(p, a));
    MUST(cuStreamSynchronize(a));
    wait_for_flag(a);
    p = alloc(b);
    fill(p, 6, b);
    MUST(cuStreamSynchronize(b));
    set_flag();
    look("p", p, b);
}

static void run_graph(CUgraph g, CUstream s);

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

static void host_room(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream a = stream(1), s = stream(1);
    CUdeviceptr p = alloc(a);
    fill(p, 7, a);
    MUST(cuCtxSynchronize());
    wait_for_flag(a);
    crowd(more, s);
    set_flag();
    look("p", p, a);
}

static void host_many(void)
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
    wait_for_flag(s[MANY - 1]);
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

/* ---- captures ------------------------------------------------------------------------------------------------------------------ */

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

/* ---- calls that are wrong, or look it ----------------------------------------------------------------------------------------- */

static void wrong_way(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = alloc(s), r = alloc(s), t = alloc(s);
    CUDA_MEMCPY2D c;
    memset(&c, 0, sizeof c);
    fill(p, 41, s);
    map(p, p, s);
    fill(q, 0, s);
    fill(r, 0, s);
    fill(t, 0, s);
    crowd(more, s);
    printf("to the device %s\n", name(cuMemcpyHtoDAsync_v2(q, (void *)(uintptr_t)p, BYTES, s)));
    crowd(more, s);
    look("q", q, s);
    crowd(more, s);
    printf("to the host %s\n", name(cuMemcpyDtoHAsync_v2((void *)(uintptr_t)r, q, BYTES, s)));
    crowd(more, s);
    look("r", r, s);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = (void *)(uintptr_t)r;
    c.srcPitch = c.dstPitch = c.WidthInBytes = BYTES / 64;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = (void *)(uintptr_t)t;
    c.Height = 64;
    crowd(more, s);
    printf("a box %s\n", name(cuMemcpy2DAsync_v2(&c, s)));
    crowd(more, s);
    look("t", t, s);
}

static void no_arguments(void)
{
    printf("launch %s\n", name(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL)));
    printf("launch %s\n", name(cuLaunchKernel(NULL, 8, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL)));
    CUdeviceptr p = alloc(NULL);
    char bytes[64] = {0};
    size_t n = sizeof bytes;
    void *params[5] = {bytes, bytes, bytes, bytes, bytes};
    void *both[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &n, CU_LAUNCH_PARAM_END};
    void *other[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, (void *)77, &n, CU_LAUNCH_PARAM_END};
    void *nothing[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, NULL, CU_LAUNCH_PARAM_END};
    printf("launch %s\n", name(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, NULL, params, both)));
    printf("launch %s\n", name(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, NULL, NULL, other)));
    printf("launch %s\n", name(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, NULL, NULL, nothing)));
    fill(p, 1, NULL);
    look("p", p, NULL);
}

static void bad_stream(void)
{
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), q = 0;
    MUST(cuStreamDestroy_v2(s));
    printf("alloc %s\n", name(cuMemAllocAsync(&q, BYTES, s)));
    printf("free %s\n", name(cuMemFreeAsync(p, s)));
    fill(p, 2, NULL);
    look("p", p, NULL);
    printf("free %s\n", name(cuMemFreeAsync(p, NULL)));
}

static void huge(void)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 512, SIZE_MAX - (4 << 20), (size_t)1 << 63, (size_t)1 << 48};
    CUdeviceptr p = alloc(NULL), q;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        printf("alloc %s\n", name(cuMemAllocAsync(&q, sizes[i], NULL)));
        printf("alloc %s\n", name(cuMemAlloc_v2(&q, sizes[i])));
    }
    fill(p, 8, NULL);
    look("p", p, NULL);
}

static void past_end(void)
{
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), base;
    size_t n;
    static char big[64 * BYTES];
    unsigned type;
    fill(p, 8, s);
    printf("range %s\n", name(cuMemGetAddressRange_v2(&base, &n, p + BYTES)));
    printf("attribute %s\n", name(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + BYTES)));
    printf("to the host %s\n", name(cuMemcpyDtoHAsync_v2(big, p, sizeof big, s)));
    printf("to the device %s\n", name(cuMemcpyHtoDAsync_v2(p, big, sizeof big, s)));
    printf("fill %s\n", name(cuMemsetD8Async(p, 1, sizeof big, s)));
    printf("fill %s\n", name(cuMemsetD2D8Async(p, BYTES, 1, 64, 64, s)));
    look("p", p, s);
}

static void attributes(void)
{
    CUdeviceptr more[CROWD] = {0};
    CUmemGenericAllocationHandle h;
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s);
    unsigned long long handles = 9;
    unsigned flags = 9;
    fill(p, 8, s);
    crowd(more, s);
    printf("handles %s", name(cuPointerGetAttribute(&handles, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p)));
    printf(" %llu\n", handles);
    printf("access %s", name(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p)));
    printf(" %u\n", flags);
    printf("retain %s\n", name(cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)p)));
}

int main(int argc, char **argv)
{
#define CASE(f) {#f, f}
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        CASE(wait_copy), CASE(wait_pageable), CASE(wait_box), CASE(wait_batch), CASE(wait_boxes), CASE(host_free), CASE(host_capture), CASE(host_room), CASE(host_many), CASE(contexts), CASE(legacies), CASE(no_context),
        CASE(other_stream), CASE(other_copy), CASE(one_pointer), CASE(odd_pointer), CASE(odd_box), CASE(boxes_pointer), CASE(far_pointer), CASE(box_pointer), CASE(batch_pointer),
        CASE(word_pointer), CASE(odd_list), CASE(pinned_list), CASE(own_list), CASE(managed_list), CASE(gone_list), CASE(same_pointer), CASE(pool_most), CASE(pool_peaks), CASE(capture_free),
        CASE(capture_lost), CASE(capture_loop), CASE(capture_thread), CASE(other_capture), CASE(wrong_way),
        CASE(no_arguments), CASE(bad_stream), CASE(huge), CASE(past_end), CASE(early), CASE(batch_many), CASE(lone_batch), CASE(sync_fill), CASE(capture_fresh), CASE(attributes)};
    ctx = primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_gather = kernel(m, "gather");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc == 2 && !strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    fprintf(stderr, "usage: unusual CASE\n");
    return 2;
}
