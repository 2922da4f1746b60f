/* pooled.h: pools of the driver's own that memory of the program's comes from (memory allocated while a stream is captured; pools that are opened to a
 * peer, or shareable). Freed memory stays the pool's, and on the device, up to the pool's release threshold or until the host synchronises. So the bytes
 * that each pool says it has reserved count, not the allocations; and the pools are trimmed before memory is refused.
 *
 * Example: 40 MiB from the default pool, whose threshold a program has raised, are freed: 40 MiB go on counting, until 60 MiB are asked for
 * under a limit of 64.
 *
 * Who calls: foreign.c and supply.c, when memory is short; allocations.c, round the driver's calls. Threads: under the engine's mutex. Errors: a driver that does
 * not say what a pool has reserved counts by the allocation (pooled_note() answers false).
 */
#ifndef REMAT_POLICY_MEMORY_POOLED_H
#define REMAT_POLICY_MEMORY_POOLED_H

#include "policy/device.h"

/* Memory has come from this pool, or is about to: the pool counts from now on. False: the pool cannot be counted, so the caller counts the allocation. */
bool pooled_note(struct device *d, CUmemoryPool pool);
/* Asks the driver what each pool has reserved now, and counts that. */
void pooled_look(struct device *d);
/* Makes the pools give unused memory back, then counts as pooled_look() does. */
void pooled_trim(struct device *d);
/* The pool is destroyed: its bytes come off the count. The caller counts the blocks left of it. */
void pooled_gone(struct device *d, CUmemoryPool pool);
/* The context is gone, and every pool with it. */
void pooled_forget(struct device *d);

#endif
