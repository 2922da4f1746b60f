/* frontier: the states that a best-first search has reached and not expanded, the most promising first (a binary heap).
 *
 * Least f first; among equal f the state furthest along, so that ties dive.
 *
 * Threads: a frontier belongs to one thread. Errors: frontier_push, -ENOMEM (nothing changed). */
#ifndef REMAT_OFFLINE_FRONTIER_H
#define REMAT_OFFLINE_FRONTIER_H

#include <stdint.h>

struct frontier_entry {
    int64_t f;     /* cost so far plus the estimated cost to the end */
    int64_t along; /* how far along the state is, in whatever measure */
    int32_t state;
};

struct frontier { /* zeroed before use */
    struct frontier_entry *heap; /* owned */
    int32_t n, room;
};

int frontier_push(struct frontier *q, struct frontier_entry x);
struct frontier_entry frontier_pop(struct frontier *q); /* q->n > 0 */
void frontier_free(struct frontier *q);

#endif
