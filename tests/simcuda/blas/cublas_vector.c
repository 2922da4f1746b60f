/* cuBLAS: vectors, matrix times vector, triangular solves. */
#include "tests/simcuda/blas/blas_gemm.h"
#include "tests/simcuda/blas/cublas.h"
#include "tests/simcuda/blas/cublas_handle.h"

static const char *const KERNEL[BLAS_ROUTINES] = {
    [BLAS_DOT] = "simblas_dot",   [BLAS_AXPY] = "simblas_axpy", [BLAS_SCAL] = "simblas_scal", [BLAS_COPY] = "simblas_copy",
    [BLAS_SWAP] = "simblas_swap", [BLAS_NRM2] = "simblas_nrm2", [BLAS_ASUM] = "simblas_asum", [BLAS_GEMV] = "simblas_gemv",
    [BLAS_GER] = "simblas_ger",   [BLAS_TRSM] = "simblas_trsm",
};

static uint64_t addr(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static cublasStatus_t launch(cublasHandle_t h, struct blas_vector_params *p, const void *alpha, const void *beta)
{
    unsigned blocks = ((unsigned)p->n + 255) / 256;
    struct blas_grid grid = { blocks < 1 ? 1 : blocks, 1, 1 };

    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    p->scale_type = p->type;
    blas_set_factor(alpha, h->pointer_mode, p->type, &p->alpha_at, p->alpha);
    blas_set_factor(beta, h->pointer_mode, p->type, &p->beta_at, p->beta);
    return blas_launch(KERNEL[p->routine], grid, 256, p, h->stream);
}

/* A routine whose result is one scalar: to the device, or by way of the handle's own memory to the host. */
static cublasStatus_t launch_scalar(cublasHandle_t h, struct blas_vector_params *p, void *result, size_t bytes)
{
    cublasStatus_t rc;

    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!result || p->n < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
        p->result = addr(result);
        return launch(h, p, NULL, NULL);
    }
    if (!h->scalar && (rc = blas_scalar_alloc(&h->scalar)))
        return rc;
    p->result = h->scalar;
    rc = launch(h, p, NULL, NULL);
    return rc ? rc : blas_scalar_read(h->scalar, result, bytes, h->stream);
}

static cublasStatus_t dot(cublasHandle_t h, int n, int type, int conjugate, const void *x, int incx, const void *y, int incy,
                          void *result, size_t bytes)
{
    struct blas_vector_params p = { .x = addr(x), .y = addr(y), .incx = incx, .incy = incy, .n = n, .type = type, .y_type = type,
                                    .result_type = type, .op = conjugate ? CUBLAS_OP_C : CUBLAS_OP_N, .routine = BLAS_DOT };
    return launch_scalar(h, &p, result, bytes);
}

#define DOT(f, type, conjugate, bytes)                                                                                 \
    BLAS_TWO_VECTORS(f)                                                                                                \
    {                                                                                                                  \
        return dot(h, n, type, conjugate, x, incx, y, incy, result, bytes);                                            \
    }
DOT(cublasSdot_v2, CUDA_R_32F, 0, 4)
DOT(cublasDdot_v2, CUDA_R_64F, 0, 8)
DOT(cublasCdotu_v2, CUDA_C_32F, 0, 8)
DOT(cublasCdotc_v2, CUDA_C_32F, 1, 8)
DOT(cublasZdotu_v2, CUDA_C_64F, 0, 16)
DOT(cublasZdotc_v2, CUDA_C_64F, 1, 16)

cublasStatus_t cublasDotEx(cublasHandle_t h, int n, const void *x, cudaDataType x_type, int incx, const void *y,
                           cudaDataType y_type, int incy, void *result, cudaDataType result_type, cudaDataType execution)
{
    struct blas_vector_params p = { .x = addr(x), .y = addr(y), .incx = incx, .incy = incy, .n = n, .type = x_type,
                                    .y_type = y_type, .result_type = result_type, .routine = BLAS_DOT };
    int half = x_type == CUDA_R_16F || x_type == CUDA_R_16BF;

    (void)execution;
    if (x_type != y_type || x_type != result_type || (!half && x_type != CUDA_R_32F && x_type != CUDA_R_64F))
        return blas_refuse("cublasDotEx of these element types");
    return launch_scalar(h, &p, result, half ? 2 : x_type == CUDA_R_64F ? 8 : 4);
}

#define SCALAR(f, type_, routine_, bytes)                                                                              \
    BLAS_ONE_VECTOR(f)                                                                                                 \
    {                                                                                                                  \
        struct blas_vector_params p = { .x = addr(x), .incx = incx, .n = n, .type = type_, .routine = routine_ };      \
        return launch_scalar(h, &p, result, bytes);                                                                    \
    }
SCALAR(cublasSnrm2_v2, CUDA_R_32F, BLAS_NRM2, 4)
SCALAR(cublasDnrm2_v2, CUDA_R_64F, BLAS_NRM2, 8)
SCALAR(cublasScnrm2_v2, CUDA_C_32F, BLAS_NRM2, 4)
SCALAR(cublasDznrm2_v2, CUDA_C_64F, BLAS_NRM2, 8)
SCALAR(cublasSasum_v2, CUDA_R_32F, BLAS_ASUM, 4)
SCALAR(cublasDasum_v2, CUDA_R_64F, BLAS_ASUM, 8)
SCALAR(cublasScasum_v2, CUDA_C_32F, BLAS_ASUM, 4)
SCALAR(cublasDzasum_v2, CUDA_C_64F, BLAS_ASUM, 8)

