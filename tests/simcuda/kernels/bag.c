/*
 * Bags of embeddings (sum, mean, maximum), forward and backward, and the gradient of an embedding by sorted indices: equal indices
 * form segments, a segment's rows are summed in parts of ten, the parts then go to the row of the weights. Counts of segments lie
 * in device memory: what a launch does not reach stays as it was.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/order.h"
#include "tests/simcuda/kernels/rows.h"

#define PART_ROWS 10

static int64_t ix(const struct kern *k, int arg, const void *base, int64_t i) { return dtype_geti(k->t[arg], base, i); }

/* Bag b's elements. */
static void bounds(const struct kern *k, const void *offsets, int64_t bags, int64_t total, int64_t b, int64_t *first, int64_t *end)
{
    *first = b ? ix(k, 1, offsets, b) : 0;
    *end = b < bags - 1 ? ix(k, 1, offsets, b + 1) : total;
}

/* <T, I> (const I *index, const I *offsets, const T *weight, T *out, I *offset2bag, i64 indices, bags, features, weight strides of
   rows, features, int mean, I *bag size, const T *sample weights, i64 their stride, I padding, rows of the weights) */
static void sum_mean(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], it = k->t[1];
    int64_t total = A(int64_t, 5), bags = A(int64_t, 6), features = A(int64_t, 7), padding = dtype_geti(it, p[14], 0);
    const void *each = A(const void *, 12);
    double *acc = row_scratch(2 * features), *x = acc + features;
    for (int64_t b = 0; b < bags; b++) {
        int64_t first, end, n = 0;
        bounds(k, A(const void *, 1), bags, total, b, &first, &end);
        memset(acc, 0, sizeof *acc * (size_t)features);
        for (int64_t i = first; i < end; i++) {
            int64_t row = ix(k, 1, A(const void *, 0), i);
            dtype_seti(it, A(void *, 4), i, b);
            if (row == padding) continue;
            n++;
            double scale = each ? dtype_get(t, each, i * A(int64_t, 13)) : 1;
            row_load(t, x, A(const void *, 2), row * A(int64_t, 8), A(int64_t, 9), features);
            for (int64_t f = 0; f < features; f++) acc[f] += scale * x[f];
        }
        for (int64_t f = 0; A(int, 10) == 1 && n && f < features; f++) acc[f] /= (double)n;
        dtype_seti(it, A(void *, 11), b, n);
        row_store(t, acc, A(void *, 3), b * features, 1, features);
    }
    free(acc);
}

/* <T, I> (const I *index, const I *offsets, const T *weight, T *out, I *offset2bag, i64 indices, bags, features, weight strides, I
   *bag size, I *which, I padding, rows of the weights) */
static void maximum(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], it = k->t[1];
    int64_t total = A(int64_t, 5), bags = A(int64_t, 6), features = A(int64_t, 7), padding = dtype_geti(it, p[12], 0);
    for (int64_t b = 0; b < bags; b++) {
        int64_t first, end, n = 0;
        bounds(k, A(const void *, 1), bags, total, b, &first, &end);
        for (int64_t i = first; i < end; i++) {
            n += ix(k, 1, A(const void *, 0), i) != padding;
            dtype_seti(it, A(void *, 4), i, b);
        }
        dtype_seti(it, A(void *, 10), b, n);
        for (int64_t f = 0; f < features; f++) {
            double best = 0;
            int64_t which = -1;
            for (int64_t i = first; i < end; i++) {
                int64_t row = ix(k, 1, A(const void *, 0), i);
                if (row == padding) continue;
                double v = dtype_get(t, A(const void *, 2), row * A(int64_t, 8) + f * A(int64_t, 9));
                if (which < 0 || v > best) {
                    best = v;
                    which = row;
                }
            }
            dtype_seti(it, A(void *, 11), b * features + f, which);
            dtype_set(t, A(void *, 3), b * features + f, best);
        }
    }
}

static void bag_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 2 * A(uint64_t, 5) * A(uint64_t, 7);
    *bytes = (A(uint64_t, 5) + A(uint64_t, 6)) * A(uint64_t, 7) * dtype_bytes(k->t[0]) + 16 * A(uint64_t, 5);
}

