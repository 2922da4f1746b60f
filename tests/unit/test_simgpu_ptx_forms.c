/*
 * Every form of instruction that the PTX executor chooses from its tables, on edge values and drawn ones, against arithmetic of its own:
 * whole numbers of 128 bits, quadruple precision and comparisons with neighbours, tables of all 16-bit numbers. A form without a row in
 * tests/simgpu/ptx/ptx_forms.def fails. Then the two builds of the tables against each other.
 */
#include <check.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx.h"
#include "tests/simgpu/ptx/ptx_rows.h"

/* ---- arithmetic --------------------------------------------------------------------------------------------------------------- */

enum direction { NEAREST, TO_ZERO, DOWN, UP };
typedef __float128 quad;

static float Fb(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static double F(uint64_t u) { return (double)Fb((uint32_t)u); }
static double D(uint64_t u) { double d; memcpy(&d, &u, 8); return d; }
static uint64_t B32(double d) { float f = (float)d; uint32_t u; memcpy(&u, &f, 4); return u; }
static uint64_t B64(double d) { uint64_t u; memcpy(&u, &d, 8); return u; }
static bool nan32(uint64_t u) { return (u & 0x7fffffff) > 0x7f800000; }
static uint64_t flat(uint64_t u) { return (u & 0x7f800000) == 0 ? u & 0x80000000u : u; }
static uint64_t unit(uint64_t u) { return nan32(u) || u >> 31 & 1 ? 0 : u > 0x3f800000 ? 0x3f800000 : u; }
static int64_t clamp(__int128 v, __int128 low, __int128 high) { return (int64_t)(v < low ? low : v > high ? high : v); }

/* The number s + error, error being much smaller and exact in its sign, as f32: to the nearest by conversion, then one step if that is on
   the wrong side. Zeros keep the sign `minus`. */
static uint64_t narrow32(quad s, quad error, enum direction to)
{
    float c = (float)s;
    quad off = (quad)c - s - error;
    bool down = to == DOWN || (to == TO_ZERO && s > 0), up = to == UP || (to == TO_ZERO && s < 0);
    if (c == s + error && error != 0)
        off = -error;
    if (to == NEAREST && error != 0 && c == c) { /* a tie in s alone is none */
        float next = nextafterf(c, error > 0 ? INFINITY : -INFINITY);
        if (((quad)c + (quad)next) / 2 == s)
            c = next;
        return B32((double)c);
    }
    if (isinf(c) && !(s - s == 0))
        return B32((double)c);
    if (isinf(c))
        off = c > 0 ? 1 : -1;
    if (down && off > 0)
        c = nextafterf(c, -INFINITY);
    else if (up && off < 0)
        c = nextafterf(c, INFINITY);
    uint32_t u;
    memcpy(&u, &c, 4);
    if (c == 0 && s < 0)
        u |= 0x80000000u;
    return u;
}

static uint64_t narrow64(quad s, quad error, enum direction to)
{
    double c = (double)s;
    bool down = to == DOWN || (to == TO_ZERO && s > 0), up = to == UP || (to == TO_ZERO && s < 0);
    quad off = (quad)c - s;
    if (off == 0)
        off = -error;
    if (to == NEAREST && error != 0) {
        double next = nextafter(c, error > 0 ? INFINITY : -INFINITY);
        if (!isinf(c) && ((quad)c + (quad)next) / 2 == s)
            c = next;
        return B64(c);
    }
    if (isinf(c) && !(s - s == 0))
        return B64(c);
    if (isinf(c))
        off = c > 0 ? 1 : -1;
    if (down && off > 0)
        c = nextafter(c, -INFINITY);
    else if (up && off < 0)
        c = nextafter(c, INFINITY);
    if (c == 0 && s < 0)
        c = -0.0;
    return B64(c);
}

/* a + b in two parts: the sum to the nearest, and what is left. */
static quad sum_of(quad a, quad b, quad *rest)
{
    quad s = a + b, t = s - a;
    *rest = s - s == 0 ? (a - (s - t)) + (b - t) : 0;
    return s;
}

#define NAN32 0x7fffffffull
static uint64_t zero_of(bool both_minus, bool both_plus, enum direction to, uint64_t minus)
{
    return both_minus ? minus : both_plus ? 0 : to == DOWN ? minus : 0;
}
static uint64_t added32(quad a, bool a_minus, quad b, bool b_minus, enum direction to)
{
    quad rest, s = sum_of(a, b, &rest);
    if (s != s)
        return NAN32;
    if (s == 0)
        return zero_of(a_minus && b_minus, !a_minus && !b_minus, to, 0x80000000u);
    return narrow32(s, rest, to);
}
static uint64_t sum32(uint64_t a, uint64_t b, enum direction to) { return added32((quad)F(a), a >> 31 & 1, (quad)F(b), b >> 31 & 1, to); }
static uint64_t signed_or(uint64_t v, bool minus, int top) { return v | (uint64_t)minus << top; }
static uint64_t product32(uint64_t a, uint64_t b, enum direction to)
{
    quad p = (quad)F(a) * (quad)F(b);
    bool minus = (a ^ b) >> 31 & 1;
    return p != p ? NAN32 : p == 0 ? signed_or(0, minus, 31) : narrow32(p, 0, to);
}
static uint64_t fused32(uint64_t a, uint64_t b, uint64_t c, enum direction to)
{
    return added32((quad)F(a) * (quad)F(b), (a ^ b) >> 31 & 1, (quad)F(c), c >> 31 & 1, to);
}
static uint64_t quotient32(uint64_t a, uint64_t b, enum direction to)
{
    quad q = (quad)F(a) / (quad)F(b);
    return q != q ? NAN32 : q == 0 ? signed_or(0, (a ^ b) >> 31 & 1, 31) : narrow32(q, 0, to);
}
/* By Newton's iteration from the double's root: exact to a hundred bits. */
static quad root(double v)
{
    quad r = (quad)sqrt(v);
    for (int i = 0; i < 3; i++)
        r = (r + (quad)v / r) / 2;
    return r;
}
static quad fix_root(quad r, double v)
{
    double d = (double)r; /* an exact root is one */
    return (quad)d * (quad)d == (quad)v ? (quad)d : r;
}
static uint64_t root32(uint64_t a, enum direction to)
{
    double v = F(a);
    return v != v || v < 0 ? NAN32 : v == 0 || isinf(v) ? a : narrow32(fix_root(root(v), v), 0, to);
}

static uint64_t added64(quad a, bool a_minus, quad b, bool b_minus, enum direction to)
{
    quad rest, s = sum_of(a, b, &rest);
    return s != s ? B64(NAN) : s == 0 ? zero_of(a_minus && b_minus, !a_minus && !b_minus, to, 1ull << 63) : narrow64(s, rest, to);
}
static uint64_t sum64(uint64_t a, uint64_t b, enum direction to) { return added64((quad)D(a), a >> 63, (quad)D(b), b >> 63, to); }
static uint64_t product64(uint64_t a, uint64_t b, enum direction to)
{
    quad p = (quad)D(a) * (quad)D(b);
    return p != p ? B64(NAN) : p == 0 ? signed_or(0, (a ^ b) >> 63, 63) : narrow64(p, 0, to);
}
static uint64_t fused64(uint64_t a, uint64_t b, uint64_t c, enum direction to)
{
    return added64((quad)D(a) * (quad)D(b), (a ^ b) >> 63, (quad)D(c), c >> 63, to);
}
static uint64_t quotient64(uint64_t a, uint64_t b, enum direction to)
{
    quad q = (quad)D(a) / (quad)D(b);
    return q != q ? B64(NAN) : q == 0 ? signed_or(0, (a ^ b) >> 63, 63) : narrow64(q, 0, to);
}
static uint64_t root64(uint64_t a, enum direction to)
{
    double v = D(a);
    return v != v || v < 0 ? B64(NAN) : v == 0 || isinf(v) ? a : narrow64(fix_root(root(v), v), 0, to);
}
static uint64_t rough64(double v)
{
    uint64_t u = B64(v) & 0xffffffff00000000u;
    return isnan(v) ? 0x7fffffff00000000u : u & 0x7ff0000000000000u ? u : u & 1ull << 63;
}

/* -1 below, 0 equal, 1 above, 2 unordered: odd where the operands are ordered and differ */
static int order_of(double a, double b) { return isnan(a) || isnan(b) ? 2 : a < b ? -1 : a > b; }
static uint64_t extreme32(uint64_t a, uint64_t b, bool most, bool keeps_nan)
{
    if (nan32(a) || nan32(b))
        return keeps_nan || (nan32(a) && nan32(b)) ? NAN32 : nan32(a) ? b : a;
    bool less = F(a) < F(b) || (F(a) == F(b) && a >> 31 & 1);
    return less != most ? a : b;
}
static uint64_t extreme64(uint64_t a, uint64_t b, bool most)
{
    if (isnan(D(a)) || isnan(D(b)))
        return isnan(D(a)) ? b : a;
    bool less = D(a) < D(b) || (D(a) == D(b) && a >> 63);
    return less != most ? a : b;
}
static uint64_t whole(double v, __int128 low, __int128 high, uint64_t invalid)
{
    return isnan(v) ? invalid : isinf(v) ? (uint64_t)(v < 0 ? low : high) : (quad)v < (quad)low ? (uint64_t)low : (quad)v > (quad)high ? (uint64_t)high
           : (uint64_t)(__int128)v;
}

/* ---- numbers of 16 bits: by looking for the nearest among all ------------------------------------------------------------------ */

static bool half_nan(uint64_t h, bool bf16) { return (h & 0x7fff) > (bf16 ? 0x7f80u : 0x7c00u); }
static double half_value(uint64_t h, bool bf16)
{
    unsigned mantissa = bf16 ? 7 : 10, bias = bf16 ? 127 : 15, e = (unsigned)(h & 0x7fff) >> mantissa, m = (unsigned)h & ((1u << mantissa) - 1);
    double v = e == (bf16 ? 255u : 31u) ? m ? NAN : INFINITY : e ? ldexp(1.0 + ldexp(m, -(int)mantissa), (int)(e - bias)) : ldexp(m, 1 - (int)(bias + mantissa));
    return h & 0x8000 ? -v : v;
}
/* The largest magnitude that is not above v. */
static uint64_t half_below(quad v, bool bf16)
{
    uint64_t low = 0, high = bf16 ? 0x7f80 : 0x7c00;
    while (low + 1 < high) {
        uint64_t mid = (low + high) / 2;
        if ((quad)half_value(mid, bf16) <= v)
            low = mid;
        else
            high = mid;
    }
    return low;
}
/* `more`: the sign of what v lacks. */
static uint64_t half_rounded(quad v, int more, bool bf16)
{
    uint64_t sign = v < 0 ? 0x8000 : 0, infinity = bf16 ? 0x7f80 : 0x7c00;
    if (v != v)
        return 0x7fff;
    if (v - v != 0)
        return sign | infinity;
    quad size = v < 0 ? -v : v;
    more = v < 0 ? -more : more;
    uint64_t low = half_below(size, bf16);
    quad below = (quad)half_value(low, bf16);
    quad above = low + 1 == infinity ? below + (below - (quad)half_value(low - 1, bf16)) : (quad)half_value(low + 1, bf16);
    quad middle = (below + above) / 2;
    bool up = size > middle || (size == middle && (more > 0 || (more == 0 && low & 1)));
    return sign | (low + up);
}
static uint64_t half_nearest(quad v, bool bf16) { return half_rounded(v, 0, bf16); }
static uint64_t half_of(double v, bool bf16) { return v == 0 ? (signbit(v) ? 0x8000 : 0) : half_nearest((quad)v, bf16); }
static uint64_t half_cut(double v, bool bf16)
{
    uint64_t sign = signbit(v) ? 0x8000 : 0;
    return isnan(v) ? 0x7fff : isinf(v) ? sign | (bf16 ? 0x7f80 : 0x7c00) : sign | half_below(fabs(v), bf16);
}
static uint64_t half_sum(uint64_t a, uint64_t b, bool bf16)
{
    quad rest, s = sum_of((quad)half_value(a, bf16), (quad)half_value(b, bf16), &rest);
    return s == 0 ? a & b & 0x8000 : half_rounded(s, rest > 0 ? 1 : rest < 0 ? -1 : 0, bf16);
}
static uint64_t half_product(uint64_t a, uint64_t b, bool bf16)
{
    quad p = (quad)half_value(a, bf16) * (quad)half_value(b, bf16);
    return p == 0 ? (a ^ b) & 0x8000 : half_nearest(p, bf16) | (p - p == 0 ? (a ^ b) & 0x8000 : 0);
}
static uint64_t half_fused(uint64_t a, uint64_t b, uint64_t c, bool bf16)
{
    quad rest, s = sum_of((quad)half_value(a, bf16) * (quad)half_value(b, bf16), (quad)half_value(c, bf16), &rest);
    return s == 0 ? (a ^ b) & c & 0x8000 : half_rounded(s, rest > 0 ? 1 : rest < 0 ? -1 : 0, bf16);
}
static uint64_t half_relu(uint64_t h, bool bf16) { return half_nan(h, bf16) ? h : h & 0x8000 ? 0 : h; }
static uint64_t half_unit(uint64_t h) { return half_nan(h, false) || h & 0x8000 ? 0 : h > 0x3c00 ? 0x3c00 : h; }
static uint64_t half_flat(uint64_t h) { return h & 0x7c00 ? h : h & 0x8000; }
static uint64_t half_extreme(uint64_t a, uint64_t b, bool bf16, bool most, bool keeps_nan)
{
    if (half_nan(a, bf16) || half_nan(b, bf16))
        return keeps_nan || (half_nan(a, bf16) && half_nan(b, bf16)) ? 0x7fff : half_nan(a, bf16) ? b : a;
    double x = half_value(a, bf16), y = half_value(b, bf16);
    bool less = x < y || (x == y && a & 0x8000);
    return less != most ? a : b;
}

/* ---- bits, one at a time ---------------------------------------------------------------------------------------------------------- */

static int ones(uint64_t v) { int n = 0; for (int i = 0; i < 64; i++) n += v >> i & 1; return n; }
static int highest(uint64_t v) { int at = -1; for (int i = 0; i < 64; i++) at = v >> i & 1 ? i : at; return at; }
static uint64_t mirrored(uint64_t v, int n) { uint64_t r = 0; for (int i = 0; i < n; i++) r |= (v >> i & 1) << (n - 1 - i); return r; }
/* As the ISA writes it. */
static uint64_t cut_out(uint64_t a, uint64_t b, uint64_t c, int width, bool sign)
{
    int pos = b & 0xff, len = c & 0xff, last = pos + len - 1 < width - 1 ? pos + len - 1 : width - 1;
    uint64_t fill = !sign || len == 0 ? 0 : a >> last & 1, d = 0;
    for (int i = 0; i < width; i++)
        d |= (i < len && pos + i < width ? a >> (pos + i) & 1 : fill) << i;
    return d;
}
static uint64_t nth_set(uint64_t mask, uint64_t base, int32_t offset)
{
    int64_t n = 0;
    if (base > 31)
        return UINT32_MAX;
    if (offset == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    for (int at = (int)base; at >= 0 && at < 32; at += offset > 0 ? 1 : -1)
        if (mask >> at & 1 && ++n == llabs((long long)offset))
            return (uint64_t)at;
    return UINT32_MAX;
}
static uint64_t chosen_bytes(uint64_t a, uint64_t b, unsigned select)
{
    uint64_t r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned s = select >> 4 * i & 15;
        uint64_t byte = ((s & 4 ? b : a) >> 8 * (s & 3)) & 0xff;
        r |= (s & 8 ? byte & 0x80 ? 0xffull : 0 : byte) << 8 * i;
    }
    return r;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------------------ */

struct form { const char *opcode, *operands; double ulps; };
#define X(opcode, operands, result) { opcode, operands, -1 },
#define APPROX(opcode, operands, result, ulps) { opcode, operands, ulps },
static const struct form forms[] = {
#include "tests/simgpu/ptx/ptx_forms.def"
};
enum { FORMS = sizeof forms / sizeof forms[0] };
#undef X
#undef APPROX

enum { FIRST_OF_WANTED = __COUNTER__ + 1 };
#define X(opcode, operands, result) case __COUNTER__ - FIRST_OF_WANTED: return (uint64_t)(result);
#define APPROX(opcode, operands, result, ulps) case __COUNTER__ - FIRST_OF_WANTED: return B64(result);
static uint64_t wanted(unsigned form, uint64_t a, uint64_t b, uint64_t c)
{
    (void)b;
    (void)c;
    switch (form) {
#include "tests/simgpu/ptx/ptx_forms.def"
    }
    return 0;
}

static const uint64_t edges16[] = { 0, 1, 2, 3, 7, 15, 16, 0x7f, 0x80, 0xff, 0x100, 0x3ff, 0x400, 0x401, 0x3555, 0x3bff, 0x3c00, 0x3c01, 0x3f80, 0x3f81,
                                    0x4000, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7f7f, 0x7f80, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0x8400, 0xbc00, 0xbf80,
                                    0xfbff, 0xfc00, 0xff7f, 0xff80, 0xfffe, 0xffff };
static const uint64_t edges32[] = { 0, 1, 2, 3, 7, 15, 16, 23, 24, 31, 32, 33, 63, 64, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffff, 0x800000, 0x800001,
                                    0xffffff, 0x12345678, 0x33000000, 0x3effffff, 0x3f000000, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fc00000, 0x40200000,
                                    0x40490fdb, 0x42fe0000, 0x43000000, 0x47000000, 0x477fe000, 0x477ff000, 0x4b000001, 0x4effffff, 0x4f000000, 0x4f7fffff,
                                    0x4f800000, 0x5f000000, 0x7e800000, 0x7f000000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x80000000,
                                    0x80000001, 0x80800000, 0xaaaaaaaa, 0xbf000000, 0xbf800000, 0xc0200000, 0xc2fc0000, 0xcf000000, 0xcf000001, 0xff7fffff,
                                    0xff800000, 0xfffffffe, 0xffffffff };
static const uint64_t edges64[] = { 0, 1, 2, 3, 31, 32, 63, 64, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x123456789abcdef0,
                                    0x000fffffffffffff, 0x0010000000000000, 0x36a0000000000000, 0x3690000000000001, 0x3810000000000000, 0x3ca0000000000000,
                                    0x3fe0000000000000, 0x3fefffffffffffff, 0x3ff0000000000000, 0x3ff0000000000001, 0x3ff0000010000000, 0x3ff0000030000000,
                                    0x4004000000000000, 0x41dfffffffc00000, 0x41e0000000000000, 0x41efffffffe00000, 0x43dfffffffffffff, 0x43e0000000000000,
                                    0x43f0000000000000, 0x47efffffe0000000, 0x47effffff0000000, 0x7fe0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000,
                                    0x7ff8000000000000, 0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0x8010000000000000, 0xbfe0000000000000,
                                    0xbff0000000000000, 0xc1e0000000000000, 0xc1e0000000200000, 0xc3e0000000000000, 0xffefffffffffffff, 0xfff0000000000000,
                                    0xfffffffffffffffe, 0xffffffffffffffff };

static unsigned bytes_of(char letter) { return strchr("heb", letter) ? 2 : strchr("wf", letter) ? 4 : strchr("xF", letter) ? 8 : 1; }

static uint64_t random_state = 1;
static uint64_t draw(void)
{
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* The k-th value of an operand: edges first, then drawn bits. */
static uint64_t value(char letter, uint64_t k, bool drawn)
{
    unsigned bytes = bytes_of(letter);
    if (letter == 'p')
        return k & 1;
    const uint64_t *edges = bytes == 2 ? edges16 : bytes == 4 ? edges32 : edges64;
    uint64_t n = bytes == 2 ? sizeof edges16 / 8 : bytes == 4 ? sizeof edges32 / 8 : sizeof edges64 / 8;
    if (!drawn)
        return edges[k % n];
    uint64_t v = draw();
    if ((v & 7) == 0)
        return edges[draw() % n];
    return (draw() >> (v & 8 && strchr("hwx", letter) ? draw() % 64 : 0)) & (bytes == 8 ? ~0ull : (1ull << 8 * bytes) - 1);
}

enum { TUPLES = 8192, THREADS = 256 };
static uint64_t in[3][TUPLES], out[TUPLES];

static void fault(void *who, enum ptx_fault what, const char *text)
{
    (void)who;
    fprintf(stderr, "fault %d: %s\n", (int)what, text);
    abort();
}

/* A kernel that does nothing but this instruction: operands come from three arrays of 64-bit words, the result goes to a fourth. */
static size_t kernel_text(char *to, size_t room, const struct form *f, unsigned k)
{
    static const char *const names[] = { "%h", "%w", "%x" };
    char operand[8][16] = { "" }, load[600] = "", *at = load;
    for (unsigned i = 0; i < strlen(f->operands); i++) {
        char letter = f->operands[i];
        unsigned bytes = bytes_of(letter);
        if (letter == 'i') {
            strcpy(operand[i], "0xca");
            continue;
        }
        if (letter == 'p')
            sprintf(operand[i], "%%p%u", i);
        else
            sprintf(operand[i], "%s%u", names[bytes == 2 ? 0 : bytes == 4 ? 1 : 2], i);
        if (i == 0)
            continue;
        if (letter == 'p')
            at += sprintf(at, "  ld.global.u32 %%w9, [%%a%u];\n  setp.ne.u32 %%p%u, %%w9, 0;\n", i, i);
        else
            at += sprintf(at, "  ld.global.b%u %s, [%%a%u];\n", bytes * 8, operand[i], i);
    }
    char last[32] = "";
    if (strlen(f->operands) > 3)
        sprintf(last, ", %s", operand[3]);
    char store[128];
    if (f->operands[0] == 'p')
        strcpy(store, "  selp.u32 %w9, 1, 0, %p0;\n  st.global.u32 [%a0], %w9;\n");
    else
        sprintf(store, "  st.global.b%u [%%a0], %s;\n", bytes_of(f->operands[0]) * 8, operand[0]);
    bool number = strchr(f->operands, 'i') != NULL;
    return (size_t)snprintf(to, room,
                            ".visible .entry k%u(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n"
                            "  .reg .pred %%p<4>;\n  .reg .b16 %%h<4>;\n  .reg .b32 %%w<10>;\n  .reg .b64 %%x<10>;\n  .reg .b64 %%a<4>;\n"
                            "  mov.u32 %%w7, %%ctaid.x;\n  mov.u32 %%w8, %%ntid.x;\n  mov.u32 %%w6, %%tid.x;\n  mad.lo.s32 %%w6, %%w7, %%w8, %%w6;\n"
                            "  mul.wide.u32 %%x9, %%w6, 8;\n"
                            "  ld.param.u64 %%a0, [p0];\n  add.s64 %%a0, %%a0, %%x9;\n  ld.param.u64 %%a1, [p1];\n  add.s64 %%a1, %%a1, %%x9;\n"
                            "  ld.param.u64 %%a2, [p2];\n  add.s64 %%a2, %%a2, %%x9;\n  ld.param.u64 %%a3, [p3];\n  add.s64 %%a3, %%a3, %%x9;\n"
                            "%s  %s %s, %s%s%s%s%s;\n%s  ret;\n}\n",
                            k, load, f->opcode, operand[0], operand[1], strlen(f->operands) > 2 ? ", " : "", strlen(f->operands) > 2 ? operand[2] : "", last,
                            number ? ", 0xca" : "", store);
}

static double distance(double want, uint64_t got)
{
    float w = (float)want, g = Fb((uint32_t)got);
    if (isnan(w) || isnan(g))
        return isnan(w) && isnan(g) ? 0 : INFINITY;
    if (w == g)
        return 0;
    float step = nextafterf(fabsf(w), INFINITY) - fabsf(w);
    return fabs((double)g - want) / (double)step;
}

static bool same(const struct form *f, uint64_t want, uint64_t got)
{
    char letter = f->operands[0];
    unsigned bytes = letter == 'p' ? 4 : bytes_of(letter);
    uint64_t keep = bytes == 8 ? ~0ull : (1ull << 8 * bytes) - 1;
    if (f->ulps >= 0)
        return distance(D(want), got & keep) <= f->ulps;
    if (letter == 'F' && isnan(D(want)) && isnan(D(got)))
        return true;
    return (letter == 'p' ? want != 0 : (want & keep)) == (got & keep);
}

static void run_form(const struct ptx_program *p, unsigned k)
{
    const struct form *f = &forms[k];
    size_t n = strlen(f->operands) - 1;
    size_t count = n == 1 ? 256 : n == 2 ? TUPLES : TUPLES;
    random_state = k + 1;
    uint64_t edges[3] = { 1, 1, 1 };
    for (unsigned i = 0; i < 3 && i < n; i++)
        edges[i] = f->operands[i + 1] == 'p' ? 2 : bytes_of(f->operands[i + 1]) == 2 ? sizeof edges16 / 8 : bytes_of(f->operands[i + 1]) == 4 ? sizeof edges32 / 8 : sizeof edges64 / 8;
    for (size_t t = 0; t < count; t++) {
        bool drawn = t >= edges[0] * edges[1] || (n == 3 && t >= count / 2);
        uint64_t x = n == 3 && !drawn ? draw() : t;
        for (unsigned i = 0; i < 3; i++) {
            in[i][t] = i < n ? value(f->operands[i + 1], x % edges[i], drawn) : 0;
            x /= edges[i];
        }
        out[t] = 0;
    }
    uint64_t params[4] = { (uintptr_t)out, (uintptr_t)in[0], (uintptr_t)in[1], (uintptr_t)in[2] };
    struct ptx_launch l = { .program = p, .kernel = k, .grid = { (unsigned)(count / THREADS), 1, 1 }, .block = { THREADS, 1, 1 }, .params = params,
                            .sm_count = 1, .fail = fault };
    ptx_run(&l);
    for (size_t t = 0; t < count; t++) {
        uint64_t want = wanted(k, in[0][t], in[1][t], in[2][t]);
        if (!same(f, want, out[t])) /* each ck_assert writes to a file */
            ck_abort_msg("%s of %#llx, %#llx, %#llx gives %#llx and not %#llx", f->opcode, (unsigned long long)in[0][t],
                         (unsigned long long)in[1][t], (unsigned long long)in[2][t], (unsigned long long)out[t],
                         (unsigned long long)(f->ulps >= 0 ? B32(D(want)) : want));
    }
}

START_TEST(every_form_gives_what_the_isa_says)
{
    size_t room = FORMS * 2400;
    char *text = malloc(room), why[256] = "";
    size_t n = (size_t)sprintf(text, ".version 8.0\n.target sm_80\n.address_size 64\n");
    for (unsigned k = 0; k < FORMS; k++)
        n += kernel_text(text + n, room - n, &forms[k], k);
    if (getenv("PTX_FORMS_TEXT")) { /* for an assembler that knows the language */
        FILE *to = fopen(getenv("PTX_FORMS_TEXT"), "w");
        fputs(text, to);
        fclose(to);
    }
    struct ptx_program *p = NULL;
    int e = ptx_read(text, n, &p, why, sizeof why);
    ck_assert_msg(e == 0, "%s", why);
    for (unsigned k = 0; k < FORMS; k++) {
        const char *missing = ptx_kernel(p, k)->missing;
        ck_assert_msg(missing == NULL, "%s", missing);
        run_form(p, k);
    }
    ptx_free(p);
    free(text);
}
END_TEST

/* The words that are no part of a form. */
static void bare(const char *opcode, char *to)
{
    static const char *const words[] = { "rn", "rz", "rm", "rp", "ftz", "sat", "relu", "rni", "rzi", "rmi", "rpi", "rna" };
    char copy[128], *save = NULL;
    strcpy(copy, opcode);
    *to = '\0';
    for (char *w = strtok_r(copy, ".", &save); w; w = strtok_r(NULL, ".", &save)) {
        bool out_of_form = false;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            out_of_form |= !strcmp(w, words[i]);
        if (!out_of_form)
            strcat(strcat(to, *to ? "." : ""), w);
    }
}

START_TEST(every_form_has_a_row)
{
    const char *form;
    for (unsigned i = 0; (form = ptx_form(i)); i++) {
        bool found = false;
        for (unsigned k = 0; k < FORMS && !found; k++) {
            char stripped[128];
            bare(forms[k].opcode, stripped);
            found = !strcmp(forms[k].opcode, form) || !strcmp(stripped, form);
        }
        ck_assert_msg(found, "%s has no row", form);
    }
}
END_TEST

START_TEST(both_builds_agree)
{
    const struct ptx_table *const any[] = { &ptx_int_any, &ptx_float_any, &ptx_half_any, &ptx_compare_any, &ptx_convert_any };
    const struct ptx_table *const avx2[] = { &ptx_int_avx2, &ptx_float_avx2, &ptx_half_avx2, &ptx_compare_avx2, &ptx_convert_avx2 };
    static const int directions[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return;
    for (int t = 0; t < 5; t++)
        for (unsigned i = 0; i < any[t]->n; i++) {
            const struct ptx_row *r = &any[t]->row[i];
            ck_assert_str_eq(r->form, avx2[t]->row[i].form);
            for (int pass = 0; pass < 32; pass++) {
                _Alignas(32) uint8_t s[3][256], x[256] = { 0 }, y[256] = { 0 };
                struct ptx_insn insn = { .mods = M_RN, .imm = (uint64_t)pass * 7 };
                for (unsigned o = 0; o < 3; o++)
                    for (unsigned lane = 0; lane < LANES; lane++) {
                        char letter = o + 1 < strlen(r->operands) ? r->operands[o + 1] : 'x';
                        uint64_t v = value(letter == 'i' || letter == 'p' ? 'w' : letter, draw(), draw() & 1);
                        memcpy(s[o] + lane * (letter == 'p' ? 4 : bytes_of(letter)), &v, letter == 'p' ? 4 : bytes_of(letter));
                    }
                bool directed = r->mods & (M_RZ | M_RM | M_RP) && t == 1;
                fesetround(directions[directed ? pass % 4 : 0]);
                r->fn(x, s[0], s[1], s[2], &insn);
                avx2[t]->row[i].fn(y, s[0], s[1], s[2], &insn);
                fesetround(FE_TONEAREST);
                if (memcmp(x, y, sizeof x))
                    ck_abort_msg("%s differs in pass %d", r->form, pass);
            }
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ptx forms");
    TCase *t = tcase_create("ptx forms");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, every_form_has_a_row);
    tcase_add_test(t, every_form_gives_what_the_isa_says);
    tcase_add_test(t, both_builds_agree);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
