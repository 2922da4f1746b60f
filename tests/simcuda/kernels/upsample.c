/*
 * Resizing: nearest (one and two dimensions, planes or channels last) and bilinear, forward and backward.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

static bool is_exact(const struct kern *k) { return strstr(k->name.text, "nearest_neighbor_exact") != NULL; }

static int64_t source(float scale, int64_t dst, int64_t size, bool exact)
{
    int64_t s = (int64_t)floorf(((float)dst + (exact ? 0.5f : 0)) * scale);
    return KERN_MIN(s, size - 1);
}

/* The first element of the output that comes from input element dst. */
static int64_t first_from(float scale, int64_t dst, int64_t size, bool exact)
{
    int64_t s = (int64_t)ceilf((float)dst * scale - (exact ? 0.5f : 0));
    return KERN_MIN(KERN_MAX(s, 0), size);
}

struct nearest { int64_t planes, channels, ih, iw, oh, ow; float sh, sw; bool last; };

static int64_t place(const struct nearest *g, int64_t plane, int64_t y, int64_t x, int64_t h, int64_t w)
{
    int64_t n = plane / g->channels, c = plane % g->channels;
    return g->last ? ((n * h + y) * w + x) * g->channels + c : (plane * h + y) * w + x;
}

static void nearest_forward(const struct kern *k, const struct nearest *g, const char *x, char *y)
{
    size_t es = dtype_bytes(k->t[0]);
    for (int64_t p = 0; p < g->planes; p++)
        for (int64_t i = 0; i < g->oh; i++)
            for (int64_t j = 0; j < g->ow; j++)
                memcpy(y + place(g, p, i, j, g->oh, g->ow) * (int64_t)es,
                       x + place(g, p, source(g->sh, i, g->ih, is_exact(k)), source(g->sw, j, g->iw, is_exact(k)), g->ih, g->iw) * (int64_t)es, es);
}

static void nearest_backward(const struct kern *k, const struct nearest *g, const void *dy, void *dx)
{
    bool exact = is_exact(k);
    for (int64_t p = 0; p < g->planes; p++)
        for (int64_t i = 0; i < g->ih; i++)
            for (int64_t j = 0; j < g->iw; j++) {
                double s = 0;
                int64_t y1 = first_from(g->sh, i + 1, g->oh, exact), x1 = first_from(g->sw, j + 1, g->ow, exact);
                for (int64_t y = first_from(g->sh, i, g->oh, exact); y < y1; y++)
                    for (int64_t x = first_from(g->sw, j, g->ow, exact); x < x1; x++)
                        s += dtype_get(k->t[0], dy, place(g, p, y, x, g->oh, g->ow));
                dtype_set(k->t[0], dx, place(g, p, i, j, g->ih, g->iw), s);
            }
}

/* (const T *x, T *y, planes, ih, iw, oh, ow, scale h, scale w) */
static void nearest_2d(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct nearest g = { A(int64_t, 2), 1, A(int64_t, 3), A(int64_t, 4), A(int64_t, 5), A(int64_t, 6), A(float, 7), A(float, 8), false };
    nearest_forward(k, &g, A(const char *, 0), A(char *, 1));
}

/* (.., channels, ih, iw, oh, ow, scales, elements of y) */
static void nearest_2d_last(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct nearest g = { 0, A(int64_t, 2), A(int64_t, 3), A(int64_t, 4), A(int64_t, 5), A(int64_t, 6), A(float, 7), A(float, 8), true };
    g.planes = A(int64_t, 9) / (g.oh * g.ow);
    nearest_forward(k, &g, A(const char *, 0), A(char *, 1));
}

/* (const T *dy, images, channels, oh, ow, ih, iw, T *dx, scale h, scale w) */
static void nearest_2d_back(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct nearest g = { A(int64_t, 1) * A(int64_t, 2), 1, A(int64_t, 5), A(int64_t, 6), A(int64_t, 3), A(int64_t, 4), A(float, 8), A(float, 9), false };
    nearest_backward(k, &g, A(const void *, 0), A(void *, 7));
}

/* (const T *dy, T *dx, oh, ow, ih, iw, channels, scales, elements of dx) */
static void nearest_2d_last_back(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct nearest g = { 0, A(int64_t, 6), A(int64_t, 4), A(int64_t, 5), A(int64_t, 2), A(int64_t, 3), A(float, 7), A(float, 8), true };
    g.planes = A(int64_t, 9) / (g.ih * g.iw);
    nearest_backward(k, &g, A(const void *, 0), A(void *, 1));
}

/* (const T *x, images, channels, iw, ow, T *y, scale); backward: dy, .., ow, iw, dx */
static void nearest_1d(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool back = strstr(k->name.base, "backward") != NULL;
    struct nearest g = { A(int64_t, 1) * A(int64_t, 2), 1, 1, A(int64_t, back ? 4 : 3), 1, A(int64_t, back ? 3 : 4), 1, A(float, 6), false };
    if (back) nearest_backward(k, &g, A(const void *, 0), A(void *, 5));
    else nearest_forward(k, &g, A(const char *, 0), A(char *, 5));
}

