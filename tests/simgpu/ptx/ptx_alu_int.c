/*
 * Whole numbers and bits. Where the ISA leaves a result open (division by zero) it is the one that devices give: all ones, and for a
 * remainder the dividend.
 */
#include <stdint.h>

#include "tests/simgpu/ptx/ptx_rows.h"

/* ---- sums and products ----------------------------------------------------------------------------------------------------------- */

#define SUMS(T, U)                                                      \
    ALU2(add_##T, U, U, U, a + b)                                       \
    ALU2(sub_##T, U, U, U, a - b)                                       \
    ALU2(mul_lo_##T, U, U, U, (a + 0u) * (b + 0u))                      \
    ALU3(mad_lo_##T, U, U, U, U, (a + 0u) * (b + 0u) + c)
SUMS(16, uint16_t)
SUMS(32, uint32_t)
SUMS(64, uint64_t)

ALU2(mul_hi_u16, uint16_t, uint16_t, uint16_t, (uint32_t)a * b >> 16)
ALU2(mul_hi_s16, uint16_t, int16_t, int16_t, (int32_t)a * b >> 16)
ALU2(mul_hi_u32, uint32_t, uint32_t, uint32_t, (uint64_t)a * b >> 32)
ALU2(mul_hi_s32, uint32_t, int32_t, int32_t, (int64_t)a * b >> 32)
ALU2(mul_hi_u64, uint64_t, uint64_t, uint64_t, (unsigned __int128)a * b >> 64)
ALU2(mul_hi_s64, uint64_t, int64_t, int64_t, (__int128)a * b >> 64)
ALU3(mad_hi_u16, uint16_t, uint16_t, uint16_t, uint16_t, ((uint32_t)a * b >> 16) + c)
ALU3(mad_hi_s16, uint16_t, int16_t, int16_t, uint16_t, (uint32_t)((int32_t)a * b >> 16) + c)
ALU3(mad_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)((uint64_t)a * b >> 32) + c)
ALU3(mad_hi_s32, uint32_t, int32_t, int32_t, uint32_t, (uint32_t)((int64_t)a * b >> 32) + c)
ALU3(mad_hi_u64, uint64_t, uint64_t, uint64_t, uint64_t, (uint64_t)((unsigned __int128)a * b >> 64) + c)
ALU3(mad_hi_s64, uint64_t, int64_t, int64_t, uint64_t, (uint64_t)((__int128)a * b >> 64) + c)
ALU2(mul_wide_u16, uint32_t, uint16_t, uint16_t, (uint32_t)a * b)
ALU2(mul_wide_s16, uint32_t, int16_t, int16_t, (int32_t)a * b)
ALU2(mul_wide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)a * b)
ALU2(mul_wide_s32, uint64_t, int32_t, int32_t, (int64_t)a * b)
ALU3(mad_wide_u16, uint32_t, uint16_t, uint16_t, uint32_t, (uint32_t)a * b + c)
ALU3(mad_wide_s16, uint32_t, int16_t, int16_t, uint32_t, (uint32_t)((int32_t)a * b) + c)
ALU3(mad_wide_u32, uint64_t, uint32_t, uint32_t, uint64_t, (uint64_t)a * b + c)
ALU3(mad_wide_s32, uint64_t, int32_t, int32_t, uint64_t, (uint64_t)((int64_t)a * b) + c)

static inline int32_t clamp32(int64_t v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v; }
ALU2(add_sat, int32_t, int32_t, int32_t, clamp32((int64_t)a + b))
ALU2(sub_sat, int32_t, int32_t, int32_t, clamp32((int64_t)a - b))
ALU3(mad_hi_sat, int32_t, int32_t, int32_t, int32_t, clamp32(((int64_t)a * b >> 32) + c))

/* 24 bits: their upper bits say what the number is worth, and nothing above them counts */
static inline int64_t s24(uint32_t v) { return (int64_t)(int32_t)(v << 8) >> 8; }
static inline uint64_t u24(uint32_t v) { return v & 0xffffffu; }
ALU2(mul24_lo_u32, uint32_t, uint32_t, uint32_t, u24(a) * u24(b))
ALU2(mul24_lo_s32, uint32_t, uint32_t, uint32_t, s24(a) * s24(b))
ALU2(mul24_hi_u32, uint32_t, uint32_t, uint32_t, u24(a) * u24(b) >> 16)
ALU2(mul24_hi_s32, uint32_t, uint32_t, uint32_t, s24(a) * s24(b) >> 16)
ALU3(mad24_lo_u32, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)(u24(a) * u24(b)) + c)
ALU3(mad24_lo_s32, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)(s24(a) * s24(b)) + c)
ALU3(mad24_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)(u24(a) * u24(b) >> 16) + c)
ALU3(mad24_hi_s32, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)(s24(a) * s24(b) >> 16) + c)
ALU3(mad24_hi_sat, int32_t, uint32_t, uint32_t, int32_t, clamp32((s24(a) * s24(b) >> 16) + c))

