/* cmd_status.c: `remat status`: which processes run under remat now, as a table, as JSON, as Prometheus' text format; once, or again
 * and again.
 */
#include "offline/commands/cli.h"
#include "offline/commands/jobs.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <time.h>

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

static const char *limit_text(uint64_t bytes, char *buf, size_t len)
{
    return bytes ? cli_bytes((int64_t)bytes, buf, len) : "none";
}

static int print_table(const struct jobs *j)
{
    if (!j->n)
        puts("no process runs under remat");
    else
        printf("%-10s %8s %3s %-10s %-8s %11s %11s %11s %11s %10s %7s  %s\n", "user", "pid", "gpu", "group", "mode", "limit", "in use",
               "peak", "on the host", "iterations", "it/s", "command");
    for (size_t i = 0; i < j->n; i++) {
        const struct job *s = &j->list[i];
        char limit[32], use[32], peak[32], host[32], gpu[12] = "-", rate[16] = "-";
        if (s->device >= 0)
            snprintf(gpu, sizeof gpu, "%d", s->device);
        if (s->iterations_per_s > 0)
            snprintf(rate, sizeof rate, s->iterations_per_s < 10 ? "%.2f" : "%.1f", s->iterations_per_s);
        printf("%-10.10s %8" PRId64 " %3s %-10.10s %-8s %11s %11s %11s %11s %10" PRIu64 " %7s  %.60s\n", s->user, s->pid, gpu,
               *s->group ? s->group : "-", *s->mode ? s->mode : "-", limit_text(s->limit_bytes, limit, sizeof limit),
               cli_bytes((int64_t)s->in_use_bytes, use, sizeof use), cli_bytes((int64_t)s->peak_bytes, peak, sizeof peak),
               cli_bytes((int64_t)s->host_bytes, host, sizeof host), s->iterations, rate, s->command);
    }
    for (size_t i = 0; i < j->n_groups; i++) {
        const struct ledger_view *v = &j->groups[i].view;
        char limit[32], held[32], peak[32];
        printf("group %s of %s: %s of %s reserved by %u process%s, %s at most\n", v->group, j->groups[i].user,
               cli_bytes((int64_t)v->reserved, held, sizeof held), cli_bytes((int64_t)v->limit, limit, sizeof limit), v->n, v->n == 1 ? "" : "es",
               cli_bytes((int64_t)v->peak_reserved, peak, sizeof peak));
    }
    return 0;
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------------- */

static json_t *job_json(const struct job *s)
{
    json_t *o = json_pack("{s:s,s:I,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:s}", "user", s->user, "pid", (json_int_t)s->pid, "group",
                          s->group, "mode", s->mode, "limit_bytes", (json_int_t)s->limit_bytes, "in_use_bytes",
                          (json_int_t)s->in_use_bytes, "peak_bytes", (json_int_t)s->peak_bytes, "swapped_bytes",
                          (json_int_t)s->host_bytes, "iterations", (json_int_t)s->iterations, "iterations_per_s", s->iterations_per_s,
                          "started_unix_s", (json_int_t)s->started_unix_s, "command", s->command);
    if (o)
        json_object_set_new(o, "device", s->device >= 0 ? json_pack("{s:i,s:s}", "ordinal", s->device, "pci", s->pci) : json_null());
    return o;
}

static json_t *group_json(const struct job_group *g)
{
    const struct ledger_view *v = &g->view;
    json_t *members = json_array();
    for (unsigned i = 0; i < v->n; i++) {
        const struct ledger_member *m = &v->member[i];
        json_array_append_new(members, json_pack("{s:I,s:I,s:I,s:I,s:b}", "pid", (json_int_t)m->pid, "reserved_bytes",
                                                 (json_int_t)m->reserved, "entitled_bytes", (json_int_t)m->entitled, "wanted_bytes",
                                                 (json_int_t)m->wanted, "blocked", (int)m->blocked));
    }
    return json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:o}", "user", g->user, "group", v->group, "device_uuid", v->device, "limit_bytes",
                     (json_int_t)v->limit, "reserved_bytes", (json_int_t)v->reserved, "peak_reserved_bytes",
                     (json_int_t)v->peak_reserved, "members", members);
}

/* One object, {"processes": [...], "groups": [...]}; `compact`: on one line. */
static int print_json(const struct jobs *j, bool compact)
{
    json_t *processes = json_array(), *groups = json_array();
    for (size_t i = 0; i < j->n; i++)
        json_array_append_new(processes, job_json(&j->list[i]));
    for (size_t i = 0; i < j->n_groups; i++)
        json_array_append_new(groups, group_json(&j->groups[i]));
    json_t *root = json_pack("{s:o,s:o}", "processes", processes, "groups", groups);
    int rc = root ? json_dumpf(root, stdout, (compact ? JSON_COMPACT : JSON_INDENT(2)) | JSON_PRESERVE_ORDER) : -ENOMEM;
    json_decref(root);
    putchar('\n');
    return root ? 0 : rc;
}

/* ---- Prometheus ------------------------------------------------------------------------------------------------------------ */

static void label(const char *name, const char *value, const char *before)
{
    printf("%s%s=\"", before, name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            putchar('\\');
        putchar(*value);
    }
    putchar('"');
}

