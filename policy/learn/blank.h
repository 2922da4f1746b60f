/* blank.h: which bytes of a buffer nothing has written since it was allocated, as a short sorted list of ranges. Learnt by filling fresh memory
 * with one poison and then with another: bytes that differ between two otherwise equal runs of an op were not written by the op, or were
 * made of unwritten bytes. A byte that is not blank is *defined*: only defined bytes are ever compared.
 *
 * Pure data. Threads: one owner. Errors: -E2BIG when there would be more than BLANK_MAX ranges: the list is then as before.
 */
#ifndef REMAT_POLICY_BLANK_H
#define REMAT_POLICY_BLANK_H

#include "tracer/record.h"

enum { BLANK_MAX = 64 };

struct blank {
    uint32_t n;
    struct rec_range r[BLANK_MAX]; /* in rising order, never touching each other */
};

void blank_all(struct blank *b, uint64_t bytes);
bool blank_is_all(const struct blank *b, uint64_t bytes);
/* The bytes [from, to) were written. */
int blank_remove(struct blank *b, uint64_t from, uint64_t to);
/* The bytes [from, to) were not written, or were made of blank bytes. */
int blank_add(struct blank *b, uint64_t from, uint64_t to);
/* The bytes in which two contents x and y of a buffer differ. */
int blank_of_difference(struct blank *b, const unsigned char *x, const unsigned char *y, uint64_t bytes);
/* The defined ranges of a buffer of `bytes`, into out[BLANK_MAX + 1]; their number. */
uint32_t blank_defined(const struct blank *b, uint64_t bytes, struct rec_range *out);

#endif
