/* labels.c: see labels.h. */
#include "tracer/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ops that first read a buffer without changing it, first change it, and last change it; n_ops: never. */
struct uses {
    uint32_t read, changed, last_changed, last_read;
    uint8_t change_mode; /* of the first change */
    bool feeds;          /* an op that reads the buffer before its first change makes a buffer that dies with the iteration */
};

static bool outlives(const struct rec_buf *b) { return b->born < 0 && b->dies < 0; }

static bool makes_transient(const struct record *r, const struct rec_op *o)
{
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (rec_makes(&r->operands[k]) && !outlives(&r->bufs[r->operands[k].buf]))
            return true;
    return false;
}

static struct uses *uses_of(const struct record *r)
{
    struct uses *u = calloc(r->n_bufs + 1, sizeof *u);
    for (uint32_t b = 0; u && b < r->n_bufs; b++)
        u[b] = (struct uses){.read = r->n_ops, .changed = r->n_ops};
    for (uint32_t i = 0; u && i < r->n_ops; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++) {
            const struct rec_operand *w = &r->operands[k];
            struct uses *x = &u[w->buf];
            if (w->mode == REC_READ) {
                x->read = i < x->read ? i : x->read;
                x->last_read = i;
                x->feeds |= x->changed == r->n_ops && makes_transient(r, &r->ops[i]);
            } else {
                x->change_mode = x->changed == r->n_ops ? w->mode : x->change_mode;
                x->changed = i < x->changed ? i : x->changed;
                x->last_changed = i;
            }
        }
    return u;
}

/* A parameter is first read, by an op that makes a buffer which dies with the iteration, and changed later. */
static bool may_be_param(const struct record *r, const struct uses *u, uint32_t b)
{
    return outlives(&r->bufs[b]) && u[b].feeds && u[b].changed < r->n_ops && u[b].read < u[b].changed;
}

/* The op at which the last possible parameter is read for the first time. find_step() then leaves out the buffers that are changed before that op (the hidden
 * state that an RNN carries on). */
static uint32_t all_read(const struct record *r, const struct uses *u)
{
    uint32_t last = 0;
    for (uint32_t b = 0; b < r->n_bufs; b++)
        if (may_be_param(r, u, b) && u[b].read > last)
            last = u[b].read;
    return last;
}

struct view {
    const struct record *r;
    const struct uses *u;
    uint8_t *kind;
    uint32_t last_read;  /* all_read() */
    uint32_t first_step; /* op that first changes a parameter or state */
    uint32_t last_step;  /* op that last changes a parameter */
    uint32_t last_grad;  /* op that makes the last gradient; 0: none */
    uint64_t least_bytes; /* of the smallest parameter: a smaller buffer, such as a loss that a script keeps, is no gradient */
};

/* Whether the operand's buffer was made before the first step and is still there after the last. The operand's mode does not count: a launch over lists of tensors
 * (Adam's lerp) may be known only to change some of them. */
static bool waits_for_step(const struct view *v, const struct rec_operand *w)
{
    const struct rec_buf *x = &v->r->bufs[w->buf];
    return x->born >= 0 && (uint32_t)x->born < v->first_step && (x->dies < 0 || (uint32_t)x->dies > v->last_step);
}

static bool changes_what_outlives(const struct record *r, const struct rec_op *o)
{
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (rec_makes(&r->operands[k]) && outlives(&r->bufs[r->operands[k].buf]))
            return true;
    return false;
}

/* The first op that makes a gradient which the optimizer reads, or a gradient from which another one of its size is made (weight decay). n_ops: none. */
static uint32_t first_read_grad(const struct view *v)
{
    const struct record *r = v->r;
    uint32_t first = r->n_ops;
    for (uint32_t i = v->first_step; i < r->n_ops; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n && changes_what_outlives(r, &r->ops[i]); k++) {
            if (!waits_for_step(v, &r->operands[k]))
                continue;
            const struct rec_buf *x = &r->bufs[r->operands[k].buf];
            const struct rec_op *made = &r->ops[x->born];
            first = (uint32_t)x->born < first ? (uint32_t)x->born : first;
            for (uint32_t j = made->first; j < made->first + made->n; j++) {
                const struct rec_buf *y = &r->bufs[r->operands[j].buf];
                if (waits_for_step(v, &r->operands[j]) && y->bytes == x->bytes && (uint32_t)y->born < first)
                    first = (uint32_t)y->born;
            }
        }
    return first;
}

