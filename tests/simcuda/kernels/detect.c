/*
 * Detection, of torchvision: which boxes are kept of those that overlap (non-maximum suppression, two kernels), and the mean of a box's inside
 * (RoIAlign), forward and backward. Arithmetic is float, of f64 double, as on a device.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/order.h"
#include "tests/simcuda/kernels/rows.h"

/* ---- non-maximum suppression --------------------------------------------------------------------------------------------------- */

enum { SIDE = 64 /* boxes of a block, bits of a word of the mask */ };

static int words_of(int n) { return (n + SIDE - 1) / SIDE; }

#define OVERLAP(T, name, max, min)                                                                                     \
    static bool name(const T *a, const T *b, float most)                                                               \
    {                                                                                                                  \
        T w = max(min(a[2], b[2]) - max(a[0], b[0]), (T)0), h = max(min(a[3], b[3]) - max(a[1], b[1]), (T)0);          \
        T both = w * h, one = (a[2] - a[0]) * (a[3] - a[1]), other = (b[2] - b[0]) * (b[3] - b[1]);                    \
        return both / (one + other - both) > (T)most;                                                                  \
    }
OVERLAP(float, overlap_f, fmaxf, fminf)
OVERLAP(double, overlap_d, fmax, fmin)

static bool overlap(enum dtype t, const void *boxes, int i, int k, double most)
{
    double d[2][4];
    float f[2][4];
    for (int c = 0; c < 4; c++) {
        f[0][c] = (float)(d[0][c] = dtype_get(t, boxes, 4 * (ptrdiff_t)i + c));
        f[1][c] = (float)(d[1][c] = dtype_get(t, boxes, 4 * (ptrdiff_t)k + c));
    }
    return t == DT_F64 ? overlap_d(d[0], d[1], (float)most) : overlap_f(f[0], f[1], (float)most);
}

/* <T> (int n, double most, const T *boxes, u64 *mask): bit k of word w of row i: box 64 w + k, later than i, overlaps it. Words left of the
 * diagonal are not written. */
static void nms(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int n = A(int, 0), words = words_of(n);
    for (int i = 0; i < n; i++)
        for (int w = i / SIDE; w < words; w++) {
            uint64_t bits = 0;
            for (int c = 0; c < SIDE && w * SIDE + c < n; c++)
                if (w * SIDE + c > i && overlap(k->t[0], A(const void *, 2), i, w * SIDE + c, A(double, 1))) bits |= 1ull << c;
            A(uint64_t *, 3)[(size_t)i * (size_t)words + (size_t)w] = bits;
        }
}

/* (bool *keep, const u64 *mask, int n): keep is zero before. */
static void gather(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    int n = A(int, 2), words = words_of(n);
    uint64_t *gone = calloc((size_t)words + 1, sizeof *gone);
    for (int i = 0; i < n && gone; i++) {
        if (gone[i / SIDE] >> i % SIDE & 1) continue;
        A(uint8_t *, 0)[i] = 1;
        for (int w = i / SIDE; w < words; w++) gone[w] |= A(const uint64_t *, 1)[(size_t)i * (size_t)words + (size_t)w];
    }
    free(gone);
}

static void nms_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l, (void)k;
    bool first = k->row->run == nms;
    uint64_t n = A(uint32_t, first ? 0 : 2);
    *flops = first ? 8 * n * n : n * n / SIDE;
    *bytes = n * n / 8 + 16 * n;
}

/* ---- RoIAlign -------------------------------------------------------------------------------------------------------------------- */

struct box {
    double top, left, bin_h, bin_w;
    int batch, grid_h, grid_w;
};

static double rounded(enum dtype t, double v) { return t == DT_F64 ? v : (float)v; }

static struct box box_of(enum dtype t, const void *rois, int64_t n, double scale, bool aligned, int ph, int pw, int ratio)
{
    double at[5], off = aligned ? .5 : 0;
    for (int c = 0; c < 5; c++) at[c] = dtype_get(t, rois, 5 * n + c);
    double w0 = rounded(t, at[1] * scale) - off, h0 = rounded(t, at[2] * scale) - off;
    double w = rounded(t, rounded(t, at[3] * scale) - off - w0), h = rounded(t, rounded(t, at[4] * scale) - off - h0);
    if (!aligned) {
        w = KERN_MAX(w, 1);
        h = KERN_MAX(h, 1);
    }
    return (struct box){h0, w0, rounded(t, h / ph), rounded(t, w / pw), (int)at[0], ratio > 0 ? ratio : (int)ceil(h / ph), ratio > 0 ? ratio : (int)ceil(w / pw)};
}

