/* The engine: every door ends here, or in allocations.c, reach.c, answers.c, life.c. One mutex; the mode decides who handles an op:
 *
 *   eng_launch -> engine_op_drv -> campaign_op_drv -> exec_op_drv    a plan is in force: where a launch is decided
 *                                                  -> learn_op_drv   an iteration is being measured
 *                                                  -> run_plain_drv  everything else
 */
#include "policy/engine.h"

#include "policy/campaign.h"
#include "policy/capture.h"
#include "policy/current.h"
#include "policy/engine_here.h"
#include "policy/engine_state.h"
#include "policy/engine_turn.h"
#include "policy/iteration.h"
#include "policy/memory/slot.h"
#include "policy/op/code.h"
#include "policy/op/op.h"
#include "policy/op/ready.h"
#include "policy/process/stats.h"
#include "policy/reach.h"
#include "policy/process/limits.h"
#include "policy/unmet.h"
#include "tracer/known/image.h"
#include "tracer/plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TIMED_EACH = 61 /* one launch in so many; a prime, so that in the course of iterations each launch has its turn */ };
enum { LAUNCHES_BETWEEN = 256 /* two looks at whether statistics are due; copies and allocations look as well */ };

/* Work that may touch, and write, all live memory is about to run: all of it is pinned. */
static int pin_for_unseen_drv(struct device *d, const char *why)
{
    struct engine_visit v = engine_visit(d); /* values are rebuilt in the device's own context */
    campaign_leave(d, why);
    int r = reach_pin_all_drv(d);
    engine_return(v);
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        if (d->mem.slots[i].live) {
            d->mem.slots[i].written = true;
            d->mem.slots[i].watched = false;
        }
    return r;
}

/* Returns as op_from_kernel(), or a code of the driver's. */
static int build_launch(struct device *d, const struct eng_kernel *k, struct rt_op *op)
{
    int r;
    do {
        engine_turn(d);
        r = op_from_kernel(d, k, op);
        if (!r && (op->in_place || op->odd))
            r = reach_follow_drv(d, op);
    } while (!r && engine_waited(d, op));
    return r;
}

int eng_launch(const struct eng_kernel *k)
{
    struct rt_op op;
    engine_lock();
    struct device *d = engine_here();
    if (!d) {
        int r = op_pass_drv(process.drv, k);
        engine_unlock();
        return r;
    }
    d->timing = ++d->st.launches % TIMED_EACH == 0;
    uint64_t began = d->timing ? stats_now_ns() : 0;
    const uint64_t measured = d->st.launches_tried + d->st.launches_looked_at;
    d->issue_ns = 0;
    int r = CUDA_SUCCESS;
    if ((k->params || k->extra) && unmet_none(d) && !engine_elsewhere(d) && campaign_launch_drv(d, k, &r)) {
        d->op_count++;
        if (d->ex->now.passed_on)
            eng_stack_used = ENG_STACK_LITTLE;
    } else if (!(r = build_launch(d, k, &op)))
        r = engine_op_drv(d, &op);
    else if (r == -EINVAL)
        r = op_pass_drv(d->drv, k);
    else if (r < 0) {
        log_once(SAY_WARN, "the parameters of a kernel cannot be read (%s): a driver of CUDA 12.4 or newer is needed; "
                               "nothing is evicted from now on", func_of(d, k->func) ? PLAIN_IN_LINE(func_of(d, k->func)->name) : "?");
        r = pin_for_unseen_drv(d, "a kernel whose parameters cannot be read");
        if (!r)
            r = op_pass_drv(d->drv, k);
    }
    if (d->timing && measured == d->st.launches_tried + d->st.launches_looked_at) { /* launches tried or looked at wait for the device */
        uint64_t all = stats_now_ns() - began;
        d->st.hook_ns += all > d->issue_ns ? all - d->issue_ns : 0;
        d->st.hook_launches++;
    }
    d->timing = false;
    if (d->st.launches % LAUNCHES_BETWEEN == 0)
        stats_keep(&process.cfg, process.dev, process.n_dev, eng_active());
    engine_unlock();
    return r;
}

/* Bytes from the first to the last one that is filled; UINT64_MAX where that overflows. */
static uint64_t filled_bytes(const struct eng_memset *m)
{
    uint64_t row, rows, all;
    if (!m->width || !m->height)
        return 0;
    if (__builtin_mul_overflow(m->width, (uint64_t)m->elem_bytes, &row) || __builtin_mul_overflow(m->height - 1, m->pitch_bytes, &rows) ||
        __builtin_add_overflow(row, rows, &all))
        return UINT64_MAX;
    return all;
}

