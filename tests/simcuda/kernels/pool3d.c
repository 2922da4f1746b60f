/*
 * Pooling in three dimensions: maximum with indices, average, adaptive average and maximum, putting maxima back, forward and backward. A launch goes through part of the
 * output's frames: those from an offset on, one for each block of the z axis (of the x axis for adaptive ones).
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

#define EACH3(i, n) for (i[0] = 0; i[0] < (n)[0]; i[0]++) for (i[1] = 0; i[1] < (n)[1]; i[1]++) for (i[2] = 0; i[2] < (n)[2]; i[2]++)

static void ints(void *const *p, int at, int64_t *out, int n)
{
    for (int i = 0; i < n; i++) out[i] = A(int, at + i);
}

/* Element (t, h, w) of a plane, planes or channels last. */
static int64_t place(int64_t plane, int64_t features, bool last, const int64_t *size, int64_t at)
{
    int64_t n = size[0] * size[1] * size[2];
    return last ? (plane / features * n + at) * features + plane % features : plane * n + at;
}

/* (const T *x, T *y, i64 *index, features, in[3], batch, out[3], kernel[3], stride[3], pad[3], dilation[3], offset, channels last) */
static void max_forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    int64_t features = A(int, 3), in[3], out[3], g[12], i[3];
    ints(p, 4, in, 3);
    ints(p, 8, out, 3);
    ints(p, 11, g, 12);
    bool last = A(bool, 24);
    for (int64_t z = A(int, 23); z < A(int, 23) + (int64_t)l->grid.z; z++) {
        int64_t plane = z / out[0], o[3] = { z % out[0], 0, 0 };
        for (o[1] = 0; o[1] < out[1]; o[1]++)
            for (o[2] = 0; o[2] < out[2]; o[2]++) {
                double best = -INFINITY;
                int64_t index = -1;
                EACH3(i, g) {
                    int64_t at = 0;
                    bool within = true;
                    for (int d = 0; d < 3; d++) {
                        int64_t v = o[d] * g[3 + d] - g[6 + d] + i[d] * g[9 + d];
                        within = within && v >= 0 && v < in[d];
                        at = at * in[d] + v;
                    }
                    if (!within) continue;
                    double v = dtype_get(t, A(const void *, 0), place(plane, features, last, in, at));
                    if (index < 0 || v > best || v != v) best = v, index = at;
                }
                int64_t to = place(plane, features, last, out, (o[0] * out[1] + o[1]) * out[2] + o[2]);
                dtype_set(t, A(void *, 1), to, best);
                A(int64_t *, 2)[to] = index;
            }
    }
}

/* (T *dx, const T *dy, const i64 *index, features, in[3], batch, out[3], offset, channels last): dx gains */
static void max_backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    int64_t features = A(int, 3), in[3], out[3];
    ints(p, 4, in, 3);
    ints(p, 8, out, 3);
    bool last = A(bool, 12);
    for (int64_t z = A(int, 11); z < A(int, 11) + (int64_t)l->grid.z; z++)
        for (int64_t o = 0; o < out[1] * out[2]; o++) {
            int64_t from = place(z / out[0], features, last, out, z % out[0] * out[1] * out[2] + o), index = A(const int64_t *, 2)[from];
            if (index < 0) continue;
            int64_t to = place(z / out[0], features, last, in, index);
            dtype_set(t, A(void *, 0), to, dtype_get(t, A(void *, 0), to) + dtype_get(t, A(const void *, 1), from));
        }
}

static int64_t at4(const struct accessor *a, int64_t n, const int64_t *i)
{
    return n * a->stride[0] + i[0] * a->stride[1] + i[1] * a->stride[2] + i[2] * a->stride[3];
}

/* One window: first and end in each dimension, and what its sum is divided by. */
static double window(const int64_t *o, const int64_t *kernel, const int64_t *stride, const int64_t *pad, const int64_t *in, bool count_pad,
                     double divisor, int64_t first[3], int64_t end[3])
{
    double all = 1, within = 1;
    for (int d = 0; d < 3; d++) {
        first[d] = o[d] * stride[d] - pad[d];
        end[d] = KERN_MIN(first[d] + kernel[d], in[d] + pad[d]);
        all *= (double)(end[d] - first[d]);
        first[d] = KERN_MAX(first[d], 0);
        end[d] = KERN_MIN(end[d], in[d]);
        within *= (double)(end[d] - first[d]);
    }
    return divisor != 0 ? divisor : count_pad ? all : within;
}

/* (accessor<4> x, accessor<4> y, kernel[3], stride[3], pad[3], count padding, offset, divisor or 0); where the kernel's width is a template
   argument it is no parameter */
