/* labels.h: the role of each buffer of a record (parameter, gradient, state..), and the part of the iteration that an op belongs to.
 *
 * The program does not tell the library which buffers are parameters; their use shows it. A parameter outlives iterations, the forward pass reads
 * it, and it is changed after the last parameter has been read for the first time. A gradient is made by the backward pass and is still there when
 * the optimizer is done (`.grad`, until the next zero_grad). A state (Adam's moments, a batch norm's running mean) is changed and outlives
 * iterations, and no pass reads it first. The optimizer begins where a state or parameter is changed or a gradient is read. The backward
 * pass begins after the op that makes the loss, the smallest result between the last parameter's first reading and the first gradient.
 *
 * Pure data. Threads: no shared state. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_TRACER_LABELS_H
#define REMAT_TRACER_LABELS_H

#include "tracer/record.h"

enum label_kind { LABEL_PARAM, LABEL_GRAD, LABEL_STATE, LABEL_INPUT, LABEL_ACTIVATION };

struct labels {
    uint8_t *kind;       /* [n_bufs] enum label_kind; owned */
    uint32_t first_bwd, first_opt; /* fwd: ops before first_bwd; bwd: before first_opt; opt: the rest. Three spans, each of which may be empty */
};

/* Labels a sealed record. `peak_op`: the backward pass begins after it if nothing else tells. Call labels_free() also after an error. */
int labels_of(const struct record *r, uint32_t peak_op, struct labels *out);
void labels_free(struct labels *l);
const char *labels_kind_name(int kind);

#endif
