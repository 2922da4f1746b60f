/* remat report TRACE [PLAN...] -o OUT.html: one self-contained page: memory over time, as the program is and under each
 * plan; the trade-off; where the bytes are; what is replayed. Inline SVG, no script, nothing fetched; details are in
 * the titles that show when the pointer rests on a mark. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/model/graph.h"
#include "offline/model/plan.h"
#include "offline/model/sched.h"
#include "offline/model/sim.h"
#include "tracer/output.h"

enum { REPORT_PLANS = 12, CHART_W = 960, CHART_H = 320, CHART_LEFT = 70, CHART_TOP = 12, CHART_BOTTOM = 36, TOP_ROWS = 15 };

static const char *const report_colour[] = {"#444444", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
enum { REPORT_COLOURS = sizeof report_colour / sizeof *report_colour };

struct line {
    const char *name; /* borrowed: file name, or "no eviction" */
    struct plan plan;
    struct sim_result r;
    int64_t *use_bytes;
    double *clock_ns;
};

struct report {
    const struct graph *g;
    FILE *f;
    struct line line[REPORT_PLANS + 1];
    int n;
};

static void put_text(FILE *f, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '&': fputs("&amp;", f); break;
        case '"': fputs("&quot;", f); break;
        default: fputc(*s, f);
        }
}

static const char *colour(int k) { return report_colour[k % REPORT_COLOURS]; }

/* ---- scales ------------------------------------------------------------------------------------------------------- */

struct scale {
    double x_max, y_max;
    double left, top, width, height;
};

static double sx(const struct scale *s, double x) { return s->left + (s->x_max > 0 ? x / s->x_max * s->width : 0); }
static double sy(const struct scale *s, double y) { return s->top + s->height - (s->y_max > 0 ? y / s->y_max * s->height : 0); }

/* A step of 1, 2 or 5 times a power of ten that cuts the axis into four to ten. */
static double nice_step(double max)
{
    double step = pow(10, floor(log10(max > 0 ? max : 1)) - 1);
    while (max / step > 10)
        step *= max / step > 40 ? 5 : 2;
    return step;
}

static void axes(struct report *p, const struct scale *s, const char *x_name, double x_unit, const char *y_name, double y_unit)
{
    const double xs = nice_step(s->x_max / x_unit), ys = nice_step(s->y_max / y_unit);
    for (double v = 0; v <= s->y_max / y_unit * 1.0001; v += ys)
        fprintf(p->f, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"ax\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"end\">%g</text>\n", s->left, s->left + s->width, sy(s, v * y_unit), sy(s, v * y_unit), s->left - 6,
                sy(s, v * y_unit) + 4, v);
    for (double v = 0; v <= s->x_max / x_unit * 1.0001; v += xs)
        fprintf(p->f, "<text class=\"ax\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n", sx(s, v * x_unit),
                s->top + s->height + 16, v);
    fprintf(p->f, "<text class=\"ax\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", s->left + s->width,
            s->top + s->height + 31, x_name);
    fprintf(p->f, "<text class=\"ax\" transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
            s->top + s->height / 2, y_name);
}

static void chart_begin(struct report *p, const char *label)
{
    fprintf(p->f, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"%s\" "
            "xmlns=\"http://www.w3.org/2000/svg\">\n", CHART_W, CHART_H, CHART_W, CHART_H, label);
}

static struct scale chart_scale(double x_max, double y_max)
{
    return (struct scale){x_max, y_max, CHART_LEFT, CHART_TOP, CHART_W - CHART_LEFT - 16, CHART_H - CHART_TOP - CHART_BOTTOM};
}

/* ---- memory over time --------------------------------------------------------------------------------------------- */

static int runs(const struct plan_step *st) { return st->kind == PLAN_OP || st->kind == PLAN_REPLAY; }

static void memory_line(struct report *p, const struct scale *s, int k)
{
    const struct line *l = &p->line[k];
    double x = -1, y = -1;
    fprintf(p->f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.4\" d=\"M%.1f %.1f", colour(k), sx(s, 0), sy(s, 0));
    for (size_t i = 0; i < l->plan.n_steps; i++) {
        if (!runs(&l->plan.steps[i]))
            continue;
        const double to = sx(s, l->clock_ns[i]), at = sy(s, (double)l->use_bytes[i]);
        if (fabs(at - y) >= 0.1)
            fprintf(p->f, "V%.1f", at);
        if (fabs(to - x) >= 0.1)
            fprintf(p->f, "H%.1f", to);
        x = to;
        y = at;
    }
    fprintf(p->f, "\"/>\n");
}

