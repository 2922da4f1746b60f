/* hook_batch.c: many copies in one call: one opaque op with the touches of all of them.
 *
 * A copy may say that its source can be read out of stream order, since no work that the program has queued writes it. Remat's work may: an evicted buffer
 * comes back in stream order. The engine says for which sources that holds at the moment of the call (ENG_IN_ORDER): these copies alone are given to the
 * driver with the order of the stream. Host memory that a copy reads (a variable on the stack) is read when the program says.
 */
#include "policy/engine.h"
#include "policy/reach.h"
#include "preload/door.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 32 };

/* Touches of a batch: on the stack while they are few. */
struct touch_list {
    struct eng_touch few[FEW], *at;
    unsigned used;
};

/* Makes room for two touches a copy. False: no memory for them, and everything is pinned instead; *refused: the call's answer where pinning failed. */
static bool list_open(struct touch_list *l, size_t copies, int *refused)
{
    l->used = 0;
    l->at = l->few;
    *refused = 0;
    if (copies <= FEW / 2)
        return true;
    l->at = copies < (UINT32_MAX / 2) ? malloc(2 * copies * sizeof *l->at) : NULL;
    if (!l->at)
        *refused = eng_pin_everything();
    return l->at != NULL;
}

static void list_add(struct touch_list *l, CUdeviceptr at, size_t bytes, unsigned mode)
{
    l->at[l->used++] = (struct eng_touch){at, bytes, mode};
}

static bool list_is_in_order(const struct touch_list *l)
{
    bool any = false;
    for (unsigned i = 0; i < l->used; i++)
        any |= (l->at[i].mode & ENG_IN_ORDER) != 0;
    return any;
}

static unsigned read_mode(CUmemcpySrcAccessOrder order)
{
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL || order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY ? ENG_READ | ENG_EARLY : ENG_READ;
}

static int list_issue(struct touch_list *l, const char *name, CUstream s, int (*issue)(void *), void *call)
{
    int r = eng_other(name, s, l->at, l->used, issue, call);
    if (l->at != l->few)
        free(l->at);
    return r;
}

/* ---- one-dimensional ------------------------------------------------------------------------------------------------- */

ISSUE9(batch_old, cuMemcpyBatchAsync, CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *,
       size_t, size_t *, CUstream)
ISSUE8(batch, cuMemcpyBatchAsync_v2, CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t,
       CUstream)

/* The copies of a call, and the places of its attribute arguments. */
struct batch {
    const CUdeviceptr *to, *from;
    const size_t *bytes;
    size_t count;
    CUmemcpyAttributes **attrs;
    size_t **first, *n_attrs; /* attrs[k] applies from copy first[k] on */
    struct touch_list *touched;
    int (*issue)(void *);
    void *call;
};

/* The attributes of copy i; *k: their index, at first that of copy i - 1. NULL: the call has none, and the driver refuses it. */
static const CUmemcpyAttributes *attributes_of(const struct batch *b, size_t i, size_t *k)
{
    if (!*b->attrs || !*b->first || !*b->n_attrs)
        return NULL;
    while (*k + 1 < *b->n_attrs && (*b->first)[*k + 1] <= i)
        ++*k;
    return &(*b->attrs)[*k];
}

/* Makes the call with attributes for each copy, which say the order of the stream where the engine asks for it. */
static int issue_in_order(void *p)
{
    struct batch *b = p;
    if (!list_is_in_order(b->touched))
        return b->issue(b->call);
    CUmemcpyAttributes *attrs = malloc(b->count * sizeof *attrs), *given = *b->attrs;
    size_t *first = malloc(b->count * sizeof *first), *first_given = *b->first, n_given = *b->n_attrs, k = 0, n = 0;
    const struct eng_touch *read = b->touched->at + 1; /* destination, source for each copy of at least one byte */
    for (size_t i = 0; attrs && first && i < b->count; i++) {
        CUmemcpyAttributes a = *attributes_of(b, i, &k);
        if (b->bytes[i] && read->mode & ENG_IN_ORDER)
            a.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        read += b->bytes[i] ? 2 : 0;
        if (n && !memcmp(&a, &attrs[n - 1], sizeof a))
            continue;
        attrs[n] = a;
        first[n++] = i;
    }
    int r = CUDA_ERROR_OUT_OF_MEMORY;
    if (attrs && first) {
        *b->attrs = attrs;
        *b->first = first;
        *b->n_attrs = n;
        r = b->issue(b->call);
        *b->attrs = given;
        *b->first = first_given;
        *b->n_attrs = n_given;
    }
    free(attrs);
    free(first);
    return r;
}

