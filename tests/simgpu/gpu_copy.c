/*
 * Copies. Every form is brought to one: `depth` slices of `height` rows of `width` bytes between two places.
 *
 * When the host may go on, as the driver documents it:
 *   synchronous calls   after the copy, unless both ends are device memory: then at once;
 *   asynchronous calls  at once when the host end is pinned; pageable sources are read before the call
 *                       returns, pageable destinations are written before it returns; host to host waits.
 * An asynchronous copy from pinned memory reads it when the stream gets there, not before. The sources of a batch whose
 * attribute says so are read as early as it allows: during the call, device memory too, whatever the stream has yet to do;
 * those that are to be read in stream order are read then, pageable memory too.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simgpu/gpu_graph.h"

enum place_kind { PLACE_BAD, PLACE_DEVICE, PLACE_PINNED, PLACE_PAGEABLE };

typedef struct {
    uintptr_t at; /* first byte */
    size_t pitch, slice; /* bytes from row to row, from slice to slice */
} place;

typedef struct {
    place dst, src;
    size_t width, height, depth;
} box;

typedef struct {
    gpu_op op;
    box b;
    void *staged; /* freed afterwards */
    uint64_t wall_ns; /* before it is made */
} copy_op;

static void move(const box *b)
{
    for (size_t z = 0; z < b->depth; z++) {
        uintptr_t d = b->dst.at + z * b->dst.slice, s = b->src.at + z * b->src.slice;
        if (b->dst.pitch == b->width && b->src.pitch == b->width) {
            memmove((void *)d, (const void *)s, b->width * b->height);
            continue;
        }
        for (size_t y = 0; y < b->height; y++)
            memmove((void *)(d + y * b->dst.pitch), (const void *)(s + y * b->src.pitch), b->width);
    }
}

static void run(gpu_op *op)
{
    const copy_op *c = (const copy_op *)op;
    if (c->wall_ns)
        nanosleep(&(struct timespec){.tv_sec = (time_t)(c->wall_ns / 1000000000), .tv_nsec = (long)(c->wall_ns % 1000000000)}, NULL);
    move(&c->b);
}

static void retire(gpu_op *op)
{
    free(((copy_op *)op)->staged);
    free(op);
}

enum { ADDRESS_BITS = 47 };
#define ADDRESS_END ((unsigned __int128)1 << ADDRESS_BITS)

/* Bytes from the first to the last that a box touches; 0: more than there are addresses. */
static size_t extent(const place *p, const box *b)
{
    if (b->depth - 1 > 1ull << ADDRESS_BITS || b->height - 1 > 1ull << ADDRESS_BITS)
        return 0;
    unsigned __int128 n = (unsigned __int128)(b->depth - 1) * p->slice;
    n += (unsigned __int128)(b->height - 1) * p->pitch + b->width;
    return n < ADDRESS_END ? (size_t)n : 0;
}

/* What kind of memory a place lies in. A reservation is device memory whether it is mapped or not: what is not
   mapped faults when the copy runs. */
static enum place_kind classify(uintptr_t at, size_t bytes)
{
    gpu_range *r = gpu_range_find(at);
    if (!r)
        return gpu_range_is_device(at) ? PLACE_BAD : PLACE_PAGEABLE;
    if (bytes > r->start + r->span - at) /* neighbours may continue it: adjacent reservations */
        return r->kind == GPU_RANGE_RESERVATION ? PLACE_DEVICE
               : gpu_range_is_device(at)        ? PLACE_BAD
                                                : PLACE_PAGEABLE;
    return gpu_range_is_host(r) ? PLACE_PINNED : PLACE_DEVICE;
}

/* Reads the source now, rows packed, and makes the box read that. */
static void *stage(box *b)
{
    size_t bytes = b->width * b->height * b->depth;
    char *staged = malloc(bytes);
    if (!staged)
        return NULL;
    box in = *b;
    in.dst = (place){ (uintptr_t)staged, b->width, b->width * b->height };
    move(&in);
    b->src = in.dst;
    return staged;
}

