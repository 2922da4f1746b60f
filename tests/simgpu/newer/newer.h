/* newer.h: calls of a driver that is newer than remat's tables of doors. They do what a known call does, by other names and with other arguments: each writes
 * device memory in stream order.
 *
 * newer/libcuda.so.1 exports them, and answers cuGetProcAddress with the first two for CUDA 14.0, with cuFreshFill for any version, and with functions that no
 * symbol names for "cuMemsetD16Async" of CUDA 14.0.
 */
#ifndef SIMGPU_NEWER_H
#define SIMGPU_NEWER_H

#include "preload/cuda_abi.h"

enum { NEWER_VERSION = 14000 };

/* newer variants of calls that have a door: every argument register and some of the stack */
CUresult cuMemsetD32Async_v2(CUdeviceptr to, unsigned value, size_t n, CUstream s, unsigned a, unsigned b, unsigned c, unsigned d);
CUresult cuMemcpyHtoDAsync_v3(double weight, CUdeviceptr to, const void *from, size_t bytes, CUstream s);
/* a call that nobody has heard of */
CUresult cuFreshFill(CUdeviceptr to, unsigned value, size_t n, CUstream s);

#endif
