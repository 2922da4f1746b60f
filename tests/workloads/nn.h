/*
 * Layers with a hand-written autograd, eager: each call launches its kernels at once and, while recording, notes
 * what its backward pass needs.
 *
 * A var is a value in the computation. Its value lives as long as the program holds it (nn_drop ends that) or a
 * backward pass to come has it saved, not longer. nn_backward walks the record from the end; each step's saved
 * tensors and its output's gradient are let go right after it. Gradients of parameters stay until
 * nn_zero_grad.
 *
 * Threads: one. Errors: as in tensor.h, the program ends. Shapes: matrices are [rows][cols], images
 * [batch][channels][h][w]; float32 throughout. cols (and w) must be multiples of 16, output channels of 4.
 */
#ifndef WORKLOADS_NN_H
#define WORKLOADS_NN_H

#include <stdint.h>

#include "tests/workloads/tensor.h"

typedef struct var {
    tensor *value, *grad;       /* NULL where there is none (any more) */
    int rows, cols, h, w;       /* images: rows images, cols channels; matrices: h = w = 1 */
    bool wants_grad, leaf;
} var;

/* A parameter: a leaf that outlives the record. */
typedef struct {
    var v;                      /* first member: a hook gets the var and finds the parameter */
    tensor *state[2];           /* the optimizer's, NULL before its first step */
} param;

typedef struct {
    param **params;
    int n_params;
    tensor **buffers;           /* statistics that are not trained */
    int n_buffers;
    uint64_t seed;              /* of the next parameter's initial values */
} model;

/* New parameters of the model: uniform in +-bound, or all `value`. Matrices of a linear layer are [in][out]. */
param *nn_param_uniform(model *m, int rows, int cols, float bound);
param *nn_param_constant(model *m, int n, float value);
tensor *nn_buffer_constant(model *m, int n, float value);
void nn_model_free(model *m);
void nn_zero_grad(model *m);

int nn_size(const var *v);      /* elements */

/* Starts an empty record; recording false (evaluation): nothing is saved. Random draws go on where they were. */
void nn_begin(bool recording);
/* Lets go of everything that the record still holds. */
void nn_end(void);
void nn_random_seed(uint64_t seed);
/* Called each time a parameter has received a gradient; NULL for none. */
void nn_set_grad_hook(void (*hook)(var *leaf));
/* Gradients of `seed` times the loss. part < 1 stops after that part of the record. */
void nn_backward(var *loss, float seed, double part);

var *nn_input(tensor *t, int rows, int cols, int h, int w);     /* takes a reference of its own */
void nn_drop(var *v);                   /* the program holds this value no longer */
var *nn_then(var *old, var *next);      /* drops old, returns next: h = nn_then(h, nn_silu(h)) */

var *nn_linear(var *x, param *weight, param *bias);             /* bias may be NULL */
var *nn_silu(var *x);
var *nn_add(var *a, var *b);
var *nn_mul(var *a, var *b);
var *nn_scale(var *x, float factor);
var *nn_add_scalar(var *x, float term);
var *nn_cube(var *x);
var *nn_tanh(var *x);
var *nn_dropout(var *x, float p);
var *nn_layer_norm(var *x, param *gamma, param *beta);
var *nn_cross_entropy(var *logits, tensor *labels);             /* mean over rows; labels int32 */

/* In place: the result takes x's memory, and x may not be used again. */
var *nn_relu_inplace(var *x);
var *nn_add_inplace(var *x, var *b);

/* ids int32 [rows]. order and start list the rows of every word: those of word v are order[start[v] ...
   start[v + 1] - 1]. */
var *nn_embed(param *table, tensor *ids, tensor *order, tensor *start, int rows);
var *nn_add_position(var *x, param *table);                     /* table is [period][cols] */
/* x is [batch * time][3 * heads * width]; causal; dropout p on the attention weights */
var *nn_attention(var *x, int time, int heads, float p);

var *nn_conv3x3(var *x, param *weight);         /* weight [cout][cin * 9] */
var *nn_conv1x1(var *x, param *weight);         /* weight [cout][cin] */
typedef struct {
    param *gamma, *beta;
    tensor *running_mean, *running_var;
} batch_norm;
batch_norm nn_batch_norm_new(model *m, int channels);
/* training: normalised with the batch's own statistics, the running ones move in place; else with the latter */
var *nn_batch_norm(var *x, const batch_norm *b, bool training);
var *nn_max_pool(var *x);                       /* 2x2 */
var *nn_mean_pool(var *x);                      /* to [batch][channels] */

#endif
