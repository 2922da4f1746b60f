/*
 * Resizing by weighted sums along each axis: linear, bilinear, trilinear, bicubic, and the antialiased forms, forward and backward.
 * For each output element of an axis there is a list of input elements with their weights ("taps"); an output is the sum over the
 * product of the axes' lists. The gradient is added to what is there.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

struct taps {
    int64_t per;      /* taps of an output element; unused ones weigh 0 */
    int64_t *at;      /* [out][per] */
    double *weight;   /* [out][per] */
};

static struct taps taps_new(int64_t out, int64_t per)
{
    struct taps t = { per, calloc((size_t)(out * per + 1), sizeof(int64_t)), calloc((size_t)(out * per + 1), sizeof(double)) };
    return t;
}

static void taps_free(struct taps *t)
{
    free(t->at);
    free(t->weight);
}

static int64_t within(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static struct taps linear(double scale, bool align, int64_t in, int64_t out)
{
    struct taps t = taps_new(out, 2);
    for (int64_t i = 0; i < out; i++) {
        double s = align ? scale * (double)i : scale * ((double)i + 0.5) - 0.5;
        if (s < 0) s = 0;
        int64_t at = KERN_MIN((int64_t)s, in - 1);
        t.at[2 * i] = at;
        t.at[2 * i + 1] = within(at + 1, in);
        t.weight[2 * i + 1] = s - (double)at;
        t.weight[2 * i] = 1 - t.weight[2 * i + 1];
    }
    return t;
}

/* Keys' cubic convolution kernel with parameter a. */
static double keys(double x, double a)
{
    x = fabs(x);
    return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static struct taps cubic(double scale, bool align, int64_t in, int64_t out)
{
    struct taps t = taps_new(out, 4);
    for (int64_t i = 0; i < out; i++) {
        double s = align ? scale * (double)i : scale * ((double)i + 0.5) - 0.5, first = floor(s);
        for (int j = 0; j < 4; j++) {
            t.at[4 * i + j] = within((int64_t)first - 1 + j, in);
            t.weight[4 * i + j] = keys(s - first + 1 - j, -0.75);
        }
    }
    return t;
}

/* The filter is as wide as the step between outputs; weights sum to 1. */
static struct taps antialiased(double scale, bool bicubic, int64_t in, int64_t out)
{
    double half = bicubic ? 2 : 1, support = scale >= 1 ? half * scale : half, inverse = scale >= 1 ? 1 / scale : 1;
    struct taps t = taps_new(out, 2 * (int64_t)ceil(support) + 2);
    for (int64_t i = 0; i < out; i++) {
        double center = scale * ((double)i + 0.5), sum = 0;
        int64_t first = KERN_MAX((int64_t)(center - support + 0.5), 0), end = KERN_MIN((int64_t)(center + support + 0.5), in);
        for (int64_t j = first; j < end && j - first < t.per; j++) {
            double x = ((double)j - center + 0.5) * inverse, w = bicubic ? keys(x, -0.5) : fabs(x) < 1 ? 1 - fabs(x) : 0;
            t.at[i * t.per + j - first] = j;
            t.weight[i * t.per + j - first] = w;
            sum += w;
        }
        for (int64_t j = 0; sum != 0 && j < t.per; j++) t.weight[i * t.per + j] /= sum;
    }
    return t;
}

/* Adds up, or spreads, one output element; x: a dense volume of doubles, size its rows and columns. */
static double element(const struct taps *t, double *x, const int64_t *size, const int64_t *o, bool back, double d)
{
    double sum = 0;
    for (int64_t a = o[0] * t[0].per; a < (o[0] + 1) * t[0].per; a++) {
        if (t[0].weight[a] == 0) continue;
        for (int64_t b = o[1] * t[1].per; b < (o[1] + 1) * t[1].per; b++) {
            double w = t[0].weight[a] * t[1].weight[b], *row = x + (t[0].at[a] * size[1] + t[1].at[b]) * size[2];
            if (w == 0) continue;
            for (int64_t c = o[2] * t[2].per; c < (o[2] + 1) * t[2].per; c++) {
                if (back) row[t[2].at[c]] += w * t[2].weight[c] * d;
                else sum += w * t[2].weight[c] * row[t[2].at[c]];
            }
        }
    }
    return sum;
}

static int64_t at5(const struct accessor *a, const int64_t *i)
{
    return i[0] * a->stride[0] + i[1] * a->stride[1] + i[2] * a->stride[2] + i[3] * a->stride[3] + i[4] * a->stride[4];
}

/* x: input or its gradient, y: output or its gradient, (images, channels, depth, rows, columns) both. Frees the taps. */
static void resize(enum dtype t, struct taps *taps, const struct accessor *x, const struct accessor *y, bool back)
{
    int64_t i[5], volume = x->size[2] * x->size[3] * x->size[4];
    double *plane = row_scratch(volume);
    for (i[0] = 0; i[0] < y->size[0]; i[0]++)
        for (i[1] = 0; i[1] < y->size[1]; i[1]++) {
            int64_t n = 0;
            for (i[2] = 0; i[2] < x->size[2]; i[2]++)
                for (i[3] = 0; i[3] < x->size[3]; i[3]++, n += x->size[4]) {
                    i[4] = 0;
                    row_load(t, plane + n, x->data, at5(x, i), x->stride[4], x->size[4]);
                }
            for (i[2] = 0; i[2] < y->size[2]; i[2]++)
                for (i[3] = 0; i[3] < y->size[3]; i[3]++)
                    for (i[4] = 0; i[4] < y->size[4]; i[4]++) {
                        double d = back ? dtype_get(t, y->data, at5(y, i)) : 0;
                        double v = element(taps, plane, x->size + 2, i + 2, back, d);
                        if (!back) dtype_set(t, y->data, at5(y, i), v);
                    }
            n = 0;
            for (i[2] = 0; back && i[2] < x->size[2]; i[2]++)
                for (i[3] = 0; i[3] < x->size[3]; i[3]++, n += x->size[4]) {
                    i[4] = 0;
                    row_store(t, plane + n, x->data, at5(x, i), x->stride[4], x->size[4]);
                }
        }
    free(plane);
    for (int d = 0; d < 3; d++) taps_free(&taps[d]);
}

/* An accessor of fewer dimensions as one of five: what is missing between channels and the last has size 1. */
static struct accessor widen(const void *p, int dims)
{
    struct accessor a = accessor_read(p, dims, true), w = a;
    for (int d = 2; d < 5; d++) {
        int from = d - (5 - dims);
        w.size[d] = from < 2 ? 1 : a.size[from];
        w.stride[d] = from < 2 ? 0 : a.stride[from];
    }
    return w;
}

static int dims_of(uint32_t bytes) { return (int)(bytes - 8) / 16; }

static bool is_back(const struct kern *k) { return strstr(k->name.base, "backward") != NULL; }

/* ([n,] scale of each resized axis, align corners, accessor x or dx, accessor y or dy, ..) */
static void by_accessor(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int flag = 0;
    while (k->k->bytes[flag] != 1) flag++;
    int dims = dims_of(k->k->bytes[flag + 1]), axes = dims - 2, first = flag - axes;
    bool align = A(bool, flag), cubes = strstr(k->name.base, "bicubic") != NULL;
    struct accessor x = widen(p[flag + 1], dims), y = widen(p[flag + 2], dims);
    struct taps t[3];
    for (int d = 0; d < 3; d++) {
        int axis = d - (3 - axes);
        double scale = axis < 0 ? 1 : dtype_get(k->t[1], p[first + axis], 0);
        t[d] = (cubes && axis >= 0 ? cubic : linear)(scale, align, x.size[2 + d], y.size[2 + d]);
    }
    resize(k->t[0], t, &x, &y, is_back(k));
}

/* (scale h, scale w, accessor x or dx, accessor y or dy, filter): the filter is known by its type */
static void antialias(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool bicubic = strstr(k->name.arg[2], "Bicubic") != NULL;
    struct accessor x = widen(p[2], 4), y = widen(p[3], 4);
    struct taps t[3] = { linear(1, true, 1, 1) };
    for (int d = 1; d < 3; d++) t[d] = antialiased(dtype_get(k->t[1], p[d - 1], 0), bicubic, x.size[2 + d], y.size[2 + d]);
    resize(k->t[0], t, &x, &y, is_back(k));
}

static int bind_filter(struct kern *k)
{
    return k->name.n_args < 3 || (!strstr(k->name.arg[2], "Bicubic") && !strstr(k->name.arg[2], "Bilinear")) ? -ENOSYS : 0;
}

static struct accessor last(void *data, int64_t images, int64_t channels, int64_t h, int64_t w)
{
    return (struct accessor){ data, { images, channels, 1, h, w }, { h * w * channels, 1, 0, w * channels, channels } };
}

/* (scale h, scale w, align corners, channels, ih, iw, oh, ow, const T *x, T *y, elements of y) */
static void last_forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t c = A(int, 3), ih = A(int, 4), iw = A(int, 5), oh = A(int, 6), ow = A(int, 7);
    int64_t n = (k->k->bytes[10] == 8 ? A(int64_t, 10) : A(int, 10)) / KERN_MAX(c * oh * ow, 1);
    struct accessor x = last(A(void *, 8), n, c, ih, iw), y = last(A(void *, 9), n, c, oh, ow);
    struct taps t[3] = { linear(1, true, 1, 1), linear(dtype_get(k->t[1], p[0], 0), A(bool, 2), ih, oh),
                         linear(dtype_get(k->t[1], p[1], 0), A(bool, 2), iw, ow) };
    resize(k->t[0], t, &x, &y, false);
}

/* (ih, iw, oh, ow, scale h, scale w, align corners, T *dx, const T *dy, channels, elements of dy, elements of dx) */
static void last_backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t c = A(int, 9), ih = A(int, 0), iw = A(int, 1), oh = A(int, 2), ow = A(int, 3);
    int64_t n = (k->k->bytes[10] == 8 ? A(int64_t, 10) : A(int, 10)) / KERN_MAX(c * oh * ow, 1);
    struct accessor x = last(A(void *, 7), n, c, ih, iw), y = last(A(void *, 8), n, c, oh, ow);
    struct taps t[3] = { linear(1, true, 1, 1), linear(dtype_get(k->t[1], p[4], 0), A(bool, 6), ih, oh),
                         linear(dtype_get(k->t[1], p[5], 0), A(bool, 6), iw, ow) };
    resize(k->t[0], t, &x, &y, true);
}

