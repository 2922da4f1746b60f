/* The time that learning may take: events on the device, and a little arithmetic. */
#include "policy/learn/pace.h"
#include "policy/learn/probing.h"
#include "policy/memory/arena.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/process/stats.h"

/* Learning may take ten times the iteration's own device time, nine more, and with each op the time of some round trips to the device: where
 * kernels are short those are what it takes. */
enum { TIMES_MORE = 9, CLOCK_OPS = 64 };
static const uint64_t ROUND_TRIPS_NS = 5000000;

bool pace_init(struct device *d)
{
    struct pace *p = &d->probe->pace;
    return d->drv->cuEventElapsedTime && d->drv->cuEventCreate(&p->begin, 0) == CUDA_SUCCESS && d->drv->cuEventCreate(&p->now, 0) == CUDA_SUCCESS;
}

uint64_t pace_between_ns(struct device *d, CUevent from, CUevent to)
{
    float ms = 0;
    return d->drv->cuEventElapsedTime(&ms, from, to) == CUDA_SUCCESS && ms > 0 ? (uint64_t)(ms * 1e6 + 0.5) : 0;
}

/* What our own stream did for the op (new memory is filled) has ended; that the op's stream comes after it is said all the same: a clock that
 * follows the device and not the host would count it in. */
bool pace_op_begins(struct device *d, CUstream stream, CUevent from)
{
    const CUevent now = d->probe->pace.now;
    return d->drv->cuEventRecord(now, d->stream[STREAM_IN]) == CUDA_SUCCESS && d->drv->cuStreamWaitEvent(stream, now, 0) == CUDA_SUCCESS &&
           d->drv->cuEventRecord(from, stream) == CUDA_SUCCESS;
}

/* One fill of a byte on a stream of ours: alone, the device idle before it; or behind a copy of all of `from` to the block. 0: it cannot be timed. */
static uint64_t fill_ns(struct device *d, const struct slot *from, const struct host_block *to)
{
    struct pace *p = &d->probe->pace;
    const CUstream s = d->stream[STREAM_IN];
    const bool queued = (!from || d->drv->cuMemcpyDtoHAsync_v2(to->p, from->va, from->bytes, s) == CUDA_SUCCESS) &&
                        d->drv->cuEventRecord(p->begin, s) == CUDA_SUCCESS && d->drv->cuMemsetD8Async(p->word, 0, 1, s) == CUDA_SUCCESS &&
                        d->drv->cuEventRecord(p->now, s) == CUDA_SUCCESS;
    return d->drv->cuStreamSynchronize(s) == CUDA_SUCCESS && queued ? pace_between_ns(d, p->begin, p->now) : 0;
}

/* Once: the device is idle. */
static void measure_launch(struct device *d)
{
    enum { TIMES = 5, LEAST_BYTES = 1 << 20, MOST_BYTES = 16 << 20 /* the copy keeps the device busy while a few calls are made */ };
    struct pace *p = &d->probe->pace;
    uint64_t alone = UINT64_MAX, behind = UINT64_MAX;
    const struct slot *from = p->word ? NULL : slot_largest(d, LEAST_BYTES, MOST_BYTES);
    struct host_block *to = from ? pinned_get(d, from->bytes) : NULL;
    if (!to)
        return;
    if ((p->word = arena_scratch(d, 1)) && !pinned_wait(d, to))
        for (int i = 0; i < TIMES; i++) {
            const uint64_t a = fill_ns(d, NULL, NULL), b = fill_ns(d, from, to);
            alone = a && a < alone ? a : alone;
            behind = b && b < behind ? b : behind;
        }
    pinned_put(d, to);
    if (alone == UINT64_MAX || alone <= (behind == UINT64_MAX ? 0 : behind))
        return;
    p->least_ns = behind == UINT64_MAX ? 1 : behind; /* shorter than a clock tells */
    p->launch_ns = alone - p->least_ns;
    log_say(SAY_DEBUG, "launching takes %llu ns that a device with nothing to do waits for, the shortest op %llu", (unsigned long long)p->launch_ns,
            (unsigned long long)p->least_ns);
}

uint64_t pace_op_ns(struct device *d, CUevent from, CUevent to)
{
    const struct pace *p = &d->probe->pace;
    const uint64_t ns = pace_between_ns(d, from, to);
    return ns > p->launch_ns + p->least_ns ? ns - p->launch_ns : ns < p->least_ns || !p->launch_ns ? ns : p->least_ns;
}

