/* Swap: the fallback that is always right. Content goes to pinned host memory on one stream and comes back on
 * another; both are ordered against the program's streams by events, so the host waits for nothing. */
#include "policy/rt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct host_block *cached; /* blocks that hold nothing, any size */

/* Half of the memory that the machine could give now. */
static uint64_t default_cap(void)
{
    unsigned long long kb = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb ? kb * 512ull : 4ull << 30;
}

int swap_init(void)
{
    rt.host_limit_bytes = rt.cfg.host_swap_bytes ? rt.cfg.host_swap_bytes : default_cap();
    return 0;
}

int swap_host_order(unsigned t, const struct host_block *b)
{
    int r = stream_order_seq(t, STREAM_OUT, b->out_seq), q = stream_order_seq(t, STREAM_IN, b->in_seq);
    return r ? r : q;
}

void swap_host_wait(struct host_block *b)
{
    if (b->out_seq | b->in_seq)
        stream_sync(1ull << STREAM_OUT | 1ull << STREAM_IN);
    b->out_seq = b->in_seq = 0;
}

struct host_block *swap_host_get(uint64_t bytes)
{
    bytes = mem_pages(bytes) << rt.shift;
    for (struct host_block **at = &cached; *at; at = &(*at)->next)
        if ((*at)->bytes == bytes) {
            struct host_block *b = *at;
            *at = b->next;
            return b;
        }
    while (rt.host_bytes + bytes > rt.host_limit_bytes && cached) { /* other sizes make room */
        struct host_block *b = cached;
        cached = b->next;
        swap_host_wait(b);
        rt.drv->cuMemFreeHost(b->p);
        rt.host_bytes -= b->bytes;
        free(b);
    }
    if (rt.host_bytes + bytes > rt.host_limit_bytes)
        return NULL;
    struct host_block *b = calloc(1, sizeof *b);
    if (!b || rt.drv->cuMemHostAlloc(&b->p, bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) {
        free(b);
        return NULL;
    }
    b->bytes = bytes;
    rt.host_bytes += bytes;
    if (rt.status)
        status_store(&rt.status->swapped_bytes, rt.host_bytes);
    return b;
}

void swap_host_put(struct host_block *b)
{
    if (!b)
        return;
    b->next = cached;
    cached = b;
}

void swap_discard(struct slot *s)
{
    if (s->host && s->state == SLOT_RESIDENT && s->host->out_seq)
        s->uses_mask |= 1ull << STREAM_OUT; /* the copy may still be reading */
    swap_host_put(s->host);
    s->host = NULL;
}

int swap_copy_out(struct slot *s)
{
    struct host_block *b = swap_host_get(s->bytes);
    if (!b)
        return -ENOMEM;
    swap_host_order(STREAM_OUT, b);
    stream_order(STREAM_OUT, s->uses_mask | (s->avail_seq ? 1ull << s->avail_stream : 0));
    if (rt.drv->cuMemcpyDtoHAsync_v2(b->p, s->va, s->bytes, rt.stream[STREAM_OUT]) != CUDA_SUCCESS) {
        swap_host_put(b);
        return -EIO;
    }
    b->out_seq = stream_mark(STREAM_OUT);
    s->host = b;
    rt.st.swaps_out++;
    rt.st.bytes_out += s->bytes;
    return 0;
}

int swap_copy_in(struct slot *s)
{
    struct host_block *b = s->host;
    if (s->state != SLOT_HOST || !b)
        return -EINVAL;
    int r = mem_back(s, STREAM_IN);
    if (r)
        return r;
    swap_host_order(STREAM_IN, b);
    if (rt.drv->cuMemcpyHtoDAsync_v2(s->va, b->p, s->bytes, rt.stream[STREAM_IN]) != CUDA_SUCCESS) {
        mem_unback(s, SLOT_HOST, 0);
        return -EIO;
    }
    b->in_seq = stream_mark(STREAM_IN);
    s->avail_stream = STREAM_IN;
    s->avail_seq = rt.seq[STREAM_IN];
    rt.st.swaps_in++;
    rt.st.bytes_in += s->bytes;
    return 0;
}

int swap_out(struct slot *s)
{
    if (s->state != SLOT_RESIDENT || s->kind != SLOT_LARGE)
        return -EINVAL;
    if (!s->written)
        mem_unback(s, SLOT_EMPTY, 0);
    else {
        int r = swap_copy_out(s);
        if (r)
            return r;
        mem_unback(s, SLOT_HOST, 1ull << STREAM_OUT);
    }
    rt.st.evictions++;
    return 0;
}

int swap_in(struct slot *s)
{
    int r = swap_copy_in(s);
    if (!r)
        swap_discard(s);
    return r;
}

/* Least recently used first; memory that holds nothing yet before all others. */
static struct slot *victim(void)
{
    struct slot *best = NULL;
    for (uint32_t i = 0; i < rt.n_slots; i++) {
        struct slot *s = &rt.slots[i];
        if (s->kind != SLOT_LARGE || s->state != SLOT_RESIDENT || s->pins || s->mark == rt.mark)
            continue;
        if (!best || (!s->written && best->written) || (s->written == best->written && s->use_tick < best->use_tick))
            best = s;
    }
    return best;
}

void swap_evict_for(uint64_t n_chunks)
{
    while (rt.n_free_chunks < n_chunks) {
        struct slot *s = victim();
        if (s && rt.mode == MODE_ENFORCE)
            log_say(SAY_DEBUG, "memory is short by %llu chunks: buffer %d of the plan leaves for the host",
                    (unsigned long long)(n_chunks - rt.n_free_chunks), s->plan_buf);
        if (!s || swap_out(s))
            return;
    }
}
