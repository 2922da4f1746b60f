/*
 * Pooling over windows at drawn places (fractional_max_pool2d and 3d), forward and backward. Tensors come as accessors of (batch, planes, [t,] h, w).
 *   window of place o: begins at floor((o + u) a) - floor(u a), a = (in - window) / (out - 1), the last one at the end; u: a sample in [0, 1)
 */
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/order.h"
#include "tests/simcuda/kernels/rows.h"

static int64_t begins(enum dtype t, double u, int64_t o, int64_t in, int64_t out, int64_t window)
{
    if (o == out - 1) return in - window;
    if (t == DT_F64) {
        double a = (double)(in - window) / (double)(out - 1);
        return (int64_t)(((double)o + u) * a) - (int64_t)(u * a);
    }
    float a = (float)(in - window) / (float)(out - 1), uf = (float)u;
    return (int64_t)(((float)o + uf) * a) - (int64_t)(uf * a);
}

/* Planes: (y, index, x, samples <3> of (w, h), window h, w). Volumes: (x, y, index, samples <3> of (t, h, w), i64 window t, h, w). The last NaN
   of a window is its maximum. */
static void forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    bool flat = k->k->bytes[0] == 72;
    int axes = flat ? 2 : 3;
    struct space x = space_read(p[flat ? 2 : 0], axes), y = space_read(p[flat ? 0 : 1], axes), index = space_read(p[flat ? 1 : 2], axes);
    struct accessor u = accessor_read(p[3], 3, true);
    int64_t window[3] = { 1, 1, 1 }, o[3], i[3], n, c;
    for (int d = 3 - axes; d < 3; d++) window[d] = flat ? A(int, 3 + d) : A(int64_t, 4 + d);
    for (int64_t e = 0; e < y.a.size[0] * y.a.size[1] * space_places(&y); e++) {
        int64_t first[3] = { 0, 0, 0 }, best = -1;
        double max = 0;
        n = e / space_places(&y) / y.a.size[1];
        c = e / space_places(&y) % y.a.size[1];
        space_place(&y, e % space_places(&y), o);
        for (int d = 3 - axes; d < 3; d++) {
            double sample = dtype_get(t, u.data, n * u.stride[0] + c * u.stride[1] + (flat ? 2 - d : d) * u.stride[2]);
            first[d] = begins(t, sample, o[d], x.size[d], y.size[d], window[d]);
        }
        for (i[0] = first[0]; i[0] < first[0] + window[0]; i[0]++)
            for (i[1] = first[1]; i[1] < first[1] + window[1]; i[1]++)
                for (i[2] = first[2]; i[2] < first[2] + window[2]; i[2]++) {
                    double v = dtype_get(t, x.a.data, space_offset(&x, n, c, i));
                    if (best >= 0 && !(v > max) && v == v) continue;
                    max = v;
                    best = (i[0] * x.size[1] + i[1]) * x.size[2] + i[2];
                }
        dtype_set(t, y.a.data, space_offset(&y, n, c, o), max);
        ((int64_t *)index.a.data)[space_offset(&index, n, c, o)] = best;
    }
}

/* (dx, dy, index): dx gains by atomics */
static void backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    int axes = k->k->bytes[0] == 72 ? 2 : 3;
    struct space dx = space_read(p[0], axes), dy = space_read(p[1], axes), index = space_read(p[2], axes);
    int64_t each = space_places(&dy), all = dy.a.size[0] * dy.a.size[1] * each;
    for (int64_t e = 0; e < all; e++) {
        int64_t i = order_of(l->chaos, e, all), n = i / each / dy.a.size[1], c = i / each % dy.a.size[1], o[3], in[3];
        space_place(&dy, i % each, o);
        space_place(&dx, ((const int64_t *)index.a.data)[space_offset(&index, n, c, o)], in);
        int64_t to = space_offset(&dx, n, c, in);
        dtype_set(t, dx.a.data, to, dtype_get(t, dx.a.data, to) + dtype_get(t, dy.a.data, space_offset(&dy, n, c, o)));
    }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)p;
    uint64_t n = (uint64_t)l->grid.x * l->grid.y * l->grid.z * l->block.x;
    *flops = 8 * n;
    *bytes = 9 * n * dtype_bytes(k->t[0]);
}

static int bind(struct kern *k)
{
    uint32_t n = k->k->bytes[0];
    return dtype_class(k->t[0]) != DC_NONE && (n == 72 || n == 88) ? 0 : -ENOSYS;
}

const struct kern_row fractional_rows[] = {
    { "fractional_max_pool2d_out_cuda_frame", "****ii", forward, cost, bind },
    { "fractional_max_pool2d_backward_out_cuda_frame", "***", backward, cost, bind },
    { "fractional_max_pool3d_out_frame", "****ppp", forward, cost, bind },
    { "fractional_max_pool3d_backward_out_frame", "***", backward, cost, bind },
    KERN_END
};
