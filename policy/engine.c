/* The engine: every door ends here, or in allocations.c, reach.c, answers.c. One mutex; the mode decides who handles an op:
 *
 *   eng_launch -> engine_op_drv -> campaign_op_drv -> exec_op_drv    a plan is in force: where a launch is decided
 *                                                  -> learn_op_drv   an iteration is being measured
 *                                                  -> run_plain_drv  everything else
 */
#include "policy/campaign.h"
#include "policy/engine_own.h"
#include "policy/memory/audit.h"
#include "policy/op/ready.h"
#include "policy/plan/exec.h"
#include "policy/op/tensor_map.h"
#include "policy/process/check.h"
#include "policy/process/limits.h"
#include "policy/process/planner.h"
#include "tracer/plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TIMED_EACH = 61 /* launches; a prime, so that in the course of iterations each has its turn */ };
enum { AUDIT_OPS = 1 << 16 /* between two looks at all of memory's bookkeeping */ };
enum { LAUNCHES_BETWEEN = 256 /* two looks at whether the statistics are due; copies and allocations look as well */ };

static struct device *set_up(struct device *d)
{
    const CUdevice dev = d->dev;
    d->blocking_streams = process.blocking_streams;
    int r = engine_set_up(d);
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

/* With the lock held: the device of the calling thread's context, set up; NULL where remat stands aside. A thread that has had a
 * context on the only device there is is not asked about again: whatever context it has later is on that device. */
struct device *engine_here(void)
{
    static __thread bool on_the_only_one;
    CUdevice dev;
    if (on_the_only_one && process.dev[0]->ready && !process.dev[0]->gone)
        return process.dev[0];
    if (process.drv->cuCtxGetDevice(&dev) != CUDA_SUCCESS)
        return NULL; /* no context yet: a later call will have one */
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->dev == dev) {
            if (process.dev[i]->ended) {
                if (process.dev[i]->ready)
                    engine_end(process.dev[i]);
                struct device *d = engine_begin_anew(process.dev[i]);
                return d ? set_up(process.dev[i] = d) : NULL;
            }
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
    process.dev[process.n_dev++] = d;
    return set_up(d);
}

/* After engine_here() has answered NULL: the device could not be set up, and may give nothing because of that. */
bool engine_barred_here(void)
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

struct engine_visit engine_visit(struct device *d)
{
    struct engine_visit v = {NULL, false};
    v.away = process.drv->cuCtxGetCurrent(&v.before) == CUDA_SUCCESS && v.before != d->ctx && process.drv->cuCtxSetCurrent(d->ctx) == CUDA_SUCCESS;
    return v;
}

void engine_return(struct engine_visit v)
{
    if (v.away)
        process.drv->cuCtxSetCurrent(v.before);
}

bool engine_elsewhere(struct device *d)
{
    CUcontext here = NULL;
    return process.contexts && (process.drv->cuCtxGetCurrent(&here) != CUDA_SUCCESS || here != d->ctx);
}

/* An op from another context of the device. What it touches is brought into memory in the device's own context, and the host waits for
 * that; then for the op. So nothing has to be ordered between the two, whose legacy streams share a name. Slow, and right. */
static int op_elsewhere_drv(struct device *d, struct rt_op *op)
{
    bool managed = false;
    uint32_t lost = 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        managed |= op->operands[i].slot->kind != SLOT_FOREIGN;
    struct engine_visit v = engine_visit(d);
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].slot->kind == SLOT_FOREIGN && op->operands[i].mode != REC_READ && !op->operands[i].slot->pins) {
            op->operands[i].slot->pins = 1;
            campaign_distrusts(d, "memory is changed in another context");
        }
    if (!managed || d->capturing) { /* while there is a capture nothing moves */
        engine_return(v);
        return op_issue_drv(d, op);
    }
    campaign_stop(d, "the program works in several contexts of one device");
    int r = d->ex->now.code ? d->ex->now.code : ready_op(d, op, &lost);
    if (r < 0)
        r = r == -ENODATA ? CUDA_ERROR_UNKNOWN : ready_refused_drv(d, op);
    if (!r)
        r = (int)process.drv->cuCtxSynchronize();
    engine_return(v);
    if (r)
        return r;
    r = op_issue_drv(d, op);
    CUresult waited = process.drv->cuStreamSynchronize(op->stream);
    ready_done(d, op, true);
    return r ? r : (int)waited;
}

/* A check has failed (process/check.h). Where memory itself is in doubt nothing moves any more: what finds no room on the device now comes
 * there when an op touches it. */
static void stand_back(struct device *d)
{
    uint32_t left = 0;
    d->doubt_met = d->doubt;
    campaign_stop(d, "a check of remat's own failed");
    for (uint32_t i = 0; i < d->n_slots && d->doubt == DOUBT_MEMORY; i++)
        if (d->slots[i].live && d->slots[i].kind == SLOT_LARGE && !d->slots[i].pins)
            left += ready_pin(d, &d->slots[i]) != 0;
    if (left)
        log_say(SAY_WARN, "%u buffers find no room on the device: they come and go as they are used", left);
}

