/* elide.h: replays that only holds ask for, left out once they are proved.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_ELIDE_H
#define REMAT_POLICY_ELIDE_H

#include "policy/iteration.h"

/* Which replays are left out once they are proved, and how long buffers must keep their addresses for that. 0 or -ENOMEM. */
int elide_replays(struct device *d);
/* Position `at` refers to buffer b. */
static inline void elide_refer(struct device *d, int32_t b, int32_t at)
{
    if (d->ex->last_ref[b] < at)
        d->ex->last_ref[b] = at;
}

#endif
