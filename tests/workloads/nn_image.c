#include <stddef.h>

#include "tests/workloads/nn_record.h"

/* ---- convolutions -------------------------------------------------------------------------------------- */

/* The workspace of a 3x3 convolution: its input with a border of zeros. */
static tensor *padded(tensor *x, int planes, int h, int w)
{
    tensor *y = nn_tensor(planes * (h + 2) * (w + 2));
    k_pad(y->p, x->p, planes, h, w);
    return y;
}

/* saved: x, weight */
static void conv3x3_backward(node *n, tensor *dy)
{
    var *x = n->in[0];
    int batch = x->rows, cin = x->cols, cout = n->out->cols, h = x->h, w = x->w;
    tensor *space = padded(n->saved[0], batch * cin, h, w);
    node_release(n, 0);
    tensor *part = nn_tensor(batch * cout * cin * 9), *dw = nn_tensor(cout * cin * 9);
    k_conv3x3_weight(part->p, dy->p, space->p, batch, cin, cout, h, w);
    tensor_drop(space);
    k_column_sum(dw->p, part->p, batch, cout * cin * 9, batch);
    tensor_drop(part);
    nn_give(n->in[1], dw);
    if (x->wants_grad) {
        tensor *flipped = nn_tensor(cout * cin * 9), *dx = nn_tensor(nn_size(x));
        k_flip3x3(flipped->p, n->saved[1]->p, cin, cout);
        space = padded(dy, batch * cout, h, w);
        k_conv3x3(dx->p, space->p, flipped->p, batch, cout, cin, h, w);
        tensor_drop(space);
        tensor_drop(flipped);
        nn_give(x, dx);
    }
}

var *nn_conv3x3(var *x, param *weight)
{
    var *y = var_new(x->rows, weight->v.rows, x->h, x->w);
    tensor *space = padded(x->value, x->rows * x->cols, x->h, x->w);
    k_conv3x3(y->value->p, space->p, weight->v.value->p, x->rows, x->cols, y->cols, x->h, x->w);
    tensor_drop(space);
    node *n = node_new(conv3x3_backward, y, x, &weight->v, NULL);
    node_save(n, 0, x->value);
    node_save(n, 1, weight->v.value);
    return y;
}

/* saved: x, weight */
static void conv1x1_backward(node *n, tensor *dy)
{
    var *x = n->in[0];
    int batch = x->rows, cin = x->cols, cout = n->out->cols, hw = x->h * x->w;
    tensor *part = nn_tensor(batch * cout * cin), *dw = nn_tensor(cout * cin);
    k_conv1x1_weight(part->p, dy->p, n->saved[0]->p, batch, cin, cout, hw);
    node_release(n, 0);
    k_column_sum(dw->p, part->p, batch, cout * cin, batch);
    tensor_drop(part);
    nn_give(n->in[1], dw);
    if (x->wants_grad) {
        tensor *dx = nn_tensor(nn_size(x));
        k_gemm(dx->p, n->saved[1]->p, dy->p, NULL, batch, cin, hw, cout, 1, cin, 0, batch * cout);
        nn_give(x, dx);
    }
}

/* Per image: y[cout][hw] = weight[cout][cin] x[cin][hw] */
var *nn_conv1x1(var *x, param *weight)
{
    var *y = var_new(x->rows, weight->v.rows, x->h, x->w);
    k_gemm(y->value->p, weight->v.value->p, x->value->p, NULL, x->rows, y->cols, x->h * x->w, x->cols, x->cols, 1,
        0, x->rows * x->cols);
    node *n = node_new(conv1x1_backward, y, x, &weight->v, NULL);
    node_save(n, 0, x->value);
    node_save(n, 1, weight->v.value);
    return y;
}

/* ---- batch norm ---------------------------------------------------------------------------------------- */

batch_norm nn_batch_norm_new(model *m, int channels)
{
    return (batch_norm){
        .gamma = nn_param_constant(m, channels, 1.0f), .beta = nn_param_constant(m, channels, 0.0f),
        .running_mean = nn_buffer_constant(m, channels, 0.0f),
        .running_var = nn_buffer_constant(m, channels, 1.0f),
    };
}

