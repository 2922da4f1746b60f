/*
 * LayerNorm and RMSNorm, forward and backward, by rows of n elements.
 *   LayerNorm: y = (x - mean) rstd gamma + beta     RMSNorm: y = x rstd gamma, rstd = 1 / sqrt(mean(x^2) + eps)
 * Sums are kept in double; the statistics are rounded to Acc (float for f32, f16, bf16) before they are used.
 * The last template argument of each kernel says whether it is RMSNorm's.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

static void moments(const double *x, int64_t n, bool rms, double eps, double *mean, double *rstd)
{
    double s = 0, q = 0;
    if (!rms) for (int64_t i = 0; i < n; i++) s += x[i];
    *mean = s / (double)n;
    for (int64_t i = 0; i < n; i++) q += (x[i] - *mean) * (x[i] - *mean);
    *rstd = 1 / sqrt(q / (double)n + eps);
}

static bool is_rms(const struct kern *k) { return k->v[k->name.n_args - 1] != 0; }

/* x, gamma, beta, y: rows of doubles. */
static void scale_row(double *y, const double *x, const double *gamma, const double *beta, int64_t n, double mean, double rstd)
{
    for (int64_t i = 0; i < n; i++) {
        double v = (x[i] - mean) * rstd;
        if (gamma) v *= gamma[i];
        if (beta) v += beta[i];
        y[i] = v;
    }
}

struct affine { double *gamma, *beta; };

static struct affine load_affine(enum dtype t, const void *gamma, const void *beta, int64_t n)
{
    struct affine a = { gamma ? row_scratch(n) : NULL, beta ? row_scratch(n) : NULL };
    if (gamma) row_load(t, a.gamma, gamma, 0, 1, n);
    if (beta) row_load(t, a.beta, beta, 0, 1, n);
    return a;
}

/* <T, Acc, rms> (int n, Acc eps, const T *x, const T *gamma, const T *beta, Acc *mean, Acc *rstd, T *y): a block a row */
static void vectorized(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = k->t[1];
    int64_t n = A(int, 0);
    bool rms = is_rms(k);
    struct affine a = load_affine(t, A(const void *, 3), rms ? NULL : A(const void *, 4), n);
    double *x = row_scratch(n), eps = dtype_get(acc, p[1], 0), mean, rstd;
    for (int64_t r = 0; r < l->grid.x; r++) {
        row_load(t, x, A(const void *, 2), r * n, 1, n);
        moments(x, n, rms, eps, &mean, &rstd);
        mean = dtype_round(acc, mean);
        rstd = dtype_round(acc, rstd);
        if (!rms) dtype_set(acc, A(void *, 5), r, mean);
        dtype_set(acc, A(void *, 6), r, rstd);
        scale_row(x, x, a.gamma, a.beta, n, mean, rstd);
        row_store(t, x, A(void *, 7), r * n, 1, n);
    }
    free(a.gamma);
    free(a.beta);
    free(x);
}

/* How many parameters come before the n of a row: rows, in the versions that have it. */
static int at_n(const struct kern *k, uint32_t without) { return k->k->n_params > without; }

/* <T, Acc, rms> ([i64 rows,] i64 n, Acc eps, const T *x, Acc *mean, Acc *rstd): a block a row */
static void rowwise(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = k->t[1];
    int e = at_n(k, 5);
    int64_t n = A(int64_t, e);
    bool rms = is_rms(k);
    double *x = row_scratch(n), eps = dtype_get(acc, p[e + 1], 0), mean, rstd;
    for (int64_t r = 0; r < l->grid.x; r++) {
        row_load(t, x, A(const void *, e + 2), r * n, 1, n);
        moments(x, n, rms, eps, &mean, &rstd);
        if (!rms) dtype_set(acc, A(void *, e + 3), r, mean);
        dtype_set(acc, A(void *, e + 4), r, rstd);
    }
    free(x);
}

/* <T, Acc, rms> ([i64 rows,] i64 n, const T *x, const Acc *mean, const Acc *rstd, const T *gamma, const T *beta, T *y): a block a row */
static void forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = k->t[1];
    int e = at_n(k, 7);
    int64_t n = A(int64_t, e);
    bool rms = is_rms(k);
    struct affine a = load_affine(t, A(const void *, e + 4), rms ? NULL : A(const void *, e + 5), n);
    double *x = row_scratch(n);
    for (int64_t r = 0; r < l->grid.x; r++) {
        row_load(t, x, A(const void *, e + 1), r * n, 1, n);
        scale_row(x, x, a.gamma, a.beta, n, rms ? 0 : dtype_get(acc, A(const void *, e + 2), r), dtype_get(acc, A(const void *, e + 3), r));
        row_store(t, x, A(void *, e + 6), r * n, 1, n);
    }
    free(a.gamma);
    free(a.beta);
    free(x);
}

