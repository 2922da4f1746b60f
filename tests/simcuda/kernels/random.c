/*
 * Random numbers: distributions written over a tensor, and dropout. Numbers are cuRAND's Philox: thread i of the grid has
 * subsequence i and begins at the generator's offset; the launch's shape therefore decides who gets which number, as on a device.
 *   distribution_elementwise_grid_stride_kernel<Acc, unroll, dist, transform>(i64 n, seed, dist, transform)
 * transform, by value: { T *out; int stride; F } over a dense tensor, { offsets; T *out; F } else. F's fields are named in the
 * table: o the type computed in, t the element type, d double, l 64 bits.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/offset.h"
#include "tests/simcuda/kernels/philox.h"
#include "tests/simcuda/kernels/rows.h"

enum dist { UNIFORM, NORMAL, BERNOULLI, EXPONENTIAL, GEOMETRIC, CAUCHY, LOG_NORMAL, FROM_TO, FULL_64, INTEGER };

static const struct { const char *fn; enum dist dist; const char *fields; bool normal; } dists[] = {
    { "uniform_kernel", UNIFORM, "ott", false }, { "normal_kernel", NORMAL, "oo", true },
    { "bernoulli_kernel", BERNOULLI, "d", false }, { "exponential_kernel", EXPONENTIAL, "o", false },
    { "geometric_kernel", GEOMETRIC, "d", false }, { "cauchy_kernel", CAUCHY, "oo", false },
    { "log_normal_kernel", LOG_NORMAL, "oo", true }, { "random_from_to_kernel", FROM_TO, "ll", false },
    { "random_full_64_bits_range_kernel", FULL_64, "", false }, { "random_kernel", INTEGER, "", false },
};

struct bound {
    enum dist dist;
    bool normal, wide_words;
    enum dtype t, acc;           /* of the tensor; computed in */
    int unroll, n_fields;
    bool offsets;
    uint32_t out_at, field_at[3];
    enum dtype field_t[3];
};

static uint32_t up(uint32_t v, uint32_t to) { return (v + to - 1) / to * to; }

static int bind(struct kern *k)
{
    struct bound *b = calloc(1, sizeof *b);
    if (!b) return -ENOMEM;
    struct kfunctor f;
    size_t i = 0, n = sizeof dists / sizeof *dists;
    /* the outer lambda of the third argument is the distribution's own function */
    if (k->name.n_args < 4) goto unknown;
    for (; i < n; i++) {
        char text[64];
        size_t len = strlen(dists[i].fn);
        memcpy(text, dists[i].fn, len);
        text[len] = '<';
        text[len + 1] = 0;
        const char *at = strstr(k->name.arg[2], text);
        if (at && at > k->name.arg[2] && at[-1] == ':') break;
    }
    if (i == n || kname_functor(k->name.arg[3], &f) || !f.n_targs) goto unknown;
    b->dist = dists[i].dist;
    b->normal = dists[i].normal;
    b->acc = dtype_parse(k->name.arg[0]);
    b->t = dtype_parse(f.targ[0]);
    b->unroll = (int)k->v[1];
    b->wide_words = b->acc == DT_U64;
    if (b->t == DT_NONE || (b->unroll != 2 && b->unroll != 4)) goto unknown;
    uint32_t bytes = k->k->bytes[3], at, align = 8;
    b->offsets = bytes > 404;
    b->out_at = b->offsets ? 408 : 0;
    at = b->offsets ? 416 : 12;
    enum dtype op = b->t == DT_F16 || b->t == DT_BF16 ? DT_F32 : b->t;
    for (const char *c = dists[i].fields; *c; c++) {
        enum dtype t = *c == 'o' ? (b->acc == DT_F64 ? DT_F64 : op == DT_F64 ? DT_F64 : DT_F32) : *c == 't' ? b->t : *c == 'd' ? DT_F64 : DT_I64;
        at = up(at, (uint32_t)dtype_bytes(t));
        b->field_t[b->n_fields] = t;
        b->field_at[b->n_fields++] = at;
        at += (uint32_t)dtype_bytes(t);
    }
    if (!b->n_fields) at++;
    if (up(at, align) != bytes) {
        free(b);
        return -EPROTO;
    }
    k->priv = b;
    return 0;
unknown:
    free(b);
    return -ENOSYS;
}

