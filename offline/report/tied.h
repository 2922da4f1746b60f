/* tied.h: which op of the forward pass each op of the backward pass belongs to.
 *
 * Nothing in a trace says so: autograd runs on a thread of its own, whose stack has no line of the program. The data says it. An op of the backward
 * pass reads what its forward op read or made (a product's backward reads the weight), and autograd runs backward in the reverse of forward's order:
 * of all assignments that go back through the forward pass without turning, the one with the most shared buffers is taken, a buffer that many ops use
 * counting for less. An op that shares nothing (a bias's sum, a gradient's addition) belongs where the op before it does.
 *
 * Threads: no shared state.
 */
#ifndef REMAT_OFFLINE_TIED_H
#define REMAT_OFFLINE_TIED_H

#include "offline/model/graph.h"

/* [n_ops], the caller's: the forward op; -1 for ops outside of the backward pass and where nothing tells. phase[n_ops]: enum graph_phase.
 * NULL: no memory. */
int32_t *tied_ops(const struct graph *g, const uint8_t *phase);

#endif
