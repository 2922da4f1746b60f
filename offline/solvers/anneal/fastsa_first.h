/* fastsa_first: a schedule whose first computations stand in the given order, out of one of any order.
 *
 * Any schedule within the budget shows how each of its ops can be computed from nothing: drop from it what is no ancestor
 * of the op and what comes later; that only frees memory. So: from nothing compute op 0 this way, then forget all and
 * compute op 1, and so on; runs of ops that the schedule first computes in rising order share one such piece. Then take
 * away, dearest first, every replay without which the schedule still fits.
 *
 * Threads: any. Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_FASTSA_FIRST_H
#define REMAT_OFFLINE_FASTSA_FIRST_H

#include <stdint.h>

#include "offline/solvers/checkmate/checkmate.h"

/* free_order[n_free]: fits c->budget. order has room for cap. -ENOSPC: it would take more; -EINVAL: free_order does not
 * compute everything or does not fit. */
int fastsa_first(const struct checkmate *c, const int32_t *free_order, int32_t n_free, int32_t *order, int32_t cap,
                 int32_t *n_order);

#endif
