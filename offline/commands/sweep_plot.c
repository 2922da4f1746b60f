#include "offline/commands/sweep_plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/output.h"

/* Pixels: the picture, the field inside the axes. */
enum { WIDTH = 880, HEIGHT = 500, LEFT = 76, RIGHT = 690, TOP = 56, BOTTOM = 432 };

/* Told apart by colour-blind readers, on white as on near-black; dashes tell the second round apart. */
static const char *const colors[] = {"#1f77d0", "#d9730d", "#2a9d5c", "#c2387f", "#8a63d2", "#b8860b", "#12a0b5", "#d64545"};
enum { N_COLORS = sizeof colors / sizeof *colors };

struct axes {
    double lo, hi, top; /* bytes, bytes, overhead */
    double tick_gib, tick_overhead;
};

/* A step of 1, 2 or 5 times a power of ten that makes about n steps of the range. */
static double nice_step(double range, int n)
{
    const double raw = range > 0 ? range / n : 1, power = pow(10, floor(log10(raw))), lead = raw / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

static double gib(double bytes) { return bytes / (1 << 30); }
static double at_x(const struct axes *a, double bytes) { return LEFT + (RIGHT - LEFT) * (bytes - a->lo) / (a->hi - a->lo); }
static double at_y(const struct axes *a, double overhead) { return BOTTOM - (BOTTOM - TOP) * overhead / a->top; }

static struct axes axes_of(const struct sweep_plot *p)
{
    struct axes a = {.lo = (double)p->peak_bytes, .hi = 0, .top = 0};
    for (size_t l = 0; l < p->n_limits; l++) {
        const double x = (double)p->limit[l];
        a.lo = fmin(a.lo, x);
        a.hi = fmax(a.hi, x);
        for (size_t s = 0; s < p->n_solvers; s++)
            a.top = fmax(a.top, isnan(p->overhead[s * p->n_limits + l]) ? 0 : p->overhead[s * p->n_limits + l]);
        a.top = fmax(a.top, isnan(p->bound[l]) ? 0 : p->bound[l]);
    }
    if (a.hi <= a.lo) {
        a.lo = a.lo * 0.9;
        a.hi = a.hi * 1.1 + 1;
    }
    a.top = a.top > 0 ? a.top : 0.01;
    a.tick_gib = nice_step(gib(a.hi - a.lo), 7);
    a.tick_overhead = nice_step(a.top, 6);
    a.top = ceil(a.top / a.tick_overhead - 1e-9) * a.tick_overhead;
    return a;
}

/* The model's name is the trace's: what XML would read as its own is replaced. */
static void put_text(FILE *f, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < 32 || strchr("<>&\"'", *text) ? '_' : *text, f);
}

static void put_head(FILE *f, const struct sweep_plot *p)
{
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "font-family=\"system-ui, sans-serif\">\n<style>\n"
            ".paper{fill:#ffffff}.ink{fill:#1b1f24}.soft{fill:#57606a}.grid{stroke:#d8dee4}.axis{stroke:#57606a}\n"
            ".bound{fill:#57606a;fill-opacity:.16}.edge{stroke:#57606a}.line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
            "@media (prefers-color-scheme: dark){.paper{fill:#0d1117}.ink{fill:#e6edf3}.soft{fill:#9aa4af}"
            ".grid{stroke:#2a3038}.axis{stroke:#9aa4af}.bound{fill:#9aa4af;fill-opacity:.22}.edge{stroke:#9aa4af}}\n</style>\n"
            "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n<text class=\"ink\" x=\"%d\" y=\"30\" font-size=\"17\" "
            "font-weight=\"600\">",
            WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    put_text(f, p->model[0] ? p->model : "trace");
    fprintf(f, ": extra time against memory%s</text>\n", p->offload ? ", with copies to the host" : "");
}

