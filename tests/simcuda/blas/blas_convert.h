/*
 * Elements of the floating types that matmuls take: sizes, widening to float and rounding back (to nearest even, as devices
 * round). Every function is pure; the same bits come out on every processor.
 */
#ifndef BLAS_CONVERT_H
#define BLAS_CONVERT_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of one element; 0 for a type that is not supported. */
size_t blas_type_bytes(int type);
/* Float, half and bfloat16 to float, n elements. */
void blas_widen(int type, const void *from, float *to, size_t n);
/* The way back. */
void blas_narrow(int type, const float *from, void *to, size_t n);

#endif
