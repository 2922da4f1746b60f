/* trial.h: one op of the probed iteration, run for the program and then again from the state before it, as often as it takes.
 *
 * A trial holds what the op touches: each buffer's content before the op (set aside, or known to be blank), and hashes of it before
 * and after. Every run begins from the old content; what is blank in a buffer holds the poison of that run. When a trial is closed,
 * memory is as the program's own run left it, or as an equal run did.
 *
 * Nothing waits without bound: an op may wait for a call that the program has not made yet (a flag in memory, another stream).
 * trial_settle() says -ETIMEDOUT then, and the op is left alone.
 *
 * Threads: under the engine's mutex. Errors: 0 or a
 * negative errno.
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

struct again; /* probe.h */

struct touched {
    struct slot *slot;
    uint64_t before[2], after[2], now[2]; /* hashes: before the op, after the program's run, after the latest run */
    struct aside old;
    struct blank_row *row; /* NULL: all of it was defined before the op */
    const struct blank *unwritten; /* the row's bytes that nobody had written before the op; NULL: none, or in too many pieces to be listed */
    const struct rt_op *filled; /* the memset of a part of it that came right before the op (cuBLASLt clears its counters so); NULL: there was none */
    bool saved;            /* `old` holds the content before the op */
    bool blank;            /* nothing had written any of it */
    bool changed;          /* by the program's run */
    bool keep;             /* the next run finds the buffer as the last run left it, but for the bytes that `filled` fills */
    bool spared;           /* its old content is not set aside */
    bool made;             /* it had none: every run makes all of it that is ever looked at */
    bool old_life;         /* older than the iteration */
    bool skipped;          /* trial_hash() leaves it out */
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
    bool cut;                  /* time, or memory, ended the search for what there is to know */
    unsigned char *hidden_args; /* the op's, with decoys in some words; goes with the trial */
    const unsigned char *args; /* of the runs that are not the program's; NULL: its own */
    bool planned;              /* under a plan: words that are the recorded operands are not asked about again */
    bool spoiled;              /* the latest run failed half-way: memory is neither as before the op nor as after it */
};

/* The device is idle as far as the streams we know go. -ETIMEDOUT: it is not, after a while (`patient`) or a moment; -EIO. The while is
 * longer than what a program may have queued: a few iterations of it. */
int trial_settle(struct device *d, bool patient);
/* The same after copies of our own, as many as the trial has queued: they are waited for as long as they take (60 s at most). */
int trial_settle_copies(struct trial *t);

/* Where it fails there is nothing to close. */
int trial_open(struct device *d, struct rt_op *op, struct trial *t);
/* The host waits for what the trial has queued on our own stream: nothing of it is under way afterwards. */
void trial_close(struct trial *t);
/* Hashes all buffers into now[], but for those that are skipped. */
int trial_hash(struct trial *t);
/* Nobody has used the slot since it was hashed last, into looked_hash. */
static inline bool trial_is_known(const struct slot *s) { return s->looked_tick && s->looked_tick == s->use_tick; }
/* The same before the op, into before[] as well. The caller knows the hashes of the buffers that are skipped, and has put these into now[]; afterwards none is skipped. */
int trial_hash_before(struct trial *t);
/* One more run from the old state, with `args` in place of the op's own (NULL: t->args); blank bytes hold `poison`. */
int trial_again(struct trial *t, unsigned char *args, unsigned char poison);
/* After a run that failed: once more from the old state, a few times if need be, so that memory is as the program's own run left it.
 * -EIO: it is not, and the program must be told. */
int trial_mend(struct trial *t);
/* now[] equals after[] for every buffer. */
bool trial_equal(const struct trial *t);
/* Sets the buffer's content aside, but for what nobody has written: u->saved, or a negative errno (aside_take). */
int trial_save(struct trial *t, struct touched *u, uint64_t left_ns);
/* Every buffer's old content is known, so that a run with other arguments can do no harm. */
int trial_save_all(struct trial *t);

#endif
