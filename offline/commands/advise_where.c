#include "offline/commands/advise_where.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "tracer/plain.h"

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* The next frame of a site, "a < b < c": its length; *at moves behind it. 0: none is left. */
static size_t next_frame(const char **at, const char **frame)
{
    *frame = *at;
    const char *end = strstr(*at, " < ");
    const size_t n = end ? (size_t)(end - *at) : strlen(*at);
    *at += end ? n + 3 : n;
    return n;
}

static int has(const char *frame, size_t n, const char *word)
{
    const size_t k = strlen(word);
    for (size_t i = 0; i + k <= n; i++)
        if (!strncmp(frame + i, word, k))
            return 1;
    return 0;
}

/* The innermost line of the program's own, without its folder; of a program without Python the innermost frame. */
static void line_of(const char *site, char *name)
{
    const char *at = site, *frame;
    size_t n;
    while ((n = next_frame(&at, &frame)))
        if (has(frame, n, ".py:") && !has(frame, n, "site-packages/") && !has(frame, n, "dist-packages/") && !has(frame, n, "/torch/"))
            break;
    if (!n) {
        at = site;
        n = next_frame(&at, &frame);
    }
    for (size_t i = n; i-- > 0;)
        if (frame[i] == '/') {
            frame += i + 1;
            n -= i + 1;
            break;
        }
    snprintf(name, WHERE_NAME, "%.*s", (int)n, frame);
}

/* The innermost module whose forward() is on the stack: "Block.forward" gives "Block". */
static void module_of(const char *site, char *name)
{
    const char *at = site, *frame;
    size_t n;
    static const char FORWARD[] = ".forward";
    *name = 0;
    while ((n = next_frame(&at, &frame))) {
        const size_t k = sizeof FORWARD - 1;
        if (n <= k || strncmp(frame + n - k, FORWARD, k))
            continue;
        size_t from = n - k;
        while (from && frame[from - 1] != ' ')
            from--;
        snprintf(name, WHERE_NAME, "%.*s", (int)(n - k - from), frame + from);
        return;
    }
}

static void add(struct where_group *groups, int *n, const char *name, int64_t bytes)
{
    int i = 0;
    while (i < *n && strcmp(groups[i].name, name))
        i++;
    if (i == *n)
        snprintf(groups[(*n)++].name, WHERE_NAME, "%s", name);
    groups[i].bytes += bytes;
}