/* (planes, ih, iw, oh, ow, scale h, scale w, align corners, T *dx, const T *dy) */
static void planes_backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t n = A(int64_t, 0), ih = A(int, 1), iw = A(int, 2), oh = A(int, 3), ow = A(int, 4);
    struct accessor x = { A(char *, 8), { n, 1, 1, ih, iw }, { ih * iw, 0, 0, iw, 1 } };
    struct accessor y = { A(char *, 9), { n, 1, 1, oh, ow }, { oh * ow, 0, 0, ow, 1 } };
    struct taps t[3] = { linear(1, true, 1, 1), linear(dtype_get(k->t[1], p[5], 0), A(bool, 7), ih, oh),
                         linear(dtype_get(k->t[1], p[6], 0), A(bool, 7), iw, ow) };
    resize(k->t[0], t, &x, &y, true);
}

/* Each element of the larger side with its taps. */
static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    uint64_t n = 1, taps = strstr(k->name.base, "bicubic") ? 16 : strstr(k->name.base, "aa_") ? 32 : 4;
    if (k->row->run == by_accessor || k->row->run == antialias) {
        int at = 0;
        while (k->k->bytes[at] < 56) at++;
        struct accessor y = widen(p[at + 1], dims_of(k->k->bytes[at]));
        for (int d = 0; d < 5; d++) n *= (uint64_t)y.size[d];
    } else if (k->row->run == planes_backward) n = A(uint64_t, 0) * (uint64_t)A(int, 3) * (uint64_t)A(int, 4);
    else n = k->k->bytes[10] == 8 ? A(uint64_t, 10) : A(uint32_t, 10);
    *flops = 2 * n * taps;
    *bytes = n * 3 * dtype_bytes(k->t[0]);
}

