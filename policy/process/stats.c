/* Statistics: counters kept on the way, one JSON object at exit. */
#include "policy/device.h"
#include "tracer/output.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RING = 4 };
struct stats_clock {
    struct {
        CUevent event;
        bool used, steady;
    } ring[RING];
    unsigned at;
};

int stats_init(struct device *d)
{
    d->clock = calloc(1, sizeof *d->clock);
    return d->clock ? 0 : -ENOMEM;
}

void stats_boundary(struct device *d, unsigned t, bool steady)
{
    /* the boundary two back has long passed: its iteration can be measured without waiting */
    unsigned a = (d->clock->at + 1) % RING, b = (d->clock->at + 2) % RING;
    float ms;
    if (d->clock->ring[a].used && d->clock->ring[b].used && d->clock->ring[a].steady && d->drv->cuEventElapsedTime &&
        d->drv->cuEventElapsedTime(&ms, d->clock->ring[a].event, d->clock->ring[b].event) == CUDA_SUCCESS) {
        d->st.iter_ns_sum += ms * 1e6;
        d->st.iter_ns_count++;
    }
    d->clock->at = (d->clock->at + 1) % RING;
    if (!d->clock->ring[d->clock->at].event && d->drv->cuEventCreate(&d->clock->ring[d->clock->at].event, 0) != CUDA_SUCCESS) {
        d->clock->ring[d->clock->at].used = false;
        return;
    }
    d->clock->ring[d->clock->at].used = d->drv->cuEventRecord(d->clock->ring[d->clock->at].event, d->stream[t]) == CUDA_SUCCESS;
    d->clock->ring[d->clock->at].steady = steady;
}

void stats_steady_from_here(struct device *d)
{
    for (unsigned i = 0; i < RING; i++)
        d->clock->ring[i].used = false;
    d->st.iter_ns_sum = 0;
    d->st.iter_ns_count = 0;
    d->st.hook_ns = d->st.hook_launches = 0;
}

void stats_write(const struct config *cfg, struct device *const *devs, unsigned n)
{
    if (!cfg->stats[0])
        return;
    struct stats t = {0};
    uint64_t limit_bytes = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct stats *s = &devs[i]->st;
        limit_bytes += devs[i]->limit_bytes;
        for (size_t k = 0; k < STATS_COUNTERS; k++)
            ((uint64_t *)&t)[k] += ((const uint64_t *)s)[k];
        t.iter_ns_sum += s->iter_ns_sum;
    }
    uint64_t launches = t.hook_launches ? t.hook_launches : 1;
    json_t *j = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:s, s:I, s:I}",
        "limit_bytes", (json_int_t)limit_bytes, "peak_physical_bytes", (json_int_t)t.peak_physical_bytes,
        "native_peak_bytes", (json_int_t)t.native_peak_bytes, "iterations", (json_int_t)t.iterations,
        "iterations_enforced", (json_int_t)t.iterations_enforced, "launches", (json_int_t)t.launches, "replays",
        (json_int_t)t.replays, "evictions", (json_int_t)t.evictions, "swaps_out", (json_int_t)t.swaps_out, "swaps_in",
        (json_int_t)t.swaps_in, "divergences", (json_int_t)t.divergences, "verify_checked",
        (json_int_t)t.verify_checked, "verify_failed", (json_int_t)t.verify_failed, "driver_memory_calls_steady",
        (json_int_t)t.mem_calls_enforced, "device_ns_per_iteration",
        t.iter_ns_count ? t.iter_ns_sum / (double)t.iter_ns_count : 0.0, "hook_ns_per_launch",
        (json_int_t)(t.hook_ns / launches), "mode", eng_mode_name(), "swaps_steady", (json_int_t)t.swaps_enforced,
        "driver_memory_calls", (json_int_t)t.mem_calls, "gave_back_bytes", (json_int_t)t.gave_back_bytes);
    struct output o;
    char why[OUTPUT_PATH + 100] = "not enough memory for the statistics";
    int rc = j ? output_open(&o, cfg->stats, OUTPUT_RUN | OUTPUT_NO_WAIT, why, sizeof why) : -ENOMEM;
    if (!rc) {
        json_dumpf(j, o.f, JSON_INDENT(2)); /* a failure shows when it is committed */
        fputc('\n', o.f);
        rc = output_commit(&o, why, sizeof why);
    }
    if (rc)
        log_say(SAY_WARN, "%s", why);
    json_decref(j);
}
