/* foreign.h: memory of the program's own: counted against the limit, looked up by address, never evicted. A key is an address, or a handle.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_FOREIGN_H
#define REMAT_POLICY_MEMORY_FOREIGN_H

#include "policy/device.h"

struct slot;

/* What an allocation of the program's own takes on the device: drivers hand out whole units. */
static inline uint64_t foreign_counted(uint64_t bytes) { return bytes > ~511ull ? ~511ull : (bytes + 511) & ~511ull; }
int foreign_init(struct device *d);
/* A context is gone, and all with it that is no block of the program's own (cuMemCreate), which are no context's. */
void foreign_context_gone(struct device *d);
/* The live range that ptr lies in, or NULL. */
struct slot *foreign_lookup(struct device *d, CUdeviceptr ptr);
void foreign_add(struct device *d, uint64_t key, uint64_t bytes, bool is_range); /* its bytes are counted already */
/* So many bytes, of a key that is forgotten, have been given back in stream t: counted until the stream has come to that. */
void foreign_leaves(struct device *d, uint64_t bytes, unsigned t);
/* Looks, without waiting, which of these streams have come to it; */
void foreign_look(struct device *d);
/* waits for the first that has not: false where there is none, or the wait is put off (fence.h). */
bool foreign_wait(struct device *d);
/* Forgets the key; its bytes stay counted until the driver has really freed them. */
bool foreign_detach(struct device *d, uint64_t key, uint64_t *bytes, bool *is_range);
/* The program has graphs, or had: what the driver holds for their allocation nodes counts, as much as it says now. */
void foreign_graphs(struct device *d);

#endif
