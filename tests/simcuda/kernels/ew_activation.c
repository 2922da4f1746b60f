/*
 * Activations and elementwise losses, forward and backward. f16 and bf16 compute in float.
 */
#include "tests/simcuda/kernels/ew.h"

#define SIGMOID(x) (1 / (1 + exp(-(x))))
#define SQRT_HALF ((T)0.70710678118654752440)
#define SQRT_2_BY_PI ((T)0.79788456080286535588)
#define INV_SQRT_2PI ((T)0.39894228040143267794)
#define GELU_INNER(x) (SQRT_2_BY_PI * ((x) + (T)0.044715 * (x) * (x) * (x)))

EW_FD(gelu_tanh, EW_T1, (T)0.5 * a * (1 + tanh(GELU_INNER(a))))
EW_FD(gelu_erf, EW_T1, a * (T)0.5 * (1 + erf(a * SQRT_HALF)))
EW_FD(gelu_erf_b, EW_T2, a * ((T)0.5 * (1 + erf(b * SQRT_HALF)) + b * (exp((T)-0.5 * b * b) * INV_SQRT_2PI)))
EW_FD(gelu_tanh_b, EW_T2; const T t = tanh(GELU_INNER(b)),
      a * ((T)0.5 * (1 + t)
           + (T)0.5 * b * (1 - t * t) * (SQRT_2_BY_PI * (1 + 3 * (T)0.044715 * b * b))))
EW_FD(silu, EW_T1, a / (1 + exp(-a)))
EW_FD(silu_b, EW_T2; const T s = SIGMOID(b), a * s * (1 + b * (1 - s)))
EW_FD(mish, EW_T1, a * tanh(log1p(exp(a))))
EW_FD(mish_b, EW_T2; const T s = SIGMOID(b); const T t = tanh(log1p(exp(b))), a * (t + b * s * (1 - t * t)))
EW_FD(sigmoid, EW_T1, SIGMOID(a))
EW_FD(sigmoid_b, EW_T2, a * (1 - b) * b)
EW_FD(tanh_b, EW_T2, a * (1 - b * b))
/* fields: coefficients of negative results, of positive results, of negative arguments; [backward] is it from the result? */
EW_FD(elu, EW_T1, a > 0 ? a * S(1) : expm1(a * S(2)) * S(0))
EW_FD(elu_b, EW_T2,
      b > 0 ? a * S(1) : g->s[3] ? a * S(2) * (b + S(0)) : a * S(2) * S(0) * exp(b * S(2)))
EW_FD(hardshrink, EW_T1, a >= -S(0) && a <= S(0) ? 0 : a)
EW_FD(softshrink, EW_T1, a > S(0) ? a - S(0) : a < -S(0) ? a + S(0) : a != a ? a : 0)
EW_FD(shrink_b, EW_T2, b >= -S(0) && b <= S(0) ? 0 : a)
EW_FD(hardsigmoid, EW_T1, fmin(fmax(a + 3, (T)0), (T)6) * ((T)1 / 6))
EW_FD(hardsigmoid_b, EW_T2, b > -3 && b < 3 ? a * ((T)1 / 6) : 0)
EW_FD(hardswish, EW_T1, a * fmin(fmax(a + 3, (T)0), (T)6) * ((T)1 / 6))
EW_FD(hardswish_b, EW_T2, b <= -3 ? 0 : b < 3 ? a * (b / 3 + (T)0.5) : a)
EW_FD(hardtanh_b, EW_T2, b <= S(0) || b >= S(1) ? 0 : a)
EW_FD(leaky, EW_T1, a > 0 ? a : a * S(0))
EW_FD(leaky_b, EW_T2, a > 0 ? b : b * S(0))
EW_FD(softplus, EW_T1, a * S(0) > S(1) ? a : log1p(exp(a * S(0))) / S(0))
EW_FD(softplus_b, EW_T2; const T z = exp(b * S(0)), b * S(0) > S(1) ? a : a * z / (z + 1))
EW_FD(threshold, EW_T2, a <= S(0) ? S(1) : b)
EW_I(threshold, EW_T2, a <= g->si[0] ? g->si[1] : b)
EW_FD(log_sigmoid, EW_T1, fmin((T)0, a) - log1p(exp(-fabs(a))))
EW_FD(log_sigmoid_b, EW_T2; const T z = exp(-fabs(a)),
      b * ((a < 0 ? (T)1 : (T)0) - (a < 0 ? (T)1 : (T)-1) * (z / (1 + z))))
EW_FD(glu, EW_T2, a * SIGMOID(b))
EW_FD(prelu, EW_T2, a > 0 ? a : b * a)
EW_FD(logit_b, EW_T2, b < 0 || b > 1 ? (T)NAN : a / (b * (1 - b)))
EW_FD(logit_eps_b, EW_T2, b < S(0) || b > S(1) ? 0 : a / (b * (1 - b)))

#define PRELU_B(T, name)                                                                                              \
    EW_HEAD(name)                                                                                                     \
    {                                                                                                                 \
        (void)g;                                                                                                      \
        for (int k = 0; k < n; k++) {                                                                                 \
            T a = ((const T *)in[0])[k], w = ((const T *)in[1])[k], d = ((const T *)in[2])[k];                        \
            ((T *)out[0])[k] = a > 0 ? d : w * d;                                                                     \
            ((T *)out[1])[k] = a > 0 ? 0 : a * d;                                                                     \
        }                                                                                                             \
    }
PRELU_B(float, prelu_b_f)
PRELU_B(double, prelu_b_d)

