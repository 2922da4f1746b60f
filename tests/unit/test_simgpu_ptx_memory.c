/*
 * Instructions of PTX that no table of forms has, each with a row of its own and edge values, against the ISA's text said once more: products of
 * matrices and where a warp holds them, atomics, loads and stores of every type and space, ldmatrix, cp.async; words that are hints alone.
 */
#include <math.h>
#include <stdbool.h>

#include "tests/unit/ptx_running.h"

static float float_of(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static uint32_t bits_of(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static double double_of(uint64_t u) { double d; memcpy(&d, &u, 8); return d; }
static uint64_t bits64(double d) { uint64_t u; memcpy(&u, &d, 8); return u; }
static uint32_t plain(float f) { return f != f ? 0x7fffffff : bits_of(f); }
static uint64_t plain64(double d) { return d != d ? 0x7ff8000000000000 : bits64(d); }

static uint64_t state = 99;
static uint32_t drawn(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* f16, to the nearest, and back. */
static uint16_t half_of(double d)
{
    if (d != d)
        return 0x7fff;
    uint16_t sign = signbit(d) ? 0x8000 : 0;
    d = fabs(d);
    if (d >= 65520)
        return sign | 0x7c00;
    if (d < 0x1p-14)
        return sign | (uint16_t)rint(d * 0x1p24);
    int e;
    double m = frexp(d, &e);
    return (uint16_t)(sign | ((unsigned)(e + 13) * 1024 + (unsigned)rint(m * 2048))); /* what is rounded up to a power of two has the next exponent */
}
static double of_half(uint16_t h)
{
    double m = h & 0x3ff, v = (h >> 10 & 31) == 31 ? (m != 0 ? NAN : INFINITY) : (h >> 10 & 31) ? ldexp(m + 1024, (h >> 10 & 31) - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}

/* ---- products of matrices ------------------------------------------------------------------------------------------------------------- */

enum number { F16, BF16, TF32, F32, F64, S8, U8, S32 };
static const char *const number_name[] = { "f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s32" };
static unsigned bits_each(enum number t) { return t == F64 ? 64 : t == F16 || t == BF16 ? 16 : t == S8 || t == U8 ? 8 : 32; }

static const struct product {
    const char *shape;
    unsigned m, k;
    enum number d, a, b;
} products[] = {
    { "m16n8k16", 16, 16, F32, F16, F16 }, { "m16n8k8", 16, 8, F32, F16, F16 },   { "m16n8k16", 16, 16, F16, F16, F16 }, { "m16n8k8", 16, 8, F16, F16, F16 },
    { "m16n8k16", 16, 16, F32, BF16, BF16 }, { "m16n8k8", 16, 8, F32, BF16, BF16 }, { "m16n8k8", 16, 8, F32, TF32, TF32 }, { "m16n8k4", 16, 4, F32, TF32, TF32 },
    { "m8n8k4", 8, 4, F64, F64, F64 },     { "m16n8k32", 16, 32, S32, S8, S8 },   { "m16n8k32", 16, 32, S32, U8, S8 },   { "m16n8k32", 16, 32, S32, S8, U8 },
    { "m16n8k16", 16, 16, S32, U8, U8 },   { "m16n8k16", 16, 16, S32, S8, S8 },   { "m8n8k16", 8, 16, S32, S8, U8 },     { "m8n8k16", 8, 16, S32, U8, U8 },
};

/* Element i of what lane 4 g + t holds, as the ISA's sections "Matrix fragments for mma" say. */
static void place_a(const struct product *p, unsigned g, unsigned t, unsigned i, unsigned *row, unsigned *col)
{
    switch (bits_each(p->a)) {
    case 16: *row = p->k == 8 ? (i < 2 ? g : g + 8) : i == 0 || i == 1 || i == 4 || i == 5 ? g : g + 8; *col = 2 * t + (i & 1) + (i >= 4 ? 8 : 0); break;
    case 32: *row = i == 0 || i == 2 ? g : g + 8; *col = i < 2 ? t : t + 4; break;
    case 64: *row = g; *col = t; break;
    default: *row = p->m == 8 || i < 4 || (i >= 8 && i < 12) ? g : g + 8; *col = 4 * t + (i & 3) + (i >= 8 ? 16 : 0); break;
    }
}
static void place_b(const struct product *p, unsigned g, unsigned t, unsigned i, unsigned *row, unsigned *col)
{
    *col = g;
    switch (bits_each(p->b)) {
    case 16: *row = 2 * t + (i & 1) + (i >= 2 ? 8 : 0); break;
    case 32: *row = i == 0 ? t : t + 4; break;
    case 64: *row = t; break;
    default: *row = 4 * t + (i & 3) + (i >= 4 ? 16 : 0); break;
    }
}
static void place_c(unsigned g, unsigned t, unsigned i, unsigned *row, unsigned *col)
{
    *row = i < 2 ? g : g + 8;
    *col = 2 * t + (i & 1);
}

static uint64_t encoded(enum number t, double v)
{
    switch (t) {
    case F16: return half_of(v);
    case BF16: return bits_of((float)v) >> 16;
    case F64: return bits64(v);
    case S8:
    case U8: return (uint8_t)(int)v;
    case S32: return (uint32_t)(int64_t)v;
    default: return bits_of((float)v);
    }
}

static unsigned registers(char *to, const char *letter, unsigned first, unsigned n)
{
    unsigned at = (unsigned)sprintf(to, "{");
    for (unsigned i = 0; i < n; i++)
        at += (unsigned)sprintf(to + at, "%s%s%u", i ? ", " : "", letter, first + i);
    return at + (unsigned)sprintf(to + at, "}");
}

/* What lies in each lane's 16 words of memory: the registers of a, then b, then c. */
static void put(unsigned char *lane, unsigned bit, unsigned bits, uint64_t v) { memcpy(lane + bit / 8, &v, bits / 8); }

static void multiply(const struct product *p, bool saturates, const double a[16][32], const double b[32][8], const double c[16][8])
{
    const unsigned register_bits = p->d == F64 ? 64 : 32, bytes = register_bits / 8;
    const unsigned na = p->m * p->k / 32, nb = p->k * 8 / 32, nc = p->m * 8 / 32; /* elements of a lane */
    const unsigned ra = na * bits_each(p->a) / register_bits, rb = nb * bits_each(p->b) / register_bits, rc = nc * bits_each(p->d) / register_bits;
    static unsigned char in[32][128];
    unsigned row, col;
    for (unsigned lane = 0; lane < 32; lane++) {
        const unsigned g = lane / 4, t = lane % 4;
        for (unsigned i = 0; i < na; i++) {
            place_a(p, g, t, i, &row, &col);
            put(in[lane], i * bits_each(p->a), bits_each(p->a), encoded(p->a, a[row][col]));
        }
        for (unsigned i = 0; i < nb; i++) {
            place_b(p, g, t, i, &row, &col);
            put(in[lane], ra * register_bits + i * bits_each(p->b), bits_each(p->b), encoded(p->b, b[row][col]));
        }
        for (unsigned i = 0; i < nc; i++) {
            place_c(g, t, i, &row, &col);
            put(in[lane], (ra + rb) * register_bits + i * bits_each(p->d), bits_each(p->d), encoded(p->d, c[row][col]));
        }
    }
    char text[4096], name[128];
    const char *letter = p->d == F64 ? "%d" : "%r";
    unsigned n = (unsigned)sprintf(text, HEAD ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n .reg .b32 %%r<32>;\n .reg .f64 %%d<32>;\n .reg .b64 %%o, %%i;\n .reg .b32 %%t;\n"
                                   " ld.param.u64 %%o, [out];\n ld.param.u64 %%i, [in];\n mov.u32 %%t, %%tid.x;\n mad.wide.u32 %%i, %%t, 128, %%i;\n mad.wide.u32 %%o, %%t, 128, %%o;\n");
    for (unsigned i = 0; i < ra + rb + rc; i++)
        n += (unsigned)sprintf(text + n, " ld.global.%s %s%u, [%%i+%u];\n", p->d == F64 ? "f64" : "b32", letter, i, i * bytes);
    sprintf(name, "mma.sync.aligned.%s.row.col%s.%s.%s.%s.%s", p->shape, saturates ? ".satfinite" : "", number_name[p->d], number_name[p->a], number_name[p->b], number_name[p->d]);
    n += (unsigned)sprintf(text + n, " %s ", name);
    const unsigned first[] = { 20, 0, ra, ra + rb }, count[] = { rc, ra, rb, rc };
    for (unsigned i = 0; i < 4; i++) {
        n += registers(text + n, letter, first[i], count[i]);
        n += (unsigned)sprintf(text + n, i < 3 ? ", " : ";\n");
    }
    for (unsigned i = 0; i < rc; i++)
        n += (unsigned)sprintf(text + n, " st.global.%s [%%o+%u], %s%u;\n", p->d == F64 ? "f64" : "b32", i * bytes, letter, 20 + i);
    sprintf(text + n, " ret;\n}\n");
    CUdeviceptr from = alloc_words(sizeof in / 4);
    OK(cuMemcpyHtoD_v2(from, in, sizeof in));
    OK(run_with(text, 1, 32, 0, from));
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned i = 0; i < nc; i++) {
            place_c(lane / 4, lane % 4, i, &row, &col);
            double sum = c[row][col];
            for (unsigned k = 0; k < p->k; k++)
                sum += a[row][k] * b[k][col];
            if (saturates)
                sum = fmin(fmax(sum, -0x1p31), 0x1p31 - 1);
            uint64_t want = p->d == F32 ? plain((float)sum) : p->d == F64 ? plain64(sum) : encoded(p->d, sum), had = 0;
            memcpy(&had, (unsigned char *)got + lane * 128 + i * bits_each(p->d) / 8, bits_each(p->d) / 8);
            ck_assert_msg(had == want, "%s, row %u, column %u: %#llx, not %#llx", name, row, col, (unsigned long long)had, (unsigned long long)want);
        }
    OK(cuMemFree_v2(from));
}

static double drawn_of(enum number t, bool edges)
{
    return t == U8 ? (double)drawn(edges ? 256 : 20) : (double)drawn(t == S8 && edges ? 256 : 17) - (t == S8 && edges ? 128 : 8);
}

START_TEST(matrices_lie_and_are_multiplied_as_the_isa_says)
{
    start();
    double a[16][32], b[32][8], c[16][8];
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const struct product *p = &products[i];
        for (int pass = 0; pass < 4; pass++) {
            const bool edges = pass >= 2, whole = p->d == S32;
            for (unsigned m = 0; m < 16; m++)
                for (unsigned k = 0; k < 32; k++)
                    a[m][k] = drawn_of(p->a, edges);
            for (unsigned k = 0; k < 32; k++)
                for (unsigned n = 0; n < 8; n++)
                    b[k][n] = drawn_of(p->b, edges);
            for (unsigned m = 0; m < 16; m++)
                for (unsigned n = 0; n < 8; n++)
                    c[m][n] = whole && edges ? (drawn(2) ? 2147483647.0 - drawn(99) : -2147483648.0 + drawn(99)) : (int)drawn(17) - 8;
            if (edges && !whole) { /* rows with an infinity, a NaN, numbers beyond what a result can be, the smallest one */
                const double most = p->a == F16 ? 65504 : p->a == F64 ? 0x1p1023 : 0x1.fcp127, least = p->a == F16 ? 0x1p-24 : p->a == F64 ? 0x1p-1074 : 0x1p-126;
                a[0][1] = INFINITY, a[1][2] = NAN, a[2][3] = most, a[2][2] = most, a[4][3] = -INFINITY;
                for (unsigned k = 0; k < 32; k++)
                    a[3][k] = k == 1 ? least : 0;
                for (unsigned n = 0; n < 8; n++)
                    b[1][n] = n % 2 ? 1 : 2, b[2][n] = b[3][n] = most, c[3][n] = 0;
            }
            if (edges && p->d == F16) /* such sums have more digits than f16 */
                for (unsigned n = 0; n < 8; n++)
                    b[2][n] = b[3][n] = n ? 8 : -8;
            if (edges && p->d == F32) /* products of the largest numbers alone, of small ones not beside them: which of these rounds first is left open */
                for (unsigned m = 5; m < 16; m++)
                    a[m][2] = a[m][3] = 0;
            if (edges && p->d == F64)
                for (unsigned m = 5; m < 8; m++)
                    a[m][2] = a[m][3] = 0;
            multiply(p, false, a, b, c);
            if (whole)
                multiply(p, true, a, b, c);
        }
    }
}
END_TEST

/* ---- matrices from shared memory -------------------------------------------------------------------------------------------------------- */

START_TEST(ldmatrix_gives_each_lane_its_pairs)
{
    start();
    for (unsigned trans = 0; trans < 2; trans++)
        for (unsigned n = 1; n <= 4; n *= 2) {
            char text[4096], list[64];
            registers(list, "%v", 0, n);
            /* word w of shared memory holds the halves 2 w and 2 w + 1; the row of lane l begins at 16 l */
            unsigned at = (unsigned)sprintf(text, "%s", KERNEL(" .shared .align 16 .b8 s[512];\n mov.u32 %r1, s;\n shl.b32 %r2, %t, 4;\n add.u32 %r1, %r1, %r2;\n mov.u32 %r3, 0;\n"
                "more:\n shl.b32 %r4, %t, 2;\n add.u32 %r4, %r4, %r3;\n shl.b32 %r5, %r4, 1;\n add.u32 %r6, %r5, 1;\n shl.b32 %r6, %r6, 16;\n or.b32 %r5, %r5, %r6;\n shl.b32 %r7, %r3, 2;\n"
                " add.u32 %r7, %r7, %r1;\n st.shared.u32 [%r7], %r5;\n add.u32 %r3, %r3, 1;\n setp.lt.u32 %p1, %r3, 4;\n @%p1 bra more;\n bar.sync 0;\n shl.b32 %r8, %t, 4;\n cvt.u64.u32 %x1, %r8;\n add.u64 %x1, %x1, %o;\n"));
            at -= (unsigned)strlen(" ret;\n}\n");
            at += (unsigned)sprintf(text + at, " ldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 %s, [%%r1];\n", n, trans ? ".trans" : "", list);
            for (unsigned j = 0; j < n; j++)
                at += (unsigned)sprintf(text + at, " st.global.u32 [%%x1+%u], %%v%u;\n", 4 * j, j);
            sprintf(text + at, " ret;\n}\n");
            run(text, 1, 32);
            for (unsigned lane = 0; lane < 32; lane++)
                for (unsigned j = 0; j < n; j++) {
                    unsigned g = lane / 4, t = lane % 4, matrix = 64 * j;
                    unsigned low = trans ? matrix + 8 * (2 * t) + g : matrix + 8 * g + 2 * t, high = trans ? matrix + 8 * (2 * t + 1) + g : low + 1;
                    ck_assert_msg(got[4 * lane + j] == (low | high << 16), "x%u%s, lane %u, matrix %u: %#x", n, trans ? ".trans" : "", lane, j, got[4 * lane + j]);
                }
        }
}
END_TEST

START_TEST(cp_async_copies_or_fills_with_zeros)
{
    static const struct { const char *line; unsigned bytes, read; } rows[] = {
        { "cp.async.ca.shared.global [%r1], [%i], 4;", 4, 4 }, { "cp.async.ca.shared.global [%r1], [%i], 8;", 8, 8 }, { "cp.async.ca.shared.global [%r1], [%i], 16;", 16, 16 },
        { "cp.async.cg.shared.global [%r1], [%i], 16;", 16, 16 }, { "cp.async.cg.shared::cta.global.L2::128B [%r1], [%i], 16;", 16, 16 },
        { "mov.u32 %r2, 5;\n cp.async.cg.shared.global [%r1], [%i], 16, %r2;", 16, 5 }, { "mov.u32 %r2, 0;\n cp.async.ca.shared.global [%r1], [%i], 8, %r2;", 8, 0 },
        { "cp.async.ca.shared.global [%r1], [%i], 4, 3;", 4, 3 }, { "setp.eq.u32 %p1, 1, 1;\n cp.async.ca.shared.global [%r1], [%i], 8, %p1;", 8, 0 },
        { "setp.eq.u32 %p1, 1, 2;\n cp.async.ca.shared.global [%r1], [%i], 8, %p1;", 8, 8 }, { "cp.async.ca.shared.global [%r1+4], [%i+4], 4;", 0, 0 },
    };
    start();
    CUdeviceptr in = alloc_words(4);
    unsigned char bytes[16];
    for (unsigned i = 0; i < 16; i++)
        bytes[i] = (unsigned char)(0x81 + i);
    OK(cuMemcpyHtoD_v2(in, bytes, 16));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[4096];
        unsigned n = (unsigned)sprintf(text, "%s", KERNEL(" .shared .align 16 .b8 s[16];\n mov.u32 %r1, s;\n mov.u32 %r3, -1;\n st.shared.v4.u32 [%r1], {%r3, %r3, %r3, %r3};\n"));
        n -= (unsigned)strlen(" ret;\n}\n");
        sprintf(text + n, " %s\n cp.async.commit_group;\n %s;\n ld.shared.v4.u32 {%%v0, %%v1, %%v2, %%v3}, [%%r1];\n st.global.v4.u32 [%%o], {%%v0, %%v1, %%v2, %%v3};\n ret;\n}\n", rows[i].line,
                i % 2 ? "cp.async.wait_all" : "cp.async.wait_group 0");
        OK(run_with(text, 1, 1, 0, in));
        for (unsigned b = 0; b < 16; b++) {
            unsigned want = rows[i].bytes ? (b < rows[i].read ? bytes[b] : b < rows[i].bytes ? 0 : 0xff) : b / 4 == 1 ? bytes[b] : 0xff, had = ((unsigned char *)got)[b];
            ck_assert_msg(had == want, "%s: byte %u is %#x, not %#x", rows[i].line, b, had, want);
        }
    }
}
END_TEST

/* ---- atomics ---------------------------------------------------------------------------------------------------------------------------- */

static uint64_t cut(uint64_t v, unsigned bits) { return bits == 64 ? v : v & ((1ull << bits) - 1); }
static __int128 as_signed(uint64_t v, unsigned bits) { return (int64_t)(v << (64 - bits)) >> (64 - bits); }

static uint64_t folded(const char *op, const char *type, unsigned bits, uint64_t had, uint64_t b, uint64_t c, bool global)
{
    const bool is_signed = type[0] == 's';
    if (!strcmp(type, "f32")) { /* in global memory, numbers below the normal ones are nothing, before and after; in shared memory they are not */
        float x = float_of((uint32_t)had), y = float_of((uint32_t)b);
        x = global && fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x, y = global && fpclassify(y) == FP_SUBNORMAL ? copysignf(0, y) : y;
        float sum = x + y;
        return plain(global && fpclassify(sum) == FP_SUBNORMAL ? copysignf(0, sum) : sum);
    }
    if (!strcmp(type, "f64"))
        return plain64(double_of(had) + double_of(b));
    if (!strcmp(type, "f16"))
        return half_of(of_half((uint16_t)had) + of_half((uint16_t)b));
    if (!strcmp(type, "f16x2"))
        return half_of(of_half((uint16_t)had) + of_half((uint16_t)b)) | (uint64_t)half_of(of_half((uint16_t)(had >> 16)) + of_half((uint16_t)(b >> 16))) << 16;
    if (!strcmp(type, "bf16"))
        return plain(float_of((uint32_t)had << 16) + float_of((uint32_t)b << 16)) >> 16;
    if (!strcmp(op, "add"))
        return cut(had + b, bits);
    if (!strcmp(op, "min") || !strcmp(op, "max")) {
        bool less = is_signed ? as_signed(had, bits) < as_signed(b, bits) : had < b;
        return less == (op[1] == 'i') ? had : b;
    }
    if (!strcmp(op, "inc"))
        return had >= b ? 0 : had + 1;
    if (!strcmp(op, "dec"))
        return had == 0 || had > b ? b : had - 1;
    if (!strcmp(op, "cas"))
        return had == b ? c : had;
    return !strcmp(op, "and") ? had & b : !strcmp(op, "or") ? had | b : !strcmp(op, "xor") ? had ^ b : b;
}

START_TEST(atomics_leave_and_give_what_the_isa_says)
{
    static const struct { const char *op, *type; unsigned bits; } rows[] = {
        { "add", "u32", 32 }, { "add", "s32", 32 }, { "add", "u64", 64 }, { "add", "f32", 32 }, { "add", "f64", 64 }, { "add", "f16", 16 }, { "add", "bf16", 16 }, { "add", "f16x2", 32 },
        { "min", "u32", 32 }, { "min", "s32", 32 }, { "min", "u64", 64 }, { "min", "s64", 64 }, { "max", "u32", 32 }, { "max", "s32", 32 }, { "max", "u64", 64 }, { "max", "s64", 64 },
        { "inc", "u32", 32 }, { "dec", "u32", 32 }, { "and", "b32", 32 }, { "and", "b64", 64 }, { "or", "b32", 32 }, { "or", "b64", 64 }, { "xor", "b32", 32 }, { "xor", "b64", 64 },
        { "exch", "b32", 32 }, { "exch", "b64", 64 }, { "cas", "b16", 16 }, { "cas", "b32", 32 }, { "cas", "b64", 64 },
    };
    static const uint64_t whole[] = { 1, 0, 3, 0xffffffffffffffff, 0x7fffffff7fffffff, 0x8000000080000000, 5, 0xffff, 0x8000, 2, 0xfffffffe, 0x100000000, 7, 7 };
    static const uint32_t f32[] = { 0x3f800000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800001, 0x7f7fffff, 0x7f7fffff, 0xff800000, 0x80000000, 0x3f800000, 0x7fc00000, 0x33000000, 0 };
    static const uint64_t f64[] = { 0x3ff0000000000000, 1, 0x8000000000000001, 0x000fffffffffffff, 0x7fefffffffffffff, 0x7fefffffffffffff, 0xfff0000000000000, 0x3ca0000000000000,
                                    0x4340000000000000, 0x8000000000000000, 0x3ff0000000000001, 0xfff8000000000001, 0, 0 };
    static const uint16_t f16[] = { 0x3c00, 0xbc00, 0x4000, 0x0001, 0x8001, 0x0001, 0x5640, 0xd640, 0x7c00, 0x3c00, 0xfc00, 0x3c00, 0x7e00, 0 };
    static const uint16_t bf16[] = { 0x3f80, 0xbf80, 0x4000, 0xc000, 0x0001, 0x8001, 0x4100, 0xc100, 0x7f80, 0x3f80, 0xff80, 0x3f80, 0x7fc0, 0 };
    static const uint64_t firsts[] = { 0, 7, 0xffffffffffffffff, 0x8000000000000000 };
    start();
    CUdeviceptr in = alloc_words(256);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *op = rows[i].op, *type = rows[i].type;
        const unsigned bits = rows[i].bits;
        const bool number = strchr(type, 'f'), cas = !strcmp(op, "cas");
        for (unsigned how = 0; how < 8; how++) { /* in global, shared, generic memory; with scopes and orders; red: no answer */
            static const char *const words[] = { "global.", "shared.", "", "relaxed.gpu.global.", "acq_rel.sys.global.", "release.cta.shared.", "global.", "shared." };
            const bool red = how >= 6, shared = !strncmp(words[how], "shared", 6) || strstr(words[how], ".shared");
            const uint64_t first = cut(number ? 0 : firsts[how % 4], bits);
            uint64_t b[32], c[32], words_in[66];
            for (unsigned l = 0; l < 32; l++) {
                b[l] = cut(!number ? whole[(l * 3 + how) % 14] : !strcmp(type, "f32") ? f32[l % 14] : !strcmp(type, "f64") ? f64[l % 14] : !strcmp(type, "bf16") ? bf16[l % 14] : f16[l % 14] | (uint32_t)f16[(l + 7) % 14] << 16, bits);
                c[l] = cut(whole[(l * 5 + 1) % 14], bits);
                words_in[2 * l] = b[l], words_in[2 * l + 1] = c[l];
            }
            uint64_t now = first;
            for (unsigned l = 0; l < 32 && !number; l++) { /* some meet what they bring */
                words_in[2 * l] = b[l] = l % 3 == 0 ? now : b[l];
                now = folded(op, type, bits, now, b[l], c[l], !shared);
            }
            words_in[64] = first;
            OK(cuMemcpyHtoD_v2(in, words_in, sizeof words_in));
            char text[4096];
            const char *letter = bits == 16 ? "%h" : bits == 64 ? "%x" : "%r";
            if (red && (!strcmp(op, "exch") || cas))
                continue;
            unsigned n = (unsigned)sprintf(text, HEAD ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n .reg .b16 %%h<8>;\n .reg .b32 %%r<8>, %%t, %%s;\n .reg .b64 %%x<8>, %%o, %%i, %%p, %%m;\n .shared .align 8 .b8 s[8];\n"
                                           " ld.param.u64 %%o, [out];\n ld.param.u64 %%i, [in];\n mov.u32 %%t, %%tid.x;\n mov.u32 %%s, s;\n ld.global.u64 %%x5, [%%i+512];\n st.shared.u64 [%%s], %%x5;\n st.global.u64 [%%o+256], %%x5;\n bar.sync 0;\n"
                                           " mad.wide.u32 %%p, %%t, 16, %%i;\n add.u64 %%m, %%o, 256;\n");
            n += (unsigned)sprintf(text + n, " ld.global.b%u %s1, [%%p];\n ld.global.b%u %s2, [%%p+8];\n %s.%s%s%s.%s %s%s[%s], %s1%s%s;\n", bits, letter, bits, letter, red ? "red" : "atom", words[how], op,
                                   strstr(type, "16") && number ? ".noftz" : "", type, red ? "" : letter, red ? "" : "0, ", shared ? "%s" : "%m", letter, cas ? ", " : "", cas ? (bits == 16 ? "%h2" : bits == 64 ? "%x2" : "%r2") : "");
            if (!red)
                n += (unsigned)sprintf(text + n, " mad.wide.u32 %%p, %%t, 8, %%o;\n st.global.b%u [%%p], %s0;\n", bits, letter);
            sprintf(text + n, " bar.sync 0;\n%s ret;\n}\n", shared ? " ld.shared.u64 %x5, [%s];\n st.global.u64 [%o+256], %x5;\n" : "");
            OK(run_with(text, 1, 32, 0, in));
            uint64_t had = first, answer = 0;
            for (unsigned l = 0; l < 32; l++) {
                memcpy(&answer, (unsigned char *)got + 8 * l, 8);
                ck_assert_msg(red || answer == had, "%s%s.%s, lane %u: %#llx, not %#llx", words[how], op, type, l, (unsigned long long)answer, (unsigned long long)had);
                had = folded(op, type, bits, had, b[l], c[l], !shared);
            }
            memcpy(&answer, (unsigned char *)got + 256, bits / 8);
            ck_assert_msg(cut(answer, bits) == had, "%s%s.%s leaves %#llx, not %#llx", words[how], op, type, (unsigned long long)answer, (unsigned long long)had);
        }
    }
}
END_TEST

