/* covers.h: does a kernel store over all of an earlier value? torch.compile gives the memory of one value to a later one wherever it can; whoever
 * makes the later one again would have to make the earlier one first, were the store taken for a change of it.
 *
 * The launch runs again with other contents in the buffer: it must leave every byte of all that it touches as the program's run did, from each of them.
 *
 *   halves   Of what the buffer held the first half over the second as well; of what the launch left there, the second over the first. A kernel
 *            that goes by what is there finds other values than before, and only such as it could have found: an index leads nowhere else, a table
 *            is not full, a lock is not taken by nobody. Most that are no stores show here, and nothing further is done with them.
 *   fills    All bytes 0x00, 0xff, 0x7b, 0xfb, 0x80, 0x7f in turn. A byte that is left shows, since it cannot be all of these. So does what mixes old and
 *            new (not a number), the larger or the smaller of both (the ends of every integer and, but for what is beyond 1e36, of every
 *            float), a value that is kept where it is zero, or negative.
 *
 * Only buffers that are of the probed iteration, and that its ops have filled wholly by then, are asked about. Small ones are never evicted, but a replay that changed one
 * would need what was in it then.
 *
 * What no run can show is a store that other inputs let through (a mask that was all true while this was learnt). Therefore the program's own
 * launch always finds the earlier value (record_insert_holds, steps_find_covered), and what a replay makes is compared in each iteration
 * (plan/verify.h). One launch of a kernel in which the old content mattered speaks for all others by the same argument (probe_offset_depends).
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_COVERS_H
#define REMAT_POLICY_COVERS_H

#include "policy/learn/trial.h"

/* The trial's buffer k may be one that is stored over: changed, and filled by an earlier op of the iteration. */
bool covers_may_be(const struct trial *t, uint32_t k);
/* Finds the trial's buffers that are stored over: touched.covered, and REC_WRITE for their operands. The op repeats bit for bit, and memory is as it left it,
 * before and afterwards. 0, or a negative errno: memory is not. */
int covers_try(struct trial *t);
/* The launch has operands that were recorded as stored over (rt_operand.covers). */
bool covers_said(const struct rt_op *op);
/* All of these still are. False: not, or a run failed (trial_mend). */
bool covers_still(struct trial *t);

#endif
