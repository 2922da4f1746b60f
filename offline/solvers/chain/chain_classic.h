/* chain_classic.h: the classic schedules. Threads: no shared state. Errors: as chain.h says. */
#ifndef REMAT_OFFLINE_CHAIN_CLASSIC_H
#define REMAT_OFFLINE_CHAIN_CLASSIC_H

#include "offline/solvers/chain/chain.h"

/* ---- classic schedules, exact sizes -------------------------------------------------------------------------------- */

/* Segments: checkpoint the inputs of the stages in cut[] (rising, each 2..n), store everything within the segment that
 * is being differentiated. */
int chain_segments(const struct chain *c, const int32_t *cut, int32_t n_cut, struct chain_schedule *s);

/* Chen et al. 2016: about sqrt(n) segments of equal length; and the greedy form, which opens a new segment when the
 * segment's stored bytes pass `segment_bytes`. */
int chain_chen_sqrt(const struct chain *c, struct chain_schedule *s);
int chain_chen_greedy(const struct chain *c, int64_t segment_bytes, struct chain_schedule *s);

/* Griewank and Walther's revolve: binomial checkpointing with at most `checkpoints` stored inputs besides a^0, stages
 * counted as equal in cost; least number of recomputed forward steps. */
int chain_revolve(const struct chain *c, int32_t checkpoints, struct chain_schedule *s);

#endif
