/*
 * Pooling in two dimensions: maximum with indices, average, adaptive average and maximum, putting maxima back, forward and backward, for
 * planes (nchw) and channels last (nhwc). Sums are kept in double.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

/* A number that is int or int64 in different instantiations. */
static int64_t num(void *const *p, const struct kern *k, int i)
{
    return k->k->bytes[i] == 8 ? A(int64_t, i) : A(int, i);
}

struct window { int64_t h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw; };

/* Strides of one image's elements: of a row, a pixel, a channel, an image. */
struct layout { int64_t y, x, c, n; };

static void max_forward(enum dtype t, const struct window *g, int64_t images, int64_t channels, const struct layout *in,
                        const struct layout *out, const void *x, void *y, int64_t *mask)
{
    for (int64_t n = 0; n < images; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t oy = 0; oy < g->oh; oy++)
                for (int64_t ox = 0; ox < g->ow; ox++) {
                    double best = -INFINITY;
                    int64_t at = -1;
                    for (int64_t i = 0; i < g->kh; i++)
                        for (int64_t j = 0; j < g->kw; j++) {
                            int64_t iy = oy * g->sh - g->ph + i * g->dh, ix = ox * g->sw - g->pw + j * g->dw;
                            if (iy < 0 || ix < 0 || iy >= g->h || ix >= g->w) continue;
                            double v = dtype_get(t, x, n * in->n + c * in->c + iy * in->y + ix * in->x);
                            if (at < 0 || v > best || v != v) {
                                best = v;
                                at = iy * g->w + ix;
                            }
                        }
                    int64_t o = n * out->n + c * out->c + oy * out->y + ox * out->x;
                    dtype_set(t, y, o, best);
                    mask[o] = at;
                }
}

static void max_backward(enum dtype t, const struct window *g, int64_t images, int64_t channels, const struct layout *top,
                         const struct layout *bottom, const void *dy, const int64_t *mask, void *dx)
{
    double *acc = row_scratch(g->h * g->w);
    for (int64_t n = 0; n < images; n++)
        for (int64_t c = 0; c < channels; c++) {
            memset(acc, 0, sizeof(double) * (size_t)(g->h * g->w));
            for (int64_t o = 0; o < g->oh * g->ow; o++) {
                int64_t at = n * top->n + c * top->c + o / g->ow * top->y + o % g->ow * top->x;
                if (mask[at] >= 0) acc[mask[at]] += dtype_get(t, dy, at);
            }
            for (int64_t y = 0; y < g->h; y++) row_store(t, acc + y * g->w, dx, n * bottom->n + c * bottom->c + y * bottom->y, bottom->x, g->w);
        }
    free(acc);
}

static struct layout planes(int64_t channels, int64_t h, int64_t w)
{
    return (struct layout){ w, 1, h * w, channels * h * w };
}

static struct layout last(int64_t channels, int64_t h, int64_t w)
{
    return (struct layout){ w * channels, channels, 1, channels * h * w };
}

static void read_window(struct window *g, void *const *p, const struct kern *k, int h, int rest, int n)
{
    memset(g, 0, sizeof *g);
    int64_t *f = (int64_t *)g;
    f[0] = num(p, k, h);
    f[1] = num(p, k, h + 1);
    for (int i = 0; i < n; i++) f[2 + i] = num(p, k, rest + i);
}

/* (n, const T *x, channels, h, w, out h, out w, kernel.., stride.., pad.., dilation.., T *y, i64 *mask) */
static void max_fwd_planes(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct window g;
    read_window(&g, p, k, 3, 5, 10);
    int64_t channels = num(p, k, 2), images = num(p, k, 0) / (channels * g.oh * g.ow);
    struct layout in = planes(channels, g.h, g.w), out = planes(channels, g.oh, g.ow);
    max_forward(k->t[0], &g, images, channels, &in, &out, A(const void *, 1), A(void *, 15), A(int64_t *, 16));
}

