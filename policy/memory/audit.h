/* audit.h: the equations of device memory, looked at over all slots and chunks:
 *   a chunk that a slot owns is mapped at page chunk.page of the slot, which is RESIDENT; a RESIDENT slot owns the chunks of all its pages, or is lodged;
 *   a HOST slot has slot.host; the counts of chunks that are free, given back and in arenas are right;
 *   no fence has a point that has yet to be queued.
 *
 * Threads: under the engine's mutex; between two ops. Errors: none; an equation that does not hold fails an rt_check (process/check.h).
 */
#ifndef REMAT_POLICY_MEMORY_AUDIT_H
#define REMAT_POLICY_MEMORY_AUDIT_H

struct device;

/* Takes some ten nanoseconds for each slot and each chunk. */
void audit_memory(struct device *d);

#endif
