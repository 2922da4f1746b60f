/* checkmate_milp.h: Checkmate's program through CBC, and its rounding. Threads: no shared state. Errors: as checkmate.h says. */
#ifndef REMAT_OFFLINE_CHECKMATE_MILP_H
#define REMAT_OFFLINE_CHECKMATE_MILP_H

#include "offline/solvers/checkmate/checkmate.h"

/* The MILP through CBC. On entry a and p may hold a schedule found already and a proved bound (zeroed: none);
 * on return the best. Beyond a few hundred thousand columns only the first schedule is made. */
int checkmate_milp(const struct checkmate *c, double time_limit_s, struct checkmate_plan *p, struct checkmate_answer *a);

/* The LP relaxation and two-phase rounding (section 5); where no schedule comes of it in time, checkmate_greedy. */
int checkmate_lp_round(const struct checkmate *c, double time_limit_s, uint64_t seed, struct checkmate_plan *p,
                       struct checkmate_answer *a);

/* A first schedule to start from: the best over several spacings of holding every k-th result and the latest few. Stops at
 * until_s (solver_now_s) once it has a schedule. -ENOSPC if it finds none. */
int checkmate_greedy(const struct checkmate *c, double until_s, struct checkmate_plan *p);

#endif
