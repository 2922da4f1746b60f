/*
 * One matmul, from a filled parameter struct to its launches: whole, or with k split where the result is small, k is long and the
 * workspace has room, as cuBLAS does. The choice depends on sizes and types alone, never on addresses or time. Threads: any.
 */
#ifndef BLAS_GEMM_H
#define BLAS_GEMM_H

#include "tests/simcuda/blas/blas_driver.h"

/* Splits that would be taken with so much workspace, and the workspace that they need (0 with one split). */
int blas_gemm_splits(const struct blas_gemm_params *p, size_t workspace_bytes, size_t *need_bytes);

/* Launches; p->splits and p->workspace are set here. INVALID_VALUE for sizes that make no sense, NOT_SUPPORTED (with a line on
   stderr) for types that are not there. Nothing to do (an empty result) is success. */
cublasStatus_t blas_gemm_launch(struct blas_gemm_params *p, uint64_t workspace, size_t workspace_bytes, cudaStream_t stream);

/* The type that alpha and beta have: -1 for a compute type that is not there. */
int blas_scale_type(cublasComputeType_t compute, int a_type);
/* A factor where the caller has it: on the device (at is set), or here, of the scale type. */
void blas_set_factor(const void *factor, int on_device, int scale_type, uint64_t *at, double held[2]);

#endif
