/* image.h: the identity, the same in every process, of a code image that the driver is given to load: a digest of
 *
 *   a large image in a library that has a build-id    the build-id, the image's place in the library, its length, its first page
 *   any other (Triton's, NVRTC's, a file's)           all of its bytes
 *
 * The image itself tells its length: an ELF file (a cubin), a fat binary, the wrapper that nvcc puts around one, PTX (a text). Anything else has no
 * identity, nor has an image longer than IMAGE_BYTES_MOST that lies in no such library.
 *
 * Threads: any, with no lock of remat's held (loader.h). Errors: false. The image must be one that the driver has just accepted.
 */
#ifndef REMAT_TRACER_KNOWN_IMAGE_H
#define REMAT_TRACER_KNOWN_IMAGE_H

#include "tracer/known/known.h"

enum { IMAGE_BYTES_MOST = 64 << 20 };

bool image_code(const void *image, struct known_code *code);
/* The identity of an image that is a whole file. */
bool image_file_code(const char *path, struct known_code *code);
/* Length of the image that lies in `most` bytes (SIZE_MAX: unknown); *at: its first byte (a wrapper points elsewhere). 0: unknown. */
size_t image_bytes(const void *image, size_t most, const void **at);

#endif
