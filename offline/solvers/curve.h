/* curve.h: the cost in time of running with less memory: overheads at 90 %, 80 %, .. of the program's own peak, down to the floor, and the knee.
 *
 * Threads: no shared state. Errors: as price_run() has them.
 */
#ifndef REMAT_OFFLINE_CURVE_H
#define REMAT_OFFLINE_CURVE_H

#include <stdint.h>

#include "offline/solvers/price.h"

enum { CURVE_LIMITS = 7, CURVE_HIGHEST = 90, CURVE_STEP = 10 };

struct curve {
    int64_t limit[CURVE_LIMITS + 1]; /* limits of a run, falling; limit[0] is the program's own peak */
    double overhead[CURVE_LIMITS + 1]; /* NAN: no plan was found */
    int n, knee;                     /* number of limits; index of the least limit down to which a point of memory costs at most a point of time */
    int64_t floor_bytes;             /* least limit that any plan may meet */
    int32_t floor_op;                /* op that sets the floor; -1: the buffers from before op 0 */
    char message[256];               /* text after an error; "" otherwise */
};

/* The floor, and the limits above it. `seconds`: wall clock for all prices together. `step` (may be NULL) is called before the k-th of n prices, and
 * after each with k = -1. */
int curve_find(const struct graph *exact, const struct as_run *run, double seconds, void (*step)(int k, int n), struct curve *c);

#endif
