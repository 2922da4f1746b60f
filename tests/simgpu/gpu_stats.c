/*
 * SIMGPU_STATS: what the process asked of the simulated GPU, as one JSON object.
 *
 * Written by the library's destructor, so after main returns and after exit(). A program that leaves by
 * _exit or is killed runs no destructor: for its sake calls that wait for the device refresh the file when
 * it is older than 100 ms, and simgpu_write_stats is there for whoever stands in front of _exit. A forked child never writes. The file is replaced by rename: always whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/simgpu/gpu_costs.h"

gpu_counters gpu_stats;
_Atomic(gpu_call *) gpu_calls;

static pid_t owner; /* who initialised the driver: no child of it, not even one of vfork, writes */
static uint64_t written_ns;

static uint64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(gpu_call *const *)a)->name, (*(gpu_call *const *)b)->name);
}

void gpu_stats_own(void)
{
    owner = getpid();
}

static bool profiling; /* under gpu_lock */

/* Calls that other threads make meanwhile may be counted to either side. */
void gpu_stats_profile(bool on)
{
    gpu_lock();
    for (gpu_call *c = gpu_calls; c && on != profiling; c = c->next) {
        if (on)
            c->from = c->count;
        else
            c->profiled += c->count - c->from;
    }
    profiling = on;
    gpu_unlock();
}

GPU_EXPORT void simgpu_write_stats(void)
{
    gpu_stats_write();
}

void gpu_stats_write(void)
{
    if (!gpu_cfg.stats_path || owner != getpid())
        return;
    char tmp[4200];
    snprintf(tmp, sizeof tmp, "%s.%ld", gpu_cfg.stats_path, (long)owner);
    FILE *f = fopen(tmp, "w");
    if (!f) {
        static bool said;
        if (!said)
            fprintf(stderr, "simgpu: SIMGPU_STATS: cannot write %s: %m\n", tmp);
        said = true;
        return;
    }
    gpu_call *calls[1024];
    size_t n = 0;
    for (gpu_call *c = gpu_calls; c && n < sizeof calls / sizeof calls[0]; c = c->next)
        calls[n++] = c;
    qsort(calls, n, sizeof calls[0], by_name);
    fprintf(f,
            "{\n  \"peak_physical_bytes\": %" PRIu64 ",\n  \"device_ns\": %" PRIu64 ",\n  \"kernels\": %" PRIu64
            ",\n  \"faults\": %" PRIu64 ",\n  \"mappings\": %" PRIu64 ",\n  \"calls\": {",
            gpu_stats.peak_physical_bytes, gpu_stats.device_ns, (uint64_t)gpu_stats.kernels,
            (uint64_t)gpu_stats.faults, gpu_stats.mappings);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s\n    \"%s\": %" PRIu64, i ? "," : "", calls[i]->name, (uint64_t)calls[i]->count);
    fprintf(f, "%s},\n  \"profiled\": {", n ? "\n  " : "");
    for (size_t i = 0, told = 0; i < n; i++)
        if (calls[i]->profiled)
            fprintf(f, "%s\n    \"%s\": %" PRIu64, told++ ? "," : "", calls[i]->name, calls[i]->profiled);
    fprintf(f, "}");
    gpu_costs_print(f, calls, n);
    fprintf(f, "\n}\n");
    if (fclose(f) || rename(tmp, gpu_cfg.stats_path))
        fprintf(stderr, "simgpu: SIMGPU_STATS: cannot write %s: %m\n", gpu_cfg.stats_path);
    written_ns = real_ns();
}

void gpu_stats_refresh(void)
{
    if (gpu_cfg.stats_path && real_ns() - written_ns > 100000000u)
        gpu_stats_write();
}