/* <T, I> (const I *which, const T *dy, T *dw, i64 features, i64 bags, I padding, rows): atomic additions */
static void maximum_back(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    int64_t features = A(int64_t, 3), n = A(int64_t, 4) * features, padding = dtype_geti(k->t[1], p[5], 0);
    for (int64_t o = 0; o < n; o++) {
        int64_t i = order_of(l->chaos, o, n), row = ix(k, 1, A(const void *, 0), i);
        if (row < 0 || row == padding) continue;
        int64_t at = row * features + i % features;
        dtype_set(k->t[0], A(void *, 2), at, dtype_get(k->t[0], A(void *, 2), at) + dtype_get(k->t[0], A(const void *, 1), i));
    }
}

static void maximum_back_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = A(uint64_t, 3) * A(uint64_t, 4);
    *bytes = *flops * (8 + 3 * dtype_bytes(k->t[0]));
}

/* <T, I> (const T *dy, i64 its strides[2], const T *weight, i64 its strides[2], const I *index, const I *offset2bag, i64 indices,
   features, bags, rows, T *out, I padding): the gradient of each sample's weight. Bags and rows are not there in 2.11.0 */
static void sample_weights_back(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    unsigned last = k->k->n_params - 1;
    int64_t n = A(int64_t, 8), features = A(int64_t, 9), padding = dtype_geti(k->t[1], p[last], 0);
    double *a = row_scratch(2 * features), *b = a + features;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = ix(k, 1, A(const void *, 6), i), bag = ix(k, 1, A(const void *, 7), i);
        double sum = 0;
        row_load(t, a, A(const void *, 0), bag * A(int64_t, 1), A(int64_t, 2), features);
        row_load(t, b, A(const void *, 3), row * A(int64_t, 4), A(int64_t, 5), features);
        for (int64_t f = 0; row != padding && f < features; f++) sum += a[f] * b[f];
        dtype_set(t, A(void *, last - 1), i, sum);
    }
    free(a);
}

static void sample_weights_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 2 * A(uint64_t, 8) * A(uint64_t, 9);
    *bytes = *flops * dtype_bytes(k->t[0]);
}

/* (I *parts of a segment, const I *segments, const i64 *n segments, i64 indices) */
static void parts(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t n = *A(const int64_t *, 2);
    for (int64_t s = 0; s < n; s++) {
        int64_t first = ix(k, 0, A(const void *, 1), s), end = s == n - 1 ? A(int64_t, 3) : ix(k, 0, A(const void *, 1), s + 1);
        dtype_seti(k->t[0], A(void *, 0), s, (end - first + PART_ROWS - 1) / PART_ROWS);
    }
}

/* (I *first of a part, const I *parts, const I *first part, const I *segments, const i64 *n segments) */
static void part_offsets(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    for (int64_t s = 0; s < *A(const int64_t *, 4); s++) {
        int64_t to = ix(k, 0, A(const void *, 2), s), first = ix(k, 0, A(const void *, 3), s);
        for (int64_t i = 0; i < ix(k, 0, A(const void *, 1), s); i++) dtype_seti(k->t[0], A(void *, 0), to + i, first + i * PART_ROWS);
    }
}

/* (I *segment of a part, const I *parts, const I *first part, const i64 *n segments) */
static void part_segments(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    for (int64_t s = 0; s < *A(const int64_t *, 3); s++) {
        int64_t to = ix(k, 0, A(const void *, 2), s);
        for (int64_t i = 0; i < ix(k, 0, A(const void *, 1), s); i++) dtype_seti(k->t[0], A(void *, 0), to + i, s);
    }
}

/* (const I *parts, const I *first part, const i64 *n segments, i64 *n parts) */
static void count_parts(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t n = *A(const int64_t *, 2);
    *A(int64_t *, 3) = n ? ix(k, 0, A(const void *, 0), n - 1) + ix(k, 0, A(const void *, 1), n - 1) : 0;
}

static void parts_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)p;
    *flops = (uint64_t)l->grid.x * l->block.x;
    *bytes = *flops * 4 * dtype_bytes(k->t[0]);
}

/* The rows that a launch's threads reach, `width` threads a row. */
static int64_t reached(const struct catalogue_launch *l, int64_t n, int64_t width)
{
    return KERN_MIN(n, ((int64_t)l->grid.x * l->block.x + width - 1) / KERN_MAX(width, 1));
}

/* <T, I> (const I *position, const T *dy, const I *count, i64 indices, i64 features, const I *first of a part, const i64 *n parts,
   Acc *sums, i64 threads a part); with bags: (.., const I *offset2bag, const I *count, i64 indices, i64 features, int mean, const I *bag
   size, const T *sample weights, i64 stride, parts, n parts, sums, threads) */
