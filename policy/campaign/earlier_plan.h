/* earlier_plan.h: plans of earlier runs, from the cache (tracer/known/cache.h): a record that is the same as one of then, for the same limit, is not planned for
 * again. Such a plan is installed and rehearsed as any other; one that does not fit the memory there is now is left out.
 *
 * A plan is kept for later runs once a whole iteration has gone by under it, proved.
 *
 * Threads: under the engine's mutex. Errors: none: without a cache each run plans for itself.
 */
#ifndef REMAT_POLICY_CAMPAIGN_EARLIER_PLAN_H
#define REMAT_POLICY_CAMPAIGN_EARLIER_PLAN_H

#include "policy/device.h"

/* A record is whole: what its plan will be known by. */
void earlier_plan_for_record(struct device *d);
/* The file `path` is the plan that is taken now, whose map lacks so many chunks. */
void earlier_plan_note(struct device *d, const char *path, int lacking);
/* A whole iteration has ended under the plan in force. */
void earlier_plan_keep(struct device *d);
/* Once for each record: an earlier run's plan for it, written to `path`. *lacking: chunks that its map lacked then. False: there is none. */
bool earlier_plan_find(struct device *d, const char *path, int *lacking);

#endif
