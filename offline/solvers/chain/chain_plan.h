/* chain_plan.h: a chain's schedule as a plan of its graph. Threads: a maker belongs to one thread. Errors: 0 or negative errno. */
#ifndef REMAT_OFFLINE_CHAIN_PLAN_H
#define REMAT_OFFLINE_CHAIN_PLAN_H

#include "offline/solvers/chain/chain_graph.h"

/* Memory for chain_graph_realize, so that many schedules can be tried. */
struct chain_maker;
struct chain_maker *chain_maker_new(const struct chain_graph *cg, struct sched *s); /* NULL: no memory */
void chain_maker_free(struct chain_maker *m);

/* Make a plan that follows a schedule of cg->c step by step: values the schedule stores are held, stages it runs again are
 * replayed at that point. r: the simulator's judgement. */
int chain_graph_realize(struct chain_maker *m, const struct chain_schedule *cs, struct plan *out, struct sim_result *r);

#endif
