/*
 * Sampling an image at the places of a grid (torch.nn.functional.grid_sample), two and three dimensions, forward and backward.
 * Coordinates are computed in float for f32, f16 and bf16, as on the device: which element is the nearest may hang on the last bit.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/order.h"
#include "tests/simcuda/kernels/rows.h"

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

struct how { int64_t interpolation, padding; bool align, single; };

static double rounded(const struct how *h, double v) { return h->single ? (double)(float)v : v; }

/* From [-1, 1] to elements; *slope is the factor. */
static double unnormalize(const struct how *h, double v, int64_t size, double *slope)
{
    *slope = h->align ? (double)(size - 1) / 2 : (double)size / 2;
    return rounded(h, h->align ? (v + 1) / 2 * (double)(size - 1) : ((v + 1) * (double)size - 1) / 2);
}

static double clip(double v, int64_t size, double *slope)
{
    if (v <= 0) { *slope = 0; return 0; }
    if (v >= (double)(size - 1)) { *slope = 0; return (double)(size - 1); }
    return v;
}

/* Reflected between low / 2 and high / 2. */
static double reflect(double v, int64_t low, int64_t high, double *slope)
{
    if (low == high) { *slope = 0; return 0; }
    double least = (double)low / 2, span = (double)(high - low) / 2;
    v -= least;
    if (v < 0) { v = -v; *slope = -*slope; }
    double extra = fmod(v, span);
    if ((int64_t)floor(v / span) % 2 == 0) return extra + least;
    *slope = -*slope;
    return span - extra + least;
}

static double padded(const struct how *h, double v, int64_t size, double *slope)
{
    if (h->padding == BORDER) v = clip(v, size, slope);
    else if (h->padding == REFLECTION) {
        v = h->align ? reflect(v, 0, 2 * (size - 1), slope) : reflect(v, -1, 2 * size - 1, slope);
        v = clip(v, size, slope);
    }
    /* what no integer can hold lies outside everything */
    return isfinite(v) && fabs(v) < 0x1p30 ? rounded(h, v) : -100;
}

static double source(const struct how *h, double v, int64_t size, double *slope)
{
    double inner = 1;
    v = padded(h, unnormalize(h, v, size, slope), size, &inner);
    *slope *= inner;
    return v;
}

/* Weights of four neighbours at distance t behind the second, and their slopes. */
static void cubic(double t, double w[4], double s[4])
{
    const double a = -0.75;
    double x[4] = { t + 1, t, 1 - t, 2 - t };
    for (int i = 0; i < 4; i++) {
        double d = x[i], sign = i < 2 ? 1 : -1;
        bool near = i == 1 || i == 2;
        w[i] = near ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
        s[i] = sign * (near ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a);
    }
}

/* The elements that one place takes along one axis, their weights, and how these change with the grid's value. */
struct axis { int n; int64_t at[4]; double w[4], s[4]; };

static void axis_of(const struct how *h, double v, int64_t size, struct axis *a)
{
    double slope;
    if (h->interpolation == NEAREST) {
        *a = (struct axis){ .n = 1, .at = { (int64_t)nearbyint(source(h, v, size, &slope)) }, .w = { 1 } };
    } else if (h->interpolation == BILINEAR) {
        double x = source(h, v, size, &slope), low = floor(x);
        *a = (struct axis){ .n = 2, .at = { (int64_t)low, (int64_t)low + 1 }, .w = { low + 1 - x, x - low }, .s = { -slope, slope } };
    } else {
        double x = unnormalize(h, v, size, &slope), low = floor(x);
        a->n = 4;
        cubic(x - low, a->w, a->s);
        for (int i = 0; i < 4; i++) {
            double unused = 1;
            a->s[i] *= slope;
            a->at[i] = (int64_t)padded(h, low - 1 + i, size, &unused);
        }
    }
    for (int i = 0; i < a->n; i++)
        if (a->at[i] < 0 || a->at[i] >= size) a->at[i] = -1;
}

/* Outputs have dimensions (images, channels, [depth,] rows, columns), the grid (images, [depth,] rows, columns, coordinates). */
struct sampling { struct how h; int dims; struct tinfo in, grid, out; int64_t places; };

static void read_sampling(struct sampling *s, void *const *p, const struct kern *k, int in, int grid, int out, int how)
{
    enum dtype t = k->t[0];
    s->dims = strstr(k->name.base, "3d") ? 3 : 2;
    s->in = tinfo_read(p[in], k->k->bytes[in]);
    s->grid = tinfo_read(p[grid], k->k->bytes[grid]);
    s->out = tinfo_read(p[out], k->k->bytes[out]);
    s->h = (struct how){ A(int, how), A(int, how + 1), A(bool, how + 2), t != DT_F64 };
    s->places = s->out.size[0];
    for (int d = 0; d < s->dims; d++) s->places *= s->out.size[2 + d];
}

