/* Memory, as the program asks for it: what is managed, pools, and what is counted only. */
#include "policy/campaign.h"
#include "policy/engine_own.h"
#include "policy/learn/learn.h"
#include "policy/op/op.h"
#include "policy/plan/exec.h"
#include "policy/share/share.h"

#include <errno.h>
#include <string.h>

/* ---- managed memory ------------------------------------------------------------------------------------------------ */

static void say_no_room(struct device *d, uint64_t bytes)
{
    log_say(SAY_ERROR,
            "out of memory: an allocation of %s does not fit: limit %s, %s held by the program, %s of "
            "them cannot move; swapping may use %s of host memory (--host-swap); raise --limit",
            rt_size(bytes).text, rt_size(d->limit_bytes).text, rt_size(d->live_bytes + d->foreign_bytes).text,
            rt_size(d->foreign_bytes + (mem_arena_chunks(d) << d->shift)).text, rt_size(d->host_limit_bytes).text);
    share_say_short(d);
}

static int alloc_slot(struct device *d, uint64_t bytes, struct slot **out)
{
    struct slot *s = campaign_follows_plan(d) ? exec_alloc(d, bytes) : NULL;
    bool planned = s != NULL; /* it gets memory when it is first touched: a workspace may never be */
    if (!s) {
        /* What has never been touched needs no copy, so it would cost nothing to promise for ever: the sum is bounded by
         * what the device and the host together can hold. */
        if (d->live_bytes + bytes > d->limit_bytes + d->host_limit_bytes || mem_slot_new(d, bytes, &s))
            return -ENOMEM;
    }
    s->mark = ++d->mark;
    /* What must first be moved out of the way moves when the memory is touched: some is allocated and never used. */
    if (!planned && s->kind == SLOT_LARGE && !mem_can_wait(d, s) && mem_back(d, s)) {
        mem_slot_free(d, s);
        return -ENOMEM;
    }
    *out = s;
    return 0;
}

/* Asked for once, and again when the program may have chosen another. */
static CUmemoryPool current_pool(struct device *d)
{
    if (!d->current_pool && (!d->drv->cuDeviceGetMemPool || d->drv->cuDeviceGetMemPool(&d->current_pool, d->dev) != CUDA_SUCCESS))
        d->current_pool = NULL;
    return d->current_pool;
}

static void free_slot(struct device *d, struct slot *s)
{
    bool kept = campaign_follows_plan(d) && exec_free(d, s);
    if (kept)
        return;
    learn_free(d, s);
    mem_slot_free(d, s);
}

int eng_alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    engine_lock();
    int r = CUDA_SUCCESS;
    struct device *d = engine_here();
    if (!d && engine_barred_here())
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!d || d->capturing) {
        engine_unlock();
        return r ? r : pool ? (int)process.drv->cuMemAllocFromPoolAsync(out, bytes, pool, stream)
                    : (int)process.drv->cuMemAllocAsync(out, bytes, stream);
    }
    engine_turn(d);
    struct slot *s;
    int rc = alloc_slot(d, bytes, &s);
    while (rc && device_borrow(d, bytes))
        rc = alloc_slot(d, bytes, &s);
    if (rc) {
        say_no_room(d, bytes);
        r = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        stats_keep(&process.cfg, process.dev, process.n_dev);
        s->pool = pool ? pool : current_pool(d);
        stream_acts(d, stream_index(d, stream));
        learn_alloc(d, s);
        mem_note_peak(d);
        if (d->n_reached && s->kind == SLOT_LARGE && (r = engine_reached_drv(d, s)))
            free_slot(d, s);
        else
            *out = s->va;
    }
    engine_unlock();
    return r;
}

static void uncount(struct device *d, uint64_t bytes)
{
    d->foreign_bytes -= bytes < d->foreign_bytes ? bytes : d->foreign_bytes;
    share_settle(d);
}

/* The device that counts this memory of the program's own forgets its row; NULL: nobody counts it. */
static struct device *detach(uint64_t key, uint64_t *bytes, bool *is_range)
{
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready && foreign_detach(process.dev[i], key, bytes, is_range))
            return process.dev[i];
    return NULL;
}

/* Memory of the program's own. The row goes before the driver's call: right after it another thread may be given the same
 * address. `stream` NULL: cuMemFree. */
static int free_foreign(CUdeviceptr ptr, CUstream stream)
{
    uint64_t bytes = 0;
    bool is_range = false;
    engine_lock();
    struct device *d = detach(ptr, &bytes, &is_range);
    engine_unlock();
    int r = stream ? process.drv->cuMemFreeAsync(ptr, stream) : process.drv->cuMemFree_v2(ptr);
    engine_lock();
    if (d && r == CUDA_SUCCESS)
        uncount(d, bytes);
    else if (d)
        foreign_add(d, ptr, bytes, is_range);
    engine_unlock();
    return r;
}

