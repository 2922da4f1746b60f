/* parts.h: in which bytes two runs of an op left a buffer different, found by hashes of the buffer's parts. Parts that hold nothing but the poison
 * are not taken to the host: most of a buffer may be unwritten (cuBLAS's workspace: 8 MiB, of which a gemm uses a few KiB).
 *
 *     parts_second() after the run with the second poison; parts_first() after the run with the first; parts_difference(); parts_free()
 *
 * Threads: under the engine's mutex; the device is idle. Errors: 0 or a negative errno; -EFBIG: the buffer is too large to look at.
 */
#ifndef REMAT_POLICY_PARTS_H
#define REMAT_POLICY_PARTS_H

#include "policy/device.h"
#include "policy/learn/blank.h"

struct parts {
    uint64_t bytes, part_bytes; /* the buffer's (0: nothing is known); each part's but the last */
    uint32_t n;
    uint64_t *hash;     /* [2 * n] hashes of the parts after the run with the second poison */
    uint64_t *first;    /* [2 * n] .. after the run with the first */
    uint32_t *place;    /* [n] where the part lies in `second`, in parts; UINT32_MAX: the part was all poison */
    unsigned char *second; /* content of the parts that were not all poison, one after another */
    unsigned char *mixed;  /* content after the run with the first poison, one part at a time */
    struct host_block *second_block, *mixed_block;
};

int parts_second(struct device *d, const struct slot *s, unsigned char poison, struct parts *p);
int parts_first(struct device *d, const struct slot *s, struct parts *p);
/* The bytes that differ, into *out. After parts_first(), with the buffer unchanged since. -E2BIG: too many ranges (blank.h). */
int parts_difference(struct device *d, const struct slot *s, unsigned char poison_first, unsigned char poison_second, struct parts *p, struct blank *out);
void parts_free(struct device *d, struct parts *p);

#endif
