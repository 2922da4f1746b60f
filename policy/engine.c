/* The engine: every door ends here. One mutex; the mode decides who handles an op:
 *
 *   eng_launch -> eng_op -> exec_op_drv   a plan is in force (exec.c): where a launch is decided
 *                        -> learn_op_drv  everything else (learn.c): run plainly, watch, probe
 */
#include "policy/learn/probe.h"
#include "policy/run.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct rt rt;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool active;
static bool setup_tried;

int eng_query_attribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr, const struct slot *s, CUresult *res);

/* ---- life ------------------------------------------------------------------------------------------------------- */

const char *rt_code_name(int code)
{
    const char *name = NULL;
    if (rt.drv && rt.drv->cuGetErrorName)
        rt.drv->cuGetErrorName((CUresult)code, &name);
    return name ? name : "unknown error";
}

void rt_give_up(const char *what, int code)
{
    log_once(SAY_WARN, "%s failed (%d): remat stands aside, the program runs as without it", what, code);
    atomic_store(&active, false);
    rt.active = false;
}

bool eng_active(void) { return atomic_load_explicit(&active, memory_order_relaxed); }

int eng_start(const struct drv *d)
{
    char err[256];
    const char *missing = NULL;
    log_init(getenv("REMAT_LOG"));
    if (config_read(&rt.cfg, err, sizeof err)) {
        log_say(SAY_ERROR, "%s: remat stands aside", err);
        return -EINVAL;
    }
    rt.drv = d;
    if (!drv_complete(d, &missing)) {
        log_say(SAY_WARN, "the driver has no %s (CUDA 11.2 or newer is needed): remat stands aside", missing);
        return -ENOSYS;
    }
    if (rt.cfg.policy == POLICY_OFF && !rt.cfg.trace_mode && !rt.cfg.trace_out[0])
        return -ENOTSUP;
    if (learn_init())
        return -ENOMEM;
    rt.status = status_open();
    rt.active = true;
    atomic_store(&active, true);
    return 0;
}

static int set_up(void)
{
    size_t total = 0;
    setup_tried = true;
    if (rt.drv->cuCtxGetDevice(&rt.dev) != CUDA_SUCCESS || rt.drv->cuCtxGetCurrent(&rt.ctx) != CUDA_SUCCESS ||
        rt.drv->cuDeviceTotalMem_v2(&total, rt.dev) != CUDA_SUCCESS)
        return -EIO;
    rt.device_bytes = total;
    rt.limit_bytes = config_limit_bytes(&rt.cfg, total);
    if (!rt.limit_bytes || rt.limit_bytes > total)
        rt.limit_bytes = total;
    int r = mem_init();
    if (!r)
        r = stream_init();
    if (!r)
        r = swap_init();
    if (!r)
        rt.ready = true;
    if (rt.status) {
        status_store(&rt.status->limit_bytes, rt.limit_bytes);
        status_set_mode(rt.status, eng_mode_name());
    }
    return r;
}

/* With the lock held: the device part stands, and the calling thread's device is the managed one. */
static bool here(void)
{
    if (!rt.ready) {
        if (setup_tried)
            return false;
        int r = set_up();
        if (r == -EIO) {
            setup_tried = false; /* no context yet: a later call will have one */
            return false;
        }
        if (r) {
            rt_give_up("setting up device memory", r);
            return false;
        }
    }
    CUdevice dev;
    if (rt.drv->cuCtxGetDevice(&dev) != CUDA_SUCCESS || dev != rt.dev)
        return false;
    return true;
}

void eng_finish(void)
{
    static atomic_bool done;
    if (atomic_exchange(&done, true) || !rt.drv)
        return;
    pthread_mutex_lock(&lock);
    planner_stop();
    if (learn_trace_missing())
        log_say(SAY_WARN, "no trace was written: the program ended before an iteration had been recognised and recorded (it takes "
                          "about four alike)");
    stats_write();
    status_close(rt.status);
    rt.status = NULL;
    pthread_mutex_unlock(&lock);
}

void eng_after_fork_child(void)
{
    atomic_store(&active, false);
    status_after_fork_child(rt.status);
    rt.status = NULL;
    rt.drv = NULL; /* eng_finish in the child writes nothing */
}