/* ---- loads and stores --------------------------------------------------------------------------------------------------------------------- */

static const unsigned char pattern[16] = { 0x80, 0x01, 0x7f, 0xfe, 0xff, 0x00, 0x9c, 0x35, 0x08, 0xf1, 0x00, 0x80, 0x55, 0xaa, 0xff, 0x7f };
#define PATTERN "128, 1, 127, 254, 255, 0, 156, 53, 8, 241, 0, 128, 85, 170, 255, 127"

/* n numbers of a type go from a space through registers that may be wider (a signed one fills them with its sign) to a space again, low bits alone. */
START_TEST(loads_and_stores_of_every_type_and_space)
{
    static const struct { const char *type; unsigned bytes; } types[] = { { "u8", 1 }, { "s8", 1 }, { "b8", 1 }, { "u16", 2 }, { "s16", 2 }, { "b16", 2 }, { "u32", 4 }, { "s32", 4 },
                                                                          { "b32", 4 }, { "f32", 4 }, { "u64", 8 }, { "s64", 8 }, { "b64", 8 }, { "f64", 8 } };
    static const struct { const char *space, *at; } spaces[] = { { ".global", "%g" }, { ".shared", "%s" }, { ".local", "l" }, { ".const", "c" }, { "", "%g" }, { "", "%y" } };
    start();
    CUdeviceptr in = alloc_words(4);
    OK(cuMemcpyHtoD_v2(in, pattern, 16));
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        for (unsigned n = 1; n <= 4 && n * types[k].bytes <= 16; n *= 2)
            for (unsigned width = types[k].type[0] == 'f' ? types[k].bytes : types[k].bytes < 2 ? 2 : types[k].bytes; width <= (types[k].type[0] == 'f' ? types[k].bytes : 8); width *= 2)
                for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
                    const unsigned bytes = types[k].bytes;
                    const char *letter = types[k].type[0] == 'f' ? (bytes == 4 ? "%f" : "%d") : width == 2 ? "%h" : width == 4 ? "%r" : "%x", *store = i == 3 ? ".global" : spaces[i].space;
                    char text[8192], list[64], vector[8] = "", name[64];
                    if (n > 1)
                        sprintf(vector, ".v%u", n);
                    if (n > 1)
                        registers(list, letter, 0, n);
                    else
                        sprintf(list, "%s0", letter);
                    /* the space's 16 bytes are the pattern; the answer's first 16 bytes are the space after the store, the registers follow */
                    unsigned t = (unsigned)sprintf(text, HEAD ".const .align 16 .b8 c[16] = {" PATTERN "};\n.visible .entry k(.param .u64 out, .param .u64 in)\n{\n .reg .b16 %%h<8>, %%q;\n .reg .b32 %%r<8>, %%s, %%w;\n"
                                                   " .reg .b64 %%x<8>, %%o, %%i, %%g, %%y;\n .reg .f32 %%f<4>;\n .reg .f64 %%d<4>;\n .shared .align 16 .b8 s[16];\n .local .align 16 .b8 l[16];\n"
                                                   " ld.param.u64 %%o, [out];\n ld.param.u64 %%g, [in];\n mov.u32 %%s, s;\n cvt.u64.u32 %%y, %%s;\n cvta.shared.u64 %%y, %%y;\n mov.u32 %%w, 0x77777777;\n");
                    for (unsigned b = 0; b < 16; b++)
                        t += (unsigned)sprintf(text + t, " mov.u16 %%q, %u;\n st.shared.b8 [%%s+%u], %%q;\n st.local.b8 [l+%u], %%q;\n", pattern[b], b, b);
                    sprintf(name, "ld%s%s.%s", spaces[i].space, vector, types[k].type);
                    t += (unsigned)sprintf(text + t, " %s %s, [%s];\n", name, list, spaces[i].at);
                    const char *to = i == 3 ? "%g" : spaces[i].at;
                    for (unsigned j = 0; j < n; j++)
                        t += (unsigned)sprintf(text + t, " st.global.%c%u [%%o+%u], %s%u;\n", letter[1] == 'f' || letter[1] == 'd' ? 'f' : 'b', 8 * width, 16 + 8 * j, letter, j);
                    for (unsigned j = 0; j < 4; j++) /* other bytes, then the store */
                        t += (unsigned)sprintf(text + t, " st%s.u32 [%s+%u], %%w;\n", store, to, 4 * j);
                    t += (unsigned)sprintf(text + t, " st%s%s.%s [%s], %s;\n", store, vector, types[k].type, to, list);
                    for (unsigned b = 0; b < 16; b++)
                        t += (unsigned)sprintf(text + t, " ld%s.u8 %%q, [%s+%u];\n st.global.u8 [%%o+%u], %%q;\n", store, to, b, b);
                    sprintf(text + t, " ret;\n}\n");
                    OK(cuMemcpyHtoD_v2(in, pattern, 16));
                    OK(run_with(text, 1, 1, 0, in));
                    for (unsigned j = 0; j < n; j++) {
                        uint64_t v = 0, want = 0;
                        memcpy(&v, (unsigned char *)got + 16 + 8 * j, width);
                        memcpy(&want, pattern + j * bytes, bytes);
                        want = cut(types[k].type[0] == 's' ? (uint64_t)as_signed(want, 8 * bytes) : want, 8 * width);
                        ck_assert_msg(v == want, "%s into %u bits, number %u: %#llx, not %#llx", name, 8 * width, j, (unsigned long long)v, (unsigned long long)want);
                    }
                    for (unsigned b = 0; b < 16; b++) {
                        unsigned had = ((unsigned char *)got)[b], want = b < n * bytes ? pattern[b] : 0x77;
                        ck_assert_msg(had == want, "st%s%s.%s, byte %u: %#x, not %#x", store, vector, types[k].type, b, had, want);
                    }
                }
}
END_TEST

