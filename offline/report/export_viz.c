/* export_viz.c: a memory snapshot for PyTorch's viewer; see export.h. */
#include "offline/report/export_viz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/report/walk.h"

void export_string(FILE *f, const char *s, bool in_page)
{
    fputc('"', f);
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20 || (in_page && c == '<'))
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

/* ---- memory-viz: one description, written as JSON or as a pickle (protocol 2) ------------------------------------ */

struct tree_out {
    FILE *f;
    int json;
    int first; /* JSON: no comma needed yet */
};

static void tree_begin(struct tree_out *t, int list)
{
    if (t->json)
        fputc(list ? '[' : '{', t->f);
    else
        fputs(list ? "](" : "}(", t->f);
    t->first = 1;
}

static void tree_end(struct tree_out *t, int list)
{
    fputc(t->json ? (list ? ']' : '}') : (list ? 'e' : 'u'), t->f);
    t->first = 0;
}

static void tree_next(struct tree_out *t)
{
    if (t->json && !t->first)
        fputc(',', t->f);
    t->first = 0;
}

static void tree_string(struct tree_out *t, const char *s)
{
    if (t->json) {
        export_string(t->f, s, false);
        return;
    }
    const size_t n = strlen(s);
    fputc('X', t->f);
    for (int i = 0; i < 4; i++)
        fputc((int)(n >> (8 * i) & 255), t->f);
    fwrite(s, 1, n, t->f);
}

static void tree_int(struct tree_out *t, int64_t v)
{
    if (t->json) {
        fprintf(t->f, "%lld", (long long)v);
        return;
    }
    fputc(0x8a, t->f); /* LONG1: eight bytes, two's complement, lowest first */
    fputc(8, t->f);
    for (int i = 0; i < 8; i++)
        fputc((int)((uint64_t)v >> (8 * i) & 255), t->f);
}

static void tree_key(struct tree_out *t, const char *key)
{
    tree_next(t);
    tree_string(t, key);
    if (t->json)
        fputc(':', t->f);
}

static void tree_pair_int(struct tree_out *t, const char *key, int64_t v)
{
    tree_key(t, key);
    tree_int(t, v);
}

static void tree_pair_string(struct tree_out *t, const char *key, const char *v)
{
    tree_key(t, key);
    tree_string(t, v);
}

/* Innermost first, as PyTorch has them: the kernel, then who launched it. */
static void tree_frame(struct tree_out *t, const char *file, int64_t line, const char *name)
{
    tree_next(t);
    tree_begin(t, 0);
    tree_pair_string(t, "filename", file);
    tree_pair_int(t, "line", line);
    tree_pair_string(t, "name", name);
    tree_end(t, 0);
}

static void tree_frames(struct tree_out *t, const struct graph *g, int32_t op)
{
    const char *site = op >= 0 && g->ops[op].site >= 0 && g->ops[op].site < g->n_sites ? g->sites[g->ops[op].site] : NULL;
    struct walk_frame frame;
    char text[32];
    tree_key(t, "frames");
    tree_begin(t, 1);
    if (op >= 0) {
        snprintf(text, sizeof text, "op %d", op);
        tree_frame(t, text, 0, PLAIN(g->ops[op].name));
    }
    while (walk_frame_next(&site, &frame))
        tree_frame(t, frame.file[0] ? frame.file : "??", frame.line, frame.name);
    tree_end(t, 1);
}

static void tree_event(struct tree_out *t, const struct export *x, const char *action, int64_t addr, int32_t b, int32_t op, double ns)
{
    tree_next(t);
    tree_begin(t, 0);
    tree_pair_string(t, "action", action);
    tree_pair_int(t, "addr", addr);
    tree_pair_int(t, "size", x->g->bufs[b].bytes);
    tree_pair_int(t, "stream", 0);
    tree_pair_int(t, "time_us", (int64_t)(ns / 1e3));
    tree_frames(t, x->g, op);
    tree_end(t, 0);
}

struct viz {
    struct tree_out t;
    const struct export *x;
    int64_t *addr;
    uint8_t *resident;
};

static void viz_event(void *ctx, const struct walk_event *e)
{
    struct viz *v = ctx;
    if (e->kind == WALK_RUN)
        return;
    v->resident[e->buf] = e->kind == WALK_ALLOC;
    if (e->kind == WALK_ALLOC) {
        tree_event(&v->t, v->x, "alloc", v->addr[e->buf], e->buf, e->op, e->ns);
    } else {
        tree_event(&v->t, v->x, "free_requested", v->addr[e->buf], e->buf, e->op, e->ns);
        tree_event(&v->t, v->x, "free_completed", v->addr[e->buf], e->buf, e->op, e->ns);
    }
}

static void viz_segments(struct viz *v)
{
    struct tree_out *t = &v->t;
    const struct graph *g = v->x->g;
    for (int32_t b = 0; b < g->n_bufs; b++) {
        if (!v->resident[b] || !g->bufs[b].bytes)
            continue;
        tree_next(t);
        tree_begin(t, 0);
        tree_pair_int(t, "device", 0);
        tree_pair_int(t, "address", v->addr[b]);
        tree_pair_int(t, "total_size", g->bufs[b].bytes);
        tree_pair_int(t, "allocated_size", g->bufs[b].bytes);
        tree_pair_int(t, "active_size", g->bufs[b].bytes);
        tree_pair_int(t, "requested_size", g->bufs[b].bytes);
        tree_pair_int(t, "stream", 0);
        tree_pair_string(t, "segment_type", "large");
        tree_frames(t, g, g->bufs[b].born);
        tree_key(t, "blocks");
        tree_begin(t, 1);
        tree_next(t);
        tree_begin(t, 0);
        tree_pair_int(t, "address", v->addr[b]);
        tree_pair_int(t, "size", g->bufs[b].bytes);
        tree_pair_int(t, "requested_size", g->bufs[b].bytes);
        tree_pair_string(t, "state", "active_allocated");
        tree_frames(t, g, g->bufs[b].born);
        tree_end(t, 0);
        tree_end(t, 1);
        tree_end(t, 0);
    }
}

int export_memory_viz(struct export *x)
{
    const struct graph *g = x->g;
    const size_t n = strlen(x->out), nb = (size_t)g->n_bufs + 1;
    struct viz v = {.t = {.f = x->f, .json = n > 5 && !strcmp(x->out + n - 5, ".json")}, .x = x};
    v.addr = calloc(nb, sizeof *v.addr);
    v.resident = calloc(nb, 1);
    int rc = v.addr && v.resident ? 0 : -ENOMEM;
    if (!rc) {
        int64_t at = INT64_C(0x700000000000);
        for (int32_t b = 0; b < g->n_bufs; b++) {
            v.addr[b] = at;
            at += (g->bufs[b].bytes + 511) / 512 * 512;
        }
        if (!v.t.json)
            fputs("\x80\x02", x->f);
        tree_begin(&v.t, 0);
        tree_key(&v.t, "device_traces");
        tree_begin(&v.t, 1);
        tree_next(&v.t);
        tree_begin(&v.t, 1);
        rc = walk_plan(g, x->plan, x->clock_ns, viz_event, &v);
        tree_end(&v.t, 1);
        tree_end(&v.t, 1);
        tree_key(&v.t, "segments");
        tree_begin(&v.t, 1);
        viz_segments(&v);
        tree_end(&v.t, 1);
        tree_end(&v.t, 0);
        fputs(v.t.json ? "\n" : ".", x->f);
    }
    free(v.addr);
    free(v.resident);
    return rc;
}
