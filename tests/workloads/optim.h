/*
 * Optimizers. State is allocated at a parameter's first step, one tensor each, as PyTorch's are. Call with
 * complete gradients; parameters without one are left alone. Threads: one. Errors: as in tensor.h.
 */
#ifndef WORKLOADS_OPTIM_H
#define WORKLOADS_OPTIM_H

#include "tests/workloads/nn.h"

/* state[0] = mu state[0] + grad (the first time: grad); value -= rate state[0] */
void optim_sgd(model *m, float rate, float mu);

/* Adam, `step` counting from 1. state: first and second moment. Several tensors to a launch, through pointers in
   a by-value struct that is reused: entries past its count are left over. */
void optim_adam(model *m, float rate, int step);

#endif
