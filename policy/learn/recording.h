/* recording.h: the recorded iteration, which learn/ writes and plan/ reads.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_RECORDING_H
#define REMAT_POLICY_RECORDING_H

#include "policy/op/op.h"

struct recording {
    struct record rec;
    struct rt_op *caps;      /* [n_ops] the latest calls, as they were made: while a plan is followed, those of the iteration in progress */
    uint32_t n_caps;
    uint32_t *op_of_trace;   /* [n_trace_ops] op here of each op of the trace that users get: holds are not in it */
    uint32_t n_trace_ops;
    uint32_t *named_writes;     /* [n_named_writes] before which ops of that trace the program writes device memory that is neither ours nor its own:
                                variables of modules, which kernels know by name */
    uint32_t n_named_writes, cap_named_writes;
    uint64_t boundary_live_bytes; /* held by the program when op 0 of the last whole iteration was launched */
    uint64_t swing_bytes;    /* from the least to the most that it holds in the recorded iteration */
};

/* Frees all that it holds, and leaves zeros. */
void recording_clear(struct recording *r);
/* Before its next op the program writes device memory that is neither ours nor its own: the iteration that is being recorded is told. 0 or
 * -ENOMEM. */
int recording_note_named_write(struct recording *r);
/* Launches have structs among their arguments, which may hold words that nobody fills. */
bool recording_has_structs(const struct recording *r);
/* The op may be missing in an iteration. */
static inline bool recording_is_optional(const struct rec_op *o) { return o->hold || o->to_host; }
/* Where what is idle of the argument word (its offset, a multiple of 8) begins; word + 8: nothing is. */
uint32_t recording_idle_from(const struct record *r, const struct rec_op *o, uint32_t word);
/* The argument word is no operand: what it points at does not matter to the op. Its first bytes may be numbers, which do. */
static inline bool recording_word_is_idle(const struct record *r, const struct rec_op *o, uint32_t word) { return recording_idle_from(r, o, word) < word + 8; }
/* Signature of the last op that comes in every iteration; 0: there is none. */
uint64_t recording_last_sig(const struct record *r);
/* Plain peak of the recorded iteration, in chunks: of what a plan may move, or of what it may not. */
uint64_t recording_peak_pages(struct device *d, const struct record *r, bool pinned);

#endif
