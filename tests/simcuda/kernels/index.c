/*
 * Elements by index: indexing, gather and scatter, take and put, flip, index_fill, index_copy; all driven by a lambda by value
 * that begins with offsets of n operands. Then index_select and index_add over TensorInfo, rows by number (embedding), and the
 * sorted form of index_put(accumulate) and of embedding's gradient; repeat_interleave by a tensor; the gradient of Tensor.unfold. Reductions by atomics arrive in the order of order.h.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/offset.h"
#include "tests/simcuda/kernels/order.h"
#include "tests/simcuda/kernels/rows.h"

enum how { ASSIGN, ADD, MULTIPLY, MAXIMUM, MINIMUM };
enum what { INDEX, INDEX_PUT, FLIP, INDEX_FILL, INDEX_COPY, TAKE, PUT, PUT_ADD, GATHER, SCATTER, SCATTER_FILL };

struct bound {
    enum what what;
    enum how how;
    enum dtype t, index_t;
    uint32_t first;      /* of the fields behind the offsets */
};

static void combine(enum how how, enum dtype t, char *dst, double v, int64_t vi)
{
    if (dtype_class(t) == DC_I) {
        int64_t o = dtype_geti(t, dst, 0);
        int64_t r = how == ADD ? (int64_t)((uint64_t)o + (uint64_t)vi) : how == MULTIPLY ? (int64_t)((uint64_t)o * (uint64_t)vi)
                  : how == MAXIMUM ? KERN_MAX(o, vi) : KERN_MIN(o, vi);
        dtype_seti(t, dst, 0, r);
        return;
    }
    double o = dtype_get(t, dst, 0);
    double r = how == ADD ? o + v : how == MULTIPLY ? o * v : o != o || v != v ? NAN : how == MAXIMUM ? fmax(o, v) : fmin(o, v);
    dtype_set(t, dst, 0, r);
}

static int64_t word(const char *at)
{
    int64_t v;
    memcpy(&v, at, 8);
    return v;
}

static char *pointer(const char *at) { return (char *)(uintptr_t)word(at); }

/* Element i of an indexing kernel; f: the fields behind the offsets. */
static void element(const struct bound *b, const char *f, const uint32_t *off, size_t es)
{
    switch (b->what) {
    case INDEX: case INDEX_PUT: {
        int64_t n = word(f + 16), at = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t ix = word(pointer(f + 24 + 8 * i) + off[2]), size = word(f + 224 + 8 * i);
            at += (ix < 0 ? ix + size : ix) * word(f + 424 + 8 * i);
        }
        char *out = pointer(f) + off[0];
        const char *in = pointer(f + 8) + off[1];
        if (b->what == INDEX) memcpy(out, in + at, es);
        else memcpy(out + at, in, es);
        break;
    }
    case FLIP: memcpy(pointer(f) + (int32_t)off[0], pointer(f + 8) + (int32_t)off[1], es); break;
    case INDEX_FILL: {
        int64_t ix = word(pointer(f + 8) + off[1]), size = word(f + 16);
        memcpy(pointer(f) + off[0] + (ix < 0 ? ix + size : ix) * word(f + 24) * (int64_t)es, f + 32, es);
        break;
    }
    case INDEX_COPY:
        memcpy(pointer(f) + off[0] + word(pointer(f + 8) + off[1]) * word(f + 32) * (int64_t)es, pointer(f + 16) + off[2], es);
        break;
    case TAKE: case PUT: case PUT_ADD: {
        int64_t ix = word(pointer(f + 8) + off[1]), n = word(f + 16);
        if (ix < 0) ix += n;
        bool wide = b->index_t == DT_I64;
        const char *sub = f + (wide ? 32 : 28), *fn = sub + (wide ? 408 : 404);
        if (!f[24]) {
            if (wide) {
                int32_t dims;
                memcpy(&dims, sub, 4);
                int64_t at = 0;
                for (int d = 0; d < dims; d++) {
                    int64_t size = word(sub + 8 + 8 * d);
                    at += ix % size * word(sub + 208 + 8 * d);
                    ix /= size;
                }
                ix = at;
            } else {
                struct offset_calc c = { (const uint32_t *)sub, 1 };
                uint32_t at = 0;
                offset_get(&c, (uint32_t)ix, &at);
                ix = at;
            }
        }
        char *iterated = pointer(f) + off[0], *indexed = pointer(fn + (b->what == PUT_ADD ? 8 : 0)) + ix * (int64_t)es; /* atomics: a count goes before */
        if (b->what == TAKE) memcpy(iterated, indexed, es);
        else if (b->what == PUT) memcpy(indexed, iterated, es);
        else combine(ADD, b->t, indexed, dtype_get(b->t, iterated, 0), dtype_geti(b->t, iterated, 0));
        break;
    }
    case GATHER: case SCATTER: {
        int64_t ix = dtype_geti(b->index_t, pointer(f) + off[2], 0) * word(f + 32) * (int64_t)es;
        char *self = pointer(f + 24) + off[0], *src = pointer(f + 48) + off[1];
        if (b->what == SCATTER) self += ix;
        else src += ix;
        if (b->how == ASSIGN) memcpy(self, src, es);
        else combine(b->how, b->t, self, dtype_get(b->t, src, 0), dtype_geti(b->t, src, 0));
        break;
    }
    case SCATTER_FILL: {
        char *self = pointer(f + 24) + off[0] + dtype_geti(b->index_t, pointer(f) + off[1], 0) * word(f + 32) * (int64_t)es;
        if (b->how == ASSIGN) memcpy(self, f + 48, es);
        else combine(b->how, b->t, self, dtype_get(b->t, f + 48, 0), dtype_geti(b->t, f + 48, 0));
        break;
    }
    }
}

