/*
 * Convolution as matrix products: unfolding an image to columns and back. All kernels count elements of the unfolded (im2col) or
 * the folded (col2im) side; parameters are the sizes, kernel, padding, stride, dilation, and sizes of the columns.
 */
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

struct geometry { int64_t h, w, kh, kw, ph, pw, sh, sw, dh, dw, ch, cw; };

static void read_geometry(struct geometry *g, void *const *p, const struct kern *k, int at)
{
    int64_t *f = (int64_t *)g;
    for (int i = 0; i < 12; i++) f[i] = k->k->bytes[at + i] == 8 ? A(int64_t, at + i) : A(int, at + i);
}

static int64_t clamp(int64_t x, int64_t lo, int64_t hi) { return x < lo ? lo : x > hi ? hi : x; }

/* Every stride-th element of a row. */
static void pick(size_t es, char *out, const char *row, int64_t stride, int64_t n)
{
    if (stride == 1) memcpy(out, row, (size_t)n * es);
    else if (es == 4) for (int64_t i = 0; i < n; i++) memcpy(out + i * 4, row + i * stride * 4, 4);
    else if (es == 2) for (int64_t i = 0; i < n; i++) memcpy(out + i * 2, row + i * stride * 2, 2);
    else for (int64_t i = 0; i < n; i++) memcpy(out + (size_t)i * es, row + (size_t)(i * stride) * es, es);
}

static void unfold(enum dtype t, const struct geometry *g, int64_t channels, const char *im, char *col)
{
    size_t es = dtype_bytes(t);
    for (int64_t c = 0; c < channels * g->kh * g->kw; c++) {
        int64_t kw = c % g->kw, kh = c / g->kw % g->kh, ch = c / g->kw / g->kh;
        const char *plane = im + (size_t)(ch * g->h * g->w) * es;
        /* columns whose element lies in the image: [from, to) */
        int64_t left = kw * g->dw - g->pw, from = clamp((-left + g->sw - 1) / g->sw, 0, g->cw);
        int64_t to = clamp(g->w > left ? (g->w - left + g->sw - 1) / g->sw : 0, from, g->cw);
        for (int64_t y = 0; y < g->ch; y++) {
            char *out = col + (size_t)((c * g->ch + y) * g->cw) * es;
            int64_t iy = y * g->sh - g->ph + kh * g->dh;
            if (iy < 0 || iy >= g->h) {
                memset(out, 0, (size_t)g->cw * es);
                continue;
            }
            memset(out, 0, (size_t)from * es);
            if (to > from) pick(es, out + (size_t)from * es, plane + (size_t)(iy * g->w + from * g->sw + left) * es, g->sw, to - from);
            memset(out + (size_t)to * es, 0, (size_t)(g->cw - to) * es);
        }
    }
}

static void fold(enum dtype t, const struct geometry *g, int64_t channels, const char *col, char *im)
{
    size_t es = dtype_bytes(t);
    int64_t plane = g->h * g->w;
    double *acc = row_scratch(plane + g->cw), *x = acc + plane;
    for (int64_t ch = 0; ch < channels; ch++) {
        memset(acc, 0, sizeof(double) * (size_t)plane);
        for (int64_t kh = 0; kh < g->kh; kh++)
            for (int64_t kw = 0; kw < g->kw; kw++)
                for (int64_t y = 0; y < g->ch; y++) {
                    int64_t iy = y * g->sh - g->ph + kh * g->dh;
                    if (iy < 0 || iy >= g->h) continue;
                    row_load(t, x, col, (((ch * g->kh + kh) * g->kw + kw) * g->ch + y) * g->cw, 1, g->cw);
                    for (int64_t i = 0; i < g->cw; i++) {
                        int64_t ix = i * g->sw - g->pw + kw * g->dw;
                        if (ix >= 0 && ix < g->w) acc[iy * g->w + ix] += x[i];
                    }
                }
        row_store(t, acc, im + (size_t)(ch * plane) * es, 0, 1, plane);
    }
    free(acc);
}

/* (i64 n, const T *im, height, width, kernel.., padding.., stride.., dilation.., column height, width, T *col) */
static void im2col(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct geometry g;
    read_geometry(&g, p, k, 2);
    unfold(k->t[0], &g, A(int64_t, 0) / (g.ch * g.cw), A(const char *, 1), A(char *, 14));
}

static void col2im(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct geometry g;
    read_geometry(&g, p, k, 2);
    fold(k->t[0], &g, A(int64_t, 0) / (g.h * g.w), A(const char *, 1), A(char *, 14));
}

