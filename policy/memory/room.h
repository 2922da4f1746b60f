/* room.h: room on the device for what is not a slot: memory of the program's own, the driver's needs, a neighbour's, the page of decoys.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_ROOM_H
#define REMAT_POLICY_MEMORY_ROOM_H

#include "policy/device.h"

/* At least `bytes` of physical room for something that is not ours (evicts, releases chunks; while a stream is captured neither). 0 or -ENOMEM. */
int room_make(struct device *d, uint64_t bytes);
/* Gives `bytes` back to the driver, as far as anything can move: what is free first, then least recently used by swap. Returns
 * what has been given. No plan may be installed. */
uint64_t room_give(struct device *d, uint64_t bytes);
/* At least `bytes` back to the driver, which needs them for something of its own; a plan may be in force: what it lacks then it swaps. What
 * the op at hand touches stays. What has been given: 0 where nothing can move. */
uint64_t room_give_driver(struct device *d, uint64_t bytes);
/* All that is free, too, and what learning holds. */
void room_give_free(struct device *d);
/* Bytes of pages that nothing can move: the program's own, remat's own, those of small tensors, and what something reaches unseen. */
uint64_t room_fixed_bytes(struct device *d);

/* Before a plan takes all memory: the page that decoys are made of. -ENOMEM: there is no room. */
int room_for_decoys(struct device *d);
/* A decoy of [at, at + bytes], of unknown content, with a page made for it where there is none. 0: there is none. */
CUdeviceptr room_decoy(struct device *d, CUdeviceptr at, uint64_t bytes);

#endif