const char *eng_mode_name(void)
{
    static const char *const names[] = {"observe", "probe", "plan", "rehearse", "enforce", "swap"};
    if (!rt.ready)
        return rt.active ? "observe" : "off";
    if (rt.mode == MODE_OBSERVE && rt.cfg.policy == POLICY_SWAP)
        return "swap";
    return names[rt.mode];
}

static void turn(void)
{
    enum rt_mode before = rt.mode;
    exec_turn();
    learn_turn();
    if (rt.mode != before && rt.status)
        status_set_mode(rt.status, eng_mode_name());
}

/* ---- managed memory ------------------------------------------------------------------------------------------------ */

static void say_no_room(uint64_t bytes)
{
    log_say(SAY_ERROR,
            "out of memory: an allocation of %llu MiB does not fit: limit %llu MiB, %llu MiB held by the program, %llu MiB of "
            "them cannot move; swapping may use %llu MiB of host memory (--host-swap); raise --limit",
            rt_mib(bytes), rt_mib(rt.limit_bytes), rt_mib(rt.live_bytes + rt.foreign_bytes),
            rt_mib(rt.foreign_bytes + (mem_arena_chunks() << rt.shift)), rt_mib(rt.host_limit_bytes));
}

static int alloc_slot(uint64_t bytes, unsigned t, struct slot **out)
{
    struct slot *s = rt.mode == MODE_REHEARSE || rt.mode == MODE_ENFORCE ? exec_alloc(bytes) : NULL;
    bool planned = s && s->fixed_ord >= 0;
    if (!s) {
        /* What has never been touched needs no copy, so it would cost nothing to promise for ever: the sum is bounded by
         * what the device and the host together can hold. */
        if (rt.live_bytes + bytes > rt.limit_bytes + rt.host_limit_bytes || mem_slot_new(bytes, &s))
            return -ENOMEM;
    }
    if (s->kind == SLOT_SMALL) {
        stream_order(t, s->uses_mask);
        s->uses_mask = 0;
    }
    s->mark = ++rt.mark;
    if (!planned && s->kind == SLOT_LARGE && mem_back(s, t)) {
        mem_slot_free(s);
        return -ENOMEM;
    }
    *out = s;
    return 0;
}

int eng_alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    int r = CUDA_SUCCESS;
    if (!here() || rt.capturing) {
        pthread_mutex_unlock(&lock);
        return pool ? (int)rt.drv->cuMemAllocFromPoolAsync(out, bytes, pool, stream) : (int)rt.drv->cuMemAllocAsync(out, bytes, stream);
    }
    turn();
    struct slot *s;
    if (alloc_slot(bytes, stream_index(stream), &s)) {
        say_no_room(bytes);
        r = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        s->pool = pool;
        learn_alloc(s);
        mem_note_peak();
        *out = s->va;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

static void free_slot(struct slot *s)
{
    bool kept = (rt.mode == MODE_REHEARSE || rt.mode == MODE_ENFORCE) && exec_free(s);
    if (kept)
        return;
    learn_free(s);
    mem_slot_free(s);
}

/* Memory of the program's own. The row goes before the driver's call: right after it another thread may be given the same
 * address. `stream` NULL: cuMemFree. */
static int free_foreign(CUdeviceptr ptr, CUstream stream)
{
    uint64_t bytes = 0;
    bool is_range = false;
    pthread_mutex_lock(&lock);
    bool known = foreign_detach(ptr, &bytes, &is_range);
    pthread_mutex_unlock(&lock);
    int r = stream ? rt.drv->cuMemFreeAsync(ptr, stream) : rt.drv->cuMemFree_v2(ptr);
    if (known && r == CUDA_SUCCESS)
        eng_foreign_cancel(bytes);
    else if (known)
        eng_foreign_commit(ptr, bytes, is_range);
    return r;
}

int eng_free_async(CUdeviceptr ptr, CUstream stream)
{
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!rt.ready || !mem_in_reservation(ptr)) {
        pthread_mutex_unlock(&lock);
        return free_foreign(ptr, stream);
    }
    struct slot *s = mem_lookup(ptr);
    if (!s || s->va != ptr)
        r = CUDA_ERROR_INVALID_VALUE;
    else {
        /* the program has ordered all its uses before this point of the stream */
        s->stale_mask |= s->uses_mask;
        s->uses_mask = (s->uses_mask & 3u) | 1ull << stream_index(stream);
        free_slot(s);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

int eng_free(CUdeviceptr ptr)
{
    if (!rt.ready || !mem_in_reservation(ptr))
        return free_foreign(ptr, NULL);
    rt.drv->cuCtxSynchronize(); /* as cuMemFree does */
    return eng_free_async(ptr, CU_STREAM_LEGACY);
}

/* ---- pools ------------------------------------------------------------------------------------------------------------ */

static uint64_t pool_used(CUmemoryPool pool)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < rt.n_slots; i++)
        if (rt.slots[i].live && rt.slots[i].kind != SLOT_FOREIGN && (!pool || !rt.slots[i].pool || rt.slots[i].pool == pool))
            sum += rt.slots[i].bytes;
    return sum;
}

