/* swap.c: copies to the host and back, the fallback that is always right. Content goes to pinned host memory on one stream and comes back on
 * another; both are ordered against the program's streams by events, so the host waits for nothing. */
#include "policy/memory/swap.h"

#include "policy/device.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/process/check.h"
#include "policy/process/nvtx.h"
#include "policy/process/stats.h"

#include <errno.h>
#include <stdlib.h>

/* The speed of copies in one direction: one copy at a time is measured, between two events. */
struct meter {
    CUevent from, to;
    uint64_t bytes;    /* size of the copy being measured; 0: none */
    bool begun;        /* `from` is recorded, `to` is not yet */
    double all_bytes, all_ns;
};

struct swap {
    struct meter out, in;
};

int swap_init(struct device *d)
{
    d->mem.swap = calloc(1, sizeof *d->mem.swap);
    return d->mem.swap ? 0 : -ENOMEM;
}

/* ---- speed of copies -------------------------------------------------------------------------------------------------- */

static void meter_read(struct device *d, struct meter *m)
{
    float ms = 0;
    if (!m->bytes || m->begun || d->drv->cuEventQuery(m->to) != CUDA_SUCCESS)
        return;
    if (d->drv->cuEventElapsedTime(&ms, m->from, m->to) == CUDA_SUCCESS && ms > 0) {
        m->all_bytes += (double)m->bytes;
        m->all_ns += ms * 1e6;
    }
    m->bytes = 0;
}

enum { MEASURE_NS = 100000000, LEAST_BYTES = 64 << 10 }; /* shorter copies would measure the start of a copy, not the link */

/* True where no copy is being measured, and events for the next one exist. */
static bool meter_ready(struct device *d, struct meter *m)
{
    meter_read(d, m);
    return !m->bytes && (m->from || d->drv->cuEventCreate(&m->from, 0) == CUDA_SUCCESS) && (m->to || d->drv->cuEventCreate(&m->to, 0) == CUDA_SUCCESS);
}

/* Called before a copy is queued on stream t. Measures only while nothing is learnt or planned: a steady iteration makes no driver call here. */
static void meter_begin(struct device *d, struct meter *m, unsigned t, uint64_t bytes)
{
    if (d->mode != MODE_OBSERVE || bytes < LEAST_BYTES || !d->drv->cuEventElapsedTime)
        return;
    if (!meter_ready(d, m) || d->drv->cuEventRecord(m->from, d->stream[t]) != CUDA_SUCCESS)
        return;
    m->bytes = bytes;
    m->begun = true;
}

static void meter_end(struct device *d, struct meter *m, unsigned t, bool queued)
{
    if (m->begun && (!queued || d->drv->cuEventRecord(m->to, d->stream[t]) != CUDA_SUCCESS))
        m->bytes = 0;
    m->begun = false;
}

uint64_t swap_bytes_per_s(struct device *d)
{
    struct meter *const meters[] = {&d->mem.swap->out, &d->mem.swap->in};
    double least = 0;
    for (int i = 0; i < 2; i++) {
        meter_read(d, meters[i]);
        double rate = meters[i]->all_ns > 0 ? meters[i]->all_bytes / meters[i]->all_ns * 1e9 : 0;
        if (rate > 0 && (!least || rate < least))
            least = rate;
    }
    return (uint64_t)least;
}

/* Copies a tensor to the host only to time it, from event to event: a program that has had no need to swap tells nothing of the link. The copy is not kept;
 * the tensor is only read. */
static void measure_out(struct device *d, struct slot *s)
{
    struct meter *m = &d->mem.swap->out;
    struct host_block *b = pinned_get(d, s->bytes);
    if (!b)
        return;
    if (!fence_wait(d, STREAM_OUT, &b->busy) && !fence_wait(d, STREAM_OUT, &s->ready) && meter_ready(d, m) &&
        d->drv->cuEventRecord(m->from, d->stream[STREAM_OUT]) == CUDA_SUCCESS &&
        d->drv->cuMemcpyDtoHAsync_v2(b->p, s->va, s->bytes, d->stream[STREAM_OUT]) == CUDA_SUCCESS &&
        d->drv->cuEventRecord(m->to, d->stream[STREAM_OUT]) == CUDA_SUCCESS)
        m->bytes = s->bytes;
    stream_mark(d, STREAM_OUT);
    fence_add(d, &b->busy, STREAM_OUT);
    fence_add(d, &s->unseen, STREAM_OUT);
    pinned_put(d, b);
    for (uint64_t until = stats_now_ns() + MEASURE_NS; m->bytes && stats_now_ns() < until;) /* bounded: work that the tensor waits for may wait for the program */
        meter_read(d, m);
}

