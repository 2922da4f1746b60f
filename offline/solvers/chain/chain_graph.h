/* Chains out of graphs, and plans out of chain schedules.
 *
 * The forward part of an iteration is cut into stages at positions between ops. The values that cross a cut forwards are the
 * a of the stage before it; the values a stage makes that cross its end, or that the backward reads, are its abar. Cuts are
 * articulation points (one buffer crosses), or any positions where few bytes cross: in this case the chain is the linearized
 * order, and all crossing values travel together. The sizes only steer the dynamic program: a plan is judged by the simulator.
 *
 * Threads: a chain_graph belongs to one thread. Errors: 0 or negative errno.
 */
#ifndef REMAT_OFFLINE_CHAIN_GRAPH_H
#define REMAT_OFFLINE_CHAIN_GRAPH_H

#include "offline/solvers/chain/chain.h"
#include "offline/model/graph.h"
#include "offline/model/sched.h"

enum chain_cuts {
    CHAIN_ARTICULATION, /* cuts crossed by one buffer, small buffers not counted */
    CHAIN_LINEARIZED    /* cuts between any two ops, merged to at most max_stages */
};

struct chain_way {
    enum chain_cuts cuts;
    int32_t max_stages;
    double cheap;    /* share (0 to 1) of the bytes saved for the backward that no stage saves: the values quickest to make
                        per byte, which are rebuilt when the backward reads them */
    int eager;       /* the backward of a stage begins at the first op that reads one of its values, not where later stages
                        are done: better for skip connections, worse for masks that every layer reads */
    double optimism; /* 0: overheads and gradients as estimated; 1: both ignored, for schedules the estimate would refuse */
};

/* A stage's value lists: vals[at .. at + n). */
struct chain_list {
    int32_t at, n;
};

struct chain_graph {
    const struct graph *g;
    struct chain c;          /* the chain, in bytes and ns; no loss stage: the last stage ends where the backward starts */
    int32_t n_forward;       /* ops [0, n_forward) are the forward part */
    int32_t *end;            /* [n + 1] stage l is ops [end[l - 1], end[l]) */
    int32_t *back;           /* [n + 2] the backward of stage l begins just before op back[l]; back[0] = n_ops */
    struct chain_list *a;    /* [n + 1] values that cross the end of stage l, in order of production */
    struct chain_list *abar; /* [n + 1] values stage l makes that cross its end, or that the backward reads */
    int32_t *vals;
    uint8_t *role;           /* [n_vals] enum chain_role */
};

enum chain_role {
    CHAIN_OUTSIDE, /* value not made in the forward part, small, fixed, or read by the backward before its stage's turn: kept */
    CHAIN_SAVED,   /* a stage may save it */
    CHAIN_CHEAP    /* rebuilt when read; crosses cuts like any other */
};

/* *out is NULL where the trace has no forward part that can be cut (-ENOTSUP). */
int chain_graph_new(const struct graph *g, const struct chain_way *way, struct chain_graph **out);
void chain_graph_free(struct chain_graph *cg);

#endif
