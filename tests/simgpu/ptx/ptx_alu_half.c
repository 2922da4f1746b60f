/* f16, bf16 and pairs of them. Sums and products are made in f64, rounded once. */
#include <math.h>

#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_rows.h"

static inline uint16_t flushed_f16(uint16_t h, unsigned mods) { return mods & M_FTZ && !(h & 0x7c00) ? h & 0x8000 : h; }
static inline double wide_f16(uint16_t h, unsigned mods) { return (double)f32_of_f16(flushed_f16(h, mods)); }
static inline double wide_bf16(uint16_t h, unsigned mods) { (void)mods; return (double)f32_of_bf16(h); }

/* Saturation to [0, 1], where a NaN is 0; relu: nothing below zero, a NaN stays one. */
static inline uint16_t finish(uint16_t h, unsigned mods, uint16_t infinity, uint16_t one)
{
    bool nan = (h & 0x7fff) > infinity;
    if (mods & M_SAT)
        h = nan || h & 0x8000 ? 0 : h > one ? one : h;
    if (mods & M_RELU && !nan && h & 0x8000)
        h = 0;
    return h;
}
static inline uint16_t narrow_f16(double v, unsigned mods) { return finish(flushed_f16(f16_of_double(v, M_RN), mods), mods, 0x7c00, 0x3c00); }
static inline uint16_t narrow_bf16(double v, unsigned mods) { return finish(bf16_of_double(v, M_RN), mods, 0x7f80, 0x3f80); }

static inline bool is_nan_f16(uint16_t h) { return (h & 0x7fff) > 0x7c00; }
static inline bool is_nan_bf16(uint16_t h) { return (h & 0x7fff) > 0x7f80; }
/* Whole numbers in the order of the floating-point ones, -0 before +0. */
static inline int order(uint16_t h) { return h & 0x8000 ? -(int)(h & 0x7fff) - 1 : (int)(h & 0x7fff); }
static inline uint16_t chosen(uint16_t a, uint16_t b, bool nan_a, bool nan_b, bool most, bool to_nan)
{
    if (nan_a || nan_b)
        return to_nan || (nan_a && nan_b) ? NAN_F16 : nan_a ? b : a;
    return (order(a) < order(b)) != most ? a : b;
}

#define HALF(T)                                                                                                                        \
    static inline uint16_t fma_of_##T(uint16_t a, uint16_t b, uint16_t c, unsigned m)                                                  \
    {                                                                                                                                  \
        return narrow_##T(sum_to_odd(wide_##T(a, m) * wide_##T(b, m), wide_##T(c, m)), m);                                             \
    }                                                                                                                                  \
    static inline uint16_t neg_of_##T(uint16_t a, unsigned m) { (void)m; return a ^ 0x8000; }                                          \
    static inline uint16_t abs_of_##T(uint16_t a, unsigned m) { (void)m; return a & 0x7fff; }                                          \
    static inline uint16_t min_of_##T(uint16_t a, uint16_t b, unsigned m) { (void)m; return chosen(a, b, is_nan_##T(a), is_nan_##T(b), false, false); } \
    static inline uint16_t max_of_##T(uint16_t a, uint16_t b, unsigned m) { (void)m; return chosen(a, b, is_nan_##T(a), is_nan_##T(b), true, false); }  \
    static inline uint16_t min_nan_of_##T(uint16_t a, uint16_t b, unsigned m) { (void)m; return chosen(a, b, is_nan_##T(a), is_nan_##T(b), false, true); } \
    static inline uint16_t max_nan_of_##T(uint16_t a, uint16_t b, unsigned m) { (void)m; return chosen(a, b, is_nan_##T(a), is_nan_##T(b), true, true); }
HALF(f16)
HALF(bf16)
static inline uint16_t add_of_f16(uint16_t a, uint16_t b, unsigned m) { return narrow_f16(wide_f16(a, m) + wide_f16(b, m), m); }
static inline uint16_t sub_of_f16(uint16_t a, uint16_t b, unsigned m) { return narrow_f16(wide_f16(a, m) - wide_f16(b, m), m); }
static inline uint16_t mul_of_f16(uint16_t a, uint16_t b, unsigned m) { return narrow_f16(wide_f16(a, m) * wide_f16(b, m), m); }
static inline uint16_t tanh_of_f16(uint16_t a, unsigned m) { return narrow_f16(tanh(wide_f16(a, m)), m); }
static inline uint16_t ex2_of_f16(uint16_t a, unsigned m) { return narrow_f16(exp2(wide_f16(flushed_f16(a, m), m)), m); }

