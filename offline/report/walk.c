/* walk.c: see walk.h. */
#include "offline/report/walk.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/report/kinds.h"

struct walk {
    const struct graph *g;
    walk_fn *fn;
    void *ctx;
    unsigned char *resident, *keep;
    size_t step;
};

static void set(struct walk *w, int32_t b, int resident, int32_t op, double ns)
{
    if (w->resident[b] == resident)
        return;
    w->resident[b] = (unsigned char)resident;
    if (w->g->bufs[b].bytes)
        w->fn(w->ctx, &(struct walk_event){resident ? WALK_ALLOC : WALK_FREE, b, op, ns, w->step});
}

static void deaths(struct walk *w, int32_t op, double ns)
{
    const struct graph *g = w->g;
    for (int32_t k = g->dies_at[op]; k < g->dies_at[op + 1]; k++)
        if (!w->keep[g->die_list[k]])
            set(w, g->die_list[k], 0, op < g->n_ops ? op : -1, ns);
}

static void walk_run(struct walk *w, const struct plan_step *st, double end)
{
    const struct graph *g = w->g;
    const struct graph_operand *o = graph_operands(g, st->id);
    const double start = end - (double)g->ops[st->id].ns;
    for (int32_t i = 0; i < graph_n_operands(&g->ops[st->id]); i++)
        if (o[i].out >= 0 && (st->kind == PLAN_OP || o[i].role != GRAPH_SIDE))
            set(w, o[i].buf, 1, st->id, start);
    w->fn(w->ctx, &(struct walk_event){WALK_RUN, -1, st->id, end, w->step});
    if (st->kind == PLAN_OP)
        deaths(w, st->id + 1, end);
}

int walk_plan(const struct graph *g, const struct plan *p, const double *clock_ns, walk_fn *fn, void *ctx)
{
    struct walk w = {.g = g, .fn = fn, .ctx = ctx, .step = p->n_steps};
    w.resident = calloc((size_t)g->n_bufs + 1, 1);
    w.keep = calloc((size_t)g->n_bufs + 1, 1);
    if (!w.resident || !w.keep) {
        free(w.resident);
        free(w.keep);
        return -ENOMEM;
    }
    for (size_t k = 0; k < p->n_keep; k++)
        w.keep[p->keep[k]] = 1;
    for (int32_t b = 0; b < g->n_bufs; b++)
        if (g->bufs[b].born < 0)
            set(&w, b, 1, -1, 0);
    deaths(&w, 0, 0);
    for (w.step = 0; w.step < p->n_steps; w.step++) {
        const struct plan_step *st = &p->steps[w.step];
        if (st->kind == PLAN_OP || st->kind == PLAN_REPLAY)
            walk_run(&w, st, clock_ns[w.step]);
        else if (st->kind != PLAN_OFFLOAD)
            set(&w, st->id, st->kind == PLAN_FETCH, -1, clock_ns[w.step]);
    }
    free(w.resident);
    free(w.keep);
    return 0;
}

int walk_copies(const struct graph *g, const struct plan *p, const double *clock_ns, double *from_ns, double *to_ns)
{
    double out_ns = 0, in_ns = 0, *host = calloc((size_t)g->n_bufs + 1, sizeof *host); /* when the copy out is done */
    if (!host)
        return -ENOMEM;
    for (size_t k = 0; k < p->n_steps; k++) {
        const struct plan_step *st = &p->steps[k];
        from_ns[k] = to_ns[k] = 0;
        if (st->kind != PLAN_OFFLOAD && st->kind != PLAN_FETCH)
            continue;
        double *engine = st->kind == PLAN_OFFLOAD ? &out_ns : &in_ns, from = clock_ns[k] > *engine ? clock_ns[k] : *engine;
        if (st->kind == PLAN_FETCH && host[st->id] > from)
            from = host[st->id];
        from_ns[k] = from;
        to_ns[k] = *engine = from + (double)g->bufs[st->id].bytes / g->host_bytes_per_s * 1e9;
        if (st->kind == PLAN_OFFLOAD)
            host[st->id] = *engine;
    }
    free(host);
    return 0;
}

/* ---- what a buffer is for ----------------------------------------------------------------------------------------------- */

const char *walk_use_name(int use)
{
    static const char *const name[] = {"parameters", "optimizer state", "inputs", "gradients", "activations", "workspaces"};
    return use >= 0 && use < USE_N ? name[use] : NULL;
}

