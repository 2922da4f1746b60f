/* chain_solve.h: one entry for all ways to a schedule of a chain. Threads: no shared state. Errors: as chain.h says. */
#ifndef REMAT_OFFLINE_CHAIN_SOLVE_H
#define REMAT_OFFLINE_CHAIN_SOLVE_H

#include "offline/solvers/chain/chain.h"

/* ---- one entry for all ---------------------------------------------------------------------------------------------- */

enum chain_method { CHAIN_PERSISTENT, CHAIN_FLOATING, CHAIN_REVOLVE, CHAIN_CHEN_SQRT, CHAIN_CHEN_GREEDY };

struct chain_answer {
    struct chain_schedule schedule; /* owned by the caller afterwards */
    struct chain_result replayed;   /* result of the exact replay, in the units of the chain given; peak <= budget */
    int64_t slots_used;             /* slots of the dynamic program; 0 for other methods */
    int exact;                      /* 1: sizes were not rounded, the answer is the method's true optimum */
};

/* Best schedule of a method whose replayed peak is within budget. slots > 0: exactly that many slots, sizes rounded up
 * (as in the literature). slots 0: chosen by size, and refined: sizes rounded to nearest too, and budgets tried on
 * both sides of the limit, since only the replay decides. -ENOSPC: none found. */
int chain_solve(const struct chain *c, int64_t budget, enum chain_method method, int64_t slots, struct chain_answer *out);

#endif