/* Addresses left over on the stack can make one of Adam's moments look like an operand of a launch of the backward pass, and so like a parameter that is read
 * late. Possible parameters that are first read after the first gradient was made are taken out, if they have a hundredth of the bytes at most: a second net,
 * trained after the first one's backward pass, has more. True: some were taken out. */
static bool drop_late_readers(const struct view *v, struct uses *u)
{
    const uint32_t grad = first_read_grad(v);
    uint64_t late = 0, all = 0;
    for (uint32_t b = 0; b < v->r->n_bufs; b++)
        if (may_be_param(v->r, u, b)) {
            all += v->r->bufs[b].bytes;
            late += u[b].read > grad ? v->r->bufs[b].bytes : 0;
        }
    if (!late || late > all / 100)
        return false;
    for (uint32_t b = 0; b < v->r->n_bufs; b++)
        if (may_be_param(v->r, u, b) && u[b].read > grad) {
            u[b].feeds = false;
            v->kind[b] = LABEL_STATE;
        }
    return true;
}

/* Whether an op that changes a state may be the optimizer's: the op has another operand and makes no new buffer. A memset of a library's workspace has no other
 * operand, and a matrix product that works in a workspace makes its result. */
static bool may_step(const struct record *r, uint32_t op)
{
    for (uint32_t k = r->ops[op].first; k < r->ops[op].first + r->ops[op].n; k++)
        if (r->bufs[r->operands[k].buf].born == (int32_t)op)
            return false;
    return r->ops[op].n > 1;
}

/* Labels the parameters, and sets v->first_step, last_step and least_bytes. False: the record trains nothing. */
static bool find_step(struct view *v)
{
    v->first_step = v->r->n_ops;
    v->last_step = 0;
    v->least_bytes = UINT64_MAX;
    for (uint32_t b = 0; b < v->r->n_bufs; b++) {
        const struct uses *x = &v->u[b];
        if (!outlives(&v->r->bufs[b]) || x->changed <= v->last_read || x->changed == v->r->n_ops)
            continue;
        const bool param = may_be_param(v->r, v->u, b);
        if (param || (x->change_mode == REC_RMW && may_step(v->r, x->changed))) /* an op that sets a kept gradient to zero is no REC_RMW: it overwrites */
            v->first_step = x->changed < v->first_step ? x->changed : v->first_step;
        if (param) {
            v->kind[b] = LABEL_PARAM;
            v->last_step = x->last_changed > v->last_step ? x->last_changed : v->last_step;
            v->least_bytes = v->r->bufs[b].bytes < v->least_bytes ? v->r->bufs[b].bytes : v->least_bytes;
        }
    }
    return v->last_step > 0;
}

static bool is_grad(const struct view *v, uint32_t b) { return v->kind[b] == LABEL_GRAD; }

/* Whether the op reads a gradient, with or without a parameter: so buffers are made of gradients before the optimizer begins (weight decay). */
static bool is_made_of_grads(const struct view *v, uint32_t op)
{
    for (uint32_t k = v->r->ops[op].first; k < v->r->ops[op].first + v->r->ops[op].n; k++)
        if (v->r->operands[k].mode == REC_READ && is_grad(v, (uint32_t)v->r->operands[k].buf))
            return true;
    return false;
}

/* Labels the gradients, in the order of ops: buffers made of gradients come after them. Returns the first op that makes a gradient; n_ops: none. */
static uint32_t find_grads(struct view *v)
{
    const struct record *r = v->r;
    uint32_t first = r->n_ops;
    for (uint32_t i = v->last_read + 1; i < v->first_step && i < r->n_ops; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++) {
            const uint32_t b = (uint32_t)r->operands[k].buf;
            const struct rec_buf *x = &r->bufs[b];
            const bool made = x->born == (int32_t)i && (x->dies < 0 || (uint32_t)x->dies > v->last_step);
            const bool kept = outlives(x) && v->kind[b] != LABEL_PARAM && rec_makes(&r->operands[k]) && v->u[b].last_read >= v->first_step;
            if (x->bytes >= v->least_bytes && ((made && !is_made_of_grads(v, i)) || kept)) {
                v->kind[b] = LABEL_GRAD;
                v->last_grad = i;
                first = i < first ? i : first;
            }
        }
    return first;
}

