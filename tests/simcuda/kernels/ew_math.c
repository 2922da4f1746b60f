/*
 * Functors of one argument: copies, fills, mathematical functions, tests. f16 and bf16 compute in float.
 */
#include "tests/simcuda/kernels/ew.h"

#include <stdbool.h>

EW_FD(copy, EW_T1, a)
EW_I(copy, EW_T1, a)
EW_FD(fill, (void)0, S(0))
EW_ONE(fill_i, int64_t, int64_t, (void)0, g->si[0])
EW_FD(absv, EW_T1, fabs(a))
EW_I(absv, EW_T1, a < 0 ? -a : a)
EW_FD(neg, EW_T1, -a)
EW_I(neg, EW_T1, (int64_t)(0 - (uint64_t)a))
EW_FD(sign, EW_T1, (T)((0 < a) - (a < 0)))
EW_I(sign, EW_T1, (0 < a) - (a < 0))
EW_FD_B(signbit_of, EW_T1, signbit(a) != 0)
EW_I_B(signbit_of, EW_T1, a < 0)
EW_FD_B(logical_not, EW_T1, a == 0)
EW_I_B(logical_not, EW_T1, a == 0)
EW_I(bitwise_not, EW_T1, g->t == DT_BOOL ? !a : ~a)
EW_FD_B(isneginf, EW_T1, a == (T)-INFINITY)
EW_FD_B(isposinf, EW_T1, a == (T)INFINITY)

EW_FD(acos, EW_T1, acos(a))
EW_FD(acosh, EW_T1, acosh(a))
EW_FD(asin, EW_T1, asin(a))
EW_FD(asinh, EW_T1, asinh(a))
EW_FD(atan, EW_T1, atan(a))
EW_FD(atanh, EW_T1, atanh(a))
EW_FD(cos, EW_T1, cos(a))
EW_FD(cosh, EW_T1, cosh(a))
EW_FD(sin, EW_T1, sin(a))
EW_FD(sinh, EW_T1, sinh(a))
EW_FD(tan, EW_T1, tan(a))
EW_FD(tanh, EW_T1, tanh(a))
EW_FD(erf, EW_T1, erf(a))
EW_FD(erfc, EW_T1, erfc(a))
EW_FD(exp, EW_T1, exp(a))
EW_FD(exp2, EW_T1, exp2(a))
EW_FD(expm1, EW_T1, expm1(a))
EW_FD(log, EW_T1, log(a))
EW_FD(log2, EW_T1, log2(a))
EW_FD(log10, EW_T1, log10(a))
EW_FD(log1p, EW_T1, log1p(a))
EW_FD(sqrt, EW_T1, sqrt(a))
EW_FD(rsqrt, EW_T1, 1 / sqrt(a))
EW_FD(recip, EW_T1, 1 / a)
EW_FD(lgamma, EW_T1, lgamma(a))
EW_FD(ceil, EW_T1, ceil(a))
EW_FD(floor, EW_T1, floor(a))
EW_FD(trunc, EW_T1, trunc(a))
EW_FD(rint, EW_T1, rint(a))
EW_FD(frac, EW_T1, a - trunc(a))
EW_FD(round_dec, EW_T1, g->s[1] ? rint(a / S(0)) * S(0) : rint(a * S(0)) / S(0))
EW_FD(angle, EW_T1, a != a ? a : a < 0 ? (T)3.14159265358979323846 : 0)
EW_FD(nan_num, EW_T1, a != a ? S(0) : a == (T)INFINITY ? S(1) : a == (T)-INFINITY ? S(2) : a)
EW_I(nan_num, EW_T1, a)

/* x -> lim: which bounds there are is field 0: 0 the lower, 1 the upper, 2 both. NaN stays. */
EW_FD(clamp, EW_T1,
      a != a ? a : g->si[0] == 0 ? (a < S(1) ? S(1) : a) : g->si[0] == 1 ? (a > S(1) ? S(1) : a)
      : (a < S(1) ? S(1) : a) > S(2) ? S(2) : a < S(1) ? S(1) : a)
EW_I(clamp, EW_T1, g->si[0] == 0 ? KERN_MAX(a, g->si[1]) : g->si[0] == 1 ? KERN_MIN(a, g->si[1])
                   : KERN_MIN(KERN_MAX(a, g->si[1]), g->si[2]))
EW_FD(clamp2, EW_T1, a != a ? a : fmin(fmax(a, S(0)), S(1)))
EW_I(clamp2, EW_T1, KERN_MIN(KERN_MAX(a, g->si[0]), g->si[1]))

/* Powers: the first three ordinals are the exponents 2, 3 and -2. */
EW_FD(pow2, EW_T1, a * a)
EW_I(pow2, EW_T1, (int64_t)((uint64_t)a * (uint64_t)a))
EW_FD(pow3, EW_T1, a * a * a)
EW_I(pow3, EW_T1, (int64_t)((uint64_t)a * (uint64_t)a * (uint64_t)a))
EW_FD(powm2, EW_T1, 1 / (a * a))
EW_I(powm2, EW_T1, a == 1 || a == -1)
EW_FD(pows, EW_T1, pow(a, S(0)))
EW_FD(spow, EW_T1, pow(S(0), a))

