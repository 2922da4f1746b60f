/*
 * Stream-ordered allocation.
 *
 * An allocation's bytes are counted from the call that allocates to the call that frees, in the order of the
 * calls: that order can be met on hardware, by the stream dependencies the allocator is allowed to insert, and
 * it makes the peak the same in every run. The address stays valid until the stream reaches the free.
 *
 * A freed allocation keeps its address and mapping for a while; the next one of the same size gets it, at once
 * in the same stream, else after the free was reached. Under SIMGPU_CHAOS and SIMGPU_GUARD nothing is reused:
 * memory appears when the stream reaches the allocation and faults as soon as it has reached the free.
 *
 * What a pool holds is physical memory, used or not: what is freed stays with it until the host synchronises
 * (all beyond the release threshold goes back then), somebody trims it, or somebody else needs the memory. Of what
 * is freed in a stream that has not come to the free nothing goes back: the pool alone may give it out again.
 *
 * Memory of a pool that others may open, of the host's and of managed ones is reused by nobody. The host may touch that of the last two at any time while it is
 * allocated: it is there from the call on. That of the host counts as nobody's. Kernels of a device that no such pool was opened to (cuMemPoolSetAccess)
 * are not caught. An imported pool gives out nothing but what its owner has shown.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simgpu/gpu_graph.h"

enum { HUGE_ALIGN = 2 << 20 };

struct CUmemPoolHandle_st {
    struct CUmemPoolHandle_st *next;
    CUmemPoolProps props;
    uint64_t threshold, used, used_high;
    uint64_t pending;         /* freed in streams that have not come to it */
    uint64_t held, held_high; /* of the device's memory; >= used + pending */
    int reuse_event, reuse_opportunistic, reuse_internal;
    uint64_t n_live; /* allocations, and frees that are pending */
    bool is_default, destroyed;
    bool peers; /* kernels of other devices may use its memory */
    unsigned opened; /* of the host's: to these devices, bits */
    int shown;       /* a file that stands for it, with other processes too; 0: it is for this process alone */
    bool imported;
};

static struct CUmemPoolHandle_st default_pools[GPU_MAX_DEVICES];
static CUmemoryPool pools, current[GPU_MAX_DEVICES];

/* Every device has one from the start; the first question makes them all. */
static CUmemoryPool the_default(CUdevice dev)
{
    for (CUdevice i = 0; i < gpu_cfg.n_devices && !default_pools[i].is_default; i++) {
        CUmemoryPool p = &default_pools[i];
        p->is_default = true;
        p->reuse_event = p->reuse_opportunistic = p->reuse_internal = 1;
        p->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        p->props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        p->props.location.id = i;
        p->next = pools;
        pools = current[i] = p;
        gpu_handle_add(p, GPU_POOL);
    }
    return &default_pools[dev];
}

static CUdevice device_of(CUmemoryPool p)
{
    return p->props.location.id;
}

static bool of_host(CUmemoryPool p)
{
    return p->props.location.type != CU_MEM_LOCATION_TYPE_DEVICE && p->props.allocType != CU_MEM_ALLOCATION_TYPE_MANAGED;
}

/* Pinned memory of a device, in a pool that has not been exported. */
static bool plain(CUmemoryPool p)
{
    return p->props.allocType == CU_MEM_ALLOCATION_TYPE_PINNED && p->props.location.type == CU_MEM_LOCATION_TYPE_DEVICE && !p->shown;
}

static bool live(CUmemoryPool p)
{
    the_default(0);
    return gpu_handle_kind(p) == GPU_POOL;
}

/* ---- bookkeeping ---------------------------------------------------------------------------------------------------- */

/* What is reserved is whole granules. */
static uint64_t reserved(uint64_t held)
{
    return gpu_round_up(held, gpu_cfg.granularity_bytes);
}

/* `bytes` more are used: the device's memory where the pool does not hold so much already. */
static CUresult take(CUmemoryPool p, uint64_t bytes)
{
    p->used += bytes; /* first: so the pool itself does not give way */
    CUresult e = p->used > p->held && !of_host(p) ? gpu_phys_charge(device_of(p), p->used - p->held) : CUDA_SUCCESS;
    if (e) {
        p->used -= bytes;
        return e;
    }
    p->held = p->used > p->held ? p->used : p->held;
    p->used_high = p->used > p->used_high ? p->used : p->used_high;
    p->held_high = p->held > p->held_high ? p->held : p->held_high;
    return CUDA_SUCCESS;
}

