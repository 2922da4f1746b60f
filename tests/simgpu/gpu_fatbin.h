/*
 * Fat binaries: containers of machine code for several devices, as nvcc links them into programs. Here the one that the
 * simulated device would load is found and, if need be, unpacked.
 *
 * Threads: pure functions. Errors: a negative errno and one clause in `why`.
 */
#ifndef SIMGPU_FATBIN_H
#define SIMGPU_FATBIN_H

#include <stdbool.h>
#include <stddef.h>

/* Code for compute capability `code` runs on a device of `arch`: same major version, minor not newer. */
static inline bool gpu_fatbin_runs(unsigned code, unsigned arch)
{
    return code / 10 == arch / 10 && code <= arch;
}

struct gpu_fatbin_code {
    const unsigned char *bytes; /* an ELF file, or a text */
    size_t n_bytes;
    unsigned char *owned;       /* not NULL: `bytes` was unpacked; free it */
    unsigned arch;              /* it was compiled for */
};

bool gpu_fatbin_is(const void *image); /* by its first 4 bytes */
/* Bytes that a container says it has, header included. */
size_t gpu_fatbin_bytes(const void *image);
/* The best code for a device of compute capability arch / 10 . arch % 10: same major version, the newest minor that is not
   newer. -ENOENT: there is none (why says what there is instead), -EINVAL: broken, -ENOTSUP: packed in a way we cannot
   unpack, -ENOMEM. */
int gpu_fatbin_pick(const void *image, size_t image_bytes, unsigned arch, struct gpu_fatbin_code *out, char *why,
                    size_t why_bytes);
/* The newest PTX text for it or older ones, likewise; it need not end with a NUL. */
int gpu_fatbin_pick_text(const void *image, size_t image_bytes, unsigned arch, struct gpu_fatbin_code *out, char *why, size_t why_bytes);

#endif
