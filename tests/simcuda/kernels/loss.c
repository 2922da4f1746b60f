/*
 * Negative log likelihood, forward and backward: of rows (n, classes), of one row, of images (n, classes, height, width).
 *   loss = - sum w[t] x[t] / sum w[t]    (mean; without a reduction or with a sum, as named)
 * Sums are kept in double. Targets equal to ignore_index count for nothing.
 */
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

static double weight_of(enum dtype t, const void *w, int64_t target) { return w ? dtype_get(t, w, target) : 1; }

/* The target's type: the last template argument that is one. */
static enum dtype target_type(const struct kern *k) { return k->t[k->name.n_args - 1]; }

/* (T *loss, T *total weight, const T *x, const I *target, const T *weight, bool mean, i64 n, i64 classes, i64 all, i64 ignore) */
static void fwd_2d(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], it = target_type(k);
    bool one = !strcmp(k->name.base, "nll_loss_forward_reduce_cuda_kernel_1d");
    int64_t n = one ? 1 : A(int64_t, 6), classes = one ? 0 : A(int64_t, 7), ignore = one ? A(int64_t, 7) : A(int64_t, 9);
    double sum = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t target = dtype_geti(it, A(const void *, 3), i);
        if (target == ignore) continue;
        double w = weight_of(t, A(const void *, 4), target);
        sum -= w * dtype_get(t, A(const void *, 2), i * classes + target);
        total += w;
    }
    dtype_set(t, A(void *, 1), 0, total);
    dtype_set(t, A(void *, 0), 0, A(bool, 5) ? sum / total : sum);
}

/* (T *dx, const T *dloss, const I *target, const T *weight, const T *total, bool mean, int n, int classes, i64 all, i64 ignore) */
static void bwd_2d(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], it = target_type(k);
    int n = A(int, 6), classes = A(int, 7);
    int64_t ignore = A(int64_t, 9);
    double g = -dtype_get(t, A(const void *, 1), 0);
    if (A(bool, 5)) g = dtype_round(t, g / dtype_get(t, A(const void *, 4), 0));
    for (int64_t i = 0; i < n; i++) {
        int64_t target = dtype_geti(it, A(const void *, 2), i);
        if (target != ignore) dtype_set(t, A(void *, 0), i * classes + target, weight_of(t, A(const void *, 3), target) * g);
    }
}

/* (T *dx, const T *dloss, const T *weight, const I *target, const T *total, bool mean, i64 classes, i64 ignore) */
static void bwd_1d(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], it = target_type(k);
    int64_t target = dtype_geti(it, A(const void *, 3), 0);
    if (target == A(int64_t, 7)) return;
    double g = -weight_of(t, A(const void *, 2), target) * dtype_get(t, A(const void *, 1), 0);
    if (A(bool, 5)) g /= dtype_get(t, A(const void *, 4), 0);
    dtype_set(t, A(void *, 0), target, g);
}

/* (i64 n, accessor<2> x, const I *target, T *out, const T *weight, i64 classes, i64 ignore) */
static void fwd_each(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], it = target_type(k);
    struct accessor x = accessor_read(p[1], 2, true);
    for (int64_t i = 0; i < A(int64_t, 0); i++) {
        int64_t target = dtype_geti(it, A(const void *, 2), i);
        double v = target == A(int64_t, 6) ? 0 : -weight_of(t, A(const void *, 4), target)
                                                 * dtype_get(t, x.data, i * x.stride[0] + target * x.stride[1]);
        dtype_set(t, A(void *, 3), i, v);
    }
}

/* (int n, const I *target, accessor<1> dy, accessor<2> dx, const T *weight, i64 classes, i64 ignore) */
static void bwd_each(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], it = target_type(k);
    struct accessor dy = accessor_read(p[2], 1, true), dx = accessor_read(p[3], 2, true);
    for (int64_t i = 0; i < A(int, 0); i++) {
        int64_t target = dtype_geti(it, A(const void *, 1), i);
        if (target == A(int64_t, 6)) continue;
        dtype_set(t, dx.data, i * dx.stride[0] + target * dx.stride[1],
                  -weight_of(t, A(const void *, 4), target) * dtype_get(t, dy.data, i * dy.stride[0]));
    }
}

/* (T *loss, T *total, const T *x, const i64 *target, const T *weight, classes, pixels of an image, blocks an image, i64 ignore):
   each block adds its share to both results */
