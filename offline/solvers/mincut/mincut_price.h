/* mincut_price.h: minimum cuts under prices on memory.
 *
 * Each op t has a price on the bytes in use while it runs (and while replays for it run). Holding a
 * value costs its bytes times the prices of the ops in its gap, rebuilding it costs its producer's time plus the
 * price of the memory it takes from there on; the cheapest states are a minimum cut (mincut.h). Prices rise where the realized plan
 * is over the limit and fall where there is room: subgradient steps on the Lagrangian dual of
 * "least recomputation subject to the limit at every op".
 *
 * Threads: one caller. Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_MINCUT_PRICE_H
#define REMAT_OFFLINE_MINCUT_PRICE_H

#include "offline/solvers/mincut/mincut_try.h"

struct mincut_quest {
    const int32_t *pivots;   /* gaps open at one of these ops are decided anew (mincut_pivot) */
    int32_t n_pivots;
    const uint8_t *base;     /* [n_gaps] decisions for the other gaps, from a plan that can be realized; NULL: the defaults */
    int rounds;              /* rounds of bisection, each under changed prices and (but for the first) disturbed times */
    int noisy;               /* disturb the first round's times too */
    double until_s;          /* solver_now_s at which to stop */
    uint64_t seed;
};

/* The best decisions found are left in t. */
int mincut_price_search(struct mincut *m, struct mincut_try *t, const struct mincut_quest *q);

#endif