#define RANK_ONE(f, type_, op_)                                                                                        \
    BLAS_RANK_ONE(f)                                                                                                   \
    {                                                                                                                  \
        struct blas_vector_params p = { .a = addr(a), .x = addr(x), .y = addr(y), .lda = lda, .incx = incx, .incy = incy, \
                                        .m = m, .n = n, .type = type_, .op = op_, .routine = BLAS_GER };               \
        return m && n ? launch(h, &p, alpha, NULL) : CUBLAS_STATUS_SUCCESS;                                            \
    }
RANK_ONE(cublasSger_v2, CUDA_R_32F, CUBLAS_OP_N)
RANK_ONE(cublasDger_v2, CUDA_R_64F, CUBLAS_OP_N)
RANK_ONE(cublasCgeru_v2, CUDA_C_32F, CUBLAS_OP_N)
RANK_ONE(cublasCgerc_v2, CUDA_C_32F, CUBLAS_OP_C)
RANK_ONE(cublasZgeru_v2, CUDA_C_64F, CUBLAS_OP_N)
RANK_ONE(cublasZgerc_v2, CUDA_C_64F, CUBLAS_OP_C)

#define VECTORS(L, type_)                                                                                              \
    cublasStatus_t cublas##L##axpy_v2(cublasHandle_t h, int n, const void *alpha, const void *x, int incx, void *y, int incy) \
    {                                                                                                                  \
        struct blas_vector_params p = { .x = addr(x), .y = addr(y), .incx = incx, .incy = incy, .n = n, .type = type_, \
                                        .routine = BLAS_AXPY };                                                        \
        return n > 0 ? launch(h, &p, alpha, NULL) : CUBLAS_STATUS_SUCCESS;                                             \
    }                                                                                                                  \
    cublasStatus_t cublas##L##scal_v2(cublasHandle_t h, int n, const void *alpha, void *x, int incx)                   \
    {                                                                                                                  \
        struct blas_vector_params p = { .x = addr(x), .incx = incx, .n = n, .type = type_, .routine = BLAS_SCAL };     \
        return n > 0 ? launch(h, &p, alpha, NULL) : CUBLAS_STATUS_SUCCESS;                                             \
    }                                                                                                                  \
    cublasStatus_t cublas##L##copy_v2(cublasHandle_t h, int n, const void *x, int incx, void *y, int incy)             \
    {                                                                                                                  \
        struct blas_vector_params p = { .x = addr(x), .y = addr(y), .incx = incx, .incy = incy, .n = n, .type = type_, \
                                        .routine = BLAS_COPY };                                                        \
        return n > 0 ? launch(h, &p, NULL, NULL) : CUBLAS_STATUS_SUCCESS;                                              \
    }                                                                                                                  \
    cublasStatus_t cublas##L##swap_v2(cublasHandle_t h, int n, void *x, int incx, void *y, int incy)                   \
    {                                                                                                                  \
        struct blas_vector_params p = { .x = addr(x), .y = addr(y), .incx = incx, .incy = incy, .n = n, .type = type_, \
                                        .routine = BLAS_SWAP };                                                        \
        return n > 0 ? launch(h, &p, NULL, NULL) : CUBLAS_STATUS_SUCCESS;                                              \
    }                                                                                                                  \
    cublasStatus_t cublas##L##gemv_v2(cublasHandle_t h, cublasOperation_t t, int m, int n, const void *alpha,          \
                                      const void *a, int lda, const void *x, int incx, const void *beta, void *y, int incy) \
    {                                                                                                                  \
        struct blas_vector_params p = { .a = addr(a), .x = addr(x), .y = addr(y), .lda = lda, .incx = incx, .incy = incy, \
                                        .m = m, .n = n, .type = type_, .op = t, .routine = BLAS_GEMV };                \
        return m && n ? launch(h, &p, alpha, beta) : CUBLAS_STATUS_SUCCESS;                                            \
    }                                                                                                                  \
    cublasStatus_t cublas##L##trsm_v2(cublasHandle_t h, int side, int fill, cublasOperation_t t, int diag, int m, int n, \
                                      const void *alpha, const void *a, int lda, void *b, int ldb)                     \
    {                                                                                                                  \
        struct blas_vector_params p = { .a = addr(a), .x = addr(b), .lda = lda, .incx = ldb, .m = m, .n = n,           \
                                        .type = type_, .op = t, .side = side, .fill = fill, .diag = diag,              \
                                        .routine = BLAS_TRSM };                                                        \
        return m && n ? launch(h, &p, alpha, NULL) : CUBLAS_STATUS_SUCCESS;                                            \
    }                                                                                                                  \
    cublasStatus_t cublas##L##trsmBatched(cublasHandle_t h, int side, int fill, cublasOperation_t t, int diag, int m,  \
                                          int n, const void *alpha, const void *const a[], int lda, void *const b[],   \
                                          int ldb, int batch)                                                          \
    {                                                                                                                  \
        struct blas_vector_params p = { .a = addr((const void *)a), .x = addr((const void *)b), .lda = lda,            \
                                        .incx = ldb, .m = m, .n = n, .type = type_, .op = t, .side = side,             \
                                        .fill = fill, .diag = diag, .batch = batch, .routine = BLAS_TRSM };            \
        return m && n && batch ? launch(h, &p, alpha, NULL) : CUBLAS_STATUS_SUCCESS;                                   \
    }
VECTORS(S, CUDA_R_32F)
VECTORS(D, CUDA_R_64F)
VECTORS(C, CUDA_C_32F)
VECTORS(Z, CUDA_C_64F)