/* Where output element i lies among the inputs: element, whether it has a neighbour behind, weight of that. */
static void between(double scale, int64_t i, int64_t size, bool align, int64_t *at, int64_t *next, double *w)
{
    double s = align ? scale * (double)i : scale * ((double)i + 0.5) - 0.5;
    if (s < 0) s = 0;
    *at = KERN_MIN((int64_t)s, size - 1);
    *next = *at < size - 1;
    *w = s - (double)*at;
}

/* (n, scale h, scale w, align corners, accessor<4> x, accessor<4> y); one dimension: (n, scale, align, accessor<3> x, y) */
static void linear(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], acc = k->t[1];
    bool one = k->k->n_params == 5, align = A(bool, one ? 2 : 3);
    int d = one ? 3 : 4;
    struct accessor x = accessor_read(p[one ? 3 : 4], d, true), y = accessor_read(p[one ? 4 : 5], d, true);
    double sh = one ? 1 : dtype_get(acc, p[1], 0), sw = dtype_get(acc, p[one ? 1 : 2], 0);
    if (one) { /* a row of height 1 */
        x.size[3] = x.size[2], x.stride[3] = x.stride[2], x.size[2] = 1, x.stride[2] = 0;
        y.size[3] = y.size[2], y.stride[3] = y.stride[2], y.size[2] = 1, y.stride[2] = 0;
    }
    for (int64_t i = 0; i < y.size[2]; i++)
        for (int64_t j = 0; j < y.size[3]; j++) {
            int64_t r, rn, c, cn;
            double wr, wc;
            between(sh, i, x.size[2], align || one, &r, &rn, &wr);
            between(sw, j, x.size[3], align, &c, &cn, &wc);
            for (int64_t n = 0; n < y.size[0]; n++)
                for (int64_t ch = 0; ch < y.size[1]; ch++) {
                    int64_t at = n * x.stride[0] + ch * x.stride[1] + r * x.stride[2] + c * x.stride[3], dn = rn * x.stride[2], right = cn * x.stride[3];
                    double v = (1 - wr) * ((1 - wc) * dtype_get(t, x.data, at) + wc * dtype_get(t, x.data, at + right))
                               + wr * ((1 - wc) * dtype_get(t, x.data, at + dn) + wc * dtype_get(t, x.data, at + dn + right));
                    dtype_set(t, y.data, n * y.stride[0] + ch * y.stride[1] + i * y.stride[2] + j * y.stride[3], v);
                }
        }
}

/* (planes, ih, iw, oh, ow, scale h, scale w, align corners, T *dx, const T *dy): added to what is there */
static void bilinear_back(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], acc = k->t[1];
    int64_t planes = A(int64_t, 0), ih = A(int, 1), iw = A(int, 2), oh = A(int, 3), ow = A(int, 4);
    double sh = dtype_get(acc, p[5], 0), sw = dtype_get(acc, p[6], 0), *sum = row_scratch(ih * iw);
    for (int64_t n = 0; n < planes; n++) {
        row_load(t, sum, A(void *, 8), n * ih * iw, 1, ih * iw);
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++) {
                int64_t r, rn, c, cn;
                double wr, wc, d = dtype_get(t, A(const void *, 9), (n * oh + i) * ow + j);
                between(sh, i, ih, A(bool, 7), &r, &rn, &wr);
                between(sw, j, iw, A(bool, 7), &c, &cn, &wc);
                double *at = sum + r * iw + c;
                at[0] += (1 - wr) * (1 - wc) * d;
                at[cn] += (1 - wr) * wc * d;
                at[rn * iw] += wr * (1 - wc) * d;
                at[rn * iw + cn] += wr * wc * d;
            }
        row_store(t, sum, A(void *, 8), n * ih * iw, 1, ih * iw);
    }
    free(sum);
}

const struct kern_row upsample_rows[] = {
    { "upsample_nearest2d_out_frame", "pppppppii", nearest_2d, NULL, NULL },
    { "upsample_nearest2d_nhwc_out_frame", "pppppppiip", nearest_2d_last, NULL, NULL },
    { "upsample_nearest2d_backward_out_frame", "ppppppppii", nearest_2d_back, NULL, NULL },
    { "upsample_nearest2d_backward_nhwc_out_frame", "pppppppiip", nearest_2d_last_back, NULL, NULL },
    { "upsample_nearest1d_out_frame", "ppppppi", nearest_1d, NULL, NULL },
    { "upsample_nearest1d_backward_out_frame", "ppppppi", nearest_1d, NULL, NULL },
    { "upsample_bilinear2d_out_frame", "i**b**", linear, NULL, NULL },
    { "upsample_linear1d_out_frame", "i*b**", linear, NULL, NULL },
    { "upsample_bilinear2d_backward_out_frame", "piiii**bpp", bilinear_back, NULL, NULL },
    KERN_END
};
