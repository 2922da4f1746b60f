/* budget.h: how much memory a plan may count on, and what goes to the neighbours of a group.
 *
 * Threads: under the engine's mutex. Errors: none.
 */
#ifndef REMAT_POLICY_CAMPAIGN_BUDGET_H
#define REMAT_POLICY_CAMPAIGN_BUDGET_H

#include "policy/device.h"

/* What the recorded iteration takes with nothing evicted, and a sixteenth for what the colouring wastes; in bytes. */
uint64_t budget_could_use(struct device *d);
/* What can be planned with now, in bytes: the limit without what no plan moves. */
uint64_t budget_now(struct device *d);
/* campaign.beside_bytes: what any map takes beside what the planner counts. */
void budget_leave_for_map(struct device *d);
/* campaign.budget_bytes = plannable memory - reserved - beside. */
void budget_take(struct device *d);
/* To the neighbours of the group. No plan is installed, and nothing is being learnt. */
void budget_give(struct device *d, uint64_t bytes);

#endif
