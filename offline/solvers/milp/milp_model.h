/* milp_model.h: a small trace as sets of values, for the exact solvers.
 *
 * Every value that may leave memory and come back, or leave early, has a bit. Buffers that exist before the iteration
 * and outlive it have no bits and stay resident, unless an op overwrites them whole: their bytes are a constant and their
 * versions follow the program.
 *
 * Threads: a model does not change once made. Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_MILP_MODEL_H
#define REMAT_OFFLINE_MILP_MODEL_H

#include <stdint.h>

#include "offline/model/graph.h"
#include "offline/model/plan.h"

enum { MILP_VALUES_MAX = 128 };

__extension__ typedef unsigned __int128 milp_set;

static inline milp_set milp_bit(int i) { return (milp_set)1 << i; }
static inline int milp_first(milp_set s)
{
    return (uint64_t)s ? __builtin_ctzll((uint64_t)s) : 64 + __builtin_ctzll((uint64_t)(s >> 64));
}

struct milp_op {
    milp_set in;      /* values a replay needs; the op itself needs in | side_in */
    milp_set side_in;
    milp_set out;     /* values a replay makes; the op itself makes out | side_out */
    milp_set side_out;
    milp_set gone;    /* every version of the buffers that a replay writes */
    milp_set side_gone;
    int32_t until;    /* replays are possible up to just before this op, which changes an input without a bit; -1: never */
    int64_t ns, side_bytes;
};

struct milp_model {
    const struct graph *g;
    int n_ops, n;            /* ops, values with a bit */
    int32_t val[MILP_VALUES_MAX];
    int64_t bytes[MILP_VALUES_MAX];
    milp_set fixed;          /* values that nothing rebuilds */
    int64_t always_bytes;    /* buffers without bits */
    int64_t start_bytes;     /* bytes in use before op 0, whatever the plan */
    struct milp_op *op;      /* [n_ops] */
    milp_set *wanted;        /* [n_ops + 1] values the program itself reads at op t or later, or that must survive */
    milp_set *useful;        /* [n_ops + 1] values something at t or later might want */
    milp_set start;
};

/* -E2BIG: more than MILP_VALUES_MAX values. */
int milp_model_new(const struct graph *g, struct milp_model *m);
void milp_model_free(struct milp_model *m);

/* A schedule is a row of moves, one per op or replay, in order. */
struct milp_move {
    int32_t op;
    uint8_t replay;
    milp_set during; /* resident when it starts, apart from its outputs; other values have been dropped */
    milp_set after;  /* resident when it is done */
};

/* Writes the moves as a plan: drops, `keep` and all. */
int milp_emit(const struct milp_model *m, const struct milp_move *moves, int64_t n, struct plan *out);

struct milp_found {
    int found, proved_optimal, proved_infeasible;
    int64_t replay_ns;   /* replay time of the plan */
    double bound_ns;     /* proved lower bound on the time spent on replays */
    int64_t states;      /* number of states looked at */
};

/* Treat values of fewer than small_bytes as needing no memory. Proofs in this model (a bound, that no plan exists) hold for the
 * trace itself, since each plan of the trace keeps the limit in this model too; a plan found in the model need not keep it in the trace.
 * With small values gone the search has few states, so that traces of more ops can be proved. */
void milp_model_relax(struct milp_model *m, int64_t small_bytes);

/* How long a search may go on. Steps are counted: with a bound on steps alone every machine finds the same result. */
struct milp_effort {
    double until_s;    /* solver_now_s clock; 0: no end */
    int64_t work_most; /* steps (ways of making room tried, states looked at); 0: any number */
};

#endif
