/*
 * What a BLAS kernel of the simulated device is launched with: one struct by value, as NVIDIA's kernels get theirs. The host
 * libraries fill it wholly (unused fields are 0), the kernels read it.
 *
 * Matrices are column-major. Addresses are the device's. Types are cudaDataType numbers.
 */
#ifndef BLAS_PARAMS_H
#define BLAS_PARAMS_H

#include <stdint.h>

struct blas_matrix {
    uint64_t at;      /* the first matrix; with pointer_arrays an array of `batch` addresses on the device */
    int64_t ld;       /* elements from one column to the next */
    int64_t stride;   /* elements from one matrix of the batch to the next; 0: all the same */
    int32_t type, op; /* op: cublasOperation_t, of a and b only */
};

/* d = epilogue(alpha op(a) op(b) + beta c), d and c of m x n, op(a) of m x k. c and d may be one. */
struct blas_gemm_params {
    struct blas_matrix a, b, c, d;
    uint64_t workspace;           /* split sums: [batch][split][n][m] in the accumulator's type, nothing else of it is used */
    uint64_t bias, aux;           /* of the epilogue */
    uint64_t alpha_at, beta_at;   /* 0: alpha and beta hold, else where on the device, in the scale type */
    double alpha[2], beta[2];     /* real, imaginary */
    int64_t bias_stride;          /* elements from one batch entry to the next */
    int64_t aux_ld, aux_stride;   /* elements; bits where aux is a mask of ReLU */
    int32_t m, n, k, batch;
    int32_t pointer_arrays;
    int32_t splits;               /* parts that k is cut in; 1: no workspace */
    int32_t epilogue;             /* LT_EPILOGUE_ bits */
    int32_t bias_type, aux_type, scale_type;
};

/* The other routines: vectors x and y of n elements, or a matrix a. Which fields count depends on the routine. */
enum blas_routine {
    BLAS_DOT, BLAS_AXPY, BLAS_SCAL, BLAS_COPY, BLAS_SWAP, BLAS_NRM2, BLAS_ASUM, BLAS_GEMV, BLAS_GER, BLAS_TRSM, BLAS_ROUTINES
};
struct blas_vector_params {
    uint64_t a, x, y, result;     /* trsm: b is in x; trsm batched: a and x are arrays of addresses on the device */
    uint64_t alpha_at, beta_at;
    double alpha[2], beta[2];
    int64_t lda, incx, incy;      /* trsm: ldb in incx */
    int32_t m, n;
    int32_t type, y_type, result_type, scale_type;
    int32_t op;                   /* of a; dot, ger: CUBLAS_OP_C conjugates */
    int32_t side, fill, diag;     /* trsm */
    int32_t batch;                /* trsm; 0: a and x are addresses of matrices */
    int32_t routine;
};

#endif
