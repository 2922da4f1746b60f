/*
 * Batch normalisation with channels last, also of matrices (batch, channels): n rows of c channels. Where a kernel splits rows
 * over blocks along y, the last to finish adds what the others left in staging memory, counted by semaphores; the sums are taken
 * here at once and the semaphores count as they do there.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

static void count_blocks(const struct catalogue_launch *l, int32_t *semaphores)
{
    if (l->grid.y <= 1 || !semaphores) return;
    for (unsigned x = 0; x < l->grid.x; x++) semaphores[x] += (int32_t)l->grid.y;
}

/* <transform, T, Acc, parallel> (const T *x, Acc *mean, Acc *var or invstd, staging, semaphores, int n, int c, Acc eps) */
static void collect(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[1], acc = k->t[2];
    int64_t n = A(int, 5), c = A(int, 6);
    double *x = row_scratch(3 * c), *s = x + c, *q = s + c, eps = dtype_get(acc, p[7], 0);
    memset(s, 0, sizeof(double) * 2 * (size_t)c);
    for (int64_t i = 0; i < n; i++) {
        row_load(t, x, A(const void *, 0), i * c, 1, c);
        for (int64_t j = 0; j < c; j++) s[j] += x[j];
    }
    for (int64_t j = 0; j < c; j++) s[j] /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        row_load(t, x, A(const void *, 0), i * c, 1, c);
        for (int64_t j = 0; j < c; j++) q[j] += (x[j] - s[j]) * (x[j] - s[j]);
    }
    bool invstd = strstr(k->name.arg[0], "InvStd") != NULL;
    for (int64_t j = 0; j < c; j++) q[j] = invstd ? 1 / sqrt(q[j] / (double)n + eps) : q[j] / (double)n;
    row_store(acc, s, A(void *, 1), 0, 1, c);
    row_store(acc, q, A(void *, 2), 0, 1, c);
    count_blocks(l, A(int32_t *, 4));
    free(x);
}

static void load_or(enum dtype t, double *dst, const void *src, int64_t c, double other)
{
    if (src) row_load(t, dst, src, 0, 1, c);
    else for (int64_t j = 0; j < c; j++) dst[j] = other;
}

/* <T, Acc, Weight, parallel> (const T *x, const T *z, const Acc *mean, const Acc *invstd, const W *weight, const W *bias, T *y,
   int n, int c, bool relu) */
static void transform(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], acc = k->t[1], wt = k->t[2];
    int64_t n = A(int, 7), c = A(int, 8);
    double *x = row_scratch(6 * c), *z = x + c, *m = z + c, *s = m + c, *w = s + c, *b = w + c;
    load_or(acc, m, A(const void *, 2), c, 0);
    load_or(acc, s, A(const void *, 3), c, 1);
    load_or(wt, w, A(const void *, 4), c, 1);
    load_or(wt, b, A(const void *, 5), c, 0);
    for (int64_t i = 0; i < n; i++) {
        row_load(t, x, A(const void *, 0), i * c, 1, c);
        if (A(const void *, 1)) row_load(t, z, A(const void *, 1), i * c, 1, c);
        else memset(z, 0, sizeof(double) * (size_t)c);
        for (int64_t j = 0; j < c; j++) {
            x[j] = w[j] * (x[j] - m[j]) * s[j] + b[j] + z[j];
            if (A(bool, 9) && x[j] < 0) x[j] = 0;
        }
        row_store(t, x, A(void *, 6), i * c, 1, c);
    }
    free(x);
}

/* <parallel, T, Acc, Weight> (const T *x, const T *dy, const Acc *mean, const Acc *invstd, Acc *sum dy, Acc *sum dy (x - mean),
   W *dweight, W *dbias, staging, semaphores, int n, int c) */
static void reduce(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[1], acc = k->t[2], wt = k->t[3];
    int64_t n = A(int, 10), c = A(int, 11);
    double *x = row_scratch(6 * c), *g = x + c, *m = g + c, *is = m + c, *s = is + c, *d = s + c;
    memset(s, 0, sizeof(double) * 2 * (size_t)c);
    row_load(acc, m, A(const void *, 2), 0, 1, c);
    row_load(acc, is, A(const void *, 3), 0, 1, c);
    for (int64_t i = 0; i < n; i++) {
        row_load(t, x, A(const void *, 0), i * c, 1, c);
        row_load(t, g, A(const void *, 1), i * c, 1, c);
        for (int64_t j = 0; j < c; j++) {
            s[j] += g[j];
            d[j] += g[j] * (x[j] - m[j]);
        }
    }
    row_store(acc, s, A(void *, 4), 0, 1, c);
    row_store(acc, d, A(void *, 5), 0, 1, c);
    for (int64_t j = 0; j < c; j++) d[j] *= is[j];
    if (A(void *, 6)) row_store(wt, d, A(void *, 6), 0, 1, c);
    if (A(void *, 7)) row_store(wt, s, A(void *, 7), 0, 1, c);
    count_blocks(l, A(int32_t *, 9));
    free(x);
}

/* <parallel, T, Acc, Weight> (const T *dy, const T *x, const Acc *mean, const Acc *invstd, const W *weight, const Acc *sum dy,
   const Acc *sum dy (x - mean), T *dx, Acc 1 / count, int n, int c) */
static void elements(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[1], acc = k->t[2], wt = k->t[3];
    int64_t n = A(int, 9), c = A(int, 10);
    double *x = row_scratch(7 * c), *g = x + c, *m = g + c, *is = m + c, *w = is + c, *s = w + c, *d = s + c, norm = dtype_get(acc, p[8], 0);
    row_load(acc, m, A(const void *, 2), 0, 1, c);
    row_load(acc, is, A(const void *, 3), 0, 1, c);
    load_or(wt, w, A(const void *, 4), c, 1);
    row_load(acc, s, A(const void *, 5), 0, 1, c);
    row_load(acc, d, A(const void *, 6), 0, 1, c);
    for (int64_t i = 0; i < n; i++) {
        row_load(t, g, A(const void *, 0), i * c, 1, c);
        row_load(t, x, A(const void *, 1), i * c, 1, c);
        for (int64_t j = 0; j < c; j++) x[j] = (g[j] - s[j] * norm - (x[j] - m[j]) * d[j] * is[j] * is[j] * norm) * w[j] * is[j];
        row_store(t, x, A(void *, 7), i * c, 1, c);
    }
    free(x);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    int at = k->row->run == collect ? 5 : k->row->run == transform ? 7 : k->row->run == reduce ? 10 : 9;
    uint64_t n = A(uint32_t, at) * (uint64_t)A(uint32_t, at + 1);
    *flops = 5 * n;
    *bytes = n * dtype_bytes(k->t[k->row->run != transform]) * (k->row->run == collect ? 1 : k->row->run == elements ? 3 : 2);
}

const struct kern_row batchnorm_last_rows[] = {
    { "batch_norm_collect_statistics_channels_last_kernel", "pppppii*", collect, cost, NULL },
    { "batch_norm_transform_input_channels_last_kernel", "pppppppiib", transform, cost, NULL },
    { "batch_norm_backward_reduce_channels_last_kernel", "ppppppppppii", reduce, cost, NULL },
    { "batch_norm_backward_elemt_channels_last_kernel", "pppppppp*ii", elements, cost, NULL },
    KERN_END
};
