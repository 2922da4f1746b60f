/*
 * Sorting: slices of a tensor in place (radix, bitonic and merge sort are all stable here), the k greatest or least of a slice,
 * k-th values and medians, and CUB's radix sort in one tile or by onesweep passes. Keys compare as their bits do once signs are
 * turned: floating keys in order of value, NaN greatest, both zeros equal.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

struct item { uint64_t key; int64_t place; };

/* The key's bits in an order that unsigned comparison respects. */
static uint64_t order_bits(enum dtype t, const void *base, int64_t i)
{
    uint64_t bits = 0;
    size_t n = dtype_bytes(t);
    memcpy(&bits, (const char *)base + i * (int64_t)n, n);
    uint64_t top = (uint64_t)1 << (8 * n - 1), all = n == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * n) - 1;
    switch (t) {
    case DT_F64: case DT_F32: case DT_F16: case DT_BF16:
        if (bits == top) bits = 0;
        return bits & top ? ~bits & all : bits | top;
    case DT_I64: case DT_I32: case DT_I16: case DT_I8: return bits ^ top;
    default: return bits;
    }
}

static int ascending(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static struct item *sorted(enum dtype t, const void *keys, int64_t at, int64_t stride, int64_t n, bool descending)
{
    struct item *v = malloc(sizeof *v * (size_t)(n > 0 ? n : 1));
    for (int64_t i = 0; i < n; i++) {
        uint64_t k = order_bits(t, keys, at + i * stride);
        v[i] = (struct item){ descending ? ~k : k, i };
    }
    qsort(v, (size_t)n, sizeof *v, ascending);
    return v;
}

static void permute(char *base, int64_t at, int64_t stride, size_t es, const struct item *v, int64_t n)
{
    char *tmp = malloc(es * (size_t)(n > 0 ? n : 1));
    for (int64_t i = 0; i < n; i++) memcpy(tmp + (size_t)i * es, base + (at + v[i].place * stride) * (int64_t)es, es);
    for (int64_t i = 0; i < n; i++) memcpy(base + (at + i * stride) * (int64_t)es, tmp + (size_t)i * es, es);
    free(tmp);
}

static int64_t num(void *const *p, const struct kern *k, int i) { return k->k->bytes[i] == 8 ? A(int64_t, i) : A(uint32_t, i); }

/* (info keys, slices, slice size, key stride, info values, value stride, descending or comparator, ..) */
static void in_place(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype kt = k->t[4], vt = k->t[5];
    struct tinfo keys = tinfo_read(p[0], k->k->bytes[0]), values = tinfo_read(p[4], k->k->bytes[4]);
    int64_t slices = num(p, k, 1), n = num(p, k, 2), ks = num(p, k, 3), vs = num(p, k, 5);
    bool descending = strstr(k->name.base, "radix") ? A(bool, 6) : strstr(k->name.arg[6], "GTOp") != NULL;
    for (int64_t s = 0; s < slices; s++) {
        int64_t at = tinfo_offset(&keys, s), vat = tinfo_offset(&values, s);
        struct item *v = sorted(kt, keys.data, at, ks, n, descending);
        permute(keys.data, at, ks, dtype_bytes(kt), v, n);
        permute(values.data, vat, vs, dtype_bytes(vt), v, n);
        free(v);
    }
}

/* <T, Index, dim, ..> (info in, slice size, k, largest, slices, stride, info values, stride, info indices, stride, kth *): those
   beyond the k-th first, then as many equal ones as there is room for, both in order of index */
static void top_k(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct tinfo in = tinfo_read(p[0], k->k->bytes[0]), val = tinfo_read(p[6], k->k->bytes[6]), idx = tinfo_read(p[8], k->k->bytes[8]);
    int64_t n = num(p, k, 1), want = num(p, k, 2), slices = num(p, k, 4), is = num(p, k, 5), vs = num(p, k, 7), xs = num(p, k, 9);
    size_t es = dtype_bytes(t);
    for (int64_t s = 0; s < slices; s++) {
        int64_t at = tinfo_offset(&in, s), vat = tinfo_offset(&val, s), xat = tinfo_offset(&idx, s), out = 0;
        struct item *v = sorted(t, in.data, at, is, n, A(bool, 3));
        uint64_t kth = want ? v[want - 1].key : 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < n && out < want; i++) {
                uint64_t b = order_bits(t, in.data, at + i * is);
                if (A(bool, 3)) b = ~b;
                if (pass ? b != kth : b >= kth) continue;
                memcpy(val.data + (vat + out * vs) * (int64_t)es, in.data + (at + i * is) * (int64_t)es, es);
                ((int64_t *)idx.data)[xat + out * xs] = i;
                out++;
            }
        free(v);
    }
}

/* (info in, slice size, k, slices, stride, info value, info index); median: (info value, info index, info in, size, slices, stride,
   ignore NaN) */