static uint64_t pool_high; /* used bytes, since the program last reset it */

int eng_pool_get(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res)
{
    uint64_t v;
    pthread_mutex_lock(&lock);
    uint64_t used = rt.ready ? pool_used(pool) : 0;
    if (rt.st.native_peak_bytes > pool_high)
        pool_high = rt.st.native_peak_bytes;
    switch (attr) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        v = used;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        v = pool_high > used ? pool_high : used;
        break;
    default:
        pthread_mutex_unlock(&lock);
        return 0;
    }
    pthread_mutex_unlock(&lock);
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
        pthread_mutex_lock(&lock);
        pool_high = rt.live_bytes;
        rt.st.native_peak_bytes = rt.st.native_peak_bytes > rt.live_bytes ? rt.st.native_peak_bytes : rt.live_bytes;
        pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < rt.n_slots; i++)
        if (rt.slots[i].pool == pool)
            rt.slots[i].pool = NULL;
    pthread_mutex_unlock(&lock);
}

/* ---- other memory -------------------------------------------------------------------------------------------------------- */

int eng_foreign_reserve(size_t bytes)
{
    int r = CUDA_SUCCESS;
    bytes = foreign_counted(bytes);
    pthread_mutex_lock(&lock);
    if (here()) {
        rt.mark++;
        if (mem_make_foreign_room(bytes)) {
            say_no_room(bytes);
            r = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (r == CUDA_SUCCESS)
        rt.foreign_bytes += bytes;
    if (rt.ready)
        mem_note_peak();
    pthread_mutex_unlock(&lock);
    return r;
}

void eng_foreign_commit(uint64_t key, size_t bytes, bool is_range)
{
    pthread_mutex_lock(&lock);
    foreign_add(key, bytes, is_range && rt.ready);
    pthread_mutex_unlock(&lock);
}

void eng_foreign_cancel(size_t bytes)
{
    bytes = foreign_counted(bytes);
    pthread_mutex_lock(&lock);
    rt.foreign_bytes -= bytes < rt.foreign_bytes ? bytes : rt.foreign_bytes;
    pthread_mutex_unlock(&lock);
}

void eng_foreign_free(uint64_t key)
{
    pthread_mutex_lock(&lock);
    foreign_remove(key);
    pthread_mutex_unlock(&lock);
}

/* ---- work ------------------------------------------------------------------------------------------------------------------ */

static int eng_op(struct rt_op *op)
{
    turn();
    int r = rt.mode == MODE_REHEARSE || rt.mode == MODE_ENFORCE ? exec_op_drv(op) : learn_op_drv(op);
    rt.op_count++;
    return r;
}

int eng_launch(const struct eng_kernel *k)
{
    struct rt_op op;
    pthread_mutex_lock(&lock);
    rt.timing = (++rt.st.launches & 63) == 0;
    uint64_t began = rt.timing ? stats_now_ns() : 0;
    rt.issue_ns = 0;
    bool managed = here();
    int r = managed ? op_from_kernel(k, &op) : -ENODEV;
    if (r == 0)
        r = eng_op(&op);
    else {
        if (managed)
            log_once(SAY_WARN, "the parameters of a kernel cannot be read (%s): a driver of CUDA 12.4 or newer is needed; "
                               "nothing is evicted from now on", func_of(k->func) ? func_of(k->func)->name : "?");
        if (managed)
            for (uint32_t i = 0; i < rt.n_slots; i++)
                if (rt.slots[i].live && !ready_slot(&rt.slots[i], stream_index(k->stream)))
                    rt.slots[i].pins++;
        r = op_pass_drv(k);
    }
    if (rt.timing) {
        uint64_t all = stats_now_ns() - began;
        rt.st.hook_ns += all > rt.issue_ns ? all - rt.issue_ns : 0;
        rt.st.hook_launches++;
        rt.timing = false;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

/* An address of ours that nobody holds now: the driver, which knows the reservation, would only say so when it is too late. */
static bool nobodys(CUdeviceptr p) { return rt.ready && mem_in_reservation(p) && !mem_lookup(p); }

int eng_memset(const struct eng_memset *m)
{
    struct rt_op op;
    pthread_mutex_lock(&lock);
    here();
    op_from_memset(m, &op);
    int r = nobodys(m->dst) ? CUDA_ERROR_INVALID_VALUE : op.n_operands ? eng_op(&op) : op_issue_drv(&op);
    pthread_mutex_unlock(&lock);
    return r;
}

/* Pointers may travel to the device in arrays: what they point at can be used by any later launch, unseen. Numbers may
 * look like addresses (two 32-bit ones side by side): in a long copy one word in DENSE must, or it is none. */
static void scan_for_pointers(const struct eng_copy *c)
{
    enum { SCAN_MAX_BYTES = 1 << 20, SHORT_WORDS = 64, DENSE = 8 };
    if (c->kind != ENG_HTOD || c->bytes > SCAN_MAX_BYTES || !c->src_host)
        return;
    const unsigned char *p = c->src_host;
    size_t words = c->bytes / 8, hits = 0, starts = 0;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        const struct slot *s = mem_in_reservation(word) ? mem_lookup(word) : NULL;
        hits += s != NULL;
        starts += s && word == s->va;
    }
    if (!hits || (words > SHORT_WORDS && hits * DENSE < words && starts < 2))
        return;
    struct slot *list = mem_in_reservation(c->dst_dev) ? mem_lookup(c->dst_dev) : foreign_lookup(c->dst_dev);
    if (list)
        list->points = true;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        if (!mem_in_reservation(word))
            continue;
        struct slot *s = mem_lookup(word);
        if (!s || s->pins)
            continue;
        if ((rt.mode == MODE_REHEARSE || rt.mode == MODE_ENFORCE) && !(s->plan_buf >= 0 && ex.rec.bufs[s->plan_buf].pinned) &&
            s->kind == SLOT_LARGE)
            exec_diverge("an address in a copy", NULL);
        s->mark = ++rt.mark;
        if (!ready_slot(s, stream_index(c->stream)))
            s->pins++;
        log_say(SAY_DEBUG, "a buffer of %llu bytes is reached through a pointer array: it stays in memory", (unsigned long long)s->bytes);
    }
}

int eng_copy(const struct eng_copy *c)
{
    struct rt_op op;
    pthread_mutex_lock(&lock);
    if (here())
        scan_for_pointers(c);
    op_from_copy(c, &op);
    int r = (c->kind != ENG_DTOH && nobodys(c->dst_dev)) || (c->kind != ENG_HTOD && nobodys(c->src_dev)) ? CUDA_ERROR_INVALID_VALUE
            : op.n_operands                                                                               ? eng_op(&op)
                                                                                                          : op_issue_drv(&op);
    pthread_mutex_unlock(&lock);
    return r;
}

bool eng_is_device_pointer(CUdeviceptr ptr)
{
    if (rt.ready && mem_in_reservation(ptr))
        return true;
    unsigned type = 0;
    return rt.drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr) == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE;
}

int eng_other(const char *name, CUstream stream, const struct eng_touch *touch, unsigned n_touch, int (*issue)(void *), void *ctx)
{
    struct rt_op op;
    pthread_mutex_lock(&lock);
    if (!here()) {
        pthread_mutex_unlock(&lock);
        return issue(ctx);
    }
    op_from_other(name, stream, touch, n_touch, issue, ctx, &op);
    int r = eng_op(&op);
    pthread_mutex_unlock(&lock);
    return r;
}

/* ---- questions -------------------------------------------------------------------------------------------------------------- */

int eng_mem_info(size_t *free_bytes, size_t *total_bytes)
{
    pthread_mutex_lock(&lock);
    if (!here()) {
        pthread_mutex_unlock(&lock);
        return rt.drv->cuMemGetInfo_v2(free_bytes, total_bytes);
    }
    uint64_t used = ((uint64_t)(rt.n_chunks - rt.n_gone - rt.n_free_chunks) << rt.shift) + rt.foreign_bytes;
    uint64_t avail = rt.limit_bytes > used ? rt.limit_bytes - used : 0;
    size_t real_free = 0, real_total = 0;
    int r = rt.drv->cuMemGetInfo_v2(&real_free, &real_total);
    uint64_t could = real_free + ((uint64_t)rt.n_free_chunks << rt.shift);
    if (avail > could)
        avail = could;
    /* evicted tensors still count as used for their owner: free + used must not pass the total */
    uint64_t total = avail + rt.live_bytes + rt.foreign_bytes;
    if (total < rt.limit_bytes)
        total = rt.limit_bytes;
    if (free_bytes)
        *free_bytes = avail;
    if (total_bytes)
        *total_bytes = total;
    pthread_mutex_unlock(&lock);
    return r;
}

int eng_address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr, int *res)
{
    if (!rt.ready || !mem_in_reservation(ptr))
        return 0;
    pthread_mutex_lock(&lock);
    struct slot *s = mem_lookup(ptr);
    *res = s ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    if (s && base)
        *base = s->va;
    if (s && bytes)
        *bytes = s->bytes;
    pthread_mutex_unlock(&lock);
    return 1;
}

