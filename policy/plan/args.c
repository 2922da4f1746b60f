/* Which bytes of a launch's arguments must stay as they were for the recorded iteration to say what the launch does.
 *
 * Words that point into memory we know, and tensor maps of it, are operands: match() compares the buffers. Words that were proved idle may hold anything.
 * Everything else is compared byte by byte with the iteration before: seeds, step counts and learning rates are found to vary in
 * rehearsal, and may from then on; a byte that has been the same so far and is another one now may be a flag, or say how many entries
 * of a list are in use, and what the kernel does with it was never measured. The plan is left then, and rehearsed again.
 *
 * Hot path: a comparison of a few spans with memcmp; lists are made and cut at an iteration's first difference only. */
#include "policy/op/tensor_map.h"
#include "policy/plan/exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct span {
    uint32_t at, bytes;
};
struct arg_watch { /* of one op */
    struct span *constant, *varying; /* rising */
    uint32_t n_constant, n_varying, cap_constant, cap_varying;
};

static int push(struct span **list, uint32_t *n, uint32_t *cap, uint32_t at, uint32_t bytes)
{
    if (!bytes)
        return 0;
    if (*n && (*list)[*n - 1].at + (*list)[*n - 1].bytes == at) {
        (*list)[*n - 1].bytes += bytes;
        return 0;
    }
    if (*n == *cap) {
        uint32_t c = *cap ? *cap * 2 : 4;
        struct span *s = realloc(*list, c * sizeof *s);
        if (!s)
            return -ENOMEM;
        *list = s;
        *cap = c;
    }
    (*list)[(*n)++] = (struct span){at, bytes};
    return 0;
}

/* All bytes of all parameters but the words that are operands or idle. */
static int watch_op(struct arg_watch *w, const struct record *r, const struct rec_op *o, const struct rt_op *op)
{
    const struct func *f = op->func;
    uint32_t k = o->first, end = o->first + o->n, i = o->idle, idle_end = o->idle + o->n_idle;
    for (uint32_t p = 0; p < f->n_params; p++) {
        uint32_t at = f->offset[p], to = f->offset[p] + f->size[p];
        while (at < to) {
            while (k < end && r->operands[k].offset < at)
                k++;
            while (i < idle_end && r->idle_words[i] < at)
                i++;
            uint32_t word = to, bytes = 8; /* the next one that is left out */
            if (k < end && r->operands[k].offset < word) {
                word = r->operands[k].offset;
                bytes = r->operands[k].map ? TENSOR_MAP_BYTES : 8;
            }
            if (i < idle_end && r->idle_words[i] < word) {
                word = r->idle_words[i];
                bytes = 8;
            }
            if (push(&w->constant, &w->n_constant, &w->cap_constant, at, word - at))
                return -ENOMEM;
            at = word < to ? word + bytes : to;
        }
    }
    return 0;
}

int args_index(struct device *d)
{
    const struct record *r = &d->ex->rec;
    d->ex->watch = calloc(r->n_ops + 1, sizeof *d->ex->watch);
    if (!d->ex->watch)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const struct rt_op *op = &d->ex->caps[i];
        if (r->ops[i].hold || op->kind != OP_KERNEL || op->packed || !op->func->known || !op->args)
            continue;
        if (watch_op(&d->ex->watch[i], r, &r->ops[i], op))
            return -ENOMEM;
    }
    return 0;
}

void args_clear(struct device *d)
{
    for (uint32_t i = 0; d->ex->watch && i < d->ex->rec.n_ops; i++) {
        free(d->ex->watch[i].constant);
        free(d->ex->watch[i].varying);
    }
    free(d->ex->watch);
    d->ex->watch = NULL;
}

/* The bytes that differ may differ from now on: whole words of structs, whole small parameters. */
static int cut(struct arg_watch *w, const unsigned char *now, const unsigned char *then)
{
    struct arg_watch out = {0};
    uint32_t v = 0;
    int r = 0;
    for (uint32_t i = 0; i < w->n_constant && !r; i++) {
        struct span s = w->constant[i];
        for (uint32_t at = s.at, next; at < s.at + s.bytes && !r; at = next) {
            next = (at & ~7u) + 8;
            if (next > s.at + s.bytes)
                next = s.at + s.bytes;
            if (!memcmp(now + at, then + at, next - at))
                r = push(&out.constant, &out.n_constant, &out.cap_constant, at, next - at);
            else {
                for (; v < w->n_varying && w->varying[v].at < at && !r; v++)
                    r = push(&out.varying, &out.n_varying, &out.cap_varying, w->varying[v].at, w->varying[v].bytes);
                if (!r)
                    r = push(&out.varying, &out.n_varying, &out.cap_varying, at, next - at);
            }
        }
    }
    for (; v < w->n_varying && !r; v++)
        r = push(&out.varying, &out.n_varying, &out.cap_varying, w->varying[v].at, w->varying[v].bytes);
    if (r) {
        free(out.constant);
        free(out.varying);
        return r;
    }
    free(w->constant);
    free(w->varying);
    *w = out;
    return 0;
}

enum args_change args_compare(struct device *d, const struct rt_op *op, uint32_t *offset)
{
    const struct rt_op *last = &d->ex->caps[d->ex->pos];
    struct arg_watch *w = &d->ex->watch[d->ex->pos];
    if (op->kind != OP_KERNEL || op->packed || !last->args || last->packed || last->func != op->func)
        return ARGS_SAME;
    for (uint32_t i = 0; i < w->n_constant; i++) {
        const struct span *s = &w->constant[i];
        if (!memcmp(op->args + s->at, last->args + s->at, s->bytes))
            continue;
        *offset = s->at;
        while (op->args[*offset] == last->args[*offset])
            (*offset)++;
        if (d->mode != MODE_REHEARSE || cut(w, op->args, last->args))
            return ARGS_SURPRISE;
        return ARGS_VARIED;
    }
    for (uint32_t i = 0; i < w->n_varying; i++)
        if (memcmp(op->args + w->varying[i].at, last->args + w->varying[i].at, w->varying[i].bytes))
            return ARGS_VARIED;
    return ARGS_SAME;
}

void args_may_differ(struct device *d, const struct rt_op *op)
{
    const struct rt_op *last = &d->ex->caps[d->ex->pos];
    if (last->args && cut(&d->ex->watch[d->ex->pos], op->args, last->args))
        log_once(SAY_DEBUG, "host memory is short: arguments that vary are not remembered");
}

static int without(struct span **list, uint32_t *n, uint32_t *cap, uint32_t at)
{
    struct span *out = NULL;
    uint32_t m = 0, c = 0;
    int r = 0;
    for (uint32_t i = 0; i < *n && !r; i++) {
        struct span s = (*list)[i];
        uint32_t end = s.at + s.bytes;
        if (s.at >= at + 8 || end <= at) {
            r = push(&out, &m, &c, s.at, s.bytes);
            continue;
        }
        if (s.at < at)
            r = push(&out, &m, &c, s.at, at - s.at);
        if (!r && end > at + 8)
            r = push(&out, &m, &c, at + 8, end - at - 8);
    }
    if (r) {
        free(out);
        return r;
    }
    free(*list);
    *list = out;
    *n = m;
    *cap = c;
    return 0;
}

int args_free_word(struct device *d, uint32_t offset)
{
    struct arg_watch *w = &d->ex->watch[d->ex->pos];
    int r = record_more_idle(&d->ex->rec, d->ex->pos, offset);
    if (!r)
        r = without(&w->constant, &w->n_constant, &w->cap_constant, offset);
    return r ? r : without(&w->varying, &w->n_varying, &w->cap_varying, offset);
}
