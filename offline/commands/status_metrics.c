/* status_metrics.c: see status_metrics.h. */
#include "offline/commands/status_metrics.h"

#include <inttypes.h>
#include <math.h>

static void label(FILE *to, const char *name, const char *value, const char *before)
{
    fprintf(to, "%s%s=\"", before, name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            putc('\\', to);
        putc(*value, to);
    }
    putc('"', to);
}

static void head(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

enum job_metric {
    DEVICE, LIMIT, IN_USE, PEAK, HOST, ITERATIONS, PLANNED, REPLAYS, SWAPS_OUT, SWAPS_IN, DEPARTURES, COMPARED, DIFFERED, PRICE, RATE, STARTED, INFO, JOB_METRICS
};

struct metric {
    const char *name, *type, *help;
};

static const struct metric of_jobs[JOB_METRICS] = {
    [DEVICE] = {"remat_device_bytes", "gauge", "All memory of the device that the process is on."},
    [LIMIT] = {"remat_limit_bytes", "gauge", "Device memory that the process may use."},
    [IN_USE] = {"remat_in_use_bytes", "gauge", "Device memory that the process uses now."},
    [PEAK] = {"remat_peak_bytes", "gauge", "Most device memory that the process has used."},
    [HOST] = {"remat_host_bytes", "gauge", "Pinned host memory taken for evicted tensors."},
    [ITERATIONS] = {"remat_iterations_total", "counter", "Training iterations seen."},
    [PLANNED] = {"remat_iterations_planned_total", "counter", "Training iterations that ran by a plan."},
    [REPLAYS] = {"remat_replays_total", "counter", "Kernels run again to rebuild a dropped tensor."},
    [SWAPS_OUT] = {"remat_swaps_out_total", "counter", "Tensors copied to the host."},
    [SWAPS_IN] = {"remat_swaps_in_total", "counter", "Tensors copied back from the host."},
    [DEPARTURES] = {"remat_departures_total", "counter", "Iterations in the midst of which their plan was left."},
    [COMPARED] = {"remat_comparisons_total", "counter", "Rebuilt tensors that were compared with what they had been."},
    [DIFFERED] = {"remat_comparisons_failed_total", "counter", "Comparisons that found a difference."},
    [PRICE] = {"remat_price_ratio", "gauge", "Device time of an iteration beyond the native, as a share of the native."},
    [RATE] = {"remat_iterations_per_second", "gauge", "Rate of the last iterations."},
    [STARTED] = {"remat_start_time_seconds", "gauge", "When the process first used CUDA, seconds since the epoch."},
    [INFO] = {"remat_process_info", "gauge", "Always 1; what the process is and what remat does in it."},
};

static void job_sample(FILE *to, enum job_metric m, const struct job *s)
{
    const uint64_t figures[JOB_METRICS] = {
        [DEVICE] = s->device_bytes, [LIMIT] = s->limit_bytes, [IN_USE] = s->in_use_bytes, [PEAK] = s->peak_bytes, [HOST] = s->host_bytes,
        [ITERATIONS] = s->iterations, [PLANNED] = s->iterations_planned, [REPLAYS] = s->replays, [SWAPS_OUT] = s->swaps_out, [SWAPS_IN] = s->swaps_in,
        [DEPARTURES] = s->departures, [COMPARED] = s->compared, [DIFFERED] = s->differed, [STARTED] = (uint64_t)s->started_unix_s, [INFO] = 1};
    char number[24];
    if ((m == PRICE && isnan(s->price)) || (m == DEVICE && !s->device_bytes)) /* not known is no figure */
        return;
    fputs(of_jobs[m].name, to);
    label(to, "user", s->user, "{");
    snprintf(number, sizeof number, "%" PRId64, s->pid);
    label(to, "pid", number, ",");
    label(to, "host", s->host, ",");
    snprintf(number, sizeof number, "%d", s->device);
    label(to, "device", s->device >= 0 ? number : "", ",");
    label(to, "UUID", s->uuid, ",");
    label(to, "pci", s->pci, ",");
    label(to, "group", s->group, ",");
    if (m == INFO) {
        label(to, "mode", s->mode, ",");
        label(to, "command", s->command, ",");
    }
    if (m == PRICE || m == RATE)
        fprintf(to, "} %.6g\n", m == PRICE ? s->price : s->iterations_per_s);
    else
        fprintf(to, "} %" PRIu64 "\n", figures[m]);
}

static const struct metric of_groups[] = {
    {"remat_group_limit_bytes", "gauge", "Device memory that the processes of a group may use together."},
    {"remat_group_reserved_bytes", "gauge", "Device memory that they hold now."},
    {"remat_group_peak_reserved_bytes", "gauge", "Most device memory that they have held."},
    {"remat_group_processes", "gauge", "Processes in the group."},
};
enum { GROUP_METRICS = sizeof of_groups / sizeof *of_groups };

static void group_sample(FILE *to, int m, const struct job_group *g)
{
    const struct ledger_view *v = &g->view;
    const uint64_t figures[GROUP_METRICS] = {v->limit, v->reserved, v->peak_reserved, v->n};
    fputs(of_groups[m].name, to);
    label(to, "user", g->user, "{");
    label(to, "group", v->group, ",");
    label(to, "UUID", g->uuid, ",");
    fprintf(to, "} %" PRIu64 "\n", figures[m]);
}

void status_metrics(const struct jobs *j, FILE *to)
{
    for (int m = 0; m < JOB_METRICS; m++) {
        head(to, of_jobs[m].name, of_jobs[m].type, of_jobs[m].help);
        for (size_t i = 0; i < j->n; i++)
            job_sample(to, (enum job_metric)m, &j->list[i]);
    }
    for (int m = 0; m < GROUP_METRICS; m++) {
        head(to, of_groups[m].name, of_groups[m].type, of_groups[m].help);
        for (size_t i = 0; i < j->n_groups; i++)
            group_sample(to, m, &j->groups[i]);
    }
}
