/* digest.h: 128 bits of what some bytes are. No two inputs of one length that differ in one byte have the same; made against damage and mistakes, not
 * against people.
 *
 * Pure. Threads: any.
 */
#ifndef REMAT_TRACER_KNOWN_DIGEST_H
#define REMAT_TRACER_KNOWN_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* About 3 GB/s. */
void digest(const void *bytes, size_t n, uint64_t out[2]);

#endif