int eng_pointer_attribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr, int *res)
{
    if (!rt.ready || !mem_in_reservation(ptr))
        return 0;
    pthread_mutex_lock(&lock);
    struct slot *s = mem_lookup(ptr);
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    int answered = s && data ? eng_query_attribute(data, attr, ptr, s, &r) : 1;
    pthread_mutex_unlock(&lock);
    *res = r;
    return answered;
}

/* ---- notes ------------------------------------------------------------------------------------------------------------------ */

void eng_note_kernel(CUkernel k)
{
    pthread_mutex_lock(&lock);
    func_note_kernel(k);
    pthread_mutex_unlock(&lock);
}

void eng_note_unload(void)
{
    pthread_mutex_lock(&lock);
    func_forget_all();
    pthread_mutex_unlock(&lock);
}

void eng_pin(CUdeviceptr ptr, size_t bytes, const char *why)
{
    (void)bytes; /* the whole allocation, whatever part of it is meant */
    pthread_mutex_lock(&lock);
    struct slot *s = rt.ready && mem_in_reservation(ptr) ? mem_lookup(ptr) : NULL;
    if (s && !s->pins) {
        if (rt.mode == MODE_REHEARSE || rt.mode == MODE_ENFORCE)
            exec_diverge(why, NULL);
        s->mark = ++rt.mark;
        if (!ready_slot(s, STREAM_FIRST_PROGRAM < rt.n_streams ? STREAM_FIRST_PROGRAM : STREAM_IN))
            s->pins++;
        log_say(SAY_DEBUG, "a buffer of %llu bytes stays in memory: %s", (unsigned long long)s->bytes, why);
    }
    pthread_mutex_unlock(&lock);
}

