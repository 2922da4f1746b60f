/* detour.h: ops that the recorded iteration lacks, and recorded ops that do not come, while the plan stays in force.
 *
 * Example: a training step that mixes its batch in one of two ways (timm's mixup and cutmix), or measures accuracy in every tenth step. Ten of
 * 350 ops differ; the plan is for the rest.
 *
 *   beside   an op that is not the recorded one runs as it is, with the cursor where it was, if no op that the plan, or leaving it, may run again later has read
 *            or made a tensor that this op may change: an op beside the plan counts as changing every tensor that it touches
 *   skip     the op is the recorded one after the next, or one of the three after that; the recorded ops in between do not come, and no later op reads the values
 *            that they make. Example: the first of several batches whose gradients are summed (`loss.backward()` twice, then one step) adds nothing to gradients, since there
 *            are none yet, or copies a gradient where later batches add one
 *   rejoin   the latest DETOUR_SURE ops are recorded ones that stand one after another further on: the cursor goes there. The recorded ops in between have not run.
 *            None of these may be one that the plan, or leaving it, may run again (compiled.again_until)
 *
 * Whatever happens, an op that did not run in this iteration, or whose input a detour may have changed, is never replayed in that iteration (progress.not_again).
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_DETOUR_H
#define REMAT_POLICY_DETOUR_H

#include "policy/plan/cursor.h"

enum { DETOUR_SURE = 4, DETOUR_SKIP = 4 };

/* The op, which is not the recorded one at the cursor, may run beside the plan. */
bool detour_may_run(struct device *d, const struct rt_op *op);
/* An op is about to run beside the plan, or the cursor to go on elsewhere: buffers allocated since the latest recorded op count as the detour's own until a
 * recorded op is given them. */
void detour_begin(struct device *d);
/* The op has run beside the plan. */
void detour_ran(struct device *d, const struct rt_op *op);
/* Index of the recorded op that the op at hand seems to be, with which the program is back in the recorded iteration; n_ops: there is none. */
uint32_t detour_rejoins_at(const struct device *d, const struct rt_op *op);
/* Index of the recorded op that the op at hand is, where DETOUR_SKIP recorded ops at most did not come before it, and as many at most ran beside the plan in their
 * place; n_ops: there is none. */
uint32_t detour_skips_to(const struct device *d, const struct rt_op *op);
/* DETOUR_SKIP recorded ops at most are left, none of which is needed again, and they do not come: the op at hand is an iteration's first (begins_next), or as many
 * recorded ops did not come before such a first op earlier (progress.may_lack). */
bool detour_is_past_the_end(struct device *d, bool begins_next);
/* None of the recorded ops from the cursor to `to` is needed again. */
bool detour_may_pass(const struct device *d, uint32_t to);
/* Moves the cursor to `to`: the plan's steps on the way are taken, and the recorded ops on the way count as not run. */
int detour_pass(struct device *d, uint32_t to, unsigned t);
/* The plan was left at another op than the recorded one: the ops that follow are looked at for where the program goes on. */
void detour_looks_back(struct device *d);
/* The op at hand comes after the plan was left. True: with this op the program is back in the recorded iteration,
 * and some recorded ops did not come (progress.left_for). */
bool detour_comes_back(struct device *d, const struct rt_op *op);
/* The plan was left where recorded ops did not come (progress.left_for): from now on no plan may replay these ops. The plan in force is void
 * then, and must be made anew. False: none of them could be replayed before either. */
bool detour_is_known(struct device *d);

#endif
