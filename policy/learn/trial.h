/* trial.h: one op of the probed iteration, run for the program and then again from the state before it, as often as measuring takes.
 *
 * A trial holds the buffers that the op touches: the content of each before the op (set aside, or known to be blank), and its hashes before
 * and after. Every run begins from the old content; blank bytes hold the poison of that run. When a trial is closed, memory is as the
 * program's own run left it, or as an equal run did.
 *
 * No wait is without bound: an op may wait for a call that the program has not made yet (a flag in memory, another stream).
 * trial_settle() returns -ETIMEDOUT then, and the op is left alone.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_TRIAL_H
#define REMAT_POLICY_TRIAL_H

#include "policy/memory/aside.h"
#include "policy/learn/hashing.h"
#include "policy/learn/rows.h"
#include "policy/memory/slot.h"
#include "policy/op/op.h"
#include "tracer/known/known.h"

/* Finite, ordinary numbers in every float and integer format: a careless 0 x garbage must not become NaN. */
enum { POISON_FIRST = 0x3c, POISON_SECOND = 0x3d };

struct again; /* again.h */

struct touched {
    struct slot *slot;
    uint64_t before[2], after[2], now[2]; /* hashes: before the op, after the program's run, after the latest run */
    struct aside old;
    struct blank_row *row; /* NULL: every byte counts as defined before the op */
    const struct blank *unwritten; /* the row's bytes that nobody had written before the op; NULL: none, or in too many pieces to be listed */
    const struct rt_op *filled; /* the memset that filled a part of the buffer right before the op (cuBLASLt clears its counters so); NULL: none */
    bool saved;            /* `old` holds the content before the op */
    bool blank;            /* nothing had written any byte of the buffer before the op */
    bool changed;          /* the program's own run changed the buffer */
    bool keep;             /* the next run finds the buffer as the last run left it, but for the bytes that `filled` fills */
    bool spared;           /* trial_save_all() leaves the buffer out: its old content is not set aside */
    bool made;             /* the op overwrites the buffer wholly, so no old content is needed: every run makes all of it that is ever looked at */
    bool old_life;         /* allocated before the iteration */
    bool skipped;          /* trial_hash() leaves the buffer out */
};

struct trial {
    struct device *d;
    struct rt_op *op;
    struct touched *u;
    uint32_t n;
    struct hash_range *ranges; /* [n] */
    uint64_t *h;               /* [2 * n] */
    struct blank *left;        /* [n] blank bytes after the op, where `partial` */
    bool *partial;             /* [n] */
    uint8_t *word;             /* [operands before the trial] enum known_use: idle, read, or untried */
    bool cut;                  /* the search for what matters ended early, for want of time or memory */
    unsigned char *hidden_args; /* a copy of the op's arguments, with decoys in some words; trial_close() frees it */
    const unsigned char *args; /* arguments of all runs but the program's own; NULL: the op's */
    bool planned;              /* under a plan: words that are the recorded operands are not tested again */
    bool spoiled;              /* the latest run failed half-way: memory is neither as before the op nor as after it */
};

/* Waits until all streams that remat knows are idle. -ETIMEDOUT: one is not, after a moment, or (`patient`) after longer than the work takes that a program may have queued, a
 * few iterations of it; -EIO: the driver does not say. */
int trial_settle(struct device *d, bool patient);
/* Waits for the copies that the trial has queued, as long as they take (60 s at most), then like trial_settle(), patiently. */
int trial_settle_copies(struct trial *t);

/* Lists the buffers that the op touches, and fills the blank ones with POISON_FIRST. After an error there is nothing to close. */
int trial_open(struct device *d, struct rt_op *op, struct trial *t);
/* The host waits for the work that the trial has queued on STREAM_IN: none of it is under way afterwards. */
void trial_close(struct trial *t);
/* Hashes all buffers but the `skipped` ones into now[]. */
int trial_hash(struct trial *t);
/* True if looked_hash is the hash of the slot's content: nothing has used the slot since it was hashed. */
static inline bool trial_is_known(const struct slot *s) { return s->looked_tick && s->looked_tick == s->use_tick; }
/* Like trial_hash(), before the op, and into before[] as well. The caller knows the hashes of the `skipped` buffers, and has put these into now[]; afterwards no buffer is
 * skipped. */
int trial_hash_before(struct trial *t);
/* Runs the op once more from the state before it, with the arguments `args` (NULL: t->args); blank bytes hold `poison` first. Then like trial_hash(). */
int trial_again(struct trial *t, unsigned char *args, unsigned char poison);
/* After a run that failed: runs the op again from the state before it, a few times if need be, so that memory is as the program's own run left it. -EIO: memory is not, and
 * the program must be told. */
int trial_mend(struct trial *t);
/* now[] equals after[] for every buffer. */
bool trial_equal(const struct trial *t);
/* Sets the buffer's content aside, without the bytes that nobody has written: 0 and u->saved, or a negative errno (aside_take). A copy to the host is made only if it takes
 * `left_ns` at most. */
int trial_save(struct trial *t, struct touched *u, uint64_t left_ns);
/* Sets aside the content of every buffer that is neither saved nor blank nor spared, so that a run with other arguments can do no harm. -ENOMEM also where such a buffer has
 * changed already. */
int trial_save_all(struct trial *t);

#endif