/* A memset call without a stream returns when the fill is done, if the memory is the host's, pinned or managed. The host waits with the mutex free. */
static int end_memset(const struct eng_memset *m, int r)
{
    bool waits = !r && m->sync && !engine_holder(m->dst) && reach_host_reads(m->dst);
    return waits ? (int)process.drv->cuStreamSynchronize(m->stream) : r;
}

int eng_memset(const struct eng_memset *m)
{
    struct rt_op op;
    engine_lock();
    struct device *d = engine_here();
    int r = d && m->sync && process.n_captures ? stream_forbidden_drv(d) : CUDA_SUCCESS;
    if (!r)
        r = reach_keep_others_drv(d, m->dst, true);
    if (!d || r) {
        engine_unlock();
        return r ? r : end_memset(m, op_pass_memset_drv(process.drv, m));
    }
    do {
        engine_turn(d);
        op_from_memset(d, m, &op);
    } while (engine_waited(d, &op));
    reach_writes_unknown(d, m->dst);
    r = engine_nobodys(d, m->dst, filled_bytes(m)) ? CUDA_ERROR_INVALID_VALUE : op.n_operands ? engine_op_drv(d, &op) : op_issue_drv(d, &op);
    engine_unlock();
    return end_memset(m, r);
}

int eng_other(const char *name, CUstream stream, struct eng_touch *touch, unsigned n_touch, int (*issue)(void *), void *ctx)
{
    struct rt_op op;
    engine_lock();
    struct device *d = engine_here();
    int r = CUDA_SUCCESS;
    for (unsigned i = 0; i < n_touch && !r; i++)
        r = reach_keep_others_drv(d, touch[i].ptr, touch[i].mode & ENG_WRITE);
    for (unsigned i = 0; i < n_touch && d && !r; i++)
        r = touch[i].mode & ENG_EXACT && engine_nobodys(d, touch[i].ptr, touch[i].bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (!d || r) {
        engine_unlock();
        return r ? r : issue(ctx);
    }
    bool fits;
    do
        engine_turn(d);
    while ((fits = op_from_other(d, name, stream, touch, n_touch, issue, ctx, &op)) && engine_waited(d, &op));
    for (unsigned i = 0; i < n_touch; i++)
        if (touch[i].mode == ENG_WRITE || (touch[i].mode & ENG_WRITE && touch[i].mode & ENG_EXACT))
            reach_writes_unknown(d, touch[i].ptr); /* fills and copies only: no kernel knows by name the memory that collectives work on */
    if (fits)
        r = engine_op_drv(d, &op);
    else if (!(r = pin_for_unseen_drv(d, "a call that touches too much")))
        r = op_issue_drv(d, &op);
    engine_unlock();
    return r;
}

/* ---- notes ------------------------------------------------------------------------------------------------------------------ */

void eng_note_kernel(CUkernel k)
{
    engine_lock();
    func_note_kernel(k);
    engine_unlock();
}

/* The identity of code is never asked for: no facts are used, or none are kept for other runs. */
static bool forgets_facts(void) { return !process.cfg.cache_dir[0] || process.cfg.known == FACTS_OFF; }

struct eng_file eng_file_code(const char *path)
{
    struct known_code code;
    struct eng_file f = {{0, 0}, path && !forgets_facts() && image_file_code(path, &code)};
    if (f.known)
        memcpy(f.w, code.w, sizeof f.w);
    return f;
}

static void note_code(CUmodule module, CUlibrary library, const struct known_code *code)
{
    engine_lock();
    code_note(module, library, code);
    engine_unlock();
}

void eng_note_file(CUmodule module, CUlibrary library, const char *path, const struct eng_file *before)
{
    const struct eng_file now = eng_file_code(path);
    struct known_code code;
    memcpy(code.w, now.w, sizeof code.w);
    note_code(module, library, now.known && before->known && !memcmp(now.w, before->w, sizeof now.w) ? &code : NULL);
}

void eng_note_image(CUmodule module, CUlibrary library, const void *image)
{
    struct known_code code;
    note_code(module, library, !forgets_facts() && image_code(image, &code) ? &code : NULL);
}

void eng_note_variable(CUmodule module, CUlibrary library)
{
    engine_lock();
    code_is_named(module, library);
    engine_unlock();
}

void eng_before_unload(CUmodule module, CUlibrary library)
{
    engine_lock();
    for (unsigned i = 0; i < process.n_dev; i++) {
        struct device *d = process.dev[i];
        if (!d->ready || d->gone)
            continue;
        struct engine_visit v = engine_visit(d);
        CUmodule m = module;
        if (library && (!process.drv->cuLibraryGetModule || process.drv->cuLibraryGetModule(&m, library) != CUDA_SUCCESS))
            m = NULL;
        campaign_unloads(d, m, library);
        func_unload(process.drv, m, library);
        engine_return(v);
    }
    code_forget(module, library);
    engine_unlock();
}

void eng_note_unload(void)
{
    engine_lock();
    func_forget_all();
    engine_unlock();
}

void eng_note_stream(unsigned flags)
{
    if (flags & CU_STREAM_NON_BLOCKING)
        return;
    engine_lock();
    process.blocking_streams = true;
    for (unsigned i = 0; i < process.n_dev; i++)
        process.dev[i]->blocking_streams = true;
    engine_unlock();
}

void eng_stream_destroyed(CUstream stream)
{
    engine_lock();
    if (stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD)
        capture_stream_gone(stream);
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready && !process.dev[i]->gone)
            stream_forget(process.dev[i], stream);
    engine_unlock();
}