int eng_free_async(CUdeviceptr ptr, CUstream stream)
{
    int r = CUDA_SUCCESS;
    engine_lock();
    struct device *d = engine_holder(ptr);
    if (!d) {
        engine_unlock();
        return free_foreign(ptr, stream);
    }
    struct slot *s = mem_lookup(d, ptr);
    if (!s || s->va != ptr)
        r = CUDA_ERROR_INVALID_VALUE;
    else {
        stream_acts(d, stream_index(d, stream));
        mem_slot_freed_on(d, s, stream_index(d, stream));
        free_slot(d, s);
    }
    engine_unlock();
    return r;
}

int eng_free(CUdeviceptr ptr)
{
    if (!engine_holder(ptr))
        return free_foreign(ptr, NULL);
    process.drv->cuCtxSynchronize(); /* as cuMemFree does */
    return eng_free_async(ptr, CU_STREAM_LEGACY);
}

/* ---- pools ------------------------------------------------------------------------------------------------------------ */

static uint64_t pool_used(struct device *d, CUmemoryPool pool)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slots[i].live && d->slots[i].kind != SLOT_FOREIGN && (!pool || !d->slots[i].pool || d->slots[i].pool == pool))
            sum += d->slots[i].bytes;
    return sum;
}

int eng_pool_get(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res)
{
    uint64_t v;
    engine_lock();
    struct device *d = engine_here();
    if (!d) {
        engine_unlock();
        return 0;
    }
    uint64_t used = pool_used(d, pool);
    switch (attr) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        v = used;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        v = d->pool_high > used ? d->pool_high : used;
        break;
    default:
        engine_unlock();
        return 0;
    }
    engine_unlock();
    if (!value)
        *res = CUDA_ERROR_INVALID_VALUE;
    else {
        memcpy(value, &v, sizeof v);
        *res = CUDA_SUCCESS;
    }
    return 1;
}

int eng_pool_set(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res)
{
    (void)pool;
    if (attr != CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && attr != CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return 0;
    uint64_t v = 1;
    if (value)
        memcpy(&v, value, sizeof v);
    *res = v ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; /* only zero resets it */
    if (!v) {
        engine_lock();
        struct device *d = engine_here();
        if (d)
            d->pool_high = d->live_bytes;
        engine_unlock();
    }
    return 1;
}

int eng_pool_trim(CUmemoryPool pool, size_t keep_bytes, int *res)
{
    (void)pool;
    (void)keep_bytes;
    *res = CUDA_SUCCESS; /* nothing is held beyond what is live, as far as the program can tell */
    return 1;
}

void eng_pool_destroyed(CUmemoryPool pool)
{
    engine_lock();
    for (unsigned k = 0; k < process.n_dev; k++) {
        process.dev[k]->current_pool = NULL; /* where it was this one, the driver has gone back to its default */
        for (uint32_t i = 0; i < process.dev[k]->n_slots; i++)
            if (process.dev[k]->slots[i].pool == pool)
                process.dev[k]->slots[i].pool = NULL;
    }
    engine_unlock();
}

void eng_pool_chosen(void)
{
    engine_lock();
    for (unsigned k = 0; k < process.n_dev; k++)
        process.dev[k]->current_pool = NULL;
    engine_unlock();
}

/* ---- other memory -------------------------------------------------------------------------------------------------------- */

int eng_foreign_reserve(size_t bytes)
{
    int r = CUDA_SUCCESS;
    bytes = foreign_counted(bytes);
    engine_lock();
    struct device *d = engine_here();
    if (d) {
        d->mark++;
        int rc = mem_make_foreign_room(d, bytes);
        while (rc && device_borrow(d, bytes))
            rc = mem_make_foreign_room(d, bytes);
        if (rc) {
            say_no_room(d, bytes);
            r = CUDA_ERROR_OUT_OF_MEMORY;
        } else
            d->foreign_bytes += bytes;
        mem_note_peak(d);
    } else if (engine_barred_here()) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    engine_unlock();
    return r;
}

void eng_foreign_commit(uint64_t key, size_t bytes, bool is_range)
{
    engine_lock();
    struct device *d = engine_here();
    if (d)
        foreign_add(d, key, bytes, is_range);
    engine_unlock();
}

void eng_foreign_cancel(size_t bytes)
{
    bytes = foreign_counted(bytes);
    engine_lock();
    struct device *d = engine_here();
    if (d)
        uncount(d, bytes);
    engine_unlock();
}

void eng_foreign_free(uint64_t key)
{
    uint64_t bytes = 0;
    bool is_range;
    engine_lock();
    struct device *d = detach(key, &bytes, &is_range);
    if (d)
        uncount(d, bytes);
    engine_unlock();
}
