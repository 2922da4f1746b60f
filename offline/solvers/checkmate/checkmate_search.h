/* checkmate_search.h: the exact optimum by search. Threads: no shared state. Errors: as checkmate.h says. */
#ifndef REMAT_OFFLINE_CHECKMATE_SEARCH_H
#define REMAT_OFFLINE_CHECKMATE_SEARCH_H

#include "offline/solvers/checkmate/checkmate.h"

/* The exact optimum by best-first search over sets of held results; up to 62 nodes. On entry a may hold a schedule
 * found already (and p with it), which the search only has to beat or confirm. -E2BIG: too many nodes or states;
 * -ETIME; in both cases a->bound may have risen. time_limit_s 0: none. */
int checkmate_search(const struct checkmate *c, double time_limit_s, struct checkmate_plan *p, struct checkmate_answer *a);

#endif
