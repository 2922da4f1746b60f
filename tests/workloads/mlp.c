/*
 * A deep multilayer perceptron: `layers` residual blocks of linear and SiLU on 64 features, then a classifier over 16 classes.
 * The data: each class has a centre, samples lie around it.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/workloads/train.h"

enum { FEATURES = 64, CLASSES = 16, MAX_LAYERS = 1000 };

static struct {
    int layers;
    param *weight[MAX_LAYERS + 1], *bias[MAX_LAYERS + 1];
} net;

static void sizes(int n, size_t bytes[BATCH_PARTS])
{
    bytes[0] = (size_t)n * FEATURES * sizeof(float);
    bytes[1] = (size_t)n * sizeof(int);
}

static void fill(void *const part[BATCH_PARTS], int n, uint64_t seed, uint64_t number)
{
    float *x = part[0], centre[CLASSES][FEATURES];
    int *label = part[1];
    for (int c = 0; c < CLASSES; c++)
        for (int j = 0; j < FEATURES; j++)
            centre[c][j] = 2.0f * train_uniform(seed, 0, (uint32_t)(c * FEATURES + j)) - 1.0f;
    for (int i = 0; i < n; i++) {
        int c = (int)(train_draw(seed, 2 * number + 1, (uint32_t)i) % CLASSES);
        label[i] = c;
        for (int j = 0; j < FEATURES; j++)
            x[i * FEATURES + j] = centre[c][j] + 3.0f *
                train_uniform(seed, 2 * number + 2, (uint32_t)(i * FEATURES + j)) - 1.5f;
    }
}

static void build(model *m, int layers)
{
    net.layers = layers;
    for (int l = 0; l < layers; l++) {
        net.weight[l] = nn_param_uniform(m, FEATURES, FEATURES, sqrtf(1.0f / FEATURES));
        net.bias[l] = nn_param_constant(m, FEATURES, 0.0f);
    }
    net.weight[layers] = nn_param_uniform(m, FEATURES, CLASSES, 0.1f);
    net.bias[layers] = nn_param_constant(m, CLASSES, 0.0f);
}

static var *loss(const batch *b, bool training)
{
    (void)training;
    var *h = nn_input(b->part[0], b->n, FEATURES, 1, 1);
    for (int l = 0; l < net.layers; l++) {
        var *z = nn_linear(h, net.weight[l], net.bias[l]);
        z = nn_then(z, nn_silu(z));
        h = nn_then(h, nn_add(h, z));
        nn_drop(z);
    }
    h = nn_then(h, nn_linear(h, net.weight[net.layers], net.bias[net.layers]));
    return nn_then(h, nn_cross_entropy(h, b->part[1]));
}

int main(int argc, char **argv)
{
    static const workload w = {
        .name = "mlp", .about = "residual linear and SiLU blocks, momentum SGD", .batch = 16384, .layers = 16,
        .rate = 0.02f, .sizes = sizes, .fill = fill, .build = build, .loss = loss,
    };
    return train_main(argc, argv, &w);
}
