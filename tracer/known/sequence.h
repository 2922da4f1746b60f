/* sequence.h: iterations of earlier runs as sequences of op signatures that hold in any process; finds where the program has just run one of them.
 *
 * The bytes of a sequence are a cache entry's content (cache.h); malformed bytes are refused.
 * Pure data. Threads: one owner. Errors: 0 or a negative errno. Cost: a comparison for each sequence and op.
 */
#ifndef REMAT_TRACER_KNOWN_SEQUENCE_H
#define REMAT_TRACER_KNOWN_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEQUENCES_MOST = 16, SEQUENCE_OPS_MOST = 65536, SEQUENCE_WORDS_MOST = 65536 };

/* A learnt iteration, as told to later runs. */
struct sequence_about {
    uint64_t ops;
    uint64_t swap_ns, swap_ops;    /* device time that swap_ops ops took while memory was held by swapping; 0: not known */
    uint64_t checked;              /* 1: a whole lesson found no memory changed but through the launches' arguments */
    uint64_t needs_past;           /* 1: the lesson's findings depend on the iterations before it (a batch fetched ahead) */
    uint64_t n_irregular;          /* argument words that pointed at other buffers in the iterations before */
};

struct sequences;

struct sequences *sequences_new(void);
void sequences_free(struct sequences *s);
/* Makes an entry's content of sigs[about->ops] and irregular[about->n_irregular], which are values of sequence_word(), rising. The caller frees *bytes. */
int sequence_write(const struct sequence_about *about, const uint64_t *sigs, const uint64_t *irregular, unsigned char **bytes, size_t *n);
static inline uint64_t sequence_word(uint64_t op, uint32_t offset) { return op << 32 | offset; }
/* Adds a sequence from an entry's content. -EBADMSG: the bytes are no such content; -ENOSPC: there are SEQUENCES_MOST already. */
int sequence_add(struct sequences *s, const unsigned char *bytes, size_t n);
/* The next op does not follow the last one. */
void sequences_break(struct sequences *s);
/* Feeds an op. Returns the longest sequence that ends with this op; -1: none does, or the longest may be a part of a longer one that is under way. */
int sequences_feed(struct sequences *s, uint64_t sig);
/* The longest sequence that may have ended with the op fed last (`sig`) though some of its ops are missing: the sequence's last op is `sig`, at least its
 * first half was seen, and since its beginning at least as many ops came as it has (a first iteration makes an optimizer's state, too). -1: none. */
int sequences_may_end(const struct sequences *s, uint64_t sig);
const struct sequence_about *sequence_about(const struct sequences *s, int which);
const uint64_t *sequence_sigs(const struct sequences *s, int which);
bool sequence_is_irregular(const struct sequences *s, int which, uint64_t op, uint32_t offset);

#endif
