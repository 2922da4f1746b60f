/*
 * Distances between rows of two matrices (torch.cdist) and of one (torch.pdist), forward and backward, in the norms that PyTorch has kernels
 * for; products of three-vectors (torch.linalg.cross).
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/offset.h"
#include "tests/simcuda/kernels/rows.h"

enum norm { ZERO, ONE, TWO, LESS_THAN_TWO, P, INF, UNKNOWN };

static enum norm norm_of(const struct kern *k)
{
    static const char *const names[] = { "::zero", "::one", "::two", "::lt_two", "::p", "::inf" };
    const char *text = k->name.n_args > 1 ? k->name.arg[1] : "";
    size_t n = strlen(text);
    for (int i = 0; i < UNKNOWN; i++) {
        size_t m = strlen(names[i]);
        if (n > m && !strcmp(text + n - m, names[i])) return (enum norm)i;
    }
    return UNKNOWN;
}

static int bind(struct kern *k) { return norm_of(k) == UNKNOWN || dtype_class(k->t[0]) == DC_NONE ? -ENOSYS : 0; }

static double fold(enum norm f, double acc, double d, double p)
{
    switch (f) {
    case ZERO: return acc + (d != 0);
    case ONE: return acc + d;
    case TWO: return acc + d * d;
    case INF: return d > acc ? d : acc;
    default: return acc + pow(d, p);
    }
}

static double finish(enum norm f, double acc, double p)
{
    return f == TWO ? sqrt(acc) : f == LESS_THAN_TWO || f == P ? pow(acc, 1 / p) : acc;
}

static double slope(enum norm f, double diff, double grad, double dist, double p)
{
    double sign = (double)((diff > 0) - (diff < 0));
    switch (f) {
    case ONE: return grad * sign;
    case TWO: return dist == 0 ? 0 : grad * diff / dist;
    case LESS_THAN_TWO: return dist == 0 || (diff == 0 && p < 1) ? 0 : sign * pow(fabs(diff), p - 1) * grad / pow(dist, p - 1);
    case P: return dist == 0 ? 0 : diff * pow(fabs(diff), p - 2) * grad / pow(dist, p - 1);
    case INF: return grad * sign * (1 - fmin(1, ceil(fabs(fabs(diff) - dist))));
    default: return 0;
    }
}

static uint64_t results(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    return k->k->n_params > 9 ? A(uint64_t, 9) : l->grid.x;
}

/* <T, norm> (T *out, const T *x, const T *y, T p, i64 rows of y, columns, of out in a batch, of x in a batch, of y[, of out]); 2.11.0 does not
   say how many results there are: a block each */
static void forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    enum norm f = norm_of(k);
    double pw = dtype_get(t, p[3], 0);
    int64_t r2 = A(int64_t, 4), m = A(int64_t, 5), each = A(int64_t, 6);
    double *x = row_scratch(2 * m), *y = x + m;
    for (int64_t o = 0; o < (int64_t)results(l, p, k); o++) {
        int64_t b = o / each, i = o % each / r2, j = o % each % r2;
        double acc = 0;
        row_load(t, x, A(const void *, 1), b * A(int64_t, 7) + i * m, 1, m);
        row_load(t, y, A(const void *, 2), b * A(int64_t, 8) + j * m, 1, m);
        for (int64_t c = 0; c < m; c++) acc = fold(f, acc, fabs(x[c] - y[c]), pw);
        dtype_set(t, A(void *, 0), o, finish(f, acc, pw));
    }
    free(x);
}

/* <T, norm> (T *parts, const T *grad, const T *x, const T *y, const T *dist, T p, i64 r1, r2, columns, count, of grad in a batch, of x,
   of y): the part of every pair, (batch, r2, r1, columns) */
static void backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    enum norm f = norm_of(k);
    double pw = dtype_get(t, p[5], 0);
    int64_t r1 = A(int64_t, 6), r2 = A(int64_t, 7), m = A(int64_t, 8), each = A(int64_t, 10);
    for (int64_t o = 0; o < A(int64_t, 9); o++) {
        int64_t b = o / each, i = o % each / r2, j = o % each % r2;
        double g = dtype_get(t, A(const void *, 1), o), d = dtype_get(t, A(const void *, 4), o);
        for (int64_t c = 0; c < m; c++) {
            /* rounded: the infinite norm asks whether this is the greatest difference */
            double diff = dtype_round(t, dtype_get(t, A(const void *, 2), b * A(int64_t, 11) + i * m + c)
                                         - dtype_get(t, A(const void *, 3), b * A(int64_t, 12) + j * m + c));
            dtype_set(t, A(void *, 0), (b * each + j * r1 + i) * m + c, slope(f, diff, g, d, pw));
        }
    }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    uint64_t n = results(l, p, k), m = A(uint64_t, k->row->run == forward ? 5 : 8);
    *flops = 3 * n * m;
    *bytes = 2 * n * m * dtype_bytes(k->t[0]);
}

