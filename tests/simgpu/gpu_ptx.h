/*
 * PTX text as a module (ptx/): its kernels become those of a gpu_code_file that are bound already, its variables take memory in each context
 * that launches one.
 *
 * A module in C may stand for a text that is run often, word for word (tracer/effects/sim_module.c for remat's own): SIMGPU_TWINS names such
 * objects, divided by colons; "remat_kernels.so" beside the driver unless it says otherwise, none if it is empty. Each exports
 * `const char *const simgpu_stands_for`, the text.
 *
 * Threads: any, not under gpu_lock. Errors: CUresult.
 */
#ifndef SIMGPU_GPU_PTX_H
#define SIMGPU_GPU_PTX_H

#include "tests/simgpu/gpu_code.h"

struct gpu_jit_log { /* of cuModuleLoadDataEx; what a compiler would say goes there */
    unsigned n;
    const CUjit_option *options;
    void **values;
};

bool gpu_ptx_is(const void *image); /* a text; one byte after the other is looked at */
/* n: SIZE_MAX where the text ends with its NUL. `why` says what is wrong. */
CUresult gpu_ptx_open(const char *text, size_t n, struct gpu_code_file **out, char *why, size_t room);
/* Fills the buffers that the options name. `text` NULL: nothing went wrong. */
void gpu_ptx_log(const struct gpu_jit_log *log, const char *text);
/* The object that stands for this text, its path in `path`; false: none. */
bool gpu_ptx_twin(const char *text, char *path, size_t room);
/* Before a launch: memory for the variables of the kernel's program in the current context. */
CUresult gpu_ptx_prepare(const struct gpu_code *c);
/* The initial values of a file's variables, which lie at at[0], at[1], ... */
void gpu_ptx_begin(const struct gpu_code_file *f, const CUdeviceptr *at);
void gpu_ptx_close(struct gpu_ptx *p); /* NULL is fine */

#endif
