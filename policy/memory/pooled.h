/* pooled.h: pools of the driver's own that memory of the program's comes from (what is allocated while a stream is captured; pools that are opened to a
 * peer, or shareable). What is freed stays the pool's, up to its release threshold or until the host synchronises: it is on the device. So not the
 * allocations count, but what each pool says that it has reserved; and before memory is refused the pools are trimmed.
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

/* Memory has come from this pool, or is about to: the pool counts from now on. False: it cannot, so the memory is to be counted. */
bool pooled_note(struct device *d, CUmemoryPool pool);
/* What the pools have reserved now counts. */
void pooled_look(struct device *d);
/* The same after they have given back what nobody uses. */
void pooled_trim(struct device *d);
/* The pool is destroyed; what is left of it counts otherwise from now on. */
void pooled_gone(struct device *d, CUmemoryPool pool);
/* With its context everything is. */
void pooled_forget(struct device *d);

#endif