typedef struct {
    gpu_op op;
    box *b;
    void *staged;
} stage_op;

static void run_stage(gpu_op *op)
{
    stage_op *s = (stage_op *)op;
    s->staged = stage(s->b);
}

/* The same of device memory, on the calling thread; *fault: it is not mapped. */
static void *stage_device(box *b, bool *fault)
{
    stage_op s = { .op.exec = run_stage, .b = b };
    gpu_phys_open(GPU_EVERY_DEVICE);
    *fault = gpu_fault_run(&s.op) != CUDA_SUCCESS;
    gpu_phys_close();
    return s.staged;
}

enum copy_flags {
    DST_DEVICE = 1, /* the caller says so: an address that is host memory must be pinned */
    SRC_DEVICE = 2,
    SYNC = 4,
    STAGE = 8, /* the source may be read out of stream order (batch copies say so): it is read during the call */
    LATE = 16  /* it is read when the stream gets there, pageable memory too (batch copies say so) */
};

static CUresult copy(const box *want, unsigned flags, CUstream h, bool per_thread)
{
    box b = *want;
    if (!b.width || !b.height || !b.depth)
        return CUDA_SUCCESS;
    if (b.src.pitch < b.width || b.dst.pitch < b.width)
        return CUDA_ERROR_INVALID_VALUE;
    if (b.height > SIZE_MAX / b.width || b.depth > SIZE_MAX / (b.width * b.height))
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = b.width * b.height * b.depth;
    size_t dst_extent = extent(&b.dst, &b), src_extent = extent(&b.src, &b);
    if (!dst_extent || !src_extent)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult unsafe = flags & SYNC ? gpu_capture_allows_unsafe() : CUDA_SUCCESS;
    if (unsafe)
        return unsafe;
    copy_op *op = gpu_exec_op(sizeof *op);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    enum place_kind d = classify(b.dst.at, dst_extent), s = classify(b.src.at, src_extent);
    CUstream stream = gpu_stream_resolve(h, per_thread);
    CUresult e = CUDA_SUCCESS;
    if (!stream)
        e = CUDA_ERROR_INVALID_HANDLE;
    else if (!b.dst.at || !b.src.at || d == PLACE_BAD || s == PLACE_BAD || (flags & DST_DEVICE && d == PLACE_PAGEABLE) ||
             (flags & SRC_DEVICE && s == PLACE_PAGEABLE))
        e = CUDA_ERROR_INVALID_VALUE;
    else
        e = gpu_capture_allows_work(stream);
    /* a node of a graph copies when the graph runs, from and to whatever memory it was given */
    bool recorded = !e && stream->capture;
    bool wait = flags & SYNC ? d != PLACE_DEVICE || s != PLACE_DEVICE
                             : d == PLACE_PAGEABLE || (d != PLACE_DEVICE && s != PLACE_DEVICE);
    if (recorded)
        wait = false;
    if (!e && !wait && !recorded && (flags & STAGE || (s == PLACE_PAGEABLE && !(flags & LATE)))) {
        bool fault = false;
        gpu_unlock(); /* a long copy; nothing above can change under a correct program */
        op->staged = s == PLACE_DEVICE ? stage_device(&b, &fault) : stage(&b);
        gpu_lock();
        if (fault) {
            gpu_stats.faults++;
            gpu_ctx_fail(stream->ctx, e = CUDA_ERROR_ILLEGAL_ADDRESS);
        } else if (!op->staged)
            e = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (e) {
        gpu_unlock();
        free(op);
        return e;
    }
    op->b = b;
    op->op.exec = run;
    op->op.retire = retire;
    op->op.touches_memory = true;
    op->op.node_type = CU_GRAPH_NODE_TYPE_MEMCPY;
    enum gpu_engine engine = GPU_ENGINE_COMPUTE;
    uint64_t ns = gpu_clock_device_ns(bytes);
    if (d != PLACE_DEVICE || s != PLACE_DEVICE) {
        engine = s == PLACE_DEVICE ? GPU_ENGINE_DTOH : d == PLACE_DEVICE ? GPU_ENGINE_HTOD : GPU_ENGINE_NONE;
        ns = engine == GPU_ENGINE_NONE ? 0 : gpu_clock_host_ns(bytes);
        op->wall_ns = engine == GPU_ENGINE_NONE ? 0 : gpu_clock_host_wall_ns(bytes);
    }
    uint64_t seq = gpu_exec_enqueue(stream, &op->op, engine, ns);
    if (wait) {
        uint64_t end_ns = stream->end_ns;
        e = gpu_exec_wait(stream, seq);
        gpu_clock_host_reached(end_ns);
        gpu_stats_refresh();
    }
    gpu_unlock();
    return e;
}

static CUresult linear(uintptr_t dst, uintptr_t src, size_t bytes, unsigned flags, CUstream s, bool per_thread)
{
    box b = { { dst, bytes, bytes }, { src, bytes, bytes }, bytes, 1, 1 };
    return copy(&b, flags, s, per_thread);
}

GPU_API_BOTH(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr d, const void *s, size_t n),
             linear(d, (uintptr_t)s, n, DST_DEVICE | SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpyDtoH_v2, _ptds, (void *d, CUdeviceptr s, size_t n),
             linear((uintptr_t)d, s, n, SRC_DEVICE | SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr d, CUdeviceptr s, size_t n),
             linear(d, s, n, DST_DEVICE | SRC_DEVICE | SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpy, _ptds, (CUdeviceptr d, CUdeviceptr s, size_t n), linear(d, s, n, SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpyPeer, _ptds, (CUdeviceptr d, CUcontext to, CUdeviceptr s, CUcontext from, size_t n),
             ((void)to, (void)from, linear(d, s, n, DST_DEVICE | SRC_DEVICE | SYNC, NULL, per_thread)))
GPU_API_BOTH(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr d, const void *s, size_t n, CUstream h),
             linear(d, (uintptr_t)s, n, DST_DEVICE, h, per_thread))
GPU_API_BOTH(cuMemcpyDtoHAsync_v2, _ptsz, (void *d, CUdeviceptr s, size_t n, CUstream h),
             linear((uintptr_t)d, s, n, SRC_DEVICE, h, per_thread))
GPU_API_BOTH(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream h),
             linear(d, s, n, DST_DEVICE | SRC_DEVICE, h, per_thread))
GPU_API_BOTH(cuMemcpyAsync, _ptsz, (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream h),
             linear(d, s, n, 0, h, per_thread))
GPU_API_BOTH(cuMemcpyPeerAsync, _ptsz,
             (CUdeviceptr d, CUcontext to, CUdeviceptr s, CUcontext from, size_t n, CUstream h),
             ((void)to, (void)from, linear(d, s, n, DST_DEVICE | SRC_DEVICE, h, per_thread)))

/* ---- descriptors ------------------------------------------------------------------------------------------------------ */

/* One end of a 2D or 3D descriptor. */
typedef struct {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z, lod, pitch, height;
} end_of_copy;

static CUresult resolve(const end_of_copy *e, size_t width, size_t height, size_t depth, place *out, bool *device)
{
    if (e->x > 1ull << 40 || e->y > 1ull << 40 || e->z > 1ull << 40 || width > 1ull << 40)
        return CUDA_ERROR_INVALID_VALUE;
    size_t pitch = e->pitch ? e->pitch : e->x + width, rows = e->height ? e->height : height;
    uintptr_t base;
    *device = false;
    if (e->lod)
        return CUDA_ERROR_INVALID_VALUE;
    switch (e->type) {
    case CU_MEMORYTYPE_HOST:
        base = (uintptr_t)e->host;
        break;
    case CU_MEMORYTYPE_DEVICE:
        *device = true;
        base = e->device;
        break;
    case CU_MEMORYTYPE_UNIFIED:
        base = e->device;
        break;
    case CU_MEMORYTYPE_ARRAY: {
        /* the array's own rows count, not what the descriptor says */
        gpu_lock();
        CUarray a = gpu_handle_kind(e->array) == GPU_ARRAY ? e->array : NULL;
        gpu_unlock();
        if (!a)
            return CUDA_ERROR_INVALID_HANDLE;
        if (width > a->row_bytes || e->x > a->row_bytes - width || height > a->rows || e->y > a->rows - height ||
            depth > a->slices || e->z > a->slices - depth)
            return CUDA_ERROR_INVALID_VALUE;
        base = a->va;
        pitch = a->row_bytes;
        rows = a->rows;
        break;
    }
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!base || pitch < e->x + width || rows < height)
        return CUDA_ERROR_INVALID_VALUE;
    if (pitch > 1ull << 40 || rows > 1ull << 40)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned __int128 slice = (unsigned __int128)pitch * rows;
    unsigned __int128 offset = slice * e->z + (unsigned __int128)e->y * pitch + e->x;
    if (slice >= ADDRESS_END || offset >= ADDRESS_END)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (place){ base + (size_t)offset, pitch, (size_t)slice };
    return CUDA_SUCCESS;
}

static CUresult between(const end_of_copy *dst, const end_of_copy *src, size_t width, size_t height, size_t depth,
                        unsigned flags, CUstream h, bool per_thread)
{
    box b = { .width = width, .height = height, .depth = depth };
    bool d, s;
    if (!width || !height || !depth)
        return CUDA_SUCCESS;
    CUresult e = resolve(dst, width, height, depth, &b.dst, &d);
    if (!e)
        e = resolve(src, width, height, depth, &b.src, &s);
    if (e)
        return e;
    return copy(&b, flags | (d ? DST_DEVICE : 0u) | (s ? SRC_DEVICE : 0u), h, per_thread);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, unsigned flags, CUstream h, bool per_thread)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    end_of_copy d = { c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, 0, 0,
                      c->dstPitch, 0 };
    end_of_copy s = { c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, 0, 0,
                      c->srcPitch, 0 };
    return between(&d, &s, c->WidthInBytes, c->Height, 1, flags, h, per_thread);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, unsigned flags, CUstream h, bool per_thread)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    end_of_copy d = { c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, c->dstZ,
                      c->dstLOD, c->dstPitch, c->dstHeight };
    end_of_copy s = { c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, c->srcZ,
                      c->srcLOD, c->srcPitch, c->srcHeight };
    return between(&d, &s, c->WidthInBytes, c->Height, c->Depth, flags, h, per_thread);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *c, unsigned flags, CUstream h, bool per_thread)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    end_of_copy d = { c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, c->dstZ,
                      c->dstLOD, c->dstPitch, c->dstHeight };
    end_of_copy s = { c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, c->srcZ,
                      c->srcLOD, c->srcPitch, c->srcHeight };
    return between(&d, &s, c->WidthInBytes, c->Height, c->Depth, flags, h, per_thread);
}

