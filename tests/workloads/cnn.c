/*
 * A residual convolutional network on 64 x 64 images: a stem, two stages of `layers` blocks in all with a max-pool
 * between them, a mean-pool and a classifier over 16 classes. Convolutions work through a padded copy of their
 * input, batch norm moves its running statistics in place, ReLU and the residual additions are in place.
 * The data: each class is a plane wave in one direction, with noise.
 */
#include <math.h>

#include "tests/workloads/train.h"

enum { CHANNELS = 3, SIDE_PIXELS = 64, WIDTH1 = 8, WIDTH2 = 16, CLASSES = 16, MAX_LAYERS = 1000 };

typedef struct {
    param *conv1, *conv2;       /* 3x3, 1x1 */
    batch_norm norm1, norm2;
} block;

static struct {
    int layers;
    param *stem, *widen, *head, *head_bias;
    batch_norm stem_norm, widen_norm;
    block block[MAX_LAYERS];
} net;

static void sizes(int n, size_t bytes[BATCH_PARTS])
{
    bytes[0] = (size_t)n * CHANNELS * SIDE_PIXELS * SIDE_PIXELS * sizeof(float);
    bytes[1] = (size_t)n * sizeof(int);
}

static void fill(void *const part[BATCH_PARTS], int n, uint64_t seed, uint64_t number)
{
    const int pixels = SIDE_PIXELS * SIDE_PIXELS;
    float *x = part[0], wave[256];
    int *label = part[1];
    for (int i = 0; i < 256; i++)
        wave[i] = sinf((float)i * (6.2831853f / 256.0f));
    for (int i = 0; i < n; i++) {
        int c = (int)(train_draw(seed, 2 * number + 1, (uint32_t)i) % CLASSES);
        int across = 4 + 6 * (c % 4), down = 4 + 6 * (c / 4);
        int phase = (int)(train_draw(seed, 2 * number + 1, (uint32_t)(i + n)) % 256);
        label[i] = c;
        for (int channel = 0; channel < CHANNELS; channel++)
            for (int p = 0; p < pixels; p++) {
                int at = (i * CHANNELS + channel) * pixels + p;
                int turn = p % SIDE_PIXELS * across + p / SIDE_PIXELS * down + phase + 40 * channel;
                x[at] = wave[turn & 255] + train_uniform(seed, 2 * number + 2, (uint32_t)at) - 0.5f;
            }
    }
}

static param *conv_param(model *m, int out, int in, int taps)
{
    return nn_param_uniform(m, out, in * taps, sqrtf(6.0f / (float)(in * taps)));
}

static void build(model *m, int layers)
{
    net.layers = layers;
    net.stem = conv_param(m, WIDTH1, CHANNELS, 9);
    net.stem_norm = nn_batch_norm_new(m, WIDTH1);
    for (int l = 0; l < layers; l++) {
        int width = l < layers / 2 ? WIDTH1 : WIDTH2;
        if (l == layers / 2) {
            net.widen = conv_param(m, WIDTH2, WIDTH1, 1);
            net.widen_norm = nn_batch_norm_new(m, WIDTH2);
        }
        net.block[l].conv1 = conv_param(m, width, width, 9);
        net.block[l].norm1 = nn_batch_norm_new(m, width);
        net.block[l].conv2 = conv_param(m, width, width, 1);
        net.block[l].norm2 = nn_batch_norm_new(m, width);
    }
    net.head = nn_param_uniform(m, WIDTH2, CLASSES, 0.25f);
    net.head_bias = nn_param_constant(m, CLASSES, 0.0f);
}

static var *norm_relu(var *h, const batch_norm *norm, bool training)
{
    h = nn_then(h, nn_batch_norm(h, norm, training));
    return nn_relu_inplace(h);
}

static var *loss(const batch *b, bool training)
{
    var *h = nn_input(b->part[0], b->n, CHANNELS, SIDE_PIXELS, SIDE_PIXELS);
    h = nn_then(h, nn_conv3x3(h, net.stem));
    h = norm_relu(h, &net.stem_norm, training);
    for (int l = 0; l < net.layers; l++) {
        const block *k = &net.block[l];
        if (l == net.layers / 2) {
            h = nn_then(h, nn_max_pool(h));
            h = nn_then(h, nn_conv1x1(h, net.widen));
            h = norm_relu(h, &net.widen_norm, training);
        }
        var *r = nn_conv3x3(h, k->conv1);
        r = norm_relu(r, &k->norm1, training);
        r = nn_then(r, nn_conv1x1(r, k->conv2));
        r = nn_then(r, nn_batch_norm(r, &k->norm2, training));
        r = nn_add_inplace(r, h);
        h = nn_then(h, nn_relu_inplace(r));
    }
    h = nn_then(h, nn_mean_pool(h));
    h = nn_then(h, nn_linear(h, net.head, net.head_bias));
    return nn_then(h, nn_cross_entropy(h, b->part[1]));
}

int main(int argc, char **argv)
{
    static const workload w = {
        .name = "cnn", .about = "convolutions, batch norm, residuals, momentum SGD", .batch = 32, .layers = 8,
        .rate = 0.02f, .sizes = sizes, .fill = fill, .build = build, .loss = loss,
    };
    return train_main(argc, argv, &w);
}
