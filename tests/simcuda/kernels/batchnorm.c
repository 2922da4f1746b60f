/*
 * Batch normalisation over (batch, channels, rest) by packed accessors. Sums are kept in double and rounded to the statistics'
 * type. Population variance: m2 / count.
 *   <transform, In, Stat, Acc, index> batch_norm_collect_statistics_kernel(x, eps, momentum, mean, var or invstd)
 *   <In, Stat, Acc, train, index> batch_norm_transform_input_kernel(x, y, mean, invstd or var, weight, bias, eps)
 *   <In, Stat, Acc, index> batch_norm_backward_kernel(x, dy, dx, dweight, dbias, weight, running mean, running var, mean, invstd,
 *     train, eps); batch_norm_backward_reduce_kernel(x, dy, mean, invstd, sum dy, sum dy (x - mean), dweight, dbias);
 *   batch_norm_backward_elemt_kernel(x, dy, mean, invstd, weight, sum dy, sum dy (x - mean), dx, 1 / count)
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

struct bn { void *const *p; const struct kern *k; enum dtype in, stat, acc; bool wide; };

static struct bn bn_of(void *const *p, const struct kern *k, int first_type)
{
    struct bn b = { p, k, k->t[first_type], k->t[first_type + 1], k->t[first_type + 2], false };
    b.wide = k->t[k->name.n_args - 1] == DT_I64;
    return b;
}

static struct accessor at(const struct bn *b, int i, int n) { return accessor_read(b->p[i], n, b->wide); }

static double get1(const struct accessor *a, enum dtype t, int64_t c) { return dtype_get(t, a->data, c * a->stride[0]); }

static void set1(const struct accessor *a, enum dtype t, int64_t c, double v)
{
    if (a->data && a->size[0] > 0) dtype_set(t, a->data, c * a->stride[0], v);
}

/* What an accessor of one dimension holds: its element size follows from its neighbours, the caller names the type. */
static void load_plane(const struct accessor *a, enum dtype t, double *x, int64_t n, int64_t c)
{
    row_load(t, x, a->data, n * a->stride[0] + c * a->stride[1], a->stride[2], a->size[2]);
}

static void store_plane(const struct accessor *a, enum dtype t, const double *x, int64_t n, int64_t c)
{
    row_store(t, x, a->data, n * a->stride[0] + c * a->stride[1], a->stride[2], a->size[2]);
}

static void collect(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct bn b = bn_of(p, k, 1);
    bool invstd = strstr(k->name.arg[0], "InvStd") != NULL;
    struct accessor x = at(&b, 0, 3), mean = at(&b, 3, 1), var = at(&b, 4, 1);
    double *v = row_scratch(x.size[2]), eps = dtype_get(b.acc, p[1], 0), count = (double)(x.size[0] * x.size[2]);
    for (int64_t c = 0; c < x.size[1]; c++) {
        double s = 0, q = 0;
        for (int64_t n = 0; n < x.size[0]; n++) {
            load_plane(&x, b.in, v, n, c);
            for (int64_t i = 0; i < x.size[2]; i++) s += v[i];
        }
        double m = s / count;
        for (int64_t n = 0; n < x.size[0]; n++) {
            load_plane(&x, b.in, v, n, c);
            for (int64_t i = 0; i < x.size[2]; i++) q += (v[i] - m) * (v[i] - m);
        }
        set1(&mean, b.acc, c, m);
        set1(&var, b.acc, c, invstd ? 1 / sqrt(q / count + eps) : q / count);
    }
    free(v);
}

static void transform(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct bn b = bn_of(p, k, 0);
    bool train = k->v[3] != 0;
    enum dtype st = train ? b.acc : b.stat;
    struct accessor x = at(&b, 0, 3), y = at(&b, 1, 3), mean = at(&b, 2, 1), var = at(&b, 3, 1), w = at(&b, 4, 1), bias = at(&b, 5, 1);
    double *v = row_scratch(x.size[2]), eps = dtype_get(b.acc, p[6], 0);
    for (int64_t c = 0; c < x.size[1]; c++) {
        double m = get1(&mean, st, c), s = get1(&var, st, c), g = w.size[0] > 0 ? get1(&w, b.stat, c) : 1;
        double o = bias.size[0] > 0 ? get1(&bias, b.stat, c) : 0;
        if (!train) s = dtype_round(b.acc, 1 / sqrt(dtype_round(b.acc, s + eps)));
        for (int64_t n = 0; n < x.size[0]; n++) {
            load_plane(&x, b.in, v, n, c);
            for (int64_t i = 0; i < x.size[2]; i++) v[i] = g * (v[i] - m) * s + o;
            store_plane(&y, b.in, v, n, c);
        }
    }
    free(v);
}

static void sums(const struct bn *b, const struct accessor *x, const struct accessor *dy, int64_t c, double mean, double *v,
                 double *sum_dy, double *sum_dy_xmu)
{
    double *g = v + x->size[2], s = 0, d = 0;
    for (int64_t n = 0; n < x->size[0]; n++) {
        load_plane(x, b->in, v, n, c);
        load_plane(dy, b->in, g, n, c);
        for (int64_t i = 0; i < x->size[2]; i++) {
            s += g[i];
            d += g[i] * (v[i] - mean);
        }
    }
    *sum_dy = s;
    *sum_dy_xmu = d;
}