GPU_API_BOTH(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *c), copy_2d(c, SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *c), copy_2d(c, SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *c, CUstream h), copy_2d(c, 0, h, per_thread))
GPU_API_BOTH(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *c), copy_3d(c, SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *c, CUstream h), copy_3d(c, 0, h, per_thread))
GPU_API_BOTH(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *c), copy_3d_peer(c, SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *c, CUstream h), copy_3d_peer(c, 0, h, per_thread))

/* ---- one-dimensional arrays -------------------------------------------------------------------------------------------- */

static CUresult array_end(CUarray h, size_t offset, size_t bytes, uintptr_t *at)
{
    gpu_lock();
    CUarray a = gpu_handle_kind(h) == GPU_ARRAY ? h : NULL;
    gpu_unlock();
    if (!a)
        return CUDA_ERROR_INVALID_HANDLE;
    size_t all = a->row_bytes * a->rows * a->slices;
    if (offset > all || bytes > all - offset)
        return CUDA_ERROR_INVALID_VALUE;
    *at = a->va + offset;
    return CUDA_SUCCESS;
}

static CUresult to_array(CUarray a, size_t offset, uintptr_t src, size_t n, unsigned flags, CUstream h, bool per_thread)
{
    uintptr_t at;
    CUresult e = array_end(a, offset, n, &at);
    return e ? e : linear(at, src, n, flags | DST_DEVICE, h, per_thread);
}

