#include "tracer/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int room(void **p, uint32_t need, uint32_t *cap, size_t each)
{
    if (need <= *cap)
        return 0;
    uint32_t c = *cap ? *cap * 2 : 256;
    void *q = realloc(*p, (size_t)c * each);
    if (!q)
        return -ENOMEM;
    *p = q;
    *cap = c;
    return 0;
}
#define ROOM(r, what) room((void **)&(r)->what, (r)->n_##what + 1, &(r)->cap_##what, sizeof *(r)->what)

void record_clear(struct record *r)
{
    for (uint32_t i = 0; i < r->n_ops; i++) {
        free(r->ops[i].name);
        free(r->ops[i].site);
    }
    free(r->ops);
    free(r->operands);
    free(r->bufs);
    free(r->allocs);
    free(r->model);
    free(r->device);
    memset(r, 0, sizeof *r);
}

int record_op(struct record *r, uint64_t sig, const char *name, const char *why_opaque, uint64_t live_bytes)
{
    char *copy = strdup(name);
    if (!copy || ROOM(r, ops)) {
        free(copy);
        return -ENOMEM;
    }
    r->ops[r->n_ops] = (struct rec_op){
        .sig = sig, .name = copy, .why_opaque = why_opaque, .first = r->n_operands, .live_bytes = live_bytes};
    return (int)r->n_ops++;
}

int record_operand(struct record *r, int32_t buf, uint32_t offset, uint64_t delta, enum rec_mode mode)
{
    if (!r->n_ops || buf < 0 || (uint32_t)buf >= r->n_bufs)
        return -EINVAL;
    if (ROOM(r, operands))
        return -ENOMEM;
    r->operands[r->n_operands] =
        (struct rec_operand){.buf = buf, .offset = offset, .delta = delta, .mode = (uint8_t)mode};
    r->ops[r->n_ops - 1].n++;
    return (int)r->n_operands++;
}

int record_buf(struct record *r, uint64_t bytes, uint64_t slot_id, uint64_t serial, int32_t alloc_ord)
{
    if (ROOM(r, bufs))
        return -ENOMEM;
    r->bufs[r->n_bufs] = (struct rec_buf){
        .bytes = bytes, .slot_id = slot_id, .serial = serial, .alloc_ord = alloc_ord, .born = -1, .dies = -1};
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

/* Two uses of one buffer by one op: reading and writing together is changing in place. */
static uint8_t stronger(uint8_t a, uint8_t b)
{
    if (a == b)
        return a;
    if (a == REC_UNKNOWN || b == REC_UNKNOWN || a == REC_RMW || b == REC_RMW)
        return REC_RMW;
    return REC_RMW; /* any two different ones of read, write, side */
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
    for (uint32_t b = 0; b < r->n_bufs; b++)
        r->bufs[b].born = r->bufs[b].alloc_ord < 0 ? -1 : -2; /* -2: not yet */
    for (uint32_t i = 0; i < r->n_ops; i++) {
        struct rec_op *o = &r->ops[i];
        struct rec_operand *w = r->operands + o->first;
        for (uint32_t k = 0; k < o->n; k++)
            for (uint32_t l = 0; l < k; l++)
                if (w[l].buf == w[k].buf)
                    w[k].mode = w[l].mode = stronger(w[k].mode, w[l].mode);
        for (uint32_t pass = 0; pass < 2; pass++) /* a merge may have reached an earlier one */
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
            /* nothing of value was in it: what the op leaves is its first version */
            for (uint32_t l = k; l < o->n; l++)
                if (w[l].buf == w[k].buf)
                    w[l].mode = REC_WRITE;
            b->born = (int32_t)i;
        }
    }
    return 0;
}
