/* fact.h: what the driver-fact programs share: one JSON line, a context, kernels, a clock.
 *
 * Each program of this folder asks the driver one question and prints one JSON object on one line:
 *   {"fact":"alias","ok":true,"mismatches":0,...}
 * `ok` says that the question could be asked to its end, not that the answer is the hoped-for one. A driver call
 * that fails ends the program with "ok":false, "error" naming call and code, and everything learnt before it. A
 * crash does the same with "signal".
 *
 * Threads: the main thread only. Errors: fact_cu() prints and exits with status 1; nothing here returns an error.
 */
#ifndef REMAT_GPU_FACT_H
#define REMAT_GPU_FACT_H

#include "preload/cuda_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FACT_CHUNK_BYTES ((size_t)2 << 20)

/* Opens the line for `name`. Call first. */
void fact_begin(const char *name);
void fact_bool(const char *key, bool v);
void fact_int(const char *key, long long v);
void fact_num(const char *key, double v);
void fact_str(const char *key, const char *v);
/* A list of n numbers. */
void fact_nums(const char *key, const double *v, int n);
/* Prints the line; returns the exit status (0). */
int fact_end(void);
/* Prints the line with "ok":false and "error", and exits with 1: a driver call failed with `code`, or `why` says why
 * the question cannot be asked. */
_Noreturn void fact_fail(const char *what, int code);
_Noreturn void fact_refuse(const char *why);

#define fact_cu(call)                                                                                                  \
    do {                                                                                                               \
        CUresult fact_rc_ = (call);                                                                                    \
        if (fact_rc_ != CUDA_SUCCESS)                                                                                  \
            fact_fail(#call, (int)fact_rc_);                                                                           \
    } while (0)

/* cuInit, device 0, its primary context made current. Adds "device" to the line. */
CUdevice fact_open(void);
/* Loads the kernels next to the program: kernels.ptx on a real device, kernels.simgpu.so on the simulated one. */
CUmodule fact_module(void);
/* The image that fact_module loaded, read into memory: for cuLibraryLoadData. Owned by fact.c. */
const void *fact_image(void);
CUfunction fact_kernel(CUmodule m, const char *name);

/* One grid-stride launch on `s`: `args` as cuLaunchKernel takes them. */
void fact_launch(CUfunction f, unsigned blocks, CUstream s, void **args);
/* fact_spin for `ns` of device time on s; `out` receives 1 when it is over. */
void fact_spin(CUfunction spin, CUdeviceptr out, uint64_t ns, CUstream s);

/* Monotonic host clock, in microseconds. */
double fact_now_us(void);
/* Median of n values; sorts v. */
double fact_median(double *v, int n);

/* A physical chunk property for device `dev`, and the access that goes with it. */
CUmemAllocationProp fact_prop(CUdevice dev);
CUmemAccessDesc fact_access(CUdevice dev);

#endif
