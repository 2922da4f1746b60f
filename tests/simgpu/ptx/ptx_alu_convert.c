/* The commonest conversions, whole rows at once; ptx_convert.c has all. */
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_rows.h"

ALU1(u64_u32, uint64_t, uint32_t, a)
ALU1(s64_s32, int64_t, int32_t, a)
ALU1(b32_b64, uint32_t, uint64_t, a)
ALU1(u32_u16, uint32_t, uint16_t, a)
ALU1(s32_s16, int32_t, int16_t, a)
ALU1(b16_b32, uint16_t, uint32_t, a)
ALU1(u64_u16, uint64_t, uint16_t, a)
ALU1(s64_s16, int64_t, int16_t, a)
ALU1(b16_b64, uint16_t, uint64_t, a)
ALU1(f32_s32, float, int32_t, a)
ALU1(f32_u32, float, uint32_t, a)
ALU1(f64_s32, double, int32_t, a)
ALU1(f64_u32, double, uint32_t, a)
ALU1(f64_f32, double, float, a)
ALU1(f32_f64, float, double, canonical((float)a))
/* Numbers beyond the range become its ends, a NaN 0. */
ALU1(s32_f32, int32_t, float, a != a ? 0 : a >= 0x1p31f ? INT32_MAX : a <= -0x1p31f ? INT32_MIN : (int32_t)a)
ALU1(u32_f32, uint32_t, float, !(a > 0) ? 0 : a >= 0x1p32f ? UINT32_MAX : (uint32_t)(int64_t)a)
ALU1(f32_bf16, float, uint16_t, canonical(f32_bits((uint32_t)a << 16)))

/* To the nearest, ties to even. */
static inline uint16_t bf16_bits(uint32_t u) { return (u & 0x7fffffffu) > 0x7f800000u ? NAN_F16 : (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16); }
ALU1(bf16_f32, uint16_t, uint32_t, bf16_bits(a))
ALU2(bf16x2_f32, uint32_t, uint32_t, uint32_t, (uint32_t)bf16_bits(a) << 16 | bf16_bits(b))

#ifdef __F16C__
static void f32_f16(void *d_, const void *a_, const void *b_, const void *c_, const struct ptx_insn *in)
{
    float *d = d_;
    ALU_UNUSED;
    for (int i = 0; i < LANES; i += 8)
        _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)((const uint16_t *)a_ + i))));
    EACH_LANE d[i] = canonical(d[i]);
}
static void f16_f32(void *d_, const void *a_, const void *b_, const void *c_, const struct ptx_insn *in)
{
    uint16_t *d = d_;
    ALU_UNUSED;
    for (int i = 0; i < LANES; i += 8)
        _mm_storeu_si128((__m128i *)(d + i), _mm256_cvtps_ph(_mm256_loadu_ps((const float *)a_ + i), _MM_FROUND_TO_NEAREST_INT));
    EACH_LANE d[i] = (d[i] & 0x7fff) > 0x7c00 ? NAN_F16 : d[i];
}
#else
ALU1(f32_f16, float, uint16_t, f32_of_f16(a))
ALU1(f16_f32, uint16_t, float, f16_of_double((double)a, M_RN))
#endif

#define W(form, operands, fn, mods) { "cvt." form, operands, fn, T_NONE, mods }
#define WIDER(d, a, operands, fn) W("u" #d "." #a, operands, fn, 0), W("s" #d "." #a, operands, fn, 0)
#define SHORTER(d, a, operands, fn) WIDER(d, u##a, operands, fn), WIDER(d, s##a, operands, fn)
static const struct ptx_row rows[] = {
    WIDER(64, u32, "xw", u64_u32), WIDER(64, s32, "xw", s64_s32), SHORTER(32, 64, "wx", b32_b64),
    WIDER(32, u16, "wh", u32_u16), WIDER(32, s16, "wh", s32_s16), SHORTER(16, 32, "hw", b16_b32),
    WIDER(64, u16, "xh", u64_u16), WIDER(64, s16, "xh", s64_s16), SHORTER(16, 64, "hx", b16_b64),
    W("f32.s32", "fw", f32_s32, M_RN), W("f32.u32", "fw", f32_u32, M_RN), W("f64.s32", "Fw", f64_s32, M_RN), W("f64.u32", "Fw", f64_u32, M_RN),
    W("f64.f32", "Ff", f64_f32, 0), W("f32.f64", "fF", f32_f64, M_RN),
    W("s32.f32", "wf", s32_f32, M_RZ | M_RINT), W("u32.f32", "wf", u32_f32, M_RZ | M_RINT),
    W("f32.f16", "fe", f32_f16, 0), W("f16.f32", "ef", f16_f32, M_RN), W("f32.bf16", "fb", f32_bf16, 0), W("bf16.f32", "bf", bf16_f32, M_RN),
    W("bf16x2.f32", "wff", bf16x2_f32, M_RN),
};
const struct ptx_table PTX_NAME(ptx_convert) = { rows, sizeof rows / sizeof rows[0] };