static void fwd_image(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    bool wide = k->k->bytes[6] == 8;
    int64_t classes = wide ? A(int64_t, 5) : A(int, 5), pixels = wide ? A(int64_t, 6) : A(int, 6), per = A(int, 7);
    if (k->k->bytes[5] == 4) classes = A(int, 5);
    int64_t images = l->grid.x / KERN_MAX(per, 1);
    double sum = 0, total = 0;
    for (int64_t i = 0; i < images; i++)
        for (int64_t j = 0; j < pixels; j++) {
            int64_t target = A(const int64_t *, 3)[i * pixels + j];
            if (target == A(int64_t, 8)) continue;
            double w = weight_of(t, A(const void *, 4), target);
            sum -= w * dtype_get(t, A(const void *, 2), (i * classes + target) * pixels + j);
            total += w;
        }
    dtype_set(t, A(void *, 0), 0, dtype_get(t, A(void *, 0), 0) + sum);
    dtype_set(t, A(void *, 1), 0, dtype_get(t, A(void *, 1), 0) + total);
}

/* (T *loss, const T *total) */
static void fwd_image_mean(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    dtype_set(k->t[0], A(void *, 0), 0, dtype_get(k->t[0], A(void *, 0), 0) / dtype_get(k->t[0], A(const void *, 1), 0));
}

/* (T *dx, const T *dloss, const i64 *target, const T *weight, const T *total, bool mean, classes, pixels, blocks, i64 ignore) */
static void bwd_image(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    int64_t classes = k->k->bytes[6] == 8 ? A(int64_t, 6) : A(int, 6), pixels = k->k->bytes[7] == 8 ? A(int64_t, 7) : A(int, 7);
    int64_t images = l->grid.x / KERN_MAX(A(int, 8), 1);
    double g = -dtype_get(t, A(const void *, 1), 0);
    if (A(bool, 5)) g /= dtype_get(t, A(const void *, 4), 0);
    for (int64_t i = 0; i < images; i++)
        for (int64_t j = 0; j < pixels; j++) {
            int64_t target = A(const int64_t *, 2)[i * pixels + j];
            if (target != A(int64_t, 9))
                dtype_set(t, A(void *, 0), (i * classes + target) * pixels + j, weight_of(t, A(const void *, 3), target) * g);
        }
}

/* (i64 n, accessor<4> x, accessor<3> target, accessor<3> out, const T *weight, i64 ignore); backward: target, dy, dx */
static void image_each(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    bool back = !strcmp(k->name.base, "nll_loss2d_backward_no_reduce_kernel");
    struct accessor target = accessor_read(p[back ? 1 : 2], 3, true), x = accessor_read(p[back ? 3 : 1], 4, true);
    struct accessor y = accessor_read(p[back ? 2 : 3], 3, true);
    for (int64_t i = 0; i < A(int64_t, 0); i++) {
        int64_t b = i % target.size[0], h = i / target.size[0] % target.size[1], w = i / (target.size[0] * target.size[1]);
        int64_t c = ((const int64_t *)target.data)[b * target.stride[0] + h * target.stride[1] + w * target.stride[2]];
        int64_t at_y = b * y.stride[0] + h * y.stride[1] + w * y.stride[2];
        int64_t at_x = b * x.stride[0] + c * x.stride[1] + h * x.stride[2] + w * x.stride[3];
        if (c == A(int64_t, 5)) {
            if (!back) dtype_set(t, y.data, at_y, 0);
            continue;
        }
        double f = -weight_of(t, A(const void *, 4), c);
        if (back) dtype_set(t, x.data, at_x, f * dtype_get(t, y.data, at_y));
        else dtype_set(t, y.data, at_y, f * dtype_get(t, x.data, at_x));
    }
}

const struct kern_row loss_rows[] = {
    { "nll_loss_forward_reduce_cuda_kernel_2d", "pppppbpppp", fwd_2d, NULL, NULL },
    { "nll_loss_forward_reduce_cuda_kernel_1d", "pppppbpp", fwd_2d, NULL, NULL },
    { "nll_loss_backward_reduce_cuda_kernel_2d", "pppppbiipp", bwd_2d, NULL, NULL },
    { "nll_loss_backward_reduce_cuda_kernel_1d", "pppppbpp", bwd_1d, NULL, NULL },
    { "nll_loss_forward_no_reduce_cuda_kernel", "p*ppppp", fwd_each, NULL, NULL },
    { "nll_loss_backward_no_reduce_cuda_kernel", "ip**ppp", bwd_each, NULL, NULL },
    { "nll_loss2d_forward_kernel", "ppppp***p", fwd_image, NULL, NULL },
    { "nll_loss2d_forward_size_average_kernel", "pp", fwd_image_mean, NULL, NULL },
    { "nll_loss2d_backward_kernel", "pppppb***p", bwd_image, NULL, NULL },
    { "nll_loss2d_forward_no_reduce_kernel", "p***pp", image_each, NULL, NULL },
    { "nll_loss2d_backward_no_reduce_kernel", "p***pp", image_each, NULL, NULL },
    KERN_END
};
