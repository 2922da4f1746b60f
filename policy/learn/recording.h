/* recording.h: questions to the recorded iteration, which learn/ writes and plan/ reads.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_RECORDING_H
#define REMAT_POLICY_RECORDING_H

#include "policy/iteration.h"

/* Before its next op the program writes device memory that is neither ours nor its own: the iteration that is being recorded is told. 0 or
 * -ENOMEM. */
int recording_note_elsewhere(struct device *d);
/* The op may be missing in an iteration. */
static inline bool recording_is_optional(const struct rec_op *o) { return o->hold || o->to_host; }
/* Where what is idle of the argument word (its offset, a multiple of 8) begins; word + 8: nothing is. */
uint32_t recording_idle_from(const struct record *r, const struct rec_op *o, uint32_t word);
/* The argument word is no operand: what it points at does not matter to the op. Its first bytes may be numbers, which do. */
static inline bool recording_word_is_idle(const struct record *r, const struct rec_op *o, uint32_t word) { return recording_idle_from(r, o, word) < word + 8; }
/* Signature of the last op that comes in every iteration; 0: there is none. */
uint64_t recording_last_sig(const struct device *d);
/* Plain peak of the recorded iteration, in chunks: of what a plan may move, or of what it may not. */
uint64_t recording_peak_pages(struct device *d, bool pinned);

#endif
