/*
 * Functors of two and three arguments: arithmetic, comparison, logic, selection. f16 and bf16 compute in float.
 */
#include "tests/simcuda/kernels/ew.h"

EW_FD(add, EW_T2, a + S(0) * b)
EW_I(add, EW_T2, (int64_t)((uint64_t)a + (uint64_t)g->si[0] * (uint64_t)b))
EW_FD(add_self, EW_T1, a + S(1) * S(0))
EW_I(add_self, EW_T1, (int64_t)((uint64_t)a + (uint64_t)g->si[1] * (uint64_t)g->si[0]))
EW_FD(add_other, EW_T1, S(0) + S(1) * a)
EW_I(add_other, EW_T1, (int64_t)((uint64_t)g->si[0] + (uint64_t)g->si[1] * (uint64_t)a))
EW_FD(mul, EW_T2, a * b)
EW_I(mul, EW_T2, (int64_t)((uint64_t)a * (uint64_t)b))
EW_FD(div, EW_T2, a / b)
EW_FD_B(eq, EW_T2, (g->si[0] != 0) ^ (a == b))
EW_I_B(eq, EW_T2, (g->si[0] != 0) ^ (a == b))
EW_FD_B(cmp, EW_T2, g->si[0] == 0 ? a >= b : g->si[0] == 1 ? a > b : g->si[0] == 2 ? a <= b : a < b)
EW_I_B(cmp, EW_T2, g->si[0] == 0 ? a >= b : g->si[0] == 1 ? a > b : g->si[0] == 2 ? a <= b : a < b)
EW_I(bit_and, EW_T2, a & b)
EW_I(bit_or, EW_T2, a | b)
EW_I(bit_xor, EW_T2, a ^ b)
EW_FD_B(l_and, EW_T2, a != 0 && b != 0)
EW_I_B(l_and, EW_T2, a != 0 && b != 0)
EW_FD_B(l_or, EW_T2, a != 0 || b != 0)
EW_I_B(l_or, EW_T2, a != 0 || b != 0)
EW_FD_B(l_xor, EW_T2, (a != 0) != (b != 0))
EW_I_B(l_xor, EW_T2, (a != 0) != (b != 0))
EW_FD(maximum, EW_T2, a != a ? a : b != b ? b : a > b ? a : b)
EW_I(maximum, EW_T2, a > b ? a : b)
EW_FD(minimum, EW_T2, a != a ? a : b != b ? b : a < b ? a : b)
EW_I(minimum, EW_T2, a < b ? a : b)
EW_FD(fmaxv, EW_T2, fmax(a, b))
EW_FD(fminv, EW_T2, fmin(a, b))
EW_FD(atan2v, EW_T2, atan2(a, b))
EW_FD(hypotv, EW_T2, hypot(a, b))
EW_FD(copysignv, EW_T2, copysign(a, b))
EW_FD(nextafterv, EW_T2, nextafter(a, b))
EW_FD(heaviside, EW_T2, a == 0 ? b : (T)(a > 0))
EW_I(heaviside, EW_T2, a == 0 ? b : a > 0)
EW_FD(fmodv, EW_T2, fmod(a, b))
EW_I(fmodv, EW_T2, b == 0 ? -1 : b == -1 ? 0 : a % b)
EW_FD(div_trunc, EW_T2, trunc(a / b))
EW_I(div_trunc, EW_T2, b == 0 ? -1 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b)
EW_FD(xlogy, EW_T2, b != b ? (T)NAN : a == 0 ? 0 : a * log(b))
EW_FD(xlog1py, EW_T2, b != b ? (T)NAN : a == 0 ? 0 : a * log1p(b))
EW_I(lshift, EW_T2, b < 0 || b >= 64 ? 0 : (int64_t)((uint64_t)a << b))
EW_I(rshift, EW_T2, a >> (b < 0 || b > 63 ? 63 : b))

/* The remainder has the sign of the divisor. */
EW_FD(remainderv, EW_T2, fmod(a, b) != 0 && (fmod(a, b) < 0) != (b < 0) ? fmod(a, b) + b : fmod(a, b))

