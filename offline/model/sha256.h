/* SHA-256 (FIPS 180-4) of a block of memory, as lower-case hex. A plan names its trace by it.
 * Threads: no state. Errors: none. */
#ifndef REMAT_OFFLINE_SHA256_H
#define REMAT_OFFLINE_SHA256_H

#include <stddef.h>

void sha256_hex(const void *data, size_t len, char hex[65]);

#endif
