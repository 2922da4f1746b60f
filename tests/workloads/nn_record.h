/*
 * Inside of nn: the record that forward passes write and nn_backward reads. For nn*.c only.
 */
#ifndef WORKLOADS_NN_RECORD_H
#define WORKLOADS_NN_RECORD_H

#include "tests/workloads/launch.h"
#include "tests/workloads/nn.h"

enum { NODE_INPUTS = 3, NODE_SAVED = 6 };

typedef struct node {
    /* Gives every input its gradient (nn_give); dy stays the caller's, saved tensors are let go afterwards. */
    void (*backward)(struct node *n, tensor *dy);
    var *in[NODE_INPUTS], *out;
    tensor *saved[NODE_SAVED];
    int size[4];
    float factor;
} node;

/* New var of the record with a new tensor (var_new) or without (var_empty). */
var *var_empty(int rows, int cols, int h, int w);
var *var_new(int rows, int cols, int h, int w);
var *var_like(const var *x);
static inline float *nn_ptr(const tensor *t)
{
    return t->p;
}

/* Notes a step of the forward pass; NULL when not recording or no input wants a gradient. Fill in saved (with
   references of its own: node_save), size and factor. */
node *node_new(void (*backward)(node *, tensor *), var *out, var *a, var *b, var *c);
void node_save(node *n, int slot, tensor *t);
/* The saved tensor is needed no longer: for a backward pass of several kernels. */
void node_release(node *n, int slot);

/* Hands over a gradient (one reference) to v; drops it where none is wanted. */
void nn_give(var *v, tensor *grad);
tensor *nn_tensor(int elements);                /* of floats */
/* y[cols] = column sums of x[rows][cols], in two stages when rows are many */
void nn_column_sum(tensor *y, tensor *x, int rows, int cols);
/* Next draws of the generator: returns the first one's number and steps over n. */
uint64_t nn_draws(int n);
uint64_t nn_draw_seed(void);

#endif
