/* A graph as an opgraph-1 trace again: what trace_read makes of it is the same graph, so peak and time of every plan are the same.
 * For programs that are handed a graph (exec:CMD), not the file it came from. Sizes that a run has (as_run.h) are final: who reads them rounds
 * nothing and keeps nothing back once more.
 *
 * Threads: any. Errors: the stream's own (ferror).
 */
#ifndef REMAT_OFFLINE_GRAPH_WRITE_H
#define REMAT_OFFLINE_GRAPH_WRITE_H

#include <stdio.h>

#include "offline/model/graph.h"

void graph_write(FILE *f, const struct graph *g);

#endif
