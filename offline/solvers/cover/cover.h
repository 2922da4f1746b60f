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

struct cover *cover_new(const struct graph *g);
void cover_free(struct cover *c);

enum { COVER_TOP = 6 };

/* The best instants for a limit. */
struct cover_bound {
    int impossible;          /* proved: no schedule without copies keeps the limit */
    double ns;               /* proved: none spends less than this on replays */
    int32_t top[COVER_TOP];  /* ops, by falling bound, a few ops apart */
    int n_top;
};
int cover_bound(struct cover *c, int64_t limit_bytes, struct cover_bound *b);

/* What is asked of cover_plan. */
struct cover_ask {
    int64_t limit_bytes;
    int64_t bound_bytes; /* the limit that is to be bounded: limit_bytes or a little more */
    double beaten_ns;    /* the caller has a plan with so much of replays; 0: none */
    int thorough;        /* where the plan is far from the bound, go on looking */
};

/* The plan for a limit. 0: *out is filled, judged and within the limit, r is its judgement; -ENOSPC: none found.
 * b->ns and b->impossible are what is known in the end, for limits up to bound_bytes. -ECANCELED as soon as no plan for this
 * limit can be cheaper than the one the caller has, which is found out before the annealer starts. What *out holds is then
 * of no use, b is. */
int cover_plan(struct cover *c, const struct cover_ask *ask, struct plan *out, struct sim_result *r, struct cover_bound *b);

/* For graphs of few ops: what a search proves for which small values need no memory, that nothing keeps the limit or what replays
 * cost at least; has_ns: a plan with so much of replays is known (0: none), and more need not be proved. */
int cover_prove(struct cover *c, int64_t limit_bytes, double has_ns, struct cover_bound *b);

/* What online policies (dtr.h) come to under the limit, if that is better than *p: done in no time. */
int cover_online(struct cover *c, int64_t limit_bytes, struct plan *p, struct sim_result *r);

/* From now on, where there are any, units of more ops than ANNEAL_UNIT_OPS_MAX are replayed too: for limits at which nothing is found
 * without. Whether there are. */
int cover_any_length(struct cover *c);

/* Anneal from the plan (or, if it has no steps, from the program as it is and from what online policies do) for a counted
 * number of mutations and keep what is better; thorough: many more of them where the bound is far. r: judgement of *p, ok only if within the limit. */
int cover_polish(struct cover *c, int64_t limit_bytes, double bound_ns, int thorough, struct plan *p, struct sim_result *r);

#endif