static void avg_forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    bool wide = k->k->n_params == 14;
    enum dtype t = wide ? k->t[0] : k->t[1];
    struct accessor x = accessor_read(p[0], 4, true), y = accessor_read(p[1], 4, true);
    int64_t kernel[3], stride[3], pad[3], at = wide ? 5 : 4, o[3], i[3], first[3], end[3];
    ints(p, 2, kernel, wide ? 3 : 2);
    if (!wide) kernel[2] = k->v[0];
    ints(p, (int)at, stride, 3);
    ints(p, (int)at + 3, pad, 3);
    int64_t offset = A(int, at + 7);
    for (int64_t z = offset; z < offset + (int64_t)l->grid.z; z++) {
        o[0] = z % y.size[1];
        for (o[1] = 0; o[1] < y.size[2]; o[1]++)
            for (o[2] = 0; o[2] < y.size[3]; o[2]++) {
                double sum = 0, divide = window(o, kernel, stride, pad, x.size + 1, A(bool, at + 6), A(int, at + 8), first, end);
                for (i[0] = first[0]; i[0] < end[0]; i[0]++)
                    for (i[1] = first[1]; i[1] < end[1]; i[1]++)
                        for (i[2] = first[2]; i[2] < end[2]; i[2]++) sum += dtype_get(t, x.data, at4(&x, z / y.size[1], i));
                dtype_set(t, y.data, at4(&y, z / y.size[1], o), sum / divide);
            }
    }
}

static void gain(enum dtype t, const struct accessor *a, int64_t n, const int64_t *i, double v)
{
    int64_t at = at4(a, n, i);
    dtype_set(t, a->data, at, dtype_get(t, a->data, at) + v);
}

/* (accessor<4> dy, accessor<4> dx, kernel[3], stride[3], pad[3], count padding, offset, ..); divisor: 0 for none */
static void avg_backward_by(double divisor, const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    struct accessor y = accessor_read(p[0], 4, true), x = accessor_read(p[1], 4, true);
    int64_t g[9], o[3], i[3], first[3], end[3];
    ints(p, 2, g, 9);
    for (int64_t z = A(int, 12); z < A(int, 12) + (int64_t)l->grid.z; z++) {
        o[0] = z % y.size[1];
        for (o[1] = 0; o[1] < y.size[2]; o[1]++)
            for (o[2] = 0; o[2] < y.size[3]; o[2]++) {
                double divide = window(o, g, g + 3, g + 6, x.size + 1, A(bool, 11), divisor, first, end);
                double v = dtype_get(t, y.data, at4(&y, z / y.size[1], o)) / divide;
                for (i[0] = first[0]; i[0] < end[0]; i[0]++)
                    for (i[1] = first[1]; i[1] < end[1]; i[1]++)
                        for (i[2] = first[2]; i[2] < end[2]; i[2]++) gain(t, &x, z / y.size[1], i, v);
            }
    }
}

/* .., [elements,] use divisor, divisor) */
static void avg_backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    unsigned at = k->k->n_params - 2;
    avg_backward_by(A(bool, at) ? dtype_get(k->t[1], p[at + 1], 0) : 0, l, p, k);
}

/* 2.11.0: .., int divisor or 0[, elements]) */
static void avg_backward_int(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    avg_backward_by(A(int, 13), l, p, k);
}

/* (accessor<4> dy, accessor<4> dx, kernel[3], Acc factor, offset): stride 1 and no padding; frames are the input's */
static void avg_backward_dense(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    struct accessor y = accessor_read(p[0], 4, true), x = accessor_read(p[1], 4, true);
    int64_t kernel[3], i[3], o[3];
    ints(p, 2, kernel, 3);
    for (int64_t z = A(int, 6); z < A(int, 6) + (int64_t)l->grid.z; z++) {
        i[0] = z % x.size[1];
        for (i[1] = 0; i[1] < x.size[2]; i[1]++)
            for (i[2] = 0; i[2] < x.size[3]; i[2]++) {
                double sum = 0;
                int64_t first[3], end[3];
                for (int d = 0; d < 3; d++) {
                    first[d] = KERN_MAX(i[d] - kernel[d] + 1, 0);
                    end[d] = KERN_MIN(i[d] + 1, y.size[1 + d]);
                }
                for (o[0] = first[0]; o[0] < end[0]; o[0]++)
                    for (o[1] = first[1]; o[1] < end[1]; o[1]++)
                        for (o[2] = first[2]; o[2] < end[2]; o[2]++) sum += dtype_get(t, y.data, at4(&y, z / x.size[1], o));
                dtype_set(t, x.data, at4(&x, z / x.size[1], i), sum * dtype_get(k->t[1], p[5], 0));
            }
    }
}

