/*
 * The k greatest or least of long slices, by several blocks a slice: the k-th value is found digit by digit (8 bits, highest first) from
 * counts that each block leaves; what lies beyond it is then gathered. Keys are turned so that unsigned comparison orders them.
 */
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

enum { DIGITS = 256, DIGIT_BITS = 8, BLOCK_THREADS = 256 };

/* As the kernels themselves do: NaN is the greatest, minus zero less than zero. */
static uint64_t turn(enum dtype t, const void *base, int64_t i)
{
    uint64_t bits = 0;
    size_t n = dtype_bytes(t);
    memcpy(&bits, (const char *)base + i * (int64_t)n, n);
    uint64_t top = (uint64_t)1 << (8 * n - 1), all = n == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * n) - 1;
    switch (t) {
    case DT_F64: case DT_F32: case DT_F16: case DT_BF16: {
        double v = dtype_get(t, base, i);
        return v != v ? all : bits & top ? ~bits & all : bits | top;
    }
    case DT_I64: case DT_I32: case DT_I16: case DT_I8: return bits ^ top;
    default: return bits;
    }
}

static void turn_back(enum dtype t, uint64_t key, void *out)
{
    size_t n = dtype_bytes(t);
    uint64_t top = (uint64_t)1 << (8 * n - 1);
    bool floating = t == DT_F64 || t == DT_F32 || t == DT_F16 || t == DT_BF16, is_signed = t == DT_I64 || t == DT_I32 || t == DT_I16 || t == DT_I8;
    uint64_t bits = floating ? (key & top ? key & ~top : ~key) : is_signed ? key ^ top : key;
    memcpy(out, &bits, n);
}

static int64_t num(void *const *p, const struct kern *k, int i) { return k->k->bytes[i] == 8 ? A(int64_t, i) : A(uint32_t, i); }

/* <T, I> (T *x, T value, I n) */
static void fill(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    size_t es = dtype_bytes(k->t[0]);
    for (int64_t i = 0; i < num(p, k, 2); i++) memcpy(A(char *, 0) + i * (int64_t)es, p[1], es);
}

/* <T, I, Key, dim> (info in, slice size, u32 *k, slices, stride, bit, items of a thread, blocks of a slice, Key mask, Key *found, i16 *counts) */
static void count_digits(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0], kt = k->t[2];
    struct tinfo in = tinfo_read(p[0], k->k->bytes[0]);
    int64_t size = A(uint32_t, 1), stride = num(p, k, 4), blocks = A(uint32_t, 7), share = (int64_t)A(int, 6) * BLOCK_THREADS;
    uint64_t mask = (uint64_t)dtype_geti(kt, p[8], 0);
    for (int64_t s = 0; s < A(uint32_t, 3); s++) {
        uint64_t found = (uint64_t)dtype_geti(kt, A(const void *, 9), s) & mask;
        int64_t first = tinfo_offset(&in, s);
        for (int64_t b = 0; b < blocks; b++) {
            int16_t *counts = A(int16_t *, 10) + (s * blocks + b) * DIGITS;
            memset(counts, 0, sizeof *counts * DIGITS);
            for (int64_t i = b * share; i < KERN_MIN((b + 1) * share, size); i++) {
                uint64_t key = turn(t, in.data, first + i * stride);
                if ((key & mask) == found) counts[key >> A(int, 5) & (DIGITS - 1)]++;
            }
        }
    }
}

/* (const i16 *counts, u32 *running sums of a slice's digits, blocks of a slice): a block a slice */
static void sum_digits(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)k;
    int64_t blocks = A(uint32_t, 2);
    for (int64_t s = 0; s < l->grid.x; s++) {
        uint32_t sum = 0;
        for (int64_t d = 0; d < DIGITS; d++) {
            for (int64_t b = 0; b < blocks; b++) sum += (uint32_t)A(const int16_t *, 0)[(s * blocks + b) * DIGITS + d];
            A(uint32_t *, 1)[s * DIGITS + d] = sum;
        }
    }
}

/* <Key, T> (Key *found, const i16 *counts, const u32 *running sums, u32 *k, blocks of a slice, bit, largest, u32 *beyond in each block, T *kth,
   u32 *k left, Key *found so far, blocks) */
