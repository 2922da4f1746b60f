/* Statistics: counters kept on the way, one JSON object at exit. */
#include "policy/rt.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

enum { RING = 4 };
static struct {
    CUevent event;
    bool used, steady;
} ring[RING];
static unsigned at;

void stats_boundary(unsigned t, bool steady)
{
    /* the boundary two back has long passed: its iteration can be measured without waiting */
    unsigned a = (at + 1) % RING, b = (at + 2) % RING;
    float ms;
    if (ring[a].used && ring[b].used && ring[a].steady && rt.drv->cuEventElapsedTime &&
        rt.drv->cuEventElapsedTime(&ms, ring[a].event, ring[b].event) == CUDA_SUCCESS) {
        rt.st.iter_ns_sum += ms * 1e6;
        rt.st.iter_ns_count++;
    }
    at = (at + 1) % RING;
    if (!ring[at].event && rt.drv->cuEventCreate(&ring[at].event, 0) != CUDA_SUCCESS) {
        ring[at].used = false;
        return;
    }
    ring[at].used = rt.drv->cuEventRecord(ring[at].event, rt.stream[t]) == CUDA_SUCCESS;
    ring[at].steady = steady;
}

void stats_steady_from_here(void)
{
    for (unsigned i = 0; i < RING; i++)
        ring[i].used = false;
    rt.st.iter_ns_sum = 0;
    rt.st.iter_ns_count = 0;
    rt.st.hook_ns = rt.st.hook_launches = 0;
}

void stats_write(void)
{
    const struct stats *s = &rt.st;
    if (!rt.cfg.stats[0])
        return;
    uint64_t launches = s->hook_launches ? s->hook_launches : 1;
    json_t *j = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:s, s:I, s:I}",
        "limit_bytes", (json_int_t)rt.limit_bytes, "peak_physical_bytes", (json_int_t)s->peak_physical_bytes,
        "native_peak_bytes", (json_int_t)s->native_peak_bytes, "iterations", (json_int_t)s->iterations,
        "iterations_enforced", (json_int_t)s->iterations_enforced, "launches", (json_int_t)s->launches, "replays",
        (json_int_t)s->replays, "evictions", (json_int_t)s->evictions, "swaps_out", (json_int_t)s->swaps_out, "swaps_in",
        (json_int_t)s->swaps_in, "divergences", (json_int_t)s->divergences, "verify_checked",
        (json_int_t)s->verify_checked, "verify_failed", (json_int_t)s->verify_failed, "driver_memory_calls_steady",
        (json_int_t)s->mem_calls_enforced, "device_ns_per_iteration",
        s->iter_ns_count ? s->iter_ns_sum / (double)s->iter_ns_count : 0.0, "hook_ns_per_launch",
        (json_int_t)(s->hook_ns / launches), "mode", eng_mode_name(), "swaps_steady", (json_int_t)s->swaps_enforced,
        "driver_memory_calls", (json_int_t)s->mem_calls);
    if (!j || json_dump_file(j, rt.cfg.stats, JSON_INDENT(2)))
        log_say(SAY_WARN, "cannot write %s", rt.cfg.stats);
    json_decref(j);
}
