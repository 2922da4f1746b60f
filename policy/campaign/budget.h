/* budget.h: how much memory a plan may count on, and what goes to the neighbours of a group.
 *
 * Threads: under the engine's mutex. Errors: none.
 */
#ifndef REMAT_POLICY_CAMPAIGN_BUDGET_H
#define REMAT_POLICY_CAMPAIGN_BUDGET_H

#include "policy/device.h"

/* Bytes that the recorded iteration takes with nothing evicted, and a sixteenth more for the colouring's waste. */
uint64_t budget_could_use(struct device *d);
/* Bytes that a plan may use: the limit less all memory that no plan moves. */
uint64_t budget_now(struct device *d);
/* Sets campaign.beside_bytes: memory that any plan's map takes beyond what the planner counts. */
void budget_leave_for_map(struct device *d);
/* Sets campaign.budget_bytes = budget_now() - reserved_bytes - beside_bytes. */
void budget_take(struct device *d);
/* Gives up to `bytes` to the neighbours of the group. No plan is installed, and nothing is being learnt. */
void budget_give(struct device *d, uint64_t bytes);

#endif
