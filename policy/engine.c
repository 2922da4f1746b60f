/* The engine: every door ends here. One mutex; the mode decides who handles an op:
 *
 *   eng_launch -> eng_op -> campaign_op_drv -> exec_op_drv    a plan is in force: where a launch is decided
 *                                           -> learn_op_drv   an iteration is being measured
 *                                           -> run_plain_drv  everything else
 */
#include "policy/campaign.h"
#include "policy/engine_own.h"
#include "policy/learn/learn.h"
#include "policy/op/tensor_map.h"
#include "policy/plan/exec.h"
#include "policy/process/limits.h"
#include "policy/process/nvtx.h"
#include "policy/process/planner.h"
#include "policy/share/share.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LAUNCHES_BETWEEN = 256 /* two looks at whether the statistics are due; copies and allocations look as well */ };
struct process process;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool active;

/* ---- life ------------------------------------------------------------------------------------------------------- */

const char *rt_code_name(struct device *d, int code)
{
    const char *name = NULL;
    if (d->drv->cuGetErrorName)
        d->drv->cuGetErrorName((CUresult)code, &name);
    return name ? name : "unknown error";
}

bool eng_active(void) { return atomic_load_explicit(&active, memory_order_relaxed); }

void eng_loaded(void) { limits_at_load(); }
bool eng_may_hold(void) { return limits_may_hold(); }

int eng_start(const struct drv *drv)
{
    char err[256];
    const char *missing = NULL;
    log_init(getenv("REMAT_LOG"));
    process.started = true;
    limits_start();
    bool held = limits_hold();
    const char *disable = getenv("REMAT_DISABLE");
    if (disable && *disable && strcmp(disable, "0") != 0) {
        if (!held)
            return -ENOTSUP;
        log_say(SAY_WARN, "REMAT_DISABLE counts for nothing here: a maximum holds (%s)", limits_holder());
    }
    if (config_read(&process.cfg, err, sizeof err)) {
        if (!held) {
            log_say(SAY_ERROR, "%s: remat stands aside", err);
            return -EINVAL;
        }
        log_say(SAY_ERROR, "%s: it is left out, since a maximum holds (%s)", err, limits_holder());
    }
    nvtx_wanted = process.cfg.nvtx;
    process.drv = drv;
    if (!drv_complete(drv, &missing)) {
        log_say(SAY_WARN, "the driver has no %s (CUDA 11.2 or newer is needed): remat stands aside", missing);
        return -ENOSYS;
    }
    if (process.cfg.policy == POLICY_OFF && !process.cfg.trace_mode && !process.cfg.trace_out[0]) {
        if (!limits_bind())
            return -ENOTSUP;
        log_say(SAY_WARN, "--policy off is swap here: a maximum holds (%s)", limits_holder());
        process.cfg.policy = POLICY_SWAP;
    }
    process.status = status_open();
    if (process.status)
        snprintf(process.status->group, sizeof process.status->group, "%s", process.cfg.group);
    if (!drv->cuDeviceGetCount || drv->cuDeviceGetCount(&process.n_visible) != CUDA_SUCCESS)
        process.n_visible = 0;
    atomic_store(&active, true);
    return 0;
}

/* On the helper thread of share.c. The program may be between two of its driver calls for long. */
static void neighbour_asked(void)
{
    CUcontext before = NULL;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < process.n_dev && !process.finished; i++) {
        struct device *d = process.dev[i];
        if (!d->ready || d->gone || !share_called(d) || process.drv->cuCtxGetCurrent(&before) != CUDA_SUCCESS ||
            process.drv->cuCtxSetCurrent(d->ctx) != CUDA_SUCCESS)
            continue;
        campaign_give(d);
        process.drv->cuCtxSetCurrent(before);
    }
    pthread_mutex_unlock(&lock);
}

