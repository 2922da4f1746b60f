/* Matmuls as device code: whole, or cut along k with the partial sums in the workspace. */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/blas/blas_abi.h"
#include "tests/simcuda/blas/blas_convert.h"
#include "tests/simcuda/blas/blas_kernels.h"

void *blas_matrix_at(const struct blas_gemm_params *p, const struct blas_matrix *x, int i)
{
    char *at = (char *)(uintptr_t)x->at;

    if (p->pointer_arrays)
        return ((void **)at)[i];
    return at ? at + (size_t)i * (size_t)x->stride * blas_type_bytes(x->type) : NULL;
}

void blas_factor(uint64_t at, const double held[2], int scale_type, double out[2])
{
    const void *v = (const void *)(uintptr_t)at;
    float f[2] = { 0, 0 };

    out[0] = held[0], out[1] = held[1];
    if (!at)
        return;
    switch (scale_type) {
    case CUDA_R_64F: out[0] = *(const double *)v, out[1] = 0; break;
    case CUDA_C_64F: memcpy(out, v, 2 * sizeof *out); break;
    case CUDA_C_32F: memcpy(f, v, sizeof f), out[0] = f[0], out[1] = f[1]; break;
    default: blas_widen(scale_type, v, f, 1), out[0] = f[0], out[1] = 0;
    }
}

static int cblas_op(int op)
{
    return op == CUBLAS_OP_N ? CblasNoTrans : op == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}

/* A matrix of rows x cols as floats: itself, or widened into memory of its own (*owned, for the caller to free). */
static const float *as_floats(const void *at, int type, int64_t rows, int64_t cols, int64_t *ld, float **owned)
{
    *owned = NULL;
    if (type == CUDA_R_32F)
        return at;
    size_t n = (size_t)rows * (size_t)cols;
    float *to = *owned = malloc((n > 0 ? n : 1) * sizeof *to);
    for (int64_t j = 0; to && j < cols; j++)
        blas_widen(type, (const char *)at + (size_t)(j * *ld) * 2, to + j * rows, (size_t)rows);
    *ld = rows;
    return to;
}

/* Where op(x)'s columns (a) or rows (b) from k0 on begin. */
static const void *from_k(const void *at, const struct blas_matrix *x, int k0, int k_is_column)
{
    int64_t step = (x->op == CUBLAS_OP_N) == k_is_column ? x->ld : 1;
    return (const char *)at + (size_t)(k0 * step) * blas_type_bytes(x->type);
}

/* out = alpha op(a) op(b) + beta out for k0 <= k < k0 + kn, real types. */
static void multiply(const struct blas_gemm_params *p, int i, int k0, int kn, double alpha, double beta, void *out,
                     int64_t ld_out)
{
    const void *a = from_k(blas_matrix_at(p, &p->a, i), &p->a, k0, 1);
    const void *b = from_k(blas_matrix_at(p, &p->b, i), &p->b, k0, 0);
    int ta = cblas_op(p->a.op), tb = cblas_op(p->b.op);
    int64_t lda = p->a.ld, ldb = p->b.ld;

    if (p->a.type == CUDA_R_64F) {
        cblas_dgemm(CblasColMajor, ta, tb, p->m, p->n, kn, alpha, a, (int)lda, b, (int)ldb, beta, out, (int)ld_out);
        return;
    }
    float *own_a, *own_b;
    const float *fa = as_floats(a, p->a.type, p->a.op ? kn : p->m, p->a.op ? p->m : kn, &lda, &own_a);
    const float *fb = as_floats(b, p->b.type, p->b.op ? p->n : kn, p->b.op ? kn : p->n, &ldb, &own_b);
    cblas_sgemm(CblasColMajor, ta, tb, p->m, p->n, kn, (float)alpha, fa, (int)lda, fb, (int)ldb, (float)beta, out,
                (int)ld_out);
    free(own_a);
    free(own_b);
}

static void copy_c(const struct blas_gemm_params *p, int i)
{
    char *d = blas_matrix_at(p, &p->d, i);
    const char *c = blas_matrix_at(p, &p->c, i);
    size_t element = blas_type_bytes(p->d.type);

    for (int64_t j = 0; c != d && j < p->n; j++)
        memcpy(d + (size_t)(j * p->d.ld) * element, c + (size_t)(j * p->c.ld) * element, (size_t)p->m * element);
}

static void complex_gemm(const struct blas_gemm_params *p, int i, const double alpha[2], const double beta[2])
{
    const void *a = blas_matrix_at(p, &p->a, i), *b = blas_matrix_at(p, &p->b, i);
    void *d = blas_matrix_at(p, &p->d, i);
    int ta = cblas_op(p->a.op), tb = cblas_op(p->b.op);

    if (beta[0] != 0 || beta[1] != 0)
        copy_c(p, i);
    if (p->a.type == CUDA_C_64F) {
        cblas_zgemm(CblasColMajor, ta, tb, p->m, p->n, p->k, alpha, a, (int)p->a.ld, b, (int)p->b.ld, beta, d,
                    (int)p->d.ld);
    } else {
        float al[2] = { (float)alpha[0], (float)alpha[1] }, be[2] = { (float)beta[0], (float)beta[1] };
        cblas_cgemm(CblasColMajor, ta, tb, p->m, p->n, p->k, al, a, (int)p->a.ld, b, (int)p->b.ld, be, d, (int)p->d.ld);
    }
}