/* <T, Acc, rms> (const T *dy, const T *x, const Acc *mean, const Acc *rstd, const T *gamma, T *dx, int n): a block a row */
static void grad_input(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = k->t[1];
    int64_t n = A(int, 6);
    bool rms = is_rms(k);
    struct affine a = load_affine(t, A(const void *, 4), NULL, n);
    double *g = row_scratch(2 * n), *x = g + n;
    for (int64_t r = 0; r < l->grid.x; r++) {
        double mean = rms ? 0 : dtype_get(acc, A(const void *, 2), r), rstd = dtype_get(acc, A(const void *, 3), r), s1 = 0, s2 = 0;
        row_load(t, g, A(const void *, 0), r * n, 1, n);
        row_load(t, x, A(const void *, 1), r * n, 1, n);
        for (int64_t i = 0; i < n; i++) {
            if (a.gamma) g[i] *= a.gamma[i];
            x[i] = (x[i] - mean) * rstd;
            s1 += g[i];
            s2 += g[i] * x[i];
        }
        if (rms) s1 = 0;
        for (int64_t i = 0; i < n; i++) g[i] = rstd * (g[i] - s1 / (double)n - x[i] * (s2 / (double)n));
        row_store(t, g, A(void *, 5), r * n, 1, n);
    }
    free(a.gamma);
    free(g);
}

/* <T, Acc, .., rms> (i64 rows, i64 n, const T *dy, const T *x, const Acc *mean, const Acc *rstd, T *dgamma, T *dbeta). With
   more than one block along y the results have that many rows: the last but two template argument tells. */
static void gamma_beta(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = k->t[1];
    int64_t rows = A(int64_t, 0), n = A(int64_t, 1), parts = l->grid.y;
    bool rms = is_rms(k), have_g = A(void *, 6) != NULL, have_b = !rms && A(void *, 7) != NULL;
    int64_t tile = parts > 1 && k->v[4] > 0 ? k->v[4] : 1;
    double *g = row_scratch(4 * n), *x = g + n, *dg = x + n, *db = dg + n;
    for (int64_t part = 0; part < parts; part++) {
        memset(dg, 0, sizeof(double) * 2 * (size_t)n);
        for (int64_t r = 0; r < rows; r++) {
            if (parts > 1 && r / tile % parts != part) continue;
            row_load(t, g, A(const void *, 2), r * n, 1, n);
            row_load(t, x, A(const void *, 3), r * n, 1, n);
            double mean = rms ? 0 : dtype_get(acc, A(const void *, 4), r), rstd = dtype_get(acc, A(const void *, 5), r);
            for (int64_t i = 0; i < n; i++) {
                dg[i] += g[i] * (x[i] - mean) * rstd;
                db[i] += g[i];
            }
        }
        if (have_g) row_store(t, dg, A(void *, 6), part * n, 1, n);
        if (have_b) row_store(t, db, A(void *, 7), part * n, 1, n);
    }
    free(g);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    uint64_t n, es = dtype_bytes(k->t[0]), touches = 2;
    if (k->row->run == vectorized) n = l->grid.x * (uint64_t)A(int, 0);
    else if (k->row->run == grad_input) n = l->grid.x * (uint64_t)A(int, 6), touches = 3;
    else if (k->row->run == rowwise) n = l->grid.x * (uint64_t)A(int64_t, at_n(k, 5)), touches = 1;
    else if (k->row->run == forward) n = l->grid.x * (uint64_t)A(int64_t, at_n(k, 7));
    else n = (uint64_t)A(int64_t, 0) * (uint64_t)A(int64_t, 1);
    *flops = 6 * n;
    *bytes = touches * n * es;
}

/* GroupNorm's kernel of that name has one template argument. */
static int of_layers(struct kern *k) { return k->name.n_args == 3 ? 0 : -ENOSYS; }

const struct kern_row layernorm_rows[] = {
    { "vectorized_layer_norm_kernel", "i*pppppp", vectorized, cost, NULL },
    { "RowwiseMomentsCUDAKernel", "pp*ppp", rowwise, cost, NULL },
    { "RowwiseMomentsCUDAKernel", "p*ppp", rowwise, cost, of_layers }, /* this one and the next but one: PyTorch 2.11 */
    { "LayerNormForwardCUDAKernel", "pppppppp", forward, cost, NULL },
    { "LayerNormForwardCUDAKernel", "ppppppp", forward, cost, NULL },
    { "layer_norm_grad_input_kernel", "ppppppi", grad_input, cost, NULL },
    { "layer_norm_grad_input_kernel_vectorized", "ppppppi", grad_input, cost, NULL },
    { "GammaBetaBackwardCUDAKernelTemplate", "pppppppp", gamma_beta, cost, NULL },
    KERN_END
};
