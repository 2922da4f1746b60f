/* Floating-point numbers of 16 bits, and rounding in every direction, in whole-number arithmetic: the same on every processor. */
#ifndef SIMGPU_PTX_NUMBER_H
#define SIMGPU_PTX_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_ir.h"

enum { NAN_F32 = 0x7fffffff, NAN_F16 = 0x7fff };

static inline uint32_t bits_f32(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline float f32_bits(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static inline uint64_t bits_f64(double f) { uint64_t u; memcpy(&u, &f, 8); return u; }
static inline double f64_bits(uint64_t u) { double f; memcpy(&f, &u, 8); return f; }

static inline float canonical(float x) { return f32_bits(x != x ? (uint32_t)NAN_F32 : bits_f32(x)); }
static inline double canonical_f64(double x) { return f64_bits(x != x ? 0x7ff8000000000000u : bits_f64(x)); }
/* Subnormal numbers become zeros of their sign. */
static inline uint32_t flushed(uint32_t u) { return (u & 0x7f800000u) ? u : u & 0x80000000u; }

struct number_format { unsigned mantissa; int exponent_least; unsigned exponent_bits; };
#define FORMAT_F16 ((struct number_format){ 10, -14, 5 })
#define FORMAT_BF16 ((struct number_format){ 7, -126, 8 })
#define FORMAT_TF32 ((struct number_format){ 10, -126, 8 })
#define FORMAT_F32 ((struct number_format){ 23, -126, 8 })
#define FORMAT_F64 ((struct number_format){ 52, -1022, 11 })

/*
 * The number (-1)^sign * m * 2^e, m not 0 and its top bit set, as one of format f: exponent and mantissa without the sign. Bits below
 * m that are not all zero are said by `sticky`. Rounds as `mods` says: M_RZ, M_RM, M_RP, M_RNA (ties away from zero), else to even.
 */
static inline uint64_t number_round(bool sign, uint64_t m, int e, bool sticky, struct number_format f, unsigned mods)
{
    int top = e + 63; /* the number is 1.xxx * 2^top */
    unsigned shift = 63 - f.mantissa;
    if (top < f.exponent_least)
        shift += (unsigned)(f.exponent_least - top);
    uint64_t q = shift >= 64 ? 0 : m >> shift;
    uint64_t rest = shift == 64 ? m : shift > 64 ? 1 : shift ? m << (64 - shift) : 0; /* as a fraction of 2^64; beyond 64: less than half */
    uint64_t half = 1ull << 63;
    bool up = mods & M_RZ   ? false
              : mods & M_RM ? sign && (rest || sticky)
              : mods & M_RP ? !sign && (rest || sticky)
              : mods & M_RNA ? rest >= half
                             : rest > half || (rest == half && (sticky || (q & 1)));
    q += up;
    uint64_t bits = top < f.exponent_least ? q : ((uint64_t)(top - f.exponent_least + 1) << f.mantissa) + (q - (1ull << f.mantissa));
    uint64_t infinity = ((1ull << f.exponent_bits) - 1) << f.mantissa;
    if (bits >= infinity) {
        bool to_infinity = mods & M_RZ ? false : mods & M_RM ? sign : mods & M_RP ? !sign : true;
        bits = to_infinity ? infinity : infinity - 1;
    }
    return bits;
}

/* A double as a number of format f, sign included, NaN being all ones but the sign. */
static inline uint64_t number_of_double(double v, struct number_format f, unsigned mods)
{
    uint64_t u = bits_f64(v), m = u << 11 & ~(1ull << 63);
    bool sign = u >> 63;
    int e = (int)(u >> 52 & 0x7ff);
    unsigned width = f.mantissa + f.exponent_bits;
    uint64_t out;
    if (e == 0x7ff)
        out = m ? (1ull << width) - 1 : ((1ull << f.exponent_bits) - 1) << f.mantissa;
    else if (e == 0 && m == 0)
        out = 0;
    else if (e == 0) {
        int zeros = __builtin_clzll(m);
        out = number_round(sign, m << zeros, -1022 - 63 + 1 - zeros, false, f, mods);
    } else
        out = number_round(sign, m | 1ull << 63, e - 1023 - 63, false, f, mods);
    if (e == 0x7ff && m)
        return out;
    return out | (uint64_t)sign << width;
}

static inline uint64_t number_of_integer(uint64_t magnitude, bool sign, struct number_format f, unsigned mods)
{
    if (!magnitude)
        return 0;
    int zeros = __builtin_clzll(magnitude);
    return number_round(sign, magnitude << zeros, -zeros, false, f, mods) | (uint64_t)sign << (f.mantissa + f.exponent_bits);
}

static inline float f32_of_bf16(uint16_t h) { return f32_bits((uint32_t)h << 16); }
static inline float f32_of_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest > 0x7c00)
        return f32_bits(0x7fffffff);
    if (rest >= 0x400)
        return f32_bits(sign | ((rest << 13) + (rest >= 0x7c00 ? 0x70000000u : 0x38000000u)));
    float tiny = (float)rest * 0x1p-24f;
    return f32_bits(bits_f32(tiny) | sign);
}
static inline uint16_t f16_of_double(double v, unsigned mods) { return (uint16_t)number_of_double(v, FORMAT_F16, mods); }
static inline uint16_t bf16_of_double(double v, unsigned mods) { return (uint16_t)number_of_double(v, FORMAT_BF16, mods); }

/* The sum, its last bit set where it is not exact: rounded once more to fewer bits it is what the exact sum would be. */
static inline double sum_to_odd(double a, double b)
{
    double s = a + b;
    if (!(fabs(s) < INFINITY))
        return s;
    double t = s - a, error = (a - (s - t)) + (b - t);
    if (error == 0)
        return s;
    uint64_t u = bits_f64(s);
    return f64_bits((error > 0) == (s > 0) ? u | 1 : (u - 1) | 1);
}

#endif
