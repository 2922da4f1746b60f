/* Swap: the fallback that is always right. Content goes to pinned host memory on one stream and comes back on
 * another; both are ordered against the program's streams by events, so the host waits for nothing. */
#include "policy/process/nvtx.h"
#include "policy/memory/decoy.h"
#include "policy/memory/host.h"
#include "policy/memory/ranges.h"
#include "policy/process/check.h"
#include "policy/share/share.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How fast copies in one direction are: one at a time is measured, between two events. */
struct meter {
    CUevent from, to;
    uint64_t bytes;    /* of the copy that is measured; 0: none */
    bool begun;        /* `from` is recorded, `to` is not yet */
    double all_bytes, all_ns;
};

struct swap {
    struct host_block *cached; /* blocks that hold nothing, any size */
    struct host_block *all;    /* through next_all */
    struct ranges ranges;      /* of all */
    struct meter out, in;
};

/* Pinned host memory is one thing for all devices of the process. */
static struct {
    uint64_t bytes;
    uint64_t told; /* bytes taken since the machine was asked */
} pinned;

/* How much may be pinned in all is asked again whenever a part of it has been taken: others take memory too. */
static void look_again(struct device *d)
{
    enum { PARTS = 32 };
    if (d->host_limit_bytes && pinned.told * PARTS < d->host_limit_bytes)
        return;
    pinned.told = 0;
    d->host_limit_bytes = host_cap_of(host_free_bytes(""), pinned.bytes, host_others_bytes(), d->cfg->host_swap_bytes);
}

static void count_pinned(struct device *d, int64_t bytes)
{
    d->host_bytes += (uint64_t)bytes;
    pinned.bytes += (uint64_t)bytes;
    pinned.told += bytes > 0 ? (uint64_t)bytes : 0;
    if (d->status)
        status_store(&d->status->swapped_bytes, d->host_bytes);
}

int swap_init(struct device *d)
{
    d->swap = calloc(1, sizeof *d->swap);
    if (!d->swap)
        return -ENOMEM;
    look_again(d);
    return 0;
}

void swap_end(struct device *d)
{
    for (struct host_block *b = d->swap->all, *next; b; b = next) {
        next = b->next_all;
        count_pinned(d, -(int64_t)b->bytes);
        free(b);
    }
    d->swap->all = d->swap->cached = NULL;
    ranges_free(&d->swap->ranges);
}

/* ---- how fast copies are ---------------------------------------------------------------------------------------------- */

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

/* Before a copy is queued on stream t. Only while nothing is learnt or planned: a steady iteration makes no call for it. */
static void meter_begin(struct device *d, struct meter *m, unsigned t, uint64_t bytes)
{
    enum { LEAST_BYTES = 64 << 10 }; /* of shorter ones the beginning is measured, not the copy */
    if (d->mode != MODE_OBSERVE || bytes < LEAST_BYTES || !d->drv->cuEventElapsedTime)
        return;
    meter_read(d, m);
    if (m->bytes || (!m->from && d->drv->cuEventCreate(&m->from, 0) != CUDA_SUCCESS) ||
        (!m->to && d->drv->cuEventCreate(&m->to, 0) != CUDA_SUCCESS) || d->drv->cuEventRecord(m->from, d->stream[t]) != CUDA_SUCCESS)
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
    struct meter *const meters[] = {&d->swap->out, &d->swap->in};
    double least = 0;
    for (int i = 0; i < 2; i++) {
        meter_read(d, meters[i]);
        double rate = meters[i]->all_ns > 0 ? meters[i]->all_bytes / meters[i]->all_ns * 1e9 : 0;
        if (rate > 0 && (!least || rate < least))
            least = rate;
    }
    return (uint64_t)least;
}

int swap_host_wait(struct device *d, struct host_block *b)
{
    int r = fence_sync(d, &b->busy);
    if (!r)
        b->busy = (struct fence){0};
    return r;
}

static void forget(struct device *d, const struct host_block *b)
{
    ranges_remove(&d->swap->ranges, (uintptr_t)b->p);
    for (struct host_block **at = &d->swap->all; *at; at = &(*at)->next_all)
        if (*at == b) {
            *at = b->next_all;
            return;
        }
}

bool swap_host_is_ours(const struct device *d, CUdeviceptr p) { return ranges_hold(&d->swap->ranges, p); }

