/* foretold.h: iterations that earlier runs have learnt and followed a plan in, from the cache, and this run's for later ones.
 *
 * An op's lasting signature is the same in every run: of a launch the code's image and the kernel's name (op/code.h), grid, block and what else is in
 * op.sig, and the size of every tensor that a parameter of its own points at; of a memset or a copy what is in op.sig. A launch of code without an identity
 * has none.
 * Such a sequence says when a lesson begins, and how closely it looks; what the ops do is still found by code, and a plan of an earlier run by the whole
 * record (campaign/earlier_plan.h).
 *
 * Threads: under the engine's mutex. Errors: none: without a cache nothing is foretold.
 */
#ifndef REMAT_POLICY_FORETOLD_H
#define REMAT_POLICY_FORETOLD_H

#include "policy/iteration.h"
#include "tracer/known/sequence.h"

struct foretold {
    struct sequences *all; /* NULL: there are none, or nobody has looked (`sought`) */
    bool sought;
    uint64_t latest;       /* signature of the op that was fed last */
    unsigned failed;       /* lessons that began where one may have ended, and did not come to their end */
};

/* The op's lasting signature; 0: it has none. */
uint64_t foretold_signature(struct device *d, const struct rt_op *op);
/* There are sequences; the cache is looked into the first time. */
bool foretold_any(struct foretold *f, struct device *d);
/* The next op of the program is `op`. Returns the sequence that ends with this op, all its ops before having come in order; -1: none. */
int foretold_feed(struct foretold *f, struct device *d, const struct rt_op *op);
/* What comes next does not follow what came last. */
void foretold_break(struct foretold *f);
/* With the op that was fed last a sequence may have ended, and can be learnt as it goes by once more: which one; -1. */
int foretold_guess(const struct foretold *f);
/* The word of the sequence's k-th op points at other buffers from one iteration to the next. */
static inline bool foretold_is_irregular(const struct foretold *f, int which, uint64_t k, uint32_t offset) { return sequence_is_irregular(f->all, which, k, offset); }
/* The op is the k-th of the sequence. */
bool foretold_is(const struct foretold *f, struct device *d, int which, uint64_t k, const struct rt_op *op);
static inline const struct sequence_about *foretold_about(const struct foretold *f, int which) { return sequence_about(f->all, which); }
/* This run's lesson of the sequence found memory changed that no argument shows, or facts wrong: an entry of it says so from now on. */
void foretold_doubt(struct device *d, const uint64_t *sigs, uint64_t ops);
/* An iteration, with sigs[about.ops] and irregular[about.n_irregular], for later runs. */
void foretold_keep(struct device *d, struct sequence_about about, const uint64_t *sigs, const uint64_t *irregular);

#endif