static int larger(const void *a, const void *b)
{
    const struct where_group *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* ---- what would help -------------------------------------------------------------------------------------------- */

static void hint(struct where *w, int64_t bytes, const char *text)
{
    int i = w->n_hints;
    if (w->n_hints == WHERE_HINTS || bytes < w->g->baseline_peak_bytes / 50)
        return;
    for (; i > 0 && w->hint[i - 1].bytes < bytes; i--)
        w->hint[i] = w->hint[i - 1];
    w->hint[i].bytes = bytes;
    snprintf(w->hint[i].text, sizeof w->hint[i].text, "%s", text);
    w->n_hints++;
}

static int is_of_loss(const char *name)
{
    static const char *const words[] = {"oftmax", "OftMax", "oftMax", "SoftMax", "nll", "ross_entropy", "ossEntropy"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return 1;
    return 0;
}

/* The most memory at an op of [from, to). */
static int64_t most_of(const struct graph *g, int32_t from, int32_t to)
{
    int64_t most = 0;
    for (int32_t i = from; i < to; i++)
        most = g->live_bytes[i] > most ? g->live_bytes[i] : most;
    return most;
}

static void find_hints(struct where *w)
{
    const struct graph *g = w->g;
    int32_t opt = g->n_ops;
    int64_t temporary = 0, logits = 0;
    while (opt && g->ops[opt - 1].phase == GRAPH_OPT)
        opt--;
    for (int32_t b = 0; b < g->n_bufs; b++) /* what the optimizer makes beside states, all at once at the worst */
        if (g->bufs[b].born >= opt && opt < g->n_ops && g->bufs[b].kind == GRAPH_ACTIVATION)
            temporary += g->bufs[b].bytes;
    const int64_t before = most_of(g, 0, opt), in = most_of(g, opt, g->n_ops), over = in - temporary > before ? temporary : in - before;
    hint(w, in > before ? over : 0, "a fused optimizer (fused=True): its step makes tensors of its own while memory is fullest");
    for (int32_t i = 0; i < g->n_ops; i++) {
        int64_t large = 0;
        for (int32_t k = g->ops[i].first; is_of_loss(g->ops[i].name) && k < g->ops[i].first + graph_n_operands(&g->ops[i]); k++)
            if (g->bufs[g->operands[k].buf].kind == GRAPH_ACTIVATION)
                large += g->bufs[g->operands[k].buf].bytes;
        if (g->live_bytes[i] >= g->baseline_peak_bytes - large && large > logits)
            logits = large;
    }
    hint(w, logits - logits / 8, "the loss in chunks of the vocabulary or of the batch (an eighth at a time): its operands lie in memory together");
    hint(w, w->kinds[GRAPH_STATE] / 2, "states of the optimizer in bf16, if they are in fp32");
    hint(w, w->kinds[GRAPH_GRAD] / 2, "parameters and gradients in bf16, if they are in fp32 (half of the gradients; as much of the parameters)");
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

int where_find(const struct graph *g, struct where *w)
{
    char name[WHERE_NAME];
    memset(w, 0, sizeof *w);
    w->g = g;
    w->lines = calloc((size_t)g->n_sites + 8, sizeof *w->lines);
    w->modules = calloc((size_t)g->n_sites + 8, sizeof *w->modules);
    if (!w->lines || !w->modules) {
        where_free(w);
        return -ENOMEM;
    }
    for (int32_t b = 0; b < g->n_bufs; b++) {
        const struct graph_buf *x = &g->bufs[b];
        if (x->born > g->baseline_peak_op || (x->dies >= 0 && x->dies <= g->baseline_peak_op))
            continue;
        w->kinds[x->kind] += x->bytes;
        const int32_t site = x->born >= 0 ? g->ops[x->born].site : -1;
        if (site < 0 || site >= g->n_sites) {
            add(w->lines, &w->n_lines, x->born < 0 ? "(there before the iteration)" : "(unknown)", x->bytes);
            continue;
        }
        line_of(g->sites[site], name);
        add(w->lines, &w->n_lines, name, x->bytes);
        module_of(g->sites[site], name);
        if (*name)
            add(w->modules, &w->n_modules, name, x->bytes);
    }
    qsort(w->lines, (size_t)w->n_lines, sizeof *w->lines, larger);
    qsort(w->modules, (size_t)w->n_modules, sizeof *w->modules, larger);
    find_hints(w);
    return 0;
}

void where_free(struct where *w)
{
    free(w->lines);
    free(w->modules);
    w->lines = w->modules = NULL;
}

static void groups_text(const char *what, const struct where_group *groups, int n)
{
    char b[32];
    for (int i = 0; i < n && i < WHERE_GROUPS; i++)
        printf("%-8s %12s  %s\n", i ? "" : what, cli_bytes(groups[i].bytes, b, sizeof b), PLAIN(groups[i].name));
}

void where_text(const struct where *w)
{
    const struct graph *g = w->g;
    char b[32];
    printf("\nwhere it is at the peak, op %d (%s)\n", g->baseline_peak_op, g->baseline_peak_op < 0 ? "the start" : PLAIN(g->ops[g->baseline_peak_op].name));
    for (int k = 0, first = 1; k < WHERE_KINDS; k++)
        if (w->kinds[k]) {
            printf("%-8s %12s  %s\n", first ? "kinds" : "", cli_bytes(w->kinds[k], b, sizeof b), graph_kind_name(k));
            first = 0;
        }
    groups_text("modules", w->modules, w->n_modules);
    groups_text("lines", w->lines, w->n_lines);
    for (int i = 0; i < w->n_hints; i++)
        printf("%s%-8s %12s  %s\n", i ? "" : "\nwhat would help most, at the peak\n", "", cli_bytes(w->hint[i].bytes, b, sizeof b), w->hint[i].text);
}

static void groups_json(const char *what, const struct where_group *groups, int n)
{
    printf(", \"%s\": [", what);
    for (int i = 0; i < n && i < WHERE_GROUPS; i++) {
        printf("%s{\"bytes\": %lld, \"name\": ", i ? ", " : "", (long long)groups[i].bytes);
        cli_json(groups[i].name);
        printf("}");
    }
    printf("]");
}

void where_json(const struct where *w)
{
    printf("\"kinds\": {");
    for (int k = 0; k < WHERE_KINDS; k++)
        printf("%s\"%s\": %lld", k ? ", " : "", graph_kind_name(k), (long long)w->kinds[k]);
    printf("}");
    groups_json("modules", w->modules, w->n_modules);
    groups_json("lines", w->lines, w->n_lines);
    printf(", \"hints\": [");
    for (int i = 0; i < w->n_hints; i++) {
        printf("%s{\"bytes\": %lld, \"text\": ", i ? ", " : "", (long long)w->hint[i].bytes);
        cli_json(w->hint[i].text);
        printf("}");
    }
    printf("]");
}