/* Four words become b->unroll numbers of the distribution's source: uniform in (0, 1] or standard normal. */
static void source(const struct bound *b, const uint32_t r[4], double out[4])
{
    if (b->unroll == 4 && b->normal)
        for (int i = 0; i < 4; i += 2) {
            float u = philox_uniform(r[i]), v = (float)r[i + 1] * (0x1p-32f * 6.2831855f) + 0x1p-33f * 6.2831855f;
            float s = sqrtf(-2 * logf(u));
            out[i] = s * sinf(v);
            out[i + 1] = s * cosf(v);
        }
    else if (b->unroll == 4)
        for (int i = 0; i < 4; i++) out[i] = philox_uniform(r[i]);
    else if (b->normal) {
        double u = philox_uniform_double(r[0], r[1]), v = 2 * philox_uniform_double(r[2], r[3]), s = sqrt(-2 * log(u));
        out[0] = s * sin(3.14159265358979323846 * v);
        out[1] = s * cos(3.14159265358979323846 * v);
    } else {
        out[0] = philox_uniform_double(r[0], r[1]);
        out[1] = philox_uniform_double(r[2], r[3]);
    }
}

static double transform(const struct bound *b, const double *f, double x)
{
    double eps = b->acc == DT_F64 ? 0x1p-52 : 0x1p-23;
    switch (b->dist) {
    case UNIFORM: {
        double v = b->acc == DT_F64 ? x * f[0] + f[1] : (float)((float)x * (float)f[0] + (float)f[1]);
        v = dtype_round(b->t, v);
        return v == f[2] ? f[1] : v;
    }
    case NORMAL: return b->acc == DT_F64 ? x * f[1] + f[0] : (float)x * (float)f[1] + (float)f[0];
    case LOG_NORMAL: return exp(x * f[1] + f[0]);
    case BERNOULLI: return x < (b->acc == DT_F64 ? f[0] : (double)(float)f[0]);
    case EXPONENTIAL: return -1 / f[0] * (x >= 1 - eps / 2 ? -eps / 2 : log(x));
    case GEOMETRIC: return ceil(log(x) / log1p(-f[0]));
    case CAUCHY: return f[0] + f[1] * tan(3.14159265358979323846 * ((x > 1 - eps ? 1 - eps : x < eps ? eps : x) - 0.5));
    default: return x;
    }
}

static int64_t mantissa_range(enum dtype t)
{
    return t == DT_F64 ? (int64_t)1 << 53 : t == DT_F32 ? 1 << 24 : t == DT_F16 ? 1 << 11 : t == DT_BF16 ? 1 << 8 : INT64_MAX;
}

static void put_integer(const struct bound *b, const int64_t *f, uint64_t word, void *out)
{
    bool floating = dtype_class(b->t) != DC_I;
    switch (b->dist) {
    case FROM_TO: dtype_seti(b->t, out, 0, 0); {
        int64_t v = (int64_t)(word % (uint64_t)f[0] + (uint64_t)f[1]);
        if (floating) dtype_set(b->t, out, 0, (double)v);
        else dtype_seti(b->t, out, 0, v);
        return;
    }
    case FULL_64:
        if (floating) dtype_set(b->t, out, 0, (double)(int64_t)word);
        else dtype_seti(b->t, out, 0, (int64_t)word);
        return;
    default: {
        if (b->t == DT_BOOL) dtype_seti(b->t, out, 0, word & 1);
        else if (b->t == DT_I64) dtype_seti(b->t, out, 0, (int64_t)(word % ((uint64_t)INT64_MAX + 1)));
        else if (floating) dtype_set(b->t, out, 0, (double)(word % (uint64_t)(mantissa_range(b->t) + 1)));
        else {
            uint64_t max = b->t == DT_I32 ? INT32_MAX : b->t == DT_I16 ? INT16_MAX : b->t == DT_I8 ? INT8_MAX : UINT8_MAX;
            dtype_seti(b->t, out, 0, (int64_t)(word % (max + 1)));
        }
    }
    }
}

