/*
 * How NVIDIA's cuda.h lays out the driver interface, and a check of our prototypes: this file declares every
 * function twice, by their header and by ours, so a prototype that differs does not compile.
 */
#include "tests/simgpu/abi_rows.h"

#if defined(__has_include)
#if __has_include(<cuda.h>)
#define __CUDA_API_VERSION_INTERNAL /* makes the header declare superseded and per-thread variants too */
#include <cuda.h>
#endif
#endif

#if defined(CUDA_VERSION) && CUDA_VERSION >= 13000
#define CUDA_ABI_FUNCTIONS_ONLY
#include "preload/cuda_abi.h"

const abi_row abi_rows_nvidia[] = {
#include "tests/simgpu/abi_rows.def"
};
const size_t abi_rows_nvidia_count = sizeof abi_rows_nvidia / sizeof abi_rows_nvidia[0];
#else
const abi_row abi_rows_nvidia[] = { { "", 0 } };
const size_t abi_rows_nvidia_count = 0;
#endif