static int batch_1d(struct batch *b, CUstream s)
{
    const CUdeviceptr *d = b->to, *from = b->from;
    const size_t *n = b->bytes, count = b->count;
    struct touch_list l;
    for (size_t i = 0; d && from && n && i < count; i++)
        if (n[i] && !eng_is_device_pointer(d[i]))
            eng_before_host_copy(s, (const void *)(uintptr_t)d[i], false);
        else if (n[i] && !eng_is_device_pointer(from[i]))
            DOOR_TRY(eng_note_host_data(d[i], (const void *)(uintptr_t)from[i], n[i]));
    int refused = 0;
    if (!d || !from || !n || !list_open(&l, count, &refused))
        return refused ? refused : b->issue(b->call);
    for (size_t i = 0, k = 0; i < count; i++) {
        const CUmemcpyAttributes *a = attributes_of(b, i, &k);
        if (!n[i])
            continue;
        list_add(&l, d[i], n[i], ENG_WRITE);
        list_add(&l, from[i], n[i], a ? read_mode(a->srcAccessOrder) : ENG_READ);
    }
    b->touched = &l;
    return list_issue(&l, "cuMemcpyBatchAsync", s, issue_in_order, b);
}

static int on_batch_old(__typeof__(&cuMemcpyBatchAsync) real, CUstream nul, CUdeviceptr *d, CUdeviceptr *from, size_t *n,
                        size_t count, CUmemcpyAttributes *attrs, size_t *idx, size_t n_attrs, size_t *fail, CUstream s)
{
    struct call_batch_old call = {real, d, from, n, count, attrs, idx, n_attrs, fail, s};
    struct batch b = {d, from, n, count, &call.e, &call.f, &call.g, NULL, issue_batch_old, &call};
    return batch_1d(&b, door_stream(s, nul));
}

static int on_batch(__typeof__(&cuMemcpyBatchAsync_v2) real, CUstream nul, CUdeviceptr *d, CUdeviceptr *from, size_t *n,
                    size_t count, CUmemcpyAttributes *attrs, size_t *idx, size_t n_attrs, CUstream s)
{
    struct call_batch call = {real, d, from, n, count, attrs, idx, n_attrs, s};
    struct batch b = {d, from, n, count, &call.e, &call.f, &call.g, NULL, issue_batch, &call};
    return batch_1d(&b, door_stream(s, nul));
}

ISSUE5(batch_of_one, cuMemcpyWithAttributesAsync, CUdeviceptr, CUdeviceptr, size_t, CUmemcpyAttributes *, CUstream)

static int on_batch_of_one(__typeof__(&cuMemcpyWithAttributesAsync) real, CUstream nul, CUdeviceptr d, CUdeviceptr from, size_t n,
                           CUmemcpyAttributes *attr, CUstream s)
{
    struct call_batch_of_one call = {real, d, from, n, attr, s};
    size_t zero = 0, *first = &zero, one = 1;
    struct batch b = {&d, &from, &n, 1, &call.d, &first, &one, NULL, issue_batch_of_one, &call};
    return batch_1d(&b, door_stream(s, nul));
}

/* ---- three-dimensional: rows and layers are given in elements of unknown size, so whole allocations count --------------- */

ISSUE5(copy3d_batch_old, cuMemcpy3DBatchAsync, size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream)
ISSUE4(copy3d_batch, cuMemcpy3DBatchAsync_v2, size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream)

/* Notes the rows that a copy from the host brings. Between pointers an element is a byte; rows and layers without a pitch lie one behind the other. */
static int note_rows(const CUDA_MEMCPY3D_BATCH_OP *op)
{
    const CUmemcpy3DOperand *to = &op->dst, *from = &op->src;
    if (to->type != CU_MEMCPY_OPERAND_TYPE_POINTER || from->type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
        !eng_is_device_pointer(to->op.ptr.ptr) || eng_is_device_pointer(from->op.ptr.ptr))
        return CUDA_SUCCESS;
    const size_t w = op->extent.width, h = op->extent.height;
    const size_t to_row = to->op.ptr.rowLength ? to->op.ptr.rowLength : w, from_row = from->op.ptr.rowLength ? from->op.ptr.rowLength : w;
    const size_t to_rows = to->op.ptr.layerHeight ? to->op.ptr.layerHeight : h, from_rows = from->op.ptr.layerHeight ? from->op.ptr.layerHeight : h;
    if (to_row < w || from_row < w || to_rows < h || from_rows < h)
        return CUDA_SUCCESS; /* the driver refuses the copy, and reads nothing */
    for (size_t z = 0; z < op->extent.depth; z++)
        for (size_t y = 0; y < h; y++)
            DOOR_TRY(eng_note_host_data(to->op.ptr.ptr + (z * to_rows + y) * to_row,
                                        (const char *)(uintptr_t)from->op.ptr.ptr + (z * from_rows + y) * from_row, w));
    return CUDA_SUCCESS;
}

