/*
 * Counting and looking up: histograms (bincount, histc), places in sorted boundaries (searchsorted, bucketize), the numbers of runs of
 * equal elements (unique).
 */
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/order.h"
#include "tests/simcuda/kernels/rows.h"

enum { SHARED, MULTI_BLOCK, GLOBAL };

static void add(enum dtype t, void *base, int64_t i, double v)
{
    if (dtype_class(t) == DC_I) dtype_seti(t, base, i, dtype_geti(t, base, i) + (int64_t)v);
    else dtype_set(t, base, i, dtype_get(t, base, i) + v);
}

/* <Out, In, Index, .., memory, op> (info out, info part of each block, info in, i64 bins, least, greatest, n, op): where the bins are
   few and fit nowhere else, each block counts in a row of its own, which is then added to the result. */
static void histogram(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype ot = k->t[0], it = k->t[1], acc = k->k->bytes[4] == 8 ? (dtype_class(it) == DC_I ? DT_I64 : DT_F64)
                                               : dtype_class(it) == DC_I ? DT_I32 : DT_F32;
    struct tinfo out = tinfo_read(p[0], k->k->bytes[0]), part = tinfo_read(p[1], k->k->bytes[1]), in = tinfo_read(p[2], k->k->bytes[2]);
    struct tinfo weights = { 0 };
    if (k->k->bytes[7] >= 416) weights = tinfo_read(p[7], 416);
    int64_t n = A(int64_t, 6), bins = A(int64_t, 3);
    double least = dtype_get(acc, p[4], 0), greatest = dtype_get(acc, p[5], 0);
    long memory = k->v[6];
    for (int64_t o = 0; o < n; o++) {
        int64_t i = order_of(l->chaos, o, n);
        double v = dtype_get(it, in.data, tinfo_offset(&in, i)), w = 1;
        if (!(v >= least && v <= greatest)) continue;
        int64_t bin = it == DT_F64 || dtype_class(it) == DC_I ? (int64_t)((v - least) * (double)bins / (greatest - least))
                    : (int64_t)(((float)v - (float)least) * (float)bins / ((float)greatest - (float)least));
        if (bin == bins) bin--;
        if (weights.data) w = dtype_get(ot, weights.data, tinfo_offset(&weights, i));
        if (memory == MULTI_BLOCK) add(ot, part.data, part.stride[0] * (i / l->block.x % l->grid.x) + bin, w);
        else add(ot, out.data, tinfo_offset(&out, bin), w);
    }
    for (int64_t b = 0; memory == MULTI_BLOCK && b < l->grid.x; b++)
        for (int64_t i = 0; i < out.size[0]; i++)
            add(ot, out.data, tinfo_offset(&out, i), dtype_get(ot, part.data, part.stride[0] * b + i));
}

static int bind_histogram(struct kern *k)
{
    return k->name.n_args < 8 || dtype_class(k->t[0]) == DC_NONE || dtype_class(k->t[1]) == DC_NONE ? -ENOSYS : 0;
}

static void histogram_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 4 * A(uint64_t, 6);
    *bytes = A(uint64_t, 6) * (dtype_bytes(k->t[1]) + dtype_bytes(k->t[0]));
}

/* <In, Out> (Out *out, const In *in, const In *boundaries, const i64 *their order, i64 row of in, i64 row of boundaries, i64 n, right,
   one row of boundaries for all) */
static void search(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    const int64_t *order = A(const int64_t *, 3);
    int64_t m = A(int64_t, 5);
    for (int64_t i = 0; i < A(int64_t, 6); i++) {
        int64_t base = A(bool, 8) ? 0 : i / A(int64_t, 4) * m, lo = 0, hi = m;
        double v = dtype_get(t, A(const void *, 1), i);
        int64_t vi = dtype_geti(t, A(const void *, 1), i);
        while (lo < hi) {
            int64_t mid = lo + (hi - lo) / 2, at = base + (order ? order[base + mid] : mid);
            bool on = dtype_class(t) == DC_I ? (A(bool, 7) ? dtype_geti(t, A(const void *, 2), at) <= vi : dtype_geti(t, A(const void *, 2), at) < vi)
                                             : !(A(bool, 7) ? dtype_get(t, A(const void *, 2), at) > v : dtype_get(t, A(const void *, 2), at) >= v);
            if (on) lo = mid + 1;
            else hi = mid;
        }
        dtype_seti(k->t[1], A(void *, 0), i, lo);
    }
}

static void search_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    uint64_t steps = 1;
    for (int64_t m = A(int64_t, 5); m > 1; m /= 2) steps++;
    *flops = A(uint64_t, 6) * steps;
    *bytes = A(uint64_t, 6) * (dtype_bytes(k->t[0]) * (1 + steps) + dtype_bytes(k->t[1]));
}

/* (i64 n, const T *x, int *differs): 1 where an element is not the one before it; the sums of these number the runs */
static void differs(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = dtype_parse_pointer(k->name.arg[0]);
    size_t es = dtype_bytes(t);
    for (int64_t i = 0; i < A(int64_t, 0); i++) {
        const char *x = A(const char *, 1) + i * (int64_t)es;
        bool same = i && (dtype_class(t) == DC_I ? !memcmp(x, x - es, es) : dtype_get(t, x, 0) == dtype_get(t, x - es, 0));
        A(int32_t *, 2)[i] = i && !same;
    }
}

static void differs_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = A(uint64_t, 0);
    *bytes = A(uint64_t, 0) * (4 + dtype_bytes(dtype_parse_pointer(k->name.arg[0])));
}

/* (i64 n, const i64 *x, const i64 *place, i64 *out) */
static void scatter(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    for (int64_t i = 0; i < A(int64_t, 0); i++) A(int64_t *, 3)[A(const int64_t *, 2)[i]] = A(const int64_t *, 1)[i];
}

static void scatter_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l, (void)k;
    *flops = A(uint64_t, 0);
    *bytes = A(uint64_t, 0) * 24;
}

static int bind_pointer(struct kern *k)
{
    return k->name.n_args < 1 || dtype_class(dtype_parse_pointer(k->name.arg[0])) == DC_NONE ? -ENOSYS : 0;
}

const struct kern_row histogram_rows[] = {
    { "adjacent_difference_kernel", "ppp", differs, differs_cost, bind_pointer },
    { "kernelHistogram1D", "***p**p*", histogram, histogram_cost, bind_histogram },
    { "scatter_kernel", "pppp", scatter, scatter_cost, NULL },
    { "searchsorted_cuda_kernel", "pppppppbb", search, search_cost, NULL },
    KERN_END
};
