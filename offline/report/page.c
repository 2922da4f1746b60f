/* page.c: see page.h. */
#include "offline/report/page.h"
#include "offline/report/page_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/report/walk.h"

enum { TOP_ROWS = 15 };

struct unit {
    const char *name;
    double size;
};

struct page {
    FILE *f;
    const struct graph *g;
    const struct page_line *line;
    int n;
    unsigned char *use; /* [n_bufs] enum walk_use */
    struct unit memory, time; /* one for all figures of a kind, by the largest; page.js chooses alike */
};

static struct unit unit_for(double most, const struct unit *table)
{
    while (most < table->size && table[1].name)
        table++;
    return *table;
}

static const char *figure(double v, struct unit u, int digits, char *to, size_t room)
{
    v /= u.size;
    snprintf(to, room, "%.*f %s", v >= 100 ? digits - 2 : v >= 10 ? digits - 1 : digits, v, u.name);
    return to;
}

static const char *mem(const struct page *p, int64_t bytes, char *to, size_t room) { return figure((double)bytes, p->memory, 2, to, room); }
static const char *ms(const struct page *p, double ns, char *to, size_t room) { return figure(ns, p->time, 3, to, room); }

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

/* A JSON string inside a script element: no "<", which could end the element. */
static void put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20 || c == '<')
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

/* ---- the data of the chart ------------------------------------------------------------------------------------------------ */

struct stack {
    struct page *p;
    const struct page_line *l;
    int64_t now[USE_N];
    int runs;
};