int eng_pin_everything(void)
{
    engine_lock();
    struct device *d = engine_here();
    const int r = d ? reach_all_stays_drv(d, "work whose addresses cannot be seen") : CUDA_SUCCESS;
    engine_unlock();
    return r;
}

/* Contexts of the program's own making. */
struct context {
    CUcontext ctx;
    CUdevice dev;
    int attached; /* count of its making, and of each cuCtxAttach */
    struct context *next;
};

static void context_forget(CUcontext ctx)
{
    for (struct context **at = &process.own_contexts; *at; at = &(*at)->next)
        if ((*at)->ctx == ctx) {
            struct context *c = *at;
            *at = c->next;
            free(c);
            return;
        }
}

void eng_note_context(CUcontext ctx, CUdevice dev)
{
    engine_lock();
    struct context *c = malloc(sizeof *c);
    if (c) {
        *c = (struct context){ctx, dev, 1, process.own_contexts};
        process.own_contexts = c;
    }
    engine_unlock();
}

int engine_context_attached(CUcontext ctx, int more)
{
    engine_lock();
    struct context *c = process.own_contexts;
    while (c && c->ctx != ctx)
        c = c->next;
    const int attached = c ? c->attached += more : 0;
    engine_unlock();
    return attached;
}

CUdevice engine_context_device(CUcontext ctx)
{
    CUcontext before = NULL;
    CUdevice dev = -1;
    if (!current_context(process.drv, &before) || !current_set(process.drv, ctx))
        return -1;
    if (current_device_drv(process.drv, &dev) != CUDA_SUCCESS)
        dev = -1;
    current_set(process.drv, before);
    return dev;
}

void eng_ending_begins(void)
{
    engine_lock(); /* a helper thread that is at work holds the mutex until its work ends */
    process.endings++;
    engine_unlock();
}

void eng_ending_is_over(void)
{
    engine_lock();
    process.endings--;
    engine_unlock();
}

void eng_context_ends(CUcontext ctx)
{
    engine_lock();
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready && !process.dev[i]->gone && process.dev[i]->ctx != ctx)
            stream_context_ends(process.dev[i], ctx);
    engine_unlock();
}

/* True: the device has another context, so its memory stays: memory is the device's, not a context's. */
static bool others_are_there(struct device *d, bool was_primary)
{
    unsigned flags;
    int active = 0;
    for (const struct context *c = process.own_contexts; c; c = c->next)
        if (c->dev == d->dev)
            return true;
    return !was_primary && process.drv->cuDevicePrimaryCtxGetState &&
           process.drv->cuDevicePrimaryCtxGetState(d->dev, &flags, &active) == CUDA_SUCCESS && active;
}

void eng_context_gone(CUcontext ctx, bool was_primary)
{
    engine_lock();
    func_forget_all(); /* the context's modules went with it, without an unload */
    process.context_ended = true;
    context_forget(ctx);
    for (unsigned i = 0; i < process.n_dev; i++) {
        struct device *d = process.dev[i];
        if (d->ctx != ctx || d->gone || d->ended)
            continue;
        d->gone = true; /* the context's streams went with it; later calls of the program go to the driver */
        capture_device_ends(d);
        d->ended = d->ready && !process.finished && !others_are_there(d, was_primary);
        CUcontext left = NULL;
        CUdevice dev;
        if (d->ended && current_context(process.drv, &left) && (!left || process.drv->cuCtxGetDevice(&dev) == CUDA_SUCCESS))
            engine_end_here(d); /* where the driver takes no call, this is done when the device begins anew */
    }
    engine_unlock();
}
