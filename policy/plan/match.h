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
    WANTS_PROOF, /* corresponds but for bytes that have changed, or for words of structs that perhaps nobody filled */
    CORRESPONDS_NOT
};

struct reading { /* match_op()'s findings */
    enum corresponds is;
    const char *why;
    bool whole;  /* the op has every recorded operand, and no other */
    bool same;   /* all bytes but for pointers and idle words are as in the iteration before */
    bool absent; /* a buffer that the op was recorded to change may not be changed by it now */
};

struct left_out { /* idle words of the op at hand that point at memory that remat knows */
    struct rt_operand operands[OP_MAX_OPERANDS];
    uint32_t n;
};

/* Compares the op with the recorded one at the cursor. Unknown buffers are bound on the way. operands[].regular: this operand is the recorded
 * one. `before`: findings of a first call without idle words, which are among the operands in this call; NULL: a first call, which moves idle words to
 * ex->now.left_out, except where the op wants proof. */
struct reading match_op(struct device *d, struct rt_op *op, const struct reading *before);
/* Words that turn out to be idle count as idle from here on. Returns their number. */
uint32_t match_free_stale_words(struct device *d, const struct rt_op *op, const struct rec_op *o);
/* The words left out are operands again. */
void match_take_idle_back(struct device *d, struct rt_op *op);

#endif
