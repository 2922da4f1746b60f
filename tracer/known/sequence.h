/* sequence.h: iterations of earlier runs as sequences of signatures that hold in any process, and where one of them has just gone by.
 *
 * Bytes of a sequence are a cache entry's content (cache.h); they are checked, and what does not fit is refused.
 * Pure data. Threads: one owner. Errors: 0 or a negative errno. Cost: a comparison for each sequence and op.
 */
#ifndef REMAT_TRACER_KNOWN_SEQUENCE_H
#define REMAT_TRACER_KNOWN_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEQUENCES_MOST = 16, SEQUENCE_OPS_MOST = 65536, SEQUENCE_WORDS_MOST = 65536 };

/* What the run that learnt an iteration says of it to later runs. */
struct sequence_about {
    uint64_t ops;
    uint64_t swap_ns, swap_ops;    /* device time that so many ops took while memory was held by swapping; 0: not known */
    uint64_t checked;              /* a whole lesson found no memory changed but by what the launches' arguments show */
    uint64_t needs_past;           /* what the lesson found hung on the iterations before it: a batch fetched ahead */
    uint64_t n_irregular;          /* argument words that pointed at other buffers in the iterations before */
};

struct sequences;

struct sequences *sequences_new(void);
void sequences_free(struct sequences *s);
/* The content of an entry: sigs[about->ops], irregular[about->n_irregular] as sequence_word() makes them, rising. *bytes: the caller frees them. */
int sequence_write(const struct sequence_about *about, const uint64_t *sigs, const uint64_t *irregular, unsigned char **bytes, size_t *n);
static inline uint64_t sequence_word(uint64_t op, uint32_t offset) { return op << 32 | offset; }
/* -EBADMSG: no such content; -ENOSPC: there are SEQUENCES_MOST already. */
int sequence_add(struct sequences *s, const unsigned char *bytes, size_t n);
/* What comes next does not follow what came last. */
void sequences_break(struct sequences *s);
/* One more op. The longest sequence that has just ended with it; -1: none has, or a longer one is under way of which it may be a part. */
int sequences_feed(struct sequences *s, uint64_t sig);
/* With the op that was fed last a sequence may have ended though it has not gone by whole: it ends with such an op, at least half of it has gone by from
 * its beginning, and since that as many ops as it has, or more (the first iteration makes an optimizer's state, too). The longest; -1: none. */
int sequences_may_end(const struct sequences *s, uint64_t sig);
const struct sequence_about *sequence_about(const struct sequences *s, int which);
const uint64_t *sequence_sigs(const struct sequences *s, int which);
bool sequence_is_irregular(const struct sequences *s, int which, uint64_t op, uint32_t offset);

#endif
