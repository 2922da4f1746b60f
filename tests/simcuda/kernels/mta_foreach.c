/*
 * The _foreach_ operators: multi_tensor_apply_kernel<Metadata, Functor<T, depth, inputs, result>, Op, ...>. Op names an
 * elementwise function, whose loop is that of the elementwise kernels; the functor says where its arguments come from.
 */
#include <string.h>

#include "tests/simcuda/kernels/ew.h"
#include "tests/simcuda/kernels/mta.h"

#define BLOCK 512

/* Where the operands of an element come from: a letter each, in the order of the loop's arguments.
   0 1 2: the lists; s: the scalar; 1 also for a 0-d tensor when zero_d is set. alpha: the scalar is field 0 of the loop. */
struct functor {
    const char *name, *operands;
    bool alpha, zero_d;
    int scalar_param;           /* the parameter with the scalar; -1: scalar list or none; -2: pointer and factor */
};
static const struct functor functors[] = {
    { "UnaryOpFunctor", "0", false, false, -1 },
    { "CopyFunctor", "0", false, false, -1 },
    { "ZeroFunctor", "", false, false, -1 },
    { "BinaryOpScalarFunctor", "0s", false, false, 3 },
    { "BinaryOpScalarListFunctor", "0s", false, false, -1 },
    { "BinaryOpScalarTensorFunctor", "0s", false, false, -2 },
    { "BinaryOpListAlphaFunctor", "01", true, false, 3 },
    { "PointwiseOpScalarFunctor", "012", true, false, 3 },
    { "PointwiseOpScalarListFunctor", "012", true, false, -1 },
    { "PointwiseOpScalar0dTensorFunctor", "012", true, true, 3 },
    { "TernaryOpListFunctor", "012", false, false, -1 },
    { "TernaryOpScalarFunctor", "01s", false, false, 3 },
    { "TernaryOpScalarListFunctor", "01s", false, false, -1 },
};

/* The loop of an Op, by the number of its operands. */
static const struct { const char *op; int n_in; const char *fn; } ops[] = {
    { "plus", 2, "CUDAFunctor_add" }, { "minus", 2, "CUDAFunctor_add" }, { "multiplies", 2, "MulFunctor" },
    { "divides", 2, "DivFunctor" }, { "maximum", 2, "maximum_kernel_cuda" }, { "minimum", 2, "minimum_kernel_cuda" },
    { "power_functor", 2, "pow_tensor_tensor_kernel" }, { "reverse_power_functor", 2, "pow_tensor_tensor_kernel" },
    { "multiplies", 3, "addcmul_cuda_kernel" }, { "divides", 3, "addcdiv_cuda_kernel" }, { "LerpFunctor", 3, "lerp_tensor_kernel" },
    { "Abs", 1, "AbsFunctor" }, { "Acos", 1, "acos_kernel_cuda" }, { "Asin", 1, "asin_kernel_cuda" },
    { "Atan", 1, "atan_kernel_cuda" }, { "Ceil", 1, "ceil_kernel_cuda" }, { "Cos", 1, "cos_kernel_cuda" },
    { "Cosh", 1, "cosh_kernel_cuda" }, { "Erf", 1, "erf_kernel_cuda" }, { "Erfc", 1, "erfc_kernel_cuda" },
    { "Exp", 1, "exp_kernel_cuda" }, { "Expm1", 1, "expm1_kernel_cuda" }, { "Floor", 1, "floor_kernel_cuda" },
    { "Lgamma", 1, "lgamma_kernel_cuda" }, { "Log", 1, "log_kernel_cuda" }, { "Log10", 1, "log10_kernel_cuda" },
    { "Log1p", 1, "log1p_kernel_cuda" }, { "Log2", 1, "log2_kernel_cuda" }, { "negate", 1, "neg_kernel_cuda" },
    { "Reciprocal", 1, "reciprocal_kernel_cuda" }, { "Round", 1, "round_kernel_cuda" }, { "Rsqrt", 1, "rsqrt_kernel_cuda" },
    { "Sigmoid", 1, "sigmoid_kernel_cuda" }, { "Sign", 1, "sign_kernel_cuda" }, { "Sin", 1, "sin_kernel_cuda" },
    { "Sinh", 1, "sinh_kernel_cuda" }, { "Sqrt", 1, "sqrt_kernel_cuda" }, { "Tan", 1, "tan_kernel_cuda" },
    { "Tanh", 1, "tanh_kernel_cuda" }, { "Trunc", 1, "trunc_kernel_cuda" }, { "Copy", 1, "direct_copy_kernel_cuda" },
    { "_amp_foreach_non_finite_check_and_unscale_cuda_", 1, "_amp_non_finite_check_and_unscale_cuda_" },
};

struct bound {
    struct mta_layout m;
    const struct functor *f;
    ew_fn *fn;
    enum dtype dst, src;
    enum dclass c;
    int result;                 /* the list that is written */
    double sign;                /* of alpha, -1 for differences */
    bool reversed, captures;
};

static int find_loop(struct bound *b, const char *op)
{
    struct kfunctor f;
    if (kname_functor(op, &f)) return -ENOSYS;
    int n_in = (int)strlen(b->f->operands);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(ops[i].op, f.fn) || ops[i].n_in != n_in) continue;
        const struct ew_row *r = ew_find(ops[i].fn, 0, 0, n_in);
        if (!r) return -ENOSYS;
        b->fn = b->c == DC_F ? r->f : b->c == DC_D ? r->d : r->i;
        b->sign = !strcmp(f.fn, "minus") ? -1 : 1;
        b->reversed = !strcmp(f.fn, "reverse_power_functor");
        b->captures = f.is_lambda;
        return b->fn ? 0 : -ENOSYS;
    }
    return -ENOSYS;
}

