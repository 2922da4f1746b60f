/* image.h: whose code it is, in words that hold in another process: the identity of an image that the driver is given to load.
 *
 *   a large image in a library that has a build-id    the build-id, where in the library the image lies, how long it is, its first page
 *   any other (Triton's, NVRTC's, a file's)           all of its bytes
 *
 * An image says itself how long it is: an ELF file (a cubin), a fat binary, the wrapper that nvcc puts around one, PTX (a text). Of anything else, and of
 * what is longer than IMAGE_BYTES_MOST and lies in no such library, nothing is known.
 *
 * Threads: any, with no lock of ours held (loader.h). Errors: false. The image is one that the driver has just accepted.
 */
#ifndef REMAT_TRACER_KNOWN_IMAGE_H
#define REMAT_TRACER_KNOWN_IMAGE_H

#include "tracer/known/known.h"

enum { IMAGE_BYTES_MOST = 64 << 20 };

bool image_code(const void *image, struct known_code *code);
/* The image is the file. */
bool image_file_code(const char *path, struct known_code *code);
/* How long an image is that lies in so many bytes (SIZE_MAX: unknown), from *at on, where a wrapper may point; 0: unknown. */
size_t image_bytes(const void *image, size_t most, const void **at);

#endif
