/* What an iteration takes where nothing is planned and memory is held by swapping, as the runtime does it (policy/memory/evict.c): what an op touches
 * is brought into memory before it is launched, and whatever was used longest ago leaves for it, by a copy to the host.
 *
 * A plan that takes longer than that is worse than none. What leaves in one iteration has to come back in the next one, which is not counted: so
 * swapping may take longer than is said here, not less.
 *
 * Threads: no shared state. Errors: 0; -ENOSPC: one op alone needs more than the limit; -ENOMEM.
 */
#ifndef REMAT_OFFLINE_SWAPPING_H
#define REMAT_OFFLINE_SWAPPING_H

#include "offline/model/graph.h"
#include "offline/model/plan.h"
#include "offline/model/sim.h"

/* The schedule of it in *out (zeroed or reset), judged into *r. Cost: O(operands + copies). */
int swapping_schedule(const struct graph *g, int64_t limit_bytes, struct plan *out, struct sim_result *r);

#endif
