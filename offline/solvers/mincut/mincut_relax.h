/* mincut_relax.h: decisions improved by lifting bans one by one. Threads and errors: as mincut.h says. */
#ifndef REMAT_OFFLINE_MINCUT_RELAX_H
#define REMAT_OFFLINE_MINCUT_RELAX_H

#include "offline/solvers/mincut/mincut_try.h"

/* Bans by the book, then lifted one by one, cheapest time per byte first, until the plan is within the limit; then
 * those put back that were lifted for nothing, dearest first. */
int mincut_relax(struct mincut *m, struct mincut_try *t, double until_s);

#endif