static int bind(struct kern *k)
{
    struct mta_layout m;
    int e = mta_layout(k, &m);
    if (e) return e;
    struct kfunctor f;
    if (kname_functor(k->name.arg[1], &f)) return -ENOSYS;
    for (size_t i = 0; i < sizeof functors / sizeof *functors; i++) {
        if (strcmp(functors[i].name, f.fn)) continue;
        struct bound *b = calloc(1, sizeof *b);
        if (!b) return -ENOMEM;
        b->m = m;
        b->f = &functors[i];
        bool copy = !strcmp(f.fn, "CopyFunctor");
        long result = 0;
        b->dst = b->src = f.n_targs ? dtype_parse(f.targ[0]) : DT_NONE;
        if (copy) b->src = dtype_parse(f.targ[1]);
        if (f.n_targs > 3) kname_number(f.targ[f.n_targs - 1], &result);
        b->result = (int)result;
        b->c = dtype_class(b->src);
        if (copy && dtype_class(b->dst) == DC_D) b->c = DC_D;
        if (b->c == DC_NONE || dtype_class(b->dst) == DC_NONE) e = -ENOSYS;
        else if (b->f->operands[0]) e = k->name.n_args > 2 ? find_loop(b, k->name.arg[2]) : -ENOSYS;
        if (e) free(b);
        else k->priv = b;
        return e;
    }
    return -ENOSYS;
}

static void run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const struct bound *b = k->priv;
    uint64_t cell[4][BLOCK];
    size_t bytes[MTA_MAX_DEPTH], es = dtype_bytes(b->src);
    for (int d = 0; d < MTA_MAX_DEPTH; d++) bytes[d] = d == b->result ? dtype_bytes(b->dst) : es;
    enum dtype compute = b->src == DT_F16 || b->src == DT_BF16 ? DT_F32 : b->src;
    struct ew_args g = { .t = b->src };
    double s = 0;
    int64_t si = 0;
    if (b->f->scalar_param >= 0) {
        s = dtype_get(compute, p[b->f->scalar_param], 0);
        si = dtype_geti(compute, p[b->f->scalar_param], 0);
    } else if (b->f->scalar_param == -2) {
        double a = dtype_get(compute, p[4], 0);
        s = a * dtype_get(b->src, A(const void *, 3), 0);
        si = dtype_geti(compute, p[4], 0) * dtype_geti(b->src, A(const void *, 3), 0);
        if (b->c == DC_F) s = (float)s;
    }
    if (b->captures) memcpy(g.si, p[2], 16);
    for (unsigned bl = 0; bl < l->grid.x; bl++) {
        struct mta_chunk ch = mta_chunk(&b->m, p[0], bl, bytes);
        if (!b->f->operands[0]) {
            memset(ch.addr[0], 0, es * (size_t)ch.n);
            continue;
        }
        if (b->m.kind == MTA_SCALAR_LIST) {
            s = mta_scalar(&b->m, p[0], ch.tensor);
            si = mta_scalar_i(&b->m, p[0], ch.tensor);
        }
        if (b->f->alpha) {
            g.s[0] = s * b->sign;
            g.si[0] = si * (int64_t)b->sign;
        } else if (!b->captures) {
            g.s[0] = b->sign;
            g.si[0] = (int64_t)b->sign;
        }
        for (int64_t at = 0; at < ch.n; at += BLOCK) {
            size_t n = (size_t)KERN_MIN((int64_t)BLOCK, ch.n - at);
            void *in[3], *out;
            int n_in = (int)strlen(b->f->operands);
            for (int i = 0; i < n_in; i++) {
                char c = b->f->operands[i];
                in[i] = cell[i];
                if (c == 's') {
                    if (b->c == DC_I) dtype_load(DT_I64, DC_I, in[i], &si, 0, n);
                    else dtype_load(DT_F64, b->c, in[i], &s, 0, n);
                } else if (c == '1' && b->f->zero_d)
                    dtype_load(b->src, b->c, in[i], mta_address(&b->m, p[0], 1, ch.tensor), 0, n);
                else dtype_load(b->src, b->c, in[i], ch.addr[c - '0'] + (size_t)at * es, (ptrdiff_t)es, n);
            }
            if (b->reversed) {
                void *t = in[0];
                in[0] = in[1];
                in[1] = t;
            }
            out = cell[3];
            b->fn(&g, &out, in, (int)n);
            size_t ds = dtype_bytes(b->dst);
            dtype_store(b->dst, b->c, out, ch.addr[b->result] + (size_t)at * ds, (ptrdiff_t)ds, n);
        }
    }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    const struct bound *b = k->priv;
    uint64_t n = mta_elements(&b->m, p[0], l->grid.x);
    *flops = 2 * n;
    *bytes = n * dtype_bytes(b->src) * (uint64_t)(b->m.depth + (b->result < b->m.depth - 1 || b->m.depth == 1));
}

const struct kern_row mta_foreach_rows[] = {
    { "multi_tensor_apply_kernel", NULL, run, cost, bind },
    KERN_END
};