EW_FD(mse, EW_T2, (a - b) * (a - b))
EW_FD(mse_b, EW_T3, S(0) * (a - b) * c)
EW_FD(huber, EW_T2; const T z = fabs(a - b), z < S(0) ? (T)0.5 * z * z : S(0) * (z - (T)0.5 * S(0)))
EW_FD(huber_b, EW_T3; const T x = a - b, x < -S(1) ? -S(0) * c * S(1) : x > S(1) ? S(0) * c * S(1) : S(0) * x * c)
EW_FD(smooth_l1, EW_T2; const T z = fabs(a - b), z < S(0) ? (T)0.5 * z * z / S(0) : z - (T)0.5 * S(0))
EW_FD(smooth_l1_b, EW_T3; const T x = a - b, x <= -S(1) ? -S(0) * c : x >= S(1) ? S(0) * c : S(0) * x * c / S(1))
EW_FD(bce, EW_T2, (b - 1) * fmax(log1p(-a), (T)-100) - b * fmax(log(a), (T)-100))
EW_FD(bce_b, EW_T3, a * (b - c) / fmax((1 - b) * b, (T)1e-12))

const struct ew_row ew_activation_rows[] = {
    ROW_FD("GeluCUDAKernelImpl", 1, 0, "T=T", "", gelu_tanh),
    ROW_FD("GeluCUDAKernelImpl", 2, 0, "T=T", "", gelu_erf),
    ROW_FD("GeluBackwardCUDAKernelImpl", 1, 0, "T=TT", "", gelu_tanh_b),
    ROW_FD("GeluBackwardCUDAKernelImpl", 2, 0, "T=TT", "", gelu_erf_b),
    ROW_FD("silu_kernel", 0, 0, "T=T", "", silu),
    ROW_FD("silu_backward_kernel", 0, 0, "T=TT", "", silu_b),
    ROW_FD("mish_kernel", 0, 0, "T=T", "", mish),
    ROW_FD("mish_backward_kernel", 0, 0, "T=TT", "", mish_b),
    ROW_FD("sigmoid_kernel_cuda", 2, 0, "T=T", "", sigmoid),
    ROW_FD("sigmoid_backward_kernel_cuda", 2, 0, "T=TT", "", sigmoid_b),
    ROW_FD("tanh_backward_kernel_cuda", 2, 0, "T=TT", "", tanh_b),
    ROW_FD("elu_kernel", 0, 0, "T=T", "ooo", elu),
    ROW_FD("elu_backward_kernel", 0, 0, "T=TT", "ooob", elu_b),
    ROW_FD("hardshrink_kernel", 0, 0, "T=T", "t", hardshrink),
    ROW_FD("softshrink_kernel", 0, 0, "T=T", "t", softshrink),
    ROW_FD("shrink_backward_kernel", 0, 0, "T=TT", "t", shrink_b),
    ROW_FD("hardsigmoid_kernel", 0, 0, "T=T", "oooo", hardsigmoid),
    ROW_FD("hardsigmoid_backward_kernel", 0, 0, "T=TT", "oooo", hardsigmoid_b),
    ROW_FD("hardswish_kernel", 0, 0, "T=T", "oooo", hardswish),
    ROW_FD("hardswish_backward_kernel", 0, 0, "T=TT", "oooo", hardswish_b),
    ROW_FD("hardtanh_backward_kernel", 0, 0, "T=TT", "oo", hardtanh_b),
    ROW_FD("leaky_relu_kernel", 0, 0, "T=T", "o", leaky),
    ROW_FD("leaky_relu_backward_kernel", 0, 0, "T=TT", "o", leaky_b),
    ROW_FD("softplus_kernel", 0, 0, "T=T", "oo", softplus),
    ROW_FD("softplus_backward_kernel", 0, 0, "T=TT", "oo", softplus_b),
    ROW_FDI("threshold_kernel_impl", 0, 0, "T=TT", "tt", threshold),
    ROW_FD("launch_log_sigmoid_forward_kernel", 0, 0, "T=T", "", log_sigmoid),
    ROW_FD("log_sigmoid_backward_kernel", 0, 0, "T=TT", "", log_sigmoid_b),
    ROW_FD("glu_kernel", 0, 0, "T=TT", "", glu),
    ROW_FD("prelu_kernel", 0, 0, "T=TT", "", prelu),
    { "prelu_backward_kernel", 0, 0, "TT=TTT", "", prelu_b_f, prelu_b_d, NULL, NULL },
    ROW_FD("logit_backward_kernel_cuda", 0, 1, "T=TT", "", logit_b),
    ROW_FD("logit_backward_kernel_cuda", 0, 2, "T=TT", "oo", logit_eps_b),
    ROW_FD("mse_kernel_cuda", 0, 0, "T=TT", "", mse),
    ROW_FD("mse_backward_cuda_kernel", 0, 0, "T=TTT", "t", mse_b),
    ROW_FD("huber_kernel_cuda", 0, 0, "T=TT", "t", huber),
    ROW_FD("huber_backward_cuda_kernel", 0, 0, "T=TTT", "tt", huber_b),
    ROW_FD("smooth_l1_kernel_cuda", 0, 0, "T=TT", "t", smooth_l1),
    ROW_FD("smooth_l1_backward_cuda_kernel", 0, 0, "T=TTT", "tt", smooth_l1_b),
    ROW_FD("binary_cross_entropy_out_cuda", 0, 0, "T=TT", "", bce),
    ROW_FD("binary_cross_entropy_backward_out_kernel", 0, 0, "T=TTT", "", bce_b),
    EW_END
};