static uint64_t trial_ns(struct device *d)
{
    struct pace *p = &d->probe->pace;
    if (d->drv->cuEventRecord(p->now, d->stream[STREAM_IN]) != CUDA_SUCCESS || d->drv->cuEventSynchronize(p->now) != CUDA_SUCCESS)
        return 0;
    return pace_between_ns(d, p->begin, p->now);
}

void pace_trial_begins(struct device *d)
{
    struct pace *p = &d->probe->pace;
    p->n_ops++;
    d->drv->cuEventRecord(p->begin, d->stream[STREAM_IN]);
    p->in_trial = true;
}

void pace_trial_ends(struct device *d, uint64_t own_ns, bool counts)
{
    struct pace *p = &d->probe->pace;
    p->in_trial = false;
    if (!counts)
        return;
    const uint64_t all = trial_ns(d);
    p->extra_ns += all > own_ns ? all - own_ns : 0;
}

void pace_unbounded(struct device *d, bool on) { d->probe->pace.unbounded = on; }

uint64_t pace_left_ns(struct device *d)
{
    struct pace *p = &d->probe->pace;
    if (p->unbounded || d->cfg->trace_mode) /* what is recorded to be looked at shall be whole */
        return 1000000000;
    uint64_t own = p->own_ns > p->expected_ns ? p->own_ns : p->expected_ns;
    uint64_t spent = p->extra_ns + (p->in_trial ? trial_ns(d) : 0);
    const uint64_t may = own * TIMES_MORE + p->n_ops * ROUND_TRIPS_NS;
    return may > spent ? may - spent : 0;
}

bool pace_is_due(const struct device *d) { return !(d->op_count % CLOCK_OPS); }

void pace_note(struct device *d, CUstream stream)
{
    struct pace *p = &d->probe->pace;
    uint32_t k = d->op_count / CLOCK_OPS % PACE_CLOCKS;
    CUevent *e = &p->clock[k].at;
    p->clock_stream = stream;
    bool made = *e || d->drv->cuEventCreate(e, 0) == CUDA_SUCCESS;
    p->clock[k].host_ns = stats_now_ns();
    p->clock[k].op = made && d->drv->cuEventRecord(*e, stream) == CUDA_SUCCESS ? d->op_count : 0;
}

/* The clock about a period of ops ago, and how many exactly; 0: there is none. */
static uint64_t clock_before(const struct device *d, uint64_t period, uint32_t *best)
{
    const struct pace *p = &d->probe->pace;
    uint64_t part = 0;
    for (uint32_t i = 0; i < PACE_CLOCKS; i++) {
        uint64_t ops = p->clock[i].op ? d->op_count - p->clock[i].op : 0;
        if (ops * 4 >= period && (!part || (ops <= period && ops > part) || (part > period && ops < part))) {
            part = ops;
            *best = i;
        }
    }
    return part;
}

/* The time of the latest ops, scaled to a period; 0: unknown. */
void pace_expect(struct device *d, uint64_t period)
{
    struct pace *p = &d->probe->pace;
    uint32_t best = 0;
    measure_launch(d);
    uint64_t part = clock_before(d, period, &best);
    if (part && d->drv->cuEventRecord(p->now, p->clock_stream) == CUDA_SUCCESS && d->drv->cuEventSynchronize(p->now) == CUDA_SUCCESS)
        p->expected_ns = pace_between_ns(d, p->clock[best].at, p->now) / part * period;
}

void pace_begin(struct device *d, uint64_t period)
{
    struct pace *p = &d->probe->pace;
    uint32_t best = 0;
    uint64_t part = clock_before(d, period, &best);
    p->own_ns = p->extra_ns = p->n_ops = p->expected_ns = 0;
    p->host_ns = part ? (stats_now_ns() - p->clock[best].host_ns) / part * period : 0;
}

void pace_say(const struct device *d)
{
    const struct pace *p = &d->probe->pace;
    log_say(SAY_DEBUG, "learning took %llu us of device time beside the %llu us of the ops themselves (%llu us were expected)",
            (unsigned long long)p->extra_ns / 1000, (unsigned long long)p->own_ns / 1000, (unsigned long long)p->expected_ns / 1000);
}

uint64_t pace_iteration_wall_ns(const struct device *d)
{
    uint64_t seen = stats_wall_ns(d), pace = d->probe ? d->probe->pace.host_ns : 0;
    return seen > pace ? seen : pace;
}
