/* remat export TRACE [PLAN] --format F -o OUT: the iteration, as it is or under a plan, for other people's viewers.
 *
 *   perfetto    Trace Event JSON for ui.perfetto.dev: compute and copy tracks, memory as a counter
 *   memory-viz  a memory snapshot as PyTorch's viewer reads it: a pickle, or the same as JSON if OUT ends in .json
 *   sqlite      tables meta, buffers, ops, operands, steps
 *   dot         the graph of ops for Graphviz, an edge per value and consumer
 */
#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/model/graph.h"
#include "offline/model/plan.h"
#include "offline/model/sched.h"
#include "offline/model/sim.h"
#include "offline/model/trace_read.h"
#include "offline/report/export_viz.h"
#include "offline/report/walk.h"
#include "tracer/output.h"


static int step_runs(const struct plan_step *st) { return st->kind == PLAN_OP || st->kind == PLAN_REPLAY; }

/* ---- perfetto ------------------------------------------------------------------------------------------------- */

enum { TRACK_COMPUTE = 1, TRACK_OUT, TRACK_IN };

static void put_track(FILE *f, int tid, const char *name)
{
    fprintf(f, "{\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"thread_name\", \"args\": {\"name\": \"%s\"}},\n", tid, name);
}

static void put_flow(FILE *f, char phase, int id, double ns)
{
    fprintf(f, ",\n{\"ph\": \"%c\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"cat\": \"replay\", \"name\": \"replay of\", \"id\": %d%s}", phase,
            TRACK_COMPUTE, ns / 1e3, id, phase == 'f' ? ", \"bp\": \"e\"" : "");
}

static void put_slice(struct export *x, size_t k)
{
    const struct plan_step *st = &x->plan->steps[k];
    const struct graph_op *o = &x->g->ops[st->id];
    const double start = x->clock_ns[k] - (double)o->ns;
    const int replay = st->kind == PLAN_REPLAY;
    fprintf(x->f, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, \"cat\": \"%s\", \"name\": ", TRACK_COMPUTE,
            start / 1e3, (double)o->ns / 1e3, replay ? "replay" : graph_phase_name(o->phase));
    export_string(x->f, PLAIN(o->name), false);
    fprintf(x->f, ", \"args\": {\"op\": %d, \"flops\": %lld, \"bytes\": %lld, \"phase\": \"%s\"", st->id, (long long)o->flops,
            (long long)o->bytes, graph_phase_name(o->phase));
    fputs(", \"symbol\": ", x->f);
    export_string(x->f, o->name, false);
    if (o->site >= 0 && o->site < x->g->n_sites) {
        char *site = walk_site_plain(x->g->sites[o->site]);
        fputs(", \"site\": ", x->f);
        export_string(x->f, site ? site : x->g->sites[o->site], false);
        free(site);
    }
    fprintf(x->f, "}},\n{\"ph\": \"C\", \"pid\": 1, \"ts\": %.3f, \"name\": \"memory\", \"args\": {\"bytes\": %lld}}", start / 1e3,
            (long long)x->use_bytes[k]);
}

/* The compute track in order, the copies, and an arrow from each replay's original to it: to the middle of the slices, since
 * an arrow belongs to the slice that its time lies in. */
