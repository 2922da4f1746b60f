/* anneal_first: a schedule within the limit to begin with, built instead of found.
 *
 * While memory is over the limit somewhere, look at the slot where it is highest and at the cells that are held over it for later. Each could be
 * away meanwhile: on the host, without waits or with the computation waiting for the copy out, the copy back or both, or given up and replayed. What
 * looks cheapest for the bytes it takes off the stretches over the limit is tried, and the cheapest of what was tried stays.
 *
 * A stay that is waited for on both sides can always be had, and leaves memory for as long as the cell is not used. So where stays may wait
 * (anneal_search_let_wait), the end is a schedule for every limit that holds each op's working set, next to what is too small to
 * be moved: often a dear one, which the annealer makes cheaper.
 *
 * Threads: the search's. Errors: 0; -ENOSPC: nothing that could be tried takes off more, the schedule stands as far as it came; -ETIME: the deadline; -ENOMEM.
 */
#ifndef REMAT_OFFLINE_ANNEAL_FIRST_H
#define REMAT_OFFLINE_ANNEAL_FIRST_H

#include "offline/solvers/anneal/anneal_search.h"

/* Where a stay with waits keeps its memory free: from its first use to its second, whatever stays are added later; or only where memory is over the limit
 * when the stay is made, so that its copies have the rest of the time. The second way is cheaper where many copies go over one short peak. */
enum anneal_away { ANNEAL_AWAY_THROUGHOUT, ANNEAL_AWAY_WHERE_SHORT };

/* From the search's schedule as it stands. thrift: what time of the copy engines costs even where nothing waits, as a part of itself:
 * it keeps them for the cells that are dear to get back otherwise. deadline_s: solver_now_s clock. */
int anneal_first(struct anneal_search *s, double thrift, enum anneal_away away, double deadline_s);

#endif
