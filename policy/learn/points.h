/* points.h: addresses that lie in buffers of a trial. A kernel may have put them there for another one to follow, in this iteration or long before: what they
 * point at stays in memory, and is there from now on, if there is room; the buffer is marked (slot.points).
 *
 * Large buffers are not looked at. The device looks first (hashing_find), and most buffers hold no word that could be an address; the host reads the others.
 *
 * Threads: under the engine's mutex; all that ran has ended. Errors: none: where memory cannot be read nothing is found.
 */
#ifndef REMAT_POLICY_POINTS_H
#define REMAT_POLICY_POINTS_H

#include "policy/learn/trial.h"

/* In buffers that nobody has looked at since they were written; */
void points_look_older(struct trial *t);
/* in those that the op has changed. */
void points_look_changed(struct trial *t);

#endif
