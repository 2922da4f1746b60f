/* replay.h: an op of the recorded iteration run once more, for the values it makes.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_REPLAY_H
#define REMAT_POLICY_REPLAY_H

#include "policy/plan/compare.h"

/* Runs op `op_index` again on stream t, with the arguments it had in this iteration. -ENODATA: an input is missing. */
int replay_run(struct device *d, uint32_t op_index, unsigned t);
/* Keeps the small in-place state of op `at` as a replay must find it: before the program's own launch, which is ready on stream t. 0 or -EIO. */
int replay_keep_sides(struct device *d, uint32_t at, unsigned t);

#endif
