/* ladder.h: plans at fixed limits, so that more memory never costs more.
 *
 * A solver asked for two limits on its own may well find the cheaper plan for the smaller one. So plans are made at the
 * rungs of a ladder only: parts of the unconstrained peak, and the floor. Rungs do not depend on the limit that is asked
 * for. A limit gets the cheapest of the plans of all rungs up to it; the higher of two limits has all rungs of the lower
 * limit to choose from, and perhaps more.
 *
 * Not every rung needs to be solved. Walking down from the limit, no plan of a rung or below it beats the bound that
 * cover_bound proves for the rung; so the walk ends where the bound reaches the best plan found. The bounds that cover_plan
 * proves before it anneals count too: it gives a rung up if the rung cannot beat the best plan found. Before any plan is
 * found, the walk leaps down to the floor first, at whole multiples of ever larger steps, or to where the bound says that no plan
 * can fit; then it looks at the rungs between, since any of them may by chance have a plan that its neighbours miss.
 *
 * Threads: one ladder belongs to one thread; while it walks, rungs are solved two at a time. Errors: 0 or a negative errno; NULL: no memory.
 */
#ifndef REMAT_OFFLINE_LADDER_H
#define REMAT_OFFLINE_LADDER_H

#include "offline/solvers/cover/cover.h"
#include "offline/solvers/cover/cover_bound.h"

struct ladder_rung {
    uint8_t solved, bounded;
    int rc;                  /* result of cover_plan */
    struct plan plan;
    struct sim_result r;
    struct cover_bound b;
};

struct ladder {
    struct cover *c, *other; /* a struct cover for each of two threads; `other` is made when a second thread is first used */
    int32_t n_steps;         /* rung i of 0 .. n_steps - 1 stands at (i + 1) / n_steps of the peak */
    struct ladder_rung *rung; /* [n_steps + 1]; rung[n_steps] is the floor */
};

struct ladder *ladder_new(const struct graph *g);
void ladder_free(struct ladder *l);

/* The plan for a limit and a bound on its cost: 0 with *out filled (within the limit), or -ENOSPC: none was found,
 * b->impossible: proved that none exists. deadline_s: solver_now_s clock, 0: none; after a deadline the plan may be dearer
 * than the plan of a smaller limit. */
int ladder_plan(struct ladder *l, int64_t limit_bytes, double deadline_s, struct plan *out, struct cover_bound *b);

#endif