struct boxes {
    size_t n;
    CUDA_MEMCPY3D_BATCH_OP **ops; /* the place of the call's argument */
    struct touch_list *touched;
    int (*issue)(void *);
    void *call;
};

static int issue_boxes_in_order(void *p)
{
    struct boxes *b = p;
    if (!list_is_in_order(b->touched))
        return b->issue(b->call);
    CUDA_MEMCPY3D_BATCH_OP *ops = malloc(b->n * sizeof *ops), *given = *b->ops;
    if (!ops)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(ops, given, b->n * sizeof *ops);
    const struct eng_touch *t = b->touched->at;
    for (size_t i = 0; i < b->n; i++) {
        t += ops[i].dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER;
        if (ops[i].src.type == CU_MEMCPY_OPERAND_TYPE_POINTER && t++->mode & ENG_IN_ORDER)
            ops[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    }
    *b->ops = ops;
    int r = b->issue(b->call);
    *b->ops = given;
    free(ops);
    return r;
}

static int batch_3d(struct boxes *b, CUstream s)
{
    const size_t n = b->n;
    const CUDA_MEMCPY3D_BATCH_OP *ops = *b->ops;
    struct touch_list l;
    int refused = 0;
    for (size_t i = 0; ops && i < n; i++)
        if (ops[i].dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER && !eng_is_device_pointer(ops[i].dst.op.ptr.ptr))
            eng_before_host_copy(s, (const void *)(uintptr_t)ops[i].dst.op.ptr.ptr, false);
        else
            DOOR_TRY(note_rows(&ops[i]));
    if (!ops || !list_open(&l, n, &refused))
        return refused ? refused : b->issue(b->call);
    for (size_t i = 0; i < n; i++) {
        if (ops[i].dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER)
            list_add(&l, ops[i].dst.op.ptr.ptr, 0, ENG_READ | ENG_WRITE);
        if (ops[i].src.type == CU_MEMCPY_OPERAND_TYPE_POINTER)
            list_add(&l, ops[i].src.op.ptr.ptr, 0, read_mode(ops[i].srcAccessOrder));
    }
    b->touched = &l;
    return list_issue(&l, "cuMemcpy3DBatchAsync", s, issue_boxes_in_order, b);
}

static int on_copy3d_batch_old(__typeof__(&cuMemcpy3DBatchAsync) real, CUstream nul, size_t n, CUDA_MEMCPY3D_BATCH_OP *ops,
                               size_t *fail, unsigned long long flags, CUstream s)
{
    struct call_copy3d_batch_old call = {real, n, ops, fail, flags, s};
    struct boxes b = {n, &call.b, NULL, issue_copy3d_batch_old, &call};
    return batch_3d(&b, door_stream(s, nul));
}

static int on_copy3d_batch(__typeof__(&cuMemcpy3DBatchAsync_v2) real, CUstream nul, size_t n, CUDA_MEMCPY3D_BATCH_OP *ops,
                           unsigned long long flags, CUstream s)
{
    struct call_copy3d_batch call = {real, n, ops, flags, s};
    struct boxes b = {n, &call.b, NULL, issue_copy3d_batch, &call};
    return batch_3d(&b, door_stream(s, nul));
}

ISSUE3(copy3d_of_one, cuMemcpy3DWithAttributesAsync, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream)

static int on_copy3d_of_one(__typeof__(&cuMemcpy3DWithAttributesAsync) real, CUstream nul, CUDA_MEMCPY3D_BATCH_OP *op,
                            unsigned long long flags, CUstream s)
{
    struct call_copy3d_of_one call = {real, op, flags, s};
    struct boxes b = {1, &call.a, NULL, issue_copy3d_of_one, &call};
    return batch_3d(&b, door_stream(s, nul));
}

HOOKS_BATCH(DOOR_EXPORT)
