/* cmd_status.c: `remat status`: which processes run under remat now, as a table, as JSON, as Prometheus' text format; once, again
 * and again, or whenever Prometheus asks.
 */
#include "offline/commands/cli.h"
#include "offline/commands/jobs.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/commands/status_listen.h"
#include "offline/commands/status_metrics.h"
#include "offline/commands/status_table.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <time.h>

/* ---- JSON ----------------------------------------------------------------------------------------------------------------- */

static json_t *job_json(const struct job *s)
{
    json_t *o = json_pack("{s:s,s:I,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:s}", "user", s->user, "pid", (json_int_t)s->pid, "host", s->host, "group",
                          s->group, "mode", s->mode, "limit_bytes", (json_int_t)s->limit_bytes, "in_use_bytes",
                          (json_int_t)s->in_use_bytes, "peak_bytes", (json_int_t)s->peak_bytes, "swapped_bytes",
                          (json_int_t)s->host_bytes, "iterations", (json_int_t)s->iterations, "iterations_planned",
                          (json_int_t)s->iterations_planned, "iterations_per_s", s->iterations_per_s, "started_unix_s",
                          (json_int_t)s->started_unix_s, "command", s->command);
    json_t *counts = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "replays", (json_int_t)s->replays, "swaps_out", (json_int_t)s->swaps_out, "swaps_in",
                               (json_int_t)s->swaps_in, "departures", (json_int_t)s->departures, "compared", (json_int_t)s->compared, "differed",
                               (json_int_t)s->differed);
    json_object_update(o, counts);
    json_decref(counts);
    if (!o)
        return NULL;
    json_object_set_new(o, "price", isnan(s->price) ? json_null() : json_real(s->price));
    json_object_set_new(o, "share", s->device_bytes ? json_real(jobs_share(s)) : json_null());
    json_object_set_new(o, "device", s->device >= 0 ? json_pack("{s:i,s:s,s:s,s:I}", "ordinal", s->device, "pci", s->pci, "uuid", s->uuid, "bytes",
                                                                (json_int_t)s->device_bytes) : json_null());
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
    return json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:o}", "user", g->user, "group", v->group, "device_uuid", g->uuid, "limit_bytes",
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

/* ---- the command -------------------------------------------------------------------------------------------------------------- */

struct how {
    int json, prometheus, watch, wide;
    const char *sort;
};

static int once(const struct how *how)
{
    struct jobs j;
    int rc = jobs_read(&j);
    if (!rc && how->sort)
        rc = jobs_sort(&j, how->sort);
    if (!rc && how->json)
        rc = print_json(&j, how->watch);
    else if (!rc && how->prometheus)
        status_metrics(&j, stdout);
    else if (!rc)
        status_table(&j, how->wide);
    jobs_free(&j);
    return rc;
}

static int metrics(FILE *to)
{
    struct jobs j;
    int rc = jobs_read(&j);
    if (!rc)
        status_metrics(&j, to);
    jobs_free(&j);
    return rc;
}

static int serve(const char *where)
{
    char said[80];
    int fd = status_listen_at(where, said, sizeof said);
    if (fd == -EINVAL)
        return cli_bad("status: --listen %s: it takes PORT, ADDRESS:PORT or :PORT, in numbers", where);
    if (fd < 0)
        return cli_fail("status: --listen %s: %s", where, strerror(-fd));
    printf("http://%s/metrics\n", said);
    fflush(stdout);
    return cli_fail("status: %s", strerror(-status_listen(fd, metrics)));
}

int cmd_status(int argc, char **argv)
{
    struct how how = {0};
    const char *interval = NULL, *where = NULL;
    double seconds = 2;
    const struct option_bind binds[] = {{"json", &how.json}, {"prometheus", &how.prometheus}, {"watch", &how.watch}, {"interval", &interval},
                                        {"listen", &where}, {"sort", &how.sort}, {"wide", &how.wide}, {0}};
    size_t n_operands;
    int rc = options_parse(argc, argv, binds, NULL, 0, &n_operands);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (how.json && how.prometheus)
        return cli_bad("status: --json or --prometheus, not both");
    if (where && (how.json || how.watch || how.wide || how.sort))
        return cli_bad("status: --listen goes with no other form: it serves what --prometheus prints");
    if (interval && !how.watch)
        return cli_bad("status: --interval goes with --watch");
    if (interval && cli_real(interval, 0.1, 86400, &seconds))
        return cli_bad("status: --interval %s: it takes seconds, from 0.1 to 86400", interval);
    if (how.sort && jobs_sort(&(struct jobs){0}, how.sort)) {
        char hint[64];
        return cli_bad("status: --sort %s: it takes %s%s", how.sort, options_values("status", "sort"),
                       options_hint(how.sort, options_values("status", "sort"), hint, sizeof hint));
    }
    if (where)
        return serve(where);
    bool clear = how.watch && !how.json && !how.prometheus && isatty(STDOUT_FILENO);
    for (bool first = true; !rc && (first || how.watch); first = false) {
        if (!first) {
            const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
            if (!clear && !how.json)
                putchar('\n');
            fflush(stdout);
            if (ferror(stdout)) /* cli_finish says why */
                return CLI_OK;
            nanosleep(&pause, NULL);
        }
        if (clear)
            fputs("\033[H\033[2J", stdout);
        rc = once(&how);
    }
    return rc ? cli_fail("status: out of memory") : CLI_OK;
}