static CUresult from_array(uintptr_t dst, CUarray a, size_t offset, size_t n, unsigned flags, CUstream h,
                           bool per_thread)
{
    uintptr_t at;
    CUresult e = array_end(a, offset, n, &at);
    return e ? e : linear(dst, at, n, flags | SRC_DEVICE, h, per_thread);
}

static CUresult array_to_array(CUarray a, size_t to, CUarray b, size_t from, size_t n, bool per_thread)
{
    uintptr_t src;
    CUresult e = array_end(b, from, n, &src);
    return e ? e : to_array(a, to, src, n, SYNC | SRC_DEVICE, NULL, per_thread);
}

GPU_API_BOTH(cuMemcpyDtoA_v2, _ptds, (CUarray a, size_t offset, CUdeviceptr s, size_t n),
             to_array(a, offset, s, n, SYNC | SRC_DEVICE, NULL, per_thread))
GPU_API_BOTH(cuMemcpyHtoA_v2, _ptds, (CUarray a, size_t offset, const void *s, size_t n),
             to_array(a, offset, (uintptr_t)s, n, SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpyHtoAAsync_v2, _ptsz, (CUarray a, size_t offset, const void *s, size_t n, CUstream h),
             to_array(a, offset, (uintptr_t)s, n, 0, h, per_thread))
GPU_API_BOTH(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr d, CUarray a, size_t offset, size_t n),
             from_array(d, a, offset, n, SYNC | DST_DEVICE, NULL, per_thread))