#define ONE(op, T)                                                                                                                     \
    ALU1(op##_##T, uint16_t, uint16_t, op##_of_##T(a, in->mods))                                                                       \
    ALU1(op##_##T##x2, uint32_t, uint32_t, op##_of_##T((uint16_t)a, in->mods) | (uint32_t)op##_of_##T((uint16_t)(a >> 16), in->mods) << 16)
#define TWO(op, T)                                                                                                                     \
    ALU2(op##_##T, uint16_t, uint16_t, uint16_t, op##_of_##T(a, b, in->mods))                                                          \
    ALU2(op##_##T##x2, uint32_t, uint32_t, uint32_t, op##_of_##T((uint16_t)a, (uint16_t)b, in->mods) |                                 \
                                                         (uint32_t)op##_of_##T((uint16_t)(a >> 16), (uint16_t)(b >> 16), in->mods) << 16)
#define THREE(op, T)                                                                                                                   \
    ALU3(op##_##T, uint16_t, uint16_t, uint16_t, uint16_t, op##_of_##T(a, b, c, in->mods))                                             \
    ALU3(op##_##T##x2, uint32_t, uint32_t, uint32_t, uint32_t,                                                                         \
         op##_of_##T((uint16_t)a, (uint16_t)b, (uint16_t)c, in->mods) |                                                                \
             (uint32_t)op##_of_##T((uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16), in->mods) << 16)
#define SHARED_OPS(T) \
    THREE(fma, T) ONE(neg, T) ONE(abs, T) TWO(min, T) TWO(max, T) TWO(min_nan, T) TWO(max_nan, T)
SHARED_OPS(f16)
SHARED_OPS(bf16)
/* sums and products of bf16 are of later devices */
TWO(add, f16)
TWO(sub, f16)
TWO(mul, f16)
ONE(tanh, f16)
ONE(ex2, f16)

#define R1(form, op, T, L, mods) { form "." #T, L L, op##_##T, T_F16, mods }, { form "." #T "x2", "ww", op##_##T##x2, T_F16X2, mods }
#define R2(form, op, T, L, mods) { form "." #T, L L L, op##_##T, T_F16, mods }, { form "." #T "x2", "www", op##_##T##x2, T_F16X2, mods }
#define R3(form, op, T, L, mods) { form "." #T, L L L L, op##_##T, T_F16, mods }, { form "." #T "x2", "wwww", op##_##T##x2, T_F16X2, mods }
static const struct ptx_row rows[] = {
    R2("add", add, f16, "e", M_RN | M_FTZ | M_SAT), R2("sub", sub, f16, "e", M_RN | M_FTZ | M_SAT), R2("mul", mul, f16, "e", M_RN | M_FTZ | M_SAT),
    R3("fma", fma, f16, "e", M_RN | M_FTZ | M_SAT | M_RELU | M_ROUND_NEEDED), R1("neg", neg, f16, "e", M_FTZ), R1("abs", abs, f16, "e", M_FTZ),
    R2("min", min, f16, "e", M_FTZ), R2("max", max, f16, "e", M_FTZ), R2("min.NaN", min_nan, f16, "e", M_FTZ),
    R2("max.NaN", max_nan, f16, "e", M_FTZ),
    R1("tanh.approx", tanh, f16, "e", 0), R1("ex2.approx", ex2, f16, "e", M_FTZ),
    R3("fma", fma, bf16, "b", M_RN | M_RELU | M_ROUND_NEEDED), R1("neg", neg, bf16, "b", 0), R1("abs", abs, bf16, "b", 0),
    R2("min", min, bf16, "b", 0), R2("max", max, bf16, "b", 0), R2("min.NaN", min_nan, bf16, "b", 0), R2("max.NaN", max_nan, bf16, "b", 0),
};
const struct ptx_table PTX_NAME(ptx_half) = { rows, sizeof rows / sizeof rows[0] };
