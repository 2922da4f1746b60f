/*
 * Group normalisation (Wu and He, ECCV 2018): statistics of each (image, group), then y = a x + b for each channel. The elementwise
 * parts are functors (ew_misc.c). n images, c channels, g groups, d = c / g. Sums are kept in double.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

/* float for f32, f16, bf16 */
static enum dtype acc_of(enum dtype t) { return t == DT_F64 ? DT_F64 : DT_F32; }

static void statistics(const double *x, int64_t n, double eps, double *mean, double *rstd)
{
    double s = 0, q = 0;
    for (int64_t i = 0; i < n; i++) s += x[i];
    *mean = s / (double)n;
    for (int64_t i = 0; i < n; i++) q += (x[i] - *mean) * (x[i] - *mean);
    *rstd = 1 / sqrt(q / (double)n + eps);
}

/* Sums of dy x and of dy over a channel of an image: n elements from first on, stride apart; dy and x are scratch of n each. */
static void channel_sums(enum dtype t, const void *dys, const void *xs, int64_t first, int64_t stride, int64_t n, double *dy, double *x, double *ds, double *db)
{
    *ds = *db = 0;
    row_load(t, dy, dys, first, stride, n);
    row_load(t, x, xs, first, stride, n);
    for (int64_t i = 0; i < n; i++) {
        *ds += dy[i] * x[i];
        *db += dy[i];
    }
}

/* <vec, T, Acc> (i64 n, T eps, const T *x, T *mean, T *rstd, Acc *mean, Acc *rstd): a block a row. <T> of PyTorch 2.11: without the last two */
static void moments(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    bool both = k->name.n_args == 3;
    enum dtype t = k->t[both], acc = k->t[2];
    int64_t n = A(int64_t, 0);
    double eps = dtype_get(t, p[1], 0), *x = row_scratch(n);
    for (int64_t r = 0; r < l->grid.x; r++) {
        double mean, rstd;
        row_load(t, x, A(const void *, 2), r * n, 1, n);
        statistics(x, n, eps, &mean, &rstd);
        dtype_set(t, A(void *, 3), r, mean);
        dtype_set(t, A(void *, 4), r, rstd);
        if (both && A(void *, 5)) dtype_set(acc, A(void *, 5), r, mean);
        if (both && A(void *, 6)) dtype_set(acc, A(void *, 6), r, rstd);
    }
    free(x);
}

/* Channels last. <T, Acc> (i64 n, c, size, d, T eps, const T *x, T *mean, T *rstd, Acc *mean, Acc *rstd): a block a group of an image;
   <groups a block, T, Acc> (i64 c, size, d, g, T eps, ..): a block some groups of one */
static void moments_last(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    bool several = strstr(k->name.base, "SmallD") != NULL;
    enum dtype t = k->t[several], acc = k->t[1 + several];
    int64_t c = A(int64_t, several ? 0 : 1), size = A(int64_t, several ? 1 : 2), d = A(int64_t, several ? 2 : 3), g = c / d;
    int64_t n = several ? l->grid.x / ((g + k->v[0] - 1) / k->v[0]) : l->grid.x / g;
    double eps = dtype_get(t, p[4], 0), *x = row_scratch(d * size);
    for (int64_t r = 0; r < n * g; r++) {
        double mean, rstd;
        for (int64_t i = 0; i < size; i++) row_load(t, x + i * d, A(const void *, 5), (r / g * size + i) * c + r % g * d, 1, d);
        statistics(x, d * size, eps, &mean, &rstd);
        dtype_set(t, A(void *, 6), r, mean);
        dtype_set(t, A(void *, 7), r, rstd);
        if (t == acc) continue; /* the last two are not there */
        dtype_set(acc, A(void *, 8), r, mean);
        dtype_set(acc, A(void *, 9), r, rstd);
    }
    free(x);
}

/* <T, Acc> (n, c, g, const Acc *mean, const Acc *rstd, const T *gamma, const T *beta, Acc *a, Acc *b). <T> of PyTorch 2.11 reads statistics in T */
static void fused(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], acc = acc_of(t), stat = k->t[1] == DT_NONE ? t : k->t[1];
    int64_t n = A(int64_t, 0), c = A(int64_t, 1), g = A(int64_t, 2);
    for (int64_t i = 0; i < n * c; i++) {
        int64_t ng = i / (c / g), ch = i % c;
        double scale = dtype_get(stat, A(const void *, 4), ng), mean = dtype_get(stat, A(const void *, 3), ng);
        if (A(const void *, 5)) scale *= dtype_get(t, A(const void *, 5), ch);
        dtype_set(acc, A(void *, 7), i, scale);
        dtype_set(acc, A(void *, 8), i, -scale * mean + (A(const void *, 6) ? dtype_get(t, A(const void *, 6), ch) : 0));
    }
}