static void run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const struct bound *b = k->priv;
    int64_t n = k->k->bytes[0] == 8 ? A(int64_t, 0) : A(int, 0);
    int operands = b->first >= 604 ? 3 : 2;
    struct offset_calc c = { p[1], operands };
    const char *f = (const char *)p[1] + b->first;
    size_t es = dtype_bytes(b->t);
    bool atomic = b->how != ASSIGN || b->what == PUT_ADD;
    for (int64_t i = 0; i < n; i++) {
        uint32_t off[3] = { 0 };
        offset_get(&c, (uint32_t)(atomic ? order_of(l->chaos, i, n) : i), off);
        element(b, f, off, es);
    }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const struct bound *b = k->priv;
    uint64_t n = k->k->bytes[0] == 8 ? A(uint64_t, 0) : A(uint32_t, 0);
    *flops = n;
    *bytes = n * (2 * dtype_bytes(b->t) + 8);
}

static int bind(struct kern *k)
{
    static const struct { const char *fn; enum what what; uint32_t first, bytes; } known[] = {
        { "index_kernel_impl", INDEX, 608, 1240 }, { "index_put_kernel_impl", INDEX_PUT, 608, 1240 },
        { "flip_kernel_impl", FLIP, 504, 520 }, { "index_fill_kernel_impl", INDEX_FILL, 504, 0 },
        { "index_copy_kernel_impl", INDEX_COPY, 608, 648 }, { "take_kernel", TAKE, 504, 0 }, { "put_kernel", PUT, 504, 0 },
        { "_cuda_scatter_gather_internal_kernel", GATHER, 608, 664 },
        { "_cuda_scatter_fill_internal_kernel", SCATTER_FILL, 504, 0 },
    };
    struct kfunctor f, inner;
    if (k->name.n_args < 3 || kname_functor(k->name.arg[2], &f) || !f.n_targs) return -ENOSYS;
    const struct kfunctor *own = &f;
    const char *type = f.targ[0];
    enum dtype index_t = DT_I64;
    if (!strcmp(f.fn, "gpu_index_kernel")) {
        if (kname_functor(f.targ[0], &inner)) return -ENOSYS;
        own = &inner;
        type = inner.targ[0];
    } else if (!strcmp(f.fn, "cuda_take_put_kernel") && f.n_targs > 2) {
        if (kname_functor(f.targ[2], &inner)) return -ENOSYS;
        own = &inner;
        index_t = dtype_parse(f.targ[1]);
    } else if (!strcmp(f.fn, "operator()")) return -ENOSYS;
    struct bound *b = calloc(1, sizeof *b);
    if (!b) return -ENOMEM;
    const char *text = k->name.arg[2];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(own->fn, known[i].fn)) continue;
        b->what = known[i].what;
        b->first = known[i].first;
        if (b->what == GATHER) {
            long scatter = 0;
            kname_number(f.targ[0], &scatter);
            if (scatter) b->what = SCATTER;
            type = f.targ[1];
            index_t = dtype_parse(f.targ[2]);
        } else if (b->what == SCATTER_FILL) index_t = dtype_parse(f.targ[1]);
        if (b->what == PUT && own->n_ord && own->ord[own->n_ord - 1] == 1) b->what = PUT_ADD;
        if (b->what >= GATHER)
            b->how = strstr(text, "operator()<at::native::ReduceAdd") || strstr(text, "ReduceAdd>") || strstr(text, "ReduceMean>") ? ADD
                   : strstr(text, "ReduceMultiply>") ? MULTIPLY : strstr(text, "ReduceMaximum>") ? MAXIMUM
                   : strstr(text, "ReduceMinimum>") ? MINIMUM : ASSIGN;
        b->t = dtype_parse(type);
        b->index_t = index_t;
        if (b->t == DT_NONE || index_t == DT_NONE) break;
        if (known[i].bytes && known[i].bytes != k->k->bytes[1]) {
            free(b);
            return -EPROTO;
        }
        k->priv = b;
        return 0;
    }
    free(b);
    return -ENOSYS;
}