static void backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct bn b = bn_of(p, k, 0);
    struct accessor x = at(&b, 0, 3), dy = at(&b, 1, 3), dx = at(&b, 2, 3), dw = at(&b, 3, 1), db = at(&b, 4, 1), w = at(&b, 5, 1);
    struct accessor rm = at(&b, 6, 1), rv = at(&b, 7, 1), sm = at(&b, 8, 1), si = at(&b, 9, 1);
    bool train = A(bool, 10);
    double eps = dtype_get(b.acc, p[11], 0), count = (double)(x.size[0] * x.size[2]), *v = row_scratch(2 * x.size[2]), *g = v + x.size[2];
    for (int64_t c = 0; c < x.size[1]; c++) {
        double mean = train ? get1(&sm, b.acc, c) : get1(&rm, b.stat, c), s, d;
        double invstd = train ? get1(&si, b.acc, c) : 1 / sqrt(get1(&rv, b.stat, c) + eps), weight = w.size[0] > 0 ? get1(&w, b.stat, c) : 1;
        sums(&b, &x, &dy, c, mean, v, &s, &d);
        double proj = d / count * invstd * invstd, grad_mean = s / count, scale = invstd * weight;
        if (dx.data)
            for (int64_t n = 0; n < x.size[0]; n++) {
                load_plane(&x, b.in, v, n, c);
                load_plane(&dy, b.in, g, n, c);
                for (int64_t i = 0; i < x.size[2]; i++)
                    v[i] = train ? (g[i] - (v[i] - mean) * proj - grad_mean) * scale : g[i] * scale;
                store_plane(&dx, b.in, v, n, c);
            }
        set1(&dw, b.stat, c, d * invstd);
        set1(&db, b.stat, c, s);
    }
    free(v);
}

static void reduce(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct bn b = bn_of(p, k, 0);
    struct accessor x = at(&b, 0, 3), dy = at(&b, 1, 3), mean = at(&b, 2, 1), invstd = at(&b, 3, 1), s_dy = at(&b, 4, 1), s_xmu = at(&b, 5, 1);
    struct accessor dw = at(&b, 6, 1), db = at(&b, 7, 1);
    double *v = row_scratch(2 * x.size[2]);
    for (int64_t c = 0; c < x.size[1]; c++) {
        double s, d;
        sums(&b, &x, &dy, c, get1(&mean, b.acc, c), v, &s, &d);
        set1(&dw, b.stat, c, d * get1(&invstd, b.acc, c));
        set1(&db, b.stat, c, s);
        set1(&s_dy, b.acc, c, s);
        set1(&s_xmu, b.acc, c, d);
    }
    free(v);
}

static void elements(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct bn b = bn_of(p, k, 0);
    struct accessor x = at(&b, 0, 3), dy = at(&b, 1, 3), mean = at(&b, 2, 1), invstd = at(&b, 3, 1), w = at(&b, 4, 1);
    struct accessor s_dy = at(&b, 5, 1), s_xmu = at(&b, 6, 1), dx = at(&b, 7, 3);
    double norm = dtype_get(b.acc, p[8], 0), *v = row_scratch(2 * x.size[2]), *g = v + x.size[2];
    for (int64_t c = 0; c < x.size[1]; c++) {
        double m = get1(&mean, b.acc, c), is = get1(&invstd, b.acc, c), scale = (w.size[0] > 0 ? get1(&w, b.stat, c) : 1) * is;
        double m_dy = get1(&s_dy, b.acc, c) * norm, f = get1(&s_xmu, b.acc, c) * is * is * norm;
        for (int64_t n = 0; n < x.size[0]; n++) {
            load_plane(&x, b.in, v, n, c);
            load_plane(&dy, b.in, g, n, c);
            for (int64_t i = 0; i < x.size[2]; i++) v[i] = (g[i] - m_dy - (v[i] - m) * f) * scale;
            store_plane(&dx, b.in, v, n, c);
        }
    }
    free(v);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    struct bn b = bn_of(p, k, k->row->run == collect);
    struct accessor x = at(&b, 0, 3);
    uint64_t n = (uint64_t)(x.size[0] * x.size[1] * x.size[2]);
    *flops = 6 * n;
    *bytes = n * dtype_bytes(b.in) * (k->row->run == collect ? 2 : k->row->run == backward ? 5 : k->row->run == elements ? 3 : 2);
}

static int bind_elements(struct kern *k) { return k->k->n_params == 9 ? 0 : -ENOSYS; }

const struct kern_row batchnorm_rows[] = {
    { "batch_norm_collect_statistics_kernel", "*****", collect, cost, NULL },
    { "batch_norm_transform_input_kernel", "*******", transform, cost, NULL },
    { "batch_norm_backward_kernel", "**********b*", backward, cost, NULL },
    { "batch_norm_backward_reduce_kernel", "********", reduce, cost, NULL },
    { "batch_norm_backward_elemt_kernel", NULL, elements, cost, bind_elements },
    KERN_END
};