static void put_axes(FILE *f, const struct sweep_plot *p, const struct axes *a)
{
    for (double y = 0; y <= a->top * 1.0001; y += a->tick_overhead)
        fprintf(f,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"soft\" x=\"%d\" y=\"%.1f\" "
                "font-size=\"12\" text-anchor=\"end\">%.4g</text>\n",
                LEFT, RIGHT, at_y(a, y), at_y(a, y), LEFT - 8, at_y(a, y) + 4, y * 100);
    for (double x = ceil(gib(a->lo) / a->tick_gib) * a->tick_gib; x <= gib(a->hi) * 1.0001; x += a->tick_gib)
        fprintf(f,
                "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text class=\"soft\" x=\"%.1f\" y=\"%d\" "
                "font-size=\"12\" text-anchor=\"middle\">%.4g</text><text class=\"soft\" x=\"%.1f\" y=\"%d\" font-size=\"11\" "
                "text-anchor=\"middle\">%.0f %%</text>\n",
                at_x(a, x * (1 << 30)), at_x(a, x * (1 << 30)), BOTTOM, BOTTOM + 5, at_x(a, x * (1 << 30)), BOTTOM + 19, x,
                at_x(a, x * (1 << 30)), BOTTOM + 34, 100 * x * (1 << 30) / (double)p->peak_bytes);
    fprintf(f,
            "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n<text class=\"ink\" x=\"%d\" y=\"%d\" font-size=\"13\" "
            "text-anchor=\"middle\">memory limit (GiB; per cent of the unconstrained peak)</text>\n<text class=\"ink\" "
            "transform=\"translate(24 %d) rotate(-90)\" font-size=\"13\" text-anchor=\"middle\">overhead (%% of the step's "
            "time)</text>\n",
            LEFT, RIGHT, BOTTOM, BOTTOM, (LEFT + RIGHT) / 2, BOTTOM + 56, (TOP + BOTTOM) / 2);
}

