/* cvt between all types in every direction of rounding, lane by lane. The instruction's `type` is what it makes, `type2` what of. */
#include <math.h>

#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_warp.h"

static bool is_float(enum ptx_type t) { return t == T_F16 || t == T_BF16 || t == T_F32 || t == T_F64 || t == T_TF32; }
static bool is_signed(enum ptx_type t) { return t == T_S8 || t == T_S16 || t == T_S32 || t == T_S64; }

static struct number_format format_of(enum ptx_type t)
{
    switch (t) {
    case T_F16: return FORMAT_F16;
    case T_BF16: return FORMAT_BF16;
    case T_TF32: return FORMAT_TF32;
    case T_F32: return FORMAT_F32;
    default: return FORMAT_F64;
    }
}

static double as_double(uint64_t v, enum ptx_type t, unsigned mods)
{
    switch (t) {
    case T_F16: return (double)f32_of_f16((uint16_t)v);
    case T_BF16: return (double)f32_of_bf16((uint16_t)v);
    case T_F32: return (double)f32_bits(mods & M_FTZ ? flushed((uint32_t)v) : (uint32_t)v);
    default: return f64_bits(v);
    }
}

static double to_whole(double v, unsigned mods)
{
    return mods & M_RZ ? trunc(v) : mods & M_RM ? floor(v) : mods & M_RP ? ceil(v) : rint(v);
}

static int64_t least_of(enum ptx_type t) { return is_signed(t) ? INT64_MIN >> (64 - 8 * ptx_type_bytes[t]) : 0; }
static uint64_t most_of(enum ptx_type t) { return UINT64_MAX >> (64 - 8 * ptx_type_bytes[t] + is_signed(t)); }

static uint64_t whole_of_double(double v, enum ptx_type t, enum ptx_type from)
{
    if (v != v)
        return from == T_F64 || ptx_type_bytes[t] == 8 ? 1ull << (8 * ptx_type_bytes[t] - 1) : 0;
    double least = (double)least_of(t), beyond = is_signed(t) ? -least : ldexp(1.0, 8 * ptx_type_bytes[t]);
    if (v <= least)
        return (uint64_t)least_of(t);
    if (v >= beyond)
        return most_of(t);
    return is_signed(t) ? (uint64_t)(int64_t)v : (uint64_t)v;
}

/* Sign or zeros above the type's own bits. */
static uint64_t extended(uint64_t v, enum ptx_type t)
{
    unsigned shift = 64 - 8 * ptx_type_bytes[t];
    return is_signed(t) ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static uint64_t finish_float(uint64_t bits, enum ptx_type t, unsigned mods)
{
    struct number_format f = format_of(t);
    unsigned width = f.mantissa + f.exponent_bits;
    uint64_t magnitude = bits & ((1ull << width) - 1), infinity = ((1ull << f.exponent_bits) - 1) << f.mantissa;
    uint64_t one = (((1ull << f.exponent_bits) - 1) >> 1) << f.mantissa;
    bool minus = bits >> width & 1, nan = magnitude > infinity;
    if (mods & M_FTZ && t == T_F32)
        bits = flushed((uint32_t)bits);
    if (mods & M_SAT)
        return nan || minus ? 0 : magnitude > one ? one : bits;
    if (mods & M_RELU && minus && !nan)
        return 0;
    return bits;
}

static uint64_t converted(uint64_t v, enum ptx_type to, enum ptx_type from, unsigned mods)
{
    if (!is_float(from) && !is_float(to)) {
        v = extended(v, from);
        if (mods & M_SAT) {
            bool minus = is_signed(from) && (int64_t)v < 0;
            if (minus ? (int64_t)v < least_of(to) : v > most_of(to))
                v = minus ? (uint64_t)least_of(to) : most_of(to);
        }
        return v;
    }
    if (!is_float(from)) {
        v = extended(v, from);
        bool minus = is_signed(from) && (int64_t)v < 0;
        return finish_float(number_of_integer(minus ? 0 - v : v, minus, format_of(to), mods), to, mods);
    }
    double x = as_double(v, from, mods);
    if (!is_float(to))
        return whole_of_double(to_whole(x, mods), to, from);
    if (mods & M_RINT)
        x = to_whole(x, mods);
    if (to == T_F64 && from != T_F64)
        return finish_float(bits_f64(x), to, mods);
    if (to == T_F64)
        return finish_float(x != x ? v : bits_f64(x), to, mods);
    if (to == T_TF32) {
        uint64_t t = number_of_double(x, FORMAT_TF32, mods);
        return x != x ? (uint64_t)NAN_F32 : finish_float(t, to, mods) << 13;
    }
    return finish_float(number_of_double(x, format_of(to), mods), to, mods);
}

void exec_cvt(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    void *d = row(w, in->d);
    const void *a = row(w, in->a);
    EACH_BIT(i, m)
    {
        uint64_t v = converted(lane_of(a, in->a.bytes, (int)i), in->type, in->type2, in->mods);
        set_lane(d, in->d.bytes, (int)i, is_float(in->type) ? v : extended(v, in->type));
    }
}

/* Two f32 become a pair: the first one's is above. */
void exec_cvt2(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    enum ptx_type t = in->type == T_F16X2 ? T_F16 : T_BF16;
    uint32_t *d = row(w, in->d);
    const uint32_t *a = row(w, in->a), *b = row(w, in->b);
    EACH_BIT(i, m)
    d[i] = (uint32_t)(converted(a[i], t, T_F32, in->mods) << 16 | converted(b[i], t, T_F32, in->mods));
}

/* Whole numbers, saturated, side by side: the second one lowest, what c has above both. */
void exec_cvt_pack(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    unsigned bits = 8 * ptx_type_bytes[in->type];
    uint64_t keep = (1ull << bits) - 1;
    uint32_t *d = row(w, in->d);
    const uint32_t *a = row(w, in->a), *b = row(w, in->b), *c = in->n == 3 ? row(w, in->c) : NULL;
    EACH_BIT(i, m)
    {
        uint64_t v = (converted(a[i], in->type, T_S32, M_SAT) & keep) << bits | (converted(b[i], in->type, T_S32, M_SAT) & keep);
        d[i] = (uint32_t)(v | (c ? (uint64_t)c[i] << (2 * bits) : 0));
    }
}
