#include "offline/report/page_tables.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "offline/report/walk.h"

enum { ROWS = 15, LINKS = 48 }; /* of a table; of what a row unfolds to */

/* ---- schedules and prices -------------------------------------------------------------------------------------------------- */

void page_tables_schedules(struct page *p)
{
    char a[32], b[32], c[32];
    fputs("<h2>Schedules</h2>\n<div class=\"box scroll\"><table><tr><th>schedule</th><th>solver</th><th>limit</th><th>peak</th><th>time</th>"
          "<th>overhead</th><th>replays</th><th>copies</th></tr>\n", p->f);
    for (int k = 0; k < p->n; k++) {
        const struct page_line *l = &p->line[k];
        fputs("<tr><td>", p->f);
        page_data_text(p->f, l->name);
        if (!l->r.ok) {
            fputs(" <span class=\"bad\">", p->f);
            page_data_text(p->f, l->r.error);
            fputs("</span>", p->f);
        }
        fputs("</td><td>", p->f);
        page_data_text(p->f, k ? l->plan.solver : "");
        fprintf(p->f, "</td><td>%s</td><td>%s</td><td>%s</td><td>%.2f %%</td><td>%lld</td><td>%lld</td></tr>\n",
                l->plan.limit_bytes > 0 ? page_data_bytes(l->plan.limit_bytes, a, sizeof a) : "", page_data_bytes(l->r.peak_bytes, b, sizeof b),
                page_data_ns((double)l->r.ns, c, sizeof c), 100 * l->r.overhead, (long long)l->r.replays, (long long)l->r.offloads);
    }
    fputs("</table></div>\n", p->f);
}

static void price_row(struct page *p, int64_t limit, double overhead, const char *mark, const char *of)
{
    char a[32];
    fprintf(p->f, "<tr%s><td>%s</td><td>%.0f %%</td><td>", of ? " class=\"now\"" : "", page_data_bytes(limit, a, sizeof a),
            p->curve->limit[0] ? 100 * (double)limit / (double)p->curve->limit[0] : 0.0);
    if (isnan(overhead))
        fputs("no plan found", p->f);
    else if (overhead > -1)
        fprintf(p->f, "%.2f \u00d7", 1 + overhead);
    fprintf(p->f, "</td><td class=\"l\">%s", mark);
    if (of)
        page_data_text(p->f, of);
    fputs("</td></tr>\n", p->f);
}

/* Rows by falling limit: each price, and each plan where its own limit is. */
void page_tables_prices(struct page *p)
{
    const struct curve *c = p->curve;
    if (!c)
        return;
    fputs("<h2>What less memory costs</h2>\n<div class=\"two\"><div class=\"box\" id=\"price\"></div>\n<div class=\"box scroll\"><table><tr><th>limit</th>"
          "<th>of native</th><th>time</th><th class=\"l\"></th></tr>\n", p->f);
    int64_t above = INT64_MAX;
    for (int k = 0; k <= c->n; k++) {
        const int64_t limit = k < c->n ? c->limit[k] : c->floor_bytes;
        for (int i = 1; i < p->n; i++)
            if (p->line[i].plan.limit_bytes > limit && p->line[i].plan.limit_bytes <= above)
                price_row(p, p->line[i].plan.limit_bytes, p->line[i].r.overhead, i == p->n - 1 ? "today\u2019s limit: " : "", p->line[i].name);
        above = limit;
        price_row(p, limit, k < c->n ? c->overhead[k] : -1,
                  k == c->n ? "the floor: no plan goes lower" : !k ? "what the program takes by itself" : k == c->knee ? "the knee: below it a point of memory costs more than a point of time" : "", NULL);
    }
    for (int i = 1; i < p->n; i++)
        if (p->line[i].plan.limit_bytes > 0 && p->line[i].plan.limit_bytes <= above)
            price_row(p, p->line[i].plan.limit_bytes, p->line[i].r.overhead, i == p->n - 1 ? "today\u2019s limit: " : "", p->line[i].name);
    fputs("</table></div></div>\n", p->f);
}

/* ---- call sites ------------------------------------------------------------------------------------------------------------ */