/* Pairs i < j of n rows, in the order (0, 1), (0, 2) .. (1, 2) ..; the next one of a pair. */
static void next_pair(int64_t *i, int64_t *j, int64_t n)
{
    if (++*j == n) *j = ++*i + 1;
}

/* <T, norm> (T *out, const T *x, i64 rows, columns, T p, two doubles[, i64 of out]): a block each pair */
static void pairs_forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    enum norm f = norm_of(k);
    double pw = dtype_get(t, p[4], 0);
    int64_t n = A(int64_t, 2), m = A(int64_t, 3), i = 0, j = 1;
    for (int64_t o = 0; o < n * (n - 1) / 2; o++, next_pair(&i, &j, n)) {
        double acc = 0;
        for (int64_t c = 0; c < m; c++)
            acc = fold(f, acc, fabs(dtype_get(t, A(const void *, 1), i * m + c) - dtype_get(t, A(const void *, 1), j * m + c)), pw);
        dtype_set(t, A(void *, 0), o, finish(f, acc, pw));
    }
}

/* <T, norm> (T *parts, const T *grad, const T *x, const T *dist, i64 grad's stride, rows, columns, pairs, T p, two doubles): the part of every
   pair, (rows - 1, rows, columns); a row is in so many pairs */
static void pairs_backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    enum norm f = norm_of(k);
    double pw = dtype_get(t, p[8], 0);
    int64_t n = A(int64_t, 5), m = A(int64_t, 6), i = 0, j = 1;
    for (int64_t o = 0; o < A(int64_t, 7); o++, next_pair(&i, &j, n)) {
        double g = dtype_get(t, A(const void *, 1), o * A(int64_t, 4)), d = dtype_get(t, A(const void *, 3), o);
        for (int64_t c = 0; c < m; c++) {
            double diff = dtype_round(t, dtype_get(t, A(const void *, 2), i * m + c) - dtype_get(t, A(const void *, 2), j * m + c));
            double part = slope(f, diff, g, d, pw);
            dtype_set(t, A(void *, 0), ((j - i - 1) * n + i) * m + c, part);
            dtype_set(t, A(void *, 0), ((n - 2 - i) * n + j) * m + c, -part);
        }
    }
}

static void pairs_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    bool back = k->row->run == pairs_backward;
    uint64_t n = A(uint64_t, back ? 5 : 2), m = A(uint64_t, back ? 6 : 3);
    *flops = 3 * n * n / 2 * m;
    *bytes = n * n * m * dtype_bytes(k->t[0]);
}

/* (int n, T *out, const T *a, const T *b, offsets <3> in elements, strides of the three along the vectors) */
static void cross(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct offset_calc calc = { p[4], 3 };
    bool wide = k->k->bytes[5] == 8;
    int64_t s[3];
    for (int i = 0; i < 3; i++) s[i] = wide ? A(int64_t, 5 + i) : A(int, 5 + i);
    for (int i = 0; i < A(int, 0); i++) {
        uint32_t off[3] = { 0 };
        double a[3], b[3];
        offset_get(&calc, (uint32_t)i, off);
        for (int c = 0; c < 3; c++) {
            a[c] = dtype_get(t, A(const void *, 2), off[1] + c * s[1]);
            b[c] = dtype_get(t, A(const void *, 3), off[2] + c * s[2]);
        }
        for (int c = 0; c < 3; c++)
            dtype_set(t, A(void *, 1), off[0] + c * s[0], a[(c + 1) % 3] * b[(c + 2) % 3] - a[(c + 2) % 3] * b[(c + 1) % 3]);
    }
}

static void cross_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 9ull * A(uint32_t, 0);
    *bytes = 9ull * A(uint32_t, 0) * dtype_bytes(k->t[0]);
}

static int bind_type(struct kern *k) { return dtype_class(k->t[0]) == DC_NONE ? -ENOSYS : 0; }

const struct kern_row distance_rows[] = {
    { "cdist_kernel_cuda_impl", "ppp*ppppp", forward, cost, bind },
    { "cdist_kernel_cuda_impl", "ppp*pppppp", forward, cost, bind },
    { "cdist_backward_kernel_cuda_impl", "ppppp*ppppppp", backward, cost, bind },
    { "pdist_kernel_cuda_impl", "pppp*pp", pairs_forward, pairs_cost, bind },
    { "pdist_kernel_cuda_impl", "pppp*ppp", pairs_forward, pairs_cost, bind },
    { "pdist_backward_kernel_cuda_impl", "pppppppp*pp", pairs_backward, pairs_cost, bind },
    { "cross_kernel", "ippp****", cross, cross_cost, bind_type },
    KERN_END
};
