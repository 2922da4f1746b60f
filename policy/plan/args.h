/* args.h: which bytes of a launch's arguments must stay as they were for the recorded iteration to say what the launch does.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_ARGS_H
#define REMAT_POLICY_ARGS_H

#include "policy/iteration.h"

/* The launch at hand compared with the launch at the same place of the iteration before. VARIED: only numbers differ that have changed in
 * every iteration for long. SURPRISE: the kernel was never measured with these bytes; *offset: a byte that differs. */
enum args_change { ARGS_SAME, ARGS_VARIED, ARGS_SURPRISE };
int args_index(struct device *d);
void args_clear(struct device *d);
enum args_change args_compare(struct device *d, const struct rt_op *op, uint32_t *offset);
/* After a SURPRISE: true if places of the iteration that are alike know the changed bytes to be padding. */
bool args_known_alike(struct device *d, const struct rt_op *op);
/* Writes the op's arguments to out[arg_bytes], with the words that may be padding as they were an iteration ago; `all`: words that last changed in
 * earlier iterations, too, as they were before that change. False: no such words. */
bool args_before(struct device *d, const struct rt_op *op, bool all, unsigned char *out);
/* Every byte that args_before() wrote is as it was an iteration ago, but for addresses that are operands and for idle words. */
bool args_were_all_put_back(const struct device *d);
/* The op at d->ex->now.pos did what was recorded, with the bytes that it has now; before it is captured. */
enum args_mattered { ARGS_UNTRIED, ARGS_MATTERED, ARGS_IDLE }; /* whether the words that args_before() puts back made a difference */
void args_accept(struct device *d, const struct rt_op *op, enum args_mattered mattered);
/* How often the op at d->ex->now.pos has surprised under this plan, this time included. */
uint32_t args_surprised(struct device *d);
/* The op at d->ex->now.pos ran with other bytes, and was only looked at (proof.h): a count among the bytes may have brought an idle word into use. Until
 * a trial with decoys denies that, the op's idle words are operands, and the buffers that they point at must be in memory. */
void args_doubt_idle(struct device *d, bool doubt);
bool args_idle_in_doubt(const struct device *d);
/* The op at d->ex->now.pos ran with other bytes, and nothing says what it did: no replay may use these bytes, and the next launch at this place wants
 * proof even with the same bytes. args_accept() ends that. */
void args_unproved(struct device *d, const struct rt_op *op);
bool args_are_unproved(const struct device *d, uint32_t at);
/* True: the op at d->ex->now.pos wants proof, whatever its bytes are. */
bool args_ask_again(const struct device *d);
/* The launch that is accepted next may have used words that are no recorded operands: its bytes, a count among them, are never put back.
 * In another iteration those words may hold any address. */
void args_may_use_others(struct device *d, bool may);
/* Words that are no recorded operands may be in use, but each points at a buffer that a recorded operand reads (again.h, covered). Valid for this
 * launch alone: the next one there asks again, even with the same bytes. After args_may_use_others(). */
void args_are_covered(struct device *d);
/* The word may hold anything from this offset on; what is before it is watched (words_idle_part). */
int args_free_word(struct device *d, uint32_t offset);

#endif
