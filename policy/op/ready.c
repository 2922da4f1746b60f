/* Before an op is launched, everything it touches is in memory and ordered before it; afterwards it is known who used
 * what. In a steady iteration this is a few loads an operand. */
#include "policy/op/ready.h"
#include "policy/memory/resident.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/memory/swap.h"
#include "policy/process/limits.h"
#include "policy/share/share.h"
#include "tracer/plain.h"

#include <errno.h>

static int in_memory(struct device *d, struct slot *s)
{
    switch (s->state) {
    case SLOT_HOST:
        return resident_swap_in(d, s);
    case SLOT_EMPTY:
        return resident_back(d, s);
    case SLOT_LOST:
        return -ENODATA;
    default:
        return 0;
    }
}

int ready_slot(struct device *d, struct slot *s, unsigned t)
{
    int r = in_memory(d, s);
    return r ? r : fence_wait(d, t, &s->ready);
}

int ready_pin(struct device *d, struct slot *s)
{
    s->needed_by = ++d->mem.op_at_hand;
    int r = s->unmade ? -ENOMEM : in_memory(d, s);
    if (!r)
        r = fence_sync(d, &s->ready);
    if (!r)
        r = fence_sync(d, &s->unseen);
    if (!r)
        s->pins++;
    return r;
}

/* What it says to need and what it says cannot move are whole pages, and no page is in both: their sum is a limit that will do. */
int ready_refused_drv(struct device *d, const struct rt_op *op)
{
    uint64_t need = 0;
    const int failed = stream_failure_drv(d);
    if (failed)
        return failed;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        bool again = false;
        for (uint32_t j = 0; j < i; j++)
            again |= op->operands[j].slot == op->operands[i].slot;
        const struct slot *s = op->operands[i].slot;
        if (!again && s->kind == SLOT_LARGE && !(s->pins && s->state == SLOT_RESIDENT))
            need += mem_pages(d, s->bytes) << d->mem.shift;
    }
    log_say(SAY_ERROR, "out of memory: %s needs %s at once; the limit is %s, of which %s cannot move; raise --limit",
            op->kind == OP_KERNEL ? PLAIN_IN_LINE(op->func->name) : "a copy", rt_size(need).text, rt_size(d->mem.limit_bytes).text,
            rt_size(room_fixed_bytes(d)).text);
    share_say_short(d);
    d->refused = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

int ready_op(struct device *d, struct rt_op *op, uint32_t *lost)
{
    const uint64_t number = ++d->mem.op_at_hand;
    int own = d->stream[op->t] == op->stream ? stream_own(d, op->t) : -EIO;
    if (own)
        return own;
    for (uint32_t i = 0; i < op->n_operands; i++)
        op->operands[i].slot->needed_by = number;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct slot *s = op->operands[i].slot;
        if (ready_operand(&op->operands[i], op->t))
            continue;
        fence_trim(d, &s->ready);
        fence_trim(d, &s->unseen);
        int r = ready_slot(d, s, op->t);
        while (r == -ENOMEM && !d->broken && limits_borrow(d, s->bytes))
            r = ready_slot(d, s, op->t);
        if (!r && op->operands[i].mode != REC_READ)
            r = fence_wait(d, op->t, &s->unseen);
        if (r == -ENODATA) {
            *lost = i;
            return r;
        }
        if (r)
            return r;
    }
    return slot_unmap_evicted(d); /* what was evicted for these */
}

void ready_done(struct device *d, struct rt_op *op, bool may_write)
{
    const unsigned t = op->t;
    const uint64_t tick = ++d->mem.tick, seq = d->seq[t];
    for (const struct rt_operand *a = op->operands, *end = a + op->n_operands; a < end; a++) {
        struct slot *s = a->slot;
        fence_add_latest(d, &s->users, t, seq);
        s->use_tick = tick;
        if (may_write || a->mode != REC_READ) {
            s->written = true;
            if (s->host && s->state == SLOT_RESIDENT)
                swap_discard(d, s);
        }
    }
}

int run_plain_drv(struct device *d, struct rt_op *op)
{
    uint32_t lost = 0;
    int r = ready_op(d, op, &lost);
    if (r == -ENODATA)
        return CUDA_ERROR_UNKNOWN;
    if (r)
        return ready_refused_drv(d, op);
    r = op_issue_drv(d, op);
    if (r != CUDA_ERROR_INVALID_HANDLE) /* nothing was queued; where the stream is gone nobody can be ordered behind it */
        ready_done(d, op, true);
    return r;
}
