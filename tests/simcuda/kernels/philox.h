/*
 * Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011), and what cuRAND's documentation says
 * of its use: a thread's subsequence is its counter's upper half, each call takes the next counter and gives four words.
 * PyTorch's seed by value: { seed or seed *; offset or offset *; offset within the graph; bool captured }.
 */
#ifndef SIMCUDA_PHILOX_H
#define SIMCUDA_PHILOX_H

#include <stdint.h>
#include <string.h>

struct philox_seed { uint64_t seed, offset; };

static inline struct philox_seed philox_unpack(const void *param)
{
    uint64_t w[4];
    memcpy(w, param, sizeof w);
    struct philox_seed s = { w[0], w[1] };
    if (w[3] & 0xff) {
        s.seed = *(const uint64_t *)(uintptr_t)w[0];
        s.offset = *(const uint64_t *)(uintptr_t)w[1] + (uint32_t)w[2];
    }
    return s;
}

static inline void philox(uint64_t seed, uint64_t subsequence, uint64_t counter, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = (uint32_t)subsequence, c3 = (uint32_t)(subsequence >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* In (0, 1]. */
static inline float philox_uniform(uint32_t x) { return (float)x * 0x1p-32f + 0x1p-33f; }

/* In (0, 1], from two words. */
static inline double philox_uniform_double(uint32_t x, uint32_t y)
{
    return (double)((uint64_t)x ^ (uint64_t)y << 21) * 0x1p-53 + 0x1p-54;
}

#endif
