/* earlier_plan.h: plans of earlier runs, from the cache (tracer/known/cache.h): a record that equals an earlier run's, for the same limit, is not planned for
 * again. An earlier plan is installed and rehearsed as any other; a plan that does not fit the memory at hand is left out.
 *
 * A plan is kept for later runs once a whole iteration has gone by under it, proved.
 *
 * Threads: under the engine's mutex. Errors: none: without a cache each run plans for itself.
 */
#ifndef REMAT_POLICY_CAMPAIGN_EARLIER_PLAN_H
#define REMAT_POLICY_CAMPAIGN_EARLIER_PLAN_H

#include "policy/device.h"

/* A record is whole: makes the key under which its plan is kept. */
void earlier_plan_for_record(struct device *d);
/* The plan in the file `path` has been taken; its map lacks `lacking` chunks. */
void earlier_plan_note(struct device *d, const char *path, int lacking);
/* A whole iteration has ended under the plan in force: the plan noted last is kept for later runs. */
void earlier_plan_keep(struct device *d);
/* Writes an earlier run's plan for the record to `path`; looks once for each record. *lacking: chunks that the plan's map lacked in that run. False: no plan. */
bool earlier_plan_find(struct device *d, const char *path, int *lacking);

#endif
