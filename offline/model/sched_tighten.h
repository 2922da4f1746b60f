/* sched_tighten.h: a plan without what it does not need. Threads and errors: as sched.h says. */
#ifndef REMAT_OFFLINE_SCHED_TIGHTEN_H
#define REMAT_OFFLINE_SCHED_TIGHTEN_H

#include "offline/model/sched.h"

/* Polish a valid plan without changing what is computed for the program: replays whose outputs nobody uses go,
 * drops move up to just after the last use, a drop is added where a resident value is not used again (or is
 * rebuilt or overwritten before its next use), offloads never used again go, `keep` lists what is still needed.
 * Never raises the peak or the time. Leaves fetch positions alone. */
int sched_tighten(struct sched *s, struct plan *p);

#endif
