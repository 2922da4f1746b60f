/* allocations.c: see allocations.h. */
#include "policy/allocations.h"

#include "policy/active.h"
#include "policy/campaign.h"
#include "policy/current.h"
#include "policy/engine_here.h"
#include "policy/engine_pools.h"
#include "policy/engine_state.h"
#include "policy/engine_turn.h"
#include "policy/graph_memory.h"
#include "policy/iteration.h"
#include "policy/learn/learn.h"
#include "policy/memory/alloc.h"
#include "policy/memory/foreign.h"
#include "policy/memory/pooled.h"
#include "policy/memory/resident.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/memory/supply.h"
#include "policy/op/ready.h"
#include "policy/plan/exec.h"
#include "policy/process/check.h"
#include "policy/process/limits.h"
#include "policy/process/stats.h"
#include "policy/reach.h"
#include "policy/share/share.h"
#include "policy/unmet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- managed memory ------------------------------------------------------------------------------------------------ */

/* A limit under which the allocation succeeds: memory that cannot move, the allocation, and of the program's other memory, in whole pages, all that the host
 * does not take. A tensor is on the device or on the host as a whole, so host memory as large as the largest tensor may stay unused. */
static uint64_t least_for(struct device *d, uint64_t bytes)
{
    uint64_t moves = 0, largest = 0;
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        const struct slot *s = &d->mem.slots[i];
        const uint64_t pages_bytes = s->kind == SLOT_LARGE && s->live && !s->pins ? mem_pages(d, s->bytes) << d->mem.shift : 0;
        moves += pages_bytes;
        largest = pages_bytes > largest ? pages_bytes : largest;
    }
    const uint64_t host = d->mem.host_limit_bytes > largest ? d->mem.host_limit_bytes - largest : 0;
    return room_fixed_bytes(d) + (mem_pages(d, bytes) << d->mem.shift) + (moves > host ? moves - host : 0);
}

