/* proof.h: a launch under a plan whose argument bytes are not those of the iteration before (args.c), or whose words of structs point
 * elsewhere than was recorded. What the kernel does with them was never measured, so it is measured now, before the plan relies on it.
 *
 *   none     Most launches of the backward pass and of the optimizer are replayed by no step of a plan, and much of what they touch is needed by no later
 *            step. Whatever such a launch does to memory that its arguments point at, it does as natively, if all that it may read is in memory;
 *            and no later step begins from that memory (proof_is_needless). The launch runs as it is. Nothing is learnt of it: its
 *            bytes are never replayed, and the next launch at this place asks again, even with the same bytes.
 *   trial    The launch runs with all that it touches set aside, and again as often as it takes (probe_again_drv): it must change what
 *            it changed before, repeat, and not care for words that point elsewhere. Words that did not matter are remembered. If the trial fails,
 *            all is put back and the plan is left before the launch.
 *   light    The launch runs, and again with the bytes of the iteration before where these may be padding, and with decoys in words that
 *            were idle so far and point at something now. Buffers that it changes in place, or may change with those bytes, are set aside. Buffers that
 *            it was not known to change are hashed before and after.
 *   look     The launch runs once, with the same hashes. For an op that no replay ever repeats (why_opaque). A look cannot tell whether a word that
 *            was idle has come into use for reading: such words are operands again until a trial says that they are idle.
 *
 * After a light trial or a look that fails the plan is left, after the launch: the program's values are as natively. Leaving rebuilds what the plan has
 * dropped; so light trials and looks are ruled out where a rebuild would begin from a buffer that the launch may have spoilt.
 *
 * An update of parameters and optimizer states (PyTorch's `foreach` launches hand over lists whose ends nobody fills) is looked at, for
 * the price of hashing the gradients twice; a trial of it would set aside every state. Whole trials of it come at the 2nd, 4th, 8th ..
 * surprise, to learn which bytes are padding; of an op that may be repeated, at its first few surprises as well.
 *
 * Threads: under the engine's mutex. Used by exec.c only.
 */
#ifndef REMAT_POLICY_PROOF_H
#define REMAT_POLICY_PROOF_H

#include "policy/learn/hashing.h"
#include "policy/plan/args.h"
#include "policy/plan/match.h"

/* An entry that nobody filled may point at what the plan has dropped. For the proof it gets memory without its content. */
enum { LENT_MAX = 64, WATCHED_MAX = HASHING_AROUND_MOST };
struct proof {
    bool may_look, may_be_light, whole, looked;
    struct slot *lent[LENT_MAX], *watched[WATCHED_MAX]; /* watched: for a look, buffers that the op is not known to change; else all that it touches */
    unsigned n_lent, n_watched;
};
static inline void proof_none(struct proof *p)
{
    p->may_look = p->may_be_light = p->whole = p->looked = false; /* the lists, which are long, are not cleared */
    p->n_lent = p->n_watched = 0;
}

enum proof_says {
    PROOF_HOLDS,   /* the launch has run, and done what was recorded; *code is the driver's */
    PROOF_NOT_RUN, /* the launch has not run, or its effects were undone */
    PROOF_OTHER    /* the launch has run, and may have done something else: the plan must be left after it */
};

/* The launch may run unproved: no later step of the plan begins from, or makes again, the buffers that its addresses point at, and all that it may read
 * is in memory, as the program left it. To be asked after the plan's steps before the op, before its operands are made ready. */
bool proof_is_needless(struct device *d, const struct rt_op *op, const struct reading *x);
/* Before the op's operands are made ready; their modes are as recorded. */
void proof_open(struct device *d, struct rt_op *op, const struct reading *x, struct proof *p);
/* Runs the launch, once its operands are ready. *mattered: whether words that may be padding made a difference. */
enum proof_says proof_run_drv(struct device *d, struct rt_op *op, struct proof *p, enum args_mattered *mattered, int *code);
/* Takes back the memory of p->lent; where the op has run, to be called after its uses are known (ready_done). */
void proof_close(struct device *d, struct proof *p);

#endif