static int set_up(struct device *d)
{
    size_t total = 0;
    if (d->drv->cuCtxGetCurrent(&d->ctx) != CUDA_SUCCESS || d->drv->cuDeviceTotalMem_v2(&total, d->dev) != CUDA_SUCCESS)
        return -EIO;
    d->device_bytes = total;
    struct limits l;
    limits_decide(d->drv, d->cfg, d->dev, total, &l);
    d->limit_bytes = d->cfg->group[0] ? l.ceiling_bytes : l.limit_bytes; /* in a group its ledger is what is aimed at */
    d->ceiling_bytes = l.ceiling_bytes;
    int r = 0;
    if ((r = campaign_init(d)) || (r = learn_init(d)) || (r = foreign_init(d)) || (r = planner_init(d)) || (r = stats_init(d)) || (r = mem_init(d)) ||
        (r = stream_init(d)) || (r = swap_init(d)) || (r = share_init(d, neighbour_asked)))
        return r;
    d->plan_limit_bytes = d->limit_bytes;
    if (d->cfg->group[0])
        d->ceiling_bytes = d->limit_bytes;
    d->ready = true;
    char pci[STATUS_PCI] = "";
    if (d->drv->cuDeviceGetPCIBusId)
        d->drv->cuDeviceGetPCIBusId(pci, sizeof pci, d->dev);
    d->status = status_add_device(process.status, d->dev, pci);
    if (d->status) {
        status_store(&d->status->limit_bytes, d->limit_bytes);
        status_set_mode(d->status, device_mode_name(d, d->mode));
    }
    return 0;
}

/* With the lock held: the device of the calling thread's context, set up; NULL where remat stands aside. A thread that has had a
 * context on the only device there is is not asked about again: whatever context it has later is on that device. */
static struct device *here(void)
{
    static __thread bool on_the_only_one;
    CUdevice dev;
    if (on_the_only_one && process.dev[0]->ready && !process.dev[0]->gone)
        return process.dev[0];
    if (process.drv->cuCtxGetDevice(&dev) != CUDA_SUCCESS)
        return NULL; /* no context yet: a later call will have one */
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->dev == dev) {
            on_the_only_one = process.n_visible == 1;
            return process.dev[i]->ready && !process.dev[i]->gone ? process.dev[i] : NULL;
        }
    struct device *d = process.n_dev < MAX_DEVICES ? calloc(1, sizeof *d) : NULL;
    if (!d)
        return NULL;
    d->drv = process.drv;
    d->cfg = &process.cfg;
    d->dev = dev;
    d->primary = process.n_dev == 0;
    d->blocking_streams = process.blocking_streams;
    process.dev[process.n_dev++] = d;
    int r = set_up(d);
    if (r) {
        d->barred = limits_bind();
        if (d->barred)
            log_say(SAY_ERROR, "setting up device %d failed (%s): a maximum holds (%s), so the program gets no memory there", (int)dev,
                    strerror(-r), limits_holder());
        else
            log_say(SAY_WARN, "setting up device %d failed (%s): remat stands aside there, the program runs as without it", (int)dev,
                    strerror(-r));
        return NULL;
    }
    return d;
}

void engine_lock(void) { pthread_mutex_lock(&lock); }
void engine_unlock(void) { pthread_mutex_unlock(&lock); }
struct device *engine_here(void) { return here(); }

/* After here() has answered NULL: the device could not be set up, and may give nothing because of that. */
static bool barred_here(void)
{
    CUdevice dev;
    if (process.drv->cuCtxGetDevice(&dev) == CUDA_SUCCESS)
        for (unsigned i = 0; i < process.n_dev; i++)
            if (process.dev[i]->dev == dev)
                return process.dev[i]->barred;
    return false;
}

struct device *engine_holder(CUdeviceptr ptr)
{
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready && !process.dev[i]->gone && mem_in_reservation(process.dev[i], ptr))
            return process.dev[i];
    return NULL;
}

static atomic_bool finished;

void eng_finish_now(void)
{
    if (atomic_exchange(&finished, true) || !process.drv)
        return;
    /* Whoever has the lock may be this very thread, below the handler: then the counts are read as they stand. */
    bool locked = pthread_mutex_trylock(&lock) == 0;
    stats_keep_last(process.dev, process.n_dev);
    if (locked)
        pthread_mutex_unlock(&lock);
}

void eng_finish(void)
{
    if (atomic_exchange(&finished, true) || !process.drv)
        return;
    pthread_mutex_lock(&lock);
    process.finished = true;
    bool missing = process.cfg.trace_out[0];
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready) {
            planner_stop(process.dev[i]);
            missing &= learn_trace_missing(process.dev[i]);
        }
    if (missing)
        log_say(SAY_WARN, "no trace was written: the program ended before an iteration had been recognised and recorded (it takes "
                          "about four alike)");
    stats_write(&process.cfg, process.dev, process.n_dev);
    status_close(process.status);
    process.status = NULL;
    for (unsigned i = 0; i < process.n_dev; i++)
        process.dev[i]->status = NULL;
    pthread_mutex_unlock(&lock);
}

