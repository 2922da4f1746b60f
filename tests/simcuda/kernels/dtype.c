#include "tests/simcuda/kernels/dtype.h"

#include <math.h>
#include <stdlib.h>

static const struct { const char *text; enum dtype t; } names[] = {
    { "float", DT_F32 }, { "double", DT_F64 }, { "c10::Half", DT_F16 }, { "c10::BFloat16", DT_BF16 }, { "long", DT_I64 },
    { "int", DT_I32 }, { "short", DT_I16 }, { "signed char", DT_I8 }, { "char", DT_I8 }, { "unsigned char", DT_U8 },
    { "bool", DT_BOOL }, { "unsigned short", DT_U16 }, { "unsigned int", DT_U32 }, { "unsigned long", DT_U64 },
    { "unsigned long long", DT_U64 }, { "long long", DT_I64 }, { "c10::complex<float>", DT_C32 },
    { "c10::complex<double>", DT_C64 }, { "__nv_bfloat16", DT_BF16 }, { "__half", DT_F16 }, { "cutlass::half_t", DT_F16 },
    { "cutlass::bfloat16_t", DT_BF16 },
};

enum dtype dtype_parse(const char *text)
{
    size_t n = strlen(text);
    if (n > 6 && !strcmp(text + n - 6, " const")) n -= 6;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].text) == n && !strncmp(names[i].text, text, n)) return names[i].t;
    const char *o = strstr(text, "OpaqueType<");
    if (o) {
        switch (atoi(o + 11)) {
        case 1: return DT_RAW1;
        case 2: return DT_RAW2;
        case 4: return DT_RAW4;
        case 8: return DT_RAW8;
        case 16: return DT_RAW16;
        }
    }
    return DT_NONE;
}

enum dtype dtype_parse_pointer(const char *text)
{
    char type[48];
    size_t n = strcspn(text, "*");
    if (n >= sizeof type || text[n] != '*' || text[n + 1]) return DT_NONE;
    memcpy(type, text, n);
    type[n] = 0;
    return dtype_parse(type);
}

enum dtype dtype_of_scalar_type(int t)
{
    switch (t) {
    case 0: return DT_U8;
    case 1: return DT_I8;
    case 2: return DT_I16;
    case 3: return DT_I32;
    case 4: return DT_I64;
    case 5: return DT_F16;
    case 6: return DT_F32;
    case 7: return DT_F64;
    case 9: return DT_C32;
    case 10: return DT_C64;
    case 11: return DT_BOOL;
    case 15: return DT_BF16;
    case 27: return DT_U16;
    case 28: return DT_U32;
    case 29: return DT_U64;
    default: return DT_NONE;
    }
}

size_t dtype_bytes(enum dtype t)
{
    static const uint8_t bytes[] = { [DT_F32] = 4, [DT_F64] = 8, [DT_F16] = 2, [DT_BF16] = 2, [DT_I64] = 8, [DT_I32] = 4,
                                     [DT_I16] = 2, [DT_I8] = 1, [DT_U8] = 1, [DT_BOOL] = 1, [DT_U16] = 2, [DT_U32] = 4,
                                     [DT_U64] = 8, [DT_C32] = 8, [DT_C64] = 16, [DT_RAW1] = 1, [DT_RAW2] = 2,
                                     [DT_RAW4] = 4, [DT_RAW8] = 8, [DT_RAW16] = 16 };
    return bytes[t];
}

enum dclass dtype_class(enum dtype t)
{
    switch (t) {
    case DT_F32: case DT_F16: case DT_BF16: return DC_F;
    case DT_F64: return DC_D;
    case DT_NONE: case DT_C32: case DT_C64: case DT_RAW16: return DC_NONE;
    default: return DC_I;
    }
}

enum dclass dtype_class_any(enum dtype t) { return t == DT_C32 || t == DT_C64 ? DC_C : dtype_class(t); }

float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu, u;
    if (e == 31) u = sign | 0x7f800000u | m << 13;
    else if (e) u = sign | (e + 112) << 23 | m << 13;
    else {
        float f = (float)m * 0x1p-24f;
        memcpy(&u, &f, 4);
        u |= sign;
    }
    float f;
    memcpy(&f, &u, 4);
    return f;
}

