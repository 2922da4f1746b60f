/*
 * How PyTorch hands tensors to kernels by value.
 *   packed accessor <n, index>: { T *data; index size[n]; index stride[n] }, strides in elements
 *   TensorInfo <index>: { T *data; index size[25]; index stride[25]; int dims }, strides in elements, the last dimension fastest
 * index is int (or unsigned) or int64; what lies beyond dims is uninitialised.
 */
#ifndef SIMCUDA_ACCESSOR_H
#define SIMCUDA_ACCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ACCESSOR_MAX 5
struct accessor { char *data; int64_t size[ACCESSOR_MAX], stride[ACCESSOR_MAX]; };

static inline struct accessor accessor_read(const void *p, int n, bool wide)
{
    struct accessor a;
    memcpy(&a.data, p, 8);
    const int32_t *s = (const int32_t *)((const char *)p + 8);
    const int64_t *w = (const int64_t *)s;
    for (int i = 0; i < n; i++) {
        a.size[i] = wide ? w[i] : s[i];
        a.stride[i] = wide ? w[n + i] : s[n + i];
    }
    return a;
}

/* An accessor of (batch, planes, [[t,] h,] w), its space as three axes: those that it has not have one place. */
struct space { struct accessor a; int64_t size[3], stride[3]; };

static inline struct space space_read(const void *p, int axes)
{
    struct space v = { accessor_read(p, 2 + axes, true), { 1, 1, 1 }, { 0, 0, 0 } };
    for (int i = 0; i < axes; i++) {
        v.size[3 - axes + i] = v.a.size[2 + i];
        v.stride[3 - axes + i] = v.a.stride[2 + i];
    }
    return v;
}

/* Element offset of a place. */
static inline int64_t space_offset(const struct space *v, int64_t n, int64_t c, const int64_t *at)
{
    return n * v->a.stride[0] + c * v->a.stride[1] + at[0] * v->stride[0] + at[1] * v->stride[1] + at[2] * v->stride[2];
}

/* The i-th place of a plane, and how many it has. */
static inline void space_place(const struct space *v, int64_t i, int64_t *at)
{
    at[2] = i % v->size[2];
    at[1] = i / v->size[2] % v->size[1];
    at[0] = i / v->size[2] / v->size[1];
}

static inline int64_t space_places(const struct space *v) { return v->size[0] * v->size[1] * v->size[2]; }

#define TINFO_MAX 25
struct tinfo { char *data; int dims; int64_t size[TINFO_MAX], stride[TINFO_MAX]; };

/* bytes: of the parameter, 216 with 32-bit indices, 416 with 64-bit ones. */
static inline struct tinfo tinfo_read(const void *p, uint32_t bytes)
{
    struct tinfo t;
    bool wide = bytes > 216;
    memcpy(&t.data, p, 8);
    const uint32_t *s = (const uint32_t *)((const char *)p + 8);
    const int64_t *w = (const int64_t *)s;
    memcpy(&t.dims, (const char *)p + 8 + (wide ? 400 : 200), 4);
    for (int i = 0; i < t.dims && i < TINFO_MAX; i++) {
        t.size[i] = wide ? w[i] : s[i];
        t.stride[i] = wide ? w[TINFO_MAX + i] : s[TINFO_MAX + i];
    }
    return t;
}

/* Element offset of the i-th element. */
static inline int64_t tinfo_offset(const struct tinfo *t, int64_t i)
{
    int64_t off = 0;
    for (int d = t->dims - 1; d > 0; d--) {
        off += i % t->size[d] * t->stride[d];
        i /= t->size[d];
    }
    return t->dims ? off + i * t->stride[0] : 0;
}

#endif
