/* The annealer's runs, one after another: where each run starts, how long it is, and when to stop.
 *
 * Threads: the search's. Errors: 0 or negative errno.
 */
#ifndef REMAT_OFFLINE_ANNEAL_RUNS_H
#define REMAT_OFFLINE_ANNEAL_RUNS_H

#include "offline/solvers/anneal/anneal_search.h"

/* The sequence of runs that the solvers use: short runs first, each pair longer than the last, alternating between fresh starts and
 * reheats of the best schedule (of a row of `starts`, as long as there is no best). It ends at the deadline, when `patience` runs in a row found nothing or
 * gained less than 0.02 % of the iteration, when the pool has had enough, or when the best reaches bound_ns (replay time; 0: no bound). */
int anneal_runs(struct anneal_search *s, double deadline_s, int patience, double bound_ns);

#endif
