/*
 * Tensors from nothing: arange, range, linspace, logspace (functions of the element's number), triu and tril, indices of triangles.
 *   elementwise_kernel_with_index<Index, F>(Index n, F, T *out). F's name does not tell T; the ordinal of its dispatch does.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

enum what { ARANGE, LINSPACE, LOGSPACE };
struct bound {
    enum what what;
    enum dtype t, acc;
    uint32_t at[6];
};

/* PyTorch's order of types in a dispatch. */
static const enum dtype all_types[] = { DT_U8, DT_I8, DT_I32, DT_I64, DT_I16, DT_F64, DT_F32, DT_F16, DT_BF16 };
static const enum dtype floating_types[] = { DT_F64, DT_F32, DT_C64, DT_C32, DT_F16, DT_BF16 };

/* The step between spaced elements, and the base of a logarithmic one, are floats where elements are integers or of 16 bits (2.11.0: integers
   alone, see step_is_element()); so is what ranges of floating elements are computed in. */
static enum dtype step_type(enum dtype t) { return t == DT_F64 ? DT_F64 : DT_F32; }

static uint32_t up(uint32_t v, uint32_t to) { return (v + to - 1) / to * to; }

static int bind(struct kern *k)
{
    struct kfunctor f;
    if (k->name.n_args < 2 || kname_functor(k->name.arg[1], &f) || f.n_ord < 3) return -ENOSYS;
    struct bound *b = calloc(1, sizeof *b);
    if (!b) return -ENOMEM;
    int ord = f.ord[1];
    bool spaced = true;
    if (!strcmp(f.fn, "arange_cuda_out") || !strcmp(f.fn, "range_cuda_out")) b->what = ARANGE, spaced = false;
    else if (!strcmp(f.fn, "linspace_cuda_out")) b->what = LINSPACE;
    else if (!strcmp(f.fn, "logspace_cuda_out")) b->what = LOGSPACE;
    else goto unknown;
    if (!spaced && ord >= 1 && ord <= 9) b->t = all_types[ord - 1];
    else if (spaced && f.ord[0] == 1 && ord >= 1 && ord <= 5) b->t = all_types[ord - 1];
    else if (spaced && f.ord[0] == 2 && ord >= 1 && ord <= 6) b->t = floating_types[ord - 1];
    if (dtype_class(b->t) == DC_NONE) goto unknown;
    uint32_t at = 0;
    if (!spaced) {
        b->acc = dtype_class(b->t) == DC_I ? DT_I64 : step_type(b->t);
        b->at[1] = (uint32_t)dtype_bytes(b->acc);
        at = 2 * b->at[1];
    } else { /* start, end, [base], steps (i64), step, half (i64) */
        b->acc = b->t;
        uint32_t e = (uint32_t)dtype_bytes(b->t), step = (uint32_t)dtype_bytes(step_type(b->t));
        b->at[1] = e;
        b->at[2] = up(2 * e, step);
        b->at[3] = up(b->what == LOGSPACE ? b->at[2] + step : 2 * e, 8);
        b->at[4] = b->at[3] + 8;
        b->at[5] = up(b->at[4] + step, 8);
        at = b->at[5] + 8;
    }
    if (up(at, 8) + 8 != k->k->bytes[1]) {
        free(b);
        return -EPROTO;
    }
    k->priv = b;
    return 0;
unknown:
    free(b);
    return -ENOSYS;
}

/* In 2.11.0 step and base of 16-bit elements are such elements, and every operation rounds. Neither names nor sizes nor what is beside the kernel
   tell which version it is, but the step does: it follows from start, end and steps, computed in floats or in elements. One that is neither ends the
   kernel. */
static bool step_is_element(const struct bound *b, const char *f)
{
    if (dtype_bytes(b->t) != 2 || dtype_class(b->t) == DC_I) return false;
    float start = (float)dtype_get(b->t, f + b->at[0], 0), end = (float)dtype_get(b->t, f + b->at[1], 0);
    float gaps = (float)(dtype_geti(DT_I64, f + b->at[3], 0) - 1), whole = (end - start) / gaps;
    double as_float = dtype_get(DT_F32, f + b->at[4], 0), as_element = dtype_get(b->t, f + b->at[4], 0);
    if (as_float == whole || (isnan(as_float) && isnan(whole))) return false;
    float rounded = (float)dtype_round(b->t, end - start) / (float)dtype_round(b->t, gaps);
    if (as_element != dtype_round(b->t, rounded) && !(isnan(as_element) && isnan(rounded))) kern_trap();
    return true;
}