/* Four neighbours of a place, and their weights; false: it lies outside. */
static bool corners(enum dtype t, int height, int width, double y, double x, int at[4], double weight[4])
{
    if (y < -1 || y > height || x < -1 || x > width) return false;
    y = KERN_MAX(y, 0);
    x = KERN_MAX(x, 0);
    int y0 = (int)y, x0 = (int)x, y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= height - 1) y = y1 = y0 = height - 1;
    if (x0 >= width - 1) x = x1 = x0 = width - 1;
    double ly = rounded(t, y - y0), lx = rounded(t, x - x0), hy = rounded(t, 1 - ly), hx = rounded(t, 1 - lx);
    const int places[] = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
    const double weights[] = {hy * hx, hy * lx, ly * hx, ly * lx};
    for (int c = 0; c < 4; c++) {
        at[c] = places[c];
        weight[c] = rounded(t, weights[c]);
    }
    return true;
}

static double place(enum dtype t, double from, int bin, double size, int i, int grid)
{
    return rounded(t, rounded(t, from + rounded(t, bin * size)) + rounded(t, rounded(t, (i + .5) * size) / grid));
}

/* <T> (int n, const T *x, T scale, int channels, height, width, pooled height, pooled width, ratio, bool aligned, const T *rois, T *y) */
static void align_fwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    int c = A(int, 3), h = A(int, 4), w = A(int, 5), ph = A(int, 6), pw = A(int, 7), at[4];
    double weight[4];
    for (int64_t i = 0; i < A(int, 0); i++) {
        int64_t n = i / pw / ph / c, channel = i / pw / ph % c;
        struct box b = box_of(t, A(const void *, 10), n, dtype_get(t, p[2], 0), A(bool, 9), ph, pw, A(int, 8));
        double sum = 0;
        for (int gy = 0; gy < b.grid_h; gy++)
            for (int gx = 0; gx < b.grid_w; gx++)
                if (corners(t, h, w, place(t, b.top, (int)(i / pw % ph), b.bin_h, gy, b.grid_h), place(t, b.left, (int)(i % pw), b.bin_w, gx, b.grid_w), at, weight))
                    for (int q = 0; q < 4; q++) sum += weight[q] * dtype_get(t, A(const void *, 1), ((int64_t)b.batch * c + channel) * h * w + at[q]);
        dtype_set(t, A(void *, 11), i, sum / KERN_MAX(b.grid_h * b.grid_w, 1));
    }
}

/* <T> (int n, const T *dy, T scale, int channels, height, width, pooled height, pooled width, ratio, bool aligned, T *dx, const T *rois,
 * int strides of dy: box, channel, row, column, int elements of dx) */
static void align_bwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    int c = A(int, 3), h = A(int, 4), w = A(int, 5), ph = A(int, 6), pw = A(int, 7), at[4];
    double weight[4];
    for (int64_t j = 0; j < A(int, 0); j++) {
        int64_t i = order_of(l->chaos, j, A(int, 0));
        int64_t n = i / pw / ph / c, channel = i / pw / ph % c;
        struct box b = box_of(t, A(const void *, 11), n, dtype_get(t, p[2], 0), A(bool, 9), ph, pw, A(int, 8));
        double up = dtype_get(t, A(const void *, 1), n * A(int, 12) + channel * A(int, 13) + i / pw % ph * A(int, 14) + i % pw * A(int, 15));
        for (int gy = 0; gy < b.grid_h; gy++)
            for (int gx = 0; gx < b.grid_w; gx++)
                if (corners(t, h, w, place(t, b.top, (int)(i / pw % ph), b.bin_h, gy, b.grid_h), place(t, b.left, (int)(i % pw), b.bin_w, gx, b.grid_w), at, weight))
                    for (int q = 0; q < 4; q++) {
                        int64_t to = ((int64_t)b.batch * c + channel) * h * w + at[q];
                        dtype_set(t, A(void *, 10), to, dtype_get(t, A(void *, 10), to) + up * weight[q] / KERN_MAX(b.grid_h * b.grid_w, 1));
                    }
    }
}

static void align_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 64ull * A(uint32_t, 0);
    *bytes = (uint64_t)A(uint32_t, 0) * 5 * dtype_bytes(k->t[0]);
}

const struct kern_row detect_rows[] = {
    { "nms_kernel_impl", "ippp", nms, nms_cost, NULL },
    { "gather_keep_from_mask", "ppi", gather, nms_cost, NULL },
    { "roi_align_forward_kernel_impl", "ip*iiiiiibpp", align_fwd, align_cost, NULL },
    { "roi_align_backward_kernel_impl", "ip*iiiiiibppiiiii", align_bwd, align_cost, NULL },
    KERN_END
};
