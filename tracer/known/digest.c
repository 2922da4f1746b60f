/* digest.c: see digest.h. The arithmetic is that of hashes on the device: each word mixed with its index, and summed. */
#include "tracer/known/digest.h"
#include "tracer/effects/hash.h"

#include <string.h>

void digest(const void *bytes, size_t n, uint64_t out[2])
{
    const unsigned char *p = bytes;
    hash_word a = hash_mix(n + 1), b = hash_mix(~(hash_word)n), w;
    size_t i = 0;
    for (; 8 * i + 8 <= n; i++) {
        memcpy(&w, p + 8 * i, 8);
        a += hash_first(w, i);
        b += hash_second(w, i);
    }
    w = hash_tail(p + 8 * i, n - 8 * i);
    out[0] = a + hash_first(w, i);
    out[1] = b + hash_second(w, i);
}
