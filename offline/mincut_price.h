/* mincut_price.h: minimum cuts under prices on memory.
 *
 * Each op t has a price on the bytes in use while it runs (and while what is replayed for it runs). Holding a
 * value costs its bytes times the prices of the ops in its gap, rebuilding it costs its producer's time plus the
 * price of where it then lies; the cheapest states are a minimum cut (mincut.h). Prices rise where the realized plan
 * is over the limit and fall where there is room: subgradient steps on the Lagrangian dual of
 * "least recomputation subject to the limit at every op".
 *
 * Threads: one caller. Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_MINCUT_PRICE_H
#define REMAT_OFFLINE_MINCUT_PRICE_H

#include "offline/mincut.h"

/* Searches until until_s (solver_now_s) or `rounds` rounds of bisection have passed; finds land in t. */
int mincut_price_search(struct mincut *m, struct mincut_try *t, double until_s, int rounds, uint64_t seed);

#endif
