/* What becomes of a plan that was left: whether it can be followed again, and what would have to change for that. */
#include "policy/plan/exec.h"

bool exec_can_be_followed(struct device *d)
{
    const struct record *r = &d->ex->rec;
    for (uint32_t k = 0; k < r->n_operands; k++) {
        const struct rec_buf *x = &r->bufs[r->operands[k].buf];
        if (r->operands[k].mode == REC_READ || x->alloc_ord >= 0 || x->dies >= 0)
            continue;
        const struct slot *s = &d->slots[x->slot_id];
        if (!s->live || s->serial != x->serial)
            return false;
    }
    return true;
}

/* The kernel's launches all together: layers have the same words on their stacks, and the plan would be left at each of them in turn. */
bool exec_trust_no_more(struct device *d)
{
    struct exec *ex = d->ex;
    const struct func *f = ex->left_at < ex->rec.n_ops ? ex->caps[ex->left_at].func : NULL;
    bool any = false;
    for (uint32_t i = 0; f && i < ex->rec.n_ops; i++)
        if (ex->caps[i].kind == OP_KERNEL && ex->caps[i].func == f && !ex->rec.ops[i].why_opaque) {
            ex->rec.ops[i].why_opaque = "no trial can tell what it does";
            any = true;
        }
    if (any)
        ex->have_plan = false;
    return any;
}
