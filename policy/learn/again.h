/* again.h: a launch under a plan, run for the program and again from the state before it: does it do what it was recorded to do?
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno; *_drv the driver's code.
 */
#ifndef REMAT_POLICY_AGAIN_H
#define REMAT_POLICY_AGAIN_H

#include "policy/op/op.h"

/* A launch under a plan whose arguments are not the recorded ones. */
struct again {
    bool repeats;               /* in: it must give the same when it runs again */
    bool light;                 /* in: so, and what it is not known to change is not set aside, since nobody needs it to leave the plan
                                   after the launch; not with `hidden`, and `other` only if it does what
                                   was recorded; the words that are not `regular` were idle so far,
                                   and the second run has decoys there: operands no more, if that makes no difference */
    const unsigned char *other; /* in: arguments to try it with once more; NULL: none. out: NULL: it was not tried */
    bool doubt;                 /* in: words that were idle may be in use; that changed bytes do not matter says nothing of them */
    const uint32_t *hidden;     /* in: offsets of words of structs that point at memory we do not see and that nobody may have filled: */
    uint32_t n_hidden;          /*     they must not matter, and the runs that are not the program's have decoys there */
    uint32_t *idle, n_idle;     /* out: what turned out idle (words_idle_part); operands no more */
    bool other_is_same;         /* out: with these arguments everything was the same */
    bool covered;               /* out: words that are not the recorded operands may be in use, for a buffer that the launch reads anyway */
};
/* Runs it for the program, and again with decoys in the words that are not `regular`. operands[].mode: as recorded. 0: it changed nothing that
 * it was not known to change, and needs nothing behind those words but what it is given by others; *code is the driver's. -EAGAIN: not so; all
 * that it touches is as it was before. -ECANCELED (light): not so, and all is as its own run, or an equal one, left it. */
int probe_again_drv(struct device *d, struct rt_op *op, struct again *again, int *code);
/* The launch, its operands' modes as recorded, is known to change the buffer. */
bool probe_may_change(const struct rt_op *op, const struct slot *s);

#endif