/* (const T *x, images, channels, h, w, out h, .. dilation w, strides of n, c, h, w, .., T *y, i64 *mask) */
static void max_fwd_last(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct window g;
    read_window(&g, p, k, 3, 5, 10);
    int64_t images = num(p, k, 1), channels = num(p, k, 2);
    struct layout in = { num(p, k, 17), num(p, k, 18), num(p, k, 16), num(p, k, 15) }, out = last(channels, g.oh, g.ow);
    max_forward(k->t[0], &g, images, channels, &in, &out, A(const void *, 0), A(void *, 21), A(int64_t *, 22));
}

/* (const T *dy, const i64 *mask, images, channels, h, w, out h, .. dilation w, T *dx) */
static void max_bwd_planes(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct window g;
    read_window(&g, p, k, 4, 6, 10);
    int64_t images = num(p, k, 2), channels = num(p, k, 3);
    struct layout top = planes(channels, g.oh, g.ow), bottom = planes(channels, g.h, g.w);
    max_backward(k->t[0], &g, images, channels, &top, &bottom, A(const void *, 0), A(const int64_t *, 1), A(void *, 16));
}

/* .. the same, then strides of c, h, w of dy, .., T *dx */
static void max_bwd_last(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct window g;
    read_window(&g, p, k, 4, 6, 10);
    int64_t images = num(p, k, 2), channels = num(p, k, 3), sc = num(p, k, 16), sh = num(p, k, 17), sw = num(p, k, 18);
    struct layout top = { sh, sw, sc, channels * g.oh * g.ow }, bottom = last(channels, g.h, g.w);
    max_backward(k->t[0], &g, images, channels, &top, &bottom, A(const void *, 0), A(const int64_t *, 1), A(void *, 21));
}

struct average { struct window g; int64_t divisor; bool count_pad, use_divisor; };

static void average_range(const struct average *a, int64_t oy, int64_t ox, int64_t r[4], double *divide)
{
    const struct window *g = &a->g;
    int64_t y0 = oy * g->sh - g->ph, x0 = ox * g->sw - g->pw;
    int64_t y1 = KERN_MIN(y0 + g->kh, g->h + g->ph), x1 = KERN_MIN(x0 + g->kw, g->w + g->pw), pool = (y1 - y0) * (x1 - x0);
    r[0] = KERN_MAX(y0, 0);
    r[1] = KERN_MIN(y1, g->h);
    r[2] = KERN_MAX(x0, 0);
    r[3] = KERN_MIN(x1, g->w);
    *divide = a->use_divisor ? (double)a->divisor : a->count_pad ? (double)pool : (double)((r[1] - r[0]) * (r[3] - r[2]));
}

static void average_forward(enum dtype t, const struct average *a, int64_t images, int64_t channels, struct layout in,
                            struct layout out, const void *x, void *y)
{
    for (int64_t n = 0; n < images; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t o = 0; o < a->g.oh * a->g.ow; o++) {
                int64_t r[4];
                double d, s = 0;
                average_range(a, o / a->g.ow, o % a->g.ow, r, &d);
                for (int64_t i = r[0]; i < r[1]; i++)
                    for (int64_t j = r[2]; j < r[3]; j++) s += dtype_get(t, x, n * in.n + c * in.c + i * in.y + j * in.x);
                bool empty = r[0] >= r[1] || r[2] >= r[3];
                dtype_set(t, y, n * out.n + c * out.c + o / a->g.ow * out.y + o % a->g.ow * out.x, empty ? 0 : s / d);
            }
}

