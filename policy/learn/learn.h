/* learn.h: which calls make an iteration, and what one of them does, measured.
 *
 * Threads: under the engine's mutex. Errors: *_drv return the driver's code for the program; others 0 or a negative errno.
 * The record grows in d->ex->learnt.rec.
 */
#ifndef REMAT_POLICY_LEARN_H
#define REMAT_POLICY_LEARN_H

#include "policy/op/op.h"

/* So many words of a launch that point at memory are no list yet: each has its part, whatever it did for the data of one iteration. */
enum { LEARN_FEW = 8 };

int learn_init(struct device *d);
bool learn_wants_trace(const struct device *d);   /* a trace was asked for and is not complete */
bool learn_any_recorded(void); /* an iteration has been, for the trace that was asked for */

/* An op has run outside a plan and outside a probe. True: the next op is the first of an iteration like the last ones (never
 * where nothing is `wanted`; iterations are counted all the same). */
bool learn_watch(struct device *d, const struct rt_op *op, bool wanted);
void learn_lets_go(struct device *d); /* it is not learnt: the next one may be */
uint64_t learn_period(const struct device *d); /* ops in an iteration; 0 none found */
uint64_t learn_candidate(const struct device *d); /* ops of what may be found to be one soon; 0 */
void learn_count_iteration(struct device *d, unsigned t);
/* The stream of ops is looked at afresh. */
void learn_reset(struct device *d);

/* After learn_watch() was true: no iteration has gone by, but one of an earlier run's may begin here (foretold.h). */
bool learn_guesses(const struct device *d);
/* What as many ops took in the run that left the iteration of the lesson at hand, while memory was held by swapping; 0: not known. */
void learn_lesson_swaps(const struct device *d, uint64_t *ns, uint64_t *ops);
/* The recorded iteration is kept for later runs, with what swapping has taken in this one. */
void learn_keep(struct device *d, uint64_t swap_ns, uint64_t swap_ops);

/* All that an iteration is learnt with is there. -ENOTSUP: this device cannot learn. -EAGAIN: not yet (campaign_wants_code). */
int learn_prepare(struct device *d);
/* The next op is the first of a probed iteration. After learn_prepare(); the record is empty, as exec_clear() leaves it, which clears it as
 * well once learning is abandoned. */
int learn_begin(struct device *d);
enum learn_step {
    LEARN_ON,      /* the op was run and measured */
    LEARN_STOPPED, /* it was run, and learning has been abandoned */
    LEARN_NOT_RUN  /* learning has been abandoned before it: it is to be run in another way */
};
int learn_op_drv(struct device *d, struct rt_op *op, enum learn_step *step);
void learn_abandon(struct device *d, const char *why);
bool learn_complete(const struct device *d); /* the probed iteration's last op has run */
/* Seals the record, writes the trace that was asked for, puts holds in (record_insert_holds). `reserve`: what of a limit no plan of the record can
 * use (tracer/reserve.h), for the trace; it is asked once the record is sealed. */
int learn_finish(struct device *d, uint64_t (*reserve)(struct device *));
/* During a probed iteration. */
void learn_alloc(struct device *d, struct slot *s);
void learn_free(struct device *d, struct slot *s);
/* The recorded iteration has ops that the one before had not, or the other way about. The next lesson is over where that is so. */
bool learn_had_others(const struct device *d);
void learn_strictly(struct device *d);
/* In-place state of that size is kept before every launch that changes it, for replays. */
bool learn_keeps_side(struct device *d, uint64_t bytes);

#endif
