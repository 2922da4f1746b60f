/*
 * Running sums and products along a dimension, running maxima and minima with indices, and CUB's device-wide inclusive scan. Sums
 * of floating types are kept in double and rounded element by element.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

static int64_t num(void *const *p, const struct kern *k, int i) { return k->k->bytes[i] == 8 ? A(int64_t, i) : A(int, i); }

enum op { SUM, PROD, UNKNOWN };

static enum op op_of(const struct kern *k, int from)
{
    for (int i = from; i < k->name.n_args; i++) {
        if (strstr(k->name.arg[i], "plus")) return SUM;
        if (strstr(k->name.arg[i], "multiplies")) return PROD;
    }
    return UNKNOWN;
}

static void scan(enum dtype t, enum op op, const void *src, void *dst, int64_t at, int64_t n, int64_t stride)
{
    double s = op == SUM ? 0 : 1;
    uint64_t i = op == SUM ? 0 : 1;
    bool integer = dtype_class(t) == DC_I;
    for (int64_t j = 0; j < n; j++) {
        if (integer) {
            uint64_t v = (uint64_t)dtype_geti(t, src, at + j * stride);
            i = op == SUM ? i + v : i * v;
            dtype_seti(t, dst, at + j * stride, (int64_t)i);
        } else {
            double v = dtype_get(t, src, at + j * stride);
            s = op == SUM ? s + v : s * v;
            dtype_set(t, dst, at + j * stride, s);
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

/* (tile descriptors *, tiles): one word a tile behind 32 of padding */
static void tiles_init(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct kfunctor f;
    size_t word = 8;
    if (!kname_functor(k->name.arg[0], &f) && f.n_targs && dtype_bytes(dtype_parse(f.targ[0])) == 8) word = 16;
    memset(A(char *, 0), 0, word * ((size_t)A(uint32_t, 1) + 32));
}

/* (const T *in, T *out, tiles, first tile, op, no initial value, n) */
static void device_scan(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    scan(dtype_parse(k->name.arg[7]), op_of(k, 4), A(const void *, 0), A(void *, 1), 0, num(p, k, 6), 1);
}

/* Plain pointers of the accumulated type and an inclusive scan; the rest is not known. */
static int bind_device_scan(struct kern *k)
{
    if (k->name.n_args < 8 || op_of(k, 4) == UNKNOWN || !strstr(k->name.arg[5], "NullType")) return -ENOSYS;
    char text[64];
    size_t n = strlen(k->name.arg[7]);
    if (n > 40 || dtype_class(dtype_parse(k->name.arg[7])) == DC_NONE) return -ENOSYS;
    memcpy(text, k->name.arg[7], n);
    memcpy(text + n, " const*", 8);
    if (strcmp(text, k->name.arg[1])) return -ENOSYS;
    memcpy(text + n, "*", 2);
    return strcmp(text, k->name.arg[2]) ? -ENOSYS : 0;
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
    { "tensor_kernel_scan_innermost_dim_with_indices", "ppp******", extremes, NULL, NULL },
    { "tensor_kernel_scan_outer_dim_with_indices", "ppp*****", extremes, NULL, NULL },
    { "DeviceScanInitKernel", "pi", tiles_init, NULL, NULL },
    { "DeviceScanKernel", "ppp****", device_scan, NULL, bind_device_scan },
    KERN_END
};