static void part_sums(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    bool bags = k->k->n_params == 14;
    int at = bags ? 10 : 5, num = bags ? 4 : 3;
    const void *count = A(const void *, num - 1), *each = bags ? A(const void *, 8) : NULL;
    int64_t n = A(int64_t, num), features = A(int64_t, num + 1), n_parts = *A(const int64_t *, at + 1);
    enum dtype acc_t = t == DT_F64 ? DT_F64 : DT_F32;
    double *acc = row_scratch(2 * features), *x = acc + features;
    for (int64_t s = 0; s < reached(l, n_parts, A(int64_t, at + 3)); s++) {
        int64_t first = ix(k, 1, A(const void *, at), s), end = s == n_parts - 1 ? n : ix(k, 1, A(const void *, at), s + 1);
        memset(acc, 0, sizeof *acc * (size_t)features);
        for (int64_t i = first; i < end; i++) {
            int64_t from = ix(k, 1, A(const void *, 0), i), row = bags ? ix(k, 1, A(const void *, 2), from) : from;
            double scale = count ? 1.0 / (double)ix(k, 1, count, i) : 1;
            if (each) scale *= dtype_get(t, each, from * A(int64_t, 9));
            if (bags && A(int, 6)) scale /= (double)ix(k, 1, A(const void *, 7), row);
            row_load(t, x, A(const void *, 1), row * features, 1, features);
            for (int64_t f = 0; f < features; f++) acc[f] += scale * x[f];
        }
        row_store(acc_t, acc, A(void *, at + 2), s * features, 1, features);
    }
    free(acc);
}

static void sums_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    int num = k->k->n_params == 14 ? 4 : 3;
    *flops = 2 * A(uint64_t, num) * A(uint64_t, num + 1);
    *bytes = *flops * dtype_bytes(k->t[0]);
}

/* <T, I> (const I *sorted, T *dw, i64 features, const I *segments, const i64 *n segments, const Acc *sums, const I *first part,
   const i64 *n parts, i64 padding, i64 threads a segment) */
static void scatter_sums(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc_t = t == DT_F64 ? DT_F64 : DT_F32;
    int64_t features = A(int64_t, 2), n = *A(const int64_t *, 4), n_parts = *A(const int64_t *, 7);
    double *acc = row_scratch(2 * features), *x = acc + features;
    for (int64_t s = 0; s < reached(l, n, A(int64_t, 9)); s++) {
        int64_t first = ix(k, 1, A(const void *, 6), s), end = s == n - 1 ? n_parts : ix(k, 1, A(const void *, 6), s + 1);
        int64_t row = ix(k, 1, A(const void *, 0), ix(k, 1, A(const void *, 3), s));
        if (row == A(int64_t, 8)) continue;
        memset(acc, 0, sizeof *acc * (size_t)features);
        for (int64_t i = first; i < end; i++) {
            row_load(acc_t, x, A(const void *, 5), i * features, 1, features);
            for (int64_t f = 0; f < features; f++) acc[f] += x[f];
        }
        row_store(t, acc, A(void *, 1), row * features, 1, features);
    }
    free(acc);
}

static void scatter_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)p;
    *flops = (uint64_t)l->grid.x * l->block.x;
    *bytes = *flops * 2 * dtype_bytes(k->t[0]);
}

/* <T, Acc, I> (const I *position, const T *dy, const I *count, i64 indices, i64 features, const I *first of a part, const i64 *n parts,
   const I *sorted, const I *segment of a part, const I *segments, Acc *dw, i64 padding, i64 threads a part): parts are added to the
   rows by atomics */
static void atomic_sums(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc_t = k->t[1];
    const void *count = A(const void *, 2);
    int64_t n = A(int64_t, 3), features = A(int64_t, 4), n_parts = *A(const int64_t *, 6), reach = reached(l, n_parts, A(int64_t, 12));
    double *acc = row_scratch(2 * features), *x = acc + features;
    for (int64_t o = 0; o < reach; o++) {
        int64_t s = order_of(l->chaos, o, reach);
        int64_t first = ix(k, 2, A(const void *, 5), s), end = s == n_parts - 1 ? n : ix(k, 2, A(const void *, 5), s + 1);
        int64_t row = ix(k, 2, A(const void *, 7), ix(k, 2, A(const void *, 9), ix(k, 2, A(const void *, 8), s)));
        if (row == A(int64_t, 11)) continue;
        memset(acc, 0, sizeof *acc * (size_t)features);
        for (int64_t i = first; i < end; i++) {
            double scale = count ? 1.0 / (double)ix(k, 2, count, i) : 1;
            row_load(t, x, A(const void *, 1), ix(k, 2, A(const void *, 0), i) * features, 1, features);
            for (int64_t f = 0; f < features; f++) acc[f] += scale * x[f];
        }
        row_load(acc_t, x, A(void *, 10), row * features, 1, features);
        for (int64_t f = 0; f < features; f++) x[f] += dtype_round(acc_t, acc[f]);
        row_store(acc_t, x, A(void *, 10), row * features, 1, features);
    }
    free(acc);
}

