/* elide.h: replays that only holds ask for, left out once they are proved. A part of compiling (compile.c).
 *
 * Pure data. Errors: -ENOMEM.
 */
#ifndef REMAT_POLICY_ELIDE_H
#define REMAT_POLICY_ELIDE_H

#include "policy/plan/compiled.h"
#include "tracer/record.h"

/* Marks the replays that are left out once they are proved (p->elided), and how long buffers must keep their addresses for that (p->last_ref,
 * p->relied). */
int elide_replays(const struct record *r, struct compiled *p);

#endif