/* Whose call site tells where op is from: its own, or of an op of the backward pass its forward op's. -1: none tells. */
static int32_t site_of(const struct page *p, int32_t op)
{
    const int32_t from = op >= 0 && p->tied[op] >= 0 && p->g->ops[p->tied[op]].site >= 0 ? p->tied[op] : op;
    const int32_t s = from >= 0 ? p->g->ops[from].site : -1;
    return s < p->g->n_sites ? s : -1;
}

static void put_frame(struct page *p, const struct walk_frame *frame)
{
    fputs("<em title=\"", p->f);
    page_data_text(p->f, frame->file);
    fputs("\">", p->f);
    page_data_text(p->f, walk_frame_short(frame));
    fprintf(p->f, ":%d ", frame->line);
    page_data_text(p->f, frame->name);
    fputs("</em>", p->f);
}

/* The program's own line, the innermost that is not PyTorch's, else the innermost; behind it the whole stack, Python's lines first. */
static void put_site(struct page *p, int32_t op)
{
    const int32_t s = site_of(p, op);
    const char *site = s >= 0 ? p->g->sites[s] : NULL;
    struct walk_frame frame, own = {0};
    int any = 0, lines = 0, mine = 0;
    if (op >= 0 && p->tied[op] >= 0)
        fprintf(p->f, "<span>backward of <button class=\"link\" data-op=\"%d\">op %d</button></span>", p->tied[op], p->tied[op]);
    for (const char *at = site; walk_frame_next(&at, &frame);)
        if (frame.file[0] && !walk_frame_is_glue(&frame)) {
            const int theirs = !strncmp(walk_frame_short(&frame), "torch/", 6);
            if (!lines++ || (!mine && !theirs))
                own = frame;
            mine |= !theirs;
        }
    if (lines) {
        put_frame(p, &own);
        fputs("<details><summary>stack</summary>", p->f);
    }
    for (const char *at = site; walk_frame_next(&at, &frame);)
        if (frame.file[0] && !walk_frame_is_glue(&frame))
            put_frame(p, &frame);
    while (walk_frame_next(&site, &frame))
        if (!frame.file[0]) {
            fputs(any++ ? " &lsaquo; " : "<span>", p->f);
            page_data_text(p->f, frame.name);
        }
    fputs(any ? "</span>" : "", p->f);
    fputs(lines ? "</details>" : "", p->f);
}

/* ---- what is alike --------------------------------------------------------------------------------------------------------- */

/* An op that is run again, or a tensor. Alike are those of one size and use whose ops have one name and come from one place. */
struct item {
    const char *name; /* of its op; "" none */
    int32_t id, op, site, use, count; /* count: replays; 1 */
    int64_t size, key; /* bytes of a tensor, 0 of an op; what its group is ranked by, summed */
};

struct group {
    int32_t first, n, count;
    int64_t key;
};

#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))

static int alike(const struct item *a, const struct item *b)
{
    const int d = ORDER(b->size, a->size) ? ORDER(b->size, a->size) : ORDER(a->use, b->use) ? ORDER(a->use, b->use) : ORDER(a->site, b->site);
    return d ? d : strcmp(a->name, b->name);
}

static int by_likeness(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    const int d = alike(a, b);
    return d ? d : ORDER(a->id, b->id);
}

static int by_key(const void *pa, const void *pb)
{
    const struct group *a = pa, *b = pb;
    return a->key != b->key ? ORDER(b->key, a->key) : ORDER(a->first, b->first);
}

/* Puts like items beside each other; the groups, the largest first, are the caller's. NULL: no memory. */
static struct group *grouped(struct item *item, int32_t n, int32_t *n_groups)
{
    struct group *to = calloc((size_t)n + 1, sizeof *to);
    *n_groups = 0;
    if (!to)
        return NULL;
    qsort(item, (size_t)n, sizeof *item, by_likeness);
    for (int32_t k = 0; k < n; k++) {
        if (!k || alike(&item[k], &item[k - 1]))
            to[(*n_groups)++].first = k;
        struct group *last = &to[*n_groups - 1];
        last->n++;
        last->count += item[k].count;
        last->key += item[k].key;
    }
    qsort(to, (size_t)*n_groups, sizeof *to, by_key);
    return to;
}

