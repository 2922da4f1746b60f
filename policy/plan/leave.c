#include "policy/plan/leave.h"
#include "policy/memory/slot.h"
#include "policy/plan/cursor.h"
#include "policy/plan/rebuild.h"
#include "policy/plan/saved.h"
#include "policy/plan/verify.h"
#include "policy/process/stats.h"
#include "policy/process/story.h"
#include "tracer/plain.h"

#include <errno.h>
#include <stdio.h>

const char leave_step_failed[] = "a step of the plan could not be taken";
const char leave_was_refused[] = "the driver refused it";

/* Without a value that the program holds it cannot go on. */
void leave_rebuild_or_stop(struct device *d, unsigned t)
{
    int r = rebuild_all(d, t);
    if (!r)
        return;
    if (r == -ENOMEM)
        log_say(SAY_ERROR, "memory was too short to rebuild a tensor after the program left the recorded iteration: it is stopped here; raise "
                "--limit or --host-swap");
    else
        log_say(SAY_ERROR, "a tensor could not be rebuilt after the program left the recorded iteration: it is stopped here");
    d->ex->now.code = CUDA_ERROR_UNKNOWN;
}

void leave_plan(struct device *d, const char *why, const struct rt_op *op)
{
    d->ex->now.left_untried = false;
    d->ex->now.left_for = d->ex->now.looks_back = 0;
    d->ex->now.left_at = d->ex->now.pos;
    d->ex->now.left_op = d->op_count;
    snprintf(d->ex->now.left_why, sizeof d->ex->now.left_why, "%s", why);
    log_say(SAY_INFO, "iteration %llu left the plan at op %u of %u (%s): %s", (unsigned long long)d->st.iterations, d->ex->now.pos,
            d->ex->learnt.rec.n_ops, op && op->kind == OP_KERNEL ? PLAIN_IN_LINE(op->func->name) : "no kernel", why);
    const unsigned long long at = d->st.iterations + 1;
    if (!op && d->ex->now.pos == d->ex->learnt.rec.n_ops) /* the iteration has ended as recorded; a program that ends unloads its code then */
        story_becomes(d, STORY_SWAPPING, "the plan was left after iteration %llu: %s", at, why);
    else
        story_becomes(d, STORY_SWAPPING, "iteration %llu left the plan at launch %u of %u: %s", at, d->ex->now.pos, d->ex->learnt.rec.n_ops, why);
    d->st.divergences++;
    if (d->status)
        status_store(&d->status->departures, d->st.divergences);
    stats_not_steady(d);
    leave_rebuild_or_stop(d, op ? op->t : stream_alive(d, STREAM_FIRST_PROGRAM));
    verify_clear(d);
    saved_clear(d);
    cursor_unbind_all(d);
    d->ex->now.ended = false;
}

/* A buffer of as many bytes is there that no record knows. */
static bool has_successor(const struct device *d, const struct rec_buf *x)
{
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        const struct slot *s = &d->mem.slots[i];
        if (s->live && s->bytes == x->bytes && s->rec_buf < 0 && (s->kind == SLOT_FOREIGN) == x->foreign)
            return true;
    }
    return false;
}

bool leave_can_be_followed(struct device *d)
{
    const struct record *r = &d->ex->learnt.rec;
    for (uint32_t k = 0; k < r->n_operands; k++) {
        const struct rec_buf *x = &r->bufs[r->operands[k].buf];
        if (r->operands[k].mode == REC_READ || x->alloc_ord >= 0 || x->dies >= 0)
            continue;
        if (cursor_is_replaced(d, x) && !has_successor(d, x))
            return false;
    }
    return true;
}

/* The kernel's launches all together: layers have the same words on their stacks, and the plan would be left at each of them in turn. */
bool leave_trust_no_more(struct device *d)
{
    struct exec *ex = d->ex;
    const struct func *f = ex->now.left_at < ex->learnt.rec.n_ops ? ex->learnt.caps[ex->now.left_at].func : NULL;
    bool any = false;
    for (uint32_t i = 0; f && i < ex->learnt.rec.n_ops; i++)
        if (ex->learnt.caps[i].kind == OP_KERNEL && ex->learnt.caps[i].func == f && !ex->learnt.rec.ops[i].why_opaque) {
            ex->learnt.rec.ops[i].why_opaque = "no trial can tell what it does";
            any = true;
        }
    if (any)
        ex->now.have_plan = false;
    return any;
}