static void job_labels(const struct job *s)
{
    char number[24];
    label("user", s->user, "{");
    snprintf(number, sizeof number, "%" PRId64, s->pid);
    label("pid", number, ",");
    snprintf(number, sizeof number, "%d", s->device);
    label("device", s->device >= 0 ? number : "", ",");
    label("pci", s->pci, ",");
    label("group", s->group, ",");
}

enum job_metric { LIMIT, IN_USE, PEAK, HOST, ITERATIONS, RATE, STARTED, INFO, JOB_METRICS };

static void job_sample(enum job_metric m, const struct job *s)
{
    job_labels(s);
    if (m == INFO) {
        label("mode", s->mode, ",");
        label("command", s->command, ",");
    }
    switch (m) {
    case LIMIT: printf("} %" PRIu64 "\n", s->limit_bytes); break;
    case IN_USE: printf("} %" PRIu64 "\n", s->in_use_bytes); break;
    case PEAK: printf("} %" PRIu64 "\n", s->peak_bytes); break;
    case HOST: printf("} %" PRIu64 "\n", s->host_bytes); break;
    case ITERATIONS: printf("} %" PRIu64 "\n", s->iterations); break;
    case RATE: printf("} %.6g\n", s->iterations_per_s); break;
    case STARTED: printf("} %" PRId64 "\n", s->started_unix_s); break;
    default: puts("} 1"); break;
    }
}

static void head(const char *name, const char *type, const char *help)
{
    printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void group_samples(const struct jobs *j, const char *name, int which)
{
    for (size_t i = 0; i < j->n_groups; i++) {
        const struct ledger_view *v = &j->groups[i].view;
        const uint64_t value[] = {v->limit, v->reserved, v->peak_reserved, v->n};
        fputs(name, stdout);
        label("user", j->groups[i].user, "{");
        label("group", v->group, ",");
        label("device_uuid", v->device, ",");
        printf("} %" PRIu64 "\n", value[which]);
    }
}

/* The text exposition format: each metric once, with all its samples below it. */
static int print_prometheus(const struct jobs *j)
{
    static const struct {
        const char *name, *type, *help;
    } jobs[JOB_METRICS] = {
        [LIMIT] = {"remat_limit_bytes", "gauge", "Device memory that the process may use."},
        [IN_USE] = {"remat_in_use_bytes", "gauge", "Device memory that the process uses now."},
        [PEAK] = {"remat_peak_bytes", "gauge", "Most device memory that the process has used."},
        [HOST] = {"remat_host_bytes", "gauge", "Pinned host memory taken for evicted tensors."},
        [ITERATIONS] = {"remat_iterations_total", "counter", "Training iterations seen."},
        [RATE] = {"remat_iterations_per_second", "gauge", "Rate of the last iterations."},
        [STARTED] = {"remat_start_time_seconds", "gauge", "When the process first used CUDA, seconds since the epoch."},
        [INFO] = {"remat_process_info", "gauge", "Always 1; what the process is and what remat does in it."},
    }, groups[] = {
        {"remat_group_limit_bytes", "gauge", "Device memory that the processes of a group may use together."},
        {"remat_group_reserved_bytes", "gauge", "Device memory that they hold now."},
        {"remat_group_peak_reserved_bytes", "gauge", "Most device memory that they have held."},
        {"remat_group_processes", "gauge", "Processes in the group."},
    };
    for (int m = 0; m < JOB_METRICS; m++) {
        head(jobs[m].name, jobs[m].type, jobs[m].help);
        for (size_t i = 0; i < j->n; i++) {
            fputs(jobs[m].name, stdout);
            job_sample((enum job_metric)m, &j->list[i]);
        }
    }
    for (int g = 0; g < (int)(sizeof groups / sizeof groups[0]); g++) {
        head(groups[g].name, groups[g].type, groups[g].help);
        group_samples(j, groups[g].name, g);
    }
    return 0;
}

/* ---- the command -------------------------------------------------------------------------------------------------------------- */

static int once(int json, int prometheus, bool again)
{
    struct jobs j;
    int rc = jobs_read(&j);
    if (!rc && json)
        rc = print_json(&j, again);
    else if (!rc)
        rc = prometheus ? print_prometheus(&j) : print_table(&j);
    jobs_free(&j);
    return rc;
}

int cmd_status(int argc, char **argv)
{
    int json = 0, prometheus = 0, watch = 0;
    const char *interval = NULL;
    double seconds = 2;
    const struct option_bind binds[] = {{"json", &json}, {"prometheus", &prometheus}, {"watch", &watch}, {"interval", &interval}, {0}};
    size_t n_operands;
    int rc = options_parse(argc, argv, binds, NULL, 0, &n_operands);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (json && prometheus)
        return cli_bad("status: --json or --prometheus, not both");
    if (interval && !watch)
        return cli_bad("status: --interval goes with --watch");
    if (interval && cli_real(interval, 0.1, 86400, &seconds))
        return cli_bad("status: --interval %s: it takes seconds, from 0.1 to 86400", interval);
    bool clear = watch && !json && !prometheus && isatty(STDOUT_FILENO);
    for (bool first = true; !rc && (first || watch); first = false) {
        if (!first) {
            const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
            if (!clear && !json)
                putchar('\n');
            fflush(stdout);
            if (ferror(stdout)) /* cli_finish says why */
                return CLI_OK;
            nanosleep(&pause, NULL);
        }
        if (clear)
            fputs("\033[H\033[2J", stdout);
        rc = once(json, prometheus, watch);
    }
    return rc ? cli_fail("status: out of memory") : CLI_OK;
}
