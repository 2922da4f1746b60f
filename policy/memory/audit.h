/* audit.h: the equations of device memory, looked at over all slots and chunks:
 *   a chunk of a slot lies at the page that it says, and the slot is in memory; a slot in memory has chunks of its own at all its pages;
 *   a slot that is on the host has its copy there; chunks that are free, given back and in arenas are as many as is counted;
 *   no fence speaks of what has yet to be queued.
 *
 * Threads: under the engine's mutex; between two ops. Errors: none; what does not hold fails an rt_check (process/check.h).
 */
#ifndef REMAT_POLICY_MEMORY_AUDIT_H
#define REMAT_POLICY_MEMORY_AUDIT_H

struct device;

/* Some ten nanoseconds a slot and a chunk. */
void audit_memory(struct device *d);

#endif