/* (i64 n of one image, const T *col, i64 col batch stride, i64 images, i64 channels, geometry, T *im, i64 im batch stride) */
static void col2im_batched(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct geometry g;
    size_t es = dtype_bytes(k->t[0]);
    read_geometry(&g, p, k, 4);
    int64_t images = A(int64_t, 3), channels = A(int64_t, 0) / (g.h * g.w);
    for (int64_t i = 0; i < images; i++)
        fold(k->t[0], &g, channels, A(const char *, 1) + (size_t)(i * A(int64_t, 2)) * es, A(char *, 16) + (size_t)(i * A(int64_t, 17)) * es);
}

/* Three dimensions: (i64 n, const T *vol, depth, height, width, kernel[3], pad[3], stride[3], dilation[3], col size[3], T *col);
   vol2im has the number of channels behind the size of the volume. */
struct geometry3 { int64_t size[3], kernel[3], pad[3], stride[3], dilation[3], col[3]; };

static void volume(const struct geometry3 *g, enum dtype t, int64_t channels, const char *src, char *dst, bool back)
{
    size_t es = dtype_bytes(t);
    int64_t plane = g->size[0] * g->size[1] * g->size[2], cols = g->col[0] * g->col[1] * g->col[2];
    int64_t kernel = g->kernel[0] * g->kernel[1] * g->kernel[2];
    double *acc = row_scratch(plane);
    for (int64_t c = 0; c < channels; c++) {
        memset(acc, 0, sizeof(double) * (size_t)plane);
        for (int64_t kk = 0; kk < kernel; kk++)
            for (int64_t o = 0; o < cols; o++) {
                int64_t kp[3] = { kk / (g->kernel[1] * g->kernel[2]), kk / g->kernel[2] % g->kernel[1], kk % g->kernel[2] };
                int64_t op[3] = { o / (g->col[1] * g->col[2]), o / g->col[2] % g->col[1], o % g->col[2] }, at = 0;
                bool in = true;
                for (int d = 0; d < 3; d++) {
                    int64_t v = op[d] * g->stride[d] - g->pad[d] + kp[d] * g->dilation[d];
                    in = in && v >= 0 && v < g->size[d];
                    at = at * g->size[d] + v;
                }
                int64_t col = (c * kernel + kk) * cols + o;
                if (back) { if (in) acc[at] += dtype_get(t, src, col); }
                else if (in) memcpy(dst + (size_t)col * es, src + (size_t)(c * plane + at) * es, es);
                else memset(dst + (size_t)col * es, 0, es);
            }
        if (back) row_store(t, acc, dst, c * plane, 1, plane);
    }
    free(acc);
}

static void vol2col(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool back = !strcmp(k->name.base, "vol2im_kernel");
    struct geometry3 g;
    int64_t *f = (int64_t *)&g;
    for (int i = 0; i < 18; i++) f[i] = A(int, 2 + i + (back && i >= 3));
    int64_t channels = back ? A(int, 5) : A(int64_t, 0) / (g.col[0] * g.col[1] * g.col[2]);
    volume(&g, k->t[0], channels, A(const char *, 1), A(char *, back ? 21 : 20), back);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    uint64_t n = A(uint64_t, 0), per = 1;
    if (k->row->run == im2col || k->row->run == col2im) {
        struct geometry g;
        read_geometry(&g, p, k, 2);
        per = (uint64_t)(k->row->run == im2col ? g.kh * g.kw : g.kh * g.kw / KERN_MAX(g.sh * g.sw, 1) + 1);
    } else if (k->row->run == vol2col) {
        int at = !strcmp(k->name.base, "vol2im_kernel") ? 6 : 5;
        per = (uint64_t)A(int, at) * (uint64_t)A(int, at + 1) * (uint64_t)A(int, at + 2);
    }
    *flops = n * per;
    *bytes = n * (per + 1) * dtype_bytes(k->t[0]);
}

const struct kern_row conv_rows[] = {
    { "im2col_kernel", "ppppppppppppppp", im2col, cost, NULL },
    { "col2im_kernel", "ppppppppppppppp", col2im, cost, NULL },
    { "col2im_batched_kernel", "pppppppppppppppppp", col2im_batched, cost, NULL },
    { "vol2col_kernel", "ppiiiiiiiiiiiiiiiiiip", vol2col, cost, NULL },
    { "vol2im_kernel", "ppiiiiiiiiiiiiiiiiiiip", vol2col, cost, NULL },
    KERN_END
};