void eng_stream_destroyed(CUstream stream)
{
    pthread_mutex_lock(&lock);
    if (rt.ready)
        stream_forget(stream);
    pthread_mutex_unlock(&lock);
}

void eng_capture_begins(CUstream stream)
{
    pthread_mutex_lock(&lock);
    if (here()) {
        if (rt.mode == MODE_REHEARSE || rt.mode == MODE_ENFORCE)
            exec_diverge("a stream capture", NULL);
        for (uint32_t i = 0; i < rt.n_slots; i++)
            if (rt.slots[i].live) {
                rt.slots[i].mark = ++rt.mark;
                if (!ready_slot(&rt.slots[i], stream_index(stream)))
                    rt.slots[i].pins++;
            }
        rt.capturing = true;
    }
    pthread_mutex_unlock(&lock);
}

void eng_capture_ends(CUstream stream)
{
    (void)stream;
    pthread_mutex_lock(&lock);
    rt.capturing = false;
    pthread_mutex_unlock(&lock);
}

void eng_context_gone(CUdevice dev)
{
    pthread_mutex_lock(&lock);
    if (rt.ready && dev == rt.dev) {
        /* its memory and streams went with it; what the program still calls goes to the driver */
        atomic_store(&active, false);
        rt.active = false;
    }
    pthread_mutex_unlock(&lock);
}
