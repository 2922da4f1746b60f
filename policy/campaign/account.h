/* account.h: what plans save beside swapping, and what the way to them costs, in device time, by events that nobody waits for.
 *
 *   spent      device time that learning has taken beside the program's own (counts.h: learning_ns)
 *   balance    over all stretches under a plan: what as many ops took by swapping, less what they took. Rehearsals and departures count, and after a
 *              departure as many ops as an iteration has, or fewer where the plan is taken up before: there what the plan had sent away comes back.
 *              Where the plan was left before its first op, these are ops of no iteration (an optimizer's step between batches whose gradients are summed), and nobody
 *              knows what swapping would take for them: their copies alone count, less the copies that swapping made for as many ops of the iteration
 *   allowance  a twentieth of the device time so far + balance; and, until a plan has been in force, a quarter of it, 2 s at most
 *
 * Learning begins only while spent + what one more is expected to take <= allowance. The first lesson is on credit, once ops have waited for copies long
 * enough that a plan would win the lesson back (account_is_worth_it()). How long ops wait for copies is estimated from above, as the smaller of two times:
 * what the copies take, and what all ops take together less what they take alone (one op in eight or so is timed alone). Copies that run beside ops make
 * nobody wait, and a plan too takes a part of the ops' time, which is subtracted. Example: a program of which one iteration in ten does not fit, by a
 * little, would not win back its lesson in hundreds of iterations, and only swaps.
 *
 * A plan is given up when its iterations take a quarter more than foretold and more than swapping took, or when it has lost a twentieth of the device
 * time. So a program that does something else all the time pays for swapping, one lesson, and a twentieth. `--policy plan` asks for plans and nothing
 * else: no bound holds.
 *
 * Threads: under the engine's mutex. Errors: without events nothing is measured, and nothing is forbidden.
 */
#ifndef REMAT_POLICY_CAMPAIGN_ACCOUNT_H
#define REMAT_POLICY_CAMPAIGN_ACCOUNT_H

#include "policy/device.h"

enum { ACCOUNT_STRETCHES = 8,
       ACCOUNT_KINDS = 1024, /* of ops, by signature; further ones count together */
       ACCOUNT_SAMPLES = 512 /* awaited: as many as a host that is some 4,000 ops ahead has queued; with fewer those alone would be timed that it waits for, the long ones */ };

struct account_edge {
    CUevent at;
    bool made;
};

/* An op that is timed alone, without what it waits for. */
struct account_sample {
    struct account_edge from, to;
    bool awaited;
    uint32_t kind;
};

/* Ops of one signature that ran while memory was held by swapping; of some, the device time together. */
struct account_kind {
    uint64_t sig, n_ops, n_begun, n_timed, timed_ns;
};

struct account {
    struct account_edge base, latest; /* of the device time so far; `latest` is awaited */
    /* of the ops that run one after another while memory is held by swapping; the first iterations copy less than those after them: from one or two before the latest op */
    struct account_edge swap_from, swap_mid, swap_to;
    bool awaited, swaps;
    uint64_t swap_from_op, swap_mid_op, swap_from_bytes, swap_mid_bytes;
    uint64_t ticked_op, base_op, ticked_bytes, base_bytes;
    uint64_t total_ns, total_ops, total_bytes; /* from base to the latest edge that has passed; copied either way in it */
    uint64_t swap_ns, swap_ops;       /* device time that so many ops took while memory was held by swapping; 0: not known */
    uint64_t swap_bytes;              /* copied meanwhile, either way; 0: not known */
    struct account_kind kind[ACCOUNT_KINDS + 1]; /* by a hash of the signature; the last: of all that found no place */
    uint64_t n_sampled;               /* ops timed alone while memory was held by swapping */
    struct account_sample sample[ACCOUNT_SAMPLES];
    unsigned latest_sample, oldest_sample; /* counted from the first; the latest one has not begun, older than the oldest are none awaited */
    uint64_t lesson_ns;               /* the longest lesson so far */
    uint64_t learnt_before_ns;        /* learning_ns when the latest lesson began */
    int64_t balance_ns;
    bool in_force;                    /* a plan has been proved */
    /* of the plan that is installed, since it was proved */
    int64_t plan_balance_ns;
    uint64_t whole_ns;
    uint32_t n_whole;                 /* whole iterations in force, and what these took */
    struct account_stretch {
        struct account_edge from, to;
        uint64_t begun_op, ops;
        uint64_t begun_bytes, bytes;  /* copied either way */
        bool proved;                  /* no rehearsal */
        bool whole;                   /* an iteration in force, from its beginning to its end */
        bool left;                    /* after a departure */
        bool apart;                   /* .. before the first op of an iteration */
        enum { STRETCH_NONE, STRETCH_OPEN, STRETCH_AWAITED } is;
    } stretch[ACCOUNT_STRETCHES];
    unsigned next;
};

/* An op has run outside a plan while memory is short: now and then the device time so far is taken. `period`: ops of what may be an iteration; 0: not known. */
void account_tick(struct device *d, CUstream stream, uint64_t period);
/* The two events, made, between which the next op, of this signature, is to be timed alone. NULL: the next op is not timed. */
struct account_sample *account_sample(struct device *d, uint64_t sig);
/* Device time of an op by itself, the mean over all that ran while memory was held by swapping; 0: not known yet. */
double account_op_ns(const struct device *d);
/* There is time for one more lesson. */
bool account_may_learn(struct device *d);
/* Ops have waited for copies long enough so far that a first lesson, of an iteration of `period` ops, would pay. 0: no iteration is known yet, and no
 * lesson pays. Always true where no bound holds. */
bool account_is_worth_it(struct device *d, uint64_t period);
/* One begins, of an iteration of so many ops, the last of which ran on this stream: what swapping has taken so far is known now. The device has
 * nothing to do. */
void account_learns(struct device *d, uint64_t period, CUstream stream);

/* By swapping, an earlier run has measured, swap_ops ops take swap_ns ns. A measurement of this run's own counts before that. */
void account_foretold(struct device *d, uint64_t swap_ns, uint64_t swap_ops);

/* Another plan is installed. */
void account_new_plan(struct device *d);
/* An iteration begins under a plan on stream t; the stretch before it ends, if one is open: a whole iteration. */
void account_iteration(struct device *d, unsigned t);
/* The plan is left: the stretch under it ends, and the one after the departure begins. */
void account_left(struct device *d, unsigned t);
/* Why the plan that is installed is to be given up; NULL: it is not. */
const char *account_verdict(struct device *d, uint64_t foretold_ns);

#endif
