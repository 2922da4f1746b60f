/* mincut_walk.h: decisions improved by a walk. Threads and errors: as mincut.h says. */
#ifndef REMAT_OFFLINE_MINCUT_WALK_H
#define REMAT_OFFLINE_MINCUT_WALK_H

#include "offline/solvers/mincut/mincut_try.h"

/* A walk over single decisions from the best plan, or from the lowest while none is within the limit: decisions that
 * weigh on an op over the limit change, and dropped values are kept where there is room, as long as that lowers
 * excess and time. heat: size of the upward steps taken now and then at the beginning, in the unit of the weighed sum (see
 * the code; 0: none). Ends at until_s or after max_trials. */
int mincut_walk(struct mincut *m, struct mincut_try *t, double until_s, int64_t max_trials, double heat, uint64_t seed);

#endif
