/*
 * Running sums and products along a dimension, running maxima and minima with indices, and CUB's device-wide inclusive scan. Sums
 * of floating types are kept in double and rounded element by element.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

static int64_t num(void *const *p, const struct kern *k, int i) { return k->k->bytes[i] == 8 ? A(int64_t, i) : A(int, i); }

enum op { SUM, PROD, LOG_SUM_EXP, UNKNOWN };

static enum op op_of(const struct kern *k, int from)
{
    for (int i = from; i < k->name.n_args; i++) {
        if (strstr(k->name.arg[i], "plus") || strstr(k->name.arg[i], "SumOp")) return SUM;
        if (strstr(k->name.arg[i], "multiplies")) return PROD;
        if (strstr(k->name.arg[i], "logcumsumexp")) return LOG_SUM_EXP;
    }
    return UNKNOWN;
}

struct running { double d; int64_t i; };

static struct running running_new(enum op op)
{
    return (struct running){ op == SUM ? 0 : op == PROD ? 1 : -INFINITY, op == PROD };
}

static void running_add(struct running *r, enum op op, double v, int64_t vi)
{
    r->i = (int64_t)(op == PROD ? (uint64_t)r->i * (uint64_t)vi : (uint64_t)r->i + (uint64_t)vi);
    double hi = fmax(r->d, v), lo = fmin(r->d, v);
    if (op == SUM) r->d += v;
    else if (op == PROD) r->d *= v;
    else if (v != v || r->d != r->d) r->d = NAN;
    else r->d = hi == lo && isinf(hi) ? hi : hi + log1p(exp(lo - hi));
}

static void scan(enum dtype t, enum op op, const void *src, void *dst, int64_t at, int64_t n, int64_t stride)
{
    struct running r = running_new(op);
    bool integer = dtype_class(t) == DC_I;
    for (int64_t j = 0; j < n; j++) {
        int64_t place = at + j * stride;
        if (integer) {
            running_add(&r, op, 0, dtype_geti(t, src, place));
            dtype_seti(t, dst, place, r.i);
        } else {
            running_add(&r, op, dtype_get(t, src, place), 0);
            dtype_set(t, dst, place, r.d);
        }
    }
}

/* (T *out, const T *in, rows, row size, ..) */
static void inner(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t rows = num(p, k, 2), n = num(p, k, 3);
    for (int64_t r = 0; r < rows; r++) scan(k->t[0], op_of(k, 1), A(const void *, 1), A(void *, 0), r * n, n, 1);
}

/* (T *out, const T *in, outer, inner, row size, ..) */
static void outer(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t o = num(p, k, 2), in = num(p, k, 3), n = num(p, k, 4);
    for (int64_t r = 0; r < o; r++)
        for (int64_t i = 0; i < in; i++) scan(k->t[0], op_of(k, 1), A(const void *, 1), A(void *, 0), r * n * in + i, n, in);
}

static int bind_op(struct kern *k)
{
    return op_of(k, 1) == UNKNOWN || dtype_class(k->t[0]) == DC_NONE ? -ENOSYS : 0;
}

/* (const T *in, T *values, i64 *indices, [outer,] rows or inner, row size, ..): the last of equals counts */
static void extremes(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    bool max = strstr(k->name.arg[1], "greater") != NULL, in_dim = strstr(k->name.base, "innermost") != NULL;
    int64_t o = num(p, k, 3), stride = in_dim ? 1 : num(p, k, 4), n = in_dim ? num(p, k, 4) : num(p, k, 5);
    for (int64_t r = 0; r < o; r++)
        for (int64_t i = 0; i < stride; i++) {
            double best = 0;
            int64_t index = -1;
            for (int64_t j = 0; j < n; j++) {
                int64_t at = r * n * stride + j * stride + i;
                double v = dtype_get(t, A(const void *, 0), at);
                if (index < 0 || v != v || (best == best && (max ? v >= best : v <= best))) {
                    best = v;
                    index = j;
                }
                dtype_set(t, A(void *, 1), at, best);
                A(int64_t *, 2)[at] = index;
            }
        }
}

