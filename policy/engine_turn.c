/* engine_turn.c: see engine_turn.h. */
#include "policy/engine_turn.h"

#include "policy/campaign.h"
#include "policy/current.h"
#include "policy/learn/hashing.h"
#include "policy/memory/audit.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/op/ready.h"
#include "policy/iteration.h"
#include "policy/process/check.h"
#include "policy/process/planner.h"
#include "policy/process/stats.h"
#include "policy/unmet.h"

#include <errno.h>
#include <unistd.h>

enum { AUDIT_OPS = 1 << 16 /* between two looks at all of memory's bookkeeping */ };

/* The op is in another context than the device's own, as in engine_elsewhere(). A default stream's name then means the other context's stream. */
static bool op_is_elsewhere(struct device *d, struct rt_op *op)
{
    CUcontext here = NULL;
    if (!current_context(process.drv, &here) || !here || here == d->ctx)
        return false;
    stream_is_elsewhere(d);
    if (op->stream == CU_STREAM_LEGACY || op->stream == CU_STREAM_PER_THREAD)
        op->t = stream_index_in(d, here, op->stream);
    return true;
}

/* Runs an op from another context of the device. Its operands are brought into memory in the device's own context, and its stream is ordered behind that as
 * any other. */
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
    if (!managed || d->capturing) { /* nothing moves during a capture */
        engine_return(v);
        return op_issue_drv(d, op);
    }
    campaign_stop(d, "the program works in several contexts of one device");
    int r = d->ex->now.code ? d->ex->now.code : ready_op(d, op, &lost);
    if (r < 0)
        r = r == -ENODATA ? CUDA_ERROR_UNKNOWN : ready_refused_drv(d, op);
    engine_return(v);
    if (r)
        return r;
    r = op_issue_drv(d, op);
    if (r != CUDA_ERROR_INVALID_HANDLE)
        ready_done(d, op, true);
    return r;
}

/* A check has failed (process/check.h). Where memory itself is in doubt nothing moves any more: a buffer that finds no room on the device now
 * comes back when an op touches it. */
static void stand_back(struct device *d)
{
    uint32_t left = 0;
    d->doubt_met = d->doubt;
    campaign_stop(d, "a check of remat's own failed");
    for (uint32_t i = 0; i < d->mem.n_slots && d->doubt == DOUBT_MEMORY; i++)
        if (d->mem.slots[i].live && d->mem.slots[i].kind == SLOT_LARGE && !d->mem.slots[i].pins)
            left += ready_pin(d, &d->mem.slots[i]) != 0;
    if (left)
        log_say(SAY_WARN, "%u buffers find no room on the device: they come and go as they are used", left);
}

/* Loads the device code. The driver asks the loader, so the mutex is free meanwhile; another thread may load the code too, and the later module is not used. */
static void load_code(struct device *d)
{
    engine_unlock();
    capture_mode_ours(process.drv);
    const CUmodule m = hashing_load(process.drv);
    capture_mode_programs(process.drv);
    engine_lock();
    if (!hashing_is_loaded(d))
        hashing_loaded(d, m);
}

/* The planner is waited for with the mutex released: other threads of the program go on, without a plan. */
void engine_turn(struct device *d)
{
    d->forbidden = 0;
    if (engine_elsewhere(d))
        return;
    if (d->mem.pressed && !atomic_load_explicit(&eng_stack_matters, memory_order_relaxed))
        eng_stack_matters = true;
    if (d->op_count - d->audited_op >= AUDIT_OPS) {
        d->audited_op = d->op_count;
        current_compare();
        audit_memory(d);
    }
    if (d->doubt != d->doubt_met && !d->capturing)
        stand_back(d);
    if (campaign_wants_code(d))
        load_code(d);
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
    if (!rc) { /* the work was done without the wait */
        fence_waited(d, &w, false);
        return false;
    }
    engine_unlock();
    capture_mode_ours(process.drv); /* the thread's capture mode is remat's: a capture may begin while the mutex is free */
    const bool passed = process.drv->cuEventSynchronize(w.event) == CUDA_SUCCESS;
    capture_mode_programs(process.drv);
    engine_lock();
    fence_waited(d, &w, passed);
    return passed;
}

/* The driver waits within a call whose stream's queue is full, and the thread that lets the stream go on may need the mutex. So the wait is here, with the
 * mutex free, as soon as events of remat's might fill the queue. While the queue may have room left the wait has an end: this very thread may let the
 * stream go on, after some more launches. */
static bool waited_for_room_in_queue(struct device *d, unsigned t)
{
    enum { FULL = 1024, EVENTS = 24 /* of remat's own */, MOMENT_US = 200, MOMENTS = 2500 };
    static _Thread_local unsigned moments;
    const uint64_t queued = stream_queued(d, t);
    if (queued < FULL - EVENTS)
        moments = 0;
    if (queued < FULL - EVENTS || (queued < FULL && moments == MOMENTS))
        return false;
    moments += moments < MOMENTS;
    engine_unlock();
    usleep(MOMENT_US);
    engine_lock();
    return true;
}

bool engine_waited(struct device *d, struct rt_op *op)
{
    uint32_t lost = 0;
    uint32_t ready = 0;
    if (stream_gated(d) && !d->capturing) {
        (void)op_is_elsewhere(d, op);
        if (waited_for_room_in_queue(d, op->t))
            return true;
    }
    while (ready < op->n_operands && !d->cfg->rehearse_unmapped && ready_operand(&op->operands[ready], op->t))
        ready++;
    if (ready == op->n_operands || !campaign_runs_plainly(d, op))
        return false;
    (void)op_is_elsewhere(d, op);
    struct engine_visit v = engine_visit(d);
    fence_put_off(d);
    const int r = ready_op(d, op, &lost); /* a failure is found again, and reported, when the op runs */
    engine_return(v);
    return engine_begins_again(d, r);
}

/* engine_turn() has been called before the op was built: it may release the mutex, and all ops are built in the same buffers. */
int engine_op_drv(struct device *d, struct rt_op *op)
{
    bool left_out = false;
    const bool elsewhere = op_is_elsewhere(d, op);
    int r = unmet_none(d) ? CUDA_SUCCESS : unmet_before_drv(d, op, &left_out);
    if (r)
        return left_out ? CUDA_SUCCESS : r;
    d->refused = false;
    r = elsewhere ? op_elsewhere_drv(d, op) : campaign_op_drv(d, op);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && d->refused && unmet_leaves_out(d, op))
        r = CUDA_SUCCESS;
    d->op_count += !op_reads_for_host(op);
    return r;
}

bool engine_nobodys(struct device *d, CUdeviceptr p, uint64_t bytes)
{
    if (!mem_in_reservation(d, p))
        return false;
    const struct slot *s = slot_lookup(d, p);
    uint64_t room = s ? slot_room(d, s) : 0;
    return !s || p - s->va > room || bytes > room - (p - s->va);
}