static void run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const struct bound *b = k->priv;
    int64_t n = A(int64_t, 0), threads = (int64_t)l->grid.x * l->block.x, es = 0;
    struct philox_seed seed = philox_unpack(p[1]);
    const char *fn = p[3];
    char *out;
    memcpy(&out, fn + b->out_at, 8);
    if (!b->offsets) {
        int32_t s;
        memcpy(&s, fn + 8, 4);
        es = s;
    }
    struct offset_calc calc = { (const uint32_t *)fn, 1 };
    double f[3] = { 0 };
    int64_t fi[3] = { 0 };
    for (int i = 0; i < b->n_fields; i++) {
        f[i] = dtype_get(b->field_t[i], fn + b->field_at[i], 0);
        fi[i] = dtype_geti(b->field_t[i], fn + b->field_at[i], 0);
    }
    int64_t rounds = n > 0 ? (n - 1) / (threads * b->unroll) + 1 : 0;
    for (int64_t round = 0; round < rounds; round++)
        for (int64_t t = 0; t < threads; t++) {
            int64_t first = round * threads * b->unroll + t;
            if (first >= n) break;
            uint32_t r[4];
            double x[4];
            philox(seed.seed, (uint64_t)t, seed.offset / 4 + (uint64_t)round, r);
            if (b->dist < FROM_TO) source(b, r, x);
            for (int i = 0; i < b->unroll && first + i * threads < n; i++) {
                int64_t li = first + i * threads;
                uint32_t off = 0;
                if (b->offsets) offset_get(&calc, (uint32_t)li, &off);
                char *o = out + (b->offsets ? (int64_t)off : li * es);
                if (b->dist < FROM_TO) dtype_set(b->t, o, 0, transform(b, f, x[i]));
                else put_integer(b, fi, b->wide_words ? (uint64_t)r[2 * i] << 32 | r[2 * i + 1] : r[i], o);
            }
        }
}

/* Dropout: (info<const T> x, info<T> y, info<mask> mask, n, Acc keep, seed): y = x mask / keep. Vectorised: VEC elements a
   thread and round. */
static void dropout(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0], acc = k->t[1];
    struct tinfo x = tinfo_read(p[0], k->k->bytes[0]), y = tinfo_read(p[1], k->k->bytes[1]), m = tinfo_read(p[2], k->k->bytes[2]);
    bool wide = k->k->bytes[3] == 8, vectorised = k->row->sig && !strcmp(k->name.base, "fused_dropout_kernel_vec");
    uint64_t n = wide ? A(uint64_t, 3) : A(uint32_t, 3), threads = (uint64_t)l->grid.x * l->block.x;
    double keep = dtype_get(acc, p[4], 0);
    float scale = 1.0f / (float)keep;
    struct philox_seed seed = philox_unpack(p[5]);
    uint64_t vec = vectorised ? (uint64_t)k->v[4] : 4;
    bool dense = vectorised || (x.dims == 1 && x.stride[0] == 1 && y.dims == 1 && y.stride[0] == 1 && m.dims == 1 && m.stride[0] == 1);
    for (uint64_t th = 0; th < threads; th++) {
        uint64_t counter = seed.offset / 4;
        uint32_t r[4] = { 0 };
        int fresh = 0;
        for (uint64_t round = 0; round * threads * vec + (vectorised ? th * vec : th) < n; round++) {
            for (uint64_t i = 0; i < vec; i++) {
                if (fresh == 0) {
                    philox(seed.seed, th, counter++, r);
                    fresh = 4;
                }
                float u = philox_uniform(r[4 - fresh--]);
                uint64_t li = round * threads * vec + (vectorised ? th * vec + i : th + i * threads);
                if (li >= n) continue;
                bool kept = u < (float)keep;
                int64_t xo = dense ? (int64_t)li : tinfo_offset(&x, (int64_t)li), yo = dense ? (int64_t)li : tinfo_offset(&y, (int64_t)li);
                if (t == DT_F32) ((float *)y.data)[yo] = ((const float *)x.data)[xo] * (float)kept * scale;
                else dtype_set(t, y.data, yo, dtype_get(t, x.data, xo) * kept * (acc == DT_F64 ? 1 / keep : scale));
                m.data[dense ? (int64_t)li : tinfo_offset(&m, (int64_t)li)] = kept;
            }
        }
    }
}