/* saved: x, mean, rstd, gamma */
static void batch_norm_backward(node *n, tensor *dy)
{
    var *x = n->in[0];
    int batch = x->rows, channels = x->cols, hw = x->h * x->w;
    const float *values = n->saved[0]->p, *mean = n->saved[1]->p, *rstd = n->saved[2]->p;
    tensor *part = nn_tensor(2 * batch * channels), *dgamma = nn_tensor(channels), *dbeta = nn_tensor(channels);
    k_bn_bwd_sums(part->p, dy->p, values, mean, rstd, batch, channels, hw);
    k_bn_bwd_finish(dgamma->p, dbeta->p, part->p, batch, channels);
    tensor_drop(part);
    tensor *dx = tensor_new(dy->bytes);
    k_bn_bwd_apply(dx->p, dy->p, values, mean, rstd, n->saved[3]->p, dgamma->p, dbeta->p, batch, channels, hw);
    nn_give(x, dx);
    nn_give(n->in[1], dgamma);
    nn_give(n->in[2], dbeta);
}

var *nn_batch_norm(var *x, const batch_norm *b, bool training)
{
    const float momentum = 0.1f, eps = 1e-5f;
    int batch = x->rows, channels = x->cols, hw = x->h * x->w;
    var *y = var_like(x);
    param *gamma = b->gamma, *beta = b->beta;
    if (!training) {
        k_bn_eval(y->value->p, x->value->p, b->running_mean->p, b->running_var->p, gamma->v.value->p,
            beta->v.value->p, batch, channels, hw, eps);
        return y;
    }
    tensor *part = nn_tensor(2 * batch * channels), *mean = nn_tensor(channels), *rstd = nn_tensor(channels);
    k_bn_sums(part->p, x->value->p, batch, channels, hw);
    k_bn_finish(mean->p, rstd->p, b->running_mean->p, b->running_var->p, part->p, batch, channels, hw, momentum,
        eps);
    tensor_drop(part);
    k_bn_apply(y->value->p, x->value->p, mean->p, rstd->p, gamma->v.value->p, beta->v.value->p, batch, channels,
        hw);
    node *n = node_new(batch_norm_backward, y, x, &gamma->v, &beta->v);
    node_save(n, 0, x->value);
    node_save(n, 1, mean);
    node_save(n, 2, rstd);
    node_save(n, 3, gamma->v.value);
    tensor_drop(mean);
    tensor_drop(rstd);
    return y;
}

/* ---- pooling ------------------------------------------------------------------------------------------- */

/* saved: the winners' places */
static void max_pool_backward(node *n, tensor *dy)
{
    var *x = n->in[0];
    tensor *dx = nn_tensor(nn_size(x));
    k_max_pool_bwd(dx->p, dy->p, n->saved[0]->p, x->rows * x->cols, x->h, x->w);
    nn_give(x, dx);
}

var *nn_max_pool(var *x)
{
    var *y = var_new(x->rows, x->cols, x->h / 2, x->w / 2);
    tensor *at = tensor_new(y->value->bytes);
    k_max_pool(y->value->p, at->p, x->value->p, x->rows * x->cols, x->h, x->w);
    node_save(node_new(max_pool_backward, y, x, NULL, NULL), 0, at);
    tensor_drop(at);
    return y;
}

static void mean_pool_backward(node *n, tensor *dy)
{
    var *x = n->in[0];
    tensor *dx = nn_tensor(nn_size(x));
    k_mean_pool_bwd(dx->p, dy->p, x->rows * x->cols, x->h * x->w);
    nn_give(x, dx);
}

var *nn_mean_pool(var *x)
{
    var *y = var_new(x->rows, x->cols, 1, 1);
    k_mean_pool(y->value->p, x->value->p, x->rows * x->cols, x->h * x->w);
    node_new(mean_pool_backward, y, x, NULL, NULL);
    return y;
}