/* <align, Index> (char *out, char *in, Index *index, int n, i64 slice, i64 dim size, i64 in stride, i64 out stride, bool
   negative allowed), all in bytes: whole slices */
static void gather_slices(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t slice = A(int64_t, 4), dim = A(int64_t, 5), in_stride = A(int64_t, 6), out_stride = A(int64_t, 7);
    for (int64_t i = 0; i < A(int, 3); i++) {
        int64_t ix = dtype_geti(k->t[1], A(const void *, 2), i);
        if (ix < 0) ix += dim;
        memcpy(A(char *, 0) + i * out_stride, A(const char *, 1) + ix * in_stride, (size_t)slice);
    }
}

static void gather_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l, (void)k;
    *flops = 0;
    *bytes = 2 * A(uint32_t, 3) * A(uint64_t, 4);
}

/* <ScatterAddOp, align, T, Index> (T *out, const T *src, const Index *index, int n, i64 slice, i64 dim size, i64 out stride, i64 src
   stride, int threads a slice, int slices a block), sizes in bytes: whole slices, added by atomics */
static void scatter_add_slices(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[2];
    int64_t es = (int64_t)dtype_bytes(t), slice = A(int64_t, 4), out_stride = A(int64_t, 6), src_stride = A(int64_t, 7), n = A(int, 3);
    for (int64_t o = 0; o < n; o++) {
        int64_t i = order_of(l->chaos, o, n), ix = dtype_geti(k->t[3], A(const void *, 2), i);
        for (int64_t at = 0; at < slice; at += es) {
            const char *s = A(const char *, 1) + i * src_stride + at;
            combine(ADD, t, A(char *, 0) + ix * out_stride + at, dtype_get(t, s, 0), dtype_geti(t, s, 0));
        }
    }
}

static void scatter_add_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = A(uint32_t, 3) * A(uint64_t, 4) / dtype_bytes(k->t[2]);
    *bytes = 3 * A(uint32_t, 3) * A(uint64_t, 4);
}

/* (info dst, info src, info index, dst dim, src dim, [total], inner, src dim size): slices of src named by index */
static void select_slices(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    size_t es = dtype_bytes(k->t[0]);
    bool large = k->k->n_params == 8;
    struct tinfo dst = tinfo_read(p[0], k->k->bytes[0]), src = tinfo_read(p[1], k->k->bytes[1]), idx = tinfo_read(p[2], k->k->bytes[2]);
    int dd = A(int, 3), sd = A(int, 4), at = large ? 6 : 5;
    int64_t inner = k->k->bytes[at] == 8 ? A(int64_t, at) : A(uint32_t, at), n = 1;
    for (int d = 0; d < idx.dims; d++) n *= idx.size[d];
    if (large && !k->v[6]) inner = (k->k->bytes[5] == 8 ? A(int64_t, 5) : A(uint32_t, 5)) / KERN_MAX(n, 1);
    dst.size[dd] = src.size[sd] = 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t ix = dtype_geti(k->t[1], idx.data, tinfo_offset(&idx, i));
        for (int64_t j = 0; j < inner; j++)
            memcpy(dst.data + (tinfo_offset(&dst, j) + i * dst.stride[dd]) * (int64_t)es,
                   src.data + (tinfo_offset(&src, j) + ix * src.stride[sd]) * (int64_t)es, es);
    }
}