static void shrink(CUmemoryPool p, uint64_t keep)
{
    uint64_t least = p->used + p->pending;
    keep = keep > least ? keep : least;
    if (p->held <= keep)
        return;
    if (!of_host(p))
        gpu_phys_uncharge(device_of(p), p->held - keep);
    p->held = keep;
}

void gpu_pool_host_synced(void)
{
    for (CUmemoryPool p = pools; p; p = p->next)
        shrink(p, p->threshold);
}

void gpu_pool_give_way(CUdevice dev, uint64_t bytes)
{
    for (CUmemoryPool p = pools; p && bytes; p = p->next) {
        if (device_of(p) != dev || of_host(p))
            continue;
        uint64_t before = p->held;
        shrink(p, before > bytes ? before - bytes : 0);
        bytes -= before - p->held;
    }
}

/* One allocation, or one pending free, less. */
static void let_go(CUmemoryPool p)
{
    p->n_live--;
    if (!p->destroyed)
        return;
    shrink(p, 0);
    if (p->n_live)
        return;
    for (CUmemoryPool *l = &pools; *l; l = &(*l)->next)
        if (*l == p) {
            *l = p->next;
            break;
        }
    if (p->shown)
        close(p->shown);
    free(p);
}

static void uncount(gpu_range *r)
{
    CUmemoryPool p = r->pool;
    p->used -= r->charged_bytes;
    r->pool = NULL;
    r->charged_bytes = 0;
    let_go(p);
}

/* ---- ranges that were freed and may serve again ------------------------------------------------------------------------ */

static gpu_range *oldest, *newest;
static gpu_range *by_span[256]; /* lists of ranges whose size falls there, through same_next */
static uint64_t kept_bytes;

static gpu_range **list_of(uint64_t span)
{
    return &by_span[(span >> 12) * 0x9E3779B97F4A7C15ull >> 56];
}

static bool keeps(void)
{
    return !gpu_cfg.chaos && !gpu_cfg.guard;
}

static void keep(gpu_range *r)
{
    r->older = newest;
    r->newer = NULL;
    *(newest ? &newest->newer : &oldest) = r;
    newest = r;
    gpu_range **list = list_of(r->span);
    r->same_prev = NULL;
    r->same_next = *list;
    if (*list)
        (*list)->same_prev = r;
    *list = r;
    kept_bytes += r->span;
}

static void unkeep(gpu_range *r)
{
    *(r->older ? &r->older->newer : &oldest) = r->newer;
    *(r->newer ? &r->newer->older : &newest) = r->older;
    *(r->same_prev ? &r->same_prev->same_next : list_of(r->span)) = r->same_next;
    if (r->same_next)
        r->same_next->same_prev = r->same_prev;
    kept_bytes -= r->span;
}

/* Nobody may use the range any more: its addresses fault from now on. */
static void discard(gpu_range *r)
{
    gpu_range_remove(r);
    gpu_phys_unmap(r->start, r->span);
    gpu_phys_unref(r->phys);
    if (r->order)
        gpu_stream_unref(r->order);
    free(r);
}

static bool plain_range(const gpu_range *r)
{
    return r->phys->fd < 0 && !r->phys->on_host;
}

static gpu_range *take_kept(CUdevice dev, uint64_t span, CUstream s)
{
    int steps = 0;
    for (gpu_range *r = *list_of(span); r && steps < 256; r = r->same_next, steps++)
        if (r->span == span && r->device == dev && plain_range(r) && (r->free_reached || r->order == s)) {
            unkeep(r);
            return r;
        }
    return NULL;
}

static void forget_old(void)
{
    for (gpu_range *r = oldest, *newer; r && kept_bytes > gpu_cfg.mem_bytes / 4; r = newer) {
        newer = r->newer;
        if (r->free_reached) {
            unkeep(r);
            discard(r);
        }
    }
}

/* ---- allocating ------------------------------------------------------------------------------------------------------------ */

typedef struct {
    gpu_op op;
    unsigned long long id; /* a range that was reused meanwhile has another one */
    CUdeviceptr p;
    CUmemoryPool pool; /* of a free: where `bytes` are pending */
    uint64_t bytes;
} pool_op;

