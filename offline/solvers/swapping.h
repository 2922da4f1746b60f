/* Time of an iteration without a plan, when the limit is kept by swapping, as the runtime does it (policy/memory/evict.c): an op's operands
 * are brought into memory before it is launched, and the buffers used longest ago leave for them, by a copy to the host.
 *
 * A plan that takes longer than this schedule is worse than none. Buffers that leave in one iteration have to come back in the next, which is not
 * counted: so real swapping may take longer than this time, not less.
 *
 * Threads: no shared state. Errors: 0; -ENOSPC: one op alone needs more than the limit; -ENOMEM.
 */
#ifndef REMAT_OFFLINE_SWAPPING_H
#define REMAT_OFFLINE_SWAPPING_H

#include "offline/model/graph.h"
#include "offline/model/plan.h"
#include "offline/model/sim.h"

/* The swapping schedule into *out (zeroed or reset), judged into *r. Cost: O(operands + copies). */
int swapping_schedule(const struct graph *g, int64_t limit_bytes, struct plan *out, struct sim_result *r);

#endif