const struct kern_row resize_rows[] = {
    { "upsample_linear1d_out_frame", "i*b**", by_accessor, cost, NULL },
    { "upsample_linear1d_out_frame_unrolled", "*b**", by_accessor, cost, NULL },
    { "upsample_linear1d_out_frame_backward", "i*b**", by_accessor, cost, NULL },
    { "upsample_linear1d_out_frame_backward_unrolled", "*b**", by_accessor, cost, NULL },
    { "upsample_bilinear2d_out_frame", "i**b**", by_accessor, cost, NULL },
    { "upsample_bilinear2d_backward_out_frame", "piiii**bpp", planes_backward, cost, NULL },
    { "upsample_bilinear2d_nhwc_out_frame", "**biiiiipp*", last_forward, cost, NULL },
    { "upsample_bilinear2d_backward_nhwc_out_frame", "iiii**bppi**", last_backward, cost, NULL },
    { "upsample_bicubic2d_out_frame", "i**b**", by_accessor, cost, NULL },
    { "upsample_bicubic2d_out_frame_parallel", "i**b**", by_accessor, cost, NULL },
    { "upsample_bicubic2d_backward_out_frame", "i**b**", by_accessor, cost, NULL },
    { "upsample_trilinear3d_out_frame", "i***b**", by_accessor, cost, NULL },
    { "upsample_trilinear3d_backward_out_frame", "i***b**p", by_accessor, cost, NULL },
    { "upsample_gen2d_aa_out_frame", "*****", antialias, cost, bind_filter },
    { "upsample_gen2d_aa_backward_out_frame", "*****", antialias, cost, bind_filter },
    KERN_END
};