uint16_t f32_to_f16(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return sign | 0x7fffu;
    if (u >= 0x47800000u) return sign | 0x7c00u;           /* 65536 and more */
    if (u < 0x38800000u) {                                 /* below the least normal: units of 2^-24, to nearest even */
        float a;
        memcpy(&a, &u, 4);
        return (uint16_t)(sign | (uint16_t)lrintf(a * 0x1p24f));
    }
    uint32_t r = u + 0xfffu + (u >> 13 & 1u);
    return (uint16_t)(sign | (uint16_t)((r - 0x38000000u) >> 13));
}

/* Loads and stores for one memory type: M the C type in memory, GET/PUT convert. */
#define LOAD_LOOP(M, D, conv)                                                                                         \
    do {                                                                                                              \
        D *d = dst;                                                                                                   \
        if (stride == (ptrdiff_t)sizeof(M)) {                                                                         \
            const M *s = (const M *)src;                                                                              \
            for (size_t i = 0; i < n; i++) { M v = s[i]; d[i] = (D)(conv); }                                          \
        } else                                                                                                        \
            for (size_t i = 0; i < n; i++) { M v = *(const M *)(src + (ptrdiff_t)i * stride); d[i] = (D)(conv); }      \
    } while (0)

#define STORE_LOOP(M, D, conv)                                                                                        \
    do {                                                                                                              \
        const D *s = src;                                                                                             \
        if (stride == (ptrdiff_t)sizeof(M)) {                                                                         \
            M *d = (M *)dst;                                                                                          \
            for (size_t i = 0; i < n; i++) { D v = s[i]; d[i] = (M)(conv); }                                          \
        } else                                                                                                        \
            for (size_t i = 0; i < n; i++) { D v = s[i]; *(M *)(dst + (ptrdiff_t)i * stride) = (M)(conv); }            \
    } while (0)

/* What is stored as an integer from a floating value: out of range, the device gives the nearest end (0 for NaN). */
static inline int64_t to_i64(double v)
{
    if (v != v) return 0;
    if (v >= 0x1p63) return INT64_MAX;
    if (v < -0x1p63) return INT64_MIN;
    return (int64_t)v;
}

#define LOAD_ALL(D, truth)                                                                                            \
    switch (t) {                                                                                                      \
    case DT_F32: LOAD_LOOP(float, D, truth(v)); break;                                                                \
    case DT_F64: LOAD_LOOP(double, D, truth(v)); break;                                                               \
    case DT_F16: LOAD_LOOP(uint16_t, D, truth(f16_to_f32(v))); break;                                                 \
    case DT_BF16: LOAD_LOOP(uint16_t, D, truth(bf16_to_f32(v))); break;                                               \
    case DT_I64: LOAD_LOOP(int64_t, D, truth(v)); break;                                                              \
    case DT_I32: LOAD_LOOP(int32_t, D, truth(v)); break;                                                              \
    case DT_I16: LOAD_LOOP(int16_t, D, truth(v)); break;                                                              \
    case DT_I8: LOAD_LOOP(int8_t, D, truth(v)); break;                                                                \
    case DT_RAW1: case DT_U8: LOAD_LOOP(uint8_t, D, truth(v)); break;                                                 \
    case DT_BOOL: LOAD_LOOP(uint8_t, D, v != 0); break;                                                               \
    case DT_RAW2: case DT_U16: LOAD_LOOP(uint16_t, D, truth(v)); break;                                               \
    case DT_RAW4: case DT_U32: LOAD_LOOP(uint32_t, D, truth(v)); break;                                               \
    case DT_RAW8: case DT_U64: LOAD_LOOP(uint64_t, D, truth(v)); break;                                               \
    case DT_C32: LOAD_LOOP(float, D, truth(v)); break;                                                                \
    case DT_C64: LOAD_LOOP(double, D, truth(v)); break;                                                               \
    default: break;                                                                                                   \
    }

#define STORE_ALL(D, toint)                                                                                           \
    switch (t) {                                                                                                      \
    case DT_F32: STORE_LOOP(float, D, v); break;                                                                      \
    case DT_F64: STORE_LOOP(double, D, v); break;                                                                     \
    case DT_F16: STORE_LOOP(uint16_t, D, f32_to_f16((float)v)); break;                                                \
    case DT_BF16: STORE_LOOP(uint16_t, D, f32_to_bf16((float)v)); break;                                              \
    case DT_RAW8: case DT_U64: case DT_I64: STORE_LOOP(int64_t, D, toint(v)); break;                                  \
    case DT_RAW4: case DT_U32: case DT_I32: STORE_LOOP(uint32_t, D, toint(v)); break;                                 \
    case DT_RAW2: case DT_U16: case DT_I16: STORE_LOOP(uint16_t, D, toint(v)); break;                                 \
    case DT_RAW1: case DT_I8: case DT_U8: STORE_LOOP(uint8_t, D, toint(v)); break;                                    \
    case DT_BOOL: STORE_LOOP(uint8_t, D, v != 0); break;                                                              \
    case DT_C32: for (size_t i = 0; i < n; i++) { float *q = (float *)(dst + (ptrdiff_t)i * stride);                  \
                     q[0] = (float)((const D *)src)[i]; q[1] = 0; } break;                                            \
    case DT_C64: for (size_t i = 0; i < n; i++) { double *q = (double *)(dst + (ptrdiff_t)i * stride);                \
                     q[0] = (double)((const D *)src)[i]; q[1] = 0; } break;                                           \
    default: break;                                                                                                   \
    }

