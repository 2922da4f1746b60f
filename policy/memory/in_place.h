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

#endif
