/* kinds.h: what each buffer of a trace is to the program, and which pass each op belongs to.
 *
 * The trace says both, and is believed; but a trace that remat recorded is labelled anew by the rule that records are labelled by today
 * (tracer/labels.h), because older records call activations gradients and change from forward to backward and back dozens of times.
 *
 * Threads: no shared state. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_OFFLINE_KINDS_H
#define REMAT_OFFLINE_KINDS_H

#include "offline/model/graph.h"

/* kind[n_bufs]: enum graph_kind; phase[n_ops]: enum graph_phase. */
int kinds_find(const struct graph *g, uint8_t *kind, uint8_t *phase);

#endif
