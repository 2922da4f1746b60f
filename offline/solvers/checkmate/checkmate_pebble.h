/* checkmate_pebble.h: proves that no order of computations keeps within the budget. Threads: no shared state. */
#ifndef REMAT_OFFLINE_CHECKMATE_PEBBLE_H
#define REMAT_OFFLINE_CHECKMATE_PEBBLE_H

#include "offline/solvers/checkmate/checkmate.h"

/* 1 and a node that cannot be computed within the budget in any order, however often nodes are computed; 0: no such node was
 * found, looking at sets_max sets of results for each node; -ENOMEM. */
int checkmate_hopeless_node(const struct checkmate *c, int sets_max, int *node);

#endif