static int64_t from(int64_t o, int64_t in, int64_t out) { return o * in / out; }
static int64_t until(int64_t o, int64_t in, int64_t out) { return ((o + 1) * in + out - 1) / out; }

/* (const T *x, T *y, in[3], out[3], i64 channels, strides of batch, channel, t, h, w, offset); backward: (T *dx, const T *dy, in[3], out[3], i64
   offset), where dx gains, or frames are the input's and it is written */
static void adaptive(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    bool back = strstr(k->name.base, "grad") != NULL, whole = back && !strstr(k->name.base, "atomic");
    int64_t in[3], out[3], o[3], i[3], offset = A(int64_t, back ? 8 : 14);
    ints(p, 2, in, 3);
    ints(p, 5, out, 3);
    int64_t in_n = in[0] * in[1] * in[2], frames = whole ? in[0] : out[0];
    double *acc = row_scratch(in_n);
    for (int64_t z = offset; z < offset + (int64_t)l->grid.x; z++) {
        int64_t plane = z / frames;
        if (back && whole && z % frames && z != offset) continue; /* a plane at a time */
        struct accessor x = { A(char *, 0), { 0 }, { in_n, in[1] * in[2], in[2], 1 } };
        int64_t n = plane;
        if (!back) {
            int64_t c = A(int64_t, 8);
            x = (struct accessor){ A(char *, 0), { 0 }, { 0, A(int64_t, 11), A(int64_t, 12), A(int64_t, 13) } };
            x.data += (plane / c * A(int64_t, 9) + plane % c * A(int64_t, 10)) * (int64_t)dtype_bytes(t);
            n = 0;
        }
        memset(acc, 0, sizeof *acc * (size_t)in_n);
        int64_t first_t = whole ? 0 : z % out[0], end_t = whole ? out[0] : z % out[0] + 1;
        for (o[0] = first_t; o[0] < end_t; o[0]++)
            for (o[1] = 0; o[1] < out[1]; o[1]++)
                for (o[2] = 0; o[2] < out[2]; o[2]++) {
                    double sum = 0, size = 1;
                    int64_t first[3], end[3], at = ((plane * out[0] + o[0]) * out[1] + o[1]) * out[2] + o[2];
                    for (int d = 0; d < 3; d++) {
                        first[d] = from(o[d], in[d], out[d]);
                        end[d] = until(o[d], in[d], out[d]);
                        size *= (double)(end[d] - first[d]);
                    }
                    double v = back ? dtype_get(t, A(const void *, 1), at) / size : 0;
                    for (i[0] = first[0]; i[0] < end[0]; i[0]++)
                        for (i[1] = first[1]; i[1] < end[1]; i[1]++)
                            for (i[2] = first[2]; i[2] < end[2]; i[2]++) {
                                if (back) acc[(i[0] * in[1] + i[1]) * in[2] + i[2]] += v;
                                else sum += dtype_get(t, x.data, at4(&x, n, i));
                            }
                    if (!back) dtype_set(t, A(void *, 1), at, sum / size);
                }
        for (int64_t e = 0; back && e < in_n; e++) {
            if (whole) dtype_set(t, x.data, plane * in_n + e, acc[e]);
            else if (acc[e] != 0) dtype_set(t, x.data, plane * in_n + e, dtype_get(t, x.data, plane * in_n + e) + acc[e]);
        }
    }
    free(acc);
}

/* (const T *x, T *y, i64 *index, in[3], out[3], i64 strides of plane, t, h, w, offset); backward: (T *dx, const T *dy, const i64 *index, in[3],
   out[3], i64 offset), where dx gains; frames are the output's. The last NaN of a window is its maximum. */
static void adaptive_max(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    bool back = strstr(k->name.base, "grad") != NULL;
    int64_t in[3], out[3], o[3], i[3], offset = A(int64_t, back ? 9 : 13);
    ints(p, 3, in, 3);
    ints(p, 6, out, 3);
    int64_t in_n = in[0] * in[1] * in[2];
    for (int64_t z = offset; z < offset + (int64_t)l->grid.x; z++) {
        o[0] = z % out[0];
        for (o[1] = 0; o[1] < out[1]; o[1]++)
            for (o[2] = 0; o[2] < out[2]; o[2]++) {
                int64_t first[3], end[3], at = (z * out[1] + o[1]) * out[2] + o[2], best = -1;
                if (back) {
                    int64_t to = z / out[0] * in_n + A(const int64_t *, 2)[at];
                    dtype_set(t, A(void *, 0), to, dtype_get(t, A(void *, 0), to) + dtype_get(t, A(const void *, 1), at));
                    continue;
                }
                double max = 0;
                for (int d = 0; d < 3; d++) {
                    first[d] = from(o[d], in[d], out[d]);
                    end[d] = until(o[d], in[d], out[d]);
                }
                for (i[0] = first[0]; i[0] < end[0]; i[0]++)
                    for (i[1] = first[1]; i[1] < end[1]; i[1]++)
                        for (i[2] = first[2]; i[2] < end[2]; i[2]++) {
                            double v = dtype_get(t, A(const void *, 0), z / out[0] * A(int64_t, 9) + i[0] * A(int64_t, 10) + i[1] * A(int64_t, 11)
                                                                            + i[2] * A(int64_t, 12));
                            if (best >= 0 && !(v > max) && v == v) continue;
                            max = v;
                            best = (i[0] * in[1] + i[1]) * in[2] + i[2];
                        }
                dtype_set(t, A(void *, 1), at, max);
                A(int64_t *, 2)[at] = best;
            }
    }
}

