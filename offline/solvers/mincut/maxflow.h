/* maxflow.h: minimum cut of a directed network with 64-bit capacities.
 *
 * Highest-label push-relabel (Goldberg & Tarjan 1988; label selection and the
 * two heuristics of Cherkassky & Goldberg 1997: exact labels recomputed by a
 * backward search now and then, and the gap rule). Only the first phase runs:
 * a maximum preflow already fixes the cut. Vertices tied to a terminal by
 * infinite arcs count as that terminal, which keeps every sum finite and
 * leaves out most of a node-split graph's outer vertices.
 *
 * Long skip chains (the residual stream of a transformer) make augmenting-path
 * methods re-scan the chain for each path; push-relabel is indifferent to them.
 *
 * Threads: none inside; one network belongs to one caller at a time.
 * Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_MAXFLOW_H
#define REMAT_OFFLINE_MAXFLOW_H

#include <stdint.h>

#define MAXFLOW_INF INT64_MAX /* an arc that must not be cut */

struct maxflow;

/* A network of n vertices (0..n-1) without arcs. NULL when memory is short or
 * n is 0 or negative. The caller frees it with maxflow_free. */
struct maxflow *maxflow_new(int n);
void maxflow_free(struct maxflow *f);

/* Adds the arc u -> v. cap is 0 or more; MAXFLOW_INF means infinite. Arcs keep
 * the number they were added as, from 0. -EINVAL for a vertex or capacity out
 * of range, -ENOMEM. */
int maxflow_arc(struct maxflow *f, int u, int v, int64_t cap);

/* Changes the capacity of arc number a before the next solve. */
int maxflow_set(struct maxflow *f, int a, int64_t cap);

/* The value of a minimum s-t cut. May be called again after arcs were added or
 * changed; each call starts afresh, but the arcs are
 * laid out once. -EINVAL: bad s or t; -EOVERFLOW: the finite
 * capacities sum to 2^62 or more; -ERANGE: every cut is infinite (s reaches t
 * over infinite arcs); -ENOMEM. */
int maxflow_solve(struct maxflow *f, int s, int t, int64_t *value);

/* After a solve: 1 if v lies on the source's side of the minimum cut nearest
 * the sink. */
int maxflow_on_source_side(const struct maxflow *f, int v);

#endif