/* The members of a group: one as a link, more of them behind their number. */
static void put_members(struct page *p, const struct item *item, const struct group *g, const char *what, const char *mark, int line)
{
    const struct item *x = &item[g->first];
    if (g->n > 1)
        fprintf(p->f, "<details><summary>%d %ss</summary>", g->n, what);
    for (int32_t k = 0; k < g->n && k < LINKS; k++) {
        fprintf(p->f, "<button class=\"link\" data-%s=\"", mark);
        if (line)
            fprintf(p->f, "%d,", line);
        fprintf(p->f, "%d\">%s %d</button> ", x[k].id, what, x[k].id);
        if (x[k].count > 1)
            fprintf(p->f, "(%d times) ", x[k].count);
    }
    if (g->n > LINKS)
        fprintf(p->f, "and %d more", g->n - LINKS);
    if (g->n > 1)
        fputs("</details>", p->f);
}

/* ---- what is run again ----------------------------------------------------------------------------------------------------- */

int page_tables_replays(struct page *p, int k)
{
    const struct graph *g = p->g;
    const struct page_line *l = &p->line[k];
    struct item *item = calloc((size_t)g->n_ops + 1, sizeof *item);
    int32_t n = 0, n_groups;
    char text[32];
    if (!item)
        return -ENOMEM;
    for (size_t i = 0; i < l->plan.n_steps; i++)
        item[l->plan.steps[i].kind == PLAN_REPLAY ? l->plan.steps[i].id : g->n_ops].count++;
    for (int32_t o = 0; o < g->n_ops; o++)
        if (item[o].count) {
            const int32_t count = item[o].count;
            item[n++] = (struct item){g->ops[o].name, o, o, site_of(p, o), 0, count, 0, count * g->ops[o].ns};
        }
    struct group *group = grouped(item, n, &n_groups);
    if (group && n) {
        fputs("<h2>Run again under ", p->f);
        page_data_text(p->f, l->name);
        fprintf(p->f, "</h2>\n<div class=\"box scroll\"><table><tr><th class=\"l\">op</th><th>times</th><th>time</th><th>of the iteration</th>"
                "<th class=\"l\">launched by</th></tr>\n");
    }
    for (int32_t i = 0; group && i < n_groups && i < ROWS; i++) {
        const struct item *x = &item[group[i].first];
        fputs("<tr><td class=\"w\">", p->f);
        page_data_kernel(p->f, x->name);
        fputc(' ', p->f);
        put_members(p, item, &group[i], "op", "replay", k);
        fprintf(p->f, "</td><td>%d</td><td>%s</td><td>%.2f %%</td><td class=\"w\">", group[i].count, page_data_ns((double)group[i].key, text, sizeof text),
                g->total_ns ? 100.0 * (double)group[i].key / (double)g->total_ns : 0.0);
        put_site(p, x->op);
        fputs("</td></tr>\n", p->f);
    }
    if (group && n) {
        fputs("</table>", p->f);
        if (n_groups > ROWS)
            fprintf(p->f, "<p class=\"hint\">and %d kinds of ops more</p>", n_groups - ROWS);
        fputs("</div>\n", p->f);
    }
    free(item);
    free(group);
    return group ? 0 : -ENOMEM;
}

/* ---- tensors --------------------------------------------------------------------------------------------------------------- */

static int at_op(const struct graph *g, int32_t b, int32_t op) { return g->bufs[b].born <= op && (g->bufs[b].dies < 0 || g->bufs[b].dies > op); }

/* What becomes of a group's tensors under the last plan: fate[b] has a bit for a drop, another for a copy. */
static void put_fate(struct page *p, const uint8_t *fate, const struct item *x, int32_t n)
{
    static const char *const word[] = {"stay", "dropped", "copied out", "dropped and copied out"};
    int count[4] = {0}, any = 0;
    for (int32_t k = 0; k < n; k++)
        count[fate[x[k].id]]++;
    for (int k = 0; k < 4; k++) {
        if (!count[k])
            continue;
        fputs(any++ ? ", " : "", p->f);
        if (n > 1)
            fprintf(p->f, "%d ", count[k]);
        fputs(k || n > 1 ? word[k] : "stays", p->f);
    }
}

