/* cuBLAS: matmuls, plain, strided batches and batches by arrays of addresses. */
#include <limits.h>

#include "tests/simcuda/blas/blas_gemm.h"
#include "tests/simcuda/blas/cublas.h"
#include "tests/simcuda/blas/cublas_handle.h"

/* What every form has in common. Strides and batch of a plain matmul are 0 and 1. */
struct call {
    cublasOperation_t ta, tb;
    int m, n, k;
    const void *alpha, *a, *b, *beta, *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
    int a_type, b_type, c_type, batch, pointer_arrays;
    cublasComputeType_t compute;
};

static int op_known(cublasOperation_t op)
{
    return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

static cublasStatus_t gemm(cublasHandle_t h, const struct call *c)
{
    struct blas_gemm_params p = {
        .a = { (uint64_t)(uintptr_t)c->a, c->lda, c->stride_a, c->a_type, c->ta },
        .b = { (uint64_t)(uintptr_t)c->b, c->ldb, c->stride_b, c->b_type, c->tb },
        .c = { (uint64_t)(uintptr_t)c->c, c->ldc, c->stride_c, c->c_type, 0 },
        .d = { (uint64_t)(uintptr_t)c->c, c->ldc, c->stride_c, c->c_type, 0 },
        .m = c->m, .n = c->n, .k = c->k, .batch = c->batch, .pointer_arrays = c->pointer_arrays,
        .epilogue = LT_EPILOGUE_NOTHING, .bias_type = CUDA_R_32F, .aux_type = CUDA_R_32F,
    };

    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!op_known(c->ta) || !op_known(c->tb) || !c->alpha || !c->beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if ((p.scale_type = blas_scale_type(c->compute, c->a_type)) < 0)
        return blas_refuse("a matmul with this compute type");
    blas_set_factor(c->alpha, h->pointer_mode, p.scale_type, &p.alpha_at, p.alpha);
    blas_set_factor(c->beta, h->pointer_mode, p.scale_type, &p.beta_at, p.beta);
    if (!p.beta_at && p.beta[0] == 0 && p.beta[1] == 0)
        p.c.at = 0; /* not read: it shall not look like an operand */
    return blas_gemm_launch(&p, h->workspace, h->workspace_bytes, h->stream);
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b, cudaDataType b_type, int ldb,
                            const void *beta, void *c, cudaDataType c_type, int ldc, cublasComputeType_t compute, int algo)
{
    struct call call = { ta, tb, m, n, k, alpha, a, b, beta, c, lda, ldb, ldc, 0, 0, 0, a_type, b_type, c_type, 1, 0, compute };

    (void)algo;
    return gemm(h, &call);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type, int lda, long long stride_a,
                                          const void *b, cudaDataType b_type, int ldb, long long stride_b, const void *beta,
                                          void *c, cudaDataType c_type, int ldc, long long stride_c, int batch,
                                          cublasComputeType_t compute, int algo)
{
    struct call call = { ta, tb, m, n, k, alpha, a, b, beta, c, lda, ldb, ldc, stride_a, stride_b, stride_c, a_type, b_type,
                         c_type, batch, 0, compute };

    (void)algo;
    return gemm(h, &call);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                   const void *alpha, const void *const a[], cudaDataType a_type, int lda,
                                   const void *const b[], cudaDataType b_type, int ldb, const void *beta, void *const c[],
                                   cudaDataType c_type, int ldc, int batch, cublasComputeType_t compute, int algo)
{
    struct call call = { ta, tb, m, n, k, alpha, (const void *)a, (const void *)b, beta, (const void *)c, lda, ldb, ldc, 0, 0,
                         0, a_type, b_type, c_type, batch, 1, compute };

    (void)algo;
    return gemm(h, &call);
}

cublasStatus_t cublasSgemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                             const float *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
                             cudaDataType b_type, int ldb, const float *beta, void *c, cudaDataType c_type, int ldc)
{
    return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, CUBLAS_COMPUTE_32F, -1);
}

/* The forms with the type in the name. */
#define GEMMS(L, type, compute)                                                                                        \
    cublasStatus_t cublas##L##gemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, \
                                      const void *alpha, const void *a, int lda, const void *b, int ldb,               \
                                      const void *beta, void *c, int ldc)                                              \
    {                                                                                                                  \
        return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, type, lda, b, type, ldb, beta, c, type, ldc, compute, -1);   \
    }                                                                                                                  \
    cublasStatus_t cublas##L##gemmStridedBatched(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,  \
                                                 int n, int k, const void *alpha, const void *a, int lda,              \
                                                 long long stride_a, const void *b, int ldb, long long stride_b,       \
                                                 const void *beta, void *c, int ldc, long long stride_c, int batch)    \
    {                                                                                                                  \
        return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, type, lda, stride_a, b, type, ldb, stride_b,   \
                                          beta, c, type, ldc, stride_c, batch, compute, -1);                           \
    }                                                                                                                  \
    cublasStatus_t cublas##L##gemmBatched(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,  \
                                          int k, const void *alpha, const void *const a[], int lda,                    \
                                          const void *const b[], int ldb, const void *beta, void *const c[], int ldc,  \
                                          int batch)                                                                   \
    {                                                                                                                  \
        return cublasGemmBatchedEx(h, ta, tb, m, n, k, alpha, a, type, lda, b, type, ldb, beta, c, type, ldc, batch,   \
                                   compute, -1);                                                                       \
    }
GEMMS(S, CUDA_R_32F, CUBLAS_COMPUTE_32F)
GEMMS(D, CUDA_R_64F, CUBLAS_COMPUTE_64F)
GEMMS(C, CUDA_C_32F, CUBLAS_COMPUTE_32F)
GEMMS(Z, CUDA_C_64F, CUBLAS_COMPUTE_64F)
GEMMS(H, CUDA_R_16F, CUBLAS_COMPUTE_16F)