/* Columns to point at: what runs there, and what each schedule holds. */
static void memory_hover(struct report *p, const struct scale *s)
{
    enum { COLUMNS = 240 };
    size_t at[REPORT_PLANS + 1] = {0};
    char text[32];
    for (int c = 0; c < COLUMNS; c++) {
        const double t = s->x_max * (c + 0.5) / COLUMNS;
        fprintf(p->f, "<rect class=\"hit\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%.3f ms", sx(s, s->x_max * c / COLUMNS),
                s->top, s->width / COLUMNS, s->height, t / 1e6);
        for (int k = 0; k < p->n; k++) {
            const struct line *l = &p->line[k];
            while (at[k] + 1 < l->plan.n_steps && (l->clock_ns[at[k]] < t || !runs(&l->plan.steps[at[k]])))
                at[k]++;
            const struct plan_step *st = &l->plan.steps[at[k]];
            if (!l->plan.n_steps || !runs(st) || l->clock_ns[at[k]] < t)
                continue;
            fputs("&#10;", p->f);
            put_text(p->f, l->name);
            fprintf(p->f, ": %s, %s %d ", cli_bytes(l->use_bytes[at[k]], text, sizeof text),
                    st->kind == PLAN_REPLAY ? "replay" : "op", st->id);
            put_text(p->f, p->g->ops[st->id].name);
        }
        fputs("</title></rect>\n", p->f);
    }
}

static void memory_chart(struct report *p)
{
    double x_max = 0, y_max = 0;
    for (int k = 0; k < p->n; k++) {
        x_max = fmax(x_max, (double)p->line[k].r.ns);
        y_max = fmax(y_max, (double)p->line[k].r.peak_bytes);
    }
    const struct scale s = chart_scale(x_max, y_max * 1.03);
    fputs("<h2>Memory over time</h2>\n<p class=\"key\">", p->f);
    for (int k = 0; k < p->n; k++) {
        fprintf(p->f, "<span style=\"color:%s\">&#9632;</span> ", colour(k));
        put_text(p->f, p->line[k].name);
        fputs(" &nbsp; ", p->f);
    }
    fputs("</p>\n", p->f);
    chart_begin(p, "memory in use over the time of one iteration");
    axes(p, &s, "milliseconds", 1e6, "GB", 1e9);
    for (int k = p->n - 1; k >= 0; k--)
        memory_line(p, &s, k);
    for (int k = 1; k < p->n; k++)
        if (p->line[k].plan.limit_bytes > 0 && (double)p->line[k].plan.limit_bytes < s.y_max)
            fprintf(p->f, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-dasharray=\"5 4\"/>\n", s.left,
                    s.left + s.width, sy(&s, (double)p->line[k].plan.limit_bytes), sy(&s, (double)p->line[k].plan.limit_bytes),
                    colour(k));
    memory_hover(p, &s);
    fputs("</svg>\n", p->f);
}

/* ---- trade-off ------------------------------------------------------------------------------------------------------ */

static void trade_off(struct report *p)
{
    double most = 0.01;
    char text[32];
    for (int k = 0; k < p->n; k++)
        most = fmax(most, p->line[k].r.overhead);
    const struct scale s = chart_scale((double)p->g->baseline_peak_bytes * 1.05, most * 1.15);
    fputs("<h2>Trade-off</h2>\n", p->f);
    chart_begin(p, "overhead against peak memory");
    axes(p, &s, "peak memory, GB", 1e9, "overhead, %", 0.01);
    if ((double)p->g->floor_bytes < s.x_max)
        fprintf(p->f, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#b00\" stroke-dasharray=\"2 3\"><title>floor: %s; no "
                "plan without copies goes lower</title></line>\n", sx(&s, (double)p->g->floor_bytes), sx(&s, (double)p->g->floor_bytes),
                s.top, s.top + s.height, cli_bytes(p->g->floor_bytes, text, sizeof text));
    for (int k = 0; k < p->n; k++) {
        const struct line *l = &p->line[k];
        fprintf(p->f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"%s\"><title>", sx(&s, (double)l->r.peak_bytes),
                sy(&s, fmax(l->r.overhead, 0)), colour(k));
        put_text(p->f, l->name);
        fprintf(p->f, ": %s, %.2f %%</title></circle>\n", cli_bytes(l->r.peak_bytes, text, sizeof text), 100 * l->r.overhead);
    }
    fputs("</svg>\n", p->f);
}

