/* digest.h: a 128-bit hash of some bytes. Two inputs of one length that differ in one byte never have the same digest; made against damage and mistakes, not
 * against attackers.
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
