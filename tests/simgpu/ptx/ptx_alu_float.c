/*
 * f32 and f64. The direction of rounding is the processor's, which the executor sets; flushing of subnormal numbers and saturation are the
 * executor's too. A NaN that is computed is 0x7fffffff, as devices give it, one of 64 bits 0x7ff8000000000000. Approximate functions are those
 * of the C library, closer than the ISA asks.
 */
#include <math.h>

#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_rows.h"

#define C canonical
ALU2(add_f32, float, float, float, C(a + b))
ALU2(sub_f32, float, float, float, C(a - b))
ALU2(mul_f32, float, float, float, C(a * b))
ALU2(div_f32, float, float, float, C(a / b))
ALU3(fma_f32, float, float, float, float, C(__builtin_fmaf(a, b, c)))
ALU1(rcp_f32, float, float, C(1.0f / a))
ALU1(sqrt_f32, float, float, C(__builtin_sqrtf(a)))
ALU1(neg_f32, uint32_t, uint32_t, a ^ 0x80000000u)
ALU1(abs_f32, uint32_t, uint32_t, a & 0x7fffffffu)
ALU2(copysign_f32, uint32_t, uint32_t, uint32_t, (b & 0x7fffffffu) | (a & 0x80000000u))

#define C64 canonical_f64
ALU2(add_f64, double, double, double, C64(a + b))
ALU2(sub_f64, double, double, double, C64(a - b))
ALU2(mul_f64, double, double, double, C64(a * b))
ALU2(div_f64, double, double, double, C64(a / b))
ALU3(fma_f64, double, double, double, double, C64(__builtin_fma(a, b, c)))
ALU1(rcp_f64, double, double, C64(1.0 / a))
ALU1(sqrt_f64, double, double, C64(__builtin_sqrt(a)))
ALU1(neg_f64, uint64_t, uint64_t, a ^ 1ull << 63)
ALU1(abs_f64, uint64_t, uint64_t, a & ~(1ull << 63))
ALU2(copysign_f64, uint64_t, uint64_t, uint64_t, (b & ~(1ull << 63)) | (a & 1ull << 63))

/* Equal numbers differ in nothing but the sign of zeros: or gives the lesser, and the greater. */
static inline float least(float a, float b) { return a < b ? a : b < a ? b : f32_bits(bits_f32(a) | bits_f32(b)); }
static inline float most(float a, float b) { return a > b ? a : b > a ? b : f32_bits(bits_f32(a) & bits_f32(b)); }
static inline float one_of(float chosen, float a, float b) { return C(a != a ? b : b != b ? a : chosen); }
static inline float both(float chosen, float a, float b) { return a != a || b != b ? f32_bits(NAN_F32) : chosen; }
ALU2(min_f32, float, float, float, one_of(least(a, b), a, b))
ALU2(max_f32, float, float, float, one_of(most(a, b), a, b))
ALU2(min_nan_f32, float, float, float, both(least(a, b), a, b))
ALU2(max_nan_f32, float, float, float, both(most(a, b), a, b))
#define MAGNITUDE(x) f32_bits(bits_f32(x) & 0x7fffffffu)
static inline double least_f64(double a, double b) { return a < b ? a : b < a ? b : f64_bits(bits_f64(a) | bits_f64(b)); }
static inline double most_f64(double a, double b) { return a > b ? a : b > a ? b : f64_bits(bits_f64(a) & bits_f64(b)); }
ALU2(min_f64, double, double, double, a != a ? b : b != b ? a : least_f64(a, b))
ALU2(max_f64, double, double, double, a != a ? b : b != b ? a : most_f64(a, b))

/* ---- approximations ---------------------------------------------------------------------------------------------------------------------- */

