/* active.h: whether the doors hand calls to the engine, and what the engine's own calls leave on the program's stack.
 *
 * Threads: any. Errors: none.
 */
#ifndef REMAT_POLICY_ACTIVE_H
#define REMAT_POLICY_ACTIVE_H

#include <stdatomic.h>
#include <stdbool.h>

/* False: the door must forward the call untouched. About two loads. */
bool eng_active(void);
/* Called by eng_start(), and in a forked child. */
void active_set(bool is_active);

/* What this thread's calls have left on the stack below their door since the door set eng_stack_used to LITTLE: the driver's own call and a few frames
 * around it (LITTLE), or everything from searches to files (MUCH). */
enum eng_stack { ENG_STACK_LITTLE, ENG_STACK_MUCH };
extern _Thread_local enum eng_stack eng_stack_used __attribute__((visibility("hidden"), tls_model("initial-exec")));
/* Whether eng_stack_used matters: false as long as no iteration can be learnt, since memory has never been short and no trace is asked for. */
extern atomic_bool eng_stack_matters __attribute__((visibility("hidden")));

#endif
