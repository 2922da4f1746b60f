/*
 * Between the files of the BLAS kernel module, which runs as device code of the simulated GPU: run() and cost() functions as
 * tests/simgpu/simgpu.h has them, params[0] being the one parameter struct. Threads of the simulated device; no errors.
 *
 * The arithmetic is OpenBLAS on the calling thread, so the same launch gives the same bits, wherever its operands lie.
 */
#ifndef BLAS_KERNELS_H
#define BLAS_KERNELS_H

#include "tests/simcuda/blas/blas_params.h"
#include "tests/simgpu/simgpu.h"

void blas_gemm_run(const simgpu_launch *l, void *const *params);
void blas_gemm_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes);
/* The two halves of a matmul whose k is split: partial sums into the workspace, then their sum. */
void blas_split_run(const simgpu_launch *l, void *const *params);
void blas_split_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes);
void blas_reduce_run(const simgpu_launch *l, void *const *params);
void blas_reduce_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes);
void blas_vector_run(const simgpu_launch *l, void *const *params);
void blas_vector_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes);

/* Address of matrix i of the batch. */
void *blas_matrix_at(const struct blas_gemm_params *p, const struct blas_matrix *x, int i);
/* A factor of the type scale_type: `held` (real, imaginary) unless it lies on the device. */
void blas_factor(uint64_t at, const double held[2], int scale_type, double out[2]);

/* The end of a matmul, for float and for double accumulators: d = epilogue(alpha sum + beta c) of batch entry i. `sum` is
   m x n with leading dimension m. With scaled, alpha and c are in it already. */
void blas_finish_f32(const struct blas_gemm_params *p, int i, const float *sum, int64_t ld, int scaled);
void blas_finish_f64(const struct blas_gemm_params *p, int i, const double *sum, int64_t ld, int scaled);

#endif