/* <vec, T> (i64 size, const T *dy, const T *x, Acc *ds, Acc *db): a block a channel of an image */
static void internal(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    int at = k->t[0] == DT_NONE;
    enum dtype t = k->t[at], acc = acc_of(t);
    int64_t n = A(int64_t, 0);
    double *dy = row_scratch(2 * n), *x = dy + n;
    for (int64_t r = 0; r < l->grid.x; r++) {
        double s, b;
        channel_sums(t, A(const void *, 1), A(const void *, 2), r * n, 1, n, dy, x, &s, &b);
        dtype_set(acc, A(void *, 3), r, s);
        dtype_set(acc, A(void *, 4), r, b);
    }
    free(dy);
}

/* Channels last. [<channels a block,>] <T> (i64 c, size, const T *dy, const T *x, Acc *ds, Acc *db) */
static void internal_last(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    int at = k->t[0] == DT_NONE;
    enum dtype t = k->t[at], acc = acc_of(t);
    int64_t c = A(int64_t, 0), size = A(int64_t, 1), n = at ? l->grid.x / ((c + k->v[0] - 1) / k->v[0]) : l->grid.x / c;
    double *dy = row_scratch(2 * size), *x = dy + size;
    for (int64_t r = 0; r < n * c; r++) {
        double s, b;
        channel_sums(t, A(const void *, 2), A(const void *, 3), r / c * size * c + r % c, c, size, dy, x, &s, &b);
        dtype_set(acc, A(void *, 4), r, s);
        dtype_set(acc, A(void *, 5), r, b);
    }
    free(dy);
}

/* Channels last. <Index, T, Acc> (Index n, Index g, dividers by c, size, d (each begins with what it divides by), const T *dy, const T *x, const T
   *rstd, const T *gamma, const Acc *c2, const Acc *c3, T *dx) */
static void backward_last(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool wide = k->k->bytes[0] == 8;
    enum dtype t = k->t[1], acc = k->t[2];
    int64_t v[5];
    for (int i = 0; i < 5; i++) v[i] = wide ? A(int64_t, i) : A(uint32_t, i);
    for (int64_t i = 0; i < v[0]; i++) {
        int64_t c = i % v[2], ng = i / v[2] / v[3] * v[1] + c / v[4];
        double scale = dtype_get(t, A(const void *, 7), ng) * (A(const void *, 8) ? dtype_get(t, A(const void *, 8), c) : 1);
        dtype_set(t, A(void *, 11), i, scale * dtype_get(t, A(const void *, 5), i) + dtype_get(acc, A(const void *, 9), ng)
                                       * dtype_get(t, A(const void *, 6), i) + dtype_get(acc, A(const void *, 10), ng));
    }
}

static void last_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    bool back = k->row->run == backward_last, in = k->row->run == internal_last;
    uint64_t n = back ? (k->k->bytes[0] == 8 ? A(uint64_t, 0) : A(uint32_t, 0)) : (uint64_t)l->grid.x * (in ? A(uint64_t, 1) : A(uint64_t, 2)
                                                                                                       * A(uint64_t, strstr(k->name.base, "SmallD") ? 1 : 3));
    *flops = 4 * n;
    *bytes = n * dtype_bytes(back ? k->t[1] : k->t[k->t[0] == DT_NONE]) * (back ? 3 : in ? 2 : 1);
}

static void c2_c3(enum dtype acc, void *c2, void *c3, int64_t at, double s1, double s2, double mean, double rstd, double scale)
{
    double x = (s2 * mean - s1) * rstd * rstd * rstd * scale;
    dtype_set(acc, c2, at, x);
    dtype_set(acc, c3, at, -x * mean - s2 * rstd * scale);
}

/* (c, size, g, const T *mean, const T *rstd, const T *gamma, const Acc *ds, const Acc *db, Acc *c2, Acc *c3): blocks images x groups */
static void backward_fused(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = acc_of(t);
    int64_t c = A(int64_t, 0), size = A(int64_t, 1), g = A(int64_t, 2), d = c / g;
    for (int64_t n = 0; n < l->grid.x; n++)
        for (int64_t gr = 0; gr < g; gr++) {
            double s1 = 0, s2 = 0;
            for (int64_t i = 0; i < d; i++) {
                double gamma = A(const void *, 5) ? dtype_get(t, A(const void *, 5), gr * d + i) : 1;
                s1 += dtype_get(acc, A(const void *, 6), (n * g + gr) * d + i) * gamma;
                s2 += dtype_get(acc, A(const void *, 7), (n * g + gr) * d + i) * gamma;
            }
            c2_c3(acc, A(void *, 8), A(void *, 9), n * g + gr, s1, s2, dtype_get(t, A(const void *, 3), n * g + gr),
                  dtype_get(t, A(const void *, 4), n * g + gr), 1 / (double)(d * size));
        }
}