/* <I> (const I *index, I *out, i64 n, i64 rows): negative numbers count from the end */
static void wrap(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    for (int64_t i = 0; i < A(int64_t, 2); i++) {
        int64_t v = ix(k, 0, A(const void *, 0), i);
        dtype_seti(k->t[0], A(void *, 1), i, v < 0 ? v + A(int64_t, 3) : v);
    }
}

/* <T, Acc, I> (T *weight, const I *rows, Acc greatest norm, Acc norm, i64 features, i64 all rows, i64 strides[2], const i64 *number of rows): rows whose norm
   is too great are scaled. 2.11.0 has no number of all rows there */
static void renorm(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    double most = dtype_get(k->t[1], p[2], 0), order = dtype_get(k->t[1], p[3], 0);
    unsigned last = k->k->n_params - 1;
    int64_t features = A(int64_t, 4), stride = A(int64_t, last - 1), n = KERN_MIN(*A(const int64_t *, last), (int64_t)l->grid.x);
    double *x = row_scratch(features);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = ix(k, 2, A(const void *, 1), i) * A(int64_t, last - 2);
        double norm = 0;
        row_load(t, x, A(void *, 0), at, stride, features);
        for (int64_t f = 0; f < features; f++) norm = isinf(order) ? fmax(norm, fabs(x[f])) : norm + pow(fabs(x[f]), order);
        if (!isinf(order)) norm = pow(norm, 1 / order);
        if (!(norm > most)) continue;
        for (int64_t f = 0; f < features; f++) x[f] *= most / (norm + 1e-7);
        row_store(t, x, A(void *, 0), at, stride, features);
    }
    free(x);
}

static void renorm_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    *flops = 4 * l->grid.x * A(uint64_t, 4);
    *bytes = 2 * l->grid.x * A(uint64_t, 4) * dtype_bytes(k->t[0]);
}

const struct kern_row bag_rows[] = {
    { "renorm_kernel", "pp**ppppp", renorm, renorm_cost, NULL },
    { "renorm_kernel", "pp**pppp", renorm, renorm_cost, NULL },
    { "EmbeddingBag_updateOutputKernel_sum_mean", "pppppppppp" "ippp*p", sum_mean, bag_cost, NULL },
    { "EmbeddingBag_updateOutputKernel_max", "pppppppppp" "pp*p", maximum, bag_cost, NULL },
    { "EmbeddingBag_accGradParametersKernel_max", "ppppp**", maximum_back, maximum_back_cost, NULL },
    { "_embedding_bag_per_sample_weights_backward_kernel", "pppppppppp" "ppp*", sample_weights_back, sample_weights_cost, NULL },
    { "_embedding_bag_per_sample_weights_backward_kernel", "pppppppppp" "p*", sample_weights_back, sample_weights_cost, NULL },
    { "krn_partials_per_segment", "pppp", parts, parts_cost, NULL },
    { "krn_partial_segment_offset", "ppppp", part_offsets, parts_cost, NULL },
    { "krn_partial_to_segment_idx", "pppp", part_segments, parts_cost, NULL },
    { "compute_num_of_partial_segments", "pppp", count_parts, parts_cost, NULL },
    { "compute_grad_weight", "ppppppppp", part_sums, sums_cost, NULL },
    { "compute_grad_weight_bags", "ppppppipppppp" "p", part_sums, sums_cost, NULL },
    { "sum_and_scatter", "pppppppppp", scatter_sums, scatter_cost, NULL },
    { "compute_grad_weight_atomic_accumulate", "ppppppppppppp", atomic_sums, sums_cost, NULL },
    { "embedding_renorm_wrap_indices_kernel", "pppp", wrap, parts_cost, NULL },
    KERN_END
};
