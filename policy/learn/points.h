/* points.h: addresses that lie in buffers of a trial. A kernel may have put an address there for another kernel to follow, in this iteration or long before: the buffer that the
 * address points at stays in memory, and is there from now on, if there is room; the buffer in which the address lies is marked (slot.points).
 *
 * Large buffers are not looked at. The device looks first (hashing_find), and most buffers hold no word that could be an address; the host reads the others.
 *
 * Threads: under the engine's mutex; all that ran has ended. Errors: none: where memory cannot be read nothing is found.
 */
#ifndef REMAT_POLICY_POINTS_H
#define REMAT_POLICY_POINTS_H

#include "policy/learn/trial.h"

/* Looks for addresses in the trial's buffers that were written, and not looked at since; */
void points_look_older(struct trial *t);
/* in the trial's buffers that the op has changed. */
void points_look_changed(struct trial *t);

#endif