/* ---- one type in two signs --------------------------------------------------------------------------------------------------------- */

#define SIGNED(N)                                                                                                               \
    ALU1(neg_##N, uint##N##_t, uint##N##_t, 0u - a)                                                                             \
    ALU1(abs_##N, uint##N##_t, int##N##_t, a < 0 ? 0u - (uint##N##_t)a : (uint##N##_t)a)                                        \
    ALU2(div_u##N, uint##N##_t, uint##N##_t, uint##N##_t, b ? a / b : (uint##N##_t)-1)                                          \
    ALU2(div_s##N, uint##N##_t, int##N##_t, int##N##_t, b == 0 ? -1 : b == -1 ? (int##N##_t)(0u - (uint##N##_t)a) : a / b)      \
    ALU2(rem_u##N, uint##N##_t, uint##N##_t, uint##N##_t, b ? a % b : a)                                                        \
    ALU2(rem_s##N, uint##N##_t, int##N##_t, int##N##_t, b == 0 ? a : b == -1 ? 0 : a % b)                                       \
    ALU2(min_u##N, uint##N##_t, uint##N##_t, uint##N##_t, a < b ? a : b)                                                        \
    ALU2(min_s##N, int##N##_t, int##N##_t, int##N##_t, a < b ? a : b)                                                           \
    ALU2(max_u##N, uint##N##_t, uint##N##_t, uint##N##_t, a > b ? a : b)                                                        \
    ALU2(max_s##N, int##N##_t, int##N##_t, int##N##_t, a > b ? a : b)                                                           \
    ALU3(sad_u##N, uint##N##_t, uint##N##_t, uint##N##_t, uint##N##_t, (a < b ? b - a : a - b) + c)                             \
    ALU3(sad_s##N, uint##N##_t, int##N##_t, int##N##_t, uint##N##_t,                                                            \
         (uint##N##_t)(a < b ? (uint##N##_t)b - (uint##N##_t)a : (uint##N##_t)a - (uint##N##_t)b) + c)                          \
    ALU2(and_##N, uint##N##_t, uint##N##_t, uint##N##_t, a & b)                                                                 \
    ALU2(or_##N, uint##N##_t, uint##N##_t, uint##N##_t, a | b)                                                                  \
    ALU2(xor_##N, uint##N##_t, uint##N##_t, uint##N##_t, a ^ b)                                                                 \
    ALU1(not_##N, uint##N##_t, uint##N##_t, ~a)                                                                                 \
    ALU1(cnot_##N, uint##N##_t, uint##N##_t, a == 0)                                                                            \
    ALU2(shl_##N, uint##N##_t, uint##N##_t, uint32_t, b >= N ? 0 : (a + 0u) << (b & (N - 1)))                                   \
    ALU2(shr_u##N, uint##N##_t, uint##N##_t, uint32_t, b >= N ? 0 : (a + 0u) >> (b & (N - 1)))                                  \
    ALU2(shr_s##N, uint##N##_t, int##N##_t, uint32_t, a >> (b >= N ? N - 1 : b))                                                \
    ALU1(mov_##N, uint##N##_t, uint##N##_t, a)                                                                                  \
    static void selp_##N(void *d_, const void *a_, const void *b_, const void *c_, const struct ptx_insn *in)                   \
    {                                                                                                                           \
        uint##N##_t *d = d_;                                                                                                    \
        const uint##N##_t *x = a_, *y = b_;                                                                                     \
        const uint32_t m = *(const uint32_t *)c_;                                                                               \
        (void)in;                                                                                                               \
        EACH_LANE d[i] = m >> i & 1 ? x[i] : y[i];                                                                              \
    }                                                                                                                           \
    ALU3(slct_##N, uint##N##_t, uint##N##_t, uint##N##_t, int32_t, c >= 0 ? a : b)                                              \
    ALU3(slct_f_##N, uint##N##_t, uint##N##_t, uint##N##_t, float, c >= 0 ? a : b)
SIGNED(16)
SIGNED(32)
SIGNED(64)

/* ---- bits ---------------------------------------------------------------------------------------------------------------------------- */

ALU1(popc_32, uint32_t, uint32_t, __builtin_popcount(a))
ALU1(popc_64, uint32_t, uint64_t, __builtin_popcountll(a))
ALU1(clz_32, uint32_t, uint32_t, a ? __builtin_clz(a) : 32)
ALU1(clz_64, uint32_t, uint64_t, a ? __builtin_clzll(a) : 64)
static inline uint32_t top(uint64_t v) { return v ? 63u - (uint32_t)__builtin_clzll(v) : ~0u; }
static inline uint32_t above(uint64_t v, uint32_t last) { return v ? last - top(v) : ~0u; }
ALU1(bfind_u32, uint32_t, uint32_t, top(a))
ALU1(bfind_s32, uint32_t, int32_t, top((uint32_t)(a < 0 ? ~a : a)))
ALU1(bfind_u64, uint32_t, uint64_t, top(a))
ALU1(bfind_s64, uint32_t, int64_t, top((uint64_t)(a < 0 ? ~a : a)))
ALU1(bfind_sh_u32, uint32_t, uint32_t, above(a, 31))
ALU1(bfind_sh_s32, uint32_t, int32_t, above((uint32_t)(a < 0 ? ~a : a), 31))
ALU1(bfind_sh_u64, uint32_t, uint64_t, above(a, 63))
ALU1(bfind_sh_s64, uint32_t, int64_t, above((uint64_t)(a < 0 ? ~a : a), 63))

static inline uint64_t reversed(uint64_t v)
{
    v = (v >> 1 & 0x5555555555555555u) | (v & 0x5555555555555555u) << 1;
    v = (v >> 2 & 0x3333333333333333u) | (v & 0x3333333333333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0f0f0f0f0fu) | (v & 0x0f0f0f0f0f0f0f0fu) << 4;
    return __builtin_bswap64(v);
}
ALU1(brev_32, uint32_t, uint32_t, reversed(a) >> 32)
ALU1(brev_64, uint64_t, uint64_t, reversed(a))

/* The field of `len` bits from `pos` on; bits beyond the width are zero, or the number's sign. */
static inline uint64_t field(uint64_t a, uint32_t pos, uint32_t len, unsigned width, bool sign)
{
    pos &= 255;
    len &= 255;
    if (len == 0)
        return 0;
    unsigned last = pos + len - 1 < width ? pos + len - 1 : width - 1;
    uint64_t fill = sign && a >> last & 1 ? ~0ull : 0;
    uint64_t v = pos < width ? a >> pos : fill;
    unsigned have = pos < width ? width - pos : 0;
    have = have < len ? have : len;
    uint64_t keep = have >= 64 ? ~0ull : (1ull << have) - 1;
    return pos < width ? (v & keep) | (fill & ~keep) : fill;
}
ALU3(bfe_u32, uint32_t, uint32_t, uint32_t, uint32_t, field(a, b, c, 32, false))
ALU3(bfe_s32, uint32_t, uint32_t, uint32_t, uint32_t, field(a, b, c, 32, true))
ALU3(bfe_u64, uint64_t, uint64_t, uint32_t, uint32_t, field(a, b, c, 64, false))
ALU3(bfe_s64, uint64_t, uint64_t, uint32_t, uint32_t, field(a, b, c, 64, true))

static inline uint64_t fns(uint32_t mask, uint32_t base, int32_t offset)
{
    if (base > 31)
        return ~0u;
    if (offset == 0)
        return mask >> base & 1 ? base : ~0u;
    int step = offset > 0 ? 1 : -1;
    uint32_t left = offset > 0 ? (uint32_t)offset : 0u - (uint32_t)offset; /* of -2^31, too */
    for (int at = (int)base; at >= 0 && at < 32; at += step)
        if (mask >> at & 1 && --left == 0)
            return (uint32_t)at;
    return ~0u;
}
ALU3(fns_32, uint32_t, uint32_t, uint32_t, int32_t, fns(a, b, c))

static inline uint32_t bmsk(uint32_t pos, uint32_t len, bool clamp)
{
    if (clamp ? pos >= 32 : false)
        return 0;
    pos &= 31;
    if (!clamp)
        len &= 31;
    uint64_t ones = len >= 32 ? 0xffffffffu : (1u << len) - 1u;
    return (uint32_t)(ones << pos);
}
ALU2(bmsk_clamp, uint32_t, uint32_t, uint32_t, bmsk(a, b, true))
ALU2(bmsk_wrap, uint32_t, uint32_t, uint32_t, bmsk(a, b, false))

static inline uint32_t szext(uint32_t a, uint32_t n, bool sign, bool clamp)
{
    if (clamp && n >= 32)
        return a;
    n &= 31;
    if (n == 0)
        return 0;
    uint32_t keep = (1u << n) - 1;
    return sign && a >> (n - 1) & 1 ? a | ~keep : a & keep;
}
ALU2(szext_clamp_u32, uint32_t, uint32_t, uint32_t, szext(a, b, false, true))
ALU2(szext_clamp_s32, uint32_t, uint32_t, uint32_t, szext(a, b, true, true))
ALU2(szext_wrap_u32, uint32_t, uint32_t, uint32_t, szext(a, b, false, false))
ALU2(szext_wrap_s32, uint32_t, uint32_t, uint32_t, szext(a, b, true, false))

static inline uint32_t funnel(uint32_t low, uint32_t high, uint32_t n, bool left)
{
    uint64_t v = (uint64_t)high << 32 | low;
    return left ? (uint32_t)(v << n >> 32) : (uint32_t)(v >> n);
}
ALU3(shf_l_wrap, uint32_t, uint32_t, uint32_t, uint32_t, funnel(a, b, c & 31, true))
ALU3(shf_r_wrap, uint32_t, uint32_t, uint32_t, uint32_t, funnel(a, b, c & 31, false))
ALU3(shf_l_clamp, uint32_t, uint32_t, uint32_t, uint32_t, funnel(a, b, c > 32 ? 32 : c, true))
ALU3(shf_r_clamp, uint32_t, uint32_t, uint32_t, uint32_t, funnel(a, b, c > 32 ? 32 : c, false))

static inline uint32_t byte_of(uint64_t v, uint32_t select)
{
    uint32_t b = (uint32_t)(v >> (select & 7) * 8) & 0xff;
    return select & 8 ? (b & 0x80 ? 0xffu : 0) : b;
}
static inline uint32_t permuted(uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t v = (uint64_t)b << 32 | a;
    return byte_of(v, c) | byte_of(v, c >> 4) << 8 | byte_of(v, c >> 8) << 16 | byte_of(v, c >> 12) << 24;
}
ALU3(prmt, uint32_t, uint32_t, uint32_t, uint32_t, permuted(a, b, c))
#define PRMT(name, b0, b1, b2, b3)                                                                                                    \
    static inline uint32_t prmt_##name##_of(uint32_t a, uint32_t b, uint32_t c)                                                       \
    {                                                                                                                                 \
        uint64_t v = (uint64_t)b << 32 | a;                                                                                           \
        const uint32_t s = c & 3;                                                                                                     \
        return byte_of(v, (b0) & 7) | byte_of(v, (b1) & 7) << 8 | byte_of(v, (b2) & 7) << 16 | byte_of(v, (b3) & 7) << 24;            \
    }                                                                                                                                 \
    ALU3(prmt_##name, uint32_t, uint32_t, uint32_t, uint32_t, prmt_##name##_of(a, b, c))
PRMT(f4e, s, s + 1, s + 2, s + 3)
PRMT(b4e, s, s - 1, s - 2, s - 3)
PRMT(rc8, s, s, s, s)
PRMT(ecl, s, s > 1 ? s : 1, s > 2 ? s : 2, 3)
PRMT(ecr, 0, s < 1 ? s : 1, s < 2 ? s : 2, s)
PRMT(rc16, (s & 1) * 2, (s & 1) * 2 + 1, (s & 1) * 2, (s & 1) * 2 + 1)

static void lop3(void *d_, const void *a_, const void *b_, const void *c_, const struct ptx_insn *in)
{
    uint32_t *d = d_;
    const uint32_t *x = a_, *y = b_, *z = c_;
    const unsigned lut = (unsigned)in->imm;
    uint32_t m[8];
    for (int k = 0; k < 8; k++)
        m[k] = lut >> k & 1 ? ~0u : 0;
    EACH_LANE
    {
        const uint32_t a = x[i], b = y[i], c = z[i];
        d[i] = (m[0] & ~a & ~b & ~c) | (m[1] & ~a & ~b & c) | (m[2] & ~a & b & ~c) | (m[3] & ~a & b & c) | (m[4] & a & ~b & ~c) |
               (m[5] & a & ~b & c) | (m[6] & a & b & ~c) | (m[7] & a & b & c);
    }
}

/* ---- small dot products ------------------------------------------------------------------------------------------------------------------ */

static inline int64_t part(uint32_t v, int at, int bits, bool sign)
{
    uint32_t u = v >> at;
    return bits == 8 ? (sign ? (int64_t)(int8_t)u : (int64_t)(uint8_t)u) : (sign ? (int64_t)(int16_t)u : (int64_t)(uint16_t)u);
}
static inline uint32_t dp4a(uint32_t a, bool sa, uint32_t b, bool sb, uint32_t c)
{
    int64_t sum = 0;
    for (int k = 0; k < 32; k += 8)
        sum += part(a, k, 8, sa) * part(b, k, 8, sb);
    return (uint32_t)sum + c;
}
static inline uint32_t dp2a(uint32_t a, bool sa, uint32_t b, bool sb, uint32_t c, int half)
{
    return (uint32_t)(part(a, 0, 16, sa) * part(b, half, 8, sb) + part(a, 16, 16, sa) * part(b, half + 8, 8, sb)) + c;
}
#define DOTS(x, y, sx, sy)                                                                               \
    ALU3(dp4a_##x##_##y, uint32_t, uint32_t, uint32_t, uint32_t, dp4a(a, sx, b, sy, c))                  \
    ALU3(dp2a_lo_##x##_##y, uint32_t, uint32_t, uint32_t, uint32_t, dp2a(a, sx, b, sy, c, 0))            \
    ALU3(dp2a_hi_##x##_##y, uint32_t, uint32_t, uint32_t, uint32_t, dp2a(a, sx, b, sy, c, 16))
DOTS(u32, u32, false, false)
DOTS(u32, s32, false, true)
DOTS(s32, u32, true, false)
DOTS(s32, s32, true, true)

/* ---- the table ----------------------------------------------------------------------------------------------------------------------------- */

#define LETTER16 "h"
#define LETTER32 "w"
#define LETTER64 "x"
#define SAME1(L) L L
#define SAME2(L) L L L
#define SAME3(L) L L L L
#define BOTH(op, N, n) \
    { #op ".u" #N, SAME##n(LETTER##N), op##_u##N, T_U##N, 0 }, { #op ".s" #N, SAME##n(LETTER##N), op##_s##N, T_S##N, 0 }
#define ALIKE(op, form, N, n) \
    { form ".u" #N, SAME##n(LETTER##N), op##_##N, T_U##N, 0 }, { form ".s" #N, SAME##n(LETTER##N), op##_##N, T_S##N, 0 }
#define HI(op, N, n) \
    { #op ".hi.u" #N, SAME##n(LETTER##N), op##_hi_u##N, T_U##N, 0 }, { #op ".hi.s" #N, SAME##n(LETTER##N), op##_hi_s##N, T_S##N, 0 }
#define BITS(op, N, n) { #op ".b" #N, SAME##n(LETTER##N), op##_##N, T_B##N, 0 }
#define CHOICES(t, N)                                                                                    \
    { "selp." #t, LETTER##N LETTER##N LETTER##N "p", selp_##N, T_B##N, 0 },                              \
    { "slct." #t ".s32", LETTER##N LETTER##N LETTER##N "w", slct_##N, T_B##N, 0 },                       \
    { "slct." #t ".f32", LETTER##N LETTER##N LETTER##N "f", slct_f_##N, T_F32, M_FTZ },                  \
    { "mov." #t, LETTER##N LETTER##N, mov_##N, T_B##N, 0 }
#define WIDTHS(N)                                                                                                              \
    ALIKE(add, "add", N, 2), ALIKE(sub, "sub", N, 2), ALIKE(mul_lo, "mul.lo", N, 2), ALIKE(mad_lo, "mad.lo", N, 3),            \
    HI(mul, N, 2), HI(mad, N, 3), BOTH(div, N, 2), BOTH(rem, N, 2), BOTH(min, N, 2), BOTH(max, N, 2), BOTH(sad, N, 3),         \
    BITS(and, N, 2), BITS(or, N, 2), BITS(xor, N, 2), BITS(not, N, 1), BITS(cnot, N, 1),                                       \
    { "neg.s" #N, SAME1(LETTER##N), neg_##N, T_S##N, 0 }, { "abs.s" #N, SAME1(LETTER##N), abs_##N, T_S##N, 0 },                \
    { "shl.b" #N, LETTER##N LETTER##N "w", shl_##N, T_B##N, 0 }, { "shr.b" #N, LETTER##N LETTER##N "w", shr_u##N, T_B##N, 0 }, \
    { "shr.u" #N, LETTER##N LETTER##N "w", shr_u##N, T_U##N, 0 }, { "shr.s" #N, LETTER##N LETTER##N "w", shr_s##N, T_S##N, 0 }, \
    CHOICES(b##N, N), CHOICES(u##N, N), CHOICES(s##N, N)
#define DOT_ROWS(x, y)                                                       \
    { "dp4a." #x "." #y, "wwww", dp4a_##x##_##y, T_U32, 0 },                 \
    { "dp2a.lo." #x "." #y, "wwww", dp2a_lo_##x##_##y, T_U32, 0 },           \
    { "dp2a.hi." #x "." #y, "wwww", dp2a_hi_##x##_##y, T_U32, 0 }
#define W4(form, fn) { form, "wwww", fn, T_B32, 0 }
#define W3(form, fn) { form, "www", fn, T_B32, 0 }

static const struct ptx_row rows[] = {
    WIDTHS(16), WIDTHS(32), WIDTHS(64),
    { "selp.f32", "fffp", selp_32, T_F32, 0 }, { "selp.f64", "FFFp", selp_64, T_F64, 0 },
    { "slct.f32.s32", "fffw", slct_32, T_F32, 0 }, { "slct.f64.s32", "FFFw", slct_64, T_F64, 0 },
    { "slct.f32.f32", "ffff", slct_f_32, T_F32, M_FTZ }, { "slct.f64.f32", "FFFf", slct_f_64, T_F64, M_FTZ },
    { "mov.f32", "ff", mov_32, T_F32, 0 }, { "mov.f64", "FF", mov_64, T_F64, 0 },
    { "mul.wide.u16", "whh", mul_wide_u16, T_U16, 0 }, { "mul.wide.s16", "whh", mul_wide_s16, T_S16, 0 },
    { "mul.wide.u32", "xww", mul_wide_u32, T_U32, 0 }, { "mul.wide.s32", "xww", mul_wide_s32, T_S32, 0 },
    { "mad.wide.u16", "whhw", mad_wide_u16, T_U16, 0 }, { "mad.wide.s16", "whhw", mad_wide_s16, T_S16, 0 },
    { "mad.wide.u32", "xwwx", mad_wide_u32, T_U32, 0 }, { "mad.wide.s32", "xwwx", mad_wide_s32, T_S32, 0 },
    W3("add.sat.s32", add_sat), W3("sub.sat.s32", sub_sat), W4("mad.hi.sat.s32", mad_hi_sat),
    W3("mul24.lo.u32", mul24_lo_u32), W3("mul24.lo.s32", mul24_lo_s32), W3("mul24.hi.u32", mul24_hi_u32), W3("mul24.hi.s32", mul24_hi_s32),
    W4("mad24.lo.u32", mad24_lo_u32), W4("mad24.lo.s32", mad24_lo_s32), W4("mad24.hi.u32", mad24_hi_u32), W4("mad24.hi.s32", mad24_hi_s32),
    W4("mad24.hi.sat.s32", mad24_hi_sat),
    { "popc.b32", "ww", popc_32, T_B32, 0 }, { "popc.b64", "wx", popc_64, T_B64, 0 },
    { "clz.b32", "ww", clz_32, T_B32, 0 }, { "clz.b64", "wx", clz_64, T_B64, 0 },
    { "bfind.u32", "ww", bfind_u32, T_U32, 0 }, { "bfind.s32", "ww", bfind_s32, T_S32, 0 },
    { "bfind.u64", "wx", bfind_u64, T_U64, 0 }, { "bfind.s64", "wx", bfind_s64, T_S64, 0 },
    { "bfind.shiftamt.u32", "ww", bfind_sh_u32, T_U32, 0 }, { "bfind.shiftamt.s32", "ww", bfind_sh_s32, T_S32, 0 },
    { "bfind.shiftamt.u64", "wx", bfind_sh_u64, T_U64, 0 }, { "bfind.shiftamt.s64", "wx", bfind_sh_s64, T_S64, 0 },
    { "brev.b32", "ww", brev_32, T_B32, 0 }, { "brev.b64", "xx", brev_64, T_B64, 0 },
    W4("bfe.u32", bfe_u32), W4("bfe.s32", bfe_s32), { "bfe.u64", "xxww", bfe_u64, T_U64, 0 }, { "bfe.s64", "xxww", bfe_s64, T_S64, 0 },
    W4("fns.b32", fns_32), W3("bmsk.clamp.b32", bmsk_clamp), W3("bmsk.wrap.b32", bmsk_wrap),
    W3("szext.clamp.u32", szext_clamp_u32), W3("szext.clamp.s32", szext_clamp_s32), W3("szext.wrap.u32", szext_wrap_u32),
    W3("szext.wrap.s32", szext_wrap_s32),
    W4("shf.l.wrap.b32", shf_l_wrap), W4("shf.r.wrap.b32", shf_r_wrap), W4("shf.l.clamp.b32", shf_l_clamp), W4("shf.r.clamp.b32", shf_r_clamp),
    W4("prmt.b32", prmt), W4("prmt.b32.f4e", prmt_f4e), W4("prmt.b32.b4e", prmt_b4e), W4("prmt.b32.rc8", prmt_rc8),
    W4("prmt.b32.ecl", prmt_ecl), W4("prmt.b32.ecr", prmt_ecr), W4("prmt.b32.rc16", prmt_rc16),
    { "lop3.b32", "wwwwi", lop3, T_B32, 0 },
    DOT_ROWS(u32, u32), DOT_ROWS(u32, s32), DOT_ROWS(s32, u32), DOT_ROWS(s32, s32),
};
const struct ptx_table PTX_NAME(ptx_int) = { rows, sizeof rows / sizeof rows[0] };

#define BLEND(N)                                                     \
    void PTX_NAME(ptx_blend##N)(void *d_, const void *s_, uint32_t m)\
    {                                                                \
        uint##N##_t *d = d_;                                         \
        const uint##N##_t *s = s_;                                   \
        EACH_LANE d[i] = m >> i & 1 ? s[i] : d[i];                   \
    }
BLEND(16)
BLEND(32)
BLEND(64)