static int export_perfetto(struct export *x)
{
    const struct graph *g = x->g;
    const struct plan *p = x->plan;
    double *at = calloc((size_t)g->n_ops + 1, sizeof *at), *from = calloc(p->n_steps + 1, sizeof *from),
           *to = calloc(p->n_steps + 1, sizeof *to);
    int rc = at && from && to ? walk_copies(g, p, x->clock_ns, from, to) : -ENOMEM, flows = 0;
    fprintf(x->f, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    put_track(x->f, TRACK_COMPUTE, "compute");
    put_track(x->f, TRACK_OUT, "copies out");
    put_track(x->f, TRACK_IN, "copies in");
    fprintf(x->f, "{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": ");
    export_string(x->f, g->model[0] ? g->model : "trace", false);
    fprintf(x->f, "}}");
    for (size_t k = 0; !rc && k < p->n_steps; k++) {
        const struct plan_step *st = &p->steps[k];
        if (step_runs(st)) {
            const double middle = x->clock_ns[k] - (double)g->ops[st->id].ns / 2;
            put_slice(x, k);
            if (st->kind == PLAN_OP) {
                at[st->id] = middle;
            } else {
                put_flow(x->f, 's', ++flows, at[st->id]);
                put_flow(x->f, 'f', flows, middle);
            }
        } else if (to[k] > from[k]) {
            fprintf(x->f, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, \"cat\": \"copy\", "
                    "\"name\": \"buffer %d\", \"args\": {\"bytes\": %lld}}",
                    st->kind == PLAN_OFFLOAD ? TRACK_OUT : TRACK_IN, from[k] / 1e3, (to[k] - from[k]) / 1e3, st->id,
                    (long long)g->bufs[st->id].bytes);
        }
    }
    fprintf(x->f, "\n]}\n");
    free(at);
    free(from);
    free(to);
    return rc;
}

/* ---- dot ---------------------------------------------------------------------------------------------------------- */

static int export_dot(struct export *x)
{
    static const char *const colour[] = {"#cfe8cf", "#f6d9c4", "#d8d8ee"};
    const struct graph *g = x->g;
    char text[32];
    fprintf(x->f, "digraph iteration {\n  rankdir=TB; node [shape=box, style=filled, fontname=\"sans-serif\"];\n");
    for (int32_t o = 0; o < g->n_ops; o++) {
        fprintf(x->f, "  op%d [fillcolor=\"%s\", label=", o, colour[g->ops[o].phase % 3]);
        char label[256];
        snprintf(label, sizeof label, "%d %.200s %.1f us", o, PLAIN(g->ops[o].name), (double)g->ops[o].ns / 1e3);
        export_string(x->f, label, false);
        fprintf(x->f, "];\n");
    }
    for (int32_t v = 0; v < g->n_vals; v++) {
        const struct graph_val *val = &g->vals[v];
        for (int32_t k = 0; val->producer >= 0 && k < val->n_uses; k++)
            fprintf(x->f, "  op%d -> op%d [label=\"%d.%d %s\"];\n", val->producer, g->uses[val->first_use + k], val->buf,
                    val->version, cli_bytes(g->bufs[val->buf].bytes, text, sizeof text));
    }
    fprintf(x->f, "}\n");
    return 0;
}

/* ---- sqlite ------------------------------------------------------------------------------------------------------- */

struct table {
    sqlite3 *db;
    sqlite3_stmt *st;
    int rc;
};

static void table_open(struct table *t, const char *create, const char *insert)
{
    if (t->rc == SQLITE_OK)
        t->rc = sqlite3_exec(t->db, create, NULL, NULL, NULL);
    t->st = NULL;
    if (t->rc == SQLITE_OK)
        t->rc = sqlite3_prepare_v2(t->db, insert, -1, &t->st, NULL);
}

/* One row: `i` an int64_t, `s` a string, `d` a double, in the order of the columns. */
struct cell {
    char type;
    int64_t i;
    double d;
    const char *s;
};
static void table_row(struct table *t, const struct cell *c, int n)
{
    for (int k = 0; t->rc == SQLITE_OK && k < n; k++)
        t->rc = c[k].type == 'i' ? sqlite3_bind_int64(t->st, k + 1, c[k].i)
                : c[k].type == 'd' ? sqlite3_bind_double(t->st, k + 1, c[k].d)
                                   : sqlite3_bind_text(t->st, k + 1, c[k].s, -1, SQLITE_STATIC);
    if (t->rc == SQLITE_OK && (t->rc = sqlite3_step(t->st)) == SQLITE_DONE)
        t->rc = sqlite3_reset(t->st);
}
static struct cell ci(int64_t i) { return (struct cell){'i', i, 0, NULL}; }
static struct cell cd(double d) { return (struct cell){'d', 0, d, NULL}; }
static struct cell cs(const char *s) { return (struct cell){'s', 0, 0, s}; }

static void table_close(struct table *t)
{
    sqlite3_finalize(t->st);
    t->st = NULL;
}

static void sqlite_fill(struct export *x, struct table *t, const unsigned char *use)
{
    static const char *const role[] = {"read", "rmw", "side", "write"};
    const struct graph *g = x->g;
    table_open(t, "CREATE TABLE meta (key TEXT PRIMARY KEY, value)", "INSERT INTO meta VALUES (?, ?)");
    table_row(t, (struct cell[]){cs("model"), cs(g->model)}, 2);
    table_row(t, (struct cell[]){cs("device"), cs(g->device)}, 2);
    table_row(t, (struct cell[]){cs("source"), cs(g->source)}, 2);
    table_row(t, (struct cell[]){cs("trace_sha256"), cs(g->sha256)}, 2);
    table_row(t, (struct cell[]){cs("total_ns"), ci(g->total_ns)}, 2);
    table_row(t, (struct cell[]){cs("baseline_peak_bytes"), ci(g->baseline_peak_bytes)}, 2);
    table_row(t, (struct cell[]){cs("floor_bytes"), ci(g->floor_bytes)}, 2);
    table_close(t);
    table_open(t, "CREATE TABLE buffers (id INTEGER PRIMARY KEY, bytes INTEGER, born INTEGER, dies INTEGER, kind TEXT, use TEXT)",
               "INSERT INTO buffers VALUES (?, ?, ?, ?, ?, ?)");
    for (int32_t b = 0; b < g->n_bufs; b++)
        table_row(t, (struct cell[]){ci(b), ci(g->bufs[b].bytes), ci(g->bufs[b].born), ci(g->bufs[b].dies),
                                     cs(graph_kind_name(g->bufs[b].kind)), cs(walk_use_name(use[b]))}, 6);
    table_close(t);
    table_open(t, "CREATE TABLE ops (id INTEGER PRIMARY KEY, name TEXT, symbol TEXT, phase TEXT, ns INTEGER, flops INTEGER, bytes INTEGER, "
                  "heavy INTEGER, random INTEGER, opaque INTEGER, live_bytes INTEGER, site TEXT)",
               "INSERT INTO ops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (int32_t o = 0; o < g->n_ops; o++) {
        const struct graph_op *op = &g->ops[o];
        table_row(t, (struct cell[]){ci(o), cs(PLAIN(op->name)), cs(op->name), cs(graph_phase_name(op->phase)), ci(op->ns), ci(op->flops), ci(op->bytes),
                                     ci(op->heavy), ci(op->random), ci(op->opaque), ci(g->live_bytes[o]),
                                     cs(op->site >= 0 && op->site < g->n_sites ? g->sites[op->site] : NULL)}, 12);
    }
    table_close(t);
    table_open(t, "CREATE TABLE operands (op INTEGER, buffer INTEGER, role TEXT, version_in INTEGER, version_out INTEGER)",
               "INSERT INTO operands VALUES (?, ?, ?, ?, ?)");
    for (int32_t o = 0; o < g->n_ops; o++) {
        const struct graph_operand *p = graph_operands(g, o);
        for (int32_t k = 0; k < graph_n_operands(&g->ops[o]); k++)
            table_row(t, (struct cell[]){ci(o), ci(p[k].buf), cs(role[p[k].role]), ci(p[k].in < 0 ? -1 : g->vals[p[k].in].version),
                                         ci(p[k].out < 0 ? -1 : g->vals[p[k].out].version)}, 5);
    }
    table_close(t);
    table_open(t, "CREATE TABLE steps (step INTEGER PRIMARY KEY, kind TEXT, id INTEGER, use_bytes INTEGER, clock_ns REAL)",
               "INSERT INTO steps VALUES (?, ?, ?, ?, ?)");
    for (size_t k = 0; k < x->plan->n_steps; k++)
        table_row(t, (struct cell[]){ci((int64_t)k), cs(plan_kind_name(x->plan->steps[k].kind)), ci(x->plan->steps[k].id),
                                     ci(x->use_bytes[k]), cd(x->clock_ns[k])}, 5);
    table_close(t);
}

static int export_sqlite(struct export *x)
{
    struct table t = {0};
    sqlite3_int64 n = 0;
    unsigned char *image = NULL;
    uint8_t *use = malloc((size_t)x->g->n_bufs + 1), *phase = malloc((size_t)x->g->n_ops + 1);
    t.rc = use && phase && !walk_uses(x->g, use, phase) ? sqlite3_open(":memory:", &t.db) : SQLITE_NOMEM;
    if (t.rc == SQLITE_OK)
        t.rc = sqlite3_exec(t.db, "BEGIN", NULL, NULL, NULL);
    if (t.rc == SQLITE_OK)
        sqlite_fill(x, &t, use);
    free(use);
    free(phase);
    if (t.rc == SQLITE_OK)
        t.rc = sqlite3_exec(t.db, "COMMIT", NULL, NULL, NULL);
    if (t.rc == SQLITE_OK && !(image = sqlite3_serialize(t.db, "main", &n, 0)))
        t.rc = SQLITE_NOMEM;
    if (t.rc == SQLITE_OK)
        fwrite(image, 1, (size_t)n, x->f);
    else if (t.rc != SQLITE_NOMEM)
        cli_fail("export: SQLite: %s", t.db ? sqlite3_errmsg(t.db) : sqlite3_errstr(t.rc));
    sqlite3_free(image);
    sqlite3_close(t.db);
    return t.rc == SQLITE_OK ? 0 : t.rc == SQLITE_NOMEM ? -ENOMEM : -EIO;
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*write)(struct export *x);
} formats[] = {{"perfetto", export_perfetto}, {"memory-viz", export_memory_viz}, {"dot", export_dot}, {"sqlite", export_sqlite}};

/* PyTorch spells it memory_viz. */
static int same_word(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (tolower((unsigned char)(*a == '_' ? '-' : *a)) != *b)
            return 0;
    return *a == *b;
}

static int export_write(struct export *x, const char *format)
{
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        if (!same_word(format, formats[k].name))
            continue;
        struct output o;
        char err[512];
        if (output_open(&o, x->out, 0, err, sizeof err))
            return cli_fail("export: %s", err);
        x->f = o.f;
        const int rc = formats[k].write(x);
        if (rc) {
            output_abandon(&o);
            return cli_fail("export: %s", strerror(-rc));
        }
        return output_commit(&o, err, sizeof err) ? cli_fail("export: %s", err) : CLI_OK;
    }
    char hint[128];
    return cli_bad("export: no format \"%s\"%s (perfetto, sqlite, dot, memory-viz)", format,
                   options_hint(format, options_values("export", "format"), hint, sizeof hint));
}

