/* anneal_plan.h: the annealer's schedule as a plan. Threads: the schedule's. Errors: 0 or negative errno. */
#ifndef REMAT_OFFLINE_ANNEAL_PLAN_H
#define REMAT_OFFLINE_ANNEAL_PLAN_H

#include "offline/solvers/anneal/anneal.h"

/* The schedule as a plan: every cell leaves memory right after its last use. out is emptied first. */
int anneal_plan(const struct anneal *a, struct plan *out);

#endif
