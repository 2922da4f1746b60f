/*
 * Figures: a file of lines
 *
 *   cuMemSetAccess  19774 50     the call takes 19,774 ns, and 50 more for each MiB that it is about
 *   cuMemset*       4000         all calls whose names begin so and that no line before names
 *   gap             10000        the program's own work before each launch
 *   host_bw         54.8e9       bytes a second between host and device, where SIMGPU_HOST_BW says nothing else
 *   host_bw_both    93e9         in both directions together
 *
 * # begins a comment. What no line names takes nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu_costs.h"

/* Measured on an H200 (`facts` in tests/gpu/results), each call alone. A copy's or a fill's call was not: it takes what a launch takes. */
static const char h200[] = "cuLaunchKernel 3106\n"
                           "cuLaunch* 3106\n"
                           "cuGraphLaunch 4000\n"
                           "cuMemcpy* 3106\n"
                           "cuMemset* 3106\n"
                           "cuMemAllocAsync 279\n"
                           "cuMemAllocFromPoolAsync 279\n"
                           "cuMemFreeAsync 395\n"
                           "cuEventRecord 123\n"
                           "cuStreamWaitEvent 112\n"
                           "cuEventQuery 131\n"
                           "cuStreamQuery 139\n"
                           "cuMemCreate 8277\n"
                           "cuMemMap 614\n"
                           "cuMemSetAccess 19774 50\n"
                           "cuMemUnmap 16779\n"
                           "cuMemRelease 10669\n"
                           "cuMemAddressReserve 2350\n"
                           "cuMemAddressFree 7893\n"
                           "cuMemHostAlloc 0 381600\n"
                           "cuMemAllocHost 0 381600\n"
                           "host_bw 54.8e9\n"
                           "host_bw_both 93e9\n";

enum { MAX_ROWS = 256, MAX_NAME = 64 };
static struct {
    char name[MAX_NAME];
    uint64_t ns, ns_per_mib;
} rows[MAX_ROWS];
static int n_rows;
static uint64_t gap_ns;
static _Atomic uint64_t program_ns;
static __thread gpu_call *here;

static CUresult refuse(const char *where, int line, const char *want)
{
    fprintf(stderr, "simgpu: SIMGPU_COSTS=%s: line %d: %s\n", where, line, want);
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult read_line(const char *where, int line, char *text)
{
    char name[MAX_NAME], more;
    double a, b = 0;
    text[strcspn(text, "#")] = 0;
    if (!text[strspn(text, " \t\r\n")])
        return CUDA_SUCCESS;
    const int n = sscanf(text, " %63s %lf %lf %c", name, &a, &b, &more);
    if (n < 2 || n > 3 || !(a >= 0 && a < 1e15) || !(b >= 0 && b < 1e15))
        return refuse(where, line, "want a name and one or two numbers");
    if (!strcmp(name, "gap"))
        gap_ns = (uint64_t)a;
    else if (!strcmp(name, "host_bw") && a > 0) {
        if (!getenv("SIMGPU_HOST_BW"))
            gpu_cfg.host_bytes_per_s = a;
    } else if (!strcmp(name, "host_bw_both") && a > 0)
        gpu_cfg.host_bytes_per_s_both = a;
    else if (strncmp(name, "cu", 2))
        return refuse(where, line, "want a driver call, gap, host_bw or host_bw_both");
    else if (n_rows == MAX_ROWS)
        return refuse(where, line, "want 256 calls at most");
    else {
        strcpy(rows[n_rows].name, name);
        rows[n_rows].ns = (uint64_t)a;
        rows[n_rows++].ns_per_mib = (uint64_t)b;
    }
    return CUDA_SUCCESS;
}

CUresult gpu_costs_read(void)
{
    const char *v = getenv("SIMGPU_COSTS");
    if (!v || !*v)
        return CUDA_SUCCESS;
    FILE *f = strcmp(v, "h200") ? fopen(v, "r") : fmemopen((void *)(uintptr_t)h200, sizeof h200 - 1, "r");
    char text[256];
    if (!f) {
        fprintf(stderr, "simgpu: SIMGPU_COSTS=%s: want h200, or a file: %m\n", v);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult r = CUDA_SUCCESS;
    for (int line = 1; !r && fgets(text, sizeof text, f); line++)
        r = read_line(v, line, text);
    fclose(f);
    gpu_cfg.costs = true;
    return r;
}

void gpu_costs_row(gpu_call *call)
{
    for (int i = 0; i < n_rows; i++) {
        const size_t n = strlen(rows[i].name);
        if (rows[i].name[n - 1] == '*' ? strncmp(rows[i].name, call->name, n - 1) : !gpu_config_names(rows[i].name, call->name))
            continue;
        call->ns = rows[i].ns;
        call->ns_per_mib = rows[i].ns_per_mib;
        break;
    }
    call->launches = !strncmp(call->name, "cuLaunchKernel", 14) || !strncmp(call->name, "cuLaunchCooperative", 19);
}

static void takes(gpu_call *call, uint64_t ns)
{
    call->host_ns += ns;
    gpu_clock_host_works(ns);
}

void gpu_costs_enter(gpu_call *call)
{
    here = call;
    if (call->launches && gap_ns) {
        program_ns += gap_ns;
        gpu_clock_host_works(gap_ns);
    }
    takes(call, call->ns);
}

void gpu_costs_bytes(uint64_t bytes)
{
    if (gpu_cfg.costs && here)
        takes(here, (uint64_t)((double)here->ns_per_mib * (double)bytes / (1 << 20)));
}

void gpu_costs_waited(uint64_t ns)
{
    if (gpu_cfg.costs && here)
        here->wait_ns += ns;
}

GPU_EXPORT void simgpu_host_works(uint64_t ns)
{
    if (!gpu_cfg.costs)
        return;
    program_ns += ns;
    gpu_clock_host_works(ns);
}

void gpu_costs_print(FILE *f, gpu_call *const *calls, size_t n)
{
    uint64_t busy[3];
    if (!gpu_cfg.costs)
        return;
    gpu_clock_busy(busy);
    fprintf(f, ",\n  \"device_busy_ns\": {\"compute\": %" PRIu64 ", \"htod\": %" PRIu64 ", \"dtoh\": %" PRIu64 "}", busy[0], busy[1], busy[2]);
    fprintf(f, ",\n  \"host\": {\"end_ns\": %" PRIu64 ", \"program_ns\": %" PRIu64 ", \"calls\": {", gpu_clock_host_latest(), (uint64_t)program_ns);
    for (size_t i = 0, told = 0; i < n; i++)
        if (calls[i]->host_ns || calls[i]->wait_ns)
            fprintf(f, "%s\n    \"%s\": {\"ns\": %" PRIu64 ", \"wait_ns\": %" PRIu64 "}", told++ ? "," : "", calls[i]->name, (uint64_t)calls[i]->host_ns,
                    (uint64_t)calls[i]->wait_ns);
    fprintf(f, "}}");
}
