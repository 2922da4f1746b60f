/* From a graph to a plan by annealing, for the solvers `anneal` and `auto`.
 *
 * Threads: no shared state. Errors: 0 or negative errno; -ENOSPC: no schedule within the limit found.
 */
#ifndef REMAT_OFFLINE_SOLVE_ANNEAL_H
#define REMAT_OFFLINE_SOLVE_ANNEAL_H

#include "offline/solvers/anneal/anneal_search.h"
#include "offline/solvers/solver.h"

/* Anneal until deadline_s (solver_now_s clock) or until nothing gets better. The first best is the cheapest of the seeds' schedules
 * and, with dtr, of those of the dynamic tensor rematerialization variants; seeds over the limit are places to start from. *out gets a
 * plan that sim_run accepts; rep its figures. */
int anneal_solve(const struct graph *g, const struct solver_opts *opts, double deadline_s, int patience,
                 const struct plan *const *seeds, int n_seeds, int dtr, struct plan *out, struct solver_report *rep);

/* One of two searches (side 0 and 1), each in a thread of its own, that share their best schedule through the pool and end when more
 * searching is not worth the time (anneal_pool.h). seed: a plan to begin with, or NULL. */
int anneal_solve_side(const struct graph *g, const struct solver_opts *opts, double deadline_s, const struct plan *seed, struct anneal_pool *pool,
                      int side, struct plan *out, struct solver_report *rep);

/* Anneal on from a plan, with another random seed; *plan and *rep change where a cheaper plan is found. */
int anneal_go_on(const struct graph *g, const struct solver_opts *opts, double deadline_s, int patience, struct plan *plan, struct solver_report *rep);

#endif
