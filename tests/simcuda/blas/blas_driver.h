/*
 * How the simulated cuBLAS reaches the device: the driver through dlopen, dlsym and cuGetProcAddress, as the runtime inside
 * NVIDIA's library does, and the kernel module blas_kernels.so that lies beside this library.
 *
 * Threads: any. Errors: cublasStatus_t numbers; what the driver refuses is CUBLAS_STATUS_EXECUTION_FAILED. What cannot
 * be had at all (no driver, no module) is said once on stderr.
 */
#ifndef BLAS_DRIVER_H
#define BLAS_DRIVER_H

#include "tests/simcuda/blas/blas_abi.h"
#include "tests/simcuda/blas/blas_params.h"

/* Makes the calling thread able to launch: driver up, a context current (device 0's primary one where there is none). */
cublasStatus_t blas_driver_ready(void);

struct blas_grid { unsigned x, y, z; };
/* Launches the kernel of that name with one parameter, copied before this returns. */
cublasStatus_t blas_launch(const char *kernel, struct blas_grid grid, unsigned block, const void *params, cudaStream_t stream);

/* Device memory for a scalar that a routine gives to the host: taken once by a handle, 16 bytes. */
cublasStatus_t blas_scalar_alloc(uint64_t *at);
void blas_scalar_free(uint64_t at);
/* Waits for the stream and copies. */
cublasStatus_t blas_scalar_read(uint64_t at, void *to, size_t bytes, cudaStream_t stream);

/* One line on stderr, each different `what` once: a request that is not answered here. Returns NOT_SUPPORTED. */
cublasStatus_t blas_refuse(const char *what);

#endif
