/* addresses CASE: addresses that come to lie in memory by any kind of copy, where a kernel follows them: one case each. What they
 * point at has to be in memory by then. Prints what is computed.
 *
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
 *   pool_list      the same in memory of a pool on the host, and of a pool of managed memory; given back by either call
 *   gone_list      pinned memory goes with its context; a launch is given its address still, and does not follow it
 *   same_pointer   an address that is copied once, and lies in the device while its memory is freed and allocated again
 *   moved_pointer  the same where it came by way of other memory of the device, which is gone */
#include "tests/programs/crowd.h"
#include "tests/programs/elsewhere.h"

enum { ROUNDS = 4 };

static CUfunction f_gather;

/* out = what lies where the words at `list` point to */
static void gather(CUdeviceptr out, CUdeviceptr list, uint32_t count, CUstream s)
{
    uint32_t n = WORDS;
    MUST(cuLaunchKernel(f_gather, 8, 1, 1, 64, 1, 1, 0, s, (void *[]){&out, &list, &count, &n, &n}, NULL));
}

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
    static uint64_t words[FAR / 8];
    CUdeviceptr va = map_own(FAR), more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr p = alloc(s), out = alloc(s);
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

static void pool_list(void)
{
    CUstream s = stream(1);
    for (int managed = 0; managed < 2; managed++) {
        CUdeviceptr list = host_pool_memory(managed, BYTES, s);
        follow_in_place(list, (CUdeviceptr *)(uintptr_t)list);
        if (managed)
            MUST(cuMemFreeAsync(list, s));
        else
            MUST(cuMemFree_v2(list));
    }
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

/* The address is copied to `list`, or through other memory, which is gone by then. */
static void again(bool moved)
{
    CUdeviceptr more[CROWD] = {0};
    CUstream s = stream(1);
    CUdeviceptr list, was = 0, out = alloc(s);
    int copied = 0;
    MUST(cuMemAllocAsync(&list, 4096, s));
    for (int r = 0; r < ROUNDS; r++) {
        CUdeviceptr p = alloc(s);
        if (p != was) {
            CUdeviceptr by = moved ? alloc(s) : 0;
            MUST(cuMemcpyHtoDAsync_v2(moved ? by + 8 : list, &p, 8, s));
            if (moved) {
                MUST(cuMemcpyDtoDAsync_v2(list, by + 8, 8, s));
                MUST(cuMemFreeAsync(by, s));
            }
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

static void same_pointer(void) { again(false); }
static void moved_pointer(void) { again(true); }

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(one_pointer), CASE(box_pointer), CASE(batch_pointer), CASE(word_pointer), CASE(odd_pointer), CASE(odd_box),
        CASE(boxes_pointer), CASE(far_pointer), CASE(odd_list), CASE(pinned_list), CASE(own_list), CASE(managed_list), CASE(pool_list),
        CASE(gone_list), CASE(same_pointer), CASE(moved_pointer)};
    start();
    f_gather = kernel(kernels, "gather");
    return run_case("addresses", cases, sizeof cases / sizeof *cases, argc, argv);
}
