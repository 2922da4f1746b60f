/* store.h: what is known of the kernels of one image (known.h) as bytes, for another process.
 *
 * Written is what a later run may go by: patterns that were measured twice or in a lesson that came to its end, those that an earlier run had found, and
 * those that are never to be believed again. The bytes of addresses are written as zeros.
 * Read patterns take part in the table like its own, but for those with idle words: nothing that runs afterwards would show that such a word is in use after
 * all (a list whose length lies in memory), so one launch in this process has to say so too before they are believed.
 *
 * A reason why launches are not replayed is one of `whys`, and is written as its place there.
 * Threads: one owner. Errors: 0 or a negative errno.
 */
#ifndef REMAT_TRACER_KNOWN_STORE_H
#define REMAT_TRACER_KNOWN_STORE_H

#include "tracer/known/known.h"

enum { STORE_WHYS = 2 }; /* of the library, and of the tool, which takes them for places alone */

struct known_whys {
    const char *const *text; /* [n] */
    uint32_t n;
};

/* *bytes: the caller frees them. *n is 0 where there is nothing to write. -EFBIG: more than `most` bytes; nothing is written. */
int store_write(const struct known *k, struct known_code code, struct known_whys whys, size_t most, unsigned char **bytes, size_t *n);
/* What is there already stays, or is believed no more where these bytes say so. -EBADMSG: no such bytes; what came before the fault was read.
 * *patterns: so many were new (NULL: nobody asks). */
int store_read(struct known *k, struct known_code code, struct known_whys whys, const unsigned char *bytes, size_t n, uint32_t *patterns);

#endif
