#include "offline/solvers/chain/chain_vec.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void chain_vec_plain(double *e, const double *x, const double *y, double cost, int64_t n)
{
    int64_t i;

    for (i = 0; i < n; i++) {
        double v = cost + (x ? x[i] : 0) + (y ? y[i] : 0);

        e[i] = v < e[i] ? v : e[i];
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void chain_vec_avx2(double *e, const double *x, const double *y, double cost,
                                                                int64_t n)
{
    __m256d p = _mm256_set1_pd(cost);
    int64_t i = 0;

    if (x && y) {
        for (; i + 8 <= n; i += 8) {
            __m256d a = _mm256_add_pd(_mm256_loadu_pd(x + i), _mm256_loadu_pd(y + i));
            __m256d b = _mm256_add_pd(_mm256_loadu_pd(x + i + 4), _mm256_loadu_pd(y + i + 4));

            _mm256_storeu_pd(e + i, _mm256_min_pd(_mm256_loadu_pd(e + i), _mm256_add_pd(a, p)));
            _mm256_storeu_pd(e + i + 4, _mm256_min_pd(_mm256_loadu_pd(e + i + 4), _mm256_add_pd(b, p)));
        }
        x += i;
        y += i;
    } else if (x || y) {
        const double *z = x ? x : y;

        for (; i + 4 <= n; i += 4)
            _mm256_storeu_pd(e + i,
                             _mm256_min_pd(_mm256_loadu_pd(e + i), _mm256_add_pd(_mm256_loadu_pd(z + i), p)));
        x = x ? x + i : NULL;
        y = y ? y + i : NULL;
    } else {
        for (; i + 4 <= n; i += 4)
            _mm256_storeu_pd(e + i, _mm256_min_pd(_mm256_loadu_pd(e + i), p));
    }
    chain_vec_plain(e + i, x, y, cost, n - i);
}
#endif

chain_vec_relax *chain_vec_pick(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return chain_vec_avx2;
#endif
    return chain_vec_plain;
}
