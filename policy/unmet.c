/* unmet.c: see unmet.h. */
#include "policy/unmet.h"

#include "policy/campaign.h"
#include "policy/memory/slot.h"
#include "policy/op/op.h"
#include "policy/op/ready.h"

#include <pthread.h>

enum { REFUSALS = 2 /* PyTorch gives back what it has cached, and asks once more */ };

static bool is_fresh(const struct slot *s) { return s->kind != SLOT_FOREIGN && s->live && !s->written && !s->unmade && !s->pins; }

static void mark(struct device *d, struct slot *s)
{
    d->unmet.unmade += !s->unmade;
    s->unmade = true;
}

/* Marks the op's outputs as unmade. Returns how many there are. */
static unsigned mark_fresh(struct device *d, const struct rt_op *op)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (is_fresh(op->operands[i].slot)) {
            mark(d, op->operands[i].slot);
            n++;
        }
    return n;
}

/* The op may show to the host, another process or a graph that the launch left out has not changed its operands. */
static bool shows(const struct rt_op *op)
{
    return op->kind == OP_OTHER || op->in_place || op->odd || (op->kind == OP_COPY && op->copy.kind == ENG_DTOH);
}

int unmet_before_drv(struct device *d, const struct rt_op *op, bool *left_out)
{
    bool touches = false, all = true;
    *left_out = false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        touches |= op->operands[i].slot->unmade;
        all &= op->operands[i].slot->unmade;
    }
    if (!touches && !(d->unmet.due == REFUSALS && shows(op)))
        return CUDA_SUCCESS;
    *left_out = touches && op->kind == OP_KERNEL && !op->in_place && !op->odd && (mark_fresh(d, op) || all);
    if (!*left_out) {
        d->unmet.due = 0; /* this refusal tells the program */
        log_say(SAY_ERROR, "out of memory: %s needs what a launch before it found no room to make; --limit %lluK would do for that one", op_name(op),
                (unsigned long long)ready_least_kib(d->unmet.least_bytes));
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Keeps the operands of the first launch that was left out, until an allocation is refused. */
static void remember(struct device *d, const struct rt_op *op, unsigned n_fresh)
{
    struct unmet *u = &d->unmet;
    u->n_given = 0;
    u->n_outputs = n_fresh;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct slot *s = op->operands[i].slot;
        if (!s->unmade && s->kind != SLOT_FOREIGN && u->n_given < UNMET_GIVEN)
            u->given[u->n_given++] = (struct unmet_given){s->id, s->serial};
        else if (s->unmade)
            u->latest = s->serial > u->latest ? s->serial : u->latest;
    }
}

bool unmet_leaves_out(struct device *d, const struct rt_op *op)
{
    unsigned managed = 0, fresh = 0;
    if (op->kind != OP_KERNEL || op->in_place || op->odd || op->textures || d->capturing || d->broken || campaign_follows_plan(d))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        managed += op->operands[i].slot->kind != SLOT_FOREIGN;
        fresh += is_fresh(op->operands[i].slot);
    }
    if (!fresh || managed > UNMET_GIVEN)
        return false;
    if (!d->unmet.due) {
        d->unmet.due = REFUSALS;
        d->unmet.t = op->t;
        d->unmet.thread = pthread_self();
        d->unmet.least_bytes = ready_least_bytes(d, op);
        remember(d, op, mark_fresh(d, op));
    } else
        mark_fresh(d, op);
    log_say(SAY_INFO, "%s is left out; the next allocation is refused in its place", op_name(op));
    return true;
}

bool unmet_refuses(struct device *d, uint64_t bytes, int t)
{
    struct unmet *u = &d->unmet;
    if (!u->due)
        return false;
    if (u->due < REFUSALS && (!u->trimmed || u->bytes != bytes || u->op_count != d->op_count)) {
        u->due = 0; /* the program was told, and goes on */
        return false;
    }
    if (t != UNMET_ANY_STREAM && (unsigned)t != u->t && !pthread_equal(pthread_self(), u->thread))
        return false;
    u->due--;
    u->trimmed = false;
    u->bytes = bytes;
    u->op_count = d->op_count;
    u->n_outputs = 0;
    return true;
}

void unmet_freed(struct device *d, struct slot *s)
{
    struct unmet *u = &d->unmet;
    if (!s->unmade)
        return;
    s->unmade = false;
    u->unmade--;
    if (!u->n_outputs || s->serial > u->latest || --u->n_outputs)
        return;
    for (uint32_t i = 0; i < u->n_given; i++) {
        struct slot *g = &d->mem.slots[u->given[i].id];
        if (g->live && g->serial == u->given[i].serial)
            mark(d, g);
    }
}
