/*
 * Resizing by the nearest element: one to three dimensions, planes or channels last, forward and backward. (resize.c: by weights.)
 */
#include <math.h>
#include <string.h>

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

/* (x or dy, images, channels, its d, h, w, the other's d, h, w, y or dx, scale d, h, w) */
static void nearest_3d(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool exact = is_exact(k);
    size_t es = dtype_bytes(k->t[0]);
    int64_t planes = A(int64_t, 1) * A(int64_t, 2), from[3], to[3], o[3], at[3];
    for (int d = 0; d < 3; d++) {
        from[d] = A(int64_t, 3 + d);
        to[d] = A(int64_t, 6 + d);
    }
    int64_t from_n = from[0] * from[1] * from[2], to_n = to[0] * to[1] * to[2];
    bool back = strstr(k->name.base, "backward") != NULL;
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t i = 0; i < to_n; i++) {
            o[0] = i / (to[1] * to[2]), o[1] = i / to[2] % to[1], o[2] = i % to[2];
            if (!back) {
                for (int d = 0; d < 3; d++) at[d] = source(A(float, 10 + d), o[d], from[d], exact);
                memcpy(A(char *, 9) + (plane * to_n + i) * (int64_t)es,
                       A(const char *, 0) + (plane * from_n + (at[0] * from[1] + at[1]) * from[2] + at[2]) * (int64_t)es, es);
                continue;
            }
            double sum = 0;
            int64_t first[3], end[3];
            for (int d = 0; d < 3; d++) {
                first[d] = first_from(A(float, 10 + d), o[d], from[d], exact);
                end[d] = first_from(A(float, 10 + d), o[d] + 1, from[d], exact);
            }
            for (at[0] = first[0]; at[0] < end[0]; at[0]++)
                for (at[1] = first[1]; at[1] < end[1]; at[1]++)
                    for (at[2] = first[2]; at[2] < end[2]; at[2]++)
                        sum += dtype_get(k->t[0], A(const void *, 0), plane * from_n + (at[0] * from[1] + at[1]) * from[2] + at[2]);
            dtype_set(k->t[0], A(void *, 9), plane * to_n + i, sum);
        }
}

/* The larger side's elements are read or written once each. */
static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    uint64_t n = 1, m = 1;
    kern_run_fn *f = k->row->run;
    int sizes = f == nearest_1d ? 1 : f == nearest_3d ? 3 : 2;
    int from = f == nearest_2d ? 3 : f == nearest_2d_last ? 3 : f == nearest_2d_last_back ? 2 : 3;
    for (int i = 0; i < sizes; i++) {
        n *= A(uint64_t, from + i);
        m *= A(uint64_t, from + sizes + i);
    }
    n = KERN_MAX(n, m);
    if (f == nearest_2d) n *= A(uint64_t, 2);
    else if (f == nearest_2d_last) n = A(uint64_t, 9);
    else if (f == nearest_2d_last_back) n *= A(uint64_t, 9) / KERN_MAX(A(uint64_t, 4) * A(uint64_t, 5), 1);
    else n *= A(uint64_t, 1) * A(uint64_t, 2);
    *flops = n;
    *bytes = 2 * n * dtype_bytes(k->t[0]);
}

const struct kern_row upsample_rows[] = {
    { "upsample_nearest2d_out_frame", "pppppppii", nearest_2d, cost, NULL },
    { "upsample_nearest2d_nhwc_out_frame", "pppppppiip", nearest_2d_last, cost, NULL },
    { "upsample_nearest2d_backward_out_frame", "ppppppppii", nearest_2d_back, cost, NULL },
    { "upsample_nearest2d_backward_nhwc_out_frame", "pppppppiip", nearest_2d_last_back, cost, NULL },
    { "upsample_nearest1d_out_frame", "ppppppi", nearest_1d, cost, NULL },
    { "upsample_nearest1d_backward_out_frame", "ppppppi", nearest_1d, cost, NULL },
    { "upsample_nearest3d_out_frame", "pppppppppp" "iii", nearest_3d, cost, NULL },
    { "upsample_nearest3d_backward_out_frame", "pppppppppp" "iii", nearest_3d, cost, NULL },
    KERN_END
};