GPU_API_BOTH(cuMemcpyAtoH_v2, _ptds, (void *d, CUarray a, size_t offset, size_t n),
             from_array((uintptr_t)d, a, offset, n, SYNC, NULL, per_thread))
GPU_API_BOTH(cuMemcpyAtoHAsync_v2, _ptsz, (void *d, CUarray a, size_t offset, size_t n, CUstream h),
             from_array((uintptr_t)d, a, offset, n, 0, h, per_thread))
GPU_API_BOTH(cuMemcpyAtoA_v2, _ptds, (CUarray a, size_t to, CUarray b, size_t from, size_t n),
             array_to_array(a, to, b, from, n, per_thread))

/* ---- batches ---------------------------------------------------------------------------------------------------------------- */

static bool is_order(CUmemcpySrcAccessOrder o) { return o >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && o <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY; }

/* Each entry applies from its own copy on: the first from the first, each later one from a later copy. */
static bool are_attributes(const CUmemcpyAttributes *attrs, const size_t *first, size_t n_attrs, size_t n)
{
    bool ok = first[0] == 0;
    for (size_t a = 0; ok && a < n_attrs; a++)
        ok = is_order(attrs[a].srcAccessOrder) && first[a] < n && (!a || first[a] > first[a - 1]);
    return ok;
}

static CUresult batch(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t n, CUmemcpyAttributes *attrs,
                      size_t *first, size_t n_attrs, size_t *failed, CUstream h, bool per_thread)
{
    if (failed)
        *failed = SIZE_MAX;
    if (!dsts || !srcs || !sizes || !n || !attrs || !first || !n_attrs || n_attrs > n || !are_attributes(attrs, first, n_attrs, n) ||
        ((!h || h == CU_STREAM_LEGACY) && !per_thread))
        return CUDA_ERROR_INVALID_VALUE;
    size_t a = 0;
    for (size_t i = 0; i < n; i++) {
        while (a + 1 < n_attrs && first[a + 1] <= i)
            a++;
        unsigned flags = attrs[a].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ? LATE : STAGE;
        CUresult e = linear(dsts[i], srcs[i], sizes[i], flags, h, per_thread);
        if (e) {
            if (failed)
                *failed = i;
            return e;
        }
    }
    return CUDA_SUCCESS;
}

