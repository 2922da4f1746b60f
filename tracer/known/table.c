/* table.c: see table.h. */
#include "tracer/known/table.h"

#include <stdlib.h>

static uint64_t pattern_bytes(const struct pattern *p)
{
    return sizeof *p + 2ull * p->arg_bytes + p->n_words * (sizeof *p->words + sizeof *p->use) + p->n_left * sizeof *p->left;
}

void table_drop_pattern(struct pattern *p)
{
    free(p->args);
    free(p->care);
    free(p->words);
    free(p->use);
    free(p->left);
    free(p);
}

void table_free_pattern(struct known *k, struct pattern *p)
{
    k->bytes -= pattern_bytes(p);
    k->n_patterns--;
    table_drop_pattern(p);
}

struct pattern *table_make_pattern(uint32_t arg_bytes, uint32_t n_words, uint32_t n_left)
{
    struct pattern *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->arg_bytes = arg_bytes;
    p->n_words = n_words;
    p->n_left = n_left;
    p->args = calloc(1, arg_bytes + 1);
    p->care = calloc(1, arg_bytes + 1);
    p->words = calloc(n_words + 1, sizeof *p->words);
    p->use = calloc(1, n_words + 1);
    p->left = calloc(n_left + 1, sizeof *p->left);
    if (p->args && p->care && p->words && p->use && p->left)
        return p;
    table_drop_pattern(p);
    return NULL;
}

static void forget_oldest(struct known *k, struct known_kernel *f)
{
    uint32_t oldest = UINT32_MAX;
    for (uint32_t i = 0; i < f->n; i++)
        if (!f->p[i]->wild && (oldest == UINT32_MAX || f->p[i]->met < f->p[oldest]->met)) /* wild patterns are kept: they must stay disbelieved */
            oldest = i;
    if (oldest == UINT32_MAX)
        return;
    table_free_pattern(k, f->p[oldest]);
    f->p[oldest] = f->p[--f->n];
}

bool table_add_pattern(struct known *k, struct known_kernel *f, struct pattern *p)
{
    if (f->n == KNOWN_PATTERNS_MOST)
        forget_oldest(k, f);
    const bool room = f->n < KNOWN_PATTERNS_MOST && k->bytes + pattern_bytes(p) <= KNOWN_BYTES_MOST;
    if (!room) {
        table_drop_pattern(p);
        return false;
    }
    k->bytes += pattern_bytes(p);
    k->n_patterns++;
    f->p[f->n++] = p;
    return true;
}

bool table_have_planes(struct known *k, struct known_kernel *f, uint32_t bytes)
{
    if (f->plane_bytes)
        return f->plane_bytes == bytes;
    if (k->bytes + (uint64_t)PLANES * bytes > KNOWN_BYTES_MOST)
        return false;
    for (int i = 0; i < PLANES; i++)
        if (!f->plane[i] && !(f->plane[i] = calloc(1, bytes ? bytes : 1)))
            return false;
    f->plane_bytes = bytes;
    k->bytes += (uint64_t)PLANES * bytes;
    return true;
}
