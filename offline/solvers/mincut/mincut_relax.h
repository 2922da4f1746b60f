/* mincut_relax.h: decisions improved by lifting bans one by one. Threads and errors: as mincut.h says. */
#ifndef REMAT_OFFLINE_MINCUT_RELAX_H
#define REMAT_OFFLINE_MINCUT_RELAX_H

#include "offline/solvers/mincut/mincut_try.h"

/* Starts with the paper's bans and lifts them one by one, cheapest time per byte first, until the plan is within the limit;
 * then puts back bans that were lifted in vain, dearest first. */
int mincut_relax(struct mincut *m, struct mincut_try *t, double until_s);

#endif