/* (accessor<4> x, accessor<4> index, T *y, i64 out[3], i64 offset); backward: (const T *dy, i64 out[3], accessor<4> index, accessor<4> dx, int
   offset): frames are x's, a block of the z axis each */
static void unpool(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    bool back = strstr(k->name.base, "backward") != NULL;
    size_t es = dtype_bytes(k->t[0]);
    struct accessor x = accessor_read(p[back ? 5 : 0], 4, true), index = accessor_read(p[back ? 4 : 1], 4, true);
    char *y = A(char *, back ? 0 : 2);
    int64_t i[3], out = 1, offset = back ? A(int, 6) : A(int64_t, 6);
    for (int d = 0; d < 3; d++) out *= A(int64_t, back ? 1 + d : 3 + d);
    for (int64_t z = offset; z < offset + (int64_t)l->grid.z; z++) {
        i[0] = z % x.size[1];
        int64_t plane = z / x.size[1];
        for (i[1] = 0; i[1] < x.size[2]; i[1]++)
            for (i[2] = 0; i[2] < x.size[3]; i[2]++) {
                char *in = x.data + at4(&x, plane, i) * (int64_t)es;
                char *there = y + (plane * out + ((const int64_t *)index.data)[at4(&index, plane, i)]) * (int64_t)es;
                memcpy(back ? in : there, back ? there : in, es);
            }
    }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)p;
    uint64_t n = (uint64_t)l->grid.x * l->grid.y * l->grid.z * l->block.x * l->block.y * l->block.z;
    *flops = 8 * n;
    *bytes = 9 * n * dtype_bytes(k->t[0] == DT_NONE ? k->t[1] : k->t[0]);
}

const struct kern_row pool3d_rows[] = {
    { "max_pool3d_with_indices_single_out_frame", "pppiiiiiiiiiiiiiiiiiiiiib", max_forward, cost, NULL },
    { "max_pool3d_with_indices_backward_single_out_frame", "pppiiiiiiiiib", max_backward, cost, NULL },
    { "avg_pool3d_cuda_update_output", "**iiiiiiiiibii", avg_forward, cost, NULL },
    { "avg_pool3d_cuda_update_output", "**iiiiiiiibii", avg_forward, cost, NULL },
    { "avg_pool3d_cuda_update_grad_input", "**iiiiiiiiibib*", avg_backward, cost, NULL },
    { "avg_pool3d_cuda_update_grad_input", "**iiiiiiiiibii", avg_backward_int, cost, NULL },
    { "avg_pool3d_cuda_update_grad_input_atomic", "**iiiiiiiiibiii", avg_backward_int, cost, NULL },
    { "avg_pool3d_cuda_update_grad_input_atomic", "**iiiiiiiiibipb*", avg_backward, cost, NULL },
    { "avg_pool3d_single_backward_out_frame_stride1", "**iii*i", avg_backward_dense, cost, NULL },
    { "adaptiveaveragepool", "ppiiiiiippppppp", adaptive, cost, NULL },
    { "adaptiveaveragegradinput", "ppiiiiiip", adaptive, cost, NULL },
    { "atomicadaptiveaveragegradinput", "ppiiiiiip", adaptive, cost, NULL },
    { "adaptivemaxpool", "pppiiiiiippppp", adaptive_max, cost, NULL },
    { "adaptivemaxgradinput", "pppiiiiiip", adaptive_max, cost, NULL },
    { "atomicadaptivemaxgradinput", "pppiiiiiip", adaptive_max, cost, NULL },
    { "max_unpooling3d_forward_kernel", "**ppppp", unpool, cost, NULL },
    { "max_unpooling3d_backward_kernel", "pppp**i", unpool, cost, NULL },
    KERN_END
};
