/* supply.h: one more chunk from the driver, or one back to it: the limit is kept here.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_SUPPLY_H
#define REMAT_POLICY_MEMORY_SUPPLY_H

#include "policy/device.h"

/* So much more passes the limit, also if streams have come to frees by now, or the driver holds less for graphs or
 * in its pools than when it was asked last, or does when it gives back what nobody uses. */
bool supply_is_short(struct device *d, uint64_t bytes);
/* Creates one more chunk, free; -1: limit reached or the driver refused, and learning holds nothing to spare. */
int32_t supply_chunk(struct device *d);
/* After an out of memory: one line more where the driver, not the limit, is why memory is short. */
void supply_say_short(struct device *d);
/* A free chunk goes back to the driver. */
int supply_release(struct device *d, int32_t c);
/* Bytes that a plan may count on in all: device.mem.plan_limit_bytes, or less where something else holds the device's memory; and these in chunks, without memory that is
 * the program's own or ours outside of every slot, arenas included. */
uint64_t supply_for_plan_bytes(const struct device *d);
uint64_t supply_max_chunks(struct device *d);

#endif
