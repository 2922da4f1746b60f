#include <math.h>
#include <stddef.h>

#include "tests/workloads/nn_record.h"

/* ---- embeddings -------------------------------------------------------------------------------------- */

/* saved: order, start */
static void embed_backward(node *n, tensor *dy)
{
    var *table = n->in[0];
    tensor *d = nn_tensor(nn_size(table));
    k_embed_bwd(d->p, dy->p, n->saved[0]->p, n->saved[1]->p, table->rows, n->out->rows, table->cols);
    nn_give(table, d);
}

var *nn_embed(param *table, tensor *ids, tensor *order, tensor *start, int rows)
{
    var *y = var_new(rows, table->v.cols, 1, 1);
    k_embed(y->value->p, table->v.value->p, ids->p, rows, table->v.cols);
    node *n = node_new(embed_backward, y, &table->v, NULL, NULL);
    node_save(n, 0, order);
    node_save(n, 1, start);
    return y;
}

static void add_position_backward(node *n, tensor *dy)
{
    var *table = n->in[1];
    int size = nn_size(table);
    tensor *d = nn_tensor(size);
    nn_column_sum(d, dy, nn_size(n->out) / size, size);
    nn_give(table, d);
    nn_give(n->in[0], tensor_ref(dy));
}

var *nn_add_position(var *x, param *table)
{
    var *y = var_like(x);
    k_add_position(y->value->p, x->value->p, table->v.value->p, x->rows, table->v.rows, x->cols);
    node_new(add_position_backward, y, x, &table->v, NULL);
    return y;
}

/* ---- attention: softmax(q k^T / sqrt width) v ------------------------------------------------------------ */

typedef struct {
    int batch, time, heads, width;
    int pairs;                  /* batch * heads: independent small matrices */
    int tokens;                 /* elements of q, of k and of v */
    int weights;                /* elements of the attention weights */
    float factor;
} shape;

static shape attention_shape(int rows, int cols, int time, int heads)
{
    shape s = {.batch = rows / time, .time = time, .heads = heads, .width = cols / heads};
    s.pairs = s.batch * heads;
    s.tokens = rows * cols;
    s.weights = s.pairs * time * time;
    s.factor = 1.0f / sqrtf((float)s.width);
    return s;
}

/* y[rows][cols] = x[cols][rows]^T for every pair */
static tensor *turned(const shape *s, tensor *x, int rows, int cols)
{
    tensor *y = nn_tensor(s->pairs * rows * cols);
    k_transpose(y->p, x->p, s->pairs, rows, cols);
    return y;
}

/* c[rows][cols] = a b for every pair, a[rows][terms] dense or, with a_turned, [terms][rows] */
static tensor *product(const shape *s, tensor *a, tensor *b, int rows, int cols, int terms, bool a_turned)
{
    tensor *c = nn_tensor(s->pairs * rows * cols);
    k_gemm(c->p, a->p, b->p, NULL, s->pairs, rows, cols, terms, a_turned ? 1 : terms, a_turned ? rows : 1,
        rows * terms, s->pairs * terms);
    return c;
}

enum { Q, K, V, WEIGHTS, MASK, DROPPED };   /* what a step saves */

static void attention_backward(node *n, tensor *dy)
{
    const shape s = attention_shape(n->out->rows, n->out->cols, n->size[0], n->size[1]);
    const int t = s.time, w = s.width;
    tensor *dmix = nn_tensor(s.tokens);
    k_swap_axes(dmix->p, dy->p, s.batch, t, s.heads, w);

    tensor *dv = product(&s, n->saved[n->saved[MASK] ? DROPPED : WEIGHTS], dmix, t, w, t, true);
    node_release(n, DROPPED);
    tensor *vt = turned(&s, n->saved[V], t, w);
    node_release(n, V);
    tensor *dweights = product(&s, dmix, vt, t, t, w, false);
    tensor_drop(vt);
    tensor_drop(dmix);
    if (n->saved[MASK]) {
        tensor *through = nn_tensor(s.weights);
        k_dropout_bwd(through->p, dweights->p, n->saved[MASK]->p, n->factor, s.weights);
        tensor_drop(dweights);
        node_release(n, MASK);
        dweights = through;
    }
    tensor *dscores = nn_tensor(s.weights);
    k_causal_softmax_bwd(dscores->p, dweights->p, n->saved[WEIGHTS]->p, s.pairs * t, t, s.factor);
    tensor_drop(dweights);
    node_release(n, WEIGHTS);
    tensor *dq = product(&s, dscores, n->saved[K], t, w, t, false);
    node_release(n, K);
    tensor *dk = product(&s, dscores, n->saved[Q], t, w, t, true);
    node_release(n, Q);
    tensor_drop(dscores);

    tensor *dx = nn_tensor(3 * s.tokens);
    k_merge_qkv(dx->p, dq->p, dk->p, dv->p, s.batch, t, s.heads, w);
    tensor_drop(dq);
    tensor_drop(dk);
    tensor_drop(dv);
    nn_give(n->in[0], dx);
}

var *nn_attention(var *x, int time, int heads, float p)
{
    const shape s = attention_shape(x->rows, x->cols / 3, time, heads);
    const int t = s.time, w = s.width;
    var *y = var_empty(x->rows, x->cols / 3, 1, 1);
    node *n = node_new(attention_backward, y, x, NULL, NULL);
    tensor *q = nn_tensor(s.tokens), *k = nn_tensor(s.tokens), *v = nn_tensor(s.tokens);
    k_split_qkv(q->p, k->p, v->p, x->value->p, s.batch, t, s.heads, w);

    tensor *kt = turned(&s, k, t, w);
    tensor *scores = product(&s, q, kt, t, t, w, false);
    tensor_drop(kt);
    node_save(n, Q, q);
    node_save(n, K, k);
    tensor_drop(q);
    tensor_drop(k);
    tensor *weights = nn_tensor(s.weights);
    k_causal_softmax(weights->p, scores->p, s.pairs * t, t, s.factor);
    tensor_drop(scores);
    node_save(n, WEIGHTS, weights);
    if (n && p > 0.0f) {
        tensor *dropped = nn_tensor(s.weights), *mask = tensor_new((size_t)s.weights);
        k_dropout(dropped->p, mask->p, weights->p, p, nn_draw_seed(), nn_draws(s.weights), s.weights);
        node_save(n, MASK, mask);
        node_save(n, DROPPED, dropped);
        tensor_drop(mask);
        tensor_drop(weights);
        weights = dropped;
        n->factor = 1.0f / (1.0f - p);
    }
    tensor *mix = product(&s, weights, v, t, w, t, false);
    tensor_drop(weights);
    node_save(n, V, v);
    tensor_drop(v);
    y->value = nn_tensor(s.tokens);
    k_swap_axes(y->value->p, mix->p, s.batch, s.heads, t, w);
    tensor_drop(mix);
    if (n) {
        n->size[0] = time;
        n->size[1] = heads;
    }
    return y;
}