/* "For |b| in the range [2^126, 2^128], if a is infinity, div.approx.f32 delivers NaN, otherwise it delivers 0." */
static inline float quotient(float a, float b)
{
    float size = MAGNITUDE(b);
    if (size > 0x1p126f && size < INFINITY && a == a)
        return MAGNITUDE(a) == INFINITY ? f32_bits(NAN_F32) : f32_bits((bits_f32(a) ^ bits_f32(b)) & 0x80000000u);
    return C(a / b);
}
ALU2(div_approx, float, float, float, quotient(a, b))
ALU1(rsqrt_f32, float, float, C((float)(1.0 / sqrt((double)a))))
ALU1(sin_f32, float, float, C(sinf(a)))
ALU1(cos_f32, float, float, C(cosf(a)))
ALU1(lg2_f32, float, float, C(log2f(a)))
ALU1(ex2_f32, float, float, C(exp2f(a)))
ALU1(tanh_f32, float, float, C(tanhf(a)))
/* Of these the lower word is zero, the upper one's subnormal numbers are flushed. */
static inline double rough(double x)
{
    uint64_t u = bits_f64(x) & 0xffffffff00000000u;
    if (x != x)
        return f64_bits(0x7fffffff00000000u);
    return f64_bits(u & 0x7ff0000000000000u ? u : u & 1ull << 63);
}
static inline double flushed_f64(double x) { return f64_bits(bits_f64(x) & 0x7ff0000000000000u ? bits_f64(x) : bits_f64(x) & 1ull << 63); }
ALU1(rcp_rough, double, double, rough(1.0 / flushed_f64(a)))
ALU1(rsqrt_rough, double, double, rough(1.0 / sqrt(flushed_f64(a))))
ALU1(rsqrt_f64, double, double, C64(1.0 / sqrt(a)))

#define SUM (M_ROUND | M_FTZ | M_SAT)
#define DIRECTED (M_ROUND | M_ROUND_NEEDED)
#define F2(form, fn, mods) { form ".f32", "ff", fn##_f32, T_F32, mods }
static const struct ptx_row rows[] = {
    { "add.f32", "fff", add_f32, T_F32, SUM }, { "sub.f32", "fff", sub_f32, T_F32, SUM }, { "mul.f32", "fff", mul_f32, T_F32, SUM },
    { "fma.f32", "ffff", fma_f32, T_F32, SUM | M_ROUND_NEEDED }, { "mad.f32", "ffff", fma_f32, T_F32, SUM | M_ROUND_NEEDED },
    { "div.f32", "fff", div_f32, T_F32, DIRECTED | M_FTZ }, { "rcp.f32", "ff", rcp_f32, T_F32, DIRECTED | M_FTZ },
    { "sqrt.f32", "ff", sqrt_f32, T_F32, DIRECTED | M_FTZ },
    { "neg.f32", "ff", neg_f32, T_F32, M_FTZ }, { "abs.f32", "ff", abs_f32, T_F32, M_FTZ }, { "copysign.f32", "fff", copysign_f32, T_F32, 0 },
    { "min.f32", "fff", min_f32, T_F32, M_FTZ }, { "max.f32", "fff", max_f32, T_F32, M_FTZ },
    { "min.NaN.f32", "fff", min_nan_f32, T_F32, M_FTZ }, { "max.NaN.f32", "fff", max_nan_f32, T_F32, M_FTZ },
    { "add.f64", "FFF", add_f64, T_F64, M_ROUND }, { "sub.f64", "FFF", sub_f64, T_F64, M_ROUND }, { "mul.f64", "FFF", mul_f64, T_F64, M_ROUND },
    { "fma.f64", "FFFF", fma_f64, T_F64, DIRECTED }, { "mad.f64", "FFFF", fma_f64, T_F64, DIRECTED }, { "div.f64", "FFF", div_f64, T_F64, DIRECTED },
    { "rcp.f64", "FF", rcp_f64, T_F64, DIRECTED }, { "sqrt.f64", "FF", sqrt_f64, T_F64, DIRECTED },
    { "neg.f64", "FF", neg_f64, T_F64, 0 }, { "abs.f64", "FF", abs_f64, T_F64, 0 }, { "copysign.f64", "FFF", copysign_f64, T_F64, 0 },
    { "min.f64", "FFF", min_f64, T_F64, 0 }, { "max.f64", "FFF", max_f64, T_F64, 0 },
    { "div.approx.f32", "fff", div_approx, T_F32, M_FTZ }, { "div.full.f32", "fff", div_f32, T_F32, M_FTZ },
    { "rcp.approx.f32", "ff", rcp_f32, T_F32, M_FTZ }, { "sqrt.approx.f32", "ff", sqrt_f32, T_F32, M_FTZ },
    F2("rsqrt.approx", rsqrt, M_FTZ), F2("sin.approx", sin, M_FTZ), F2("cos.approx", cos, M_FTZ), F2("lg2.approx", lg2, M_FTZ),
    F2("ex2.approx", ex2, M_FTZ), F2("tanh.approx", tanh, 0),
    { "rcp.approx.ftz.f64", "FF", rcp_rough, T_F64, 0 }, { "rsqrt.approx.ftz.f64", "FF", rsqrt_rough, T_F64, 0 },
    { "rsqrt.approx.f64", "FF", rsqrt_f64, T_F64, 0 },
};
const struct ptx_table PTX_NAME(ptx_float) = { rows, sizeof rows / sizeof rows[0] };
