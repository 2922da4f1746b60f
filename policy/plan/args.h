/* args.h: which bytes of a launch's arguments must stay as they were for the recorded iteration to say what the launch does.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_ARGS_H
#define REMAT_POLICY_ARGS_H

#include "policy/iteration.h"

/* The launch at hand against the one of the iteration before, at the same place. VARIED: only in numbers that have changed in
 * every iteration for long. SURPRISE: what the kernel does with these bytes was never measured; *offset: one that differs. */
enum args_change { ARGS_SAME, ARGS_VARIED, ARGS_SURPRISE };
int args_index(struct device *d);
void args_clear(struct device *d);
enum args_change args_compare(struct device *d, const struct rt_op *op, uint32_t *offset);
/* The same, where bytes were a SURPRISE: true: places of the iteration that are alike know them to be padding. */
bool args_known_alike(struct device *d, const struct rt_op *op);
/* The op's arguments with the words that may be padding as they were an iteration ago, into out[arg_bytes]; all: those, too, that have
 * changed in earlier ones, as they were before that. False: there are none. */
bool args_before(struct device *d, const struct rt_op *op, bool all, unsigned char *out);
/* In out all is as it was an iteration ago, but for addresses that are operands and for idle words. */
bool args_were_all_put_back(const struct device *d);
/* The op at d->ex->now.pos did what was recorded, with the bytes that it has now; before it is captured. */
enum args_mattered { ARGS_UNTRIED, ARGS_MATTERED, ARGS_IDLE }; /* whether those words made a difference */
void args_accept(struct device *d, const struct rt_op *op, enum args_mattered mattered);
/* How often the op at d->ex->now.pos has surprised under this plan, this time included. */
uint32_t args_surprised(struct device *d);
/* The op at d->ex->now.pos ran with other bytes, and it was looked at only: a count among them may have brought an idle word into use. Until
 * a trial with decoys says that it has not, such words are operands, and what they point at must be there. */
void args_doubt_idle(struct device *d, bool doubt);
bool args_idle_in_doubt(const struct device *d);
/* The op at d->ex->now.pos ran with other bytes, and nothing says what it did: no replay may have them, and the next launch there wants proof even
 * where it has the same ones. args_accept() ends that. */
void args_unproved(struct device *d, const struct rt_op *op);
bool args_are_unproved(const struct device *d, uint32_t at);
/* The op at d->ex->now.pos wants proof, whatever its bytes are. */
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