/* The planner is waited for with the mutex released: other threads of the program go on, without a plan. */
void engine_turn(struct device *d)
{
    if (engine_elsewhere(d))
        return;
    if (d->pressed && !atomic_load_explicit(&eng_stack_matters, memory_order_relaxed))
        eng_stack_matters = true;
    if (d->op_count - d->audited_op >= AUDIT_OPS) {
        d->audited_op = d->op_count;
        audit_memory(d);
    }
    if (d->doubt != d->doubt_met && !d->capturing)
        stand_back(d);
    campaign_turn(d);
    uint64_t began = 0;
    for (int ms; (ms = campaign_wait_ms(d)) > 0;) {
        began = began ? began : stats_now_ns();
        uint64_t op_count = d->op_count;
        pid_t child = planner_child(d);
        engine_unlock();
        planner_wait(child, ms, began);
        engine_lock();
        campaign_answered(d, op_count);
    }
    if (began)
        log_passed();
}

bool engine_begins_again(struct device *d, int rc)
{
    struct host_wait w;
    if (!fence_put_off_ends(d, &w))
        return false;
    if (!rc) { /* something else has served */
        fence_waited(d, &w, false);
        return false;
    }
    engine_unlock();
    const bool passed = process.drv->cuEventSynchronize(w.event) == CUDA_SUCCESS;
    engine_lock();
    fence_waited(d, &w, passed);
    return passed;
}

bool engine_waited(struct device *d, struct rt_op *op)
{
    uint32_t lost = 0;
    uint32_t ready = 0;
    while (ready < op->n_operands && !d->cfg->rehearse_unmapped && ready_operand(&op->operands[ready], op->t))
        ready++;
    if (ready == op->n_operands || engine_elsewhere(d) || !campaign_runs_plainly(d, op))
        return false;
    fence_put_off(d);
    return engine_begins_again(d, ready_op(d, op, &lost)); /* what it cannot do now is found out again, and said, when the op runs */
}

/* engine_turn() has been called before the op was built: it may release the mutex, and ops are built in one place. */
int engine_op_drv(struct device *d, struct rt_op *op)
{
    int r = engine_elsewhere(d) ? op_elsewhere_drv(d, op) : campaign_op_drv(d, op);
    d->op_count += !op_reads_for_host(op);
    return r;
}

/* Something that may touch, and write, all that is live is about to run. */
static int pin_for_unseen_drv(struct device *d, const char *why)
{
    struct engine_visit v = engine_visit(d); /* what is rebuilt is rebuilt in the device's own context */
    campaign_leave(d, why);
    int r = engine_pin_all_drv(d);
    engine_return(v);
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slots[i].live) {
            d->slots[i].written = true;
            d->slots[i].watched = false;
        }
    return r;
}