static void average_backward(enum dtype t, const struct average *a, int64_t images, int64_t channels, struct layout top,
                             struct layout bottom, const void *dy, void *dx)
{
    double *acc = row_scratch(a->g.h * a->g.w);
    for (int64_t n = 0; n < images; n++)
        for (int64_t c = 0; c < channels; c++) {
            memset(acc, 0, sizeof(double) * (size_t)(a->g.h * a->g.w));
            for (int64_t o = 0; o < a->g.oh * a->g.ow; o++) {
                int64_t r[4];
                double d;
                average_range(a, o / a->g.ow, o % a->g.ow, r, &d);
                double v = dtype_get(t, dy, n * top.n + c * top.c + o / a->g.ow * top.y + o % a->g.ow * top.x) / d;
                for (int64_t i = r[0]; i < r[1]; i++)
                    for (int64_t j = r[2]; j < r[3]; j++) acc[i * a->g.w + j] += v;
            }
            for (int64_t y = 0; y < a->g.h; y++) row_store(t, acc + y * a->g.w, dx, n * bottom.n + c * bottom.c + y * bottom.y, bottom.x, a->g.w);
        }
    free(acc);
}

/* (n, const T *x, channels, h, w, out h, out w, kernel.., stride.., pad.., T *y, divisor, count padding, use divisor) */
static void avg_fwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct average a = { .divisor = num(p, k, 14), .count_pad = A(bool, 15), .use_divisor = A(bool, 16) };
    read_window(&a.g, p, k, 3, 5, 8);
    int64_t channels = num(p, k, 2), images = num(p, k, 0) / (channels * a.g.oh * a.g.ow);
    bool nhwc = strstr(k->name.base, "nhwc") != NULL;
    average_forward(k->t[0], &a, images, channels, (nhwc ? last : planes)(channels, a.g.h, a.g.w),
                    (nhwc ? last : planes)(channels, a.g.oh, a.g.ow), A(const void *, 1), A(void *, 13));
}

/* (n, const T *dy, channels, h, w, out h, out w, kernel.., [stride.., pad..,] T *dx, divisor, count padding, use divisor[, ..]) */
static void avg_bwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool apart = strstr(k->name.base, "nonoverlap") != NULL, nhwc = strstr(k->name.base, "nhwc") != NULL;
    int at = apart ? 9 : 13;
    struct average a = { .divisor = num(p, k, at + 1), .count_pad = A(bool, at + 2), .use_divisor = A(bool, at + 3) };
    read_window(&a.g, p, k, 3, 5, apart ? 4 : 8);
    if (apart) {
        a.g.sh = a.g.kh;
        a.g.sw = a.g.kw;
    }
    int64_t channels = num(p, k, 2), images = num(p, k, 0) / (channels * a.g.h * a.g.w);
    average_backward(k->t[0], &a, images, channels, (nhwc ? last : planes)(channels, a.g.oh, a.g.ow),
                     (nhwc ? last : planes)(channels, a.g.h, a.g.w), A(const void *, 1), A(void *, at));
}

static int64_t from(int64_t o, int64_t in, int64_t out) { return o * in / out; }
static int64_t to(int64_t o, int64_t in, int64_t out) { return ((o + 1) * in + out - 1) / out; }

struct adaptive { int64_t h, w, oh, ow; };

static void adaptive_forward(enum dtype t, const struct adaptive *g, const void *x, int64_t x_at, struct layout in, void *y,
                             int64_t y_at, struct layout out, int64_t *index)
{
    for (int64_t o = 0; o < g->oh * g->ow; o++) {
        int64_t oy = o / g->ow, ox = o % g->ow, y0 = from(oy, g->h, g->oh), y1 = to(oy, g->h, g->oh), x0 = from(ox, g->w, g->ow),
                x1 = to(ox, g->w, g->ow), best_at = y0 * g->w + x0;
        double s = 0, best = -INFINITY;
        for (int64_t i = y0; i < y1; i++)
            for (int64_t j = x0; j < x1; j++) {
                double v = dtype_get(t, x, x_at + i * in.y + j * in.x);
                s += v;
                if (v > best || v != v) {
                    best = v;
                    best_at = i * g->w + j;
                }
            }
        int64_t at = y_at + oy * out.y + ox * out.x;
        dtype_set(t, y, at, index ? best : s / (double)((y1 - y0) * (x1 - x0)));
        if (index) index[at] = best_at;
    }
}