static int64_t ipow(int64_t base, int64_t e)
{
    if (e < 0) return base == 1 ? 1 : base == -1 ? (e & 1 ? -1 : 1) : 0;
    uint64_t r = 1, b = (uint64_t)base;
    for (; e; e >>= 1, b *= b)
        if (e & 1) r *= b;
    return (int64_t)r;
}
EW_I(pows, EW_T1, ipow(a, g->si[0]))
EW_I(spow, EW_T1, ipow(g->si[0], a))
EW_I(pow_int, EW_T2, ipow(a, b))
EW_FD(pow_two, EW_T2, pow(a, b))

/* x against a number: field 0 says how (>=, >, <=, <). */
EW_FD_B(cmp_scalar, EW_T1, g->si[0] == 0 ? a >= S(1) : g->si[0] == 1 ? a > S(1) : g->si[0] == 2 ? a <= S(1) : a < S(1))
EW_I_B(cmp_scalar, EW_T1,
       g->si[0] == 0 ? a >= g->si[1] : g->si[0] == 1 ? a > g->si[1] : g->si[0] == 2 ? a <= g->si[1] : a < g->si[1])

/* floor(a / S(0)) where S(1) is 1 / S(0), with Python's sign of the remainder. */
#define FLOOR_DIV(T, name, fmod_, floor_, copysign_)                                                                  \
    static T name(T a, T b, T quotient)                                                                               \
    {                                                                                                                 \
        if (b == 0) return a / b;                                                                                     \
        T mod = fmod_(a, b), div = (a - mod) / b;                                                                     \
        if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;                                                               \
        if (div == 0) return copysign_(0, quotient);                                                                  \
        T fl = floor_(div);                                                                                           \
        return div - fl > (T)0.5 ? fl + 1 : fl;                                                                       \
    }
FLOOR_DIV(float, floor_div_f, fmodf, floorf, copysignf)
FLOOR_DIV(double, floor_div_d, fmod, floor, copysign)
#define floor_div(a, b) _Generic((a), float: floor_div_f, double: floor_div_d)(a, b, a / b)

EW_FD(divfloor_s, EW_T1, floor_div((T)a, S(0)))
EW_FD(divtrunc_s, EW_T1, trunc(a * S(0)))
EW_FD(renorm, EW_T1, a > S(0) ? S(0) / (a + (T)1e-7) : 1)
EW_FD(invstd, EW_T1, 1 / sqrt(a + S(0)))

/* logit, with the argument first brought into [eps, 1 - eps] */
EW_FD(logit, EW_T1, log(a / (1 - a)))
EW_FD(logit_eps, EW_T1, log((a < S(0) ? S(0) : a > S(1) ? S(1) : a) / (1 - (a < S(0) ? S(0) : a > S(1) ? S(1) : a))))

/* Mantissa and exponent. */
#define FREXP(T, name)                                                                                                \
    EW_HEAD(name)                                                                                                     \
    {                                                                                                                 \
        (void)g;                                                                                                      \
        for (int k = 0; k < n; k++) {                                                                                 \
            int e;                                                                                                    \
            ((T *)out[0])[k] = (T)frexp(((const T *)in[0])[k], &e);                                                   \
            ((int64_t *)out[1])[k] = e;                                                                               \
        }                                                                                                             \
    }
FREXP(float, frexp_f)
FREXP(double, frexp_d)

