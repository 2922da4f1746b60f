/* Comparisons: a byte for each lane, 1 where it holds. Unordered ones (equ, ltu, ...) hold where an operand is a NaN. */
#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_rows.h"

#define TESTS(N)                                        \
    ALU2(eq_b##N, uint8_t, uint##N##_t, uint##N##_t, a == b) \
    ALU2(ne_b##N, uint8_t, uint##N##_t, uint##N##_t, a != b) \
    ALU2(lt_u##N, uint8_t, uint##N##_t, uint##N##_t, a < b)  \
    ALU2(le_u##N, uint8_t, uint##N##_t, uint##N##_t, a <= b) \
    ALU2(gt_u##N, uint8_t, uint##N##_t, uint##N##_t, a > b)  \
    ALU2(ge_u##N, uint8_t, uint##N##_t, uint##N##_t, a >= b) \
    ALU2(lt_s##N, uint8_t, int##N##_t, int##N##_t, a < b)    \
    ALU2(le_s##N, uint8_t, int##N##_t, int##N##_t, a <= b)   \
    ALU2(gt_s##N, uint8_t, int##N##_t, int##N##_t, a > b)    \
    ALU2(ge_s##N, uint8_t, int##N##_t, int##N##_t, a >= b)
TESTS(16)
TESTS(32)
TESTS(64)

#define FLOATS(t, T, W)                                             \
    ALU2(eq_##t, uint8_t, T, T, W(a) == W(b))                       \
    ALU2(ne_##t, uint8_t, T, T, W(a) < W(b) || W(a) > W(b))         \
    ALU2(lt_##t, uint8_t, T, T, W(a) < W(b))                        \
    ALU2(le_##t, uint8_t, T, T, W(a) <= W(b))                       \
    ALU2(gt_##t, uint8_t, T, T, W(a) > W(b))                        \
    ALU2(ge_##t, uint8_t, T, T, W(a) >= W(b))                       \
    ALU2(equ_##t, uint8_t, T, T, !(W(a) < W(b) || W(a) > W(b)))     \
    ALU2(neu_##t, uint8_t, T, T, W(a) != W(b))                      \
    ALU2(ltu_##t, uint8_t, T, T, !(W(a) >= W(b)))                   \
    ALU2(leu_##t, uint8_t, T, T, !(W(a) > W(b)))                    \
    ALU2(gtu_##t, uint8_t, T, T, !(W(a) <= W(b)))                   \
    ALU2(geu_##t, uint8_t, T, T, !(W(a) < W(b)))                    \
    ALU2(num_##t, uint8_t, T, T, W(a) == W(a) && W(b) == W(b))      \
    ALU2(nan_##t, uint8_t, T, T, W(a) != W(a) || W(b) != W(b))
#define AS_IS(x) (x)
FLOATS(f32, float, AS_IS)
FLOATS(f64, double, AS_IS)
FLOATS(f16, uint16_t, f32_of_f16)

#define EXPONENT32(a) ((a) >> 23 & 0xff)
#define MANTISSA32(a) ((a) & 0x7fffff)
#define EXPONENT64(a) ((a) >> 52 & 0x7ff)
#define MANTISSA64(a) ((a) & 0xfffffffffffffu)
#define KINDS(N, MOST)                                                                                     \
    ALU1(finite_f##N, uint8_t, uint##N##_t, EXPONENT##N(a) != MOST)                                        \
    ALU1(infinite_f##N, uint8_t, uint##N##_t, EXPONENT##N(a) == MOST && MANTISSA##N(a) == 0)               \
    ALU1(number_f##N, uint8_t, uint##N##_t, !(EXPONENT##N(a) == MOST && MANTISSA##N(a)))                   \
    ALU1(notanumber_f##N, uint8_t, uint##N##_t, EXPONENT##N(a) == MOST && MANTISSA##N(a))                  \
    ALU1(normal_f##N, uint8_t, uint##N##_t, EXPONENT##N(a) != MOST && EXPONENT##N(a) != 0)                 \
    ALU1(subnormal_f##N, uint8_t, uint##N##_t, EXPONENT##N(a) == 0 && MANTISSA##N(a))
KINDS(32, 0xff)
KINDS(64, 0x7ff)

/* The operands' first letter: the predicate, which the executor makes of the bytes. */
#define SETP(op, fn, t, L, type, mods) { "setp." #op "." #t, "p" L L, fn, type, mods }
#define WHOLE(N, L)                                                                                                                \
    SETP(eq, eq_b##N, b##N, L, T_B##N, 0), SETP(ne, ne_b##N, b##N, L, T_B##N, 0),                                                  \
    SETP(eq, eq_b##N, u##N, L, T_U##N, 0), SETP(ne, ne_b##N, u##N, L, T_U##N, 0), SETP(lt, lt_u##N, u##N, L, T_U##N, 0),           \
    SETP(le, le_u##N, u##N, L, T_U##N, 0), SETP(gt, gt_u##N, u##N, L, T_U##N, 0), SETP(ge, ge_u##N, u##N, L, T_U##N, 0),           \
    SETP(lo, lt_u##N, u##N, L, T_U##N, 0), SETP(ls, le_u##N, u##N, L, T_U##N, 0), SETP(hi, gt_u##N, u##N, L, T_U##N, 0),           \
    SETP(hs, ge_u##N, u##N, L, T_U##N, 0),                                                                                         \
    SETP(eq, eq_b##N, s##N, L, T_S##N, 0), SETP(ne, ne_b##N, s##N, L, T_S##N, 0), SETP(lt, lt_s##N, s##N, L, T_S##N, 0),           \
    SETP(le, le_s##N, s##N, L, T_S##N, 0), SETP(gt, gt_s##N, s##N, L, T_S##N, 0), SETP(ge, ge_s##N, s##N, L, T_S##N, 0)
#define FRACTION(t, L, type, mods)                                                                                                 \
    SETP(eq, eq_##t, t, L, type, mods), SETP(ne, ne_##t, t, L, type, mods), SETP(lt, lt_##t, t, L, type, mods),                    \
    SETP(le, le_##t, t, L, type, mods), SETP(gt, gt_##t, t, L, type, mods), SETP(ge, ge_##t, t, L, type, mods),                    \
    SETP(equ, equ_##t, t, L, type, mods), SETP(neu, neu_##t, t, L, type, mods), SETP(ltu, ltu_##t, t, L, type, mods),              \
    SETP(leu, leu_##t, t, L, type, mods), SETP(gtu, gtu_##t, t, L, type, mods), SETP(geu, geu_##t, t, L, type, mods),              \
    SETP(num, num_##t, t, L, type, mods), SETP(nan, nan_##t, t, L, type, mods)
#define TESTP(N, L)                                                                                                                \
    { "testp.finite.f" #N, "p" L, finite_f##N, T_F##N, 0 }, { "testp.infinite.f" #N, "p" L, infinite_f##N, T_F##N, 0 },            \
    { "testp.number.f" #N, "p" L, number_f##N, T_F##N, 0 }, { "testp.notanumber.f" #N, "p" L, notanumber_f##N, T_F##N, 0 },        \
    { "testp.normal.f" #N, "p" L, normal_f##N, T_F##N, 0 }, { "testp.subnormal.f" #N, "p" L, subnormal_f##N, T_F##N, 0 }
static const struct ptx_row rows[] = {
    WHOLE(16, "h"), WHOLE(32, "w"), WHOLE(64, "x"), FRACTION(f32, "f", T_F32, M_FTZ), FRACTION(f64, "F", T_F64, 0),
    FRACTION(f16, "e", T_F16, 0), TESTP(32, "f"), TESTP(64, "F"),
};
const struct ptx_table PTX_NAME(ptx_compare) = { rows, sizeof rows / sizeof rows[0] };
