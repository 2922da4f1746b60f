/* mincut_fusion.h: the paper's own weights. Threads and errors: as mincut.h says. */
#ifndef REMAT_OFFLINE_MINCUT_FUSION_H
#define REMAT_OFFLINE_MINCUT_FUSION_H

#include "offline/solvers/mincut/mincut.h"

/* The paper's own weights and bans (sections 3.3 to 3.7, algorithm 2). hold[n] in bytes, for gaps in which the forward
 * pass turns into the backward pass, 0 for the others: doubled where fusing would otherwise never have written the
 * value; scaled with the distance from the turn; 0 where the forward and the backward ops that touch the value fuse.
 * banned[n_ops]: compute-bound ops, reductions to a quarter of their input or less, ops whose result an unfusible op of
 * the backward pass reads, and whatever may never be replayed. Returns the number of gaps with weight, or a negative
 * errno. */
int mincut_fusion_weights(const struct mincut *m, int64_t *hold, uint8_t *banned);

#endif
