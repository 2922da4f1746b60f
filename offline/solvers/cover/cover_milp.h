/* cover_milp.h: the covering program over several instants at once, for CBC.
 *
 * Instants t_1 < ... < t_K divide the iteration; block k is everything that runs after op t_k, up to and including op t_(k+1)
 * (after op t_K: up to the end). For any schedule without copies to the host let
 *     S(k, v) = 1   value v is in memory while op t_k runs
 *     y(k, p) = 1   op p is replayed at least once in block k
 *     Y(k, p) = 1   op p is replayed at least once after op t_k
 * Then with need(v) short for "v, or a replay of its producer p(v)",
 *     sum over v of bytes x S(k, v)  <=  limit - bytes in memory at t_k whatever the schedule
 *     S(k, v) + y(k, p(v))           >=  1         v used in block k, made before it
 *     S(k, v) + y(k, p(v))           >=  S(k+1, v) v made before block k: it stays or is made again
 *     S(k, u) + y(k, p(u))           >=  y(k, q)   u an input of q, made before block k
 * for each block, and for each instant conditions (1) and (2) of cover_cut.h over everything after the instant,
 *     S(k, v) + Y(k, p(v))           >=  1         v used later
 *     S(k, u) + Y(k, p(u))           >=  Y(k, q)   u an input of q
 *     y(k, q) + y(k+1, q) + ...      >=  Y(k, q)
 * Each line holds because a value that is read was in memory when the block began, or came into memory since, by a run of
 * its producer. The schedule's replays cost at least the sum of ns(q) y(k, q), so the program's least value is a lower bound.
 * The bound ignores the memory between the instants and how often a block replays an op. The lines in Y follow from the
 * others in whole numbers, but not in fractions: without them the linear program brings values back a half at a
 * time from inputs of which only a half is there. Values of less than 1 / COVER_SMALL of the limit are taken to be
 * everywhere at no cost, which again only lowers the bound.
 *
 * Threads: none inside. Errors: 0 or a negative errno; -E2BIG: more columns than COVER_COLS_MAX.
 */
#ifndef REMAT_OFFLINE_COVER_MILP_H
#define REMAT_OFFLINE_COVER_MILP_H

#include <stdint.h>

#include "offline/solvers/cover/cover_cut.h"

/* Programs of more than COVER_COLS_WHOLE columns may take CBC minutes in whole numbers, and only the clock would stop it
 * early: of such a program only the linear relaxation is solved, and its values are rounded. */
enum { COVER_SMALL = 20000, COVER_COLS_MAX = 40000, COVER_COLS_WHOLE = 1300, COVER_INSTANTS_MAX = 32 };

struct cover_milp {
    const struct graph *g;
    struct cover_cut *const *cuts; /* the instants, rising; borrowed */
    int n_cuts;
    int64_t limit_bytes;
    const int64_t *spare_bytes;    /* [n_cuts] room to leave below the limit at each instant, for memory needed between
                                      instants; NULL: none. A program with spare room proves nothing */
    int relaxed;                   /* solve the linear relaxation */
    int max_nodes;                 /* nodes of CBC's search: work is counted, so a slow machine finds the same solution */
    double time_limit_s;           /* rest of the user's time limit; 0: none */
};

struct cover_milp_result {
    int impossible;
    int found;
    double bound_ns; /* lower bound on the value; 0: none */
    double value_ns;
    uint8_t *held;   /* owned; [n_cuts * n_vals of the graph] S of the solution; NULL unless found */
};

int cover_milp_solve(const struct cover_milp *q, struct cover_milp_result *r);
void cover_milp_result_free(struct cover_milp_result *r);

#endif
