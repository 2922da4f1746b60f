/*
 * The part of cuBLAS that is answered here, declared as the public header has it (complex factors as void pointers). Types
 * are named by the letters S, D, C and Z.
 */
#ifndef BLAS_CUBLAS_H
#define BLAS_CUBLAS_H

#include "tests/simcuda/blas/blas_abi.h"

cublasStatus_t cublasCreate_v2(cublasHandle_t *h);
cublasStatus_t cublasDestroy_v2(cublasHandle_t h);
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *workspace, size_t bytes);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t h, int mode);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t h, int *version);
const char *cublasGetStatusName(cublasStatus_t s);
const char *cublasGetStatusString(cublasStatus_t s);

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b, cudaDataType b_type, int ldb,
                            const void *beta, void *c, cudaDataType c_type, int ldc, cublasComputeType_t compute, int algo);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type, int lda, long long stride_a,
                                          const void *b, cudaDataType b_type, int ldb, long long stride_b, const void *beta,
                                          void *c, cudaDataType c_type, int ldc, long long stride_c, int batch,
                                          cublasComputeType_t compute, int algo);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                   const void *alpha, const void *const a[], cudaDataType a_type, int lda,
                                   const void *const b[], cudaDataType b_type, int ldb, const void *beta, void *const c[],
                                   cudaDataType c_type, int ldc, int batch, cublasComputeType_t compute, int algo);
cublasStatus_t cublasSgemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                             const float *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
                             cudaDataType b_type, int ldb, const float *beta, void *c, cudaDataType c_type, int ldc);
cublasStatus_t cublasDotEx(cublasHandle_t h, int n, const void *x, cudaDataType x_type, int incx, const void *y,
                           cudaDataType y_type, int incy, void *result, cudaDataType result_type, cudaDataType execution);

#define BLAS_GEMMS(L)                                                                                                  \
    cublasStatus_t cublas##L##gemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, \
                                      const void *alpha, const void *a, int lda, const void *b, int ldb,               \
                                      const void *beta, void *c, int ldc);                                             \
    cublasStatus_t cublas##L##gemmStridedBatched(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,  \
                                                 int n, int k, const void *alpha, const void *a, int lda,              \
                                                 long long stride_a, const void *b, int ldb, long long stride_b,       \
                                                 const void *beta, void *c, int ldc, long long stride_c, int batch);   \
    cublasStatus_t cublas##L##gemmBatched(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,  \
                                          int k, const void *alpha, const void *const a[], int lda,                    \
                                          const void *const b[], int ldb, const void *beta, void *const c[], int ldc,  \
                                          int batch);
BLAS_GEMMS(S) BLAS_GEMMS(D) BLAS_GEMMS(C) BLAS_GEMMS(Z) BLAS_GEMMS(H)

#define BLAS_VECTORS(L)                                                                                                \
    cublasStatus_t cublas##L##axpy_v2(cublasHandle_t h, int n, const void *alpha, const void *x, int incx, void *y, int incy); \
    cublasStatus_t cublas##L##scal_v2(cublasHandle_t h, int n, const void *alpha, void *x, int incx);                  \
    cublasStatus_t cublas##L##copy_v2(cublasHandle_t h, int n, const void *x, int incx, void *y, int incy);            \
    cublasStatus_t cublas##L##swap_v2(cublasHandle_t h, int n, void *x, int incx, void *y, int incy);                  \
    cublasStatus_t cublas##L##gemv_v2(cublasHandle_t h, cublasOperation_t t, int m, int n, const void *alpha,          \
                                      const void *a, int lda, const void *x, int incx, const void *beta, void *y, int incy); \
    cublasStatus_t cublas##L##trsm_v2(cublasHandle_t h, int side, int fill, cublasOperation_t t, int diag, int m, int n, \
                                      const void *alpha, const void *a, int lda, void *b, int ldb);                    \
    cublasStatus_t cublas##L##trsmBatched(cublasHandle_t h, int side, int fill, cublasOperation_t t, int diag, int m,  \
                                          int n, const void *alpha, const void *const a[], int lda, void *const b[],   \
                                          int ldb, int batch);
BLAS_VECTORS(S) BLAS_VECTORS(D) BLAS_VECTORS(C) BLAS_VECTORS(Z)

#define BLAS_TWO_VECTORS(f) cublasStatus_t f(cublasHandle_t h, int n, const void *x, int incx, const void *y, int incy, void *result)
#define BLAS_ONE_VECTOR(f) cublasStatus_t f(cublasHandle_t h, int n, const void *x, int incx, void *result)
#define BLAS_RANK_ONE(f)                                                                                               \
    cublasStatus_t f(cublasHandle_t h, int m, int n, const void *alpha, const void *x, int incx, const void *y, int incy, void *a, int lda)
BLAS_TWO_VECTORS(cublasSdot_v2);
BLAS_TWO_VECTORS(cublasDdot_v2);
BLAS_TWO_VECTORS(cublasCdotu_v2);
BLAS_TWO_VECTORS(cublasCdotc_v2);
BLAS_TWO_VECTORS(cublasZdotu_v2);
BLAS_TWO_VECTORS(cublasZdotc_v2);
BLAS_ONE_VECTOR(cublasSnrm2_v2);
BLAS_ONE_VECTOR(cublasDnrm2_v2);
BLAS_ONE_VECTOR(cublasScnrm2_v2);
BLAS_ONE_VECTOR(cublasDznrm2_v2);
BLAS_ONE_VECTOR(cublasSasum_v2);
BLAS_ONE_VECTOR(cublasDasum_v2);
BLAS_ONE_VECTOR(cublasScasum_v2);
BLAS_ONE_VECTOR(cublasDzasum_v2);
BLAS_RANK_ONE(cublasSger_v2);
BLAS_RANK_ONE(cublasDger_v2);
BLAS_RANK_ONE(cublasCgeru_v2);
BLAS_RANK_ONE(cublasCgerc_v2);
BLAS_RANK_ONE(cublasZgeru_v2);
BLAS_RANK_ONE(cublasZgerc_v2);

#endif