static void put_life(struct page *p, int32_t id)
{
    const struct graph_buf *b = &p->g->bufs[id];
    if (b->born < 0 && (b->dies < 0 || b->dies > p->g->n_ops))
        fputs("<span>throughout</span>", p->f);
    else if (b->dies < 0 || b->dies >= p->g->n_ops)
        fprintf(p->f, "<span>op %d to the end</span>", b->born < 0 ? 0 : b->born);
    else
        fprintf(p->f, "<span>op %d to %d</span>", b->born < 0 ? 0 : b->born, b->dies);
}

static void tensor_row(struct page *p, const struct item *item, const struct group *group, const uint8_t *fate)
{
    static const char *const var[] = {"param", "state", "input", "grad", "activation", "workspace"};
    const struct item *x = &item[group->first];
    char text[32];
    fputs("<tr><td class=\"t\">", p->f);
    put_members(p, item, group, "tensor", "buf", 0);
    if (group->n == 1)
        put_life(p, x->id);
    fprintf(p->f, "</td><td>%s</td><td>%s</td><td class=\"l\"><i style=\"background:var(--%s)\"></i>%s</td><td class=\"w\">",
            page_data_bytes(group->key, text, sizeof text), page_data_bytes(x->size, (char[32]){0}, 32), var[x->use], walk_use_name(x->use));
    if (x->op >= 0) {
        page_data_kernel(p->f, x->name);
        fprintf(p->f, " <button class=\"link\" data-op=\"%d\">op %d</button>", x->op, x->op);
        put_site(p, x->op);
    } else {
        fputs("before the iteration", p->f);
    }
    if (p->n > 1) {
        fputs("</td><td class=\"t\">", p->f);
        put_fate(p, fate, x, group->n);
    }
    fputs("</td></tr>\n", p->f);
}

int page_tables_tensors(struct page *p)
{
    const struct graph *g = p->g;
    const struct plan *plan = &p->line[p->n - 1].plan;
    struct item *item = calloc((size_t)g->n_bufs + 1, sizeof *item);
    uint8_t *fate = calloc((size_t)g->n_bufs + 1, 1);
    int32_t top = g->baseline_peak_op < 0 ? 0 : g->baseline_peak_op, n = 0, n_groups = 0;
    for (int32_t b = 0; item && b < g->n_bufs; b++)
        if (g->bufs[b].bytes && at_op(g, b, top)) {
            const int32_t op = g->bufs[b].born;
            item[n++] = (struct item){op < 0 ? "" : g->ops[op].name, b, op, site_of(p, op), p->use[b], 1, g->bufs[b].bytes, g->bufs[b].bytes};
        }
    for (size_t k = 0; fate && k < plan->n_steps; k++)
        if (plan->steps[k].kind == PLAN_DROP || plan->steps[k].kind == PLAN_OFFLOAD)
            fate[plan->steps[k].id] |= plan->steps[k].kind == PLAN_DROP ? 1 : 2;
    struct group *group = item && fate ? grouped(item, n, &n_groups) : NULL;
    if (group) {
        fprintf(p->f, "<h2>Largest tensors</h2>\n<p class=\"sub\">In memory at the peak of the program as it is (op %d); those of one size, kind and origin are "
                "one row.</p>\n<div class=\"box scroll\"><table><tr><th class=\"l\">tensor</th><th>together</th><th>each</th><th class=\"l\">kind</th>"
                "<th class=\"l\">made by</th>%s</tr>\n", top, p->n > 1 ? "<th class=\"l\">under the plan</th>" : "");
        for (int32_t i = 0; i < n_groups && i < ROWS; i++)
            tensor_row(p, item, &group[i], fate);
        fputs("</table></div>\n", p->f);
    }
    free(item);
    free(fate);
    free(group);
    return group ? 0 : -ENOMEM;
}
