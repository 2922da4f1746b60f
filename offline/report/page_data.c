#include "offline/report/page_data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "offline/report/export_viz.h"
#include "offline/report/walk.h"

enum { NAME_SHOWN = 90 }; /* bytes */

/* ---- text and figures ------------------------------------------------------------------------------------------------------ */

struct unit {
    const char *name;
    double size;
};

static const char *figure(double v, const struct unit *u, char *to, size_t room)
{
    while (v < u->size && u[1].name)
        u++;
    v /= u->size;
    snprintf(to, room, "%.*f %s", u->size <= 1 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v, u->name);
    return to;
}

const char *page_data_bytes(int64_t bytes, char *to, size_t room)
{
    static const struct unit units[] = {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1}, {0}};
    return figure((double)bytes, units, to, room);
}

const char *page_data_ns(double ns, char *to, size_t room)
{
    static const struct unit units[] = {{"s", 1e9}, {"ms", 1e6}, {"\u00b5s", 1e3}, {"ns", 1}, {0}};
    return figure(ns, units, to, room);
}

void page_data_text(FILE *f, const char *s)
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

void page_data_kernel(FILE *f, const char *symbol)
{
    char name[PLAIN_BYTES], start[NAME_SHOWN + 1];
    plain_name(symbol, name, sizeof name);
    size_t n = strlen(name);
    if (n <= NAME_SHOWN) {
        page_data_text(f, name);
        return;
    }
    for (n = NAME_SHOWN; n && (name[n] & 0xc0) == 0x80;) /* not within a letter */
        n--;
    memcpy(start, name, n);
    start[n] = 0;
    fputs("<span class=\"cut\" title=\"", f);
    page_data_text(f, name);
    fputs("\">", f);
    page_data_text(f, start);
    fputs("\u2026</span>", f);
}

/* ---- a schedule ------------------------------------------------------------------------------------------------------------ */

struct events {
    FILE *f;
    int any;
};

static void put_event(void *ctx, const struct walk_event *e)
{
    struct events *s = ctx;
    fprintf(s->f, "%s%d", s->any++ ? "," : "", e->kind == WALK_RUN ? -1 : 2 * e->buf + (e->kind == WALK_FREE));
}

static void put_runs(struct page *p, const struct page_line *l)
{
    int any = 0;
    for (size_t k = 0; k < l->plan.n_steps; k++) {
        const struct plan_step *st = &l->plan.steps[k];
        if (st->kind == PLAN_OP || st->kind == PLAN_REPLAY)
            fprintf(p->f, "%s[%d,%d,%.0f,%lld]", any++ ? "," : "", st->kind == PLAN_REPLAY, st->id, l->clock_ns[k], (long long)l->use_bytes[k]);
    }
}

/* back[k], where step k evicts a buffer: which run (op or replay) makes it anew; -1: none, it is copied back or not needed again. */
static int find_back(const struct page *p, const struct page_line *l, int32_t *back)
{
    const struct graph *g = p->g;
    int32_t *maker = malloc(((size_t)g->n_bufs + 1) * sizeof *maker), runs = 0;
    if (!maker)
        return -ENOMEM;
    for (int32_t b = 0; b < g->n_bufs; b++)
        maker[b] = -1;
    for (size_t k = 0; k < l->plan.n_steps; k++)
        runs += l->plan.steps[k].kind == PLAN_OP || l->plan.steps[k].kind == PLAN_REPLAY;
    for (size_t k = l->plan.n_steps; k-- > 0;) {
        const struct plan_step *st = &l->plan.steps[k];
        back[k] = -1;
        if (st->kind == PLAN_DROP || st->kind == PLAN_RELEASE)
            back[k] = maker[st->id];
        else if (st->kind == PLAN_FETCH)
            maker[st->id] = -1;
        if (st->kind != PLAN_OP && st->kind != PLAN_REPLAY)
            continue;
        const struct graph_operand *o = graph_operands(g, st->id);
        runs--;
        for (int32_t i = 0; st->kind == PLAN_REPLAY && i < graph_n_operands(&g->ops[st->id]); i++)
            if (o[i].out >= 0 && o[i].role != GRAPH_SIDE)
                maker[o[i].buf] = runs;
    }
    free(maker);
    return 0;
}

