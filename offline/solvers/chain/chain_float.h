/* chain_float.h: the floating dynamic program of the Rotor paper, on slots as in chain_dp.h. Threads: no shared state. Errors: 0 or negative errno. */
#ifndef REMAT_OFFLINE_CHAIN_FLOAT_H
#define REMAT_OFFLINE_CHAIN_FLOAT_H

#include "offline/solvers/chain/chain.h"

struct chain_float; /* floating (weakly persistent) schedules: Algorithm 1 */
/* G(s, t, l, m): least time to run the backwards of l down to t from a^s, which may move. Time O(n^4 slots / 24),
 * memory O(n^3 slots / 6) doubles: -E2BIG when that would pass max_bytes. */
int chain_float_solve(const struct chain *slots, int64_t max_slots, int64_t max_bytes, struct chain_float **out);
int64_t chain_float_time(const struct chain_float *d, int64_t budget);
int chain_float_schedule(const struct chain_float *d, int64_t budget, struct chain_schedule *s);
void chain_float_free(struct chain_float *d);

#endif
