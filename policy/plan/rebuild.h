/* rebuild.h: leaving a plan in the middle without losing a value.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_REBUILD_H
#define REMAT_POLICY_REBUILD_H

#include "policy/plan/cursor.h"

/* Brings every value that the program holds into memory or to the host. 0, or a negative errno: some values are gone. */
int rebuild_all(struct device *d, unsigned t);
/* Makes the program's value of b alone. Values of the program that were in memory or on the host still are; values made on the way go again. */
int rebuild_one(struct device *d, int32_t b, unsigned t);
/* The program holds a value of b that is neither in memory nor on the host. */
bool rebuild_owed(struct device *d, int32_t b);
/* [n_bufs] 1: rebuild_all() would begin from the buffer's present content, now or after the op at `at`, which comes next. The caller frees the
 * array; NULL: no memory. */
uint8_t *rebuild_sources(struct device *d, uint32_t at);

#endif
