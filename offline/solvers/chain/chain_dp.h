/* chain_dp.h: the persistent dynamic program of the Rotor paper. Threads: no shared state. Errors: 0 or negative errno. */
#ifndef REMAT_OFFLINE_CHAIN_DP_H
#define REMAT_OFFLINE_CHAIN_DP_H

#include "offline/solvers/chain/chain.h"

/* ---- dynamic programs ---------------------------------------------------------------------------------------------
 * Sizes must be slots (small integers). A table answers for every budget up to max_slots (a^0 included). */

struct chain_dp; /* persistent schedules: section 4.4 */
/* Time O(n^3 slots / 6) at worst, far less after pruning; memory O(n^2 slots / 2) doubles at worst. -ENOMEM. */
int chain_dp_solve(const struct chain *slots, int64_t max_slots, struct chain_dp **out);
/* Optimal makespan within budget; -1: none. */
int64_t chain_dp_time(const struct chain_dp *d, int64_t budget);
/* A schedule of that makespan (appended to s). -ENOSPC: none. */
int chain_dp_schedule(const struct chain_dp *d, int64_t budget, struct chain_schedule *s);
void chain_dp_free(struct chain_dp *d);

#endif
