/* ranges.h: stretches of addresses, none reaching into another, and which of them an address lies in: one bisection. For what is asked
 * about every word of a launch's arguments.
 *
 * Depends on the C library alone. Threads: none of its own. Errors: -ENOMEM: nothing is remembered.
 */
#ifndef REMAT_POLICY_MEMORY_RANGES_H
#define REMAT_POLICY_MEMORY_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint64_t at, bytes;
};

/* All zeros: none. ranges_free() gives the memory back, and leaves none. */
struct ranges {
    struct range *range; /* by address */
    uint32_t n, cap;
    uint64_t low, span; /* where the first one begins; bytes from there to the end of the last one */
};

/* What lay there before is gone. */
int ranges_add(struct ranges *r, uint64_t at, uint64_t bytes);
/* The bytes of the range that begins there; 0: there was none. */
uint64_t ranges_remove(struct ranges *r, uint64_t at);
/* From p to the end of its range, bytes; 0: it lies in none. */
uint64_t ranges_left(const struct ranges *r, uint64_t p);
/* False: it lies in none. One subtraction and one comparison. */
static inline bool ranges_may_hold(const struct ranges *r, uint64_t p) { return p - r->low < r->span; }
static inline bool ranges_hold(const struct ranges *r, uint64_t p) { return ranges_may_hold(r, p) && ranges_left(r, p); }
void ranges_free(struct ranges *r);

#endif
