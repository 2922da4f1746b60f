#include "tracer/record.h"

#include "tracer/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM(r, what) (grow_room(&(r)->what, (r)->n_##what, &(r)->cap_##what, 256) ? 0 : -ENOMEM)

void record_clear(struct record *r)
{
    for (uint32_t i = 0; i < r->n_ops; i++)
        free(r->ops[i].name);
    for (uint32_t i = 0; i < r->n_sites; i++)
        free(r->sites[i]);
    free(r->sites);
    free(r->ops);
    free(r->operands);
    free(r->bufs);
    free(r->allocs);
    free(r->ranges);
    free(r->idle_words);
    free(r->model);
    free(r->device);
    memset(r, 0, sizeof *r);
}

int record_more_idle(struct record *r, uint32_t op, uint32_t offset)
{
    /* the op's list moves to the end, with the new word at its place */
    uint32_t n = r->ops[op].n_idle, from = r->ops[op].idle, to = r->n_idle_words, put = 0;
    for (uint32_t i = 0; i <= n; i++) {
        if (ROOM(r, idle_words))
            return -ENOMEM;
        bool now = !put && (i == n || r->idle_words[from + i - put] > offset);
        r->idle_words[r->n_idle_words++] = now ? offset : r->idle_words[from + i - put];
        put |= now;
    }
    r->ops[op].idle = to;
    r->ops[op].n_idle = n + 1;
    return 0;
}

/* Whether a kernel draws random numbers, by its name. Its effects do not show it: seed and offset are arguments like any other. Libraries
 * name their generators in the kernel or in its parameters' types. */