static void kth_value(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    bool median = !strcmp(k->name.base, "gatherMedian");
    int pi = median ? 2 : 0, pv = median ? 0 : 5, px = median ? 1 : 6;
    struct tinfo in = tinfo_read(p[pi], k->k->bytes[pi]), val = tinfo_read(p[pv], k->k->bytes[pv]), idx = tinfo_read(p[px], k->k->bytes[px]);
    int64_t n = num(p, k, median ? 3 : 1), slices = num(p, k, median ? 4 : 3), stride = num(p, k, median ? 5 : 4);
    for (int64_t s = 0; s < slices; s++) {
        int64_t at = tinfo_offset(&in, s), nans = 0, pick;
        struct item *v = sorted(t, in.data, at, stride, n, false);
        for (int64_t i = 0; i < n; i++) {
            double x = dtype_get(t, in.data, at + i * stride);
            nans += x != x;
        }
        if (!median) pick = num(p, k, 2) - 1;
        else if (nans && !A(bool, 6)) pick = n - nans;
        else pick = KERN_MAX((n - nans - 1) / 2, 0);
        int64_t from = v[pick].place;
        size_t es = dtype_bytes(t);
        memcpy(val.data + tinfo_offset(&val, s) * (int64_t)es, in.data + (at + from * stride) * (int64_t)es, es);
        ((int64_t *)idx.data)[tinfo_offset(&idx, s)] = from;
        free(v);
    }
}

static size_t value_bytes(const char *text) { return strstr(text, "NullType") ? 0 : dtype_bytes(dtype_parse(text)); }

static uint64_t digits(enum dtype t, const void *keys, int64_t i, int first_bit, int bits, bool descending)
{
    uint64_t b = order_bits(t, keys, i);
    if (descending) b = ~b;
    return bits >= 64 ? b : b >> first_bit & (((uint64_t)1 << bits) - 1);
}

static bool is_descending(const struct kern *k, int arg) { return k->v[arg] != 0; }

/* <policy, order, K, V, ..> (const K *, K *, const V *, V *, n, first bit, end bit, decomposer) */
static void single_tile(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype kt = k->t[2];
    size_t ke = dtype_bytes(kt), ve = value_bytes(k->name.arg[3]);
    int64_t n = num(p, k, 4);
    struct item *v = malloc(sizeof *v * (size_t)(n > 0 ? n : 1));
    for (int64_t i = 0; i < n; i++)
        v[i] = (struct item){ digits(kt, A(const void *, 0), i, A(int, 5), A(int, 6) - A(int, 5), is_descending(k, 1)), i };
    qsort(v, (size_t)n, sizeof *v, ascending);
    char *keys = malloc((ke + ve) * (size_t)(n > 0 ? n : 1)), *values = keys + ke * (size_t)n;
    for (int64_t i = 0; i < n; i++) {
        memcpy(keys + (size_t)i * ke, A(const char *, 0) + v[i].place * (int64_t)ke, ke);
        if (ve) memcpy(values + (size_t)i * ve, A(const char *, 2) + v[i].place * (int64_t)ve, ve);
    }
    memcpy(A(char *, 1), keys, ke * (size_t)n);
    if (ve) memcpy(A(char *, 3), values, ve * (size_t)n);
    free(keys);
    free(v);
}

#define RADIX_BITS 8

/* <policy, order, K, Offset, ..> (Offset *bins, const K *, n, first bit, end bit, decomposer): counts of every pass's digits */
static void histogram(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype kt = k->t[2], ot = k->t[3];
    int64_t n = num(p, k, 2);
    int pass = 0;
    for (int bit = A(int, 3); bit < A(int, 4); bit += RADIX_BITS, pass++) {
        int bits = KERN_MIN(RADIX_BITS, A(int, 4) - bit);
        for (int64_t i = 0; i < n; i++) {
            int64_t bin = pass * (1 << RADIX_BITS) + (int64_t)digits(kt, A(const void *, 1), i, bit, bits, is_descending(k, 1));
            dtype_seti(ot, A(void *, 0), bin, dtype_geti(ot, A(void *, 0), bin) + 1);
        }
    }
}

/* <policy, Offset> (Offset *bins): a block a pass; counts become first places */
static void exclusive_sum(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype ot = k->t[1];
    for (int64_t b = 0; b < l->grid.x; b++) {
        int64_t sum = 0;
        for (int64_t i = b << RADIX_BITS; i < (b + 1) << RADIX_BITS; i++) {
            int64_t n = dtype_geti(ot, A(void *, 0), i);
            dtype_seti(ot, A(void *, 0), i, sum);
            sum += n;
        }
    }
}

/* <policy, order, K, V, Offset, ..> (lookback, counters, Offset *bins out, const Offset *bins in, K *, const K *, V *, const V *, n,
   bit, bits, decomposer): one pass, stable */
