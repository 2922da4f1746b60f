/* anneal_first: a first schedule within the limit, built instead of found.
 *
 * While memory is over the limit somewhere, look at the slot where it is highest and at the cells that are held over this slot for later use. Each cell
 * could be away meanwhile: on the host, without waits or with the computation waiting for the copy out, the copy back or both, or given up and replayed.
 * The changes that look cheapest for the bytes they take off the stretches over the limit are tried, and the cheapest of those tried stays.
 *
 * A stay that waits on both sides is always possible, and frees the cell's memory for as long as the cell is not used. So where stays may wait
 * (anneal_search_let_wait), the result is a schedule for every limit that holds each op's working set plus the cells too small to
 * be moved: often a dear schedule, which the annealer makes cheaper.
 *
 * Threads: the search's. Errors: 0; -ENOSPC: no change that could be tried takes off more, the changes made so far stay; -ETIME: the deadline; -ENOMEM.
 */
#ifndef REMAT_OFFLINE_ANNEAL_FIRST_H
#define REMAT_OFFLINE_ANNEAL_FIRST_H

#include "offline/solvers/anneal/anneal_search.h"

/* Where a stay with waits keeps its memory free: from its first use to its second, whatever stays are added later (THROUGHOUT); or only where memory is
 * over the limit when the stay is made, so that its copies have the rest of the time (WHERE_SHORT): cheaper where many copies go over one short peak. */
enum anneal_away { ANNEAL_AWAY_THROUGHOUT, ANNEAL_AWAY_WHERE_SHORT };

/* Starts from the search's schedule as it stands. thrift: part of a copy's time that counts as cost where the computation does not wait for the copy:
 * this keeps the copy engines for cells that are dear to get back otherwise. deadline_s: solver_now_s clock. */
int anneal_first(struct anneal_search *s, double thrift, enum anneal_away away, double deadline_s);

#endif