static void adaptive_backward(enum dtype t, const struct adaptive *g, void *dx, int64_t x_at, struct layout in, const void *dy,
                              int64_t y_at, struct layout out, const int64_t *index)
{
    double *acc = row_scratch(g->h * g->w);
    memset(acc, 0, sizeof(double) * (size_t)(g->h * g->w));
    for (int64_t o = 0; o < g->oh * g->ow; o++) {
        int64_t oy = o / g->ow, ox = o % g->ow, y0 = from(oy, g->h, g->oh), y1 = to(oy, g->h, g->oh), x0 = from(ox, g->w, g->ow),
                x1 = to(ox, g->w, g->ow), at = y_at + oy * out.y + ox * out.x;
        double v = dtype_get(t, dy, at);
        if (index) acc[index[at]] += v;
        else
            for (int64_t i = y0; i < y1; i++)
                for (int64_t j = x0; j < x1; j++) acc[i * g->w + j] += v / (double)(y1 - y0) / (double)(x1 - x0);
    }
    for (int64_t i = 0; i < g->h; i++) row_store(t, acc + i * g->w, dx, x_at + i * in.y, in.x, g->w);
    free(acc);
}

/* (const T *x, T *y, h, w, out h, out w, i64 stride of planes, rows, pixels): a block a plane */
static void adaptive_avg_fwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    struct adaptive g = { num(p, k, 2), num(p, k, 3), num(p, k, 4), num(p, k, 5) };
    struct layout in = { A(int64_t, 7), A(int64_t, 8), A(int64_t, 6), 0 }, out = planes(1, g.oh, g.ow);
    for (int64_t c = 0; c < l->grid.x; c++)
        adaptive_forward(k->t[0], &g, A(const void *, 0), c * in.c, in, A(void *, 1), c * out.c, out, NULL);
}

/* (T *dx, const T *dy, h, w, out h, out w) */
static void adaptive_avg_bwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    struct adaptive g = { num(p, k, 2), num(p, k, 3), num(p, k, 4), num(p, k, 5) };
    struct layout in = planes(1, g.h, g.w), out = planes(1, g.oh, g.ow);
    for (int64_t c = 0; c < l->grid.x; c++)
        adaptive_backward(k->t[0], &g, A(void *, 0), c * in.c, in, A(const void *, 1), c * out.c, out, NULL);
}

/* <Index, T> (x or dx, y or dy, images, channels, h, w, out h, out w, .., .., strides of image, channel, row, pixel) */
static void adaptive_avg_last(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[1];
    bool back = strstr(k->name.base, "grad") != NULL;
    int64_t images = num(p, k, 2), channels = num(p, k, 3);
    struct adaptive g = { num(p, k, 4), num(p, k, 5), num(p, k, 6), num(p, k, 7) };
    struct layout given = { num(p, k, 12), num(p, k, 13), num(p, k, 11), num(p, k, 10) };
    struct layout in = back ? last(channels, g.h, g.w) : given, out = back ? given : last(channels, g.oh, g.ow);
    for (int64_t n = 0; n < images; n++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t x_at = n * in.n + c * in.c, y_at = n * out.n + c * out.c;
            if (back) adaptive_backward(t, &g, A(void *, 0), x_at, in, A(const void *, 1), y_at, out, NULL);
            else adaptive_forward(t, &g, A(const void *, 0), x_at, in, A(void *, 1), y_at, out, NULL);
        }
}

/* (const T *x, T *y, i64 *index, h, w, out h, out w, i64 stride of planes, rows, pixels) */
static void adaptive_max_fwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    struct adaptive g = { num(p, k, 3), num(p, k, 4), num(p, k, 5), num(p, k, 6) };
    struct layout in = { A(int64_t, 8), A(int64_t, 9), A(int64_t, 7), 0 }, out = planes(1, g.oh, g.ow);
    for (int64_t c = 0; c < l->grid.x; c++)
        adaptive_forward(k->t[0], &g, A(const void *, 0), c * in.c, in, A(void *, 1), c * out.c, out, A(int64_t *, 2));
}

