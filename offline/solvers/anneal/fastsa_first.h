/* fastsa_first: turns a schedule in any order into one whose first computations stand in the given order.
 *
 * Any schedule within the budget shows how each of its ops can be computed from nothing: drop the ops that are no ancestors
 * of this op or come after it, which only frees memory. So: compute op 0 this way from nothing, then forget all results and
 * compute op 1, and so on; runs of ops that the schedule first computes in rising order share one such piece. Afterwards take
 * away, dearest first, every replay without which the schedule still fits.
 *
 * Threads: any. Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_FASTSA_FIRST_H
#define REMAT_OFFLINE_FASTSA_FIRST_H

#include <stdint.h>

#include "offline/solvers/checkmate/checkmate.h"

/* free_order[n_free]: a schedule within c->budget. order has room for cap entries. -ENOSPC: the result would need more;
 * -EINVAL: free_order does not compute every op or does not fit the budget. */
int fastsa_first(const struct checkmate *c, const int32_t *free_order, int32_t n_free, int32_t *order, int32_t cap,
                 int32_t *n_order);

#endif