/* (info dst, info src, info index, dst dim, src dim, [total], inner, dim size, numel, functor &, alpha) */
static void add_slices(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    size_t es = dtype_bytes(t);
    bool large = k->k->n_params == 11;
    const char *op = k->name.arg[k->name.n_args - 1];
    enum how how = strstr(op, "ReduceMultiply") ? MULTIPLY : strstr(op, "ReduceMaximum") ? MAXIMUM : strstr(op, "ReduceMinimum") ? MINIMUM : ADD;
    struct tinfo dst = tinfo_read(p[0], k->k->bytes[0]), src = tinfo_read(p[1], k->k->bytes[1]), idx = tinfo_read(p[2], k->k->bytes[2]);
    int dd = A(int, 3), sd = A(int, 4);
    int64_t n = 1, inner = 1;
    for (int d = 0; d < idx.dims; d++) n *= idx.size[d];
    dst.size[dd] = src.size[sd] = 1;
    for (int d = 0; d < src.dims; d++) inner *= src.size[d];
    double alpha = dtype_get(t, p[large ? 10 : 9], 0);
    int64_t alpha_i = dtype_geti(t, p[large ? 10 : 9], 0);
    for (int64_t o = 0; o < n; o++) {
        int64_t i = order_of(l->chaos, o, n), ix = dtype_geti(k->t[1], idx.data, tinfo_offset(&idx, i));
        for (int64_t j = 0; j < inner; j++) {
            char *d = dst.data + (tinfo_offset(&dst, j) + ix * dst.stride[dd]) * (int64_t)es;
            const char *s = src.data + (tinfo_offset(&src, j) + i * src.stride[sd]) * (int64_t)es;
            combine(how, t, d, dtype_get(t, s, 0) * alpha, dtype_geti(t, s, 0) * alpha_i);
        }
    }
}

/* <T, ..> (const i64 *sorted, const i64 *position, const T *src, T *dst, i64 n, i64 stride, i64 stride before, i64 outer, bool
   accumulate): equal indices are neighbours; without accumulate the last of them counts */
static void put_sorted(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    size_t es = dtype_bytes(t);
    const int64_t *sorted = A(const int64_t *, 0), *position = A(const int64_t *, 1);
    int64_t n = A(int64_t, 4), stride = A(int64_t, 5), before = A(int64_t, 6), outer = A(int64_t, 7);
    bool add = A(bool, 8);
    double *acc = row_scratch(2 * stride), *x = acc + stride;
    bool integers = dtype_class(t) == DC_I;
    for (int64_t z = 0; z < outer; z++)
        for (int64_t i = 0; i < n;) {
            int64_t e = i;
            while (e + 1 < n && sorted[e + 1] == sorted[i]) e++;
            char *dst = A(char *, 3) + (sorted[i] * stride + z * before) * (int64_t)es;
            const char *src = A(const char *, 2) + z * n * stride * (int64_t)es;
            if (!add) memcpy(dst, src + position[e] * stride * (int64_t)es, (size_t)stride * es);
            else if (integers)
                for (int64_t j = i; j <= e; j++)
                    for (int64_t c = 0; c < stride; c++)
                        combine(ADD, t, dst + c * (int64_t)es, 0, dtype_geti(t, src, position[j] * stride + c));
            else {
                row_load(t, acc, dst, 0, 1, stride);
                for (int64_t j = i; j <= e; j++) {
                    row_load(t, x, src, position[j] * stride, 1, stride);
                    for (int64_t c = 0; c < stride; c++) acc[c] += x[c];
                }
                row_store(t, acc, dst, 0, 1, stride);
            }
            i = e + 1;
        }
    free(acc);
}

struct place { int64_t index, position; };

static int by_index(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* <T, Acc, Index> (const Index *index, const T *dy, T *dw, int n, i64 features, int padding): row index[i] of dw gains row i of
   dy; the additions for one row are in order and rounded once */
static void embedding_grad(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    int64_t n = A(int, 3), features = A(int64_t, 4), padding = A(int, 5);
    struct place *place = malloc(sizeof *place * (size_t)(n + 1));
    for (int64_t i = 0; i < n; i++) place[i] = (struct place){ dtype_geti(k->t[2], A(const void *, 0), i), i };
    qsort(place, (size_t)n, sizeof *place, by_index);
    double *acc = row_scratch(2 * features), *x = acc + features;
    for (int64_t i = 0; i < n;) {
        int64_t ix = place[i].index, e = i;
        while (e < n && place[e].index == ix) e++;
        if (ix != padding) {
            row_load(t, acc, A(void *, 2), ix * features, 1, features);
            for (int64_t j = i; j < e; j++) {
                row_load(t, x, A(const void *, 1), place[j].position * features, 1, features);
                for (int64_t c = 0; c < features; c++) acc[c] += x[c];
            }
            row_store(t, acc, A(void *, 2), ix * features, 1, features);
        }
        i = e;
    }
    free(acc);
    free(place);
}

static void embedding_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = A(uint32_t, 3) * A(uint64_t, 4);
    *bytes = 3 * *flops * dtype_bytes(k->t[0]);
}