/* (T *dx, const T *dy, const i64 *index, h, w, out h, out w) */
static void adaptive_max_bwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    struct adaptive g = { num(p, k, 3), num(p, k, 4), num(p, k, 5), num(p, k, 6) };
    struct layout in = planes(1, g.h, g.w), out = planes(1, g.oh, g.ow);
    for (int64_t c = 0; c < l->grid.x; c++)
        adaptive_backward(k->t[0], &g, A(void *, 0), c * in.c, in, A(const void *, 1), c * out.c, out, A(const int64_t *, 2));
}

/* (i64 n, const T *x, const i64 *index, i64 channels, ih, iw, oh, ow, T *y): x goes to its places in planes of y that were zeroed; backward: (n,
   const T *dy, index, channels, ih, iw, oh, ow, T *dx), where it is fetched from there */
static void unpool(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool back = strstr(k->name.base, "backward") != NULL;
    size_t es = dtype_bytes(k->t[0]);
    int64_t in = A(int64_t, 4) * A(int64_t, 5), out = A(int64_t, 6) * A(int64_t, 7);
    for (int64_t i = 0; i < A(int64_t, 0); i++) {
        int64_t at = i / in * out + A(const int64_t *, 2)[i], src = back ? at : i, dst = back ? i : at;
        memcpy(A(char *, 8) + dst * (int64_t)es, A(const char *, 1) + src * (int64_t)es, es);
    }
}

const struct kern_row pool_rows[] = {
    { "max_pool_forward_nchw", "*pppp**********pp", max_fwd_planes, NULL, NULL },
    { "max_pool_forward_nhwc", "p********************pp", max_fwd_last, NULL, NULL },
    { "max_pool_backward_nchw", "pp**************p", max_bwd_planes, NULL, NULL },
    { "max_pool_backward_nhwc", "pp*******************p", max_bwd_last, NULL, NULL },
    { "avg_pool2d_out_cuda_frame", "*p***********pibb", avg_fwd, NULL, NULL },
    { "avg_pool2d_out_cuda_frame_nhwc", "*p***********pibb", avg_fwd, NULL, NULL },
    { "avg_pool2d_backward_out_cuda_frame", "*p***********pibb", avg_bwd, NULL, NULL },
    { "avg_pool2d_backward_out_cuda_frame", "*p***********pibbb", avg_bwd, NULL, NULL },
    { "avg_pool2d_backward_out_cuda_frame_nhwc", "*p***********pibb", avg_bwd, NULL, NULL },
    { "avg_pool2d_backward_out_cuda_frame_nhwc", "*p***********pibbb", avg_bwd, NULL, NULL },
    { "avg_pool2d_backward_nonoverlap_frame", "*p*******pibb", avg_bwd, NULL, NULL },
    { "adaptive_average_pool", "pp****ppp", adaptive_avg_fwd, NULL, NULL },
    { "adaptive_average_gradinput", "pp****", adaptive_avg_bwd, NULL, NULL },
    { "atomic_adaptive_average_gradinput", "pp****", adaptive_avg_bwd, NULL, NULL },
    { "adaptive_average_pool_nhwc", "pp************", adaptive_avg_last, NULL, NULL },
    { "adaptive_average_gradinput_nhwc", "pp************", adaptive_avg_last, NULL, NULL },
    { "adaptivemaxpool", "ppp****ppp", adaptive_max_fwd, NULL, NULL },
    { "adaptivemaxgradinput", "ppp****", adaptive_max_bwd, NULL, NULL },
    { "atomicadaptivemaxgradinput", "ppp****", adaptive_max_bwd, NULL, NULL },
    { "max_unpooling2d_forward_kernel", "ppppppppp", unpool, NULL, NULL },
    { "max_unpooling2d_backward_kernel", "ppppppppp", unpool, NULL, NULL },
    KERN_END
};
