/*
 * Sampling: multinomial with and without replacement, the islands of equal keys in a random permutation, leaky units with a random
 * slope. Numbers are Philox's, subsequence and offset as the launch's shape says.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/philox.h"
#include "tests/simcuda/kernels/rows.h"

static int64_t num(void *const *p, const struct kern *k, int i) { return k->k->bytes[i] == 8 ? A(int64_t, i) : A(int, i); }

/* (T *dist, rows, columns): each row divided by its sum, where that is positive */
static void renorm_rows(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    int64_t rows = A(int64_t, 1), n = A(int64_t, 2);
    double *x = row_scratch(n);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        row_load(t, x, A(void *, 0), r * n, 1, n);
        for (int64_t i = 0; i < n; i++) sum += x[i];
        if (!(sum > 0)) continue;
        for (int64_t i = 0; i < n; i++) x[i] /= sum;
        row_store(t, x, A(void *, 0), r * n, 1, n);
    }
    free(x);
}

static void renorm_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 2 * A(uint64_t, 1) * A(uint64_t, 2);
    *bytes = *flops * dtype_bytes(k->t[0]);
}

/* (i64 *dest, distributions, int categories, const T *uniform, const T *dist, int stride, int stride of categories): one sample of
   each row; where rounding leaves none, the last category that can be drawn */
static void once(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    int64_t n = A(int, 2), *dest = A(int64_t *, 0);
    double *x = row_scratch(n);
    for (int64_t d = 0; d < A(int64_t, 1); d++) {
        double sum = 0, below = 0, u = dtype_get(t, A(const void *, 3), d);
        row_load(t, x, A(const void *, 4), d * A(int, 5), A(int, 6), n);
        int64_t last = -1, found = -1;
        for (int64_t i = 0; i < n; i++) sum += x[i];
        for (int64_t i = 0; i < n && found < 0; i++) {
            double upto = below + x[i] / sum;
            if (x[i] > 0) {
                last = i;
                if (u < dtype_round(t, upto)) found = i;
            }
            below = upto;
        }
        dest[d] = found >= 0 ? found : last >= 0 ? last : 0;
    }
    free(x);
}

static void once_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 3 * A(uint64_t, 1) * (uint64_t)A(int, 2);
    *bytes = 2 * A(uint64_t, 1) * (uint64_t)A(int, 2) * dtype_bytes(k->t[0]) + 8 * A(uint64_t, 1);
}

/* (seed, int samples, i64 *dest, i64 distributions, int categories, const T *running sum, const T *dist): blocks of the y axis take
   distributions in turn; a thread draws four numbers a sample and uses the first */
static void with_replacement(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    struct philox_seed seed = philox_unpack(p[0]);
    int64_t samples = A(int, 1), dists = A(int64_t, 3), n = A(int, 4), width = (int64_t)l->grid.x * l->block.x;
    for (int64_t by = 0; by < l->grid.y; by++)
        for (int64_t th = 0; th < width && th < samples; th++) {
            uint64_t drawn = 0;
            for (int64_t d = by; d < dists; d += l->grid.y)
                for (int64_t s = th; s < samples; s += width) {
                    uint32_t r[4];
                    philox(seed.seed, (uint64_t)(by * width + th), seed.offset / 4 + drawn++, r);
                    double u = dtype_round(t, philox_uniform(r[0]));
                    int64_t lo = 0, hi = n;
                    while (lo < hi) {
                        int64_t mid = lo + (hi - lo) / 2;
                        if (dtype_get(t, A(const void *, 5), d * n + mid) < u) lo = mid + 1;
                        else hi = mid;
                    }
                    if (lo == n) lo = n - 1;
                    while (lo >= 1 && dtype_get(t, A(const void *, 6), d * n + lo) == 0) lo--;
                    A(int64_t *, 2)[d * samples + s] = lo;
                }
        }
}

static void with_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l, (void)k;
    uint64_t n = (uint64_t)A(int, 1) * A(uint64_t, 3), steps = 1;
    for (int c = A(int, 4); c > 1; c /= 2) steps++;
    *flops = n * (20 + steps);
    *bytes = n * (8 + steps * 4);
}

/* <K, T> (K *keys, T *data, K mask, int n, seed): data whose keys are equal under the mask are shuffled among themselves */
static void islands(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    size_t es = dtype_bytes(k->t[1]);
    int64_t n = A(int, 3), mask = num(p, k, 2);
    struct philox_seed seed = philox_unpack(p[4]);
    for (int64_t first = 0; first < n;) {
        int64_t key = dtype_geti(k->t[0], A(const void *, 0), first) & mask, size = 1;
        while (first + size < n && (dtype_geti(k->t[0], A(const void *, 0), first + size) & mask) == key) size++;
        uint64_t drawn = 0;
        for (int64_t i = size - 1; i > 0; i--, drawn++) {
            uint32_t r[4];
            char x[16], *a = A(char *, 1) + (first + i) * (int64_t)es;
            philox(seed.seed, (uint64_t)first, seed.offset / 4 + drawn / 4, r);
            char *b = A(char *, 1) + (first + (int64_t)(r[drawn % 4] % (uint64_t)(i + 1))) * (int64_t)es;
            memcpy(x, a, es);
            memcpy(a, b, es);
            memcpy(b, x, es);
        }
        first += size;
    }
}

static void islands_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = A(uint32_t, 3);
    *bytes = A(uint32_t, 3) * 2 * dtype_bytes(k->t[0]);
}

/* (int n, seed, T *out, const T *in, T *noise, double lower, double upper, ..): a slope drawn for each negative element */
static void rrelu(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    int64_t n = A(int, 0), threads = (int64_t)l->grid.x * l->block.x, unroll = k->v[1];
    double lower = A(double, 5), range = A(double, 6) - lower;
    struct philox_seed seed = philox_unpack(p[1]);
    for (int64_t th = 0; th < threads; th++)
        for (int64_t round = 0; round * threads * unroll + th < n; round++) {
            uint32_t r[4];
            philox(seed.seed, (uint64_t)th, seed.offset / 4 + (uint64_t)round, r);
            for (int64_t i = 0; i < unroll; i++) {
                int64_t at = round * threads * unroll + th + i * threads;
                if (at >= n) continue;
                double u = unroll == 2 ? philox_uniform_double(r[2 * i], r[2 * i + 1]) : philox_uniform(r[i]), slope = u * range + lower;
                double x = dtype_get(t, A(const void *, 3), at);
                dtype_set(t, A(void *, 4), at, x <= 0 ? slope : 1);
                dtype_set(t, A(void *, 2), at, x <= 0 ? x * slope : x);
            }
        }
}

static void rrelu_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 20ull * A(uint32_t, 0);
    *bytes = 3ull * A(uint32_t, 0) * dtype_bytes(k->t[0]);
}

const struct kern_row sample_rows[] = {
    { "renormRowsL1", "ppp", renorm_rows, renorm_cost, NULL },
    { "sampleMultinomialOnce", "ppippii", once, once_cost, NULL },
    { "sampleMultinomialWithReplacement", "*ippipp", with_replacement, with_cost, NULL },
    { "randperm_handle_duplicate_keys_kernel", "pp*i*", islands, islands_cost, NULL },
    { "rrelu_with_noise_cuda_kernel", "i*pppppp", rrelu, rrelu_cost, NULL },
    KERN_END
};
