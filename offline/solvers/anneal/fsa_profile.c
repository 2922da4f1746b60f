#include "offline/solvers/anneal/fsa_profile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static inline double over(double use, double budget) { return use > budget ? use - budget : 0; }

static double add_plain(double *use, int32_t n, double bytes, double budget)
{
    double grew = 0;
    for (int32_t i = 0; i < n; i++) {
        const double was = use[i];
        use[i] = was + bytes;
        grew += over(use[i], budget) - over(was, budget);
    }
    return grew;
}

static double max_plain(const double *use, int32_t n)
{
    double top = 0;
    for (int32_t i = 0; i < n; i++)
        top = use[i] > top ? use[i] : top;
    return top;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static double add_avx2(double *use, int32_t n, double bytes, double budget)
{
    const __m256d x = _mm256_set1_pd(bytes), b = _mm256_set1_pd(budget), zero = _mm256_setzero_pd();
    __m256d grew = zero;
    double lane[4];
    int32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m256d was = _mm256_loadu_pd(use + i), now = _mm256_add_pd(was, x);
        _mm256_storeu_pd(use + i, now);
        grew = _mm256_add_pd(grew, _mm256_sub_pd(_mm256_max_pd(_mm256_sub_pd(now, b), zero),
                                                 _mm256_max_pd(_mm256_sub_pd(was, b), zero)));
    }
    _mm256_storeu_pd(lane, grew);
    return lane[0] + lane[1] + lane[2] + lane[3] + add_plain(use + i, n - i, bytes, budget);
}

__attribute__((target("avx2"))) static double max_avx2(const double *use, int32_t n)
{
    __m256d top = _mm256_setzero_pd();
    double lane[4];
    int32_t i = 0;
    for (; i + 4 <= n; i += 4)
        top = _mm256_max_pd(top, _mm256_loadu_pd(use + i));
    _mm256_storeu_pd(lane, top);
    double best = max_plain(use + i, n - i);
    for (int k = 0; k < 4; k++)
        best = lane[k] > best ? lane[k] : best;
    return best;
}
#endif

double fsa_profile_add(double *use, int32_t n, double bytes, double budget)
{
#if defined(__x86_64__)
    if (n >= 8 && __builtin_cpu_supports("avx2"))
        return add_avx2(use, n, bytes, budget);
#endif
    return add_plain(use, n, bytes, budget);
}

double fsa_profile_max(const double *use, int32_t n)
{
#if defined(__x86_64__)
    if (n >= 8 && __builtin_cpu_supports("avx2"))
        return max_avx2(use, n);
#endif
    return max_plain(use, n);
}
