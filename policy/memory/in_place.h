/* in_place.h: memory that host and device both reach: memory that the program has pinned or registered, and managed memory. The host writes it
 * without a call. Where a kernel is given a list in such memory, addresses of ours in the list are shown by no argument (reach.c).
 *
 * Kept per process, as ranges of unified addresses, which are the same for host and device. A range may have gone with its context without
 * a call: ask the driver before reading one.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_IN_PLACE_H
#define REMAT_POLICY_IN_PLACE_H

#include "policy/memory/ranges.h"

extern struct ranges in_place;

/* Memory that kernels reach and that neither a slot nor `in_place` stands for: addresses that the program reserves and maps itself (symmetric
 * memory does), memory opened from another process, imported, shared with a graphics interface, or of pools that lie on the host. No door sees
 * what changes it, so a launch that follows a list with such an address is never repeated. A range may stay here after its memory has
 * gone: a list is then taken for a list of addresses without need, which is safe. */
extern struct ranges in_place_outside;

/* The address p lies in `in_place` or in `in_place_outside`. */
static inline bool in_place_or_outside(uint64_t p) { return ranges_hold(&in_place, p) || ranges_hold(&in_place_outside, p); }

#endif
