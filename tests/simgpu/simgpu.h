/*
 * The kernel module ABI of the simulated GPU (abi 1).
 *
 * A kernel module is an ELF shared object that exports one symbol, `const simgpu_module_info simgpu_module`.
 * cuModuleLoad and cuLibraryLoadFromFile take its path, cuModuleLoadData and cuLibraryLoadData its bytes.
 *
 * Threads: run() is called on a thread of the simulated GPU, after the call that launched it has returned;
 * kernels of one stream one after the other, kernels of different streams at the same time. It may start
 * threads of its own, which must have ended when it returns, and may make no driver call. cost() is called
 * on the thread that launches, before the launch returns, so it may look at the parameters but not at memory
 * they point to. Device addresses are valid inside run() and nowhere else. A run() that touches memory which
 * is not mapped ends there: its stack is abandoned (locks it held stay held, memory it allocated is lost),
 * and the context reports CUDA_ERROR_ILLEGAL_ADDRESS from then on. There is no other error.
 */
#ifndef SIMGPU_H
#define SIMGPU_H

#include <stddef.h>
#include <stdint.h>

#define SIMGPU_ABI 1u

typedef struct { unsigned x, y, z; } simgpu_dim3;
typedef struct { simgpu_dim3 grid, block; unsigned shared_bytes; } simgpu_launch;
typedef struct {
    const char *name;          /* as cuModuleGetFunction asks for it */
    unsigned n_params;
    const size_t *param_bytes; /* size of each parameter; its offset is the previous end rounded up to
                                  min(8, the largest power of two that divides the size) */
    void (*run)(const simgpu_launch *l, void *const *params);
    void (*cost)(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes);
} simgpu_kernel;
typedef struct { unsigned abi; unsigned n_kernels; const simgpu_kernel *kernels; } simgpu_module_info;

/* Define exactly this symbol with default visibility; params[i] points to parameter i's bytes. cost may be
   NULL: the kernel then takes the launch overhead alone. */
extern const simgpu_module_info simgpu_module;

#endif