/* The answer where there is no room: a device that has failed gives none either. */
static int no_room(struct device *d, uint64_t bytes)
{
    const int failed = stream_failure_drv(d);
    if (failed)
        return failed;
    log_say(SAY_ERROR,
            "out of memory: an allocation of %s does not fit: limit %s, %s held by the program, %s of "
            "them cannot move; swapping may use %s of host memory (--host-swap); --limit %lluK would do for it",
            rt_size(bytes).text, rt_size(d->mem.limit_bytes).text, rt_size(d->mem.live_bytes + d->mem.foreign_bytes).text,
            rt_size(room_fixed_bytes(d)).text, rt_size(d->mem.host_limit_bytes).text, (unsigned long long)ready_least_kib(least_for(d, bytes)));
    if (d->mem.foreign_bytes > d->mem.limit_bytes / 2)
        log_once(SAY_WARN, "most of that, %s, is memory of cuMemAlloc and the like, which does not move: PyTorch's own caching allocator takes it "
                           "so, and not the one that remat run chooses; --allocator each moves cuMemAlloc's", rt_size(d->mem.foreign_bytes).text);
    share_say_short(d);
    supply_say_short(d);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static int alloc_slot(struct device *d, uint64_t bytes, unsigned t, struct slot **out)
{
    struct slot *s = campaign_follows_plan(d) ? exec_alloc(d, bytes) : NULL;
    bool planned = s != NULL; /* such a slot gets memory when it is first touched: a workspace may never be */
    if (!s) {
        /* Memory that was never touched needs no copy, so any amount could be promised: the sum of all is bounded by
         * what the device and the host together can hold. */
        uint64_t most = d->mem.limit_bytes + d->mem.host_limit_bytes;
        if (bytes > most || d->mem.live_bytes > most - bytes || alloc_ordered(d, bytes, t, &s))
            return -ENOMEM;
    }
    s->needed_by = ++d->mem.op_at_hand;
    /* A kernel may reach a pinned buffer before any argument shows it: through a list of addresses that is copied to the device next. */
    if (planned && s->plan_buf >= 0 && d->ex->learnt.rec.bufs[s->plan_buf].pinned && ready_pin(d, s)) {
        campaign_leave(d, "no room for memory that must stay");
        alloc_free(d, s);
        return -ENOMEM;
    }
    /* Buffers that are in the way move when the new memory is touched: some memory is allocated and never used. */
    if (!planned && s->kind == SLOT_LARGE && !resident_can_wait(d, s) && resident_back(d, s)) {
        alloc_free(d, s);
        return -ENOMEM;
    }
    *out = s;
    return 0;
}

/* alloc_slot(); where the host has to wait for it, the mutex is free meanwhile. */
static int alloc_slot_waiting(struct device *d, uint64_t bytes, unsigned t, struct slot **out)
{
    int rc;
    bool may;
    do {
        may = !campaign_follows_plan(d) && !d->capturing;
        if (may)
            fence_put_off(d);
        rc = alloc_slot(d, bytes, t, out);
    } while (may && engine_begins_again(d, rc));
    return rc;
}

/* The driver is asked for the current pool once, and again when the program may have chosen another. */
static CUmemoryPool current_pool(struct device *d)
{
    if (!d->current_pool && (!d->drv->cuDeviceGetMemPool || d->drv->cuDeviceGetMemPool(&d->current_pool, d->dev) != CUDA_SUCCESS))
        d->current_pool = NULL;
    return d->current_pool;
}

static bool is_named(CUstream s) { return s != CU_STREAM_LEGACY && s != CU_STREAM_PER_THREAD; }

/* The driver's code for a stream that cannot be used: a default stream without a context, another one that is gone. */
static int refused_for(const struct device *d, CUstream stream)
{
    CUdevice dev;
    CUcontext ctx;
    if (!is_named(stream))
        return current_device_drv(process.drv, &dev);
    return !process.drv->cuStreamGetCtx || stream_is_known(d, stream) ? CUDA_SUCCESS : (int)process.drv->cuStreamGetCtx(stream, &ctx);
}

/* The index of a stream of the context that was current before the visit: during the visit a default stream's name means another stream. */
static unsigned index_before(struct device *d, struct engine_visit v, CUstream stream)
{
    return is_named(stream) || !v.away ? stream_index(d, stream) : stream_index_in(d, v.before, stream);
}

bool eng_is_captured(CUstream stream)
{
    engine_lock();
    struct device *d = engine_here();
    const bool captured = d && engine_is_captured(stream);
    engine_unlock();
    return captured;
}

static void free_slot(struct device *d, struct slot *s)
{
    pool_give(s->pool, s->bytes);
    unmet_freed(d, s);
    bool kept = campaign_follows_plan(d) && exec_free(d, s);
    if (kept)
        return;
    learn_free(d, s);
    alloc_free(d, s);
}

static void uncount(struct device *d, uint64_t bytes)
{
    d->mem.foreign_bytes -= bytes < d->mem.foreign_bytes ? bytes : d->mem.foreign_bytes;
    share_settle(d);
}

/* With the lock held: the device that counts the program's own memory on `dev`. */
static struct device *counts_for(int dev)
{
    for (unsigned i = 0; dev >= 0 && i < process.n_dev; i++)
        if (process.dev[i]->dev == dev && process.dev[i]->ready && !process.dev[i]->gone)
            return process.dev[i];
    return engine_here();
}

/* Makes room for memory of the program's own, which counts from now on. With the lock held. */
static int reserve(struct device *d, uint64_t bytes)
{
    struct engine_visit v = engine_visit(d);
    int rc, r = CUDA_SUCCESS;
    do {
        d->mem.op_at_hand++;
        fence_put_off(d);
        rc = room_make(d, bytes);
    } while (engine_begins_again(d, rc));
    while (rc && limits_borrow(d, bytes))
        rc = room_make(d, bytes);
    if (rc)
        r = no_room(d, bytes);
    else
        d->mem.foreign_bytes += bytes;
    memory_note_peak(d);
    engine_return(v);
    return r;
}

/* The driver holds more than it was asked for, unforeseen: other memory makes room afterwards. */
static void make_room_after(struct device *d)
{
    if (device_physical_bytes(d) <= d->mem.limit_bytes)
        return;
    struct engine_visit v = engine_visit(d);
    d->mem.op_at_hand++;
    pooled_trim(d);
    const uint64_t now = device_physical_bytes(d);
    if (now > d->mem.limit_bytes && !d->capturing)
        room_give_driver(d, now - d->mem.limit_bytes);
    engine_return(v);
}

/* Bytes that the device lacks for an allocation of `bytes`, at least a granule: where enough is free, it is not in one piece. */
static uint64_t missing_bytes(const struct device *d, uint64_t bytes)
{
    size_t there = 0, total;
    if (!d->drv->cuMemGetInfo_v2 || d->drv->cuMemGetInfo_v2(&there, &total) != CUDA_SUCCESS)
        there = 0;
    return bytes > there + d->mem.gran ? bytes - there : d->mem.gran;
}

/* With the lock held: managed memory goes back to the driver where that can be enough. The reservation for these bytes counts as physical by now. */
static bool gives_way(struct device *d, uint64_t bytes)
{
    const uint64_t ours = device_physical_bytes(d), fixed = room_fixed_bytes(d);
    if (d->capturing)
        return false;
    struct engine_visit v = engine_visit(d);
    const uint64_t missing = missing_bytes(d, bytes);
    d->mem.op_at_hand++;
    pooled_trim(d);
    const uint64_t given = ours > fixed && missing <= ours - fixed ? room_give_driver(d, missing) : 0;
    engine_return(v);
    if (given)
        log_once(SAY_INFO, "the driver had no memory for %s of the program's own, which the limit allows: %s of ours went back to it", rt_size(bytes).text, rt_size(given).text);
    return given > 0;
}

/* Bytes by which a pool of the driver's may grow for an allocation of `bytes`: whole granules. */
static uint64_t pool_grows_by(const struct device *d, uint64_t bytes)
{
    return bytes > UINT64_MAX - d->mem.gran ? UINT64_MAX : (bytes + d->mem.gran - 1) & ~(d->mem.gran - 1);
}

/* Takes the driver's answer r for memory of one of its pools, for which `reserved` bytes were reserved. Memory that a capture allocates is its graph's, and
 * the driver says how much graphs hold. */
static void settle(struct device *d, int r, CUdeviceptr p, size_t bytes, uint64_t reserved, CUmemoryPool pool, bool captured)
{
    engine_lock();
    const bool pooled = !captured && pooled_note(d, pool);
    if (captured && r == CUDA_SUCCESS)
        graph_memory_add(p);
    if (captured)
        foreign_graphs(d);
    else if (r == CUDA_SUCCESS)
        foreign_add(d, p, &(struct foreign_block){bytes, pooled ? pool : NULL, true});
    uncount(d, r == CUDA_SUCCESS && !captured && !pooled ? reserved - foreign_counted(bytes) : reserved);
    pooled_look(d);
    make_room_after(d);
    engine_unlock();
}

/* Drivers make a graph's memory when it is first launched. */
void eng_graph_issued(void)
{
    engine_lock();
    struct device *d = engine_here();
    if (d) {
        foreign_graphs(d);
        if (!d->capturing)
            make_room_after(d);
    }
    engine_unlock();
}

static int issue_alloc(const struct eng_pool_call *c)
{
    return c->pool ? (int)process.drv->cuMemAllocFromPoolAsync(c->out, c->bytes, c->pool, c->stream)
                   : (int)process.drv->cuMemAllocAsync(c->out, c->bytes, c->stream);
}

static bool gives_way_locking(struct device *d, uint64_t bytes)
{
    engine_lock();
    const bool gave = gives_way(d, bytes);
    engine_unlock();
    return gave;
}

/* With the lock held, which this function releases. d NULL: no device counts the memory. */
static int from_driver_unlocking(struct device *d, const struct eng_pool_call *c)
{
    const bool captured = d && engine_is_captured(c->stream);
    const uint64_t bytes = !d ? 0 : captured ? foreign_counted(c->bytes) : pool_grows_by(d, c->bytes);
    const CUmemoryPool pool = c->pool || !d ? c->pool : current_pool(d);
    int r = d ? reserve(d, bytes) : CUDA_SUCCESS;
    engine_unlock();
    if (r)
        return r;
    do
        r = c->issue(c);
    while (d && r == CUDA_ERROR_OUT_OF_MEMORY && gives_way_locking(d, bytes));
    if (d)
        settle(d, r, r ? 0 : *c->out, c->bytes, bytes, pool, captured);
    return r;
}

int eng_allocation_from_driver(int dev, const struct eng_pool_call *c)
{
    if (!c->out || !c->bytes)
        return c->issue(c);
    engine_lock();
    struct device *d = counts_for(dev);
    if (!d && engine_barred_here()) {
        engine_unlock();
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return from_driver_unlocking(d, c);
}

bool eng_has_devices(void) { return process.n_visible != 1; }

/* The device on which memory of this pool, or without a pool in this stream, is allocated: not always the current one. */
static struct device *device_for(int pool_dev, CUstream stream)
{
    CUdevice here = -1, of = pool_dev;
    CUcontext before = NULL, ctx = NULL;
    if (process.n_visible == 1 || (pool_dev < 0 && !is_named(stream)))
        return engine_here();
    bool known = is_named(stream) && process.drv->cuStreamGetCtx && process.drv->cuStreamGetCtx(stream, &ctx) == CUDA_SUCCESS &&
                 current_context(process.drv, &before);
    if (current_device_drv(process.drv, &here) == CUDA_SUCCESS && here == pool_dev)
        return engine_here();
    if (known && ctx != before && current_set(process.drv, ctx)) {
        CUdevice streams = -1;
        struct device *d = current_device_drv(process.drv, &streams) == CUDA_SUCCESS && (of < 0 || of == streams) ? engine_here() : NULL;
        current_set(process.drv, before);
        if (d || of < 0)
            return d;
    } else if (of < 0)
        return engine_here();
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->dev == of && process.dev[i]->ready && !process.dev[i]->gone)
            return process.dev[i];
    return NULL;
}

/* The slot becomes the program's, or is freed where an error comes back. */
static int handed_out(struct device *d, struct slot *s, CUdeviceptr *out)
{
    stats_keep(&process.cfg, process.dev, process.n_dev, eng_active());
    learn_alloc(d, s);
    memory_note_peak(d);
    const int r = d->n_reached && s->kind == SLOT_LARGE ? reach_reached_drv(d, s) : CUDA_SUCCESS;
    if (r)
        free_slot(d, s);
    else
        *out = s->va;
    return r;
}

int eng_alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, int pool_dev, CUstream stream)
{
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    engine_lock();
    int r = CUDA_SUCCESS;
    struct device *d = device_for(pool_dev, stream);
    if (!d && engine_barred_here())
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (d && ((r = refused_for(d, stream)) || (pool && (r = pool_refused_drv(pool))))) {
        engine_unlock();
        return r;
    }
    if (!d || d->capturing || d->stays || d->doubt == DOUBT_MEMORY) {
        const struct eng_pool_call call = {.pool = pool, .stream = stream, .out = out, .bytes = bytes, .issue = issue_alloc};
        if (!r)
            return from_driver_unlocking(d, &call);
        engine_unlock();
        return r;
    }
    if (is_named(stream))
        stream_index(d, stream); /* before the visit: a new stream's event is to be of the program's context, as the stream is */
    struct engine_visit v = engine_visit(d);
    if (!v.away)
        engine_turn(d);
    struct slot *s;
    CUmemoryPool from = pool ? pool : current_pool(d);
    if (!unmet_none(d) && unmet_refuses(d, bytes, (int)index_before(d, v, stream))) {
        engine_return(v);
        engine_unlock();
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    bool room = pool_has_room(from, bytes);
    const unsigned t = stream == CU_STREAM_PER_THREAD ? STREAM_NONE : index_before(d, v, stream); /* all threads share the index of CU_STREAM_PER_THREAD */
    int rc = room ? alloc_slot_waiting(d, bytes, t, &s) : -ENOMEM;
    while (rc && room && limits_borrow(d, bytes))
        rc = alloc_slot(d, bytes, t, &s);
    if (!room)
        r = CUDA_ERROR_OUT_OF_MEMORY; /* the pool's own maximum is reached */
    else if (rc)
        r = no_room(d, bytes);
    else {
        s->pool = from;
        pool_take(from, bytes);
        stream_acts(d, index_before(d, v, stream)); /* the index is asked for again: other threads were let in */
        r = handed_out(d, s, out);
    }
    engine_return(v);
    engine_unlock();
    return r;
}

/* Not where another device may reach memory of cuMemAlloc: that device would find nothing. */
int eng_alloc(CUdeviceptr *out, size_t bytes, int *res)
{
    engine_lock();
    struct device *d = engine_here();
    if (!d || eng_has_devices() || d->capturing || d->stays || d->doubt == DOUBT_MEMORY) {
        if (d && eng_has_devices())
            log_once(SAY_WARN, "--allocator each: of several visible devices each may reach the others' memory, so that of cuMemAlloc stays where it is "
                               "(CUDA_VISIBLE_DEVICES)");
        engine_unlock();
        return 0;
    }
    struct engine_visit v = engine_visit(d);
    if (!v.away)
        engine_turn(d);
    struct slot *s;
    const bool refused = !unmet_none(d) && unmet_refuses(d, bytes, UNMET_ANY_STREAM);
    int rc = refused ? -ENOMEM : alloc_slot_waiting(d, bytes, STREAM_NONE, &s), r = CUDA_SUCCESS;
    while (rc && !refused && limits_borrow(d, bytes))
        rc = alloc_slot(d, bytes, STREAM_NONE, &s);
    if (rc)
        r = refused ? CUDA_ERROR_OUT_OF_MEMORY : no_room(d, bytes);
    else
        r = handed_out(d, s, out);
    if (!r)
        s->waits = true;
    engine_return(v);
    engine_unlock();
    *res = r;
    return 1;
}

/* The device that counts this memory of the program's own, and has forgotten its row; NULL: none counts it. */
static struct device *detach(uint64_t key, struct foreign_block *b)
{
    for (unsigned i = 0; i < process.n_dev; i++)
        if ((process.dev[i]->ready || process.dev[i]->ended) && foreign_detach(process.dev[i], key, b))
            return process.dev[i];
    return NULL;
}

/* Leaves a plan in force that knows this memory of the program's own: values that can be made from it alone are made before it goes. */
static void leave_before_free(CUdeviceptr ptr)
{
    for (unsigned i = 0; i < process.n_dev; i++) {
        struct device *d = process.dev[i];
        const struct slot *s = d->ready && !d->gone ? foreign_lookup(d, ptr) : NULL;
        if (!s || s->va != ptr || s->plan_buf < 0 || !campaign_follows_plan(d))
            continue;
        struct engine_visit v = engine_visit(d);
        campaign_leave(d, "memory of the program's own is given back");
        if (fence_sync(d, &s->unseen)) /* waits for replays that read the memory */
            log_say(SAY_DEBUG, "the device failed before memory was given back");
        engine_return(v);
    }
}

/* Memory that this device counted was given back in a stream: it is held until the stream comes to the free. */
static void leaves(struct device *d, const struct foreign_block *b, CUstream stream)
{
    if (is_named(stream))
        stream_index(d, stream);
    struct engine_visit v = engine_visit(d);
    foreign_leaves(d, b, index_before(d, v, stream));
    engine_return(v);
}

/* Frees memory of the program's own. Its row goes before the driver's call: right after the call another thread may be given the
 * same address. `stream` NULL: cuMemFree. */
static int free_foreign(CUdeviceptr ptr, CUstream stream)
{
    struct foreign_block b;
    engine_lock();
    leave_before_free(ptr);
    struct device *d = detach(ptr, &b);
    const struct reach_noted noted = reach_forget(ptr);
    engine_unlock();
    int r = stream ? process.drv->cuMemFreeAsync(ptr, stream) : process.drv->cuMemFree_v2(ptr);
    engine_lock();
    if (r)
        reach_noted_again(ptr, noted);
    if (d && r == CUDA_SUCCESS && stream && d->ready && !d->gone)
        leaves(d, &b, stream);
    else if (d && r == CUDA_SUCCESS)
        uncount(d, foreign_block_counted(&b));
    else if (d)
        foreign_add(d, ptr, &b);
    else if (stream && graph_memory_is_none(ptr, r))
        r = CUDA_SUCCESS;
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
    struct slot *s = slot_lookup(d, ptr);
    if ((r = refused_for(d, stream))) {
        engine_unlock();
        return r;
    }
    if (engine_is_captured(stream)) { /* a captured free may free memory of the capture, and nothing else: the driver says so */
        engine_unlock();
        return (int)process.drv->cuMemFreeAsync(ptr, stream);
    }
    if (is_named(stream))
        stream_index(d, stream); /* before the visit: a new stream's event is to be of the program's context, as the stream is */
    struct engine_visit v = engine_visit(d);
    if (!s || s->va != ptr)
        r = CUDA_ERROR_INVALID_VALUE;
    else {
        const unsigned u = index_before(d, v, stream);
        stream_acts(d, u);
        slot_freed_on(d, s, u); /* all uses come before the free in its stream, by the program's promise */
        free_slot(d, s);
    }
    engine_return(v);
    engine_unlock();
    return r;
}

/* The driver takes back memory of cuMemAlloc only when it is no longer in use: waits for the context. */
static int wait_before_free(CUdeviceptr ptr)
{
    engine_lock();
    struct device *d = engine_holder(ptr);
    const struct slot *s = d ? slot_lookup(d, ptr) : NULL;
    const bool waits = s && s->waits && s->va == ptr;
    engine_unlock();
    return waits ? (int)process.drv->cuCtxSynchronize() : CUDA_SUCCESS;
}

/* cuMemFree waits for nothing where the memory is stream-ordered: the program has seen the end of all uses. remat may not have seen it: the next
 * user of the memory is ordered behind the users that remat knows of. */
static int free_now(CUdeviceptr ptr)
{
    CUdevice dev;
    int r = current_device_drv(process.drv, &dev); /* without a context the driver refuses the call */
    if (!r)
        r = wait_before_free(ptr);
    engine_lock();
    struct device *d = r ? NULL : engine_holder(ptr);
    struct slot *s = d ? slot_lookup(d, ptr) : NULL;
    if (!r && (!s || s->va != ptr))
        r = CUDA_ERROR_INVALID_VALUE;
    else if (!r && !(r = process.n_captures ? stream_forbidden_drv(d) : CUDA_SUCCESS)) {
        struct engine_visit v = engine_visit(d);
        free_slot(d, s);
        engine_return(v);
    }
    engine_unlock();
    return r;
}

int eng_free(CUdeviceptr ptr)
{
    if (!engine_holder(ptr))
        return free_foreign(ptr, NULL);
    return free_now(ptr);
}

/* ---- pools ------------------------------------------------------------------------------------------------------------ */

int eng_pool_get(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res)
{
    uint64_t v;
    switch (attr) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        break;
    default:
        return 0;
    }
    engine_lock();
    struct pool *p = engine_here() && !pool_refused_drv(pool) ? pool_of(pool) : NULL; /* NULL: the driver says what is wrong */
    bool high = attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    v = p ? high ? p->high_bytes[attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH] : p->used_bytes : 0;
    engine_unlock();
    if (!p)
        return 0;
    *res = value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (value)
        memcpy(value, &v, sizeof v);
    return 1;
}

