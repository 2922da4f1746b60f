/*
 * The kernel module of the simulated cuBLAS: $(B)/simcuda/blas_kernels.so. One name for each element type, as on a device, so that
 * what a trace shows of a matmul says of what.
 */
#include "tests/simcuda/blas/blas_kernels.h"

static const size_t GEMM_BYTES[] = { sizeof(struct blas_gemm_params) };
static const size_t VECTOR_BYTES[] = { sizeof(struct blas_vector_params) };

#define GEMM(type)                                                                                                     \
    { "simblas_" type "gemm", 1, GEMM_BYTES, blas_gemm_run, blas_gemm_cost },                                          \
    { "simblas_" type "gemm_splitk", 1, GEMM_BYTES, blas_split_run, blas_split_cost },                                 \
    { "simblas_" type "gemm_splitk_reduce", 1, GEMM_BYTES, blas_reduce_run, blas_reduce_cost }
#define VECTOR(name) { "simblas_" name, 1, VECTOR_BYTES, blas_vector_run, blas_vector_cost }

static const simgpu_kernel KERNELS[] = {
    GEMM("s"), GEMM("d"), GEMM("c"), GEMM("z"), GEMM("h"), GEMM("bf16"),
    VECTOR("dot"), VECTOR("axpy"), VECTOR("scal"), VECTOR("copy"), VECTOR("swap"), VECTOR("nrm2"), VECTOR("asum"),
    VECTOR("gemv"), VECTOR("ger"), VECTOR("trsm"),
};

__attribute__((visibility("default"))) const simgpu_module_info simgpu_module = {
    SIMGPU_ABI, sizeof KERNELS / sizeof *KERNELS, KERNELS
};