GPU_API_BOTH(cuMemcpyBatchAsync, _ptsz,
             (CUdeviceptr *d, CUdeviceptr *s, size_t *sizes, size_t n, CUmemcpyAttributes *attrs, size_t *first,
              size_t n_attrs, size_t *failed, CUstream h),
             batch(d, s, sizes, n, attrs, first, n_attrs, failed, h, per_thread))
GPU_API_BOTH(cuMemcpyBatchAsync_v2, _ptsz,
             (CUdeviceptr *d, CUdeviceptr *s, size_t *sizes, size_t n, CUmemcpyAttributes *attrs, size_t *first,
              size_t n_attrs, CUstream h),
             batch(d, s, sizes, n, attrs, first, n_attrs, NULL, h, per_thread))

static CUresult batch_of_one(CUdeviceptr d, CUdeviceptr s, size_t n, CUmemcpyAttributes *attr, CUstream h, bool per_thread)
{
    size_t first = 0;
    return batch(&d, &s, &n, 1, attr, &first, 1, NULL, h, per_thread);
}

GPU_API_BOTH(cuMemcpyWithAttributesAsync, _ptsz,
             (CUdeviceptr d, CUdeviceptr s, size_t n, CUmemcpyAttributes *attr, CUstream h),
             batch_of_one(d, s, n, attr, h, per_thread))

static CUresult operand(const CUmemcpy3DOperand *o, size_t element_bytes, end_of_copy *out)
{
    memset(out, 0, sizeof *out);
    if (o->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
        out->type = CU_MEMORYTYPE_UNIFIED;
        out->device = o->op.ptr.ptr;
        out->pitch = o->op.ptr.rowLength * element_bytes; /* 0: rows follow one another */
        out->height = o->op.ptr.layerHeight;
    } else if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        out->type = CU_MEMORYTYPE_ARRAY;
        out->array = o->op.array.array;
        out->x = o->op.array.offset.x * element_bytes;
        out->y = o->op.array.offset.y;
        out->z = o->op.array.offset.z;
    } else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static size_t array_element_bytes(const CUmemcpy3DOperand *o)
{
    if (o->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
        return 0;
    gpu_lock();
    size_t n = gpu_handle_kind(o->op.array.array) == GPU_ARRAY ? o->op.array.array->element_bytes : 0;
    gpu_unlock();
    return n;
}

/* Extents count elements when an array takes part, else bytes. */
static CUresult batch_3d(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed, unsigned long long flags, CUstream h,
                         bool per_thread)
{
    if (failed)
        *failed = SIZE_MAX;
    if (!n || !ops || flags || ((!h || h == CU_STREAM_LEGACY) && !per_thread))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        const CUDA_MEMCPY3D_BATCH_OP *o = &ops[i];
        size_t element = array_element_bytes(&o->src);
        element = element ? element : array_element_bytes(&o->dst);
        element = element ? element : 1;
        unsigned how = o->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ? LATE : STAGE;
        end_of_copy d, s;
        CUresult e = is_order(o->srcAccessOrder) ? operand(&o->dst, element, &d) : CUDA_ERROR_INVALID_VALUE;
        if (!e)
            e = operand(&o->src, element, &s);
        if (!e)
            e = between(&d, &s, o->extent.width * element, o->extent.height, o->extent.depth, how, h, per_thread);
        if (e) {
            if (failed)
                *failed = i;
            return e;
        }
    }
    return CUDA_SUCCESS;
}

GPU_API_BOTH(cuMemcpy3DBatchAsync, _ptsz,
             (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed, unsigned long long flags, CUstream h),
             batch_3d(n, ops, failed, flags, h, per_thread))
GPU_API_BOTH(cuMemcpy3DBatchAsync_v2, _ptsz,
             (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream h),
             batch_3d(n, ops, NULL, flags, h, per_thread))
GPU_API_BOTH(cuMemcpy3DWithAttributesAsync, _ptsz, (CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream h),
             batch_3d(1, op, NULL, flags, h, per_thread))