static void choose_digit(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype kt = k->t[0], t = k->t[1];
    int64_t blocks = A(uint32_t, 4), all = A(uint32_t, 11), bit = A(int, 5);
    bool first_pass = bit == (int64_t)dtype_bytes(kt) * 8 - DIGIT_BITS;
    for (int64_t s = 0; s < all / blocks; s++) {
        const uint32_t *sums = A(const uint32_t *, 2) + s * DIGITS;
        uint32_t want = A(const uint32_t *, 3)[s];
        int64_t digit = 0;
        while (digit < DIGITS - 1 && sums[digit] < want) digit++;
        uint64_t found = (uint64_t)dtype_geti(kt, A(const void *, 0), s);
        found = (found & ~((uint64_t)(DIGITS - 1) << bit)) | (uint64_t)digit << bit;
        for (int64_t b = s * blocks; b < (s + 1) * blocks; b++) {
            uint32_t n = first_pass ? 0 : A(uint32_t *, 7)[b];
            for (int64_t d = A(bool, 6) ? digit + 1 : 0; d < (A(bool, 6) ? DIGITS : digit); d++) n += (uint32_t)A(const int16_t *, 1)[b * DIGITS + d];
            A(uint32_t *, 7)[b] = n;
        }
        dtype_seti(kt, A(void *, 10), s, (int64_t)found);
        if (bit > 0) A(uint32_t *, 9)[s] = want - (digit ? sums[digit - 1] : 0);
        else turn_back(t, found, A(char *, 8) + s * (int64_t)dtype_bytes(t));
    }
}

/* <Key> (const Key *found, const i16 *counts, blocks, blocks of a slice, u32 *elements equal to the kth in each block) */
static void count_equal(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    for (int64_t b = 0; b < A(uint32_t, 2); b++) {
        int64_t digit = dtype_geti(k->t[0], A(const void *, 0), b / A(uint32_t, 3)) & (DIGITS - 1);
        A(uint32_t *, 4)[b] = (uint32_t)A(const int16_t *, 1)[b * DIGITS + digit];
    }
}

/* <T, I, dim> (info in, slice size, k, largest, slices, stride, info values, stride, info indices, stride, items of a thread, blocks of a slice, const
   T *kth, const u32 *beyond, const u32 *equal, blocks): those beyond in order of index, then as many equal ones as there is room for */
static void gather(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    size_t es = dtype_bytes(t);
    struct tinfo in = tinfo_read(p[0], k->k->bytes[0]), val = tinfo_read(p[6], k->k->bytes[6]), idx = tinfo_read(p[8], k->k->bytes[8]);
    int64_t n = num(p, k, 1), want = num(p, k, 2), is = num(p, k, 5), vs = num(p, k, 7), xs = num(p, k, 9);
    for (int64_t s = 0; s < A(uint32_t, 4); s++) {
        int64_t at = tinfo_offset(&in, s), vat = tinfo_offset(&val, s), xat = tinfo_offset(&idx, s), out = 0;
        uint64_t kth = turn(t, A(const void *, 12), s);
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < n && out < want; i++) {
                uint64_t key = turn(t, in.data, at + i * is);
                if (pass ? key != kth : A(bool, 3) ? key <= kth : key >= kth) continue;
                memcpy(val.data + (vat + out * vs) * (int64_t)es, in.data + (at + i * is) * (int64_t)es, es);
                ((int64_t *)idx.data)[xat + out++ * xs] = i;
            }
    }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    kern_run_fn *f = k->row->run;
    bool reads = f == count_digits || f == gather;
    uint64_t n = f == count_digits ? (uint64_t)A(uint32_t, 1) * A(uint32_t, 3) : f == gather ? (uint64_t)num(p, k, 1) * A(uint32_t, 4)
               : (uint64_t)l->grid.x * DIGITS;
    *flops = n;
    *bytes = n * (reads ? dtype_bytes(k->t[0]) : 2);
}

const struct kern_row topk_blocks_rows[] = {
    { "fill", "p**", fill, NULL, NULL },
    { "computeBlockDigitCounts", "*ipi*iii*pp", count_digits, cost, NULL },
    { "computeDigitCumSum", "ppi", sum_digits, cost, NULL },
    { "computeBlockwiseWithinKCounts", "ppppiibpppp" "i", choose_digit, cost, NULL },
    { "computeBlockwiseKthCounts", "ppiip", count_equal, cost, NULL },
    { "gatherTopK", "***bi*****iipppi", gather, cost, NULL },
    KERN_END
};