/* <I> (const I *repeats, const i64 *running sum of them, I *out, i64 n, i64 of out): i as often as repeats[i] says */
static void repeat_numbers(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    for (int64_t i = 0; i < A(int64_t, 3); i++) {
        int64_t end = A(const int64_t *, 1)[i];
        for (int64_t at = end - dtype_geti(k->t[0], A(const void *, 0), i); at < end; at++) dtype_seti(k->t[0], A(void *, 2), at, i);
    }
}

static void repeat_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = A(uint64_t, 4);
    *bytes = (A(uint64_t, 3) + A(uint64_t, 4)) * dtype_bytes(k->t[0]) + 8 * A(uint64_t, 3);
}

/* The gradient of windows along a dimension (Tensor.unfold). f: offsets of operands x's gradient, y's gradient, place along the dimension
   [, place in the window]; then their addresses. Windows that overlap: every element of x's gradient adds up those that it is in; size, step,
   windows, y's stride from window to window and in one. Others: every element of y's gradient is written where it came from; step, x's stride. */
static void unfold_gradient(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool apart = k->k->bytes[1] == 752;
    enum dtype t = k->t[0];
    size_t es = dtype_bytes(t);
    struct offset_calc c = { p[1], apart ? 4 : 3 };
    const char *f = (const char *)p[1] + (apart ? 704 : 608), *n = f + (apart ? 32 : 24);
    for (int i = 0; i < A(int, 0); i++) {
        uint32_t off[4] = { 0 };
        offset_get(&c, (uint32_t)i, off);
        char *x = pointer(f) + off[0];
        const char *y = pointer(f + 8) + off[1];
        int64_t at = word(pointer(f + 16) + off[2]);
        if (apart) {
            at = at * word(n) + word(pointer(f + 24) + off[3]);
            memcpy(x + at * word(n + 8) * (int64_t)es, y, es);
            continue;
        }
        int64_t size = word(n), step = word(n + 8), last = KERN_MIN(at / step, word(n + 16) - 1), w = at < size ? 0 : (at - size) / step + 1;
        double sum = dtype_get(t, x, 0);
        for (; w <= last; w++) sum += dtype_get(t, y, w * word(n + 24) + (at - w * step) * word(n + 32));
        dtype_set(t, x, 0, sum);
    }
}

static void unfold_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const char *n = (const char *)p[1] + 608 + 24;
    uint64_t each = k->k->bytes[1] == 752 ? 1 : (uint64_t)(word(n) / KERN_MAX(word(n + 8), 1)) + 1;
    *flops = A(uint32_t, 0) * each;
    *bytes = A(uint32_t, 0) * (each + 1) * dtype_bytes(k->t[0]) + 8ull * A(uint32_t, 0);
}

static int bind_unfold(struct kern *k)
{
    struct kfunctor f;
    if (k->name.n_args < 3 || kname_functor(k->name.arg[2], &f) || strcmp(f.fn, "_unfold_backward_internal_kernel") || !f.n_targs) return -ENOSYS;
    k->t[0] = dtype_parse(f.targ[0]);
    if (dtype_class(k->t[0]) == DC_NONE) return -ENOSYS;
    return k->k->bytes[1] == 752 || k->k->bytes[1] == 672 ? 0 : -EPROTO;
}

const struct kern_row index_rows[] = {
    { "index_elementwise_kernel", "p*", run, cost, bind },
    { "_scatter_gather_elementwise_kernel", "i*", run, cost, bind },
    { "vectorized_gather_kernel", "pppippppb", gather_slices, gather_cost, NULL },
    { "vectorized_scatter_kernel", "pppippppii", scatter_add_slices, scatter_add_cost, NULL },
    { "indexSelectSmallIndex", "***ii*p", select_slices, NULL, NULL },
    { "indexSelectLargeIndex", "***ii**p", select_slices, NULL, NULL },
    { "indexFuncSmallIndex", "***ii*ppp*", add_slices, NULL, NULL },
    { "indexFuncLargeIndex", "***ii**ppp*", add_slices, NULL, NULL },
    { "indexing_backward_kernel", "ppppppppb", put_sorted, NULL, NULL },
    { "indexing_backward_kernel_stride_1", "ppppppppb", put_sorted, NULL, NULL },
    { "indexing_backward_kernel_small_stride", "ppppppppb", put_sorted, NULL, NULL },
    { "embedding_backward_feature_kernel", "pppipi", embedding_grad, embedding_cost, NULL },
    { "compute_cuda_kernel", "ppppp", repeat_numbers, repeat_cost, NULL },
    { "_unfold_backward_elementwise_kernel", "i*", unfold_gradient, unfold_cost, bind_unfold },
    KERN_END
};