struct host_block *swap_host_get(struct device *d, uint64_t bytes)
{
    bytes = mem_pages(d, bytes) << d->shift;
    for (struct host_block **at = &d->swap->cached; *at; at = &(*at)->next)
        if ((*at)->bytes == bytes) {
            struct host_block *b = *at;
            *at = b->next;
            return b;
        }
    look_again(d);
    while (pinned.bytes + bytes > d->host_limit_bytes && d->swap->cached) { /* other sizes make room */
        struct host_block *b = d->swap->cached;
        if (swap_host_wait(d, b) || d->drv->cuMemFreeHost(b->p) != CUDA_SUCCESS)
            return NULL;
        d->swap->cached = b->next;
        count_pinned(d, -(int64_t)b->bytes);
        forget(d, b);
        free(b);
    }
    if (pinned.bytes + bytes > d->host_limit_bytes)
        return NULL;
    struct host_block *b = calloc(1, sizeof *b);
    if (!b || d->drv->cuMemHostAlloc(&b->p, bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) {
        free(b);
        return NULL;
    }
    b->bytes = bytes;
    if (ranges_add(&d->swap->ranges, (uintptr_t)b->p, bytes)) {
        d->drv->cuMemFreeHost(b->p);
        free(b);
        return NULL;
    }
    b->next_all = d->swap->all;
    d->swap->all = b;
    count_pinned(d, (int64_t)bytes);
    return b;
}

void swap_host_put(struct device *d, struct host_block *b)
{
    if (!b)
        return;
    b->next = d->swap->cached;
    d->swap->cached = b;
}

/* A copy that is still under way is in s->unseen and in the block's own fence. */
void swap_discard(struct device *d, struct slot *s)
{
    swap_host_put(d, s->host);
    s->host = NULL;
}

int swap_copy_out(struct device *d, struct slot *s)
{
    struct host_block *b = swap_host_get(d, s->bytes);
    if (!b)
        return -ENOMEM;
    nvtx_push("copies out", "to the host", s->bytes);
    int r = fence_wait(d, STREAM_OUT, &b->busy), r2 = fence_wait(d, STREAM_OUT, &s->ready), r3 = fence_wait(d, STREAM_OUT, &s->users);
    bool queued = false;
    if (!r && !r2 && !r3) {
        meter_begin(d, &d->swap->out, STREAM_OUT, s->bytes);
        queued = d->drv->cuMemcpyDtoHAsync_v2(b->p, s->va, s->bytes, d->stream[STREAM_OUT]) == CUDA_SUCCESS;
        meter_end(d, &d->swap->out, STREAM_OUT, queued);
    }
    if (!queued) {
        swap_host_put(d, b);
        nvtx_pop();
        return -EIO;
    }
    nvtx_pop();
    stream_mark(d, STREAM_OUT);
    fence_add(d, &b->busy, STREAM_OUT);
    fence_add(d, &s->unseen, STREAM_OUT);
    swap_discard(d, s); /* an older copy that a plan had fetched it from */
    s->host = b;
    d->st.swaps_out++;
    d->st.bytes_out += s->bytes;
    return 0;
}

int swap_copy_in(struct device *d, struct slot *s)
{
    struct host_block *b = s->host;
    if (!rt_check(d, s->state == SLOT_HOST && b))
        return -EINVAL;
    int r = mem_back(d, s);
    if (r)
        return r;
    nvtx_push("copies in", "from the host", s->bytes);
    bool queued = false;
    if (!(r = fence_wait(d, STREAM_IN, &s->ready)) && !(r = fence_wait(d, STREAM_IN, &b->busy))) {
        meter_begin(d, &d->swap->in, STREAM_IN, s->bytes);
        queued = d->drv->cuMemcpyHtoDAsync_v2(s->va, b->p, s->bytes, d->stream[STREAM_IN]) == CUDA_SUCCESS;
        meter_end(d, &d->swap->in, STREAM_IN, queued);
    }
    if (!queued) {
        mem_unback(d, s, SLOT_HOST);
        nvtx_pop();
        return r ? r : -EIO;
    }
    nvtx_pop();
    stream_mark(d, STREAM_IN);
    fence_add(d, &b->busy, STREAM_IN);
    s->ready = (struct fence){0}; /* the copy came after them */
    fence_add(d, &s->ready, STREAM_IN);
    d->st.swaps_in++;
    d->st.bytes_in += s->bytes;
    return 0;
}

int swap_out(struct device *d, struct slot *s)
{
    if (!rt_check(d, s->state == SLOT_RESIDENT && s->kind == SLOT_LARGE))
        return -EINVAL;
    if (!s->written)
        mem_unback(d, s, SLOT_EMPTY);
    else {
        int r = swap_copy_out(d, s);
        if (r)
            return r;
        s->ready = s->users = (struct fence){0}; /* the copy comes after them, and is in s->unseen */
        mem_unback(d, s, SLOT_HOST);
    }
    d->st.evictions++;
    return 0;
}

int swap_in(struct device *d, struct slot *s)
{
    int r = swap_copy_in(d, s);
    if (!r)
        swap_discard(d, s);
    return r;
}

bool swap_may_go(const struct device *d, const struct slot *s)
{
    return s->kind == SLOT_LARGE && s->state == SLOT_RESIDENT && !s->pins && s->mark != d->mark;
}

uint64_t swap_room_bytes(const struct device *d)
{
    return d->host_limit_bytes > pinned.bytes ? d->host_limit_bytes - pinned.bytes : 0;
}

/* Least recently used first; memory that holds nothing yet before all others. */
static struct slot *victim(struct device *d)
{
    struct slot *best = NULL;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct slot *s = &d->slots[i];
        if (!swap_may_go(d, s))
            continue;
        if (!best || (!s->written && best->written) || (s->written == best->written && s->use_tick < best->use_tick))
            best = s;
    }
    return best;
}

/* In a group: one more chunk, of what others hold and this process is entitled to. */
static bool neighbours_gave(struct device *d)
{
    return d->share && device_physical_bytes(d) + d->gran <= d->limit_bytes && !share_wait(d, d->gran) && mem_chunk_new(d) >= 0;
}

/* One more chunk, of what the program has given back in a stream that has not come to it. */
static bool more_left(struct device *d)
{
    while (foreign_wait(d))
        if (mem_chunk_new(d) >= 0)
            return true;
    return false;
}

/* One more chunk, of the page that decoys are made of. */
static bool decoys_gave(struct device *d) { return decoy_give(d) && mem_chunk_new(d) >= 0; }

void swap_evict_for(struct device *d, uint64_t n_chunks)
{
    d->pressed |= d->n_free_chunks < n_chunks;
    while (d->n_free_chunks < n_chunks) {
        struct slot *s = victim(d);
        if ((!s || swap_out(d, s)) && !neighbours_gave(d) && !more_left(d) && !decoys_gave(d))
            return;
    }
}
