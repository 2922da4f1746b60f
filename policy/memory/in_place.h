/* in_place.h: memory that host and device both reach: what the program has pinned, or registered, and managed memory. The host writes it
 * without a call. Addresses of ours that lie there and are given to a kernel by the list are shown by no argument (reach.c).
 *
 * Kept per process, as ranges of unified addresses: one is the same for host and device. A range may have gone with its context, and
 * nobody said so: whoever reads one asks the driver first.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_IN_PLACE_H
#define REMAT_POLICY_IN_PLACE_H

#include "policy/memory/ranges.h"

extern struct ranges in_place;

/* Memory that kernels reach and that neither a slot nor `in_place` stands for: addresses that the program reserves and maps itself (symmetric
 * memory does), opened from another process, imported, shared with a graphics interface, of pools that lie on the host. Nobody sees what changes
 * it, so a list that holds such an address makes whoever follows it a launch that is never repeated. A range may stay here after its memory has
 * gone: a list is then taken for one of addresses without need, which is safe. */
extern struct ranges in_place_outside;

/* The address lies in memory of either kind. */
static inline bool in_place_or_outside(uint64_t p) { return ranges_hold(&in_place, p) || ranges_hold(&in_place_outside, p); }

#endif
