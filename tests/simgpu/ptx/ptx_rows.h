/*
 * The tables of what is computed lane by lane, without memory and without other lanes. A row: the form of the instruction (its opcode without
 * what M_ bits say), its operands, the function that computes all 32 lanes. The tables are compiled twice, for any processor and for one with
 * AVX2 and FMA; results are the same.
 *
 * The operands, result first, one letter each: h w x of 2, 4, 8 bytes, e b f F of f16, bf16, f32, f64, p a predicate, i a number that is
 * part of the instruction.
 */
#ifndef SIMGPU_PTX_ROWS_H
#define SIMGPU_PTX_ROWS_H

#include "tests/simgpu/ptx/ptx_ir.h"

struct ptx_row {
    const char *form, *operands;
    ptx_alu_fn *fn;
    enum ptx_type type; /* of the sources */
    uint32_t mods;      /* M_ bits that may be there */
};
struct ptx_table {
    const struct ptx_row *row;
    unsigned n;
};

/* PTX_VARIANT is `any` or `avx2`. */
#define PTX_NAME2(a, b) a##_##b
#define PTX_NAME1(a, b) PTX_NAME2(a, b)
#define PTX_NAME(a) PTX_NAME1(a, PTX_VARIANT)

extern const struct ptx_table ptx_int_any, ptx_int_avx2, ptx_float_any, ptx_float_avx2, ptx_half_any, ptx_half_avx2, ptx_compare_any,
    ptx_compare_avx2, ptx_convert_any, ptx_convert_avx2;

/* NULL: there is no such form. */
const struct ptx_row *ptx_row_of(const char *form);

/* Lanes of m of d become those of s. */
typedef void ptx_blend_fn(void *d, const void *s, uint32_t m);
extern ptx_blend_fn ptx_blend16_any, ptx_blend32_any, ptx_blend64_any, ptx_blend16_avx2, ptx_blend32_avx2, ptx_blend64_avx2;
struct ptx_blends { ptx_blend_fn *of16, *of32, *of64; };
extern struct ptx_blends ptx_blends; /* set by the first ptx_row_of */

#if defined(__clang__)
#define EACH_LANE _Pragma("clang loop vectorize(assume_safety)") for (int i = 0; i < LANES; i++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)
#endif

/* One result from one, two, three sources of the given types. */
#define ALU_UNUSED (void)a_, (void)b_, (void)c_, (void)in
#define ALU1(name, D, A, expression)                                                                                       \
    static void name(void *d_, const void *a_, const void *b_, const void *c_, const struct ptx_insn *in)                  \
    {                                                                                                                      \
        D *d = d_;                                                                                                         \
        const A *x = a_;                                                                                                   \
        ALU_UNUSED;                                                                                                        \
        EACH_LANE { const A a = x[i]; d[i] = (D)(expression); }                                                            \
    }
#define ALU2(name, D, A, B, expression)                                                                                    \
    static void name(void *d_, const void *a_, const void *b_, const void *c_, const struct ptx_insn *in)                  \
    {                                                                                                                      \
        D *d = d_;                                                                                                         \
        const A *x = a_;                                                                                                   \
        const B *y = b_;                                                                                                   \
        ALU_UNUSED;                                                                                                        \
        EACH_LANE { const A a = x[i]; const B b = y[i]; d[i] = (D)(expression); }                                          \
    }
#define ALU3(name, D, A, B, C, expression)                                                                                 \
    static void name(void *d_, const void *a_, const void *b_, const void *c_, const struct ptx_insn *in)                  \
    {                                                                                                                      \
        D *d = d_;                                                                                                         \
        const A *x = a_;                                                                                                   \
        const B *y = b_;                                                                                                   \
        const C *z = c_;                                                                                                   \
        ALU_UNUSED;                                                                                                        \
        EACH_LANE { const A a = x[i]; const B b = y[i]; const C c = z[i]; d[i] = (D)(expression); }                        \
    }

#endif
