/*
 * Rows of numbers in device memory, as kernels that work row by row want them: loaded into doubles, stored back rounded to
 * the element type. Scratch of any length on the heap; a kernel that ends at an unmapped address leaves it behind.
 */
#ifndef SIMCUDA_ROWS_H
#define SIMCUDA_ROWS_H

#include "tests/simcuda/kernels/kern.h"

static inline void row_load(enum dtype t, double *dst, const void *base, int64_t first, int64_t stride, int64_t n)
{
    int64_t es = (int64_t)dtype_bytes(t);
    dtype_load(t, DC_D, dst, (const char *)base + first * es, (ptrdiff_t)(stride * es), (size_t)n);
}

static inline void row_store(enum dtype t, const double *src, void *base, int64_t first, int64_t stride, int64_t n)
{
    int64_t es = (int64_t)dtype_bytes(t);
    dtype_store(t, DC_D, src, (char *)base + first * es, (ptrdiff_t)(stride * es), (size_t)n);
}

static inline void rowf_load(enum dtype t, float *dst, const void *base, int64_t first, int64_t stride, int64_t n)
{
    int64_t es = (int64_t)dtype_bytes(t);
    dtype_load(t, DC_F, dst, (const char *)base + first * es, (ptrdiff_t)(stride * es), (size_t)n);
}

static inline void rowf_store(enum dtype t, const float *src, void *base, int64_t first, int64_t stride, int64_t n)
{
    int64_t es = (int64_t)dtype_bytes(t);
    dtype_store(t, DC_F, src, (char *)base + first * es, (ptrdiff_t)(stride * es), (size_t)n);
}

/* Doubles for n rows of the given length; NULL for none. The caller frees. */
static inline double *row_scratch(int64_t n)
{
    return malloc(sizeof(double) * (size_t)(n > 0 ? n : 1));
}

#endif
