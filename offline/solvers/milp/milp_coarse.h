/* milp_coarse.h: Checkmate's program for traces too large for it, over groups of neighbouring ops.
 *
 * The ops are cut into a few dozen runs. A run is a node: its cost is its ops' time, its memory the values it makes for later
 * runs. Nodes that the solution holds or drops become decisions for the values (sched.h); the plan is judged by the
 * simulator, and the nodes' budget lowered until the real peak is within the limit.
 *
 * Threads: one caller. Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_MILP_COARSE_H
#define REMAT_OFFLINE_MILP_COARSE_H

#include "offline/solvers/mincut/mincut_try.h"

/* Tries budgets until until_s; the best plan is left in t. */
int milp_coarse(const struct graph *g, struct mincut_try *t, int groups, double until_s);

#endif
