/* curve.h: what less memory costs a run: the price of each tenth of what the program takes by itself, down to the floor, and the knee.
 *
 * Threads: no shared state. Errors: as price_run() has them.
 */
#ifndef REMAT_OFFLINE_CURVE_H
#define REMAT_OFFLINE_CURVE_H

#include <stdint.h>

#include "offline/solvers/price.h"

enum { CURVE_LIMITS = 7, CURVE_HIGHEST = 90, CURVE_STEP = 10 };

struct curve {
    int64_t limit[CURVE_LIMITS + 1]; /* limits of a run, falling; the first is what the program takes by itself */
    double overhead[CURVE_LIMITS + 1]; /* NAN: no plan was found */
    int n, knee;                     /* limits; index of the least one down to which a point of memory costs at most a point of time */
    int64_t floor_bytes;             /* no plan goes lower */
    int32_t floor_op;                /* what sets it; -1: what exists before op 0 */
    char message[256];               /* after an error; "" if there is nothing to say */
};

/* The floor, and the limits above it. `seconds`: wall clock for all prices together. `step` (may be NULL) is called before the k-th of n prices, and
 * after each with k = -1. */
int curve_find(const struct graph *exact, const struct as_run *run, double seconds, void (*step)(int k, int n), struct curve *c);

#endif
