/* ranges.h: ranges of addresses, none reaching into another, and which of them an address lies in: one bisection. Made for questions that are
 * asked about every word of a launch's arguments.
 *
 * Depends on the C library alone. Threads: none of its own. Errors: -ENOMEM: nothing is added.
 */
#ifndef REMAT_POLICY_MEMORY_RANGES_H
#define REMAT_POLICY_MEMORY_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint64_t at, bytes;
};

/* All zeros: no ranges. ranges_free() gives the memory back, and leaves no ranges. */
struct ranges {
    struct range *range; /* by address */
    uint32_t n, cap;
    uint64_t low, span; /* low: start of the first range; span: bytes from low to the end of the last */
};

/* Adds a range; earlier ranges that it overlaps are removed. */
int ranges_add(struct ranges *r, uint64_t at, uint64_t bytes);
/* Removes the range that begins at `at`. Its bytes; 0: there was none. */
uint64_t ranges_remove(struct ranges *r, uint64_t at);
/* Bytes from p to the end of its range; 0: p lies in no range. */
uint64_t ranges_left(const struct ranges *r, uint64_t p);
/* False: p lies in no range. One subtraction and one comparison. */
static inline bool ranges_may_hold(const struct ranges *r, uint64_t p) { return p - r->low < r->span; }
static inline bool ranges_hold(const struct ranges *r, uint64_t p) { return ranges_may_hold(r, p) && ranges_left(r, p); }
void ranges_free(struct ranges *r);

#endif
