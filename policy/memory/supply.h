/* supply.h: one more chunk from the driver, or one back to it: the limit is kept here.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_SUPPLY_H
#define REMAT_POLICY_MEMORY_SUPPLY_H

#include "policy/device.h"

/* True where `bytes` more would pass the limit, even after all that may lower the count: frees that streams have come to, the driver's pools and
 * graph memory counted anew, and unused memory of both given back. */
bool supply_is_short(struct device *d, uint64_t bytes);
/* Creates one more chunk, free; -1: limit reached or the driver refused, and learning holds nothing to spare. */
int32_t supply_chunk(struct device *d);
/* After an out of memory: logs one line more where memory is short by the driver, not by the limit. */
void supply_say_short(struct device *d);
/* Gives a free chunk back to the driver. */
int supply_release(struct device *d, int32_t c);
/* Bytes that a plan may count on in all: device.mem.plan_limit_bytes, or less where something else holds the device's memory. supply_max_chunks() gives them in chunks (arenas
 * included), without the program's own memory and remat's own outside every slot. */
uint64_t supply_for_plan_bytes(const struct device *d);
uint64_t supply_max_chunks(struct device *d);

#endif
