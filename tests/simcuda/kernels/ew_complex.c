/*
 * Functors on complex numbers: made of parts or of length and angle, copied, filled, arithmetic, conjugates, absolute values. All compute
 * in double; a number is two of them.
 */
#include <complex.h>

#include "tests/simcuda/kernels/ew.h"

typedef double _Complex cx;

#define Z(k) (g->z[k][0] + g->z[k][1] * (cx)I)
#define CX_ONE(name, O, decl, ...)                                                                                    \
    static void name(const struct ew_args *g, void *const *out, void *const *in, int n)                               \
    {                                                                                                                 \
        typedef cx T;                                                                                                 \
        O *o = out[0];                                                                                                \
        (void)g, (void)in;                                                                                            \
        for (int k = 0; k < n; k++) { decl; o[k] = (O)(__VA_ARGS__); }                                                \
    }
#define CX(name, decl, ...) CX_ONE(name##_c, cx, decl, __VA_ARGS__)

CX(copy, EW_T1, a)
CX(fill, (void)sizeof(T), Z(0))
CX(neg, EW_T1, -a)
CX(conjugate, EW_T1, conj(a))
CX(neg_conj, EW_T1, -conj(a))
CX(recip, EW_T1, 1 / a)
CX(exp, EW_T1, cexp(a))
CX(log, EW_T1, clog(a))
CX(sqrt, EW_T1, csqrt(a))
CX(sin, EW_T1, csin(a))
CX(cos, EW_T1, ccos(a))
CX(add, EW_T2, a + Z(0) * b)
CX(add_self, EW_T1, a + Z(1) * Z(0))
CX(add_other, EW_T1, Z(0) + Z(1) * a)
CX(mul, EW_T2, a * b)
CX(div, EW_T2, a / b)
CX_ONE(abs_c, double, EW_T1, cabs(a))
CX_ONE(angle_c, cx, EW_T1, carg(a))
CX_ONE(eq_c, uint8_t, EW_T2, (g->si[0] != 0) ^ (a == b))
CX(where, EW_ARG(uint8_t, a, 0); EW_ARG(T, b, 1); EW_ARG(T, c, 2), a ? b : c)
CX(masked_fill, EW_T1; EW_ARG(uint8_t, b, 1), b ? Z(0) : a)

/* from two real numbers: parts, or length and angle */
#define PAIR(T, name, polar)                                                                                          \
    static void name(const struct ew_args *g, void *const *out, void *const *in, int n)                               \
    {                                                                                                                 \
        (void)g;                                                                                                      \
        for (int k = 0; k < n; k++) {                                                                                 \
            double a = ((const T *)in[0])[k], b = ((const T *)in[1])[k], *z = (double *)out[0] + 2 * k;                \
            z[0] = polar ? a * (cos)(b) : a;                                                                          \
            z[1] = polar ? a * (sin)(b) : b;                                                                          \
        }                                                                                                             \
    }
PAIR(float, polar_f, 1)
PAIR(double, polar_d, 1)
PAIR(float, complex_f, 0)
PAIR(double, complex_d, 0)

#define ROW_C(fn, types, caps, name) { fn, 0, 0, types, caps, NULL, NULL, NULL, name##_c }

const struct ew_row ew_complex_rows[] = {
    { "polar_kernel_cuda", 0, 0, "C=TT", "", polar_f, polar_d, NULL, NULL },
    { "complex_kernel_cuda", 0, 0, "C=TT", "", complex_f, complex_d, NULL, NULL },
    ROW_C("direct_copy_kernel_cuda", "T=T", "", copy),
    ROW_C("FillFunctor", "T=", "t", fill),
    ROW_C("AbsFunctor", "R=T", "", abs),
    ROW_C("angle_kernel_cuda", "T=T", "", angle),
    ROW_C("neg_kernel_cuda", "T=T", "", neg),
    ROW_C("conj_kernel_cuda", "T=T", "", conjugate),
    ROW_C("neg_conj_kernel_cuda", "T=T", "", neg_conj),
    ROW_C("reciprocal_kernel_cuda", "T=T", "", recip),
    ROW_C("exp_kernel_cuda", "T=T", "", exp),
    ROW_C("log_kernel_cuda", "T=T", "", log),
    ROW_C("sqrt_kernel_cuda", "T=T", "", sqrt),
    ROW_C("sin_kernel_cuda", "T=T", "", sin),
    ROW_C("cos_kernel_cuda", "T=T", "", cos),
    ROW_C("CUDAFunctor_add", "T=TT", "o", add),
    ROW_C("CUDAFunctorOnSelf_add", "T=T", "oo", add_self),
    ROW_C("CUDAFunctorOnOther_add", "T=T", "oo", add_other),
    ROW_C("MulFunctor", "T=TT", "", mul),
    ROW_C("DivFunctor", "T=TT", "", div),
    ROW_C("CompareEqFunctor", "B=TT", "i", eq),
    ROW_C("where_kernel_impl", "T=BTT", "", where),
    ROW_C("masked_fill_kernel", "T=TB", "t", masked_fill),
    EW_END
};
