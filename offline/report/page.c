#include "offline/report/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/report/page_parts.h"
#include "offline/report/page_tables.h"
#include "offline/report/tied.h"
#include "offline/report/walk.h"

/* ---- the head -------------------------------------------------------------------------------------------------------------- */

/* The program without the folder that it lies in: "python3 scripts/train.py --json out/x" gives "train.py --json out/x". */
static const char *title(const struct graph *g)
{
    const char *options = strstr(g->model, " -"), *at = g->model;
    for (const char *s = g->model; *s && s != options; s++)
        if (*s == '/' && s[1])
            at = s + 1;
    return *at ? at : "one iteration";
}

static void card(FILE *f, const char *value, const char *what) { fprintf(f, "<div class=\"card\"><b>%s</b><span>%s</span></div>\n", value, what); }

static void head(struct page *p)
{
    const struct graph *g = p->g;
    const struct page_line *native = &p->line[0], *best = &p->line[p->n - 1];
    char a[32], b[32], text[160];
    fputs("<h1>", p->f);
    page_data_text(p->f, title(g));
    fputs("</h1>\n<p class=\"sub\">One training iteration", p->f);
    if (g->device[0]) {
        fputs(" on ", p->f);
        page_data_text(p->f, g->device);
    }
    fprintf(p->f, ": %d ops, %d buffers, %s.", g->n_ops, g->n_bufs, page_data_ns((double)g->total_ns, a, sizeof a));
    if (g->floor_op >= 0) {
        fprintf(p->f, " No plan without copies goes below %s, what op %d (", page_data_bytes(g->floor_bytes, a, sizeof a), g->floor_op);
        page_data_kernel(p->f, g->ops[g->floor_op].name);
        fputs(") needs.", p->f);
    }
    fputs("</p>\n<div class=\"cards\">\n", p->f);
    card(p->f, page_data_bytes(native->r.peak_bytes, a, sizeof a), "peak memory, as the program is");
    if (p->n > 1) {
        snprintf(text, sizeof text, "%s (&minus;%.0f&nbsp;%%)", page_data_bytes(best->r.peak_bytes, b, sizeof b),
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

static void charts(struct page *p)
{
    fputs("<h2>Memory over the iteration</h2>\n<div class=\"box\">\n"
          "<div class=\"bar\" id=\"pick\" role=\"radiogroup\" aria-label=\"schedule shown as blocks\"></div>\n"
          "<div class=\"bar\"><button id=\"zin\">zoom in</button><button id=\"zout\">zoom out</button><button id=\"zall\">all</button>"
          "<button id=\"ztall\" aria-pressed=\"false\">taller</button><button id=\"zpeak\">peak</button><button id=\"znext\">next replay</button></div>\n"
          "<div class=\"chart\" id=\"chart\" tabindex=\"0\" role=\"application\" aria-label=\"memory over the ops of the iteration, a block a tensor; left and "
          "right go from op to op, up and down from tensor to tensor, plus and minus zoom, r goes to the next replay, o to its original\"></div>\n"
          "<ul class=\"legend\" id=\"legend\"></ul>\n<div class=\"read\" id=\"read\" aria-live=\"polite\"></div>\n"
          "<p class=\"hint\">Point at a block for its tensor and stack; a click keeps it, <kbd>Esc</kbd> lets it go. Or press Tab to the chart: <kbd>&larr;</kbd> "
          "<kbd>&rarr;</kbd> op by op, <kbd>&uarr;</kbd> <kbd>&darr;</kbd> tensor by tensor, <kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd> zoom, <kbd>[</kbd> "
          "<kbd>]</kbd> of the memory axis, <kbd>r</kbd> <kbd>R</kbd> next and previous replay, <kbd>o</kbd> its original, or the forward op of a backward op, "
          "<kbd>d</kbd> <kbd>D</kbd> evictions, <kbd>p</kbd> the peak. Ctrl and the wheel zoom, with Shift the memory axis; dragging moves.</p>\n"
          "<noscript><p>The chart needs JavaScript; the tables below do not.</p></noscript>\n</div>\n"
          "<section id=\"where\" hidden><h2>Where the memory is</h2>\n<div class=\"box\">\n"
          "<div class=\"bar\"><span id=\"by\" role=\"radiogroup\" aria-label=\"groups\"></span><span id=\"when\" role=\"radiogroup\" aria-label=\"at which op\"></span>"
          "<label class=\"find\">find <input id=\"find\" type=\"search\" placeholder=\"module, line or kernel\"></label></div>\n"
          "<div class=\"tree\" id=\"tree\"></div>\n<p class=\"hint\" id=\"treehint\"></p>\n</div></section>\n", p->f);
}

static int body(struct page *p)
{
    int rc = 0;
    head(p);
    charts(p);
    page_tables_prices(p);
    page_tables_schedules(p);
    for (int k = p->n - 1; !rc && k > 0; k--)
        rc = page_tables_replays(p, k);
    if (!rc)
        rc = page_tables_tensors(p);
    return rc ? rc : page_data_write(p);
}

int page_write(FILE *f, const struct graph *g, const struct page_line *lines, int n, const struct curve *curve)
{
    struct page p = {f, g, lines, n, curve, malloc((size_t)g->n_bufs + 1), malloc((size_t)g->n_ops + 1), NULL};
    int rc = p.use && p.phase ? walk_uses(g, p.use, p.phase) : -ENOMEM;
    if (!rc && !(p.tied = tied_ops(g, p.phase)))
        rc = -ENOMEM;
    if (!rc) {
        fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,"
              "initial-scale=1\"><title>remat: ", f);
        page_data_text(f, title(g));
        fprintf(f, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n%s</style></head><body><main>\n", page_css);
        rc = body(&p);
        fprintf(f, "</main>\n<script>\n%s%s%s</script>\n</body></html>\n", page_js, page_chart_js, page_groups_js);
    }
    free(p.use);
    free(p.phase);
    free(p.tied);
    return rc;
}
