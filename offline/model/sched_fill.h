/* sched_fill.h: a plan that uses the room there is. Threads and errors: as sched.h says. */
#ifndef REMAT_OFFLINE_SCHED_FILL_H
#define REMAT_OFFLINE_SCHED_FILL_H

#include "offline/model/sched.h"

/* Use up the room a good, polished plan leaves under the limit: values it drops and replays are kept instead where they
 * fit, most time per byte first, as long as that helps. r gets the judgement of the plan as it stands afterwards; never
 * slower, never over the limit if it was not before. Copies to the host are left alone. 0, or -ENOMEM. */
int sched_fill(struct sched *s, struct plan *p, int64_t limit_bytes, struct sim_result *r);

#endif
