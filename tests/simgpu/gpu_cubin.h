/*
 * Cubins: ELF files with a device's machine code. The code is of no use here, but what stands beside it is: which kernels
 * there are, where their parameters lie, how many threads a block may have, which variables the module owns.
 *
 * Threads: pure functions. Errors: a negative errno and one clause in `why`.
 */
#ifndef SIMGPU_CUBIN_H
#define SIMGPU_CUBIN_H

#include <stddef.h>
#include <stdint.h>

enum {
    GPU_CUBIN_MAX_PARAM_BYTES = 32764, /* the driver's limit */
    GPU_CUBIN_MACHINE = 190            /* e_machine */
};

struct gpu_cubin_kernel {
    const char *name;
    uint32_t *offset, *bytes; /* n_params each: of the parameter in the parameter block */
    unsigned n_params;
    uint32_t param_bytes, max_threads, static_shared_bytes, registers;
};
struct gpu_cubin_global {
    const char *name;
    uint64_t n_bytes;
    const unsigned char *init; /* NULL: zeros */
};
struct gpu_cubin {
    struct gpu_cubin_kernel *kernels;
    const char **names; /* of the kernels */
    struct gpu_cubin_global *globals;
    unsigned n_kernels, n_globals;
    char *store; /* names and initial values */
    unsigned arch; /* what the code is for: 80, 90, ... */
};

/* Reads an image; *out points nowhere into it. -EINVAL: broken or no cubin, -ENOMEM. On error *out is empty. */
int gpu_cubin_read(const unsigned char *image, size_t image_bytes, struct gpu_cubin *out, char *why, size_t why_bytes);
void gpu_cubin_free(struct gpu_cubin *c);

#endif
