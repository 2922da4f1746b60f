/* held.h: what a program holds beyond its last use, as a run asks for it.
 *
 * An iteration that goes another way may still read what the program has not freed. So `remat run` follows only plans that can bring each buffer back
 * until it is freed: before it is, and before an op that overwrites it wholly, stands a *hold*, an op of no cost that is never replayed and reads it
 * (record_insert_holds(), tracer/record.h: the same rule). Here a trace gets the same holds, and a plan of the trace with holds becomes one of the trace
 * without them, of the same price.
 *
 * Threads: no shared state. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_OFFLINE_HELD_H
#define REMAT_OFFLINE_HELD_H

#include <stdint.h>

#include "offline/model/graph.h"
#include "offline/model/plan.h"

/* The same iteration with other sizes, bytes[n_bufs], and, if asked for, with holds for all buffers of which some bytes are left. *out is the caller's
 * (graph_free), and *op_of: for each op of *out the op of g that it is, or for a hold -1 - the one that it stands before. */
int held_graph(const struct graph *g, const int64_t *bytes, int with_holds, struct graph **out, int32_t **op_of);

/* `p`, a plan of `held`, which held_graph() has made of g, becomes one of g. What g frees before the holds, and `held` behind them, is kept for the steps
 * in between, where there are any, and dropped after them. */
int held_plan(const struct graph *g, const struct graph *held, const int32_t *op_of, struct plan *p);

#endif