void eng_after_fork_child(void)
{
    atomic_store(&active, false);
    status_after_fork_child(process.status);
    stats_after_fork_child();
    process.status = NULL;
    process.drv = NULL; /* eng_finish in the child writes nothing */
    for (unsigned i = 0; i < process.n_dev; i++)
        share_after_fork_child(process.dev[i]);
}

const char *device_mode_name(const struct device *d, enum rt_mode m)
{
    static const char *const names[] = {"observe", "probe", "plan", "rehearse", "enforce", "swap"};
    return m == MODE_OBSERVE && d->cfg->policy == POLICY_SWAP ? "swap" : names[m];
}

const char *eng_mode_name(void)
{
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready)
            return device_mode_name(process.dev[i], process.dev[i]->whole_mode);
    return eng_active() ? "observe" : "off";
}

/* The planner is waited for with the mutex released: other threads of the program go on, without a plan. */
static void turn(struct device *d)
{
    campaign_turn(d);
    for (int ms; (ms = campaign_wait_ms(d)) > 0;) {
        uint64_t op_count = d->op_count;
        pid_t child = planner_child(d);
        pthread_mutex_unlock(&lock);
        planner_wait(child, ms);
        pthread_mutex_lock(&lock);
        campaign_answered(d, op_count);
    }
}

/* ---- managed memory ------------------------------------------------------------------------------------------------ */

static void say_no_room(struct device *d, uint64_t bytes)
{
    log_say(SAY_ERROR,
            "out of memory: an allocation of %llu MiB does not fit: limit %llu MiB, %llu MiB held by the program, %llu MiB of "
            "them cannot move; swapping may use %llu MiB of host memory (--host-swap); raise --limit",
            rt_mib(bytes), rt_mib(d->limit_bytes), rt_mib(d->live_bytes + d->foreign_bytes),
            rt_mib(d->foreign_bytes + (mem_arena_chunks(d) << d->shift)), rt_mib(d->host_limit_bytes));
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

int eng_alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    int r = CUDA_SUCCESS;
    struct device *d = here();
    if (!d && barred_here())
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!d || d->capturing) {
        pthread_mutex_unlock(&lock);
        return r ? r : pool ? (int)process.drv->cuMemAllocFromPoolAsync(out, bytes, pool, stream)
                    : (int)process.drv->cuMemAllocAsync(out, bytes, stream);
    }
    turn(d);
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
        *out = s->va;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

static void free_slot(struct device *d, struct slot *s)
{
    bool kept = campaign_follows_plan(d) && exec_free(d, s);
    if (kept)
        return;
    learn_free(d, s);
    mem_slot_free(d, s);
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
    pthread_mutex_lock(&lock);
    struct device *d = detach(ptr, &bytes, &is_range);
    pthread_mutex_unlock(&lock);
    int r = stream ? process.drv->cuMemFreeAsync(ptr, stream) : process.drv->cuMemFree_v2(ptr);
    pthread_mutex_lock(&lock);
    if (d && r == CUDA_SUCCESS)
        uncount(d, bytes);
    else if (d)
        foreign_add(d, ptr, bytes, is_range);
    pthread_mutex_unlock(&lock);
    return r;
}