/* ---- tables --------------------------------------------------------------------------------------------------------- */

static void plan_table(struct report *p)
{
    char a[32], b[32];
    fputs("<h2>Schedules</h2>\n<table><tr><th>schedule</th><th>solver</th><th>limit</th><th>peak</th><th>time</th><th>overhead</th>"
          "<th>replays</th><th>copies</th><th></th></tr>\n", p->f);
    for (int k = 0; k < p->n; k++) {
        const struct line *l = &p->line[k];
        fputs("<tr><td>", p->f);
        put_text(p->f, l->name);
        fputs("</td><td>", p->f);
        put_text(p->f, k ? l->plan.solver : "");
        fprintf(p->f, "</td><td>%s</td><td>%s</td><td>%.3f ms</td><td>%.2f %%</td><td>%lld</td><td>%lld</td><td>",
                l->plan.limit_bytes > 0 ? cli_bytes(l->plan.limit_bytes, a, sizeof a) : "", cli_bytes(l->r.peak_bytes, b, sizeof b),
                (double)l->r.ns / 1e6, 100 * l->r.overhead, (long long)l->r.replays, (long long)l->r.offloads);
        put_text(p->f, l->r.ok ? "" : l->r.error);
        fputs("</td></tr>\n", p->f);
    }
    fputs("</table>\n", p->f);
}

struct ranked {
    int64_t key;
    int32_t id, count;
};

static int by_key(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    return a->key != b->key ? (a->key < b->key ? 1 : -1) : (a->id > b->id) - (a->id < b->id);
}

static int value_table(struct report *p)
{
    const struct graph *g = p->g;
    struct ranked *row = calloc((size_t)g->n_bufs + 1, sizeof *row);
    char text[32];
    if (!row)
        return -ENOMEM;
    for (int32_t b = 0; b < g->n_bufs; b++)
        row[b] = (struct ranked){g->bufs[b].bytes, b, 0};
    qsort(row, (size_t)g->n_bufs, sizeof *row, by_key);
    fputs("<h2>Largest buffers</h2>\n<table><tr><th>buffer</th><th>bytes</th><th>kind</th><th>made by</th><th>lives</th></tr>\n", p->f);
    for (int i = 0; i < TOP_ROWS && i < g->n_bufs; i++) {
        const struct graph_buf *b = &g->bufs[row[i].id];
        fprintf(p->f, "<tr><td>%d</td><td>%s</td><td>%s</td><td>", row[i].id, cli_bytes(b->bytes, text, sizeof text),
                graph_kind_name(b->kind));
        if (b->born >= 0)
            put_text(p->f, g->ops[b->born].name);
        fprintf(p->f, "</td><td>op %d to ", b->born);
        fprintf(p->f, b->dies < 0 ? "the end</td></tr>\n" : "%d</td></tr>\n", b->dies);
    }
    fputs("</table>\n", p->f);
    free(row);
    return 0;
}

/* Replays of a plan by the name of their op, dearest first. */
static int replay_table(struct report *p, int k)
{
    const struct graph *g = p->g;
    const struct line *l = &p->line[k];
    struct ranked *row = calloc((size_t)g->n_ops + 1, sizeof *row);
    int32_t n = 0;
    if (!row)
        return -ENOMEM;
    for (size_t i = 0; i < l->plan.n_steps; i++) {
        const int32_t o = l->plan.steps[i].id;
        int32_t j = 0;
        if (l->plan.steps[i].kind != PLAN_REPLAY)
            continue;
        while (j < n && strcmp(g->ops[row[j].id].name, g->ops[o].name))
            j++;
        if (j == n)
            row[n++] = (struct ranked){0, o, 0};
        row[j].key += g->ops[o].ns;
        row[j].count++;
    }
    qsort(row, (size_t)n, sizeof *row, by_key);
    if (n) {
        fputs("<h2>Replayed under ", p->f);
        put_text(p->f, l->name);
        fputs("</h2>\n<table><tr><th>op</th><th>times</th><th>ms</th><th>of the iteration</th></tr>\n", p->f);
        for (int32_t i = 0; i < n && i < TOP_ROWS; i++) {
            fputs("<tr><td>", p->f);
            put_text(p->f, g->ops[row[i].id].name);
            fprintf(p->f, "</td><td>%d</td><td>%.3f</td><td>%.2f %%</td></tr>\n", row[i].count, (double)row[i].key / 1e6,
                    g->total_ns ? 100.0 * (double)row[i].key / (double)g->total_ns : 0.0);
        }
        fputs("</table>\n", p->f);
    }
    free(row);
    return 0;
}

