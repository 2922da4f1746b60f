/* early_reads CASE: copies whose attributes let the driver read their sources out of stream order. The program has seen the end of all that writes them.
 *
 *   during    CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL, one tensor after another
 *   any       CU_MEMCPY_SRC_ACCESS_ORDER_ANY
 *   in_order  CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, beside which nothing is promised
 *   mixed     one entry of attributes for tensors and a variable of the host's, which is another number right after the call
 *   many      more copies than fit on a stack, each order in turn
 *   boxes     the same with three-dimensional copies
 *   lone      copies that are no batch
 *   over      what was read during the call is filled in another stream right after it
 *   still     the stream stands still until the host writes a word, after the call */
#include "tests/programs/crowd.h"

enum { TENSORS = 10 };
static CUstream s;
static CUdeviceptr t[TENSORS], out[TENSORS];
static const CUmemcpySrcAccessOrder STREAM = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, DURING = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
                                    ANY = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;

static void begin(void)
{
    s = stream(1);
    for (int i = 0; i < TENSORS; i++) {
        t[i] = alloc(s);
        fill(t[i], 100 + (uint32_t)i, s);
        map(t[i], t[i], s);
    }
    for (int i = 0; i < TENSORS; i++) {
        out[i] = alloc(s);
        fill(out[i], 1, s);
    }
    MUST(cuStreamSynchronize(s));
}

static void one_by_one(CUmemcpySrcAccessOrder order)
{
    CUmemcpyAttributes a = {.srcAccessOrder = order};
    size_t bytes = BYTES, first = 0, failed;
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < TENSORS; i++) {
            if (r)
                MUST(cuMemcpyBatchAsync(&out[0], &t[i], &bytes, 1, &a, &first, 1, &failed, s));
            else
                MUST(cuMemcpyBatchAsync_v2(&out[0], &t[i], &bytes, 1, &a, &first, 1, s));
            look("out", out[0], s);
        }
}

static void during(void) { one_by_one(DURING); }
static void any(void) { one_by_one(ANY); }
static void in_order(void) { one_by_one(STREAM); }

static void mixed(void)
{
    CUmemcpyAttributes a[] = {{.srcAccessOrder = DURING}, {.srcAccessOrder = STREAM}};
    for (int r = 0; r < TENSORS; r++) {
        uint32_t number = 7u + (uint32_t)r;
        CUdeviceptr to[] = {out[0], out[1], out[0] + 64, out[2]}, from[] = {t[r], (CUdeviceptr)(uintptr_t)&number, 0, t[(r + 1) % TENSORS]};
        size_t bytes[] = {64, 4, 0, BYTES}, first[] = {0, 3};
        from[2] = t[r];
        MUST(cuMemcpyBatchAsync_v2(to, from, bytes, 4, a, first, 2, s));
        number = 0;
        look("out", out[0], s);
        look("number", out[1], s);
        look("in order", out[2], s);
    }
}

static void many(void)
{
    enum { MANY = 90 };
    CUmemcpyAttributes a[] = {{.srcAccessOrder = DURING}, {.srcAccessOrder = ANY}, {.srcAccessOrder = STREAM}, {.srcAccessOrder = DURING}};
    size_t bytes[MANY], first[] = {0, 30, 31, 60};
    CUdeviceptr to[MANY], from[MANY];
    for (int r = 0; r < TENSORS; r++) {
        for (int i = 0; i < MANY; i++) {
            to[i] = out[0] + 64u * (unsigned)i;
            from[i] = t[(r + i / 45) % TENSORS] + 64u * (unsigned)i;
            bytes[i] = i % 7 ? 64 : 0;
        }
        MUST(cuMemcpyBatchAsync_v2(to, from, bytes, MANY, a, first, 4, s));
        look("out", out[0], s);
    }
}

static CUDA_MEMCPY3D_BATCH_OP box(CUdeviceptr to, CUdeviceptr from, size_t width, size_t height, CUmemcpySrcAccessOrder order)
{
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = {width, height, 1}, .srcAccessOrder = order};
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = from;
    op.src.op.ptr.rowLength = op.dst.op.ptr.rowLength = 256;
    op.dst.op.ptr.ptr = to;
    return op;
}

static void boxes(void)
{
    size_t failed;
    for (int r = 0; r < TENSORS; r++) {
        uint32_t number = 7u + (uint32_t)r;
        CUDA_MEMCPY3D_BATCH_OP ops[] = {box(out[0], t[r], 128, 16, DURING), box(out[1], (CUdeviceptr)(uintptr_t)&number, 4, 1, DURING),
                                        box(out[2], t[(r + 1) % TENSORS], 128, 16, r % 2 ? ANY : STREAM)};
        if (r % 2)
            MUST(cuMemcpy3DBatchAsync(3, ops, &failed, 0, s));
        else
            MUST(cuMemcpy3DBatchAsync_v2(3, ops, 0, s));
        number = 0;
        for (int i = 0; i < 3; i++)
            look("box", out[i], s);
    }
}

static void lone(void)
{
    CUmemcpyAttributes a[] = {{.srcAccessOrder = DURING}, {.srcAccessOrder = ANY}, {.srcAccessOrder = STREAM}};
    for (int r = 0; r < TENSORS; r++) {
        CUDA_MEMCPY3D_BATCH_OP op = box(out[1], t[(r + 5) % TENSORS], 64, 8, a[r % 3].srcAccessOrder);
        MUST(cuMemcpyWithAttributesAsync(out[0], t[r], BYTES, &a[r % 3], s));
        MUST(cuMemcpy3DWithAttributesAsync(&op, 0, s));
        look("out", out[0], s);
        look("box", out[1], s);
    }
}

static void over(void)
{
    CUmemcpyAttributes a = {.srcAccessOrder = DURING};
    size_t bytes = BYTES, first = 0;
    CUstream other = stream(1);
    for (int i = 0; i < TENSORS; i++) {
        MUST(cuMemcpyBatchAsync_v2(&out[0], &t[i], &bytes, 1, &a, &first, 1, s));
        fill(t[i], 5, other);
        look("filled", t[i], other);
        look("out", out[0], s);
    }
}

static void still(void)
{
    CUmemcpyAttributes a = {.srcAccessOrder = DURING};
    size_t bytes = BYTES, first = 0;
    for (int i = 0; i < TENSORS; i++) {
        wait_for_flag(s);
        MUST(cuMemcpyBatchAsync_v2(&out[0], &t[i], &bytes, 1, &a, &first, 1, s));
        set_flag();
        look("out", out[0], s);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {CASE(during), CASE(any), CASE(in_order), CASE(mixed), CASE(many), CASE(boxes), CASE(lone), CASE(over), CASE(still)};
    start();
    begin();
    return run_case("early_reads", cases, sizeof cases / sizeof cases[0], argc, argv);
}