void swap_measure(struct device *d)
{
    enum { MOST_BYTES = 64 << 20 };
    if (d->capturing || !d->drv->cuEventElapsedTime || swap_bytes_per_s(d))
        return;
    struct slot *best = slot_largest(d, LEAST_BYTES, MOST_BYTES);
    if (!best)
        return;
    measure_out(d, best); /* not counted: a first copy pays for set-up, too */
    d->mem.swap->out.all_bytes = d->mem.swap->out.all_ns = 0;
    measure_out(d, best);
}

/* ---- copies ------------------------------------------------------------------------------------------------------------- */

/* Safe while a copy is under way: the copy is in s->unseen and in the block's own fence. */
void swap_discard(struct device *d, struct slot *s)
{
    pinned_put(d, s->host);
    s->host = NULL;
}

int swap_copy_out(struct device *d, struct slot *s)
{
    struct host_block *b = pinned_get(d, s->bytes);
    if (!b)
        return -ENOMEM;
    nvtx_push("copies out", "to the host", s->bytes);
    int r = fence_wait(d, STREAM_OUT, &b->busy), r2 = fence_wait(d, STREAM_OUT, &s->ready), r3 = fence_wait(d, STREAM_OUT, &s->users);
    bool queued = false;
    if (!r && !r2 && !r3) {
        meter_begin(d, &d->mem.swap->out, STREAM_OUT, s->bytes);
        queued = d->drv->cuMemcpyDtoHAsync_v2(b->p, s->va, s->bytes, d->stream[STREAM_OUT]) == CUDA_SUCCESS;
        meter_end(d, &d->mem.swap->out, STREAM_OUT, queued);
    }
    if (!queued) {
        pinned_put(d, b);
        nvtx_pop();
        return -EIO;
    }
    nvtx_pop();
    stream_mark(d, STREAM_OUT);
    fence_add(d, &b->busy, STREAM_OUT);
    fence_add(d, &s->unseen, STREAM_OUT);
    swap_discard(d, s); /* drops an older host copy, which a plan had fetched the slot from and kept */
    s->host = b;
    d->st.swaps_out++;
    if (d->status)
        status_store(&d->status->swaps_out, d->st.swaps_out);
    d->st.bytes_out += s->bytes;
    return 0;
}

int swap_queue_in(struct device *d, struct slot *s)
{
    struct host_block *b = s->host;
    int r = 0;
    nvtx_push("copies in", "from the host", s->bytes);
    bool queued = false;
    if (!(r = fence_wait(d, STREAM_IN, &s->ready)) && !(r = fence_wait(d, STREAM_IN, &b->busy))) {
        meter_begin(d, &d->mem.swap->in, STREAM_IN, s->bytes);
        queued = d->drv->cuMemcpyHtoDAsync_v2(s->va, b->p, s->bytes, d->stream[STREAM_IN]) == CUDA_SUCCESS;
        meter_end(d, &d->mem.swap->in, STREAM_IN, queued);
    }
    if (!queued) {
        slot_unback(d, s, SLOT_HOST);
        nvtx_pop();
        return r ? r : -EIO;
    }
    nvtx_pop();
    stream_mark(d, STREAM_IN);
    fence_add(d, &b->busy, STREAM_IN);
    s->ready = (struct fence){0}; /* the copy comes after these points */
    fence_add(d, &s->ready, STREAM_IN);
    d->st.swaps_in++;
    if (d->status)
        status_store(&d->status->swaps_in, d->st.swaps_in);
    d->st.bytes_in += s->bytes;
    return 0;
}

int swap_out(struct device *d, struct slot *s)
{
    if (!rt_check(d, s->state == SLOT_RESIDENT && s->kind == SLOT_LARGE))
        return -EINVAL;
    if (!s->written)
        slot_unback(d, s, SLOT_EMPTY);
    else {
        int r = swap_copy_out(d, s);
        if (r)
            return r;
        s->ready = s->users = (struct fence){0}; /* the copy comes after these points, and is in s->unseen */
        slot_unback(d, s, SLOT_HOST);
    }
    d->mem.ahead.vain_bytes += s->early ? s->bytes : 0;
    s->early = false;
    d->st.evictions++;
    d->mem.evicted_op = d->op_count;
    return 0;
}

bool swap_may_go(const struct device *d, const struct slot *s)
{
    return s->kind == SLOT_LARGE && s->state == SLOT_RESIDENT && !s->pins && s->needed_by != d->mem.op_at_hand;
}
