/* life.c: see life.h. */
#include "policy/life.h"

#include "policy/active.h"
#include "policy/engine_state.h"
#include "policy/learn/learn.h"
#include "policy/process/closing.h"
#include "policy/process/limits.h"
#include "policy/process/nvtx.h"
#include "policy/process/planner.h"
#include "policy/process/stats.h"
#include "policy/share/share.h"
#include "tracer/output.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void eng_loaded(void) { limits_at_load(); }

/* A file of this process that was not written in this run. With %p or %r in the name, the names of other processes' files are not known here. */
static bool is_unwritten(const char *name)
{
    return name && *name && !strchr(name, '%') && output_is_file(name, OUTPUT_RUN) && !output_is_of_run(name);
}

/* True: this process has waited for a child, which, or one of whose children, may have used a GPU. */
static bool had_children(void)
{
    struct rusage u;
    return getrusage(RUSAGE_CHILDREN, &u) || u.ru_maxrss;
}

void eng_unused(void)
{
    const char *trace = getenv("REMAT_TRACE_OUT"), *stats = getenv("REMAT_STATS"), *limit = getenv("REMAT_LIMIT"), *first = getenv("REMAT_RUN_PID");
    char err[256];
    if (!first || strtol(first, NULL, 10) != getpid())
        return;
    if (is_unwritten(trace))
        log_say(SAY_WARN, "no trace was written: the program used no GPU, and nothing that it started wrote one; `remat doctor` says whether a GPU can be used");
    const bool asked = stats && *stats;
    if (is_unwritten(stats) && !config_read(&process.cfg, err, sizeof err)) {
        stats_write_nothing(&process.cfg, "unused", "the program used no GPU");
        log_say(SAY_WARN, "the program used no GPU, and neither did what it started: nothing was held; the statistics say so");
    } else if (!asked && limit && *limit && !had_children())
        log_say(SAY_WARN, "the program used no GPU: there was nothing to hold; `remat doctor` says whether a GPU can be used");
}

void eng_stood_aside(void)
{
    if (process.cfg.policy == POLICY_OFF)
        stats_write_nothing(&process.cfg, "off", "--policy off leaves the program alone, and counts nothing");
}

bool eng_may_hold(void) { return limits_may_hold(); }

void eng_before_start(void)
{
    log_init(getenv("REMAT_LOG"));
    limits_start();
}

void eng_after_start(void)
{
    if (nvtx_wanted)
        nvtx_load();
}

int eng_start(const struct drv *drv)
{
    char err[256];
    const char *missing = NULL;
    process.started = true;
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
    active_set(true);
    return 0;
}

static atomic_bool finished;

void eng_finish_now(void)
{
    if (atomic_exchange(&finished, true) || !process.drv)
        return;
    /* The lock may be held by this very thread, below the handler: the counts are then read as they stand. */
    bool locked = loader_trylock(&engine_mutex);
    stats_keep_last(process.dev, process.n_dev, eng_active());
    closing_say(&process.cfg, process.dev, process.n_dev);
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
    closing_say(&process.cfg, process.dev, process.n_dev);
    status_close(process.status);
    process.status = NULL;
    for (unsigned i = 0; i < process.n_dev; i++)
        process.dev[i]->status = NULL;
    engine_unlock();
}

void eng_after_fork_child(void)
{
    active_set(false);
    status_after_fork_child(process.status);
    stats_after_fork_child();
    process.status = NULL;
    process.drv = NULL; /* eng_finish in the child writes nothing */
    for (unsigned i = 0; i < process.n_dev; i++)
        share_after_fork_child(process.dev[i]);
}
