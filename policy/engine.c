/* The engine: every door ends here, or in allocations.c, reach.c, answers.c. One mutex; the mode decides who handles an op:
 *
 *   eng_launch -> engine_op_drv -> campaign_op_drv -> exec_op_drv    a plan is in force: where a launch is decided
 *                                                  -> learn_op_drv   an iteration is being measured
 *                                                  -> run_plain_drv  everything else
 */
#include "policy/campaign.h"
#include "policy/engine_own.h"
#include "policy/op/tensor_map.h"
#include "policy/process/limits.h"
#include "policy/process/planner.h"
#include "tracer/plain.h"

#include <stdlib.h>
#include <string.h>

enum { TIMED_EACH = 61 /* launches; a prime, so that in the course of iterations each has its turn */ };
enum { LAUNCHES_BETWEEN = 256 /* two looks at whether the statistics are due; copies and allocations look as well */ };

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

/* The planner is waited for with the mutex released: other threads of the program go on, without a plan. */
void engine_turn(struct device *d)
{
    campaign_turn(d);
    for (int ms; (ms = campaign_wait_ms(d)) > 0;) {
        uint64_t op_count = d->op_count;
        pid_t child = planner_child(d);
        engine_unlock();
        planner_wait(child, ms);
        engine_lock();
        campaign_answered(d, op_count);
    }
}

/* engine_turn() has been called before the op was built: it may release the mutex, and ops are built in one place. */
int engine_op_drv(struct device *d, struct rt_op *op)
{
    int r = campaign_op_drv(d, op);
    d->op_count += !op_reads_for_host(op);
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
    if (campaign_launch_drv(d, k, &r))
        d->op_count++;
    else if (engine_turn(d), !(r = op_from_kernel(d, k, &op)))
        r = engine_op_drv(d, &op);
    else {
        log_once(SAY_WARN, "the parameters of a kernel cannot be read (%s): a driver of CUDA 12.4 or newer is needed; "
                               "nothing is evicted from now on", func_of(d, k->func) ? PLAIN_IN_LINE(func_of(d, k->func)->name) : "?");
        campaign_leave(d, "a kernel whose parameters cannot be read");
        r = engine_pin_all_drv(d);
        if (!r)
            r = op_pass_drv(d->drv, k);
        for (uint32_t i = 0; i < d->n_slots; i++) /* it may have written any of them */
            if (d->slots[i].live) {
                d->slots[i].written = true;
                d->slots[i].watched = false;
            }
    }
    if (d->timing && measured == d->st.launches_tried + d->st.launches_looked_at) { /* those wait for the device */
        uint64_t all = stats_now_ns() - began;
        d->st.hook_ns += all > d->issue_ns ? all - d->issue_ns : 0;
        d->st.hook_launches++;
    }
    d->timing = false;
    if (d->st.launches % LAUNCHES_BETWEEN == 0)
        stats_keep(&process.cfg, process.dev, process.n_dev);
    engine_unlock();
    return r;
}

/* An address of ours that nobody holds now: the driver, which knows the reservation, would only say so when it is too late. */
bool engine_nobodys(struct device *d, CUdeviceptr p) { return mem_in_reservation(d, p) && !mem_lookup(d, p); }

int eng_memset(const struct eng_memset *m)
{
    struct rt_op op;
    engine_lock();
    struct device *d = engine_here();
    if (!d) {
        int r = op_pass_memset_drv(process.drv, m);
        engine_unlock();
        return r;
    }
    engine_turn(d);
    op_from_memset(d, m, &op);
    int r = engine_nobodys(d, m->dst) ? CUDA_ERROR_INVALID_VALUE : op.n_operands ? engine_op_drv(d, &op) : op_issue_drv(d, &op);
    engine_unlock();
    return r;
}

int eng_other(const char *name, CUstream stream, const struct eng_touch *touch, unsigned n_touch, int (*issue)(void *), void *ctx)
{
    struct rt_op op;
    engine_lock();
    struct device *d = engine_here();
    if (!d) {
        engine_unlock();
        return issue(ctx);
    }
    engine_turn(d);
    op_from_other(d, name, stream, touch, n_touch, issue, ctx, &op);
    int r = engine_op_drv(d, &op);
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
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready && !process.dev[i]->gone)
            stream_forget(process.dev[i], stream);
    engine_unlock();
}

int eng_capture_begins(CUstream stream)
{
    (void)stream;
    int r = CUDA_SUCCESS;
    engine_lock();
    struct device *d = engine_here();
    if (d) {
        campaign_leave(d, "a stream capture");
        r = engine_pin_all_drv(d);
        d->capturing = !r;
    }
    engine_unlock();
    return r;
}

void eng_capture_ends(CUstream stream)
{
    (void)stream;
    engine_lock();
    struct device *d = engine_here();
    if (d)
        d->capturing = false;
    engine_unlock();
}

void eng_context_gone(CUdevice dev)
{
    engine_lock();
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->dev == dev)
            process.dev[i]->gone = true; /* its memory and streams went with it; what the program still calls goes to the driver */
    engine_unlock();
}