/* The outermost frame of C in a call site: the library's own function that the program called. Its length in *n. */
static const char *entry(const struct graph *g, int32_t op, size_t *n)
{
    const int32_t s = g->ops[op].site;
    const char *at = s >= 0 && s < g->n_sites ? g->sites[s] : "", *last = "";
    for (*n = 0; *at;) {
        const size_t len = strcspn(at, "<");
        const int python = memmem(at, len, ".py:", 4) != NULL;
        if (python)
            break;
        last = at;
        *n = len;
        at += len + (at[len] == '<') * 2;
    }
    while (*n && last[*n - 1] == ' ')
        --*n;
    return last;
}

/* Ops `from` to `to` come out of one call: they were launched at different places below the same function. Where all were launched at one
 * place, that is a function called again and again. */
static int one_call(const struct graph *g, int32_t from, int32_t to)
{
    size_t n, m;
    const char *a = entry(g, from, &n);
    int differ = 0;
    for (int32_t op = from + 1; op <= to; op++) {
        const char *b = entry(g, op, &m);
        if (!n || m != n || memcmp(a, b, n))
            return 0;
        differ |= strcmp(g->sites[g->ops[op].site], g->sites[g->ops[from].site]) != 0;
    }
    return differ;
}

int walk_uses(const struct graph *g, uint8_t *use, uint8_t *phase)
{
    static const uint8_t of_kind[] = {[GRAPH_PARAM] = USE_PARAM, [GRAPH_GRAD] = USE_GRAD, [GRAPH_STATE] = USE_STATE, [GRAPH_INPUT] = USE_INPUT,
                                      [GRAPH_ACTIVATION] = USE_ACTIVATION};
    int32_t *last = calloc((size_t)g->n_bufs + 1, sizeof *last); /* op that touches it last */
    uint8_t *read = calloc((size_t)g->n_bufs + 1, 1);           /* by buffer: an op reads it that did not make it */
    int rc = last && read ? kinds_find(g, use, phase) : -ENOMEM;
    for (int32_t op = 0; !rc && op < g->n_ops; op++) {
        const struct graph_operand *o = graph_operands(g, op);
        for (int32_t i = 0; i < graph_n_operands(&g->ops[op]); i++) {
            last[o[i].buf] = op;
            read[o[i].buf] |= (o[i].role == GRAPH_READ || o[i].role == GRAPH_RMW) && op != g->bufs[o[i].buf].born;
        }
    }
    for (int32_t b = 0; !rc && b < g->n_bufs; b++) {
        const struct graph_buf *x = &g->bufs[b];
        use[b] = of_kind[use[b]];
        if (use[b] == USE_ACTIVATION && x->born >= 0 && !x->survives && (!read[b] || one_call(g, x->born, last[b])))
            use[b] = USE_WORKSPACE;
    }
    free(last);
    free(read);
    return rc;
}

/* ---- call sites ------------------------------------------------------------------------------------------------------------ */

int walk_frame_next(const char **site, struct walk_frame *out)
{
    char text[PLAIN_SYMBOL_BYTES];
    if (!*site || !**site)
        return 0;
    const char *end = strstr(*site, " < ");
    snprintf(text, sizeof text, "%.*s", (int)(end ? end - *site : (long)strlen(*site)), *site);
    *site = end ? end + 3 : NULL;
    memset(out, 0, sizeof *out);
    const char *colon = strstr(text, ".py:");
    if (colon && isdigit((unsigned char)colon[4])) {
        char *rest;
        snprintf(out->file, sizeof out->file, "%.*s", (int)(colon + 3 - text), text);
        out->line = (int)strtol(colon + 4, &rest, 10);
        snprintf(out->name, sizeof out->name, "%.255s", rest + strspn(rest, " "));
    } else {
        plain_name(text, out->name, sizeof out->name);
    }
    return 1;
}

char *walk_site_plain(const char *site)
{
    char *to = NULL;
    size_t n = 0;
    struct walk_frame frame;
    FILE *f = open_memstream(&to, &n);
    if (!f)
        return NULL;
    for (int any = 0; walk_frame_next(&site, &frame); any = 1) {
        fputs(any ? " < " : "", f);
        if (frame.file[0])
            fprintf(f, "%s:%d ", frame.file, frame.line);
        fputs(frame.name, f);
    }
    if (!fclose(f))
        return to;
    free(to);
    return NULL;
}

const char *walk_frame_short(const struct walk_frame *f)
{
    const char *at = strstr(f->file, "site-packages/"), *slash = strrchr(f->file, '/');
    if (at)
        return at + strlen("site-packages/");
    while (slash && slash > f->file && slash[-1] != '/')
        slash--;
    return slash ? slash : f->file;
}

int walk_frame_is_glue(const struct walk_frame *f)
{
    return strstr(f->file, "torch/nn/modules/module.py") && strstr(f->name, "_call_impl");
}