static void run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    const struct bound *b = k->priv;
    int64_t n = k->k->bytes[0] == 8 ? A(int64_t, 0) : A(int, 0);
    const char *f = p[1];
    void *out = A(void *, 2);
    if (b->what == ARANGE) {
        if (b->acc == DT_I64) {
            int64_t start = dtype_geti(DT_I64, f, 0), step = dtype_geti(DT_I64, f, 1);
            for (int64_t i = 0; i < n; i++) dtype_seti(b->t, out, i, start + step * i);
        } else {
            double start = dtype_get(b->acc, f, 0), step = dtype_get(b->acc, f, 1);
            for (int64_t i = 0; i < n; i++)
                dtype_set(b->t, out, i, b->acc == DT_F32 ? (float)start + (float)step * (float)i : start + step * (double)i);
        }
        return;
    }
    bool integer = dtype_class(b->t) == DC_I, rounds = step_is_element(b, f);
    enum dtype st = rounds ? b->t : step_type(b->t), each = rounds ? b->t : DT_F64;
    double start = dtype_get(b->t, f + b->at[0], 0), end = dtype_get(b->t, f + b->at[1], 0);
    double base = b->what == LOGSPACE ? dtype_get(st, f + b->at[2], 0) : 0, step = dtype_get(st, f + b->at[4], 0);
    int64_t steps = dtype_geti(DT_I64, f + b->at[3], 0), half = dtype_geti(DT_I64, f + b->at[5], 0);
    for (int64_t i = 0; i < n; i++) {
        bool first = i < half;
        double way = dtype_round(each, step * dtype_round(each, (double)(first ? i : steps - i - 1)));
        double v = dtype_round(each, first ? start + way : end - way);
        if (b->what == LOGSPACE) v = pow(base, v);
        if (integer) dtype_seti(b->t, out, i, (int64_t)v);
        else dtype_set(b->t, out, i, v);
    }
}

/* <T> (T *out, i64 row offset, first row's elements, columns, elements of rows that grow, elements): rows and columns of a lower triangle, row by
   row; each row has one element more than the one before, until it has all columns */
static void lower_indices(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t n = A(int64_t, 5), r = 0, c = 0, width = A(int64_t, 2);
    for (int64_t i = 0; i < n; i++) {
        dtype_seti(k->t[0], A(void *, 0), i, r + A(int64_t, 1));
        dtype_seti(k->t[0], A(void *, 0), n + i, c);
        if (++c < width) continue;
        c = 0;
        r++;
        width = KERN_MIN(width + 1, A(int64_t, 3));
    }
}

/* <T> (T *out, i64 column offset, elements of the first row that is cut, columns, elements of whole rows, elements): so, of an upper triangle; each
   row that is cut has one element less than the one before */
static void upper_indices(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int64_t n = A(int64_t, 5), columns = A(int64_t, 3), whole = A(int64_t, 4), r = whole ? whole / columns : 0, c = 0, width = A(int64_t, 2), cut = 0;
    for (int64_t i = 0; i < n; i++) {
        dtype_seti(k->t[0], A(void *, 0), i, i < whole ? i / columns : r);
        dtype_seti(k->t[0], A(void *, 0), n + i, i < whole ? i % columns : A(int64_t, 1) + cut + c);
        if (i < whole || ++c < width) continue;
        c = 0;
        r++;
        cut++;
        width--;
    }
}

static void indices_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 20 * A(uint64_t, 5);
    *bytes = 2 * A(uint64_t, 5) * dtype_bytes(k->t[0]);
}

/* <T, Index, upper, per thread, in place> (info result, info<const T> self, i64 diagonal, i64 n, Index last dimension) */
static void triangle(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct tinfo out = tinfo_read(p[0], k->k->bytes[0]), in = tinfo_read(p[1], k->k->bytes[1]);
    int64_t diagonal = A(int64_t, 2), n = 1;
    size_t es = dtype_bytes(k->t[0]);
    bool upper = k->v[2] != 0, in_place = k->v[4] != 0;
    for (int d = 0; d < out.dims; d++) n *= out.size[d];
    int64_t cols = out.size[out.dims - 1], rows = out.size[out.dims - 2];
    for (int64_t i = 0; i < n; i++) {
        int64_t col = i % cols, row = i / cols % rows;
        bool keep = upper ? col - row >= diagonal : col - row <= diagonal;
        char *o = out.data + tinfo_offset(&out, i) * (int64_t)es;
        if (!keep) memset(o, 0, es);
        else if (!in_place || out.data != in.data) memcpy(o, in.data + tinfo_offset(&in, i) * (int64_t)es, es);
    }
}

const struct kern_row create_rows[] = {
    { "elementwise_kernel_with_index", "**p", run, NULL, bind },
    { "triu_tril_kernel", "**pp*", triangle, NULL, NULL },
    { "tril_indices_kernel", "pppppp", lower_indices, indices_cost, NULL },
    { "triu_indices_kernel", "pppppp", upper_indices, indices_cost, NULL },
    KERN_END
};