const struct ew_row ew_math_rows[] = {
    ROW_FDI("direct_copy_kernel_cuda", 3, 0, "T=T", "", copy),
    { "converting_copy_kernel_cuda", 0, 0, "1=T", "", copy_f, copy_d, copy_i, NULL },
    { "float16_copy_kernel_cuda", 0, 0, "h=T", "", copy_f, NULL, NULL, NULL }, /* these two are what PyTorch 2.11 has for it */
    { "bfloat16_copy_kernel_cuda", 0, 0, "b=T", "", copy_f, NULL, NULL, NULL },
    ROW_FDI("FillFunctor", 0, 0, "T=", "t", fill),
    ROW_FDI("AbsFunctor", 0, 0, "T=T", "", absv),
    ROW_FDI("neg_kernel_cuda", 2, 0, "T=T", "", neg),
    ROW_FDI("sign_kernel_cuda", 0, 0, "T=T", "", sign),
    ROW_FDI("signbit_kernel_cuda", 0, 0, "B=T", "", signbit_of),
    ROW_FDI("logical_not_kernel_cuda", 2, 0, "B=T", "", logical_not),
    { "bitwise_not_kernel_cuda", 0, 0, "T=T", "", NULL, NULL, bitwise_not_i, NULL },
    ROW_FD("isneginf_kernel_impl", 0, 0, "B=T", "", isneginf),
    ROW_FD("isposinf_kernel_impl", 0, 0, "B=T", "", isposinf),
    ROW_FD("acos_kernel_cuda", 2, 0, "T=T", "", acos),
    ROW_FD("acosh_kernel_cuda", 2, 0, "T=T", "", acosh),
    ROW_FD("asin_kernel_cuda", 2, 0, "T=T", "", asin),
    ROW_FD("asinh_kernel_cuda", 2, 0, "T=T", "", asinh),
    ROW_FD("atan_kernel_cuda", 2, 0, "T=T", "", atan),
    ROW_FD("atanh_kernel_cuda", 2, 0, "T=T", "", atanh),
    ROW_FD("cos_kernel_cuda", 2, 0, "T=T", "", cos),
    ROW_FD("cosh_kernel_cuda", 2, 0, "T=T", "", cosh),
    ROW_FD("sin_kernel_cuda", 2, 0, "T=T", "", sin),
    ROW_FD("sinh_kernel_cuda", 2, 0, "T=T", "", sinh),
    ROW_FD("tan_kernel_cuda", 2, 0, "T=T", "", tan),
    ROW_FD("tanh_kernel_cuda", 2, 0, "T=T", "", tanh),
    ROW_FD("erf_kernel_cuda", 0, 0, "T=T", "", erf),
    ROW_FD("erfc_kernel_cuda", 0, 0, "T=T", "", erfc),
    ROW_FD("exp_kernel_cuda", 2, 0, "T=T", "", exp),
    ROW_FD("exp2_kernel_cuda", 0, 0, "T=T", "", exp2),
    ROW_FD("expm1_kernel_cuda", 0, 0, "T=T", "", expm1),
    ROW_FD("log_kernel_cuda", 2, 0, "T=T", "", log),
    ROW_FD("log2_kernel_cuda", 2, 0, "T=T", "", log2),
    ROW_FD("log10_kernel_cuda", 2, 0, "T=T", "", log10),
    ROW_FD("log1p_kernel_cuda", 0, 0, "T=T", "", log1p),
    ROW_FD("sqrt_kernel_cuda", 2, 0, "T=T", "", sqrt),
    ROW_FD("rsqrt_kernel_cuda", 2, 0, "T=T", "", rsqrt),
    ROW_FD("reciprocal_kernel_cuda", 0, 0, "T=T", "", recip),
    ROW_FD("lgamma_kernel_cuda", 0, 0, "T=T", "", lgamma),
    ROW_FD("ceil_kernel_cuda", 0, 0, "T=T", "", ceil),
    ROW_FD("floor_kernel_cuda", 0, 0, "T=T", "", floor),
    ROW_FD("trunc_kernel_cuda", 0, 0, "T=T", "", trunc),
    ROW_FD("round_kernel_cuda", 0, 0, "T=T", "", rint),
    ROW_FD("frac_kernel_cuda", 0, 0, "T=T", "", frac),
    ROW_FD("round_decimals_kernel_cuda", 0, 0, "T=T", "tb", round_dec),
    ROW_FD("angle_kernel_cuda", 2, 0, "T=T", "", angle),
    ROW_FDI("nan_to_num_kernel_cuda", 2, 0, "T=T", "ttt", nan_num),
    ROW_FDI("launch_clamp_scalar", 0, 0, "T=T", "ioo", clamp),
    ROW_FDI("clamp_kernel_cuda", 0, 0, "T=T", "tt", clamp2),
    ROW_FDI("pow_tensor_scalar_kernel_impl", 0, 1, "T=T", "", pow2),
    ROW_FDI("pow_tensor_scalar_kernel_impl", 0, 2, "T=T", "", pow3),
    ROW_FDI("pow_tensor_scalar_kernel_impl", 0, 3, "T=T", "", powm2),
    ROW_FDI("pow_tensor_scalar_kernel_impl", 0, 4, "T=T", "t", pows),
    ROW_FDI("pow_scalar_tensor_impl", 0, 0, "T=T", "t", spow),
    { "pow_tensor_tensor_kernel", 0, 0, "T=TT", "", pow_two_f, pow_two_d, pow_int_i, NULL },
    ROW_FDI("compare_scalar_kernel", 0, 0, "B=T", "it", cmp_scalar),
    ROW_FD("div_floor_kernel_cuda", 2, 0, "T=T", "oo", divfloor_s),
    ROW_FD("div_trunc_kernel_cuda", 2, 0, "T=T", "o", divtrunc_s),
    ROW_FD("renorm_scale_factor_impl", 0, 0, "T=T", "o", renorm),
    ROW_FD("batch_norm_calc_invstd", 0, 0, "A=T", "o", invstd),
    ROW_FD("logit_kernel_cuda", 0, 1, "T=T", "", logit),
    ROW_FD("logit_kernel_cuda", 0, 2, "T=T", "oo", logit_eps),
    { "frexp_kernel_cuda", 0, 0, "Ti=T", "", frexp_f, frexp_d, NULL, NULL },
    EW_END
};