/* Labels gradients of the iteration before that this iteration frees: each has a gradient of this iteration with its size. 0 or -ENOMEM. */
static int find_old_grads(struct view *v)
{
    const struct record *r = v->r;
    bool *met = calloc(r->n_bufs + 1, sizeof *met);
    if (!met)
        return -ENOMEM;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        if (r->bufs[b].born >= 0 || r->bufs[b].dies < 0 || v->u[b].read < r->n_ops || v->u[b].changed < r->n_ops)
            continue;
        for (uint32_t g = 0; g < r->n_bufs; g++)
            if (is_grad(v, g) && r->bufs[g].born >= 0 && !met[g] && r->bufs[g].bytes == r->bufs[b].bytes) {
                met[g] = true;
                v->kind[b] = LABEL_GRAD;
                break;
            }
    }
    free(met);
    return 0;
}

/* The first op that reads a gradient after all have been made (a weight that two layers share has its gradient added up before), or changes a state. */
static uint32_t optimizer_begins(const struct view *v)
{
    for (uint32_t i = v->last_grad + 1; i < v->first_step; i++)
        if (is_made_of_grads(v, i))
            return i;
    return v->first_step;
}

/* The op after the one that makes the loss: the smallest result between the last parameter's first reading and the first gradient. */
static uint32_t backward_begins(const struct view *v, uint32_t first_grad)
{
    const struct record *r = v->r;
    uint64_t least = UINT64_MAX;
    uint32_t at = first_grad;
    for (uint32_t i = v->last_read; i < first_grad; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++) {
            const struct rec_buf *x = &r->bufs[r->operands[k].buf];
            if (x->born == (int32_t)i && x->bytes < least) {
                least = x->bytes;
                at = i + 1;
            }
        }
    return at;
}

int labels_of(const struct record *r, uint32_t peak_op, struct labels *out)
{
    struct uses *u = uses_of(r);
    memset(out, 0, sizeof *out);
    out->kind = malloc(r->n_bufs + 1);
    if (!u || !out->kind) {
        free(u);
        return -ENOMEM;
    }
    struct view v = {.r = r, .u = u, .kind = out->kind, .last_read = all_read(r, u)};
    for (uint32_t b = 0; b < r->n_bufs; b++)
        out->kind[b] = !outlives(&r->bufs[b]) ? LABEL_ACTIVATION : u[b].changed == r->n_ops && u[b].feeds ? LABEL_PARAM : LABEL_STATE;
    out->first_bwd = peak_op + 1 < r->n_ops ? peak_op + 1 : r->n_ops;
    out->first_opt = r->n_ops;
    int err = 0;
    bool trains = find_step(&v);
    if (trains && drop_late_readers(&v, u)) {
        v.last_read = all_read(r, u);
        trains = find_step(&v);
    }
    if (trains) {
        const uint32_t first_grad = find_grads(&v);
        out->first_opt = optimizer_begins(&v);
        out->first_bwd = first_grad < r->n_ops ? backward_begins(&v, first_grad) : out->first_bwd < out->first_opt ? out->first_bwd : out->first_opt;
        err = find_old_grads(&v);
    }
    for (uint32_t b = 0; b < r->n_bufs; b++)
        if (r->bufs[b].host_written && !outlives(&r->bufs[b]))
            out->kind[b] = LABEL_INPUT;
    free(u);
    return err;
}

void labels_free(struct labels *l)
{
    free(l->kind);
    l->kind = NULL;
}

const char *labels_kind_name(int kind)
{
    static const char *const names[] = {"param", "grad", "state", "input", "activation"};
    return names[kind];
}