static void put_run(void *ctx, const struct walk_event *e)
{
    struct stack *s = ctx;
    const struct graph *g = s->p->g;
    if (e->kind != WALK_RUN) {
        s->now[s->p->use[e->buf]] += e->kind == WALK_ALLOC ? g->bufs[e->buf].bytes : -g->bufs[e->buf].bytes;
        return;
    }
    /* what no buffer accounts for is scratch of a replay */
    int64_t rest = s->l->use_bytes[e->step];
    for (int k = 0; k < USE_N; k++)
        rest -= s->now[k];
    fprintf(s->p->f, "%s[%d,%d,%.0f,%lld", s->runs++ ? "," : "", s->l->plan.steps[e->step].kind == PLAN_REPLAY, e->op, e->ns,
            (long long)s->l->use_bytes[e->step]);
    for (int k = 0; k < USE_N; k++)
        fprintf(s->p->f, ",%lld", (long long)(s->now[k] + (k == USE_WORKSPACE ? rest : 0)));
    fputc(']', s->p->f);
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
    struct stack s = {.p = p, .l = l};
    double *from = calloc(l->plan.n_steps + 1, sizeof *from), *to = calloc(l->plan.n_steps + 1, sizeof *to);
    int32_t *back = calloc(l->plan.n_steps + 1, sizeof *back);
    int rc = from && to && back ? find_back(p, l, back) : -ENOMEM, runs = 0, any = 0;
    fputs("{\"name\":", p->f);
    put_string(p->f, l->name);
    fprintf(p->f, ",\"limit\":%lld,\"peak\":%lld,\"ns\":%lld,\"run\":[", (long long)l->plan.limit_bytes, (long long)l->r.peak_bytes,
            (long long)l->r.ns);
    if (!rc)
        rc = walk_plan(p->g, &l->plan, l->clock_ns, put_run, &s);
    fputs("],\"drops\":[", p->f);
    for (size_t k = 0; !rc && k < l->plan.n_steps; k++) {
        const struct plan_step *st = &l->plan.steps[k];
        if (st->kind == PLAN_DROP || st->kind == PLAN_RELEASE)
            fprintf(p->f, "%s[%d,%.0f,%d,%lld,%d,%d]", any++ ? "," : "", st->id, l->clock_ns[k], runs, (long long)p->g->bufs[st->id].bytes,
                    p->g->bufs[st->id].born, back[k]);
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

static int data(struct page *p)
{
    int rc = 0;
    fputs("<script type=\"application/json\" id=\"data\">{\"uses\":[", p->f);
    for (int k = 0; k < USE_N; k++)
        fprintf(p->f, "%s\"%s\"", k ? "," : "", walk_use_name(k));
    fputs("],\"ops\":[", p->f);
    for (int32_t o = 0; o < p->g->n_ops; o++) {
        fputs(o ? ",[" : "[", p->f);
        put_string(p->f, PLAIN(p->g->ops[o].name));
        fprintf(p->f, ",%d,%lld,%d]", p->g->ops[o].phase, (long long)p->g->ops[o].ns, p->g->ops[o].site);
    }
    fputs("],\"sites\":[", p->f);
    for (int32_t s = 0; s < p->g->n_sites; s++) {
        char *site = walk_site_plain(p->g->sites[s]);
        fputs(s ? "," : "", p->f);
        put_string(p->f, site ? site : p->g->sites[s]);
        free(site);
    }
    fputs("],\"lines\":[", p->f);
    for (int k = 0; !rc && k < p->n; k++) {
        fputs(k ? ",\n" : "\n", p->f);
        rc = data_line(p, &p->line[k]);
    }
    fputs("]}</script>\n", p->f);
    return rc;
}

/* ---- the head -------------------------------------------------------------------------------------------------------------- */

static const char *file_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void card(FILE *f, const char *value, const char *what)
{
    fprintf(f, "<div class=\"card\"><b>%s</b><span>%s</span></div>\n", value, what);
}

static void head(struct page *p)
{
    const struct graph *g = p->g;
    const struct page_line *native = &p->line[0], *best = &p->line[p->n - 1];
    char a[32], b[32], text[160];
    fputs("<h1>", p->f);
    put_text(p->f, g->model[0] ? file_part(g->model) : "one iteration");
    fputs("</h1>\n<p class=\"sub\">One training iteration", p->f);
    if (g->device[0]) {
        fputs(" on ", p->f);
        put_text(p->f, g->device);
    }
    fprintf(p->f, ": %d ops, %d buffers, %s.", g->n_ops, g->n_bufs, ms(p, (double)g->total_ns, a, sizeof a));
    if (g->floor_op >= 0) {
        fprintf(p->f, " No plan without copies goes below %s, what op %d (", mem(p, g->floor_bytes, a, sizeof a), g->floor_op);
        put_text(p->f, PLAIN(g->ops[g->floor_op].name));
        fputs(") needs.", p->f);
    }
    fputs("</p>\n<div class=\"cards\">\n", p->f);
    card(p->f, mem(p, native->r.peak_bytes, a, sizeof a), "peak memory, as the program is");
    if (p->n > 1) {
        snprintf(text, sizeof text, "%s (&minus;%.0f&nbsp;%%)", mem(p, best->r.peak_bytes, b, sizeof b),
                 native->r.peak_bytes ? 100.0 * (1 - (double)best->r.peak_bytes / (double)native->r.peak_bytes) : 0.0);
        card(p->f, text, "peak memory under the plan");
        snprintf(text, sizeof text, "%+.1f&nbsp;%%", 100 * best->r.overhead);
        card(p->f, text, "time of the iteration");
        snprintf(text, sizeof text, "%lld", (long long)best->r.replays);
        card(p->f, text, "ops run again");
        if (best->r.offloads) {
            snprintf(text, sizeof text, "%lld", (long long)best->r.offloads);
            card(p->f, text, "tensors copied to the host");
        }
    }
    fputs("</div>\n", p->f);
}

static void chart(struct page *p)
{
    fputs("<h2>Memory over the iteration</h2>\n<div class=\"box\">\n"
          "<div class=\"bar\" id=\"pick\" role=\"radiogroup\" aria-label=\"schedule shown by kind\"></div>\n"
          "<div class=\"bar\"><button id=\"zin\">zoom in</button><button id=\"zout\">zoom out</button><button id=\"zall\">all</button>"
          "<button id=\"zpeak\">peak</button><button id=\"znext\">next replay</button></div>\n"
          "<div class=\"chart\" id=\"chart\" tabindex=\"0\" role=\"application\" aria-label=\"memory over time; arrow keys move, plus and "
          "minus zoom, r goes to the next replay, o to its original\"></div>\n"
          "<ul class=\"legend\" id=\"legend\"></ul>\n<div class=\"read\" id=\"read\" aria-live=\"polite\"></div>\n"
          "<p class=\"hint\">Point, or press Tab to the chart: <kbd>&larr;</kbd> <kbd>&rarr;</kbd> op by op, <kbd>+</kbd> <kbd>-</kbd> "
          "<kbd>0</kbd> zoom, <kbd>r</kbd> <kbd>R</kbd> next and previous replay, <kbd>o</kbd> its original, <kbd>d</kbd> <kbd>D</kbd> "
          "evictions, <kbd>p</kbd> the peak. Ctrl and the wheel zoom, dragging moves.</p>\n"
          "<noscript><p>The chart needs JavaScript; the tables below do not.</p></noscript>\n</div>\n", p->f);
}

/* ---- tables ---------------------------------------------------------------------------------------------------------------- */

static void schedules(struct page *p)
{
    char a[32], b[32], c[32];
    fputs("<h2>Schedules</h2>\n<div class=\"box scroll\"><table><tr><th>schedule</th><th>solver</th><th>limit</th><th>peak</th><th>time</th>"
          "<th>overhead</th><th>replays</th><th>copies</th></tr>\n", p->f);
    for (int k = 0; k < p->n; k++) {
        const struct page_line *l = &p->line[k];
        fputs("<tr><td>", p->f);
        put_text(p->f, l->name);
        if (!l->r.ok) {
            fputs(" <span class=\"bad\">", p->f);
            put_text(p->f, l->r.error);
            fputs("</span>", p->f);
        }
        fputs("</td><td>", p->f);
        put_text(p->f, k ? l->plan.solver : "");
        fprintf(p->f, "</td><td>%s</td><td>%s</td><td>%s</td><td>%.2f %%</td><td>%lld</td><td>%lld</td></tr>\n",
                l->plan.limit_bytes > 0 ? mem(p, l->plan.limit_bytes, a, sizeof a) : "", mem(p, l->r.peak_bytes, b, sizeof b),
                ms(p, (double)l->r.ns, c, sizeof c), 100 * l->r.overhead, (long long)l->r.replays, (long long)l->r.offloads);
    }
    fputs("</table></div>\n", p->f);
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

static int by_count_and_key(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    return a->count != b->count ? b->count - a->count : by_key(pa, pb);
}

static int at_op(const struct graph *g, int32_t b, int32_t op) { return g->bufs[b].born <= op && (g->bufs[b].dies < 0 || g->bufs[b].dies > op); }

static void put_site(struct page *p, int32_t op)
{
    const int32_t s = op >= 0 ? p->g->ops[op].site : -1;
    const char *site = s >= 0 && s < p->g->n_sites ? p->g->sites[s] : NULL;
    struct walk_frame frame;
    /* Python's lines first, each on its own: they are what people know; then the others in one */
    for (const char *s2 = site; walk_frame_next(&s2, &frame);)
        if (frame.file[0] && !walk_frame_is_glue(&frame)) {
            fputs("<em title=\"", p->f);
            put_text(p->f, frame.file);
            fputs("\">", p->f);
            put_text(p->f, walk_frame_short(&frame));
            fprintf(p->f, ":%d ", frame.line);
            put_text(p->f, frame.name);
            fputs("</em>", p->f);
        }
    for (int any = 0; walk_frame_next(&site, &frame);)
        if (!frame.file[0]) {
            fputs(any++ ? " &lsaquo; " : "<span>", p->f);
            put_text(p->f, frame.name);
            if (!site)
                fputs("</span>", p->f);
        } else if (!site && any) {
            fputs("</span>", p->f);
        }
}

/* What becomes of buffer b under the last plan. */
static void put_fate(struct page *p, int32_t b)
{
    static const char *const word[PLAN_N_KINDS] = {[PLAN_DROP] = "dropped", [PLAN_OFFLOAD] = "copied out"};
    const struct plan *plan = &p->line[p->n - 1].plan;
    int count[PLAN_N_KINDS] = {0}, any = 0;
    for (size_t k = 0; k < plan->n_steps; k++)
        count[plan->steps[k].kind] += plan->steps[k].id == b && word[plan->steps[k].kind] != NULL;
    for (int k = 0; k < PLAN_N_KINDS; k++) {
        if (!count[k])
            continue;
        fprintf(p->f, "%s%s", any++ ? ", " : "", word[k]);
        if (count[k] > 1)
            fprintf(p->f, " %d times", count[k]);
    }
    fputs(any ? "" : "stays", p->f);
}

static int tensors(struct page *p)
{
    static const char *const var[] = {"param", "state", "input", "grad", "activation", "workspace"};
    const struct graph *g = p->g;
    struct ranked *row = calloc((size_t)g->n_bufs + 1, sizeof *row);
    int32_t top = 0;
    char text[32];
    if (!row)
        return -ENOMEM;
    for (int32_t o = 1; o < g->n_ops; o++)
        if (g->live_bytes[o] > g->live_bytes[top])
            top = o;
    for (int32_t b = 0; b < g->n_bufs; b++)
        row[b] = (struct ranked){g->bufs[b].bytes, b, at_op(g, b, top)};
    qsort(row, (size_t)g->n_bufs, sizeof *row, by_count_and_key);
    fprintf(p->f, "<h2>Largest tensors</h2>\n<p class=\"sub\">Of those in memory at the peak of the program as it is (op %d) first.</p>\n"
            "<div class=\"box scroll\"><table><tr><th>buffer</th><th>size</th><th class=\"l\">kind</th>"
            "<th class=\"l\">made by</th><th class=\"l\">lives</th>%s</tr>\n", top, p->n > 1 ? "<th class=\"l\">under the plan</th>" : "");
    for (int i = 0; i < TOP_ROWS && i < g->n_bufs; i++) {
        const struct graph_buf *b = &g->bufs[row[i].id];
        fprintf(p->f, "<tr><td>%d</td><td>%s</td><td class=\"l\"><i style=\"background:var(--%s)\"></i>%s</td><td class=\"w\">", row[i].id,
                mem(p, b->bytes, text, sizeof text), var[p->use[row[i].id]], walk_use_name(p->use[row[i].id]));
        if (b->born >= 0) {
            fprintf(p->f, "<button class=\"link\" data-op=\"%d\">op %d</button> ", b->born, b->born);
            put_text(p->f, PLAIN(g->ops[b->born].name));
            put_site(p, b->born);
        } else {
            fputs("before the iteration", p->f);
        }
        if (b->born < 0 && (b->dies < 0 || b->dies > g->n_ops))
            fputs("</td><td class=\"l\">throughout", p->f);
        else if (b->dies < 0 || b->dies >= g->n_ops)
            fprintf(p->f, "</td><td class=\"l\">op %d to the end", b->born < 0 ? 0 : b->born);
        else
            fprintf(p->f, "</td><td class=\"l\">op %d to %d", b->born < 0 ? 0 : b->born, b->dies);
        if (p->n > 1) {
            fputs("</td><td class=\"l\">", p->f);
            put_fate(p, row[i].id);
        }
        fputs("</td></tr>\n", p->f);
    }
    fputs("</table></div>\n", p->f);
    free(row);
    return 0;
}

/* Replays of a plan by their op, dearest first. */
static int replays(struct page *p, int k)
{
    const struct graph *g = p->g;
    const struct page_line *l = &p->line[k];
    struct ranked *row = calloc((size_t)g->n_ops + 1, sizeof *row);
    int32_t n = 0;
    char text[32];
    if (!row)
        return -ENOMEM;
    for (int32_t o = 0; o < g->n_ops; o++)
        row[o].id = o;
    for (size_t i = 0; i < l->plan.n_steps; i++)
        if (l->plan.steps[i].kind == PLAN_REPLAY) {
            row[l->plan.steps[i].id].key += g->ops[l->plan.steps[i].id].ns;
            row[l->plan.steps[i].id].count++;
        }
    qsort(row, (size_t)g->n_ops, sizeof *row, by_key);
    while (n < g->n_ops && row[n].count)
        n++;
    if (n) {
        fputs("<h2>Run again under ", p->f);
        put_text(p->f, l->name);
        fputs("</h2>\n<div class=\"box scroll\"><table><tr><th class=\"l\">op</th><th>times</th><th>time</th><th>of the iteration</th><th class=\"l\">launched by"
              "</th><th>replay</th></tr>\n", p->f);
    }
    for (int32_t i = 0; i < n && i < TOP_ROWS; i++) {
        fprintf(p->f, "<tr><td class=\"w\"><button class=\"link\" data-op=\"%d\">op %d</button> ", row[i].id, row[i].id);
        put_text(p->f, PLAIN(g->ops[row[i].id].name));
        fprintf(p->f, "</td><td>%d</td><td>%s</td><td>%.2f %%</td><td class=\"w\">", row[i].count, ms(p, (double)row[i].key, text, sizeof text),
                g->total_ns ? 100.0 * (double)row[i].key / (double)g->total_ns : 0.0);
        put_site(p, row[i].id);
        fprintf(p->f, "</td><td><button class=\"link\" data-replay=\"%d,%d\">show</button></td></tr>\n", k, row[i].id);
    }
    if (n)
        fputs("</table>", p->f);
    if (n > TOP_ROWS)
        fprintf(p->f, "<p class=\"hint\">and %d ops more</p>", n - TOP_ROWS);
    if (n)
        fputs("</div>\n", p->f);
    free(row);
    return 0;
}

int page_write(FILE *f, const struct graph *g, const struct page_line *lines, int n)
{
    static const struct unit sizes[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {0}};
    static const struct unit times[] = {{"s", 1e9}, {"ms", 1e6}, {"&micro;s", 1e3}, {"ns", 1}, {0}};
    struct page p = {f, g, lines, n, walk_uses(g), {0}, {0}};
    int64_t most = 0;
    double longest = 0;
    int rc = p.use ? 0 : -ENOMEM;
    if (rc)
        return rc;
    for (int k = 0; k < n; k++) {
        most = lines[k].r.peak_bytes > most ? lines[k].r.peak_bytes : most;
        longest = (double)lines[k].r.ns > longest ? (double)lines[k].r.ns : longest;
    }
    p.memory = unit_for((double)most, sizes);
    p.time = unit_for(longest, times);
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,"
          "initial-scale=1\"><title>remat: ", f);
    put_text(f, g->model[0] ? file_part(g->model) : "one iteration");
    fprintf(f, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n%s</style></head><body><main>\n", page_css);
    head(&p);
    chart(&p);
    schedules(&p);
    for (int k = n - 1; !rc && k > 0; k--)
        rc = replays(&p, k);
    if (!rc)
        rc = tensors(&p);
    if (!rc)
        rc = data(&p);
    fprintf(f, "</main>\n<script>\n%s</script>\n</body></html>\n", page_js);
    free(p.use);
    return rc;
}
