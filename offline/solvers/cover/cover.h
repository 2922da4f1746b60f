/* cover.h: plans from the covering program, and how near they are to the best there is.
 *
 * For a limit: cuts at single instants (cover_cut.h) say where memory is shortest and what the replays must cost at least.
 * The program over a few instants (cover_milp.h) says which values to give up over which gaps; sched_realize makes the
 * plan, the simulator judges it, and where it is over the limit the program gets the instant that it had not looked at (a
 * lazy constraint), or more room to spare at one that it had: what happens between instants, such as a replay's own
 * working set, the program does not see. Then the room left over is used up (sched_fill), and the annealer goes over the
 * plan for a counted number of mutations.
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
    int any_length;         /* plans of the annealer's may replay these */
    double deadline_s;      /* solver_now_s clock; 0: none */
};

enum { COVER_TOP = 6 };

/* The best instants for a limit. */
struct cover_bound {
    int impossible;          /* proved: no schedule without copies keeps the limit */
    double ns;               /* proved: none spends less than this on replays */
    int32_t top[COVER_TOP];  /* ops, by falling bound, a few ops apart */
    int n_top;
};

/* What is asked of cover_plan. */
struct cover_ask {
    int64_t limit_bytes;
    int64_t bound_bytes; /* the limit that is to be bounded: limit_bytes or a little more */
    double beaten_ns;    /* the caller has a plan with so much of replays; 0: none */
    int thorough;        /* where the plan is far from the bound, go on looking */
};

#endif
