/* match.h: does the program's op correspond to the recorded one?
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_MATCH_H
#define REMAT_POLICY_MATCH_H

#include "policy/plan/cursor.h"

/* How a launch corresponds to the recorded one. */
enum corresponds {
    CORRESPONDS,
    WANTS_PROOF, /* but for bytes that are others now, or words of structs that nobody may have filled */
    CORRESPONDS_NOT
};

struct reading { /* what match_op() found */
    enum corresponds is;
    const char *why;
    bool whole;  /* every recorded operand is there, and no other */
    bool same;   /* all bytes but for pointers and idle words are those of the iteration before */
    bool absent; /* a buffer that the op was recorded to change may not be changed by it now */
};

struct left_out { /* of the op at hand: the idle words that point at memory we know */
    struct rt_operand operands[OP_MAX_OPERANDS];
    uint32_t n;
};

/* The op against the recorded one at the cursor. Unknown buffers are bound on the way. operands[].regular: it is the operand that was
 * recorded. before: what was found without idle words, which are among the operands now; else NULL: idle words go to ex->now.left_out then, but
 * where the op wants proof. */
struct reading match_op(struct device *d, struct rt_op *op, const struct reading *before);
/* Words that now turn out to be idle are known to be so from here on; their number. */
uint32_t match_free_stale_words(struct device *d, const struct rt_op *op, const struct rec_op *o);
/* The words left out are operands again. */
void match_take_idle_back(struct device *d, struct rt_op *op);

#endif