static void appear(gpu_op *op)
{
    pool_op *a = (pool_op *)op;
    gpu_range *r = gpu_range_find(a->p);
    if (r && r->start == a->p && r->id == a->id) {
        CUresult e = gpu_phys_map(r->start, r->span, r->phys, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        if (e)
            gpu_ctx_fail(r->ctx, e);
        r->appeared = true;
    }
    free(op);
}

static void note_order(gpu_range *r, CUstream s)
{
    gpu_stream_ref(s);
    if (r->order)
        gpu_stream_unref(r->order);
    r->order = s;
    r->order_seq = s->enqueued;
}

/* Its memory is there from the call on, not when the stream comes to that. */
static bool at_once(CUmemoryPool p)
{
    return keeps() || of_host(p) || p->props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
}

static CUresult fresh(CUmemoryPool p, uint64_t bytes, uint64_t span, gpu_range **out)
{
    gpu_range *r = calloc(1, sizeof *r);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->span = span;
    r->device = device_of(p);
    CUresult e = gpu_phys_take(r->device, span, 0, p->shown != 0, &r->phys);
    if (!e) {
        r->phys->managed = p->props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
        r->phys->on_host = r->phys->managed || of_host(p);
        r->start = gpu_range_address(span, bytes >= HUGE_ALIGN ? HUGE_ALIGN : (uint64_t)sysconf(_SC_PAGESIZE), 0);
        e = !r->start ? CUDA_ERROR_OUT_OF_MEMORY
            : at_once(p) ? gpu_phys_map(r->start, span, r->phys, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                      : CUDA_SUCCESS;
        if (e)
            gpu_phys_unref(r->phys);
    }
    if (e)
        free(r);
    else {
        gpu_range_insert(r);
        *out = r;
    }
    return e;
}

/* To the devices that the pool is open to. */
static void open_range(gpu_range *r)
{
    gpu_phys_set_peers(r->phys, r->pool->peers);
    if (r->appeared)
        gpu_phys_reopen(r->start, r->span, r->phys);
}

static CUresult alloc(CUdeviceptr *out, size_t bytes, CUmemoryPool p, CUstream h, bool per_thread)
{
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    pool_op *op = gpu_exec_op(sizeof *op);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUresult e = CUDA_SUCCESS;
    gpu_range *r = NULL;
    CUstream s = gpu_stream_resolve(h, per_thread);
    if (!p && s) {
        the_default(0);
        p = current[s->ctx->device];
    }
    uint64_t charge = gpu_charged(bytes), span = gpu_round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    if (!s)
        e = CUDA_ERROR_INVALID_HANDLE;
    else if (!live(p) || p->imported)
        e = CUDA_ERROR_INVALID_VALUE;
    else if ((e = gpu_capture_allows_work(s)) || s->capture) {
        e = e ? e : gpu_capture_alloc(s, bytes, out);
        gpu_unlock();
        free(op);
        return e;
    } else if (bytes > gpu_cfg.mem_bytes || (p->props.maxSize && p->used + charge > p->props.maxSize))
        e = CUDA_ERROR_OUT_OF_MEMORY;
    else
        e = take(p, charge);
    if (!e) {
        r = keeps() && plain(p) ? take_kept(device_of(p), span, s) : NULL;
        if (!r && (e = fresh(p, bytes, span, &r)))
            p->used -= charge;
    }
    if (!e) {
        r->kind = GPU_RANGE_POOL;
        r->bytes = bytes;
        r->ctx = gpu_ctx_owner(s->ctx);
        r->device = device_of(p);
        r->id = gpu_range_new_id();
        r->pool = p;
        r->charged_bytes = charge;
        r->free_reached = false;
        r->appeared = at_once(p);
        open_range(r);
        r->sync_memops = 0;
        p->n_live++;
        op->p = r->start;
        op->id = r->id;
        if (!r->appeared)
            op->op.retire = appear;
        gpu_exec_enqueue(s, &op->op, GPU_ENGINE_NONE, 0);
        op = NULL;
        note_order(r, s);
        *out = r->start;
    }
    gpu_unlock();
    free(op);
    return e;
}

/* ---- freeing ---------------------------------------------------------------------------------------------------------------- */

/* The stream has come to the free. */
static void reached(gpu_op *op)
{
    pool_op *f = (pool_op *)op;
    gpu_range *r = gpu_range_find(f->p);
    if (r && r->start == f->p && r->kind == GPU_RANGE_POOL_FREE && r->id == f->id) {
        r->free_reached = true;
        if (!keeps() || !plain_range(r))
            discard(r);
        else
            forget_old();
    }
    f->pool->pending -= f->bytes;
    let_go(f->pool);
    free(op);
}

/* cuMemFreeAsync of memory that is not stream-ordered. */
static void reached_linear(gpu_op *op)
{
    pool_op *f = (pool_op *)op;
    gpu_range *r = gpu_range_find(f->p);
    if (r && r->id == f->id)
        gpu_alloc_release(r);
    free(op);
}

static CUresult free_async(CUdeviceptr p, CUstream h, bool per_thread)
{
    if (!p)
        return CUDA_SUCCESS;
    pool_op *op = gpu_exec_op(sizeof *op);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUresult e = CUDA_SUCCESS;
    CUstream s = gpu_stream_resolve(h, per_thread);
    gpu_range *r = gpu_range_find(p);
    if (!s)
        e = CUDA_ERROR_INVALID_HANDLE;
    else if ((e = gpu_capture_allows_work(s)))
        ;
    else if (s->capture)
        e = gpu_capture_free(s, p);
    else if (r && r->start == p && r->kind == GPU_RANGE_GRAPH)
        e = gpu_graph_free_async(p, s);
    else if (!r || r->start != p || (r->kind != GPU_RANGE_POOL && r->kind != GPU_RANGE_LINEAR && (r->kind != GPU_RANGE_IMPORTED || r->import != GPU_IMPORT_POOL)))
        e = CUDA_ERROR_INVALID_VALUE;
    else {
        op->p = p;
        op->id = r->id;
        op->op.retire = reached_linear;
        if (r->kind == GPU_RANGE_POOL) {
            op->op.retire = reached;
            r->kind = GPU_RANGE_POOL_FREE;
            op->pool = r->pool;
            op->bytes = r->charged_bytes;
            op->pool->pending += op->bytes;
            op->pool->n_live++;
            uncount(r);
        }
        gpu_exec_enqueue(s, &op->op, GPU_ENGINE_NONE, 0);
        op = NULL;
        if (r->kind == GPU_RANGE_POOL_FREE) {
            note_order(r, s);
            if (keeps() && plain_range(r))
                keep(r);
        }
    }
    gpu_unlock();
    free(op);
    return e;
}

CUresult gpu_pool_free_now(gpu_range *r)
{
    CUdeviceptr p = r->start;
    unsigned long long id = r->id;
    CUresult e = gpu_exec_wait(r->order, r->order_seq); /* it cannot go before it has come */
    r = gpu_range_find(p);
    if (e || !r || r->id != id || r->kind != GPU_RANGE_POOL)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    uncount(r);
    gpu_pool_host_synced();
    r->kind = GPU_RANGE_POOL_FREE;
    r->free_reached = true;
    if (keeps() && plain_range(r)) {
        keep(r);
        forget_old();
    } else
        discard(r);
    return CUDA_SUCCESS;
}

void gpu_pool_free_ctx(CUcontext ctx)
{
    for (gpu_range *r = gpu_range_next(0), *next; r; r = next) {
        next = gpu_range_next(r->start + 1);
        if (r->ctx != ctx || (r->kind != GPU_RANGE_POOL && r->kind != GPU_RANGE_POOL_FREE))
            continue;
        if (r->kind == GPU_RANGE_POOL)
            uncount(r);
        else if (keeps() && plain_range(r))
            unkeep(r);
        discard(r);
    }
    for (CUmemoryPool p = pools; p; p = p->next)
        shrink(p, 0);
}

GPU_API_BOTH(cuMemAllocAsync, _ptsz, (CUdeviceptr *p, size_t bytes, CUstream s), alloc(p, bytes, NULL, s, per_thread))
GPU_API_BOTH(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr *p, size_t bytes, CUmemoryPool pool, CUstream s),
             pool ? alloc(p, bytes, pool, s, per_thread) : CUDA_ERROR_INVALID_VALUE)
GPU_API_BOTH(cuMemFreeAsync, _ptsz, (CUdeviceptr p, CUstream s), free_async(p, s, per_thread))

/* ---- pools ------------------------------------------------------------------------------------------------------------------ */

static CUresult check_props(const CUmemPoolProps *props)
{
    if (!props || (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED && props->allocType != CU_MEM_ALLOCATION_TYPE_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    const CUmemLocation at = props->location;
    const bool managed = props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED, host = at.type == CU_MEM_LOCATION_TYPE_HOST || at.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (at.type != CU_MEM_LOCATION_TYPE_DEVICE && !host && !(managed && at.type == CU_MEM_LOCATION_TYPE_NONE))
        return CUDA_ERROR_INVALID_VALUE;
    if (at.type == CU_MEM_LOCATION_TYPE_DEVICE && !gpu_device_known(at.id))
        return CUDA_ERROR_INVALID_DEVICE;
    if (at.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && at.id) /* a machine without NUMA has the node 0 alone */
        return CUDA_ERROR_INVALID_VALUE;
    if (props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    return props->handleTypes && (host || managed) ? at.type == CU_MEM_LOCATION_TYPE_HOST || managed ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* A file that is nothing but itself: two descriptors of it are of one pool. */
static int stands_for_pool(void)
{
    return memfd_create("simgpu pool", MFD_CLOEXEC);
}

static CUresult create(CUmemoryPool *out, const CUmemPoolProps *props)
{
    CUresult refused = check_props(props);
    if (!out || refused)
        return out ? refused : CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool p = calloc(1, sizeof *p);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->props = *props;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        p->props.location.id = 0; /* device_of(): whose addresses it has */
    if (props->handleTypes && (p->shown = stands_for_pool()) <= 0) {
        free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->reuse_event = p->reuse_opportunistic = p->reuse_internal = 1;
    gpu_lock();
    the_default(0);
    CUresult e = gpu_handle_add(p, GPU_POOL);
    if (!e) {
        p->next = pools;
        pools = p;
        *out = p;
    }
    gpu_unlock();
    if (e)
        free(p);
    return e;
}

static CUresult destroy(CUmemoryPool p)
{
    gpu_lock();
    CUresult e = live(p) && !p->is_default ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!e) {
        gpu_handle_drop(p);
        if (current[device_of(p)] == p)
            current[device_of(p)] = &default_pools[device_of(p)];
        p->destroyed = true;
        p->threshold = 0;
        p->n_live++;
        let_go(p);
    }
    gpu_unlock();
    return e;
}

static CUresult trim(CUmemoryPool p, size_t keep_bytes)
{
    gpu_lock();
    bool ok = live(p);
    if (ok)
        shrink(p, keep_bytes);
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int *reuse_flag(CUmemoryPool p, CUmemPool_attribute a)
{
    switch (a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return &p->reuse_event;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return &p->reuse_opportunistic;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return &p->reuse_internal;
    default: return NULL;
    }
}

static CUresult get_attribute(CUmemoryPool p, CUmemPool_attribute a, void *out)
{
    gpu_lock();
    CUresult e = live(p) && out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!e) {
        int *flag = reuse_flag(p, a);
        if (flag)
            *(int *)out = *flag;
        else if (a == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
            *(cuuint64_t *)out = p->threshold;
        else if (a == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
            *(cuuint64_t *)out = reserved(p->held);
        else if (a == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
            *(cuuint64_t *)out = reserved(p->held_high);
        else if (a == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
            *(cuuint64_t *)out = p->used;
        else if (a == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            *(cuuint64_t *)out = p->used_high;
        else
            e = CUDA_ERROR_INVALID_VALUE;
    }
    gpu_unlock();
    return e;
}

static CUresult set_attribute(CUmemoryPool p, CUmemPool_attribute a, const void *in)
{
    gpu_lock();
    CUresult e = live(p) && in ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!e) {
        int *flag = reuse_flag(p, a);
        if (flag)
            *flag = *(const int *)in != 0;
        else if (a == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
            p->threshold = *(const cuuint64_t *)in;
        else if (a == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && *(const cuuint64_t *)in == 0)
            p->held_high = p->held;
        else if (a == CU_MEMPOOL_ATTR_USED_MEM_HIGH && *(const cuuint64_t *)in == 0)
            p->used_high = p->used;
        else
            e = CUDA_ERROR_INVALID_VALUE;
    }
    gpu_unlock();
    return e;
}

static void set_peers(CUmemoryPool p, bool on)
{
    p->peers = on;
    for (gpu_range *r = gpu_range_next(0); r; r = gpu_range_next(r->start + 1))
        if (r->kind == GPU_RANGE_POOL && r->pool == p)
            open_range(r);
}

/* A pool of the host, or a managed one, whose memory lies where any device could reach it. */
static CUresult open_to(CUmemoryPool p, const CUmemAccessDesc *desc)
{
    if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return of_host(p) && desc->location.type == p->props.location.type && desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(desc->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    const unsigned bit = 1u << desc->location.id;
    p->opened = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? p->opened & ~bit : p->opened | bit;
    return CUDA_SUCCESS;
}

static CUresult set_access(CUmemoryPool p, const CUmemAccessDesc *desc, size_t n)
{
    gpu_lock();
    CUresult e = live(p) && desc && n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !e && i < n; i++) {
        if (!plain(p) && !p->shown) {
            e = open_to(p, &desc[i]);
            continue;
        }
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            e = CUDA_ERROR_INVALID_VALUE;
        else if (!gpu_device_known(desc[i].location.id))
            e = CUDA_ERROR_INVALID_DEVICE;
        else if (desc[i].location.id != device_of(p)) {
            const bool opens = desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
            e = opens && !gpu_cfg.peers ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
            if (!e)
                set_peers(p, opens); /* by device: not looked at where there are more than two */
        } else if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            e = CUDA_ERROR_INVALID_VALUE; /* a pool stays accessible from the device it lives on */
    }
    gpu_unlock();
    return e;
}

static CUresult get_access(CUmemAccess_flags *flags, CUmemoryPool p, const CUmemLocation *at)
{
    gpu_lock();
    CUresult e = live(p) && flags && at && at->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS
                                                                                    : CUDA_ERROR_INVALID_VALUE;
    if (!e && !gpu_device_known(at->id))
        e = CUDA_ERROR_INVALID_DEVICE;
    if (!e)
        *flags = (!of_host(p) && (at->id == device_of(p) || p->peers)) || p->opened >> at->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                                                  : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    gpu_unlock();
    return e;
}

static CUresult get_pool(CUmemoryPool *out, CUdevice dev, bool the_current)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    gpu_lock();
    CUmemoryPool d = the_default(dev);
    *out = the_current ? current[dev] : d;
    gpu_unlock();
    return CUDA_SUCCESS;
}

static CUresult set_pool(CUdevice dev, CUmemoryPool p)
{
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    gpu_lock();
    bool ok = live(p) && device_of(p) == dev && !p->imported && !of_host(p);
    if (ok)
        current[dev] = p;
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_location(const CUmemLocation *at, CUmemAllocationType type)
{
    if (!at || at->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return type == CU_MEM_ALLOCATION_TYPE_PINNED ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult get_pool_at(CUmemoryPool *out, const CUmemLocation *at, CUmemAllocationType type, bool the_current)
{
    CUresult e = check_location(at, type);
    return e ? e : get_pool(out, at->id, the_current);
}

static CUresult set_pool_at(const CUmemLocation *at, CUmemAllocationType type, CUmemoryPool p)
{
    CUresult e = check_location(at, type);
    return e ? e : set_pool(at->id, p);
}

GPU_API(cuMemPoolCreate, (CUmemoryPool *p, const CUmemPoolProps *props), GPU_NEED_OK, create(p, props))
GPU_API(cuMemPoolDestroy, (CUmemoryPool p), GPU_NEED_OK, destroy(p))
GPU_API(cuMemPoolTrimTo, (CUmemoryPool p, size_t keep_bytes), GPU_NEED_OK, trim(p, keep_bytes))
GPU_API(cuMemPoolGetAttribute, (CUmemoryPool p, CUmemPool_attribute a, void *value), GPU_NEED_OK,
        get_attribute(p, a, value))
GPU_API(cuMemPoolSetAttribute, (CUmemoryPool p, CUmemPool_attribute a, void *value), GPU_NEED_OK,
        set_attribute(p, a, value))
GPU_API(cuMemPoolSetAccess, (CUmemoryPool p, const CUmemAccessDesc *desc, size_t n), GPU_NEED_OK,
        set_access(p, desc, n))
GPU_API(cuMemPoolGetAccess, (CUmemAccess_flags *flags, CUmemoryPool p, CUmemLocation *at), GPU_NEED_OK,
        get_access(flags, p, at))
GPU_API(cuDeviceGetDefaultMemPool, (CUmemoryPool *p, CUdevice dev), GPU_NEED_OK, get_pool(p, dev, false))
GPU_API(cuDeviceGetMemPool, (CUmemoryPool *p, CUdevice dev), GPU_NEED_OK, get_pool(p, dev, true))
GPU_API(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool p), GPU_NEED_OK, set_pool(dev, p))
GPU_API(cuMemGetDefaultMemPool, (CUmemoryPool *p, CUmemLocation *at, CUmemAllocationType type), GPU_NEED_OK,
        get_pool_at(p, at, type, false))
GPU_API(cuMemGetMemPool, (CUmemoryPool *p, CUmemLocation *at, CUmemAllocationType type), GPU_NEED_OK,
        get_pool_at(p, at, type, true))
GPU_API(cuMemSetMemPool, (CUmemLocation *at, CUmemAllocationType type, CUmemoryPool p), GPU_NEED_OK,
        set_pool_at(at, type, p))

/* ---- shown to other processes ------------------------------------------------------------------------------------------------- */

static CUresult export_pool(void *out, CUmemoryPool p, CUmemAllocationHandleType type, unsigned long long flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    const bool ok = live(p) && p->shown && !p->imported && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    const int fd = ok ? fcntl(p->shown, F_DUPFD_CLOEXEC, 0) : -1;
    gpu_unlock();
    if (fd >= 0)
        *(int *)out = fd;
    return fd >= 0 ? CUDA_SUCCESS : ok ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

static CUresult import_pool(CUmemoryPool *out, void *os_handle, CUmemAllocationHandleType type, unsigned long long flags)
{
    struct stat st;
    if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat((int)(uintptr_t)os_handle, &st))
        return CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool p = calloc(1, sizeof *p);
    const int fd = p ? fcntl((int)(uintptr_t)os_handle, F_DUPFD_CLOEXEC, 0) : -1;
    gpu_lock();
    the_default(0);
    CUresult e = fd >= 0 ? gpu_handle_add(p, GPU_POOL) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!e) {
        *p = (struct CUmemPoolHandle_st){ .next = pools, .shown = fd, .imported = true };
        p->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        p->props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        p->props.location = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu_ctx_current() ? gpu_ctx_current()->device : 0 };
        pools = *out = p;
    }
    gpu_unlock();
    if (e) {
        if (fd >= 0)
            close(fd);
        free(p);
    }
    return e;
}

/* What says where an allocation lies, and of which pool it is. */
struct pointer_shown {
    struct gpu_shown at;
    dev_t dev;
    ino_t ino;
};

static CUresult export_pointer(CUmemPoolPtrExportData *out, CUdeviceptr at)
{
    struct stat st;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    const gpu_range *r = gpu_range_find(at);
    const bool ok = r && r->kind == GPU_RANGE_POOL && r->start == at && r->pool->shown && !fstat(r->pool->shown, &st);
    if (ok) {
        const struct pointer_shown shown = { gpu_range_shown(r), st.st_dev, st.st_ino };
        _Static_assert(sizeof shown <= sizeof *out, "it fits");
        memset(out, 0, sizeof *out);
        memcpy(out, &shown, sizeof shown);
    }
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult import_pointer(CUdeviceptr *out, CUmemoryPool p, const CUmemPoolPtrExportData *data)
{
    struct pointer_shown shown;
    struct stat st;
    if (!out || !data)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&shown, data, sizeof shown);
    gpu_lock();
    const bool ok = live(p) && p->imported && !fstat(p->shown, &st) && st.st_dev == shown.dev && st.st_ino == shown.ino && shown.at.pid > 0;
    gpu_unlock();
    return ok ? gpu_import_range(&shown.at, GPU_IMPORT_POOL, out) : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuMemPoolExportToShareableHandle, (void *out, CUmemoryPool p, CUmemAllocationHandleType type, unsigned long long flags), GPU_NEED_OK,
        export_pool(out, p, type, flags))
GPU_API(cuMemPoolImportFromShareableHandle, (CUmemoryPool *p, void *os_handle, CUmemAllocationHandleType type, unsigned long long flags),
        GPU_NEED_OK, import_pool(p, os_handle, type, flags))
GPU_API(cuMemPoolExportPointer, (CUmemPoolPtrExportData *out, CUdeviceptr at), GPU_NEED_OK, export_pointer(out, at))
GPU_API(cuMemPoolImportPointer, (CUdeviceptr *out, CUmemoryPool p, CUmemPoolPtrExportData *data), GPU_NEED_CTX, import_pointer(out, p, data))
