/*
 * Fused cells of LSTM (Hochreiter and Schmidhuber, 1997) and GRU (Cho et al., 2014), forward and backward, over TensorInfo. The
 * matrix products come before; these kernels add biases and apply the gates. Gates lie side by side, hidden elements each.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

static double get(enum dtype t, const struct tinfo *a, int64_t i) { return dtype_get(t, a->data, tinfo_offset(a, i)); }
static void set(enum dtype t, const struct tinfo *a, int64_t i, double v) { dtype_set(t, a->data, tinfo_offset(a, i), v); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static int64_t number(void *const *p, const struct kern *k, int i) { return k->k->bytes[i] == 8 ? A(int64_t, i) : A(int, i); }

static void read_all(struct tinfo *t, int n, void *const *p, const struct kern *k)
{
    for (int i = 0; i < n; i++) t[i] = tinfo_read(p[i], k->k->bytes[i]);
}

/* input, hidden, bias 1, bias 2, cx, hy, cy, workspace, hidden size, elements. Gates: in, forget, cell, out. */
static void lstm_forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct tinfo a[8];
    read_all(a, 8, p, k);
    int64_t h = number(p, k, 8), n = number(p, k, 9);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / h * 4 * h + i % h;
        double g[4];
        for (int j = 0; j < 4; j++) {
            g[j] = get(t, &a[0], at + j * h) + get(t, &a[1], at + j * h);
            if (a[2].data) g[j] += get(t, &a[2], i % h + j * h) + get(t, &a[3], i % h + j * h);
            g[j] = j == 2 ? tanh(g[j]) : sigmoid(g[j]);
        }
        double cy = g[1] * get(t, &a[4], i) + g[0] * g[2];
        set(t, &a[5], i, g[3] * tanh(cy));
        set(t, &a[6], i, cy);
        for (int j = 0; j < 4; j++) set(t, &a[7], at + j * h, g[j]);
    }
}

/* workspace, gates' gradient, cx, cy, dhy, dcy, dcx, hidden size, elements */
static void lstm_backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct tinfo a[7];
    read_all(a, 7, p, k);
    int64_t h = number(p, k, 7), n = number(p, k, 8);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / h * 4 * h + i % h;
        double g[4];
        for (int j = 0; j < 4; j++) g[j] = get(t, &a[0], at + j * h);
        double tc = tanh(get(t, &a[3], i)), dh = a[4].data ? get(t, &a[4], i) : 0, dc = a[5].data ? get(t, &a[5], i) : 0;
        double d = dh * g[3] * (1 - tc * tc) + dc;
        set(t, &a[1], at, d * g[2] * (1 - g[0]) * g[0]);
        set(t, &a[1], at + h, d * get(t, &a[2], i) * (1 - g[1]) * g[1]);
        set(t, &a[1], at + 2 * h, d * g[0] * (1 - g[2] * g[2]));
        set(t, &a[1], at + 3 * h, dh * tc * (1 - g[3]) * g[3]);
        set(t, &a[6], i, d * g[1]);
    }
}

/* input, hidden, bias 1, bias 2, hx, hy, workspace (5 gates wide), hidden size, elements. Gates: reset, input, new. */
static void gru_forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct tinfo a[7];
    read_all(a, 7, p, k);
    int64_t h = number(p, k, 7), n = number(p, k, 8);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / h * 3 * h + i % h, ws = i / h * 5 * h + i % h;
        double x[3], y[3];
        for (int j = 0; j < 3; j++) {
            x[j] = get(t, &a[0], at + j * h) + (a[2].data ? get(t, &a[2], i % h + j * h) : 0);
            y[j] = get(t, &a[1], at + j * h) + (a[3].data ? get(t, &a[3], i % h + j * h) : 0);
        }
        double r = sigmoid(x[0] + y[0]), z = sigmoid(x[1] + y[1]), c = tanh(x[2] + r * y[2]), hx = get(t, &a[4], i);
        set(t, &a[5], i, c + z * (hx - c));
        double save[5] = { r, z, c, hx, y[2] };
        for (int j = 0; j < 5; j++) set(t, &a[6], ws + j * h, save[j]);
    }
}

/* gradient of input's gates, of hidden's gates, dhy, dhx, workspace, hidden size, elements */
static void gru_backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct tinfo a[5];
    read_all(a, 5, p, k);
    int64_t h = number(p, k, 5), n = number(p, k, 6);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / h * 3 * h + i % h, ws = i / h * 5 * h + i % h;
        double s[5], d = get(t, &a[2], i);
        for (int j = 0; j < 5; j++) s[j] = get(t, &a[4], ws + j * h);
        double dz = d * (s[3] - s[2]) * (1 - s[1]) * s[1], dc = d * (1 - s[1]) * (1 - s[2] * s[2]), dr = dc * s[4] * (1 - s[0]) * s[0];
        double in[3] = { dr, dz, dc }, hid[3] = { dr, dz, dc * s[0] };
        for (int j = 0; j < 3; j++) {
            set(t, &a[0], at + j * h, in[j]);
            set(t, &a[1], at + j * h, hid[j]);
        }
        set(t, &a[3], i, d * s[1]);
    }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    uint64_t n = (uint64_t)number(p, k, (int)k->k->n_params - 1);
    *flops = 40 * n;
    *bytes = 14 * n * dtype_bytes(k->t[0]);
}

const struct kern_row rnn_rows[] = {
    { "lstm_cell_forward", "**********", lstm_forward, cost, NULL },
    { "lstm_cell_backward", "*********", lstm_backward, cost, NULL },
    { "gru_cell_forward", "*********", gru_forward, cost, NULL },
    { "gru_cell_backward", "*******", gru_backward, cost, NULL },
    KERN_END
};