static int export_run(const struct graph *g, const char *plan_path, const char *format, const char *out)
{
    struct plan p = {0};
    struct sim_result r = {0};
    char err[512];
    struct export x = {.g = g, .plan = &p, .out = out};
    int rc = plan_path ? (plan_read(plan_path, &p, err, sizeof err) ? cli_bad("%s", err) : 0)
                       : (sched_baseline(g, &p) ? cli_fail("export: out of memory") : 0);
    if (!rc) {
        x.use_bytes = calloc(p.n_steps + 1, sizeof *x.use_bytes);
        x.clock_ns = calloc(p.n_steps + 1, sizeof *x.clock_ns);
        if (!x.use_bytes || !x.clock_ns || sim_profile(g, &p, x.use_bytes, x.clock_ns, &r))
            rc = cli_fail("export: out of memory");
        else if (!r.ok && r.error_step >= 0)
            rc = cli_bad("export: %s is no plan for this trace: %s", plan_path ? plan_path : "the program", r.error);
        else
            rc = export_write(&x, format);
    }
    free(x.use_bytes);
    free(x.clock_ns);
    plan_free(&p);
    return rc;
}

int cmd_export(int argc, char **argv)
{
    const char *operand[2] = {0}, *format = NULL, *out = NULL;
    const struct option_bind binds[] = {{"format", &format}, {"output", &out}, {0}};
    struct graph *g = NULL;
    char err[512];
    size_t n = 0;
    int rc = options_parse(argc, argv, binds, operand, 2, &n);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (n < 1 || !format || !out)
        return cli_bad("export: give a trace, --format and -o (remat export --help)");
    if (trace_read(operand[0], &g, err, sizeof err))
        return cli_bad("%s", err);
    rc = export_run(g, n > 1 ? operand[1] : NULL, format, out);
    graph_free(g);
    return rc;
}
