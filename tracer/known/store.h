/* store.h: the facts of one image's kernels (known.h) as bytes, for another process.
 *
 * Written are the patterns measured twice or in a lesson that came to its end, the patterns of earlier runs, and the wild ones, which are never
 * to be believed again. The bytes of addresses are written as zeros.
 * Patterns that were read count in the table like its own, but for patterns with idle words: no later op would show that such a word is in use after
 * all (a list whose length lies in memory). One launch measured in this process has to confirm these before they are believed.
 *
 * A reason why launches are not replayed is one of `whys`, and is written as its index in that list.
 * Threads: one owner. Errors: 0 or a negative errno.
 */
#ifndef REMAT_TRACER_KNOWN_STORE_H
#define REMAT_TRACER_KNOWN_STORE_H

#include "tracer/known/known.h"

enum { STORE_WHYS = 2 }; /* number of reasons, for the library and for the tool, which uses their indices alone */

struct known_whys {
    const char *const *text; /* [n] */
    uint32_t n;
};

/* The caller frees *bytes. *n is 0 if the image has no patterns to write. -EFBIG: more than `most` bytes; nothing is written. */
int store_write(const struct known *k, struct known_code code, struct known_whys whys, size_t most, unsigned char **bytes, size_t *n);
/* Adds the patterns in `bytes` to the table. A pattern that the table has already stays, or becomes wild if it is wild in `bytes`. -EBADMSG: malformed bytes; the
 * patterns before the fault were read. *patterns: the number of new patterns (NULL: not wanted). */
int store_read(struct known *k, struct known_code code, struct known_whys whys, const unsigned char *bytes, size_t n, uint32_t *patterns);

#endif
