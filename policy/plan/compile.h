/* compile.h: a record and a plan as tables by position.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_COMPILE_H
#define REMAT_POLICY_COMPILE_H

#include "policy/iteration.h"

/* Derives versions, producers, deaths from the record. */
int compile_index(struct device *d);
/* Takes a plan for the record: checks that it fits, compiles its steps. -EINVAL with a line. `own`: made for our own form
 * of the trace, with holds; else for the trace the user was given (same ops but for the holds). */
int compile_plan(struct device *d, const char *path, bool own);

#endif
