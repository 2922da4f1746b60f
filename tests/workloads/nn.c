#include "tests/workloads/nn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/workloads/nn_record.h"

enum { SPLIT = 256 };       /* rows of one partial sum */

static struct {
    bool recording;
    node **node;
    int nodes, nodes_room;
    var **var;
    int vars, vars_room;
    uint64_t seed, draws;
    void (*hook)(var *leaf);
} record;

static void *grow(void *list, int used, int *room, size_t each)
{
    if (used < *room)
        return list;
    *room = *room ? 2 * *room : 256;
    list = realloc(list, (size_t)*room * each);
    if (!list) {
        fprintf(stderr, "nn.c: out of host memory\n");
        exit(1);
    }
    return list;
}

static void *new_zeroed(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (!p) {
        fprintf(stderr, "nn.c: out of host memory\n");
        exit(1);
    }
    return p;
}

/* ---- parameters -------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static tensor *uploaded(const float *values, int n)
{
    tensor *t = nn_tensor(n);
    tensor_upload(t, values);
    return t;
}

static tensor *constant(int n, float value)
{
    float *values = new_zeroed((size_t)n * sizeof *values);
    for (int i = 0; i < n; i++)
        values[i] = value;
    tensor *t = uploaded(values, n);
    free(values);
    return t;
}

static param *param_new(model *m, tensor *value, int rows, int cols)
{
    param *p = new_zeroed(sizeof *p);
    p->v = (var){.value = value, .rows = rows, .cols = cols, .h = 1, .w = 1, .wants_grad = true, .leaf = true};
    m->params = realloc(m->params, ((size_t)m->n_params + 1) * sizeof *m->params);
    if (!m->params)
        abort();
    m->params[m->n_params++] = p;
    return p;
}

param *nn_param_uniform(model *m, int rows, int cols, float bound)
{
    int n = rows * cols;
    float *values = new_zeroed((size_t)n * sizeof *values);
    m->seed = mix(m->seed);
    for (int i = 0; i < n; i++)
        values[i] = ((float)(mix(m->seed + (uint64_t)i) >> 40) * (2.0f / 16777216.0f) - 1.0f) * bound;
    param *p = param_new(m, uploaded(values, n), rows, cols);
    free(values);
    return p;
}

param *nn_param_constant(model *m, int n, float value)
{
    return param_new(m, constant(n, value), 1, n);
}

tensor *nn_buffer_constant(model *m, int n, float value)
{
    m->buffers = realloc(m->buffers, ((size_t)m->n_buffers + 1) * sizeof *m->buffers);
    if (!m->buffers)
        abort();
    return m->buffers[m->n_buffers++] = constant(n, value);
}

void nn_model_free(model *m)
{
    nn_zero_grad(m);
    for (int i = 0; i < m->n_params; i++) {
        tensor_drop(m->params[i]->v.value);
        tensor_drop(m->params[i]->state[0]);
        tensor_drop(m->params[i]->state[1]);
        free(m->params[i]);
    }
    for (int i = 0; i < m->n_buffers; i++)
        tensor_drop(m->buffers[i]);
    free(m->params);
    free(m->buffers);
}

void nn_zero_grad(model *m)
{
    for (int i = 0; i < m->n_params; i++) {
        tensor_drop(m->params[i]->v.grad);
        m->params[i]->v.grad = NULL;
    }
}

/* ---- the record -------------------------------------------------------------------------------------- */

tensor *nn_tensor(int elements)
{
    return tensor_new((size_t)elements * sizeof(float));
}

int nn_size(const var *v)
{
    return v->rows * v->cols * v->h * v->w;
}

var *var_empty(int rows, int cols, int h, int w)
{
    var *v = new_zeroed(sizeof *v);
    record.var = grow(record.var, record.vars, &record.vars_room, sizeof *record.var);
    record.var[record.vars++] = v;
    v->rows = rows;
    v->cols = cols;
    v->h = h;
    v->w = w;
    return v;
}

var *var_new(int rows, int cols, int h, int w)
{
    var *v = var_empty(rows, cols, h, w);
    v->value = nn_tensor(nn_size(v));
    return v;
}

var *var_like(const var *x)
{
    return var_new(x->rows, x->cols, x->h, x->w);
}

node *node_new(void (*backward)(node *, tensor *), var *out, var *a, var *b, var *c)
{
    var *in[NODE_INPUTS] = {a, b, c};
    bool wanted = false;
    for (int i = 0; i < NODE_INPUTS; i++)
        wanted = wanted || (in[i] && in[i]->wants_grad);
    if (!record.recording || !wanted)
        return NULL;
    node *n = new_zeroed(sizeof *n);
    record.node = grow(record.node, record.nodes, &record.nodes_room, sizeof *record.node);
    record.node[record.nodes++] = n;
    n->backward = backward;
    for (int i = 0; i < NODE_INPUTS; i++)
        n->in[i] = in[i];
    n->out = out;
    out->wants_grad = true;
    return n;
}

