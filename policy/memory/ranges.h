/* in_place.h: memory that host and device both reach: what the program has pinned, or registered, and managed memory. The host writes it
 * without a call. Addresses of ours that lie there and are given to a kernel by the list are shown by no argument (reach.c).
 *
 * Kept per process, as ranges of unified addresses: one is the same for host and device. A range may have gone with its context, and
 * nobody said so: whoever reads one asks the driver first.
 *
 * Depends on the C library alone. Threads: under the engine's mutex. Errors: -ENOMEM: nothing is remembered.
 */
#ifndef REMAT_POLICY_IN_PLACE_H
#define REMAT_POLICY_IN_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* From the first byte of all ranges to the last. */
struct in_place_span {
    uint64_t low, bytes;
};
extern struct in_place_span in_place_span;

/* What lay there before is gone. */
int in_place_add(uint64_t at, uint64_t bytes);
/* The bytes of the range that begins there; 0: there was none. */
uint64_t in_place_remove(uint64_t at);
/* From p to the end of its range, bytes; 0: it lies in none. */
uint64_t in_place_left(uint64_t p);
/* False: it lies in none. One subtraction and one comparison, for every word of a launch's arguments. */
static inline bool in_place_may_be(uint64_t p) { return p - in_place_span.low < in_place_span.bytes; }

#endif
