/*
 * Element types of device memory, and moving elements between them and the four types that kernels compute in:
 * float (for f32, f16, bf16), double, int64_t (all integers) and uint8_t (truth values).
 *
 * Conversions are C's, f16 and bf16 round to nearest even, a double reaches f16 or bf16 through f32, as device code does.
 * Threads: no state. Errors: none.
 */
#ifndef SIMCUDA_DTYPE_H
#define SIMCUDA_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum dtype { DT_NONE, DT_F32, DT_F64, DT_F16, DT_BF16, DT_I64, DT_I32, DT_I16, DT_I8, DT_U8, DT_BOOL, DT_U16, DT_U32, DT_U64,
             DT_C32, DT_C64, DT_RAW1, DT_RAW2, DT_RAW4, DT_RAW8, DT_RAW16 };

/* DC_C: complex numbers, two doubles each. */
enum dclass { DC_NONE, DC_F, DC_D, DC_I, DC_B, DC_C };

/* From the text of a C++ type: "float", "c10::BFloat16", "... OpaqueType<4u>"; DT_NONE where it is none of these. */
enum dtype dtype_parse(const char *text);
/* The type before the star of "T const*", where the text is of this form. */
enum dtype dtype_parse_pointer(const char *text);
/* From c10::ScalarType as casting kernels carry it. */
enum dtype dtype_of_scalar_type(int t);
size_t dtype_bytes(enum dtype t);
enum dclass dtype_class(enum dtype t);

static inline float bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint16_t f32_to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    uint32_t r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : r);
}

float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);

/* The class of elements that elementwise functors compute in: complex types too, which dtype_class() leaves out. */
enum dclass dtype_class_any(enum dtype t);
static inline size_t dclass_bytes(enum dclass c) { return c == DC_F ? 4 : c == DC_B ? 1 : c == DC_C ? 16 : 8; }

/* n elements, stride_bytes apart in memory, to or from a dense array of class c (4, 8, 8, 1 or 16 bytes each). A complex number that
   is stored as a real one loses its imaginary part. */
void dtype_load(enum dtype t, enum dclass c, void *dst, const void *src, ptrdiff_t stride_bytes, size_t n);
void dtype_store(enum dtype t, enum dclass c, const void *src, void *dst, ptrdiff_t stride_bytes, size_t n);
/* Element i of a dense array. */
double dtype_get(enum dtype t, const void *p, ptrdiff_t i);
int64_t dtype_geti(enum dtype t, const void *p, ptrdiff_t i);
void dtype_set(enum dtype t, void *p, ptrdiff_t i, double v);
void dtype_seti(enum dtype t, void *p, ptrdiff_t i, int64_t v);
/* v as it is after a round trip through t. */
double dtype_round(enum dtype t, double v);

#endif