void node_save(node *n, int slot, tensor *t)
{
    if (n)
        n->saved[slot] = tensor_ref(t);
}

void node_release(node *n, int slot)
{
    tensor_drop(n->saved[slot]);
    n->saved[slot] = NULL;
}

static void node_free(node *n)
{
    for (int i = 0; i < NODE_SAVED; i++)
        node_release(n, i);
    free(n);
}

void nn_begin(bool recording)
{
    record.recording = recording;
}

void nn_end(void)
{
    for (int i = record.nodes - 1; i >= 0; i--)
        node_free(record.node[i]);
    for (int i = 0; i < record.vars; i++) {
        tensor_drop(record.var[i]->value);
        tensor_drop(record.var[i]->grad);
        free(record.var[i]);
    }
    record.nodes = record.vars = 0;
}

void nn_random_seed(uint64_t seed)
{
    record.seed = mix(seed);
    record.draws = 0;
}

uint64_t nn_draw_seed(void)
{
    return record.seed;
}

uint64_t nn_draws(int n)
{
    uint64_t first = record.draws;
    record.draws += (uint64_t)n;
    return first;
}

void nn_set_grad_hook(void (*hook)(var *leaf))
{
    record.hook = hook;
}

/* The first gradient is kept as it is, later ones are added: in place only where nobody else holds it. */
void nn_give(var *v, tensor *grad)
{
    if (!v->wants_grad) {
        tensor_drop(grad);
        return;
    }
    int n = nn_size(v);
    if (!v->grad && v->leaf && grad->refs > 1) {
        v->grad = nn_tensor(n);
        k_copy(v->grad->p, grad->p, n);
        tensor_drop(grad);
    } else if (!v->grad) {
        v->grad = grad;
    } else if (v->grad->refs == 1) {
        k_add_inplace(v->grad->p, grad->p, n);
        tensor_drop(grad);
    } else {
        tensor *sum = nn_tensor(n);
        k_add(sum->p, v->grad->p, grad->p, n);
        tensor_drop(v->grad);
        tensor_drop(grad);
        v->grad = sum;
    }
    if (v->leaf && record.hook)
        record.hook(v);
}

void nn_backward(var *loss, float seed, double part)
{
    int stop = record.nodes - (int)(part * record.nodes);
    loss->grad = nn_tensor(nn_size(loss));
    k_fill(loss->grad->p, seed, nn_size(loss));
    while (record.nodes > stop) {
        node *n = record.node[--record.nodes];
        tensor *dy = n->out->grad;
        n->out->grad = NULL;
        if (dy)
            n->backward(n, dy);
        node_free(n);
        tensor_drop(dy);
    }
}

var *nn_input(tensor *t, int rows, int cols, int h, int w)
{
    var *v = var_empty(rows, cols, h, w);
    v->value = tensor_ref(t);
    return v;
}

void nn_drop(var *v)
{
    tensor_drop(v->value);
    v->value = NULL;
}

var *nn_then(var *old, var *next)
{
    nn_drop(old);
    return next;
}

/* ---- linear ------------------------------------------------------------------------------------------ */

void nn_column_sum(tensor *y, tensor *x, int rows, int cols)
{
    if (rows <= SPLIT) {
        k_column_sum(y->p, x->p, rows, cols, rows);
        return;
    }
    int splits = tiles(rows, SPLIT);
    tensor *part = nn_tensor(splits * cols);
    k_column_sum(part->p, x->p, rows, cols, SPLIT);
    k_column_sum(y->p, part->p, splits, cols, splits);
    tensor_drop(part);
}

/* dx = dy w^T, dw = x^T dy, db = column sums of dy. saved: x, w */
static void linear_backward(node *n, tensor *dy)
{
    int rows = n->size[0], in = n->size[1], out = n->size[2];
    if (n->in[2]) {
        tensor *db = nn_tensor(out);
        nn_column_sum(db, dy, rows, out);
        nn_give(n->in[2], db);
    }
    int splits = tiles(rows, SPLIT);
    tensor *part = nn_tensor(splits * in * out), *dw = part;
    k_gemm(part->p, n->saved[0]->p, dy->p, NULL, splits, in, out, SPLIT, 1, in, SPLIT * in, rows);
    if (splits > 1) {
        dw = nn_tensor(in * out);
        k_column_sum(dw->p, part->p, splits, in * out, splits);
        tensor_drop(part);
    }
    node_release(n, 0);
    nn_give(n->in[1], dw);
    if (n->in[0]->wants_grad) {
        tensor *turned = nn_tensor(in * out), *dx = nn_tensor(rows * in);
        k_transpose(turned->p, n->saved[1]->p, 1, in, out);
        k_gemm(dx->p, dy->p, turned->p, NULL, 1, rows, in, out, out, 1, 0, out);
        tensor_drop(turned);
        nn_give(n->in[0], dx);
    }
}