static void onesweep(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype kt = k->t[2], ot = k->t[4];
    size_t ke = dtype_bytes(kt), ve = value_bytes(k->name.arg[3]);
    int64_t next[1 << RADIX_BITS];
    for (int i = 0; i < 1 << RADIX_BITS; i++) next[i] = dtype_geti(ot, A(const void *, 3), i);
    for (int64_t i = 0; i < num(p, k, 8); i++) {
        int64_t to = next[digits(kt, A(const void *, 5), i, A(int, 9), A(int, 10), is_descending(k, 1))]++;
        memcpy(A(char *, 4) + to * (int64_t)ke, A(const char *, 5) + i * (int64_t)ke, ke);
        if (ve) memcpy(A(char *, 6) + to * (int64_t)ve, A(const char *, 7) + i * (int64_t)ve, ve);
    }
    if (A(int32_t *, 1)) *A(int32_t *, 1) += (int32_t)l->grid.x;
    if (A(void *, 2))
        for (int i = 0; i < 1 << RADIX_BITS; i++) dtype_seti(ot, A(void *, 2), i, next[i]);
}

/* One pass by a segment of its own: <policy, .., order, K, V, ..> (const K *, K *, const V *, V *, begin, end, [segments,] bit, bits, ..); begin
   and end are { int stride, first }: block b has elements stride * (first + b) and up to the other's */
static void segmented_pass(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype kt = k->t[3];
    size_t ke = dtype_bytes(kt), ve = value_bytes(k->name.arg[4]);
    const int *begin = p[4], *end = p[5];
    int bit = (int)k->k->n_params - 3;
    for (int64_t b = 0; b < l->grid.x; b++) {
        int64_t first = begin[0] * (begin[1] + b), n = end[0] * (end[1] + b) - first;
        struct item *v = malloc(sizeof *v * (size_t)(n > 0 ? n : 1));
        for (int64_t i = 0; i < n; i++)
            v[i] = (struct item){ digits(kt, A(const void *, 0), first + i, A(int, bit), A(int, bit + 1), is_descending(k, 2)), i };
        qsort(v, (size_t)n, sizeof *v, ascending);
        for (int64_t i = 0; i < n; i++) {
            memcpy(A(char *, 1) + (first + i) * (int64_t)ke, A(const char *, 0) + (first + v[i].place) * (int64_t)ke, ke);
            if (ve) memcpy(A(char *, 3) + (first + i) * (int64_t)ve, A(const char *, 2) + (first + v[i].place) * (int64_t)ve, ve);
        }
        free(v);
    }
}

/* Three kernels a pass, for keys of one and two bytes. <policy, .., order, K, Offset, ..> (const K *, Offset *counts, n, bit, bits, ..): counts of
   a digit by block, a row a digit; all of them in the first block's column here */
static void upsweep(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype ot = k->t[4];
    int64_t blocks = l->grid.x, bits = A(int, 4);
    for (int64_t i = 0; i < blocks << bits; i++) dtype_seti(ot, A(void *, 1), i, 0);
    for (int64_t i = 0; i < num(p, k, 2); i++) {
        int64_t at = blocks * (int64_t)digits(k->t[3], A(const void *, 0), i, A(int, 3), (int)bits, is_descending(k, 2));
        dtype_seti(ot, A(void *, 1), at, dtype_geti(ot, A(void *, 1), at) + 1);
    }
}

/* <policy, Offset> (Offset *counts, int n) */
static void scan_counts(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t sum = 0;
    for (int64_t i = 0; i < A(int, 1); i++) {
        int64_t n = dtype_geti(k->t[1], A(void *, 0), i);
        dtype_seti(k->t[1], A(void *, 0), i, sum);
        sum += n;
    }
}

/* <policy, .., order, K, V, Offset, ..> (const K *, K *, const V *, V *, const Offset *places, n, bit, bits, ..): stable */
static void downsweep(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype kt = k->t[3], ot = k->t[5];
    size_t ke = dtype_bytes(kt), ve = value_bytes(k->name.arg[4]);
    int64_t next[1 << RADIX_BITS], bits = A(int, 7);
    if (bits > RADIX_BITS) return;
    for (int i = 0; i < 1 << bits; i++) next[i] = dtype_geti(ot, A(const void *, 4), i * (int64_t)l->grid.x);
    for (int64_t i = 0; i < num(p, k, 5); i++) {
        int64_t to = next[digits(kt, A(const void *, 0), i, A(int, 6), (int)bits, is_descending(k, 2))]++;
        memcpy(A(char *, 1) + to * (int64_t)ke, A(const char *, 0) + i * (int64_t)ke, ke);
        if (ve) memcpy(A(char *, 3) + to * (int64_t)ve, A(const char *, 2) + i * (int64_t)ve, ve);
    }
}

