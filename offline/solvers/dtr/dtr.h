/* Dynamic tensor rematerialization, in simulation: the schedule of an online policy, which cannot see ahead, on the trace.
 *
 * After Kirisame et al., "Dynamic Tensor Rematerialization" (ICLR 2021). Ops come one by one; when memory runs out the
 * evictable cell with the smallest h is evicted, and missing cells are recomputed, recursively, when an op needs them. Cells
 * that the program frees are evicted at once (the paper's eager eviction); cells no op can rebuild stay.
 *
 *   h = cost / (bytes x staleness)          section 4.1; the variants are those of its appendix C/D
 *
 * Threads: no shared state. Errors: 0, -ENOMEM, -ENOSPC (an op's working set did not fit), -E2BIG (it thrashed).
 */
#ifndef REMAT_OFFLINE_DTR_H
#define REMAT_OFFLINE_DTR_H

#include "offline/solvers/anneal/anneal.h"

enum dtr_h {
    DTR_FULL,  /* cost: own + all evicted neighbours, up and down the graph (e*) */
    DTR_EQ,    /* cost as DTR_FULL, with neighbourhoods as merged classes, never split exactly (the union-find approximation) */
    DTR_LOCAL, /* cost: own */
    DTR_MSPS,  /* cost: own + evicted ancestors, over bytes alone */
    DTR_LRU,   /* 1 / staleness */
    DTR_SIZE,  /* 1 / bytes: the largest goes */
    DTR_N_H
};

const char *dtr_name(enum dtr_h h); /* "h_DTR", "h_DTR_eq", "h_local", "h_MSPS", "h_LRU", "h_size" */

/* The policy's ops and replays under the limit, into row. deadline_s: solver_now_s clock (-ETIME after it), 0: none. */
int dtr_simulate(const struct anneal_model *m, int64_t limit_bytes, enum dtr_h h, double deadline_s, struct anneal_seq *row);

#endif