void blas_gemm_run(const simgpu_launch *l, void *const *params)
{
    const struct blas_gemm_params *p = params[0];
    double alpha[2], beta[2];

    (void)l;
    blas_factor(p->alpha_at, p->alpha, p->scale_type, alpha);
    blas_factor(p->beta_at, p->beta, p->scale_type, beta);
    for (int i = 0; i < p->batch; i++) {
        void *d = blas_matrix_at(p, &p->d, i);
        if (p->a.type == CUDA_C_32F || p->a.type == CUDA_C_64F) {
            complex_gemm(p, i, alpha, beta);
        } else if (p->a.type == CUDA_R_64F || (p->a.type == CUDA_R_32F && p->d.type == CUDA_R_32F)) {
            if (beta[0] != 0)
                copy_c(p, i);
            multiply(p, i, 0, p->k, alpha[0], beta[0], d, p->d.ld);
            if (p->epilogue != LT_EPILOGUE_NOTHING && p->a.type == CUDA_R_64F)
                blas_finish_f64(p, i, d, p->d.ld, 1);
            else if (p->epilogue != LT_EPILOGUE_NOTHING)
                blas_finish_f32(p, i, d, p->d.ld, 1);
        } else { /* 16 bits: sums in float, rounded once, at the end */
            float *sum = malloc((size_t)p->m * (size_t)p->n * sizeof *sum);
            multiply(p, i, 0, p->k, 1, 0, sum, p->m);
            blas_finish_f32(p, i, sum, p->m, 0);
            free(sum);
        }
    }
}

static size_t sum_bytes(const struct blas_gemm_params *p)
{
    return p->a.type == CUDA_R_64F ? 8 : 4;
}

static char *part_of_workspace(const struct blas_gemm_params *p, int i, int part)
{
    size_t one = (size_t)p->m * (size_t)p->n * sum_bytes(p);
    return (char *)(uintptr_t)p->workspace + ((size_t)i * (size_t)p->splits + (size_t)part) * one;
}

void blas_split_run(const simgpu_launch *l, void *const *params)
{
    const struct blas_gemm_params *p = params[0];

    (void)l;
    for (int i = 0; i < p->batch; i++)
        for (int s = 0; s < p->splits; s++) {
            int k0 = (int)((int64_t)p->k * s / p->splits), k1 = (int)((int64_t)p->k * (s + 1) / p->splits);
            multiply(p, i, k0, k1 - k0, 1, 0, part_of_workspace(p, i, s), p->m);
        }
}

#define REDUCE(REAL, FINISH)                                                                                           \
    do {                                                                                                               \
        REAL *sum = malloc(mn * sizeof *sum);                                                                          \
        memcpy(sum, part_of_workspace(p, i, 0), mn * sizeof *sum);                                                     \
        for (int s = 1; s < p->splits; s++) {                                                                          \
            const REAL *part = (const REAL *)part_of_workspace(p, i, s);                                               \
            for (size_t e = 0; e < mn; e++)                                                                            \
                sum[e] += part[e];                                                                                     \
        }                                                                                                              \
        FINISH(p, i, sum, p->m, 0);                                                                                    \
        free(sum);                                                                                                     \
    } while (0)

void blas_reduce_run(const simgpu_launch *l, void *const *params)
{
    const struct blas_gemm_params *p = params[0];
    size_t mn = (size_t)p->m * (size_t)p->n;

    (void)l;
    for (int i = 0; i < p->batch; i++) {
        if (p->a.type == CUDA_R_64F)
            REDUCE(double, blas_finish_f64);
        else
            REDUCE(float, blas_finish_f32);
    }
}

void blas_gemm_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    const struct blas_gemm_params *p = params[0];
    uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k, batch = (uint64_t)p->batch;
    uint64_t in = blas_type_bytes(p->a.type), out = blas_type_bytes(p->d.type);

    (void)l;
    *flops = (p->a.type == CUDA_C_32F || p->a.type == CUDA_C_64F ? 8 : 2) * m * n * k * batch;
    *bytes = batch * (in * (m * k + k * n) + out * m * n * (p->beta[0] != 0 ? 2 : 1));
}

void blas_split_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    const struct blas_gemm_params *p = params[0];
    uint64_t mn = (uint64_t)p->m * (uint64_t)p->n, batch = (uint64_t)p->batch;

    blas_gemm_cost(l, params, flops, bytes);
    *bytes += batch * mn * (sum_bytes(p) * (uint64_t)p->splits - blas_type_bytes(p->d.type));
}

void blas_reduce_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    const struct blas_gemm_params *p = params[0];
    uint64_t mn = (uint64_t)p->m * (uint64_t)p->n * (uint64_t)p->batch;

    (void)l;
    *flops = mn * (uint64_t)p->splits;
    *bytes = mn * (sum_bytes(p) * (uint64_t)p->splits + blas_type_bytes(p->d.type));
}
