/* Before an op is launched, everything it touches is in memory and ordered before it; afterwards each slot knows which
 * stream used it. In a steady iteration this is a few loads an operand. */
#include "policy/op/ready.h"
#include "policy/memory/ahead.h"
#include "policy/memory/lodge.h"
#include "policy/memory/resident.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/memory/supply.h"
#include "policy/memory/swap.h"
#include "policy/op/needs.h"
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

uint64_t ready_least_bytes(struct device *d, const struct rt_op *op) { return needs_of(d, op).certain + room_fixed_bytes(d); }

/* Both the memory said to be needed and the memory said not to move are in whole pages, and no page is in both: their sum is a limit that will do. */
int ready_refused_drv(struct device *d, const struct rt_op *op)
{
    const int failed = stream_failure_drv(d);
    if (failed)
        return failed;
    const struct needs n = needs_of(d, op);
    const char *what = op->kind == OP_KERNEL ? PLAIN_IN_LINE(op->func->name) : "a copy";
    if (n.perhaps)
        log_say(SAY_ERROR, "out of memory: %s needs %s at once, and has addresses of %s more in its arguments, used or not, for which the host has no room "
                "either; the limit is %s, of which %s cannot move; --limit %lluK would do, or more of --host-swap",
                what, rt_size(n.certain).text, rt_size(n.perhaps).text, rt_size(d->mem.limit_bytes).text, rt_size(room_fixed_bytes(d)).text,
                (unsigned long long)ready_least_kib(n.certain + n.perhaps + room_fixed_bytes(d)));
    else
        log_say(SAY_ERROR, "out of memory: %s needs %s at once; the limit is %s, of which %s cannot move; --limit %lluK would do for it", what, rt_size(n.certain).text,
                rt_size(d->mem.limit_bytes).text, rt_size(room_fixed_bytes(d)).text, (unsigned long long)ready_least_kib(n.certain + room_fixed_bytes(d)));
    share_say_short(d);
    supply_say_short(d);
    d->refused = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static int all_ready(struct device *d, struct rt_op *op, uint32_t *lost)
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
    return slot_unmap_evicted(d); /* slots that were evicted for these operands */
}

/* The device has no room for all operands: buffers that may be in the arguments for nothing go to host memory, one after the other, the least
 * likely used first, until the rest fits. Not under a plan, which is left instead. */
static int lodge_some(struct device *d, struct rt_op *op, uint32_t *lost)
{
    int r = -ENOMEM;
    for (struct slot *s; r == -ENOMEM && !d->broken && (s = needs_least(d, op));) {
        const int moved = s->state == SLOT_RESIDENT ? swap_out(d, s) : 0, e = moved ? moved : lodge_take(d, s);
        if (e)
            return e;
        r = all_ready(d, op, lost);
    }
    if (!r)
        log_once(SAY_INFO, "%s: the limit leaves no room for all that its arguments point at; what may be there for nothing lies in host memory meanwhile",
                 PLAIN_IN_LINE(op->func->name));
    return r;
}

int ready_op(struct device *d, struct rt_op *op, uint32_t *lost)
{
    const int r = all_ready(d, op, lost);
    const bool follows = d->mode == MODE_REHEARSE || d->mode == MODE_ENFORCE;
    return r == -ENOMEM && op->kind == OP_KERNEL && !d->capturing && !follows ? lodge_some(d, op, lost) : r;
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
    for (uint32_t i = 0; d->mem.n_lodged && i < op->n_operands; i++)
        lodge_leave(d, op->operands[i].slot);
}

int ready_run_timed_drv(struct device *d, struct rt_op *op, CUevent from, CUevent to, bool *timed)
{
    uint32_t lost = 0;
    int r = ready_op(d, op, &lost);
    if (r == -ENODATA)
        return CUDA_ERROR_UNKNOWN;
    if (r)
        return ready_refused_drv(d, op);
    bool marked = from && d->drv->cuEventRecord(from, op->stream) == CUDA_SUCCESS;
    r = op_issue_drv(d, op);
    marked = marked && r == CUDA_SUCCESS && d->drv->cuEventRecord(to, op->stream) == CUDA_SUCCESS;
    if (timed)
        *timed = marked;
    if (r != CUDA_ERROR_INVALID_HANDLE) /* a stream that is gone has queued nothing, and nothing can be ordered behind it */
        ready_done(d, op, true);
    for (uint32_t i = 0; i < op->n_operands; i++)
        ahead_used(d, op->operands[i].slot);
    ahead_look(d);
    return r;
}

int run_plain_drv(struct device *d, struct rt_op *op) { return ready_run_timed_drv(d, op, NULL, NULL, NULL); }