#define AS_IS(v) (v)
#define NONZERO(v) ((v) != 0)
#define FLOAT_INT(v) to_i64((double)(v))

void dtype_load(enum dtype t, enum dclass c, void *dst, const void *from, ptrdiff_t stride, size_t n)
{
    const char *src = from;
    switch (c) {
    case DC_F:
        if (t == DT_F32 && stride == 4) memcpy(dst, src, n * 4);
        else LOAD_ALL(float, AS_IS)
        break;
    case DC_D: LOAD_ALL(double, AS_IS) break;
    case DC_I:
        switch (t) {
        case DT_F32: LOAD_LOOP(float, int64_t, to_i64(v)); break;
        case DT_F64: LOAD_LOOP(double, int64_t, to_i64(v)); break;
        case DT_F16: LOAD_LOOP(uint16_t, int64_t, to_i64(f16_to_f32(v))); break;
        case DT_BF16: LOAD_LOOP(uint16_t, int64_t, to_i64(bf16_to_f32(v))); break;
        default: LOAD_ALL(int64_t, AS_IS)
        }
        break;
    case DC_B: LOAD_ALL(uint8_t, NONZERO) break;
    case DC_C:
        for (size_t i = 0; i < n; i++) {
            double *z = (double *)dst + 2 * i;
            const char *at = src + (ptrdiff_t)i * stride;
            dtype_load(t, DC_D, z, at, 0, 1);
            z[1] = t == DT_C32 ? ((const float *)at)[1] : t == DT_C64 ? ((const double *)at)[1] : 0;
        }
        break;
    case DC_NONE: break;
    }
}

void dtype_store(enum dtype t, enum dclass c, const void *src, void *to, ptrdiff_t stride, size_t n)
{
    char *dst = to;
    switch (c) {
    case DC_F:
        if (t == DT_F32 && stride == 4) memcpy(dst, src, n * 4);
        else STORE_ALL(float, FLOAT_INT)
        break;
    case DC_D: STORE_ALL(double, FLOAT_INT) break;
    case DC_I: STORE_ALL(int64_t, AS_IS) break;
    case DC_B: STORE_ALL(uint8_t, AS_IS) break;
    case DC_C:
        for (size_t i = 0; i < n; i++) {
            const double *z = (const double *)src + 2 * i;
            char *at = dst + (ptrdiff_t)i * stride;
            dtype_store(t, DC_D, z, at, 0, 1);
            if (t == DT_C32) ((float *)at)[1] = (float)z[1];
            else if (t == DT_C64) ((double *)at)[1] = z[1];
        }
        break;
    case DC_NONE: break;
    }
}

double dtype_get(enum dtype t, const void *p, ptrdiff_t i)
{
    double v = 0;
    dtype_load(t, DC_D, &v, (const char *)p + i * (ptrdiff_t)dtype_bytes(t), 0, 1);
    return v;
}

int64_t dtype_geti(enum dtype t, const void *p, ptrdiff_t i)
{
    int64_t v = 0;
    dtype_load(t, DC_I, &v, (const char *)p + i * (ptrdiff_t)dtype_bytes(t), 0, 1);
    return v;
}

void dtype_set(enum dtype t, void *p, ptrdiff_t i, double v)
{
    dtype_store(t, DC_D, &v, (char *)p + i * (ptrdiff_t)dtype_bytes(t), 0, 1);
}

void dtype_seti(enum dtype t, void *p, ptrdiff_t i, int64_t v)
{
    dtype_store(t, DC_I, &v, (char *)p + i * (ptrdiff_t)dtype_bytes(t), 0, 1);
}

double dtype_round(enum dtype t, double v)
{
    uint64_t cell[2] = { 0 };
    dtype_set(t, cell, 0, v);
    return dtype_get(t, cell, 0);
}
