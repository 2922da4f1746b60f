/*
 * Weight normalisation (Salimans & Kingma 2016, equations 2 and 3): w = g v / |v|, over rows (first dimension) or columns (last).
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

struct shape { int64_t groups, size, step, group_step; };

static struct shape shape_of(const struct catalogue_launch *l, void *const *p, const struct kern *k, int at)
{
    if (strstr(k->name.base, "first")) return (struct shape){ l->grid.x, A(int, at), 1, A(int, at) };
    return (struct shape){ A(int, at), A(int, at + 1), A(int, at), 1 };
}

/* <T, Acc> (T *w, Acc *norms, const T *v, const T *g, row size); last dimension: (.., columns, rows) */
static void forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = k->t[1];
    struct shape s = shape_of(l, p, k, 4);
    double *x = row_scratch(s.size);
    for (int64_t i = 0; i < s.groups; i++) {
        double sum = 0;
        row_load(t, x, A(const void *, 2), i * s.group_step, s.step, s.size);
        for (int64_t j = 0; j < s.size; j++) sum += x[j] * x[j];
        dtype_set(acc, A(void *, 1), i, sqrt(sum));
        double scale = dtype_get(t, A(const void *, 3), i) / dtype_get(acc, A(void *, 1), i);
        for (int64_t j = 0; j < s.size; j++) x[j] *= scale;
        row_store(t, x, A(void *, 0), i * s.group_step, s.step, s.size);
    }
    free(x);
}

/* <T, Acc> (T *dv, T *dg, const T *dw, const T *v, const T *g, const Acc *norms, ..) */
static void backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = k->t[1];
    struct shape s = shape_of(l, p, k, 6);
    double *v = row_scratch(2 * s.size), *d = v + s.size;
    for (int64_t i = 0; i < s.groups; i++) {
        double sum = 0, norm = dtype_get(acc, A(const void *, 5), i), g = dtype_get(t, A(const void *, 4), i);
        row_load(t, d, A(const void *, 2), i * s.group_step, s.step, s.size);
        row_load(t, v, A(const void *, 3), i * s.group_step, s.step, s.size);
        for (int64_t j = 0; j < s.size; j++) sum += v[j] * d[j];
        for (int64_t j = 0; j < s.size; j++) v[j] = g * (d[j] / norm - v[j] * sum / (norm * norm * norm));
        dtype_set(t, A(void *, 1), i, sum / norm);
        row_store(t, v, A(void *, 0), i * s.group_step, s.step, s.size);
    }
    free(v);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    bool back = k->row->run == backward;
    struct shape s = shape_of(l, p, k, back ? 6 : 4);
    uint64_t n = (uint64_t)(s.groups * s.size);
    *flops = (back ? 6 : 3) * n;
    *bytes = (back ? 5 : 3) * n * dtype_bytes(k->t[0]);
}

const struct kern_row weightnorm_rows[] = {
    { "weight_norm_fwd_first_dim_kernel", "ppppi", forward, cost, NULL },
    { "weight_norm_fwd_last_dim_kernel", "ppppii", forward, cost, NULL },
    { "weight_norm_bwd_first_dim_kernel", "ppppppi", backward, cost, NULL },
    { "weight_norm_bwd_last_dim_kernel", "ppppppii", backward, cost, NULL },
    KERN_END
};
