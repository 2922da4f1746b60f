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