static bool draws(const char *name)
{
    static const char *const words[] = {"philox", "Philox", "PHILOX", "dropout", "Dropout", "curand", "random", "Random", "bernoulli"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

int record_op(struct record *r, uint64_t sig, const char *name, const char *why_opaque, uint64_t live_bytes)
{
    char *copy = strdup(name);
    if (!copy || ROOM(r, ops)) {
        free(copy);
        return -ENOMEM;
    }
    r->ops[r->n_ops] = (struct rec_op){
        .sig = sig, .name = copy, .why_opaque = why_opaque, .first = r->n_operands, .live_bytes = live_bytes, .random = draws(name)};
    return (int)r->n_ops++;
}

int record_operand(struct record *r, int32_t buf, uint32_t offset, uint64_t delta, enum rec_mode mode)
{
    if (!r->n_ops || buf < 0 || (uint32_t)buf >= r->n_bufs)
        return -EINVAL;
    if (ROOM(r, operands))
        return -ENOMEM;
    r->operands[r->n_operands] =
        (struct rec_operand){.buf = buf, .offset = offset, .delta = delta, .mode = (uint8_t)mode, .n_defined = -1};
    r->ops[r->n_ops - 1].n++;
    return (int)r->n_operands++;
}

int record_defined(struct record *r, const struct rec_range *ranges, uint32_t n)
{
    if (!r->n_operands)
        return -EINVAL;
    struct rec_operand *w = &r->operands[r->n_operands - 1];
    w->defined = r->n_ranges;
    for (uint32_t i = 0; i < n; i++) {
        if (ROOM(r, ranges))
            return -ENOMEM;
        r->ranges[r->n_ranges++] = ranges[i];
    }
    w->n_defined = (int32_t)n;
    return 0;
}

int record_idle_word(struct record *r, uint32_t offset)
{
    if (!r->n_ops)
        return -EINVAL;
    if (ROOM(r, idle_words))
        return -ENOMEM;
    struct rec_op *o = &r->ops[r->n_ops - 1];
    if (!o->n_idle)
        o->idle = r->n_idle_words;
    o->n_idle++;
    r->idle_words[r->n_idle_words++] = offset;
    return 0;
}

int record_site(struct record *r, uint32_t op, char *site)
{
    uint32_t k = 0;
    if (!site)
        return 0;
    while (k < r->n_sites && strcmp(r->sites[k], site))
        k++;
    if (op >= r->n_ops || (k == r->n_sites && ROOM(r, sites))) {
        free(site);
        return op < r->n_ops ? -ENOMEM : -EINVAL;
    }
    if (k == r->n_sites)
        r->sites[r->n_sites++] = site;
    else
        free(site);
    r->ops[op].site = k + 1;
    return 0;
}

int record_buf(struct record *r, uint64_t bytes, uint64_t slot_id, uint64_t serial, int32_t alloc_ord)
{
    if (ROOM(r, bufs))
        return -ENOMEM;
    r->bufs[r->n_bufs] = (struct rec_buf){
        .bytes = bytes, .slot_id = slot_id, .serial = serial, .alloc_ord = alloc_ord, .born = -1, .dies = -1, .filled_by = -1};
    if (alloc_ord >= 0)
        r->allocs[alloc_ord].buf = (int32_t)r->n_bufs;
    return (int)r->n_bufs++;
}

int record_alloc(struct record *r, uint64_t bytes)
{
    if (ROOM(r, allocs))
        return -ENOMEM;
    r->allocs[r->n_allocs] = (struct rec_alloc){.bytes = bytes, .before_op = (int32_t)r->n_ops, .buf = -1};
    return (int)r->n_allocs++;
}

void record_free(struct record *r, int32_t buf) { r->bufs[buf].dies = (int32_t)r->n_ops; }

/* The mode of two uses of one buffer by one op: a read and a write together are a change in place. */
static uint8_t stronger(uint8_t a, uint8_t b)
{
    if (a == b)
        return a;
    if (a == REC_UNKNOWN || b == REC_UNKNOWN || a == REC_RMW || b == REC_RMW)
        return REC_RMW;
    return REC_RMW; /* two different modes of read, write, side */
}

enum rec_mode record_mode(const struct record *r, uint32_t op, int32_t buf)
{
    const struct rec_op *o = &r->ops[op];
    for (uint32_t k = 0; k < o->n; k++)
        if (r->operands[o->first + k].buf == buf)
            return (enum rec_mode)r->operands[o->first + k].mode;
    return REC_UNKNOWN;
}

int record_seal(struct record *r)
{
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        struct rec_buf *x = &r->bufs[b];
        x->born = x->alloc_ord < 0 ? -1 : -2; /* -2: no op has used the buffer yet */
        x->handed_on = x->moves_on && !x->remains && x->alloc_ord < 0 && x->dies < 0 && !x->foreign && !x->pinned && !x->points;
        if (x->handed_on)
            x->dies = (int32_t)r->n_ops;
    }
    for (uint32_t i = 0; i < r->n_ops; i++) {
        struct rec_op *o = &r->ops[i];
        struct rec_operand *w = r->operands + o->first;
        for (uint32_t k = 0; k < o->n; k++)
            for (uint32_t l = 0; l < k; l++)
                if (w[l].buf == w[k].buf)
                    w[k].mode = w[l].mode = stronger(w[k].mode, w[l].mode);
        for (uint32_t pass = 0; pass < 2; pass++) /* a merge may have changed a mode that was merged before */
            for (uint32_t k = 0; k < o->n; k++)
                for (uint32_t l = 0; l < k; l++)
                    if (w[l].buf == w[k].buf)
                        w[k].mode = w[l].mode = stronger(w[k].mode, w[l].mode);
        for (uint32_t k = 0; k < o->n; k++) {
            struct rec_buf *b = &r->bufs[w[k].buf];
            if (w[k].mode == REC_UNKNOWN)
                w[k].mode = REC_RMW;
            if (b->born != -2) {
                continue;
            }
            if (w[k].mode == REC_READ || w[k].mode == REC_SIDE)
                o->why_opaque = "uses memory that nothing has written";
            /* the buffer held nothing of value: the op makes its first version */
            for (uint32_t l = k; l < o->n; l++)
                if (w[l].buf == w[k].buf)
                    w[l].mode = REC_WRITE;
            b->born = (int32_t)i;
        }
    }
    return 0;
}

/* Whether the op wholly overwrites a buffer that the program could still have read, had it gone another way. k: the operand. */
static bool overwrites(const struct record *r, uint32_t op, uint32_t k)
{
    const struct rec_buf *x = &r->bufs[r->operands[k].buf];
    return op > 0 && r->operands[k].mode == REC_WRITE && x->born != (int32_t)op && rec_may_move(x);
}

int record_insert_holds(struct record *r, uint32_t *new_index)
{
    struct record old = *r;
    int32_t *last = malloc((r->n_bufs + 1) * sizeof *last);
    uint32_t *shift = calloc(r->n_ops + 2, sizeof *shift);
    uint32_t extra = 0;
    if (!last || !shift)
        goto no_memory;
    for (uint32_t b = 0; b < r->n_bufs; b++)
        last[b] = -1;
    for (uint32_t i = 0; i < r->n_ops; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
            last[r->operands[k].buf] = (int32_t)i;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        bool hold = x->dies > 0 && last[b] < x->dies - 1 && rec_may_move(x);
        last[b] = hold ? x->dies : -1; /* from here on: the op before which the buffer's hold stands; -1: no hold */
        extra += hold;
    }
    for (uint32_t i = 0; i < r->n_ops; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
            extra += overwrites(r, i, k);
    r->cap_ops = r->n_ops + extra + 1;
    r->cap_operands = r->n_operands + extra + 1;
    r->ops = calloc(r->cap_ops, sizeof *r->ops);
    r->operands = calloc(r->cap_operands, sizeof *r->operands);
    if (!r->ops || !r->operands) {
        free(r->ops);
        free(r->operands);
        *r = old;
        goto no_memory;
    }
    r->n_ops = r->n_operands = 0;
    for (uint32_t i = 0; i <= old.n_ops; i++) {
        for (uint32_t b = 0; b < r->n_bufs; b++) {
            if (last[b] != (int32_t)i)
                continue;
            r->operands[r->n_operands] = (struct rec_operand){.buf = (int32_t)b, .mode = REC_READ, .n_defined = -1};
            r->ops[r->n_ops++] = (struct rec_op){.name = strdup("hold"), .why_opaque = "no op of the program",
                                                 .first = r->n_operands++, .n = 1, .hold = true};
            r->bufs[b].dies = (int32_t)r->n_ops;
        }
        for (uint32_t k = 0; i < old.n_ops && k < old.ops[i].n; k++) {
            if (!overwrites(&old, i, old.ops[i].first + k))
                continue;
            r->operands[r->n_operands] = (struct rec_operand){.buf = old.operands[old.ops[i].first + k].buf, .mode = REC_READ, .n_defined = -1};
            r->ops[r->n_ops++] = (struct rec_op){.name = strdup("hold"), .why_opaque = "no op of the program",
                                                 .first = r->n_operands++, .n = 1, .hold = true};
        }
        shift[i] = r->n_ops;
        if (i == old.n_ops)
            break;
        new_index[i] = r->n_ops;
        r->ops[r->n_ops] = old.ops[i];
        r->ops[r->n_ops++].first = r->n_operands;
        memcpy(r->operands + r->n_operands, old.operands + old.ops[i].first, old.ops[i].n * sizeof *r->operands);
        r->n_operands += old.ops[i].n;
    }
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        struct rec_buf *x = &r->bufs[b];
        if (x->born >= 0)
            x->born = (int32_t)new_index[x->born];
        if (x->dies >= 0 && last[b] < 0)
            x->dies = (int32_t)shift[x->dies];
    }
    for (uint32_t k = 0; k < r->n_allocs; k++)
        r->allocs[k].before_op = (int32_t)shift[r->allocs[k].before_op];
    free(old.ops);
    free(old.operands);
    free(last);
    free(shift);
    return 0;
no_memory:
    free(last);
    free(shift);
    return -ENOMEM;
}
