/* unpack.h: text that was compressed, told by its first bytes: gzip, xz or zstd.
 *
 * The machine's own gzip, xz or zstd does the work, found in PATH. Threads: any. Ownership: the caller frees *out.
 */
#ifndef REMAT_OFFLINE_UNPACK_H
#define REMAT_OFFLINE_UNPACK_H

#include <stddef.h>

/* The program that made these bytes, or NULL: they are not compressed. */
const char *unpack_needs(const char *bytes, size_t n);

/* Errors: -EFBIG more than `most` bytes; -ENOENT there is no such program; -EINVAL the program fails (a damaged file); -ENOMEM; -EIO. */
int unpack(const char *with, const char *bytes, size_t n, size_t most, char **out, size_t *out_n);

#endif