int eng_free_async(CUdeviceptr ptr, CUstream stream)
{
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    struct device *d = engine_holder(ptr);
    if (!d) {
        pthread_mutex_unlock(&lock);
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
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    struct device *d = here();
    if (!d) {
        pthread_mutex_unlock(&lock);
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
        struct device *d = here();
        if (d)
            d->pool_high = d->live_bytes;
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
    for (unsigned k = 0; k < process.n_dev; k++) {
        process.dev[k]->current_pool = NULL; /* where it was this one, the driver has gone back to its default */
        for (uint32_t i = 0; i < process.dev[k]->n_slots; i++)
            if (process.dev[k]->slots[i].pool == pool)
                process.dev[k]->slots[i].pool = NULL;
    }
    pthread_mutex_unlock(&lock);
}

void eng_pool_chosen(void)
{
    pthread_mutex_lock(&lock);
    for (unsigned k = 0; k < process.n_dev; k++)
        process.dev[k]->current_pool = NULL;
    pthread_mutex_unlock(&lock);
}

/* ---- other memory -------------------------------------------------------------------------------------------------------- */

int eng_foreign_reserve(size_t bytes)
{
    int r = CUDA_SUCCESS;
    bytes = foreign_counted(bytes);
    pthread_mutex_lock(&lock);
    struct device *d = here();
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
    } else if (barred_here()) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

void eng_foreign_commit(uint64_t key, size_t bytes, bool is_range)
{
    pthread_mutex_lock(&lock);
    struct device *d = here();
    if (d)
        foreign_add(d, key, bytes, is_range);
    pthread_mutex_unlock(&lock);
}

void eng_foreign_cancel(size_t bytes)
{
    bytes = foreign_counted(bytes);
    pthread_mutex_lock(&lock);
    struct device *d = here();
    if (d)
        uncount(d, bytes);
    pthread_mutex_unlock(&lock);
}

void eng_foreign_free(uint64_t key)
{
    uint64_t bytes = 0;
    bool is_range;
    pthread_mutex_lock(&lock);
    struct device *d = detach(key, &bytes, &is_range);
    if (d)
        uncount(d, bytes);
    pthread_mutex_unlock(&lock);
}

/* Reached unseen from now on. Where it cannot be brought into memory the call at hand must fail: whoever follows the address
 * would read another tensor's memory. */
static int pin_drv(struct device *d, struct slot *s, const char *why)
{
    if (campaign_follows_plan(d))
        campaign_leave(d, why);
    if (d->ex->code)
        return d->ex->code;
    if (!ready_pin(d, s))
        return CUDA_SUCCESS;
    if (d->broken)
        return d->broken;
    log_say(SAY_ERROR, "out of memory: %llu MiB must stay in memory from now on (%s), and no room can be made; limit %llu MiB; raise --limit",
            rt_mib(s->bytes), why, rt_mib(d->limit_bytes));
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static int pin_all_drv(struct device *d)
{
    int r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < d->n_slots && !r; i++)
        if (d->slots[i].live && !d->slots[i].pins && d->slots[i].kind != SLOT_FOREIGN)
            r = pin_drv(d, &d->slots[i], "work whose addresses cannot be seen");
    return r;
}

/* ---- work ------------------------------------------------------------------------------------------------------------------ */

/* turn() has been called before the op was built: it may release the mutex, and ops are built in one place. */
static int eng_op(struct device *d, struct rt_op *op)
{
    int r = campaign_op_drv(d, op);
    d->op_count++;
    return r;
}

int eng_launch(const struct eng_kernel *k)
{
    struct rt_op op;
    pthread_mutex_lock(&lock);
    struct device *d = here();
    if (!d) {
        int r = op_pass_drv(process.drv, k);
        pthread_mutex_unlock(&lock);
        return r;
    }
    d->timing = (++d->st.launches & 63) == 0;
    uint64_t began = d->timing ? stats_now_ns() : 0;
    d->issue_ns = 0;
    int r = CUDA_SUCCESS;
    if (campaign_launch_drv(d, k, &r))
        d->op_count++;
    else if (turn(d), !(r = op_from_kernel(d, k, &op)))
        r = eng_op(d, &op);
    else {
        log_once(SAY_WARN, "the parameters of a kernel cannot be read (%s): a driver of CUDA 12.4 or newer is needed; "
                               "nothing is evicted from now on", func_of(d, k->func) ? func_of(d, k->func)->name : "?");
        campaign_leave(d, "a kernel whose parameters cannot be read");
        r = pin_all_drv(d);
        if (!r)
            r = op_pass_drv(d->drv, k);
        for (uint32_t i = 0; i < d->n_slots; i++) /* it may have written any of them */
            if (d->slots[i].live) {
                d->slots[i].written = true;
                d->slots[i].watched = false;
            }
    }
    if (d->timing) {
        uint64_t all = stats_now_ns() - began;
        d->st.hook_ns += all > d->issue_ns ? all - d->issue_ns : 0;
        d->st.hook_launches++;
        d->timing = false;
    }
    if (d->st.launches % LAUNCHES_BETWEEN == 0)
        stats_keep(&process.cfg, process.dev, process.n_dev);
    pthread_mutex_unlock(&lock);
    return r;
}

/* An address of ours that nobody holds now: the driver, which knows the reservation, would only say so when it is too late. */
static bool nobodys(struct device *d, CUdeviceptr p) { return mem_in_reservation(d, p) && !mem_lookup(d, p); }

int eng_memset(const struct eng_memset *m)
{
    struct rt_op op;
    pthread_mutex_lock(&lock);
    struct device *d = here();
    if (!d) {
        int r = op_pass_memset_drv(process.drv, m);
        pthread_mutex_unlock(&lock);
        return r;
    }
    turn(d);
    op_from_memset(d, m, &op);
    int r = nobodys(d, m->dst) ? CUDA_ERROR_INVALID_VALUE : op.n_operands ? eng_op(d, &op) : op_issue_drv(d, &op);
    pthread_mutex_unlock(&lock);
    return r;
}

static int pin_at_drv(CUdeviceptr ptr, const char *why)
{
    struct device *d = engine_holder(ptr);
    struct slot *s = d ? mem_lookup(d, ptr) : NULL;
    if (!s || s->pins)
        return CUDA_SUCCESS;
    log_say(SAY_DEBUG, "a buffer of %llu bytes stays in memory: %s", (unsigned long long)s->bytes, why);
    return pin_drv(d, s, why);
}

static struct slot *slot_at(struct device *d, CUdeviceptr p) { return mem_in_reservation(d, p) ? mem_lookup(d, p) : foreign_lookup(d, p); }

/* A copy takes its address along: it stays in memory. A plan that was made for that goes on. */
static int pin_reached_drv(struct device *d, struct slot *s, const char *why)
{
    if (s->pins)
        return CUDA_SUCCESS;
    bool planned = !campaign_follows_plan(d) || (s->plan_buf >= 0 && d->ex->rec.bufs[s->plan_buf].pinned) || s->kind != SLOT_LARGE;
    int r = !planned ? pin_drv(d, s, "an address in a copy") : ready_pin(d, s) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    if (!r)
        log_say(SAY_DEBUG, "a buffer of %llu bytes is reached through %s: it stays in memory", (unsigned long long)s->bytes, why);
    return r;
}

/* The first word at or after `i` that lies in the reservation; `words`: none does. Most words are told apart from addresses by their
 * upper halves, eight at a time. */
static size_t next_address(const struct device *d, const unsigned char *p, size_t i, size_t words)
{
    typedef uint32_t halves __attribute__((vector_size(16))); /* of two words: lower, upper, lower, upper */
    uint32_t low = (uint32_t)(d->base >> 32), span = (uint32_t)((d->base + d->reserve_bytes - 1) >> 32) - low;
    const halves from = {0, low, 0, low}, most = {0, span, 0, span}, upper = {0, ~0u, 0, ~0u};
    for (; i + 8 <= words; i += 8) {
        halves h[4];
        memcpy(h, p + 8 * i, sizeof h);
        halves hit = (halves)((h[0] - from <= most) | (h[1] - from <= most) | (h[2] - from <= most) | (h[3] - from <= most)) & upper;
        if (hit[1] | hit[3])
            break;
    }
    for (; i < words; i++) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        if (mem_in_reservation(d, word))
            break;
    }
    return i;
}

/* Pointers may travel to the device in arrays: what they point at can be used by any later launch, unseen. Numbers may
 * look like addresses (two 32-bit ones side by side): in a long copy one word in DENSE must, or it is none. */
static int scan_for_pointers(struct device *d, const struct eng_copy *c)
{
    enum { SCAN_MAX_BYTES = 1 << 20, SHORT_WORDS = 64, DENSE = 8 };
    if (c->kind != ENG_HTOD || c->bytes > SCAN_MAX_BYTES || !c->src_host)
        return CUDA_SUCCESS;
    const unsigned char *p = c->src_host;
    size_t words = c->bytes / 8, hits = 0, starts = 0;
    for (size_t at = 0; tensor_map_any() && at + TENSOR_MAP_BYTES <= c->bytes; at += 8) {
        uint64_t shape;
        CUdeviceptr to = tensor_map_at(p + at, &shape);
        struct slot *s = to && mem_in_reservation(d, to) ? mem_lookup(d, to) : NULL, *list = s ? slot_at(d, c->dst_dev) : NULL;
        int r = s ? pin_reached_drv(d, s, "a tensor map in memory") : CUDA_SUCCESS;
        if (r)
            return r;
        if (list)
            list->points = true;
    }
    for (size_t i = next_address(d, p, 0, words); i < words; i = next_address(d, p, i + 1, words)) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        const struct slot *s = mem_lookup(d, word);
        hits += s != NULL;
        starts += s && word == s->va;
    }
    if (!hits || (words > SHORT_WORDS && hits * DENSE < words && starts < 2))
        return CUDA_SUCCESS;
    struct slot *list = slot_at(d, c->dst_dev);
    if (list)
        list->points = true;
    for (size_t i = next_address(d, p, 0, words); i < words; i = next_address(d, p, i + 1, words)) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        struct slot *s = mem_lookup(d, word);
        int r = s ? pin_reached_drv(d, s, "a pointer array") : CUDA_SUCCESS;
        if (r)
            return r;
    }
    return CUDA_SUCCESS;
}