/* (tile descriptors *, tiles): one word a tile behind 32 of padding; types without atomics have { status *, parts *, sums * } */
static void tiles_init(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct kfunctor f;
    size_t word = k->k->bytes[0] == 24 ? 4 : 8;
    if (word == 8 && !kname_functor(k->name.arg[0], &f) && f.n_targs && dtype_bytes(dtype_parse(f.targ[0])) == 8) word = 16;
    memset(A(char *, 0), 0, word * ((size_t)A(uint32_t, 1) + 32));
}

/* <policy, in, out, tiles, op, initial value or NullType, index, acc, ..> (in, out *, tiles, first tile, op, { is a pointer; value or
   pointer }, n). in is a pointer, or one to bytes that are counted where they are not 0. */
struct device_scan { enum dtype in, out, acc; enum op op; bool exclusive, flags; };

static void device_scan(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    const struct device_scan *s = k->priv;
    struct running r = running_new(s->op);
    int64_t n = num(p, k, 6);
    bool integer = dtype_class(s->acc) == DC_I;
    if (s->exclusive) {
        const char *value = (const char *)p[5] + 8;
        if (*(const bool *)p[5]) value = *(const char *const *)value;
        running_add(&r, s->op, dtype_get(s->acc, value, 0), dtype_geti(s->acc, value, 0));
    }
    for (int64_t i = 0; i < n; i++) {
        double v = dtype_get(s->in, A(const void *, 0), i);
        int64_t vi = dtype_geti(s->in, A(const void *, 0), i);
        if (s->flags) vi = vi != 0;
        for (int step = 0; step < 2; step++) { /* the sum before this element, or with it */
            if (step == s->exclusive) running_add(&r, s->op, v, vi);
            else if (integer) dtype_seti(s->out, A(void *, 1), i, r.i);
            else dtype_set(s->out, A(void *, 1), i, r.d);
        }
    }
}

static int bind_device_scan(struct kern *k)
{
    struct device_scan s = { .exclusive = k->name.n_args > 5 && !strstr(k->name.arg[5], "NullType") };
    if (k->name.n_args < 8) return -ENOSYS;
    s.op = op_of(k, 4);
    s.flags = strstr(k->name.arg[1], "CountMaskOp") != NULL;
    s.acc = dtype_parse(k->name.arg[7]);
    s.in = dtype_parse_pointer(k->name.arg[1]);
    s.out = dtype_parse_pointer(k->name.arg[2]);
    if (s.flags) s.in = DT_U8;
    if (s.op == UNKNOWN || dtype_class(s.in) == DC_NONE || dtype_class(s.out) == DC_NONE || dtype_class(s.acc) == DC_NONE) return -ENOSYS;
    struct device_scan *kept = malloc(sizeof *kept);
    if (!kept) return -ENOMEM;
    *kept = s;
    k->priv = kept;
    return 0;
}

static void device_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const struct device_scan *s = k->priv;
    *flops = (uint64_t)num(p, k, 6);
    *bytes = *flops * (dtype_bytes(s->in) + dtype_bytes(s->out));
}

static void extremes_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    uint64_t n = (uint64_t)num(p, k, 3) * (uint64_t)num(p, k, 4);
    if (!strstr(k->name.base, "innermost")) n *= (uint64_t)num(p, k, 5);
    *flops = n;
    *bytes = n * (2 * dtype_bytes(k->t[0]) + 8);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    uint64_t n = (uint64_t)num(p, k, 2) * (uint64_t)num(p, k, 3);
    if (k->row->run == outer) n *= (uint64_t)num(p, k, 4);
    *flops = n;
    *bytes = 2 * n * dtype_bytes(k->t[0]);
}

const struct kern_row scan_rows[] = {
    { "tensor_kernel_scan_innermost_dim", "pp*****", inner, cost, bind_op },
    { "tensor_kernel_scan_outer_dim", "pp*****", outer, cost, bind_op },
    { "tensor_kernel_scan_innermost_dim_with_indices", "ppp******", extremes, extremes_cost, NULL },
    { "tensor_kernel_scan_outer_dim_with_indices", "ppp*****", extremes, extremes_cost, NULL },
    { "DeviceScanInitKernel", "*i", tiles_init, NULL, NULL },
    { "DeviceScanKernel", "*p*****", device_scan, device_cost, bind_device_scan },
    KERN_END
};
