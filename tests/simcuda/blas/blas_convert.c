#include "tests/simcuda/blas/blas_convert.h"

#include <string.h>

#include "tests/simcuda/blas/blas_abi.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define BLAS_F16C 1
#endif

size_t blas_type_bytes(int type)
{
    switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_32F: return 4;
    case CUDA_R_64F:
    case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
    default: return 0;
    }
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = (h >> 10) & 31u, man = h & 0x3ffu;

    if (exp == 31) /* a quiet NaN stays one, a signalling one becomes quiet, as the processor's own instruction has it */
        return float_of(sign | 0x7f800000u | (man << 13) | (man ? 0x400000u : 0));
    if (exp)
        return float_of(sign | ((exp + 112) << 23) | (man << 13));
    return float_of(sign | bits_of((float)man * 0x1p-24f));
}

static uint16_t float_to_half(float f)
{
    uint32_t b = bits_of(f), sign = (b >> 16) & 0x8000u, abs = b & 0x7fffffffu;

    if (abs > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((abs >> 13) & 0x1ffu));
    if (abs >= 0x477ff000u) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (abs < 0x38800000u) { /* below the smallest normal half: the addition rounds at the last place of a subnormal */
        uint32_t sum = bits_of(float_of(abs) + 0.5f);
        return (uint16_t)(sign | (sum - 0x3f000000u));
    }
    abs += 0xfffu + ((abs >> 13) & 1u);
    return (uint16_t)(sign | ((abs - 0x38000000u) >> 13));
}

#ifdef BLAS_F16C
__attribute__((target("avx,f16c"))) static size_t widen_halves(const uint16_t *from, float *to, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    return i;
}
__attribute__((target("avx,f16c"))) static size_t narrow_halves(const float *from, uint16_t *to, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
static int have_f16c(void)
{
    return __builtin_cpu_supports("avx2"); /* every processor with AVX2 has F16C, which not every compiler can ask for */
}
#else
static size_t widen_halves(const uint16_t *from, float *to, size_t n) { (void)from, (void)to, (void)n; return 0; }
static size_t narrow_halves(const float *from, uint16_t *to, size_t n) { (void)from, (void)to, (void)n; return 0; }
static int have_f16c(void) { return 0; }
#endif

void blas_widen(int type, const void *from, float *to, size_t n)
{
    const uint16_t *h = from;
    size_t i = 0;

    if (type == CUDA_R_32F) {
        memcpy(to, from, n * sizeof *to);
    } else if (type == CUDA_R_16BF) {
        for (; i < n; i++)
            to[i] = float_of((uint32_t)h[i] << 16);
    } else {
        i = have_f16c() ? widen_halves(h, to, n) : 0;
        for (; i < n; i++)
            to[i] = half_to_float(h[i]);
    }
}

void blas_narrow(int type, const float *from, void *to, size_t n)
{
    uint16_t *h = to;
    size_t i = 0;

    if (type == CUDA_R_32F) {
        memcpy(to, from, n * sizeof *from);
    } else if (type == CUDA_R_16BF) {
        for (; i < n; i++) {
            uint32_t b = bits_of(from[i]);
            uint32_t nan = (b & 0x7fffffffu) > 0x7f800000u;
            h[i] = (uint16_t)(nan ? 0x7fffu : (b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
        }
    } else {
        i = have_f16c() ? narrow_halves(from, h, n) : 0;
        for (; i < n; i++)
            h[i] = float_to_half(from[i]);
    }
}
