/* proof.h: a launch under a plan whose argument bytes are not those of the iteration before (args.c), or whose words of structs point
 * elsewhere than was recorded. What the kernel does with them was never measured, so it is measured now, before the plan relies on it.
 *
 *   none     Most launches are replayed by no step of a plan, and much of what they touch is no longer needed by any: those of the backward
 *            pass and of the optimizer. Whatever such a launch does to memory that its arguments point at, it does as natively, if what it may
 *            read is there; and no later step begins from it (proof_is_needless). It runs as it is. Nothing is learnt of it: its
 *            bytes are never replayed, and the next launch there asks again, even with the same ones.
 *   trial    The launch runs with all that it touches set aside, and again as often as it takes (probe_again_drv): it must change what
 *            it changed before, repeat, and not care for words that point elsewhere. What did not matter is remembered. Where it fails,
 *            all is put back and the plan is left before the launch.
 *   light    The launch runs, and again with the bytes of the iteration before where these may be padding, and with decoys in words that
 *            were idle so far and point at something now; what it changes in place, or may with those bytes, is set aside. What it was
 *            not known to change is hashed before and after.
 *   look     The launch runs once; the same hashes. For an op that no replay ever repeats (why_opaque). It cannot tell whether a word that
 *            was idle has come into use for reading: such words are operands again until a trial says that they are idle.
 *
 * After a light trial or a look that fails the plan is left, after the launch: what the program holds is as natively. What the plan has
 * dropped is rebuilt then; so neither may be taken where that would begin from a buffer that the launch may have spoilt.
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
    struct slot *lent[LENT_MAX], *watched[WATCHED_MAX]; /* watched: of a look, what the op is not known to change; else all that it touches */
    unsigned n_lent, n_watched;
};
static inline void proof_none(struct proof *p)
{
    p->may_look = p->may_be_light = p->whole = p->looked = false; /* and not the lists, which are long */
    p->n_lent = p->n_watched = 0;
}

enum proof_says {
    PROOF_HOLDS,   /* it has run, and done what was recorded; *code is the driver's */
    PROOF_NOT_RUN, /* it has not, or what it did was undone */
    PROOF_OTHER    /* it has run, and may have done something else: the plan must be left after it */
};

/* The launch may run unproved: what its addresses point at no later step of the plan begins from, or makes again, and all that it may read
 * is in memory, as the program left it. To be asked after the plan's steps before the op, before its operands are made ready. */
bool proof_is_needless(struct device *d, const struct rt_op *op, const struct reading *x);
/* Before the op's operands are made ready; their modes are as recorded. */
void proof_open(struct device *d, struct rt_op *op, const struct reading *x, struct proof *p);
/* After that. *mattered: whether words that may be padding made a difference. */
enum proof_says proof_run_drv(struct device *d, struct rt_op *op, struct proof *p, enum args_mattered *mattered, int *code);
/* What was lent is taken back; where the op has run, after its uses are known (ready_done). */
void proof_close(struct device *d, struct proof *p);

#endif