var *nn_linear(var *x, param *weight, param *bias)
{
    int rows = x->rows, in = x->cols, out = weight->v.cols;
    var *y = var_new(rows, out, 1, 1);
    k_gemm(y->value->p, x->value->p, weight->v.value->p, bias ? nn_ptr(bias->v.value) : NULL, 1, rows, out, in, in,
        1, 0, in);
    node *n = node_new(linear_backward, y, x, &weight->v, bias ? &bias->v : NULL);
    if (n) {
        node_save(n, 0, x->value);
        node_save(n, 1, weight->v.value);
        n->size[0] = rows;
        n->size[1] = in;
        n->size[2] = out;
    }
    return y;
}

/* ---- element by element ------------------------------------------------------------------------------ */

/* A step of one input whose gradient is kernel(dx, dy, saved[0]) */
#define UNARY(name, forward, kernel, saves) \
    static void name##_backward(node *n, tensor *dy) \
    { \
        tensor *dx = tensor_new(dy->bytes); \
        kernel(dx->p, dy->p, n->saved[0]->p, nn_size(n->out)); \
        nn_give(n->in[0], dx); \
    } \
    var *nn_##name(var *x) \
    { \
        var *y = var_like(x); \
        forward(y->value->p, x->value->p, nn_size(x)); \
        node_save(node_new(name##_backward, y, x, NULL, NULL), 0, (saves)->value); \
        return y; \
    }

UNARY(silu, k_silu, k_silu_bwd, x)
UNARY(cube, k_cube, k_cube_bwd, x)
UNARY(tanh, k_tanh_fwd, k_tanh_bwd, y)

static void add_backward(node *n, tensor *dy)
{
    nn_give(n->in[0], tensor_ref(dy));
    nn_give(n->in[1], tensor_ref(dy));
}

var *nn_add(var *a, var *b)
{
    var *y = var_like(a);
    k_add(y->value->p, a->value->p, b->value->p, nn_size(a));
    node_new(add_backward, y, a, b, NULL);
    return y;
}

/* The result's var takes over x's tensor. */
static var *taken_over(var *x)
{
    var *y = var_empty(x->rows, x->cols, x->h, x->w);
    y->value = x->value;
    x->value = NULL;
    return y;
}

var *nn_add_inplace(var *x, var *b)
{
    var *y = taken_over(x);
    k_add_inplace(y->value->p, b->value->p, nn_size(x));
    node_new(add_backward, y, x, b, NULL);
    return y;
}

static void relu_backward(node *n, tensor *dy)
{
    tensor *dx = tensor_new(dy->bytes);
    k_relu_bwd(dx->p, dy->p, n->saved[0]->p, nn_size(n->out));
    nn_give(n->in[0], dx);
}

var *nn_relu_inplace(var *x)
{
    var *y = taken_over(x);
    k_relu_inplace(y->value->p, nn_size(x));
    node_save(node_new(relu_backward, y, x, NULL, NULL), 0, y->value);
    return y;
}

/* saved: a, b */
static void mul_backward(node *n, tensor *dy)
{
    int size = nn_size(n->out);
    for (int i = 0; i < 2; i++) {
        tensor *d = tensor_new(dy->bytes);
        k_mul(d->p, dy->p, n->saved[1 - i]->p, size);
        node_release(n, 1 - i);
        nn_give(n->in[i], d);
    }
}

var *nn_mul(var *a, var *b)
{
    var *y = var_like(a);
    k_mul(y->value->p, a->value->p, b->value->p, nn_size(a));
    node *n = node_new(mul_backward, y, a, b, NULL);
    node_save(n, 0, a->value);
    node_save(n, 1, b->value);
    return y;
}

static void scale_backward(node *n, tensor *dy)
{
    tensor *dx = tensor_new(dy->bytes);
    k_scale(dx->p, dy->p, n->factor, nn_size(n->out));
    nn_give(n->in[0], dx);
}

var *nn_scale(var *x, float factor)
{
    var *y = var_like(x);
    k_scale(y->value->p, x->value->p, factor, nn_size(x));
    node *n = node_new(scale_backward, y, x, NULL, NULL);
    if (n)
        n->factor = factor;
    return y;
}

static void pass_on_backward(node *n, tensor *dy)
{
    nn_give(n->in[0], tensor_ref(dy));
}

var *nn_add_scalar(var *x, float term)
{
    var *y = var_like(x);
    k_add_scalar(y->value->p, x->value->p, term, nn_size(x));
    node_new(pass_on_backward, y, x, NULL, NULL);
    return y;
}

/* saved: mask */
static void dropout_backward(node *n, tensor *dy)
{
    tensor *dx = tensor_new(dy->bytes);
    k_dropout_bwd(dx->p, dy->p, n->saved[0]->p, n->factor, nn_size(n->out));
    nn_give(n->in[0], dx);
}

var *nn_dropout(var *x, float p)
{
    if (!record.recording || p == 0.0f) {
        var *same = var_empty(x->rows, x->cols, x->h, x->w);
        same->value = tensor_ref(x->value);
        node_new(pass_on_backward, same, x, NULL, NULL);
        return same;
    }
    int size = nn_size(x);
    var *y = var_like(x);
    tensor *mask = tensor_new((size_t)size);
    k_dropout(y->value->p, mask->p, x->value->p, p, record.seed, nn_draws(size), size);
    node *n = node_new(dropout_backward, y, x, NULL, NULL);
    if (n) {
        node_save(n, 0, mask);
        n->factor = 1.0f / (1.0f - p);
    }
    tensor_drop(mask);
    return y;
}

/* ---- rows -------------------------------------------------------------------------------------------- */

/* saved: x, mean, rstd, gamma */
static void layer_norm_backward(node *n, tensor *dy)
{
    int rows = n->out->rows, cols = n->out->cols, splits = tiles(rows, SPLIT);
    tensor *part = nn_tensor(2 * splits * cols), *sum[2];
    float *half[2] = {part->p, nn_ptr(part) + splits * cols};
    k_layer_norm_params(half[0], half[1], dy->p, n->saved[0]->p, n->saved[1]->p, n->saved[2]->p, rows, cols,
        SPLIT);
    for (int i = 0; i < 2; i++) {
        sum[i] = nn_tensor(cols);
        k_column_sum(sum[i]->p, half[i], splits, cols, splits);
    }
    tensor_drop(part);
    nn_give(n->in[1], sum[0]);
    nn_give(n->in[2], sum[1]);
    tensor *dx = tensor_new(dy->bytes);
    k_layer_norm_bwd(dx->p, dy->p, n->saved[0]->p, n->saved[1]->p, n->saved[2]->p, n->saved[3]->p, rows, cols);
    nn_give(n->in[0], dx);
}

var *nn_layer_norm(var *x, param *gamma, param *beta)
{
    var *y = var_like(x);
    tensor *mean = nn_tensor(x->rows), *rstd = nn_tensor(x->rows);
    k_layer_norm(y->value->p, mean->p, rstd->p, x->value->p, gamma->v.value->p, beta->v.value->p, x->rows, x->cols,
        1e-5f);
    node *n = node_new(layer_norm_backward, y, x, &gamma->v, &beta->v);
    node_save(n, 0, x->value);
    node_save(n, 1, mean);
    node_save(n, 2, rstd);
    node_save(n, 3, gamma->v.value);
    tensor_drop(mean);
    tensor_drop(rstd);
    return y;
}

/* saved: logp, labels */
static void cross_entropy_backward(node *n, tensor *dy)
{
    int rows = n->in[0]->rows, cols = n->in[0]->cols;
    tensor *dx = nn_tensor(rows * cols);
    k_cross_entropy_bwd(dx->p, dy->p, n->saved[0]->p, n->saved[1]->p, rows, cols, 1.0f / (float)rows);
    nn_give(n->in[0], dx);
}

var *nn_cross_entropy(var *logits, tensor *labels)
{
    int rows = logits->rows, cols = logits->cols, parts = tiles(rows, CHUNK);
    var *y = var_new(1, 1, 1, 1);
    tensor *logp = nn_tensor(rows * cols), *part = nn_tensor(parts);
    k_log_softmax(logp->p, logits->value->p, rows, cols);
    k_nll(part->p, logp->p, labels->p, rows, cols);
    k_sum(y->value->p, part->p, parts, 1.0f / (float)rows);
    tensor_drop(part);
    node *n = node_new(cross_entropy_backward, y, logits, NULL, NULL);
    node_save(n, 0, logp);
    node_save(n, 1, labels);
    tensor_drop(logp);
    return y;
}