/* Bernoulli draws with a probability for each element: kernelPointwiseApply2<lambda of bernoulli_tensor_cuda_kernel<T, P>, ..>(info<T> y,
 * info<const P> p, n, seed). A thread's four elements get the first four numbers of its subsequence, in each of its rounds the same ones. */
enum { POINTWISE_STEP = 4 };

static int bernoulli_bind(struct kern *k)
{
    struct kfunctor f;
    if (k->name.n_args < 7 || kname_functor(k->name.arg[0], &f) || strcmp(f.fn, "bernoulli_tensor_cuda_kernel") || f.n_targs != 2 ||
        k->v[6] != POINTWISE_STEP)
        return -ENOSYS;
    const enum dtype t = dtype_parse(f.targ[0]), p = dtype_parse(f.targ[1]);
    if (t == DT_NONE || p == DT_NONE) return -ENOSYS;
    struct bound *b = calloc(1, sizeof *b);
    if (!b) return -ENOMEM;
    b->t = t;
    b->acc = p;
    k->priv = b;
    return 0;
}

static void bernoulli(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const struct bound *b = k->priv;
    struct tinfo y = tinfo_read(p[0], k->k->bytes[0]), x = tinfo_read(p[1], k->k->bytes[1]);
    uint64_t n = k->k->bytes[2] == 8 ? A(uint64_t, 2) : A(uint32_t, 2), threads = (uint64_t)l->grid.x * l->block.x;
    struct philox_seed seed = philox_unpack(p[3]);
    for (uint64_t th = 0; th < threads && th * POINTWISE_STEP < n; th++) {
        uint32_t r[4];
        philox(seed.seed, th, seed.offset / 4, r);
        for (uint64_t first = th * POINTWISE_STEP; first < n; first += threads * POINTWISE_STEP)
            for (uint64_t i = first; i < n && i < first + POINTWISE_STEP; i++)
                dtype_set(b->t, y.data, tinfo_offset(&y, (int64_t)i),
                          philox_uniform(r[i - first]) <= dtype_get(b->acc, x.data, tinfo_offset(&x, (int64_t)i)));
    }
}

static void bernoulli_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const struct bound *b = k->priv;
    uint64_t n = k->k->bytes[2] == 8 ? A(uint64_t, 2) : A(uint32_t, 2);
    *flops = 20 * n;
    *bytes = n * (dtype_bytes(b->t) + dtype_bytes(b->acc));
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    bool drop = k->row->run == dropout;
    uint64_t n = !drop ? A(uint64_t, 0) : k->k->bytes[3] == 8 ? A(uint64_t, 3) : A(uint32_t, 3);
    const struct bound *b = k->priv;
    *flops = 20 * n;
    *bytes = n * (drop ? 2 * dtype_bytes(k->t[0]) + 1 : dtype_bytes(b->t));
}

const struct kern_row random_rows[] = {
    { "distribution_elementwise_grid_stride_kernel", "p***", run, cost, bind },
    { "fused_dropout_kernel_vec", "*****" "*", dropout, cost, NULL },
    { "fused_dropout_kernel", "*****" "*", dropout, cost, NULL },
    { "kernelPointwiseApply2", "****", bernoulli, bernoulli_cost, bernoulli_bind },
    KERN_END
};