static int report_page(struct report *p)
{
    const struct graph *g = p->g;
    char a[32], b[32];
    int rc = 0;
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>remat: ", p->f);
    put_text(p->f, g->model);
    fputs("</title>\n<style>body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222;"
          "background:#fff}svg{max-width:100%;height:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
          "td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:right}td:first-child,th:first-child{text-align:left}"
          ".grid{stroke:#e6e6e6}.ax{font-size:11px;fill:#666}.hit{fill:#000;fill-opacity:0}.hit:hover{fill-opacity:.08}"
          ".key{font-size:13px}h2{margin-top:1.8em;font-size:1.15em}</style></head><body>\n<h1>", p->f);
    put_text(p->f, g->model[0] ? g->model : "one iteration");
    fprintf(p->f, "</h1>\n<p>%d ops, %d buffers, %.3f ms; peak %s without eviction, floor %s", g->n_ops, g->n_bufs,
            (double)g->total_ns / 1e6, cli_bytes(g->baseline_peak_bytes, a, sizeof a), cli_bytes(g->floor_bytes, b, sizeof b));
    if (g->floor_op >= 0) {
        fprintf(p->f, " (set by op %d, ", g->floor_op);
        put_text(p->f, g->ops[g->floor_op].name);
        fputc(')', p->f);
    }
    fputs(".</p>\n", p->f);
    memory_chart(p);
    plan_table(p);
    if (p->n > 1)
        trade_off(p);
    for (int k = 1; !rc && k < p->n; k++)
        rc = replay_table(p, k);
    if (!rc)
        rc = value_table(p);
    fputs("</body></html>\n", p->f);
    return rc;
}

/* ---- the command ---------------------------------------------------------------------------------------------------- */

static int line_fill(struct report *p, const char *path)
{
    struct line *l = &p->line[p->n++];
    char err[512];
    const char *slash = path ? strrchr(path, '/') : NULL;
    l->name = path ? (slash ? slash + 1 : path) : "no eviction";
    if (path ? plan_read(path, &l->plan, err, sizeof err) : sched_baseline(p->g, &l->plan))
        return path ? cli_bad("%s", err) : cli_fail("report: out of memory");
    l->use_bytes = calloc(l->plan.n_steps + 1, sizeof *l->use_bytes);
    l->clock_ns = calloc(l->plan.n_steps + 1, sizeof *l->clock_ns);
    if (!l->use_bytes || !l->clock_ns || sim_profile(p->g, &l->plan, l->use_bytes, l->clock_ns, &l->r))
        return cli_fail("report: out of memory");
    if (!l->r.ok && l->r.error_step >= 0)
        return cli_bad("report: %s is no plan for this trace: %s", path ? path : "the program", l->r.error);
    return 0;
}

static int report_write(struct report *p, const char *out)
{
    struct output o;
    char err[512];
    if (output_open(&o, out, 0, err, sizeof err))
        return cli_fail("report: %s", err);
    p->f = o.f;
    const int rc = report_page(p);
    if (rc) {
        output_abandon(&o);
        return cli_fail("report: %s", strerror(-rc));
    }
    return output_commit(&o, err, sizeof err) ? cli_fail("report: %s", err) : CLI_OK;
}

int cmd_report(int argc, char **argv)
{
    const char *operand[REPORT_PLANS + 1] = {0}, *out = NULL;
    const struct option_bind binds[] = {{"output", &out}, {0}};
    struct graph *g = NULL;
    char err[512];
    size_t n = 0;
    int rc = options_parse(argc, argv, binds, operand, REPORT_PLANS + 1, &n);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (n < 1 || !out)
        return cli_bad("report: give a trace and -o (remat report --help)");
    if (graph_load(operand[0], &g, err, sizeof err))
        return cli_bad("%s", err);
    struct report p = {.g = g};
    rc = line_fill(&p, NULL);
    for (size_t k = 1; !rc && k < n; k++)
        rc = line_fill(&p, operand[k]);
    if (!rc)
        rc = report_write(&p, out);
    for (int k = 0; k < p.n; k++) {
        plan_free(&p.line[k].plan);
        free(p.line[k].use_bytes);
        free(p.line[k].clock_ns);
    }
    graph_free(g);
    return rc;
}
