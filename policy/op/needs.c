/* needs.c: see needs.h. */
#include "policy/op/needs.h"

#include "policy/memory/slot.h"
#include "policy/memory/space.h"

enum { FEW = 4 /* addresses in a struct: as many as a kernel of an expression, or a matrix product, is given */ };

/* Operand k lies in a piece of the arguments with so many addresses that some may be there for nothing. */
static bool is_of_many(const struct rt_op *op, uint32_t k)
{
    const int param = op->func->known ? func_param_at(op->func, op->operands[k].offset) : -1;
    if (op->operands[k].map || (op->func->known && (param < 0 || !func_is_struct(op->func, (uint32_t)param))))
        return false;
    const uint32_t from = param < 0 ? 0 : op->func->offset[param], to = param < 0 ? op->arg_bytes : from + op->func->size[param];
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        n += op->operands[i].offset >= from && op->operands[i].offset < to;
    return n > FEW;
}

/* Marks, by slot.visited_in, the buffers that the op needs for certain. */
static void mark_certain(struct device *d, const struct rt_op *op)
{
    const uint64_t walk = ++d->mem.walk;
    for (uint32_t k = 0; k < op->n_operands; k++)
        if (op->kind != OP_KERNEL || !is_of_many(op, k))
            op->operands[k].slot->visited_in = walk;
}

/* The buffer whose first place in the arguments comes last: lists begin with the entries that are in use. */
struct slot *needs_least(struct device *d, const struct rt_op *op)
{
    mark_certain(d, op);
    const uint64_t certain = d->mem.walk, seen = ++d->mem.walk;
    struct slot *least = NULL;
    for (uint32_t k = 0; k < op->n_operands; k++) {
        struct slot *s = op->operands[k].slot;
        if (s->visited_in == certain || s->visited_in == seen || s->kind != SLOT_LARGE || s->pins || s->lodged || s->state == SLOT_LOST)
            continue;
        s->visited_in = seen;
        least = s;
    }
    return least;
}

struct needs needs_of(struct device *d, const struct rt_op *op)
{
    struct needs n = {0};
    mark_certain(d, op);
    const uint64_t certain = d->mem.walk, seen = ++d->mem.walk;
    for (uint32_t k = 0; k < op->n_operands; k++) {
        struct slot *s = op->operands[k].slot;
        const uint64_t bytes = mem_pages(d, s->bytes) << d->mem.shift;
        if (s->visited_in != seen && s->kind == SLOT_LARGE && !(s->pins && s->state == SLOT_RESIDENT))
            *(s->visited_in == certain ? &n.certain : &n.perhaps) += bytes;
        s->visited_in = seen;
    }
    return n;
}
