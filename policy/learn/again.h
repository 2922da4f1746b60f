/* again.h: a launch under a plan, run for the program and again from the state before it: does it do what it was recorded to do?
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno; *_drv the driver's code.
 */
#ifndef REMAT_POLICY_AGAIN_H
#define REMAT_POLICY_AGAIN_H

#include "policy/op/op.h"

/* A launch under a plan whose arguments are not the recorded ones. */
struct again {
    bool repeats;               /* in: the launch must give the same results when it runs again */
    bool light;                 /* in: as `repeats`, and buffers that the launch is not known to change are not set aside, since leaving the plan
                                   after the launch needs none of them; not with `hidden`, and `other` is tried only if the launch
                                   does what was recorded; the words that are not `regular` were idle so far, and the second run
                                   has decoys there: operands no more, if that makes no difference */
    const unsigned char *other; /* in: other arguments for one more run; NULL: none. out: NULL: they were not tried */
    bool doubt;                 /* in: words that were idle may be in use, whatever other_is_same says of the changed bytes */
    const uint32_t *hidden;     /* in: offsets of struct words, filled by nobody perhaps, that point at memory remat does not see: */
    uint32_t n_hidden;          /*     these words must not matter, and all runs but the program's have decoys there */
    uint32_t *idle, n_idle;     /* out: words found idle (words_idle_part); operands no more */
    bool other_is_same;         /* out: with the arguments `other` every result was the same */
    bool covered;               /* out: unrecorded words may be in use, each for a buffer that a recorded operand reads anyway */
};
/* Runs the launch for the program, and again with decoys in the words that are not `regular`. operands[].mode: as recorded. 0: the launch changed nothing that it was not
 * known to change, and needs nothing behind those words but buffers that other words lead to; *code is the driver's, or CUDA_ERROR_UNKNOWN if memory could not be put back.
 * -EAGAIN: the launch was not tried, or does something else; all that it touches is as it was before. -ECANCELED (light): it does something else, and all is as its own run,
 * or an equal one, left it. */
int probe_again_drv(struct device *d, struct rt_op *op, struct again *again, int *code);
/* True if the launch, its operands' modes as recorded, is known to change the buffer. */
bool probe_may_change(const struct rt_op *op, const struct slot *s);

#endif
