/* cover.h: plans from the covering program, and a proved bound on how far they are from the best plan.
 *
 * For a limit: cuts at single instants (cover_cut.h) say where memory is shortest and the least cost of the replays.
 * The program over a few instants (cover_milp.h) says which values to give up over which gaps; sched_realize makes the
 * plan, the simulator judges it, and the instant at which the plan is over the limit is added to the program (a
 * lazy constraint) or, if the program had it already, gets more room to spare: the program does not see the memory
 * between instants, such as a replay's own working set. At the end sched_fill uses up the room left over, and the annealer
 * improves the plan for a counted number of mutations.
 *
 * Everything is counted, nothing is timed: the same graph and limit give the same plan on every machine, unless the
 * deadline strikes, which is a safety net.
 *
 * Threads: a struct cover belongs to one thread. Errors: 0 or a negative errno; NULL: no memory.
 */
#ifndef REMAT_OFFLINE_COVER_H
#define REMAT_OFFLINE_COVER_H

#include "offline/model/plan.h"
#include "offline/model/sched.h"
#include "offline/solvers/cover/cover_cut.h"

struct cover {
    const struct graph *g;
    struct sched *s;
    struct cover_cut **cut; /* [n_ops] made when first asked for; NULL: not yet */
    struct anneal_model *model, *long_model; /* made when first needed; long_model: with units of any length */
    int any_length;         /* annealed plans may replay units of any length: long_model is used */
    double deadline_s;      /* solver_now_s clock; 0: none */
};

enum { COVER_TOP = 6 };

/* The best instants for a limit. */
struct cover_bound {
    int impossible;          /* proved: no schedule without copies keeps the limit */
    double ns;               /* proved: no schedule without copies spends less on replays */
    int32_t top[COVER_TOP];  /* ops, by falling bound, a few ops apart */
    int n_top;
};

/* A request to cover_plan. */
struct cover_ask {
    int64_t limit_bytes;
    int64_t bound_bytes; /* the limit that is to be bounded: limit_bytes or a little more */
    double beaten_ns;    /* replay time of a plan that the caller has; 0: none */
    int thorough;        /* where the plan is far from the bound, search longer */
};

#endif