int eng_copy(const struct eng_copy *c)
{
    struct rt_op op;
    pthread_mutex_lock(&lock);
    struct device *d = here();
    if (!d) {
        int r = op_pass_copy_drv(process.drv, c);
        pthread_mutex_unlock(&lock);
        return r;
    }
    turn(d);
    int r = scan_for_pointers(d, c);
    if (r) {
        pthread_mutex_unlock(&lock);
        return r;
    }
    op_from_copy(d, c, &op);
    r = (c->kind != ENG_DTOH && nobodys(d, c->dst_dev)) || (c->kind != ENG_HTOD && nobodys(d, c->src_dev)) ? CUDA_ERROR_INVALID_VALUE
            : op.n_operands                                                                               ? eng_op(d, &op)
                                                                                                          : op_issue_drv(d, &op);
    stats_keep(&process.cfg, process.dev, process.n_dev);
    pthread_mutex_unlock(&lock);
    return r;
}

bool eng_is_device_pointer(CUdeviceptr ptr)
{
    if (engine_holder(ptr))
        return true;
    unsigned type = 0;
    return process.drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr) == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE;
}

int eng_other(const char *name, CUstream stream, const struct eng_touch *touch, unsigned n_touch, int (*issue)(void *), void *ctx)
{
    struct rt_op op;
    pthread_mutex_lock(&lock);
    struct device *d = here();
    if (!d) {
        pthread_mutex_unlock(&lock);
        return issue(ctx);
    }
    turn(d);
    op_from_other(d, name, stream, touch, n_touch, issue, ctx, &op);
    int r = eng_op(d, &op);
    pthread_mutex_unlock(&lock);
    return r;
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

int eng_pin(CUdeviceptr ptr, size_t bytes, const char *why)
{
    (void)bytes; /* the whole allocation, whatever part of it is meant */
    pthread_mutex_lock(&lock);
    int r = pin_at_drv(ptr, why);
    pthread_mutex_unlock(&lock);
    return r;
}

int eng_note_tensor_map(const CUtensorMap *map, CUdeviceptr ptr, const CUtensorMap *shape)
{
    unsigned what = 0;
    pthread_mutex_lock(&lock);
    int r = CUDA_SUCCESS;
    if (!shape || tensor_map_note(map, ptr, shape) ||
        (process.drv->cuPointerGetAttribute(&what, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)map) == CUDA_SUCCESS && what))
        r = pin_at_drv(ptr, "a tensor map that may be read where nobody sees it");
    pthread_mutex_unlock(&lock);
    return r;
}

void eng_note_stream(unsigned flags)
{
    if (flags & CU_STREAM_NON_BLOCKING)
        return;
    pthread_mutex_lock(&lock);
    process.blocking_streams = true;
    for (unsigned i = 0; i < process.n_dev; i++)
        process.dev[i]->blocking_streams = true;
    pthread_mutex_unlock(&lock);
}

void eng_stream_destroyed(CUstream stream)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready && !process.dev[i]->gone)
            stream_forget(process.dev[i], stream);
    pthread_mutex_unlock(&lock);
}

int eng_capture_begins(CUstream stream)
{
    (void)stream;
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    struct device *d = here();
    if (d) {
        campaign_leave(d, "a stream capture");
        r = pin_all_drv(d);
        d->capturing = !r;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

void eng_capture_ends(CUstream stream)
{
    (void)stream;
    pthread_mutex_lock(&lock);
    struct device *d = here();
    if (d)
        d->capturing = false;
    pthread_mutex_unlock(&lock);
}

void eng_context_gone(CUdevice dev)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->dev == dev)
            process.dev[i]->gone = true; /* its memory and streams went with it; what the program still calls goes to the driver */
    pthread_mutex_unlock(&lock);
}