/* As op_from_kernel(), or a code of the driver's. */
static int build_launch(struct device *d, const struct eng_kernel *k, struct rt_op *op)
{
    int r;
    do {
        engine_turn(d);
        r = op_from_kernel(d, k, op);
        if (!r && (op->in_place || op->odd))
            r = engine_follow_drv(d, op);
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
    if ((k->params || k->extra) && !engine_elsewhere(d) && campaign_launch_drv(d, k, &r)) {
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
    if (d->timing && measured == d->st.launches_tried + d->st.launches_looked_at) { /* those wait for the device */
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

bool engine_nobodys(struct device *d, CUdeviceptr p, uint64_t bytes)
{
    if (!mem_in_reservation(d, p))
        return false;
    const struct slot *s = mem_lookup(d, p);
    uint64_t room = s ? mem_slot_room(d, s) : 0;
    return !s || p - s->va > room || bytes > room - (p - s->va);
}

/* From the first to the last byte that is filled; more than there is memory where it is more than can be counted. */
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

/* The calls without a stream return when it is done, if the memory is the host's, pinned or managed. The host waits with the mutex free. */
static int end_memset(const struct eng_memset *m, int r)
{
    bool waits = !r && m->sync && !engine_holder(m->dst) && engine_host_reads(m->dst);
    return waits ? (int)process.drv->cuStreamSynchronize(m->stream) : r;
}

int eng_memset(const struct eng_memset *m)
{
    struct rt_op op;
    engine_lock();
    struct device *d = engine_here();
    int r = engine_keep_others_drv(d, m->dst, true);
    if (!d || r) {
        r = r ? r : op_pass_memset_drv(process.drv, m);
        engine_unlock();
        return end_memset(m, r);
    }
    do {
        engine_turn(d);
        op_from_memset(d, m, &op);
    } while (engine_waited(d, &op));
    engine_writes_unknown(d, m->dst);
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
        r = engine_keep_others_drv(d, touch[i].ptr, touch[i].mode & ENG_WRITE);
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
            engine_writes_unknown(d, touch[i].ptr); /* a fill or a copy: what collectives work on no kernel knows by name */
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

/* Captures under way, by the stream that began them: where it ends another device's context may be current, and a stream that is destroyed
 * takes its capture along. */
static struct capture {
    CUstream stream;
    struct device *d;
} *captures;
static uint32_t n_captures, cap_captures;

static int capture_add(CUstream stream, struct device *d)
{
    if (n_captures == cap_captures) {
        uint32_t cap = cap_captures ? 2 * cap_captures : 8;
        struct capture *p = realloc(captures, cap * sizeof *p);
        if (!p)
            return CUDA_ERROR_OUT_OF_MEMORY;
        captures = p;
        cap_captures = cap;
    }
    captures[n_captures++] = (struct capture){stream, d};
    d->capturing = true;
    return CUDA_SUCCESS;
}

/* One that this stream began. */
static bool capture_remove(CUstream stream)
{
    for (uint32_t i = n_captures; i-- > 0;) {
        if (captures[i].stream != stream)
            continue;
        struct device *d = captures[i].d;
        captures[i] = captures[--n_captures];
        d->capturing = false;
        for (uint32_t k = 0; k < n_captures; k++)
            d->capturing |= captures[k].d == d;
        return true;
    }
    return false;
}

static void captures_end(const struct device *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_captures; i++)
        if (captures[i].d != d)
            captures[n++] = captures[i];
    n_captures = n;
}

void eng_stream_destroyed(CUstream stream)
{
    engine_lock();
    while (stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD && capture_remove(stream))
        ;
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready && !process.dev[i]->gone)
            stream_forget(process.dev[i], stream);
    engine_unlock();
}

int eng_capture_begins(CUstream stream)
{
    int r = CUDA_SUCCESS;
    engine_lock();
    struct device *d = engine_here();
    if (d) {
        struct engine_visit v = engine_visit(d);
        campaign_leave(d, "a stream capture");
        r = engine_pin_all_drv(d);
        if (!r && !d->capturing) /* what is allocated meanwhile comes from the driver, and nobody can make room then */
            mem_give_free(d);
        engine_return(v);
        if (!r)
            r = capture_add(stream, d);
    }
    engine_unlock();
    return r;
}

int eng_pin_everything(void)
{
    engine_lock();
    struct device *d = engine_here();
    int r = CUDA_SUCCESS;
    if (d) {
        struct engine_visit v = engine_visit(d);
        campaign_leave(d, "work whose addresses cannot be seen");
        r = engine_pin_all_drv(d);
        engine_return(v);
    }
    engine_unlock();
    return r;
}

void eng_capture_ends(CUstream stream)
{
    engine_lock();
    capture_remove(stream);
    engine_unlock();
}

/* Contexts of the program's own making. */
static struct context {
    CUcontext ctx;
    CUdevice dev;
    struct context *next;
} *contexts;

static void context_forget(CUcontext ctx)
{
    for (struct context **at = &contexts; *at; at = &(*at)->next)
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
    process.contexts = true;
    struct context *c = malloc(sizeof *c);
    if (c) {
        *c = (struct context){ctx, dev, contexts};
        contexts = c;
    }
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

/* Another context may hold what was allocated on this device: memory is the device's, not a context's. */
static bool others_are_there(struct device *d, bool was_primary)
{
    unsigned flags;
    int active = 0;
    for (const struct context *c = contexts; c; c = c->next)
        if (c->dev == d->dev)
            return true;
    return !was_primary && process.drv->cuDevicePrimaryCtxGetState &&
           process.drv->cuDevicePrimaryCtxGetState(d->dev, &flags, &active) == CUDA_SUCCESS && active;
}

void eng_context_gone(CUcontext ctx, bool was_primary)
{
    engine_lock();
    func_forget_all(); /* its modules went with it, and nobody unloads them */
    context_forget(ctx);
    for (unsigned i = 0; i < process.n_dev; i++) {
        struct device *d = process.dev[i];
        if (d->ctx != ctx || d->gone || d->ended)
            continue;
        d->gone = true; /* its streams went with it; what the program still calls goes to the driver */
        captures_end(d);
        d->ended = d->ready && !process.finished && !others_are_there(d, was_primary);
        CUcontext left = NULL;
        CUdevice dev;
        if (d->ended && process.drv->cuCtxGetCurrent(&left) == CUDA_SUCCESS && (!left || process.drv->cuCtxGetDevice(&dev) == CUDA_SUCCESS))
            engine_end(d); /* else the driver takes no call: when the device begins anew */
    }
    engine_unlock();
}