/* Limits in rising order: there are few. */
static void sort_limits(const struct sweep_plot *p, size_t *order)
{
    for (size_t i = 0; i < p->n_limits; i++) {
        size_t k = i;
        for (; k && p->limit[order[k - 1]] > p->limit[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

/* Runs of neighbouring limits with a figure, each as one path; a single point as a dot. */
static void put_line(FILE *f, const struct sweep_plot *p, const struct axes *a, const size_t *order, const double *y, const char *style)
{
    for (size_t i = 0; i < p->n_limits; i++) {
        size_t k = i;
        if (isnan(y[order[i]]))
            continue;
        fprintf(f, "<path class=\"line\" %s d=\"", style);
        for (; k < p->n_limits && !isnan(y[order[k]]); k++)
            fprintf(f, "%c%.1f %.1f", k == i ? 'M' : 'L', at_x(a, (double)p->limit[order[k]]), at_y(a, y[order[k]]));
        fprintf(f, "%s\"/>\n", k == i + 1 ? "h0.1" : "");
        i = k;
    }
}

/* Between two limits what is proved is the bound of the larger: a stair, not a slope. */
static void put_stair(FILE *f, const struct sweep_plot *p, const struct axes *a, const size_t *order)
{
    char verb = 'M';
    for (size_t i = 0, last = 0; i < p->n_limits; i++) {
        if (isnan(p->bound[order[i]]))
            continue;
        const double x = at_x(a, (double)p->limit[order[i]]), y = at_y(a, p->bound[order[i]]);
        if (verb == 'L')
            fprintf(f, "L%.1f %.1f", at_x(a, (double)p->limit[order[last]]), y);
        fprintf(f, "%c%.1f %.1f", verb, x, y);
        verb = 'L';
        last = i;
    }
}

/* What is proved to be out of reach: the area under the bound. */
static void put_bound(FILE *f, const struct sweep_plot *p, const struct axes *a, const size_t *order)
{
    size_t first = p->n_limits, last = 0;
    for (size_t i = 0; i < p->n_limits; i++)
        if (!isnan(p->bound[order[i]])) {
            first = first < i ? first : i;
            last = i;
        }
    if (first == p->n_limits)
        return;
    fputs("<path class=\"bound\" d=\"", f);
    put_stair(f, p, a, order);
    fprintf(f, "L%.1f %dL%.1f %dZ\"/>\n<path class=\"line\" stroke-dasharray=\"2 3\" style=\"stroke-width:1.5\" stroke=\"#7d8590\" d=\"",
            at_x(a, (double)p->limit[order[last]]), BOTTOM, at_x(a, (double)p->limit[order[first]]), BOTTOM);
    put_stair(f, p, a, order);
    fputs("\"/>\n", f);
}

static void style_of(char *style, size_t len, size_t s)
{
    snprintf(style, len, "stroke=\"%s\"%s%s", colors[s % N_COLORS], s / N_COLORS % 2 ? " stroke-dasharray=\"7 4\"" : "",
             s ? " stroke-linecap=\"round\"" : " stroke-linecap=\"round\" style=\"stroke-width:3.5\"");
}

static void put_legend(FILE *f, const struct sweep_plot *p, int has_bound)
{
    char style[120];
    const int x = RIGHT + 24;
    int y = TOP + 8;
    for (size_t s = 0; s < p->n_solvers; s++, y += 22) {
        style_of(style, sizeof style, s);
        fprintf(f, "<path class=\"line\" %s d=\"M%d %dh26\"/><text class=\"ink\" x=\"%d\" y=\"%d\" font-size=\"13\">", style, x, y, x + 34, y + 4);
        put_text(f, p->solver[s]);
        fprintf(f, "</text>\n");
    }
    if (has_bound)
        fprintf(f,
                "<rect class=\"bound\" x=\"%d\" y=\"%d\" width=\"26\" height=\"14\"/><text class=\"ink\" x=\"%d\" y=\"%d\" "
                "font-size=\"13\">no plan (proved)</text>\n",
                x, y - 6, x + 34, y + 5);
}

static void put_floor(FILE *f, const struct sweep_plot *p, const struct axes *a)
{
    const double x = at_x(a, (double)p->floor_bytes);
    if ((double)p->floor_bytes < a->lo || (double)p->floor_bytes > a->hi)
        return;
    fprintf(f,
            "<line class=\"edge\" stroke-dasharray=\"5 4\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text class=\"soft\" x=\"%.1f\" "
            "y=\"%d\" font-size=\"12\">floor %.3g GiB</text>\n",
            x, x, TOP, BOTTOM, x + 5, TOP + 12, gib((double)p->floor_bytes));
}

static int put_all(FILE *f, const struct sweep_plot *p)
{
    const struct axes a = axes_of(p);
    size_t *order = malloc((p->n_limits + 1) * sizeof *order);
    char style[120];
    int has_bound = 0;
    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_limits; i++)
        has_bound |= !isnan(p->bound[i]);
    sort_limits(p, order);
    put_head(f, p);
    put_axes(f, p, &a);
    put_bound(f, p, &a, order);
    put_floor(f, p, &a);
    for (size_t s = p->n_solvers; s-- > 0;) { /* the first, drawn last, lies on top */
        style_of(style, sizeof style, s);
        put_line(f, p, &a, order, p->overhead + s * p->n_limits, style);
    }
    put_legend(f, p, has_bound);
    fprintf(f, "</svg>\n");
    free(order);
    return 0;
}

int sweep_plot_write(const struct sweep_plot *p, const char *path, char *err, size_t err_len)
{
    struct output o;
    int rc = output_open(&o, path, 0, err, err_len);
    if (rc)
        return rc;
    rc = put_all(o.f, p);
    if (!rc)
        return output_commit(&o, err, err_len);
    output_abandon(&o);
    snprintf(err, err_len, "%s: %s", path, strerror(-rc));
    return rc;
}
