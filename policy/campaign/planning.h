/* planning.h: from a record to a plan that is installed: what the planner is asked, in which order, and which of its answers is taken.
 *
 * Threads: under the engine's mutex. Errors: none: without a plan memory is held by swapping.
 */
#ifndef REMAT_POLICY_CAMPAIGN_PLANNING_H
#define REMAT_POLICY_CAMPAIGN_PLANNING_H

#include "policy/device.h"

/* A plan for the recorded iteration is asked for; an earlier question is forgotten. */
void planning_begin(struct device *d);
/* Takes the planner's answer, if there is one. Between two iterations: a plan installed in the middle of one finds memory that it counts on in use. */
void planning_take_answer(struct device *d);
/* The program has moved on from the iteration that the planner was asked about: the question is dropped. */
void planning_drop_question(struct device *d, const char *why);
/* See campaign_wait_ms(). */
int planning_wait_ms(struct device *d);

#endif