int eng_pool_set(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res)
{
    if (attr != CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && attr != CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return 0;
    uint64_t v = 1;
    if (value)
        memcpy(&v, value, sizeof v);
    *res = v ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; /* only zero resets a peak */
    engine_lock();
    const bool there = !pool_refused_drv(pool);
    struct pool *p = there && !v && engine_here() ? pool_of(pool) : NULL;
    if (p)
        p->high_bytes[attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH] = p->used_bytes;
    engine_unlock();
    return there;
}

void eng_pool_made(CUmemoryPool pool, size_t most_bytes)
{
    engine_lock();
    struct pool *p = pool_of(pool);
    if (p)
        p->most_bytes = most_bytes;
    engine_unlock();
}

int eng_pool_trim(CUmemoryPool pool, size_t keep_bytes, int *res)
{
    *res = CUDA_SUCCESS; /* as far as the program can tell, a pool holds nothing but live memory */
    engine_lock();
    const bool there = !pool_refused_drv(pool);
    for (unsigned i = 0; i < process.n_dev; i++)
        unmet_trimmed(process.dev[i]);
    if (there && process.drv->cuMemPoolTrimTo) /* memory that the driver has served from the pool */
        *res = (int)process.drv->cuMemPoolTrimTo(pool, keep_bytes);
    engine_unlock();
    return there;
}

void eng_pool_destroyed(CUmemoryPool pool)
{
    engine_lock();
    for (unsigned k = 0; k < process.n_dev; k++) {
        process.dev[k]->current_pool = NULL; /* if the destroyed pool was the current one, the driver has gone back to its default */
        if (process.dev[k]->mem.foreign)
            foreign_pool_gone(process.dev[k], pool);
        for (uint32_t i = 0; i < process.dev[k]->mem.n_slots; i++)
            if (process.dev[k]->mem.slots[i].pool == pool)
                process.dev[k]->mem.slots[i].pool = NULL;
    }
    pool_gone(pool);
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

int eng_foreign_reserve(int dev, size_t bytes)
{
    int r = CUDA_SUCCESS;
    bytes = foreign_counted(bytes);
    engine_lock();
    struct device *d = counts_for(dev);
    if (d)
        r = reserve(d, bytes);
    else if (engine_barred_here())
        r = CUDA_ERROR_OUT_OF_MEMORY;
    engine_unlock();
    return r;
}

bool eng_foreign_gives(int dev, size_t bytes)
{
    engine_lock();
    struct device *d = counts_for(dev);
    const bool gave = d && gives_way(d, foreign_counted(bytes));
    engine_unlock();
    return gave;
}

void eng_foreign_commit(int dev, uint64_t key, size_t bytes, bool is_range)
{
    engine_lock();
    struct device *d = counts_for(dev);
    if (d)
        foreign_add(d, key, &(struct foreign_block){bytes, NULL, is_range});
    engine_unlock();
}

void eng_foreign_cancel(int dev, size_t bytes)
{
    bytes = foreign_counted(bytes);
    engine_lock();
    struct device *d = counts_for(dev);
    if (d)
        uncount(d, bytes);
    engine_unlock();
}

void eng_foreign_free(uint64_t key)
{
    struct foreign_block b;
    engine_lock();
    struct device *d = detach(key, &b);
    if (d)
        uncount(d, foreign_block_counted(&b));
    engine_unlock();
}
