/* ladder.h: plans at fixed limits, so that more memory never costs more.
 *
 * A solver asked for two limits on its own may well find the cheaper plan for the smaller one. So plans are made at the
 * rungs of a ladder only: parts of the unconstrained peak, and the floor. They do not depend on the limit that is asked
 * for. A limit gets the cheapest of the plans of all rungs up to it; the higher one of two limits has all rungs of the lower
 * one to choose from, and perhaps more.
 *
 * Not every rung needs to be solved for that. From the rung at the limit down, the plans can only get dearer than what
 * cover_bound proves for their rung, and no plan below a rung beats the rung's bound either; so the walk ends where the
 * bound reaches the best plan at hand. What cover_plan proves before it anneals counts too: it leaves a rung there if that
 * cannot beat the plan at hand. Where not even one plan is at hand the walk leaps down to the floor first, at
 * whole multiples of ever larger steps, or to where the bound says that nothing can fit; then it looks at the rungs between, since each
 * of them may by chance hold the plan that its neighbours do not.
 *
 * Threads: one ladder belongs to one thread; while it walks, rungs are solved two at a time. Errors: 0 or a negative errno; NULL: no memory.
 */
#ifndef REMAT_OFFLINE_LADDER_H
#define REMAT_OFFLINE_LADDER_H

#include "offline/solvers/cover/cover.h"
#include "offline/solvers/cover/cover_bound.h"

struct ladder_rung {
    uint8_t solved, bounded;
    int rc;                  /* of cover_plan */
    struct plan plan;
    struct sim_result r;
    struct cover_bound b;
};

struct ladder {
    struct cover *c, *other; /* one for each thread; the second is made when there is work for it */
    int32_t n_steps;         /* rung i of 0 .. n_steps - 1 stands at (i + 1) / n_steps of the peak */
    struct ladder_rung *rung; /* [n_steps + 1]; the last one is the floor */
};

struct ladder *ladder_new(const struct graph *g);
void ladder_free(struct ladder *l);

/* The plan for a limit and what bounds its cost: 0 with *out filled (it keeps within the limit), or -ENOSPC: none was found,
 * b->impossible: there is none. deadline_s: solver_now_s clock, 0: none; where it strikes, the plan may be dearer than
 * that of a smaller limit. */
int ladder_plan(struct ladder *l, int64_t limit_bytes, double deadline_s, struct plan *out, struct cover_bound *b);

#endif