static int data_line(struct page *p, const struct page_line *l)
{
    struct events s = {p->f, 0};
    double *from = calloc(l->plan.n_steps + 1, sizeof *from), *to = calloc(l->plan.n_steps + 1, sizeof *to);
    int32_t *back = calloc(l->plan.n_steps + 1, sizeof *back);
    int rc = from && to && back ? find_back(p, l, back) : -ENOMEM, runs = 0, any = 0;
    fputs("{\"name\":", p->f);
    export_string(p->f, l->name, true);
    fprintf(p->f, ",\"limit\":%lld,\"peak\":%lld,\"ns\":%lld,\"run\":[", (long long)l->plan.limit_bytes, (long long)l->r.peak_bytes,
            (long long)l->r.ns);
    put_runs(p, l);
    fputs("],\"mem\":[", p->f);
    if (!rc)
        rc = walk_plan(p->g, &l->plan, l->clock_ns, put_event, &s);
    fputs("],\"drops\":[", p->f);
    for (size_t k = 0; !rc && k < l->plan.n_steps; k++) {
        const struct plan_step *st = &l->plan.steps[k];
        if (st->kind == PLAN_DROP || st->kind == PLAN_RELEASE)
            fprintf(p->f, "%s[%d,%.0f,%d,%d]", any++ ? "," : "", st->id, l->clock_ns[k], runs, back[k]);
        runs += st->kind == PLAN_OP || st->kind == PLAN_REPLAY;
    }
    fputs("],\"copies\":[", p->f);
    if (!rc)
        rc = walk_copies(p->g, &l->plan, l->clock_ns, from, to);
    any = 0;
    for (size_t k = 0; !rc && k < l->plan.n_steps; k++)
        if (to[k] > from[k])
            fprintf(p->f, "%s[%d,%.0f,%.0f,%d]", any++ ? "," : "", l->plan.steps[k].id, from[k], to[k], l->plan.steps[k].kind == PLAN_OFFLOAD);
    fputs("]}", p->f);
    free(from);
    free(to);
    free(back);
    return rc;
}

/* ---- the iteration --------------------------------------------------------------------------------------------------------- */

struct named {
    const char *name;
    int32_t op;
};

static int by_name(const void *pa, const void *pb)
{
    const struct named *a = pa, *b = pb;
    const int d = strcmp(a->name, b->name);
    return d ? d : (a->op > b->op) - (a->op < b->op);
}

/* The names, and id[n_ops]: each op's place among them. */
static int put_names(struct page *p, int32_t *id)
{
    const struct graph *g = p->g;
    struct named *all = calloc((size_t)g->n_ops + 1, sizeof *all);
    int32_t n = 0;
    if (!all)
        return -ENOMEM;
    for (int32_t o = 0; o < g->n_ops; o++)
        all[o] = (struct named){g->ops[o].name, o};
    qsort(all, (size_t)g->n_ops, sizeof *all, by_name);
    for (int32_t k = 0; k < g->n_ops; k++) {
        if (!k || strcmp(all[k].name, all[k - 1].name)) {
            fputs(n++ ? "," : "", p->f);
            export_string(p->f, PLAIN(all[k].name), true);
        }
        id[all[k].op] = n - 1;
    }
    free(all);
    return 0;
}

static void put_price(struct page *p)
{
    const struct curve *c = p->curve;
    if (!c) {
        fputs("null", p->f);
        return;
    }
    fputs("{\"at\":[", p->f);
    for (int k = 0; k < c->n; k++) {
        fprintf(p->f, "%s[%lld,", k ? "," : "", (long long)c->limit[k]);
        fprintf(p->f, isnan(c->overhead[k]) ? "null]" : "%.6f]", c->overhead[k]);
    }
    fprintf(p->f, "],\"floor\":%lld,\"op\":%d,\"knee\":%d}", (long long)c->floor_bytes, c->floor_op, c->knee);
}

int page_data_write(struct page *p)
{
    const struct graph *g = p->g;
    int32_t *name = calloc((size_t)g->n_ops + 1, sizeof *name);
    fputs("<script type=\"application/json\" id=\"data\">{\"uses\":[", p->f);
    for (int k = 0; k < USE_N; k++)
        fprintf(p->f, "%s\"%s\"", k ? "," : "", walk_use_name(k));
    fputs("],\"names\":[", p->f);
    int rc = name ? put_names(p, name) : -ENOMEM;
    fputs("],\"ops\":[", p->f);
    for (int32_t o = 0; !rc && o < g->n_ops; o++)
        fprintf(p->f, "%s[%d,%d,%lld,%d,%d]", o ? "," : "", name[o], p->phase[o], (long long)g->ops[o].ns, g->ops[o].site < g->n_sites ? g->ops[o].site : -1,
                p->tied[o]);
    fputs("],\"bufs\":[", p->f);
    for (int32_t b = 0; b < g->n_bufs; b++)
        fprintf(p->f, "%s[%lld,%d,%d,%d]", b ? "," : "", (long long)g->bufs[b].bytes, p->use[b], g->bufs[b].born, g->bufs[b].dies);
    fputs("],\"sites\":[", p->f);
    for (int32_t s = 0; s < g->n_sites; s++) {
        char *site = walk_site_plain(g->sites[s]);
        fputs(s ? "," : "", p->f);
        export_string(p->f, site ? site : g->sites[s], true);
        free(site);
    }
    fputs("],\"price\":", p->f);
    put_price(p);
    fputs(",\"lines\":[", p->f);
    for (int k = 0; !rc && k < p->n; k++) {
        fputs(k ? ",\n" : "\n", p->f);
        rc = data_line(p, &p->line[k]);
    }
    fputs("]}</script>\n", p->f);
    free(name);
    return rc;
}
