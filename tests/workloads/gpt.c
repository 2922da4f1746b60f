/*
 * A small language model: word and position embeddings, `layers` blocks of causal attention and a two-layer
 * perceptron with GELU written out step by step, dropout, Adam. It predicts the class of the next word.
 */
#include <math.h>

#include "tests/workloads/train.h"

#ifndef GPT_LOG2_WORDS
#define GPT_LOG2_WORDS 14
#endif

enum {
    TIME = 32, WIDTH = 32, HEADS = 2, HIDDEN = 2 * WIDTH, WORDS = 1 << GPT_LOG2_WORDS, CLASSES = 64, MAX_LAYERS = 1000
};

static const float dropout = 0.1f;

typedef struct {
    param *norm1[2], *qkv[2], *out[2], *norm2[2], *up[2], *down[2];     /* weight (or gamma) and bias (or beta) */
} block;

static struct {
    int layers;
    param *words, *positions, *norm[2], *head;
    block block[MAX_LAYERS];
} net;

enum { WORD, TARGET, ORDER, START };    /* parts of a batch */

static void sizes(int n, size_t bytes[BATCH_PARTS])
{
    bytes[WORD] = bytes[TARGET] = bytes[ORDER] = (size_t)n * TIME * sizeof(int);
    bytes[START] = (WORDS + 1) * sizeof(int);
}

/* Few words are frequent (their logarithm is uniform), and half the time a word determines the next. */
static void fill(void *const part[BATCH_PARTS], int n, uint64_t seed, uint64_t number)
{
    int *word = part[WORD], *target = part[TARGET], *order = part[ORDER], *start = part[START];
    for (int i = 0; i < n * TIME; i++) {
        int any = (int)exp2f((float)GPT_LOG2_WORDS * train_uniform(seed, 2 * number + 1, (uint32_t)i)) - 1;
        int next = i % TIME && train_draw(seed, 2 * number + 2, (uint32_t)i) % 2 ? (word[i - 1] * 5 + 3) % WORDS :
            any;
        word[i] = next;
        if (i)
            target[i - 1] = next % CLASSES;
    }
    target[n * TIME - 1] = 0;

    /* the places of each word, by counting: start[v + 1] runs as a cursor and ends as the next word's start */
    for (int v = 0; v <= WORDS; v++)
        start[v] = 0;
    for (int i = 0; i < n * TIME; i++)
        if (word[i] + 2 <= WORDS)
            start[word[i] + 2]++;
    for (int v = 1; v <= WORDS; v++)
        start[v] += start[v - 1];
    for (int i = 0; i < n * TIME; i++)
        order[start[word[i] + 1]++] = i;
}

static void linear_params(model *m, param *pair[2], int in, int out, float gain)
{
    pair[0] = nn_param_uniform(m, in, out, gain * sqrtf(3.0f / (float)in));
    pair[1] = nn_param_constant(m, out, 0.0f);
}

static void norm_params(model *m, param *pair[2])
{
    pair[0] = nn_param_constant(m, WIDTH, 1.0f);
    pair[1] = nn_param_constant(m, WIDTH, 0.0f);
}

static void build(model *m, int layers)
{
    net.layers = layers;
    net.words = nn_param_uniform(m, WORDS, WIDTH, 0.5f);
    net.positions = nn_param_uniform(m, TIME, WIDTH, 0.1f);
    for (int l = 0; l < layers; l++) {
        block *b = &net.block[l];
        norm_params(m, b->norm1);
        linear_params(m, b->qkv, WIDTH, 3 * WIDTH, 1.0f);
        linear_params(m, b->out, WIDTH, WIDTH, 0.3f);
        norm_params(m, b->norm2);
        linear_params(m, b->up, WIDTH, HIDDEN, 1.0f);
        linear_params(m, b->down, HIDDEN, WIDTH, 0.3f);
    }
    norm_params(m, net.norm);
    net.head = nn_param_uniform(m, WIDTH, CLASSES, 0.1f);
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, one kernel a step; takes x over */
static var *gelu(var *x)
{
    var *t = nn_cube(x);
    t = nn_then(t, nn_scale(t, 0.044715f));
    t = nn_then(t, nn_add(x, t));
    t = nn_then(t, nn_scale(t, 0.79788456f));
    t = nn_then(t, nn_tanh(t));
    t = nn_then(t, nn_add_scalar(t, 1.0f));
    var *half = nn_scale(x, 0.5f);
    nn_drop(x);
    var *y = nn_mul(half, t);
    nn_drop(half);
    nn_drop(t);
    return y;
}

/* h + dropout(branch); takes both over */
static var *residual(var *h, var *branch)
{
    branch = nn_then(branch, nn_dropout(branch, dropout));
    h = nn_then(h, nn_add(h, branch));
    nn_drop(branch);
    return h;
}

static var *loss(const batch *b, bool training)
{
    (void)training;
    var *h = nn_embed(net.words, b->part[WORD], b->part[ORDER], b->part[START], b->n * TIME);
    h = nn_then(h, nn_add_position(h, net.positions));
    h = nn_then(h, nn_dropout(h, dropout));
    for (int l = 0; l < net.layers; l++) {
        const block *k = &net.block[l];
        var *a = nn_layer_norm(h, k->norm1[0], k->norm1[1]);
        a = nn_then(a, nn_linear(a, k->qkv[0], k->qkv[1]));
        a = nn_then(a, nn_attention(a, TIME, HEADS, dropout));
        a = nn_then(a, nn_linear(a, k->out[0], k->out[1]));
        h = residual(h, a);
        a = nn_layer_norm(h, k->norm2[0], k->norm2[1]);
        a = nn_then(a, nn_linear(a, k->up[0], k->up[1]));
        a = gelu(a);
        a = nn_then(a, nn_linear(a, k->down[0], k->down[1]));
        h = residual(h, a);
    }
    h = nn_then(h, nn_layer_norm(h, net.norm[0], net.norm[1]));
    h = nn_then(h, nn_linear(h, net.head, NULL));
    return nn_then(h, nn_cross_entropy(h, b->part[TARGET]));
}

int main(int argc, char **argv)
{
    static const workload w = {
        .name = "gpt", .about = "attention, GELU written out, dropout, Adam", .batch = 512, .layers = 6,
        .rate = 0.003f, .adam = true, .sizes = sizes, .fill = fill, .build = build, .loss = loss,
    };
    return train_main(argc, argv, &w);
}
