/*
 * PyTorch's OffsetCalculator<n, unsigned>, as it lies in parameter blocks: from an element's number to byte offsets of n
 * operands. { int dims; { u32 divisor, magic, shift } size[25]; u32 stride[25][n]; } Dimension 0 varies fastest. What lies
 * beyond dims is uninitialised.
 */
#ifndef SIMCUDA_OFFSET_H
#define SIMCUDA_OFFSET_H

#include <stddef.h>
#include <stdint.h>

#define OFFSET_BYTES(n) (4u + 300u + 100u * (n))

struct offset_calc { const uint32_t *word; int n; };

static inline int offset_dims(const struct offset_calc *c) { return (int)c->word[0]; }
static inline uint32_t offset_size(const struct offset_calc *c, int d) { return c->word[1 + 3 * d]; }
static inline uint32_t offset_stride(const struct offset_calc *c, int d, int operand)
{
    return c->word[76 + d * c->n + operand];
}

static inline void offset_get(const struct offset_calc *c, uint32_t i, uint32_t *out)
{
    for (int a = 0; a < c->n; a++) out[a] = 0;
    int dims = offset_dims(c);
    for (int d = 0; d < dims; d++) {
        uint32_t size = offset_size(c, d), q = i / size, r = i - q * size;
        for (int a = 0; a < c->n; a++) out[a] += r * offset_stride(c, d, a);
        i = q;
    }
}

#endif
