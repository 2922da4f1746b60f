/* alloc.h: a slot for each allocation, small or large, and its end.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_ALLOC_H
#define REMAT_POLICY_MEMORY_ALLOC_H

#include "policy/device.h"

struct slot;

/* A live slot for `bytes`; a LARGE slot is EMPTY. -ENOMEM when address space or bookkeeping is exhausted. */
int alloc_new(struct device *d, uint64_t bytes, struct slot **out);
/* As alloc_new(), for a program that asks in the order of stream t (slot_take_large). */
int alloc_ordered(struct device *d, uint64_t bytes, unsigned t, struct slot **out);
/* A slot for `bytes`, not live, that is kept for the plan's allocation `ord`. */
int alloc_fixed(struct device *d, uint64_t bytes, int ord, struct slot **out);
/* Makes a fixed slot an ordinary free slot again; a live slot becomes one when it is freed. */
void alloc_unfix(struct device *d, struct slot *s);
/* The program (or a plan) is done with the slot: its memory is free in the order of the streams that used it. */
void alloc_free(struct device *d, struct slot *s);

#endif