/* Scopes, orders, caches, fences and sleeps change nothing of what is loaded and stored. */
START_TEST(hints_are_taken_and_change_nothing)
{
    static const char *const loads[] = { "ld.volatile.global.u32", "ld.weak.global.u32", "ld.relaxed.gpu.global.u32", "ld.acquire.sys.global.u32", "ld.relaxed.cta.u32", "ld.global.ca.u32", "ld.global.cg.u32",
                                         "ld.global.cs.u32", "ld.global.lu.u32", "ld.global.cv.u32", "ld.global.nc.u32", "ld.global.nc.L1::evict_last.u32", "ld.global.L1::no_allocate.L2::128B.u32", "ldu.global.u32" };
    static const char *const stores[] = { "st.volatile.global.u32", "st.weak.global.u32", "st.relaxed.gpu.global.u32", "st.release.sys.global.u32", "st.global.wb.u32", "st.global.cg.u32", "st.global.cs.u32",
                                          "st.global.wt.u32", "st.global.L1::evict_first.u32" };
    static const char *const others[] = { "membar.cta;", "membar.gl;", "membar.sys;", "fence.sc.gpu;", "fence.acq_rel.cta;", "fence.acq_rel.sys;", "prefetch.global.L1 [%i];", "prefetch.global.L2 [%i];",
                                          "prefetchu.L1 [%i];", "nanosleep.u32 20;", "nanosleep.u32 %r1;", "pmevent 3;", "applypriority.global.L2::evict_normal [%i], 128;",
                                          "createpolicy.fractional.L2::evict_last.b64 %x5, 1.0;", "bar.warp.sync -1;", "discard.global.L2 [%i], 128;", "griddepcontrol.wait;",
                                          "griddepcontrol.launch_dependents;", "setmaxnreg.inc.sync.aligned.u32 64;" };
    enum { L = sizeof loads / sizeof loads[0], S = sizeof stores / sizeof stores[0], O = sizeof others / sizeof others[0] };
    start();
    CUdeviceptr in = alloc_words(1);
    OK(cuMemsetD32_v2(in, 0x80fe0137, 1));
    for (unsigned i = 0; i < L * S + O; i++) {
        char text[4096];
        const char *load = loads[i < L * S ? i % L : 0], *store = stores[i < L * S ? i / L : 0];
        unsigned n = (unsigned)sprintf(text, "%s", KERNEL(""));
        n -= (unsigned)strlen(" ret;\n}\n");
        sprintf(text + n, " mov.u32 %%r1, 5;\n %s %%r2, [%%i];\n %s\n add.u32 %%r2, %%r2, %%r1;\n %s [%%o], %%r2;\n ret;\n}\n", load, i < L * S ? "" : others[i - L * S], store);
        OK(run_with(text, 1, 32, 0, in));
        ck_assert_msg(got[0] == 0x80fe013c && got[1] == 0, "%s, %s, %s: %#x", load, i < L * S ? "nothing" : others[i - L * S], store, got[0]);
    }
}
END_TEST

RUN_SUITE("simgpu ptx memory", matrices_lie_and_are_multiplied_as_the_isa_says, ldmatrix_gives_each_lane_its_pairs, cp_async_copies_or_fills_with_zeros,
          atomics_leave_and_give_what_the_isa_says, loads_and_stores_of_every_type_and_space, hints_are_taken_and_change_nothing)