/* The place's image and offsets, and its axes (the last coordinate of the grid's is the first dimension's). */
static void locate(const struct sampling *s, enum dtype t, int64_t place, int64_t *image, int64_t *out_at, int64_t *grid_at, struct axis a[3])
{
    int64_t rest = place, at = 0, g = 0;
    for (int d = s->dims - 1; d >= 0; d--) {
        int64_t i = rest % s->out.size[2 + d];
        rest /= s->out.size[2 + d];
        at += i * s->out.stride[2 + d];
        g += i * s->grid.stride[1 + d];
    }
    *image = rest;
    *out_at = at + rest * s->out.stride[0];
    *grid_at = g + rest * s->grid.stride[0];
    a[0] = (struct axis){ .n = 1, .w = { 1 } };
    for (int d = 0; d < s->dims; d++) {
        double v = dtype_get(t, s->grid.data, *grid_at + d * s->grid.stride[s->dims + 1]);
        axis_of(&s->h, v, s->in.size[2 + s->dims - 1 - d], &a[2 - d]);
    }
}

static int64_t element_of(const struct sampling *s, const struct axis a[3], int i, int j, int k)
{
    if (a[0].at[i] < 0 || a[1].at[j] < 0 || a[2].at[k] < 0) return -1;
    const int64_t *st = s->in.stride + 2;
    return s->dims == 3 ? a[0].at[i] * st[0] + a[1].at[j] * st[1] + a[2].at[k] * st[2] : a[1].at[j] * st[0] + a[2].at[k] * st[1];
}

#define EACH(a) for (int i = 0; i < a[0].n; i++) for (int j = 0; j < a[1].n; j++) for (int c = 0; c < a[2].n; c++)

/* (n, info input, info grid, info output, interpolation, padding, align corners) */
static void forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct sampling s;
    read_sampling(&s, p, k, 1, 2, 3, 4);
    for (int64_t place = 0; place < s.places; place++) {
        int64_t image, at, grid_at;
        struct axis a[3];
        locate(&s, t, place, &image, &at, &grid_at, a);
        for (int64_t ch = 0; ch < s.out.size[1]; ch++) {
            double v = 0;
            EACH(a) {
                int64_t e = element_of(&s, a, i, j, c);
                if (e >= 0) v += a[0].w[i] * a[1].w[j] * a[2].w[c] * dtype_get(t, s.in.data, image * s.in.stride[0] + ch * s.in.stride[1] + e);
            }
            dtype_set(t, s.out.data, at + ch * s.out.stride[1], v);
        }
    }
}

/* (n, info dy, info input, info grid, info dx, info dgrid, interpolation, padding, align corners, elements of dx, is dx wanted): dx gains by
   atomics */
static void backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    struct sampling s;
    read_sampling(&s, p, k, 2, 3, 1, 6);
    bool wanted = A(bool, 10);
    struct tinfo dgrid = tinfo_read(p[5], k->k->bytes[5]), dx = { 0 };
    if (wanted) dx = tinfo_read(p[4], k->k->bytes[4]);
    struct sampling to = s;
    to.in = dx;
    for (int64_t o = 0; o < s.places; o++) {
        int64_t place = order_of(l->chaos, o, s.places), image, at, grid_at;
        struct axis a[3];
        double slope[3] = { 0 };
        locate(&s, t, place, &image, &at, &grid_at, a);
        for (int64_t ch = 0; ch < s.out.size[1]; ch++) {
            double d = dtype_get(t, s.out.data, at + ch * s.out.stride[1]);
            EACH(a) {
                int64_t e = element_of(&s, a, i, j, c);
                if (e < 0) continue;
                if (wanted) {
                    int64_t x = image * dx.stride[0] + ch * dx.stride[1] + element_of(&to, a, i, j, c);
                    dtype_set(t, dx.data, x, dtype_get(t, dx.data, x) + d * a[0].w[i] * a[1].w[j] * a[2].w[c]);
                }
                double v = d * dtype_get(t, s.in.data, image * s.in.stride[0] + ch * s.in.stride[1] + e);
                slope[0] += v * a[0].s[i] * a[1].w[j] * a[2].w[c];
                slope[1] += v * a[0].w[i] * a[1].s[j] * a[2].w[c];
                slope[2] += v * a[0].w[i] * a[1].w[j] * a[2].s[c];
            }
        }
        /* the gradient of the grid is dense */
        for (int c = 0; c < s.dims; c++) dtype_set(t, dgrid.data, place * s.dims + c, slope[2 - c]);
    }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    bool back = k->row->run == backward;
    struct sampling s;
    read_sampling(&s, p, k, back ? 2 : 1, back ? 3 : 2, back ? 1 : 3, back ? 6 : 4);
    uint64_t taps = s.h.interpolation == NEAREST ? 1 : s.h.interpolation == BILINEAR ? 1u << s.dims : 16;
    uint64_t n = (uint64_t)s.places * (uint64_t)s.out.size[1];
    *flops = n * taps * (back ? 10 : 4);
    *bytes = n * (taps + 1) * (back ? 3 : 1) * dtype_bytes(k->t[0]);
}

const struct kern_row gridsample_rows[] = {
    { "grid_sampler_2d_kernel", "****iib", forward, cost, NULL },
    { "grid_sampler_3d_kernel", "****iib", forward, cost, NULL },
    { "grid_sampler_2d_backward_kernel", "******iib*b", backward, cost, NULL },
    { "grid_sampler_3d_backward_kernel", "******iib*b", backward, cost, NULL },
    KERN_END
};