/* (i64 *index, int n, divider { divisor, .. }): numbers within a row; (int2 *, int n, divider): row, number within it */
static void numbers(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool pairs = strstr(k->name.base, "segment") != NULL;
    uint32_t row = *(const uint32_t *)p[2];
    for (uint32_t i = 0; i < A(uint32_t, 1); i++) {
        if (!pairs) A(int64_t *, 0)[i] = i % row;
        else {
            A(int32_t *, 0)[2 * i] = (int32_t)(i / row);
            A(int32_t *, 0)[2 * i + 1] = (int32_t)(i % row);
        }
    }
}

/* <T> (const T *in, T *out, i64 *index, const int2 *{ row, number }, int rows, int size): rows in the order that the pairs say */
static void after_full_sort(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    size_t es = dtype_bytes(k->t[0]);
    int64_t size = A(int, 5);
    for (int64_t i = 0; i < A(int, 4) * size; i++) {
        int64_t from = A(const int32_t *, 3)[2 * i + 1];
        A(int64_t *, 2)[i] = from;
        memcpy(A(char *, 1) + i * (int64_t)es, A(const char *, 0) + (i - i % size + from) * (int64_t)es, es);
    }
}

static int bind_keys(struct kern *k)
{
    kern_run_fn *f = k->row->run;
    int at = f == in_place ? 4 : f == segmented_pass || f == upsweep || f == downsweep ? 3 : 2;
    if (k->name.n_args <= at || dtype_class(k->t[at]) == DC_NONE) return -ENOSYS;
    return 0;
}

/* Each element is read and written once a pass; sorting within a slice makes as many passes as its length has bits. */
static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    kern_run_fn *f = k->row->run;
    uint64_t n, each = 16, passes = 1;
    if (f == in_place || f == top_k || f == kth_value) {
        bool median = !strcmp(k->name.base, "gatherMedian");
        int size = f == in_place ? 2 : median ? 3 : 1, slices = f == in_place ? 1 : f == top_k ? 4 : median ? 4 : 3;
        uint64_t row = (uint64_t)num(p, k, size);
        for (uint64_t m = row; f == in_place && m > 1; m /= 2) passes++;
        n = row * (uint64_t)num(p, k, slices);
    } else if (f == segmented_pass) n = (uint64_t)((const int *)p[5])[0] * l->grid.x;
    else if (f == single_tile) n = (uint64_t)num(p, k, 4);
    else if (f == onesweep) n = (uint64_t)num(p, k, 8);
    else if (f == downsweep) n = (uint64_t)num(p, k, 5);
    else if (f == histogram || f == upsweep) n = (uint64_t)num(p, k, 2);
    else if (f == exclusive_sum) n = (uint64_t)l->grid.x << RADIX_BITS;
    else if (f == after_full_sort) n = (uint64_t)A(int, 4) * (uint64_t)A(int, 5);
    else n = A(uint32_t, 1);
    *flops = n * passes;
    *bytes = n * passes * each;
}

const struct kern_row sort_rows[] = {
    { "radixSortKVInPlace", "*****" "**", in_place, cost, bind_keys },
    { "bitonicSortKVInPlace", "*****" "**", in_place, cost, bind_keys },
    { "warpMergeSortKVInPlace", "*****" "***", in_place, cost, bind_keys },
    { "gatherTopK", "***b******p", top_k, cost, NULL },
    { "gatherKthValue", "*******", kth_value, cost, NULL },
    { "gatherMedian", "******b", kth_value, cost, NULL },
    { "DeviceRadixSortSingleTileKernel", "pppp*ii*", single_tile, cost, bind_keys },
    { "DeviceRadixSortHistogramKernel", "pp*ii*", histogram, cost, bind_keys },
    { "DeviceRadixSortExclusiveSumKernel", "p", exclusive_sum, cost, NULL },
    { "DeviceRadixSortOnesweepKernel", "pppppppp*ii*", onesweep, cost, bind_keys },
    { "DeviceSegmentedRadixSortKernel", "pppp**ii*", segmented_pass, cost, bind_keys },
    { "DeviceSegmentedRadixSortKernel", "pppp**iii*", segmented_pass, cost, bind_keys }, /* 2.11 */
    { "DeviceRadixSortUpsweepKernel", "pp*ii**", upsweep, cost, bind_keys },
    { "RadixSortScanBinsKernel", "pi", scan_counts, cost, NULL },
    { "DeviceRadixSortDownsweepKernel", "ppppp*ii**", downsweep, cost, bind_keys },
    { "fill_reverse_indices_kernel", "pi*", numbers, cost, NULL },
    { "fill_index_and_segment_kernel", "pi*", numbers, cost, NULL },
    { "sort_postprocess_kernel", "ppppii", after_full_sort, cost, NULL },
    KERN_END
};
