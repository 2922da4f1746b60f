/*
 * Functors that are parts of larger layers: normalisation, loss scaling, masked scatter.
 */
#include "tests/simcuda/kernels/ew.h"

/* input, weight, bias, mean, invstd */
EW_FD(bn_fwd, EW_T5, (a - d) * e * b + c)
EW_FD(bn_eval_b, EW_T2, a * b)
EW_FD(bn_eval_b3, EW_T3, a * b * c)
/* grad, input, weight, mean, invstd, sum of grad * (input - mean), sum of grad; S(0): 1 / count */
EW_FD(bn_train_b, EW_T7, (a - x6 * S(0) - (b - d) * (e * e * x5 * S(0))) * (c * e))

/* Running statistics and the reciprocal deviation from mean, variance: fields are Bessel's correction, momentum, epsilon. */
#define BN_STATS(U, name, with_invstd)                                                                                \
    EW_HEAD(name)                                                                                                     \
    {                                                                                                                 \
        typedef U T;                                                                                                  \
        for (int k = 0; k < n; k++) {                                                                                 \
            T mean = ((const T *)in[0])[k], var = ((const T *)in[1])[k];                                              \
            T rm = ((const T *)in[2])[k], rv = ((const T *)in[3])[k];                                                 \
            ((T *)out[0])[k] = mean * S(1) + (1 - S(1)) * rm;                                                         \
            ((T *)out[1])[k] = var * S(0) * S(1) + (1 - S(1)) * rv;                                                   \
            if (with_invstd) ((T *)out[2])[k] = 1 / sqrt(var + S(2));                                                 \
        }                                                                                                             \
    }
BN_STATS(float, bn_update_f, 0)
BN_STATS(double, bn_update_d, 0)
BN_STATS(float, bn_update_inv_f, 1)
BN_STATS(double, bn_update_inv_d, 1)

EW_FD(gn_norm, EW_T3, (a - b) * c)
EW_FD(gn_affine, EW_T3, b * a + c)
EW_FD(gn1_gamma, EW_T4, (a - b) * (c * d))
EW_FD(gn1_beta, EW_T4, (a - b) * c + d)
EW_FD(gn1_both, EW_T5, (a - b) * (c * d) + e)
EW_FD(gn_b, EW_T5, c * a + d * b + e)
EW_FD(gn_mul, EW_T2, a * b)
EW_FD(gn1_b6, EW_T6, (c * d) * a + e * b + x5)

/* fields: found_inf*, inverse scale* */
#define UNSCALE(T, name)                                                                                              \
    EW_HEAD(name)                                                                                                     \
    {                                                                                                                 \
        float *found = (float *)(uintptr_t)g->si[0], inv = *(const float *)(uintptr_t)g->si[1];                        \
        int bad = 0;                                                                                                  \
        for (int k = 0; k < n; k++) {                                                                                 \
            T v = ((const T *)in[0])[k];                                                                              \
            bad |= !isfinite(v);                                                                                      \
            ((T *)out[0])[k] = inv == 1 ? v : v * (T)inv;                                                             \
        }                                                                                                             \
        if (bad) *found = 1;                                                                                          \
    }
UNSCALE(float, unscale_f)
UNSCALE(double, unscale_d)

/* where the mask is set, the element of the source (field 0) whose number is the third argument */
#define MASKED_SCATTER(T, name, get)                                                                                  \
    EW_HEAD(name)                                                                                                     \
    {                                                                                                                 \
        const void *source = (const void *)(uintptr_t)g->si[0];                                                       \
        for (int k = 0; k < n; k++)                                                                                   \
            ((T *)out[0])[k] = ((const uint8_t *)in[1])[k] ? (T)get(g->t, source, ((const int64_t *)in[2])[k])        \
                                                           : ((const T *)in[0])[k];                                   \
    }
MASKED_SCATTER(float, masked_scatter_f, dtype_get)
MASKED_SCATTER(double, masked_scatter_d, dtype_get)
MASKED_SCATTER(int64_t, masked_scatter_i, dtype_geti)

const struct ew_row ew_misc_rows[] = {
    ROW_FD("batch_norm_elementwise", 0, 0, "T=TTTTT", "", bn_fwd),
    ROW_FD("batch_norm_elementwise_backward_eval", 0, 0, "T=TT", "", bn_eval_b),
    ROW_FD("batch_norm_elementwise_backward_eval", 0, 0, "T=TTT", "", bn_eval_b3),
    ROW_FD("batch_norm_elementwise_backward_train", 0, 0, "T=TTTTTTT", "o", bn_train_b),
    { "batch_norm_update_stats", 0, 0, "TT=TTTT", "oo", bn_update_f, bn_update_d, NULL, NULL },
    { "batch_norm_update_stats_and_invert", 0, 0, "TTA=TTTT", "ooo", bn_update_inv_f, bn_update_inv_d, NULL, NULL },
    ROW_FD("GroupNormKernelImplInternal, channels last, too", 0, 2, "T=TTT", "", gn_norm),
    ROW_FD("GroupNormKernelImplInternal, channels last, too", 0, 0, "T=TTT", "", gn_affine),
    ROW_FD("GroupNormKernelImplInternal", 0, 1, "T=TTT", "", gn_norm),
    ROW_FD("GroupNormKernelImplInternal", 0, 0, "T=TTT", "", gn_affine),
    ROW_FD("GroupNormKernelImplInternal, a and b", 0, 0, "T=TTT", "", gn_affine),
    ROW_FD("GroupNorm1dForward", 0, 0, "T=TTT", "", gn_norm),
    ROW_FD("GroupNorm1dForward", 0, 1, "T=TTTT", "", gn1_gamma),
    ROW_FD("GroupNorm1dForward", 0, 2, "T=TTTT", "", gn1_beta),
    ROW_FD("GroupNorm1dForward", 0, 0, "T=TTTTT", "", gn1_both),
    ROW_FD("GroupNormBackwardKernelImplInternal", 0, 0, "A=TT", "", gn_mul),
    ROW_FD("GroupNormBackwardKernelImplInternal", 0, 0, "T=TTTTT", "", gn_b),
    ROW_FD("GroupNorm1dBackward", 0, 0, "T=TTTTT", "", gn_b),
    ROW_FD("GroupNorm1dBackward", 0, 0, "T=TTTTTT", "", gn1_b6),
    ROW_FD("_amp_non_finite_check_and_unscale_cuda_", 0, 0, "T=T", "pp", unscale),
    ROW_FDI("launch_masked_scatter_kernel", 0, 0, "T=TBL", "p", masked_scatter),
    EW_END
};
