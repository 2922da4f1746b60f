/*
 * Margin losses: multi_margin_loss and multilabel_margin_loss, forward and backward; a block of the launch has one sample. Sums are kept
 * in double, margins are rounded to the element type as on a device.
 */
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

/* What x[i] lies too near to (or above) x[target], and 0 where it does not. */
static double excess(enum dtype t, double margin, const void *x, int64_t target, int64_t i)
{
    double z = dtype_round(t, dtype_round(t, margin - dtype_get(t, x, target)) + dtype_get(t, x, i));
    return z > 0 ? z : 0;
}

static const char *row_of(enum dtype t, const void *base, int64_t row, int64_t dim)
{
    return (const char *)base + row * dim * (int64_t)dtype_bytes(t);
}

/* <power, T> (T *loss, const T *x, const i64 *target, const T *weight, int n, int classes, bool mean, T margin) */
static void multi_fwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[1];
    int n = A(int, 4), dim = A(int, 5);
    double margin = dtype_get(t, p[7], 0);
    for (int64_t s = 0; s < (int64_t)l->grid.x; s++) {
        const char *x = row_of(t, A(const void *, 1), s, dim);
        int64_t target = A(const int64_t *, 2)[s];
        double weight = A(const void *, 3) ? dtype_get(t, A(const void *, 3), target) : 1, sum = 0;
        for (int i = 0; i < dim; i++) {
            double z = i == target ? 0 : excess(t, margin, x, target, i);
            sum += (k->v[0] == 1 ? z : z * z) * weight;
        }
        dtype_set(t, A(void *, 0), s, sum / (A(bool, 6) ? (double)n * dim : dim));
    }
}

/* <power, T> (T *dx, const T *dloss, const T *x, const i64 *target, const T *weight, int n, int classes, bool mean, T margin, bool reduced) */
static void multi_bwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[1];
    int n = A(int, 5), dim = A(int, 6);
    bool reduced = A(bool, 9);
    double margin = dtype_get(t, p[8], 0), g = 1 / (A(bool, 7) && reduced ? (double)n * dim : dim);
    for (int64_t s = 0; s < (int64_t)l->grid.x; s++) {
        const char *x = row_of(t, A(const void *, 2), s, dim);
        int64_t target = A(const int64_t *, 3)[s];
        double weight = A(const void *, 4) ? dtype_get(t, A(const void *, 4), target) : 1, sum = 0;
        double up = dtype_get(t, A(const void *, 1), reduced ? 0 : s);
        for (int i = 0; i < dim; i++) {
            double z = i == target ? 0 : excess(t, margin, x, target, i), h = z > 0 ? (k->v[0] == 1 ? g : 2 * g * z) * weight : 0;
            sum += h;
            dtype_set(t, A(void *, 0), s * dim + i, h * up);
        }
        dtype_set(t, A(void *, 0), s * dim + target, -sum * up);
    }
}

/* A sample's targets are its first indices that are not negative. */
static int targets_of(const int64_t *target, int dim)
{
    int n = 0;
    while (n < dim && target[n] >= 0) n++;
    return n;
}

/* <T, Acc> (T *loss, const T *x, const i64 *targets, T *is_target, int n, int classes, bool mean) */
static void label_fwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    int n = A(int, 4), dim = A(int, 5);
    for (int64_t s = 0; s < (int64_t)l->grid.x; s++) {
        const char *x = row_of(t, A(const void *, 1), s, dim);
        const int64_t *target = A(const int64_t *, 2) + s * dim;
        int many = targets_of(target, dim);
        for (int i = 0; i < dim; i++) dtype_set(t, A(void *, 3), s * dim + i, 0);
        for (int j = 0; j < many; j++) dtype_set(t, A(void *, 3), s * dim + target[j], 1);
        double sum = 0;
        for (int j = 0; j < many; j++)
            for (int i = 0; i < dim; i++)
                if (dtype_get(t, A(void *, 3), s * dim + i) == 0) sum += excess(t, 1, x, target[j], i);
        dtype_set(t, A(void *, 0), s, sum / dim / (A(bool, 6) ? n : 1));
    }
}

/* <T, Acc> (T *dx, const T *dloss, const T *x, const i64 *targets, const T *is_target, int n, int classes, bool mean, bool reduced) */
static void label_bwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    int n = A(int, 5), dim = A(int, 6);
    bool reduced = A(bool, 8);
    double g = dtype_round(t, 1 / (A(bool, 7) && reduced ? (double)n * dim : dim));
    double *sum = row_scratch(dim);
    for (int64_t s = 0; s < (int64_t)l->grid.x; s++) {
        const char *x = row_of(t, A(const void *, 2), s, dim);
        const int64_t *target = A(const int64_t *, 3) + s * dim;
        double up = dtype_get(t, A(const void *, 1), reduced ? 0 : s);
        memset(sum, 0, sizeof *sum * (size_t)dim);
        for (int j = 0; j < targets_of(target, dim); j++)
            for (int i = 0; i < dim; i++)
                if (dtype_get(t, A(const void *, 4), s * dim + i) == 0 && excess(t, 1, x, target[j], i) > 0) {
                    sum[i] += g;
                    sum[target[j]] -= g;
                }
        for (int i = 0; i < dim; i++) dtype_set(t, A(void *, 0), s * dim + i, sum[i] * up);
    }
    free(sum);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    bool back = strstr(k->name.base, "backward") != NULL, multi = k->row->run == multi_fwd || k->row->run == multi_bwd;
    uint64_t dim = A(uint32_t, back ? 6 : 5), n = l->grid.x * dim;
    *flops = 4 * n * (multi ? 1 : dim);
    *bytes = n * (2 * dtype_bytes(k->t[multi ? 1 : 0]) + 8);
}

const struct kern_row margin_rows[] = {
    { "MultiMarginLoss_forward_kernel", "ppppiib*", multi_fwd, cost, NULL },
    { "MultiMarginLoss_backward_kernel", "pppppiib*b", multi_bwd, cost, NULL },
    { "multilabel_margin_loss_forward_kernel", "ppppiib", label_fwd, cost, NULL },
    { "multilabel_margin_loss_backward_kernel", "pppppiibb", label_bwd, cost, NULL },
    KERN_END
};