static int64_t int_remainder(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
EW_I(remainderv, EW_T2, int_remainder(a, b))

static int64_t int_floor_div(int64_t a, int64_t b)
{
    if (b == 0) return -1;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
EW_I(div_floor, EW_T2, int_floor_div(a, b))

#define FLOOR_DIV(T, name, fmod_, floor_, copysign_)                                                                  \
    static T name(T a, T b)                                                                                           \
    {                                                                                                                 \
        if (b == 0) return a / b;                                                                                     \
        T mod = fmod_(a, b), div = (a - mod) / b;                                                                     \
        if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;                                                               \
        if (div == 0) return copysign_(0, a / b);                                                                     \
        T fl = floor_(div);                                                                                           \
        return div - fl > (T)0.5 ? fl + 1 : fl;                                                                       \
    }
FLOOR_DIV(float, floor_div_f, fmodf, floorf, copysignf)
FLOOR_DIV(double, floor_div_d, fmod, floor, copysign)
EW_ONE(div_floor_f, float, float, EW_T2, floor_div_f(a, b))
EW_ONE(div_floor_d, double, double, EW_T2, floor_div_d(a, b))

EW_FD(ldexpv, EW_T1; EW_ARG(int64_t, b, 1), ldexp(a, (int)b))
EW_FD(logaddexp, EW_T2, isinf(a) && a == b ? a : fmax(a, b) + log1p(exp(-fabs(a - b))))
EW_FD(logaddexp2, EW_T2, isinf(a) && a == b ? a : fmax(a, b) + log1p(exp2(-fabs(a - b))) * S(0))
/* lerp keeps both ends exact: from the nearer one */
EW_FD(lerp_s, EW_T2, fabs(S(0)) < (T)0.5 ? a + S(0) * (b - a) : b - (b - a) * (1 - S(0)))
EW_FD(lerp_t, EW_T3, fabs(c) < (T)0.5 ? a + c * (b - a) : b - (b - a) * (1 - c))

EW_FD(addcmul, EW_T3, a + S(0) * (b * c))
EW_I(addcmul, EW_T3, (int64_t)((uint64_t)a + (uint64_t)g->si[0] * (uint64_t)b * (uint64_t)c))
EW_FD(addcmul_s, EW_T2, a + S(0) * (b * S(1)))
EW_I(addcmul_s, EW_T2, (int64_t)((uint64_t)a + (uint64_t)g->si[0] * (uint64_t)b * (uint64_t)g->si[1]))
EW_FD(addcdiv, EW_T3, a + S(0) * (b / c))
EW_I(addcdiv, EW_T3, a + g->si[0] * (c ? b / c : 0))
EW_FD(addr1, EW_T3, (void)a, S(0) * b * c)
EW_I(addr1, EW_T3, (void)a, g->si[0] * b * c)
EW_FD(addr2, EW_T3, S(0) * a + S(1) * b * c)
EW_I(addr2, EW_T3, g->si[0] * a + g->si[1] * b * c)
EW_FD(clamp3, EW_T3, a != a ? a : b != b ? b : c != c ? c : fmin(fmax(a, b), c))
EW_I(clamp3, EW_T3, KERN_MIN(KERN_MAX(a, b), c))

#define EW_MASK1 EW_T1; EW_ARG(uint8_t, b, 1)
EW_FD(masked_fill, EW_MASK1, b ? S(0) : a)
EW_I(masked_fill, EW_MASK1, b ? g->si[0] : a)
EW_FD(masked_scale, EW_MASK1, a * (T)b * S(0))
#define EW_WHERE EW_ARG(uint8_t, a, 0); EW_ARG(T, b, 1); EW_ARG(T, c, 2)
EW_FD(where, EW_WHERE, a ? b : c)
EW_I(where, EW_WHERE, a ? b : c)

const struct ew_row ew_binary_rows[] = {
    ROW_FDI("CUDAFunctor_add", 0, 0, "T=TT", "o", add),
    ROW_FDI("CUDAFunctorOnSelf_add", 0, 0, "T=T", "oo", add_self),
    ROW_FDI("CUDAFunctorOnOther_add", 0, 0, "T=T", "oo", add_other),
    ROW_FDI("MulFunctor", 0, 0, "T=TT", "", mul),
    ROW_FD("DivFunctor", 0, 0, "T=TT", "", div),
    ROW_FDI("CompareEqFunctor", 0, 0, "B=TT", "i", eq),
    ROW_FDI("CompareFunctor", 0, 0, "B=TT", "i", cmp),
    ROW_I("BitwiseAndFunctor", 0, 0, "T=TT", "", bit_and),
    ROW_I("BitwiseOrFunctor", 0, 0, "T=TT", "", bit_or),
    ROW_I("BitwiseXorFunctor", 0, 0, "T=TT", "", bit_xor),
    ROW_FDI("logical_and_kernel_cuda", 2, 0, "B=TT", "", l_and),
    ROW_FDI("logical_or_kernel_cuda", 2, 0, "B=TT", "", l_or),
    ROW_FDI("logical_xor_kernel_cuda", 2, 0, "B=TT", "", l_xor),
    ROW_FDI("maximum_kernel_cuda", 0, 0, "T=TT", "", maximum),
    ROW_FDI("minimum_kernel_cuda", 0, 0, "T=TT", "", minimum),
    ROW_FD("fmax_kernel_cuda", 0, 0, "T=TT", "", fmaxv),
    ROW_FD("fmin_kernel_cuda", 0, 0, "T=TT", "", fminv),
    ROW_FD("atan2_kernel_cuda", 0, 0, "T=TT", "", atan2v),
    ROW_FD("hypot_kernel_cuda", 0, 0, "T=TT", "", hypotv),
    ROW_FD("copysign_kernel_cuda", 0, 0, "T=TT", "", copysignv),
    ROW_FD("nextafter_kernel_cuda", 0, 0, "T=TT", "", nextafterv),
    ROW_FDI("heaviside_kernel_cuda", 0, 0, "T=TT", "", heaviside),
    ROW_FDI("fmod_kernel_cuda", 0, 0, "T=TT", "", fmodv),
    ROW_FDI("remainder_kernel_cuda", 0, 0, "T=TT", "", remainderv),
    ROW_FDI("div_trunc_kernel_cuda", 0, 0, "T=TT", "", div_trunc),
    ROW_FDI("div_floor_kernel_cuda", 0, 0, "T=TT", "", div_floor),
    ROW_FD("xlogy_kernel_cuda", 0, 0, "T=TT", "", xlogy),
    ROW_FD("xlog1py_kernel_cuda", 0, 0, "T=TT", "", xlog1py),
    ROW_I("lshift_kernel_cuda", 0, 0, "T=TT", "", lshift),
    ROW_I("rshift_kernel_cuda", 0, 0, "T=TT", "", rshift),
    ROW_FD("ldexp_kernel_cuda", 0, 0, "T=Ti", "", ldexpv),
    ROW_FD("logaddexp_kernel_cuda", 2, 0, "T=TT", "", logaddexp),
    ROW_FD("logaddexp2_kernel_cuda", 0, 0, "T=TT", "o", logaddexp2),
    ROW_FD("lerp_scalar_kernel", 2, 0, "T=TT", "o", lerp_s),
    ROW_FD("lerp_tensor_kernel", 2, 0, "T=TTT", "", lerp_t),
    ROW_FDI("addcmul_cuda_kernel", 2, 0, "T=TTT", "o", addcmul),
    ROW_FDI("addcmul_cuda_scalar_tensor2_kernel", 2, 0, "T=TT", "oo", addcmul_s),
    ROW_FDI("addcdiv_cuda_kernel", 2, 0, "T=TTT", "o", addcdiv),
    ROW_FDI("addr_kernel_cuda", 0, 1, "T=TTT", "t", addr1),
    ROW_FDI("addr_kernel_cuda", 0, 2, "T=TTT", "tt", addr2),
    ROW_FDI("clamp_kernel_impl", 0, 0, "T=TTT", "", clamp3),
    ROW_FDI("masked_fill_kernel", 0, 0, "T=TB", "t", masked_fill),
    ROW_FD("masked_scale_kernel", 0, 0, "T=TB", "o", masked_scale),
    ROW_FDI("where_kernel_impl", 0, 0, "T=BTT", "", where),
    EW_END
};
