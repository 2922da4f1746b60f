/* The one inner loop of the chain programs.
 * Threads: no state but a choice made once per call of chain_vec_pick. Errors: none. */
#ifndef REMAT_OFFLINE_CHAIN_VEC_H
#define REMAT_OFFLINE_CHAIN_VEC_H

#include <stdint.h>

/* e[i] = min(e[i], cost + (x[i] + y[i])) for 0 <= i < n; x or y may be NULL, meaning zeros. e overlaps neither. All
 * values are integers below 2^53 or infinite, so every order of additions gives the same result. */
typedef void chain_vec_relax(double *e, const double *x, const double *y, double cost, int64_t n);

/* The fastest version this processor runs. */
chain_vec_relax *chain_vec_pick(void);

#endif