/* (n, c, g, const T *mean, const T *rstd, const Acc *ds, const Acc *db, T *dgamma, T *dbeta); the form for one element a
   channel has dy and x instead of ds and db, before mean */
static void gamma_beta(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], acc = acc_of(t);
    int64_t n = A(int64_t, 0), c = A(int64_t, 1), g = A(int64_t, 2), d = c / g;
    bool one = strstr(k->name.base, "1d") != NULL;
    const void *mean = A(const void *, one ? 5 : 3), *rstd = A(const void *, one ? 6 : 4), *a = A(const void *, one ? 3 : 5), *b = A(const void *, one ? 4 : 6);
    for (int64_t ch = 0; ch < c; ch++) {
        double s1 = 0, s2 = 0;
        for (int64_t i = 0; i < n; i++) {
            double m = dtype_get(t, mean, i * g + ch / d), r = dtype_get(t, rstd, i * g + ch / d);
            double x = dtype_get(one ? t : acc, a, i * c + ch), y = dtype_get(one ? t : acc, b, i * c + ch);
            s1 += one ? x * (y - m) * r : (x - y * m) * r;
            s2 += one ? x : y;
        }
        if (A(void *, 7)) dtype_set(t, A(void *, 7), ch, s1);
        if (A(void *, 8)) dtype_set(t, A(void *, 8), ch, s2);
    }
}

/* (c, g, const T *dy, const T *x, const T *mean, const T *rstd, const T *gamma, Acc *c2, Acc *c3) */
static void backward_fused_1d(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = acc_of(t);
    int64_t c = A(int64_t, 0), g = A(int64_t, 1), d = c / g;
    for (int64_t n = 0; n < l->grid.x; n++)
        for (int64_t gr = 0; gr < g; gr++) {
            double s1 = 0, s2 = 0;
            for (int64_t i = 0; i < d; i++) {
                double gamma = A(const void *, 6) ? dtype_get(t, A(const void *, 6), gr * d + i) : 1;
                double dy = dtype_get(t, A(const void *, 2), (n * g + gr) * d + i);
                s1 += dy * dtype_get(t, A(const void *, 3), (n * g + gr) * d + i) * gamma;
                s2 += dy * gamma;
            }
            c2_c3(acc, A(void *, 7), A(void *, 8), n * g + gr, s1, s2, dtype_get(t, A(const void *, 4), n * g + gr),
                  dtype_get(t, A(const void *, 5), n * g + gr), 1 / (double)d);
        }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    uint64_t n = l->grid.x * A(uint64_t, 0);
    *flops = 4 * n;
    *bytes = n * dtype_bytes(k->t[k->t[0] == DT_NONE]) * (k->row->run == internal ? 2 : 1);
}

/* LayerNorm's kernel of that name has more template arguments. */
static int of_2_11(struct kern *k) { return k->name.n_args == 1 ? 0 : -ENOSYS; }

const struct kern_row groupnorm_rows[] = {
    { "RowwiseMomentsContiguousCUDAKernel", "p*ppppp", moments, cost, NULL },
    { "RowwiseMomentsCUDAKernel", "p*ppp", moments, cost, of_2_11 },
    { "RowwiseMomentsChannelsLastCUDAKernel", "pppp*ppppp", moments_last, last_cost, NULL },
    { "RowwiseMomentsChannelsLastSmallDCUDAKernel", "pppp*ppppp", moments_last, last_cost, NULL },
    { "ComputeInternalGradientsChannelsLastCUDAKernel", "pppppp", internal_last, last_cost, NULL },
    { "ComputeInternalGradientsChannelsLastFallbackCUDAKernel", "pppppp", internal_last, last_cost, NULL },
    { "GroupNormBackwardChannelsLastCUDAKernel", NULL, backward_last, last_cost, NULL },
    { "ComputeFusedParamsCUDAKernel", "ppppppppp", fused, NULL, NULL },
    { "ComputeInternalGradientsContiguousCUDAKernel", "ppppp", internal, cost, NULL },
    { "ComputeInternalGradientsCUDAKernel", "ppppp", internal, cost, NULL },
    { "ComputeBackwardFusedParamsCUDAKernel", "pppppppppp", backward_fused, NULL, NULL },
    { "Compute1dBackwardFusedParamsCUDAKernel", "ppppppppp", backward_fused_1d, NULL, NULL },
    { "GammaBetaBackwardCUDAKernel1", "ppppppppp", gamma_beta, NULL, NULL },
    { "GammaBetaBackwardCUDAKernel2", "ppppppppp", gamma_beta, NULL, NULL },
    { "GammaBeta1dBackwardCUDAKernel1", "ppppppppp", gamma_beta, NULL, NULL },
    { "GammaBeta1dBackwardCUDAKernel2", "ppppppppp", gamma_beta, NULL, NULL },
    KERN_END
};
