/* room.h: room on the device for memory outside the slots: the program's own, the driver's needs, a neighbour's, the page of decoys.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_ROOM_H
#define REMAT_POLICY_MEMORY_ROOM_H

#include "policy/device.h"

/* Makes at least `bytes` of physical room for memory outside the slots: evicts and releases chunks, but neither while a stream is captured. 0 or -ENOMEM. */
int room_make(struct device *d, uint64_t bytes);
/* Gives `bytes` back to the driver, as far as anything can move: free chunks first, then those of least recently used slots, which are swapped
 * out. Returns the bytes given. No plan may be installed. */
uint64_t room_give(struct device *d, uint64_t bytes);
/* Gives at least `bytes` back to the driver, which needs them for something of its own. A plan may be in force: it swaps what it lacks then.
 * Operands of the op at hand stay. Returns the bytes given: 0 where nothing can move. */
uint64_t room_give_driver(struct device *d, uint64_t bytes);
/* Gives back all free chunks, empty pages of arenas, and the pages that learning has for copies set aside. */
void room_give_free(struct device *d);
/* Bytes of pages that nothing can move: the program's own, remat's own, those of small tensors, and those of pinned slots (something reaches them unseen). */
uint64_t room_fixed_bytes(struct device *d);

/* Makes the page that decoys are made of, before a plan takes all memory. 0 also where it is there. -ENOMEM: there is no room. */
int room_for_decoys(struct device *d);
/* The decoy of [at, at + bytes], of unknown content; the page of decoys is made where it is not there. 0: no decoy can be had. */
CUdeviceptr room_decoy(struct device *d, CUdeviceptr at, uint64_t bytes);

#endif
