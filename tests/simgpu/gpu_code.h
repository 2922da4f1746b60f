/*
 * Machine code for a real device, on a device that cannot run it: names, parameters and variables are its own, what a kernel
 * does comes from a catalogue of kernels in C (tests/simcuda/catalogue.h), asked by name at the first launch.
 *
 * Threads: any, not under gpu_lock. Errors: CUresult, with one line on stderr that says what is missing.
 */
#ifndef SIMGPU_GPU_CODE_H
#define SIMGPU_GPU_CODE_H

#include "tests/simcuda/catalogue.h"
#include "tests/simgpu/gpu.h"
#include "tests/simgpu/gpu_cubin.h"

#define GPU_CODE_ARCH 80u /* what gpu_device.c says the device is */

struct gpu_ptx;
struct ptx_kernel;
enum gpu_code_state { GPU_CODE_UNBOUND, GPU_CODE_BOUND, GPU_CODE_MISSING };

struct gpu_code {
    struct catalogue_kernel meta;
    struct catalogue_binding bound;  /* constant once `state` says so */
    _Atomic enum gpu_code_state state;
    const struct ptx_kernel *ptx;    /* of a text (gpu_ptx.h), bound from the beginning; NULL: of machine code */
};

struct gpu_code_file {
    struct gpu_cubin cubin;
    simgpu_kernel *kernels;   /* cubin.n_kernels: names and sizes of parameters; no run() */
    struct gpu_code *codes;   /* the same kernels */
    size_t *sizes;            /* of all parameters */
    struct gpu_ptx *ptx;      /* the text that all this was read of (gpu_ptx.h); NULL: machine code */
    struct {
        CUdeviceptr *at;           /* cubin.n_globals: 0 until somebody asks */
        unsigned long long ctx_id; /* where they were allocated */
    } variables[GPU_MAX_DEVICES];
};

/* Reads a fat binary, a container of code for several devices, or bare machine code of n bytes.
   CUDA_ERROR_NO_BINARY_FOR_GPU: there is none for this device; CUDA_ERROR_INVALID_IMAGE: it is broken. */
CUresult gpu_code_open(const void *image, size_t n, struct gpu_code_file **out);
void gpu_code_close(struct gpu_code_file *f); /* NULL is fine */
/* Makes kernels, codes and sizes of what the cubin says. */
CUresult gpu_code_fill(struct gpu_code_file *f, unsigned arch);
/* Looks the kernel up in the catalogue, the first time. CUDA_ERROR_NOT_FOUND: it is not there. */
CUresult gpu_code_bind(struct gpu_code *c);
/* A number for catalogue_launch.chaos. */
uint64_t gpu_code_chaos(void);
/* Address and size of a variable in the current context; either may be NULL. CUDA_ERROR_NOT_FOUND. */
CUresult gpu_code_global(struct gpu_code_file *f, const char *name, CUdeviceptr *at, size_t *bytes);

/* All variables in the current context. */
CUresult gpu_code_variables(struct gpu_code_file *f);

#endif
