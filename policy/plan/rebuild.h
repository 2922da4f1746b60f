/* rebuild.h: leaving a plan in the middle without losing a value.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_REBUILD_H
#define REMAT_POLICY_REBUILD_H

#include "policy/plan/cursor.h"

/* Every value that the program holds is in memory or on the host. 0, or a negative errno: some are gone. */
int rebuild_all(struct device *d, unsigned t);
/* The same for b alone; all else is as it was, but what no live buffer needs. */
int rebuild_one(struct device *d, int32_t b, unsigned t);
/* The program holds a value of b that is not there. */
bool rebuild_owed(struct device *d, int32_t b);
/* [n_bufs] whether rebuild_all() would begin from what is in the buffer now, or after the op at `at`, which comes next. For free(); NULL: no
 * memory. */
uint8_t *rebuild_sources(struct device *d, uint32_t at);

#endif
