/*
 * What a handle of the simulated cuBLAS holds. A handle belongs to one thread at a time, as cuBLAS asks for.
 */
#ifndef CUBLAS_HANDLE_H
#define CUBLAS_HANDLE_H

#include "tests/simcuda/blas/blas_abi.h"

struct blas_handle {
    cudaStream_t stream;
    uint64_t workspace;      /* the caller's, 0: none, then k is never split */
    size_t workspace_bytes;
    uint64_t scalar;         /* on the device, for results that go to the host; taken at first need */
    int pointer_mode, math_mode, atomics_mode, sm_count_target;
};

#endif
