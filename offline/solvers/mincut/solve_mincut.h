/* solve_mincut.h: the solver `mincut`, for solvers that start from its plan. Threads: no shared state; errors as solver.h says. */
#ifndef REMAT_OFFLINE_SOLVE_MINCUT_H
#define REMAT_OFFLINE_SOLVE_MINCUT_H

#include "offline/solvers/solver.h"

extern const struct solver solver_mincut;

#endif
