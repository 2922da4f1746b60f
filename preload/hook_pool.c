/* hook_pool.c: stream-ordered memory, which remat manages. Pools that the engine cannot serve (pools.h) keep the driver's memory,
 * counted.
 */
#include "policy/allocations.h"
#include "policy/process/log.h"
#include "policy/reach.h"
#include "preload/counted.h"
#include "preload/pools.h"

ISSUE3(alloc_async, cuMemAllocAsync, CUdeviceptr *, size_t, CUstream)
ISSUE4(alloc_from_pool, cuMemAllocFromPoolAsync, CUdeviceptr *, size_t, CUmemoryPool, CUstream)

/* Notes new memory that the host writes without a call: the host may leave addresses in it for kernels to find. */
static int in_place(int r, const CUdeviceptr *p, size_t n)
{
    if (!r)
        eng_note_in_place(*p, n);
    return r;
}

static int from_driver(enum pool_use use, int dev, const struct eng_pool_call *c)
{
    if (use == POOL_OUTSIDE)
        return in_place(c->issue(c), c->out, c->bytes);
    const int r = eng_allocation_from_driver(dev, c);
    return use == POOL_MANAGED ? in_place(r, c->out, c->bytes) : r;
}

static int issue_from_current(const struct eng_pool_call *c) { return issue_alloc_async(c->ctx); }
static int issue_from_pool(const struct eng_pool_call *c) { return issue_alloc_from_pool(c->ctx); }

static int on_alloc_async(__typeof__(&cuMemAllocAsync) real, CUstream nul, CUdeviceptr *p, size_t n, CUstream s)
{
    enum pool_use use = pools_use_current();
    if (DOOR_UNLIKELY(use != POOL_ENGINE)) {
        struct call_alloc_async call = {real, p, n, s};
        const struct eng_pool_call c = {NULL, door_stream(s, nul), p, n, issue_from_current, &call};
        return from_driver(use, ENG_HERE, &c);
    }
    return eng_alloc_async(p, n, NULL, -1, door_stream(s, nul));
}

static int on_alloc_from_pool(__typeof__(&cuMemAllocFromPoolAsync) real, CUstream nul, CUdeviceptr *p, size_t n,
                              CUmemoryPool pool, CUstream s)
{
    enum pool_use use = pool ? pools_use(pool) : POOL_OUTSIDE; /* NULL is the driver's to refuse */
    if (DOOR_UNLIKELY(use != POOL_ENGINE)) {
        struct call_alloc_from_pool call = {real, p, n, pool, s};
        const struct eng_pool_call c = {pool, door_stream(s, nul), p, n, issue_from_pool, &call};
        return from_driver(use, pools_device(pool), &c);
    }
    return eng_alloc_async(p, n, pool, eng_has_devices() ? pools_device(pool) : -1, door_stream(s, nul));
}

static int on_free_async(__typeof__(&cuMemFreeAsync) real, CUstream nul, CUdeviceptr p, CUstream s)
{
    (void)real;
    return eng_free_async(p, door_stream(s, nul));
}

/* ---- pools ------------------------------------------------------------------------------------------------------------- */

static int on_pool_create(__typeof__(&cuMemPoolCreate) real, CUmemoryPool *pool, const CUmemPoolProps *props)
{
    int r = real(pool, props);
    if (r)
        return r;
    enum pool_use use = pools_use_of_props(props);
    if (use == POOL_ENGINE) {
        pools_created(*pool, props->location.id);
        eng_pool_made(*pool, props->maxSize);
    } else {
        pools_created(*pool, props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id : ENG_HERE);
        pools_mark(*pool, use);
    }
    return r;
}

static int on_pool_destroy(__typeof__(&cuMemPoolDestroy) real, CUmemoryPool pool)
{
    int r = real(pool);
    if (!r) {
        pools_destroyed(pool);
        eng_pool_destroyed(pool);
    }
    return r;
}

static int on_pool_trim(__typeof__(&cuMemPoolTrimTo) real, CUmemoryPool pool, size_t keep)
{
    int r;
    return pools_use(pool) == POOL_ENGINE && eng_pool_trim(pool, keep, &r) ? r : (int)real(pool, keep);
}

static int on_pool_get(__typeof__(&cuMemPoolGetAttribute) real, CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    int r;
    return pools_use(pool) == POOL_ENGINE && eng_pool_get(pool, attr, value, &r) ? r : (int)real(pool, attr, value);
}

static int on_pool_set(__typeof__(&cuMemPoolSetAttribute) real, CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    int r;
    return pools_use(pool) == POOL_ENGINE && eng_pool_set(pool, attr, value, &r) ? r : (int)real(pool, attr, value);
}

/* Peers see the pool's memory from now on: later allocations from it come from the driver, mapped for them. */
static int on_pool_set_access(__typeof__(&cuMemPoolSetAccess) real, CUmemoryPool pool, const CUmemAccessDesc *d, size_t n)
{
    int r = real(pool, d, n);
    if (r || pools_use(pool) != POOL_ENGINE)
        return r;
    int own = pools_device(pool);
    for (size_t i = 0; i < n; i++) {
        bool is_own = d[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && d[i].location.id == own;
        if (is_own || d[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            continue;
        pools_mark(pool, POOL_COUNTED);
        log_once(SAY_WARN, "a memory pool is opened to other devices: its memory is counted and not evicted from now on");
        break;
    }
    return r;
}

static int on_pool_export(__typeof__(&cuMemPoolExportPointer) real, CUmemPoolPtrExportData *data, CUdeviceptr p)
{
    DOOR_TRY(eng_pin(p, 0, "cuMemPoolExportPointer"));
    return real(data, p);
}

static int on_pool_import(__typeof__(&cuMemPoolImportFromShareableHandle) real, CUmemoryPool *pool, void *h,
                          CUmemAllocationHandleType t, unsigned long long flags)
{
    int r = real(pool, h, t, flags);
    if (!r)
        pools_mark(*pool, POOL_OUTSIDE);
    return r;
}

static int on_pool_import_pointer(__typeof__(&cuMemPoolImportPointer) real, CUdeviceptr *p, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    int r = real(p, pool, data);
    if (!r)
        eng_note_outside(*p, 0);
    return r;
}

/* cuMemGetDefaultMemPool and cuMemGetMemPool, of CUDA 13: a location's default and its current pool. */
static int on_default_pool(__typeof__(&cuMemGetDefaultMemPool) real, CUmemoryPool *pool, CUmemLocation *at,
                           CUmemAllocationType t)
{
    int r = real(pool, at, t);
    if (r)
        return r;
    if (t == CU_MEM_ALLOCATION_TYPE_MANAGED)
        pools_mark(*pool, POOL_MANAGED);
    else if (at->type != CU_MEM_LOCATION_TYPE_DEVICE)
        pools_mark(*pool, POOL_OUTSIDE);
    return r;
}

static int on_choose_pool(__typeof__(&cuDeviceSetMemPool) real, CUdevice d, CUmemoryPool pool)
{
    int r = real(d, pool);
    eng_pool_chosen();
    return r;
}

static int on_choose_pool_at(__typeof__(&cuMemSetMemPool) real, CUmemLocation *at, CUmemAllocationType t, CUmemoryPool pool)
{
    int r = real(at, t, pool);
    eng_pool_chosen();
    return r;
}

HOOKS_POOL(DOOR_EXPORT_LIGHT)
