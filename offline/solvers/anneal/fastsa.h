/* fastsa: annealing of whole schedules for checkmate graphs, after FastSA ("fast simulated annealing" of
 * rematerialization and op order at once).
 *
 * The paper's search, and the files here:
 *   state        a row of slots, ops in some of them, the rest empty; order is free (fsa_row.h)
 *   moves        compute an op in an empty slot, take an op away, swap an op with an empty slot (fsa_move.h)
 *   objective    f = max(budget, peak) * cost; recipes marked `paper` anneal exactly this
 *   acceptance   exp(-(f' - f) / T), T geometric from 0.1 % of the first f downwards
 * Paper recipes alone meet tight budgets late, since their objective sees one item, the fullest. The other recipes minimize
 *   g = cost + w * excess, excess = sum over the items of max(0, use - budget),
 * which feels every item above the budget; w rises while the schedule is too large and falls while it fits, so that the
 * search walks along the boundary (a subgradient step on the budget's multiplier). Runs start afresh or from the best
 * schedule, cooler; each turn through the recipes doubles their length. In place of the paper's first stage on grouped
 * ops, a move may build a chain of replays at once; in place of its log-add-exp tree, the sum of excesses. Measured, in any order, 20 s of
 * CPU time (Xeon, 2.5 GHz), the paper's objective without chains against this search: RL1 at 70 % no schedule against 2.14 %, at
 * 80 % 1.28 % against 0.00 (in 5 s), RL2 at 70 % 1.16 % against 0.57. (The paper's own first stage was not built.)
 *
 * Lengths are counted in moves and everything is drawn from the seed; a run also takes no more than a share of the time
 * allowed, and cools faster where the share is short, so that a busy machine gets fewer runs but whole ones.
 *
 * In the given order (reorder 0) schedules are Checkmate's: stages, rising within (FSA_STAGES). Where no such schedule is soon
 * found, first computations stay in order and replays may stand anywhere (FSA_FIRSTS): any schedule in free order can be turned into
 * such a row, op by op (fastsa_first.h). The row is then straightened: annealed at a price on every bend (a replay that a node of no larger
 * number follows) which rises until no bend is left; a row without bends consists of Checkmate's stages. If straightening fails in its part of
 * the time, the answer keeps its bends (`staged` is 0).
 *
 * Threads: one; several may solve at once. Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_FASTSA_H
#define REMAT_OFFLINE_FASTSA_H

#include <stdint.h>

#include "offline/solvers/checkmate/checkmate.h"

struct fastsa_opts {
    uint64_t seed;
    int reorder;
    double deadline_s;  /* solver_now_s */
    int64_t moves;      /* stop after this many; 0: no limit */
};

struct fastsa_answer {
    int found;
    int32_t *order;     /* owned: nodes as they are computed; free with fastsa_answer_free */
    int32_t n;
    int64_t cost, peak; /* checkmate_sequence: exact; peak includes c->fixed */
    int staged;         /* 1: Checkmate's R and S can express the order */
    int in_order;       /* nodes are first computed in the given order */
    int64_t moves;
    int runs;
};

/* The best schedule found within c->budget. A schedule without a replay is the cheapest and ends the search. */
int fastsa_solve(const struct checkmate *c, const struct fastsa_opts *opts, struct fastsa_answer *out);
void fastsa_answer_free(struct fastsa_answer *a);

#endif
