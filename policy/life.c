/* Starting and ending, a device set up, the child of a fork; what is told at exit. */
#include "policy/campaign.h"
#include "policy/engine_own.h"
#include "policy/learn/learn.h"
#include "policy/learn/trial.h"
#include "policy/memory/aside.h"
#include "policy/memory/decoy.h"
#include "policy/op/op.h"
#include "policy/process/limits.h"
#include "policy/process/nvtx.h"
#include "policy/process/planner.h"
#include "policy/share/share.h"
#include "tracer/output.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process process;
pthread_mutex_t engine_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool active;
_Thread_local enum eng_stack eng_stack_used;
atomic_bool eng_stack_matters;

bool eng_active(void) { return atomic_load_explicit(&active, memory_order_relaxed); }

void eng_loaded(void) { limits_at_load(); }

void eng_unused(void)
{
    const char *name = getenv("REMAT_TRACE_OUT"), *first = getenv("REMAT_RUN_PID");
    /* with %p or %r the names of other processes are not known here */
    if (!name || !*name || strchr(name, '%') || !first || strtol(first, NULL, 10) != getpid() || !output_is_file(name, OUTPUT_RUN) ||
        output_is_of_run(name))
        return;
    log_say(SAY_WARN, "no trace was written: the program used no GPU, and nothing that it started wrote one; `remat doctor` says whether a GPU can be used");
}

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
    eng_stack_matters = process.cfg.trace_mode || process.cfg.trace_out[0] || process.cfg.plan_path[0];
    atomic_store(&active, true);
    return 0;
}

/* On the helper thread of share.c. The program may be between two of its driver calls for long. */
static void neighbour_asked(void)
{
    CUcontext before = NULL;
    engine_lock();
    for (unsigned i = 0; i < process.n_dev && !process.finished; i++) {
        struct device *d = process.dev[i];
        if (!d->ready || d->gone || !share_called(d) || process.drv->cuCtxGetCurrent(&before) != CUDA_SUCCESS ||
            process.drv->cuCtxSetCurrent(d->ctx) != CUDA_SUCCESS)
            continue;
        campaign_give(d);
        process.drv->cuCtxSetCurrent(before);
    }
    engine_unlock();
}

int engine_set_up(struct device *d)
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
    if (!d->status)
        d->status = status_add_device(process.status, d->dev, pci);
    if (d->status) {
        status_store(&d->status->limit_bytes, d->limit_bytes);
        status_set_mode(d->status, device_mode_name(d, d->mode));
    }
    return 0;
}

void engine_end(struct device *d)
{
    planner_stop(d);
    engine_pools_end(d);
    decoy_context_gone(d);
    aside_end(d);
    swap_end(d);
    const uint64_t kept_bytes = mem_end(d);
    foreign_context_gone(d);
    if (kept_bytes) { /* nobody has them, and they count */
        d->foreign_bytes += kept_bytes;
        foreign_add(d, 1ull << 63 | ++d->serial, kept_bytes, false);
    }
    d->ready = d->capturing = false;
    share_settle(d);
}

struct device *engine_begin_anew(struct device *old)
{
    struct device *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->drv = old->drv;
    d->cfg = old->cfg;
    d->dev = old->dev;
    d->primary = old->primary;
    d->serial = old->serial;
    d->foreign = old->foreign;
    d->foreign_bytes = old->foreign_bytes;
    d->graph_bytes = old->graph_bytes;
    d->share = old->share;
    d->status = old->status;
    d->st = old->st;
    old->share = NULL;
    old->foreign = NULL;
    return d;
}

static atomic_bool finished;

void eng_finish_now(void)
{
    if (atomic_exchange(&finished, true) || !process.drv)
        return;
    /* Whoever has the lock may be this very thread, below the handler: then the counts are read as they stand. */
    bool locked = pthread_mutex_trylock(&engine_mutex) == 0;
    stats_keep_last(process.dev, process.n_dev, eng_active());
    if (locked)
        engine_unlock();
}

void eng_finish(void)
{
    if (atomic_exchange(&finished, true) || !process.drv)
        return;
    engine_lock();
    process.finished = true;
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready)
            planner_stop(process.dev[i]);
    if (process.cfg.trace_out[0] && !learn_any_recorded())
        log_say(SAY_WARN, "no trace was written: the program ended before an iteration had been recognised and recorded (it takes "
                          "about four alike)");
    stats_write(&process.cfg, process.dev, process.n_dev, eng_active());
    status_close(process.status);
    process.status = NULL;
    for (unsigned i = 0; i < process.n_dev; i++)
        process.dev[i]->status = NULL;
    engine_unlock();
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
