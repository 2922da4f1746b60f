/* account.h: what plans save beside swapping, and what the way to them costs, in device time, by events that nobody waits for.
 *
 *   spent      device time that learning has taken beside the program's own (counts.h: learning_ns)
 *   balance    over all stretches under a plan: device time that as many ops took by swapping, less the stretch's own. Rehearsals and departures count,
 *              and after a departure as many ops as an iteration has (fewer where the plan is taken up before): in these ops buffers come back that the
 *              plan had sent away. Where the plan was left before its first op, the ops after it belong to no iteration (an optimizer's step between
 *              batches whose gradients are summed), and the time that swapping would take for them is unknown: only copies count, the ones that
 *              swapping made for as many ops of the iteration less the stretch's own
 *   allowance  a twentieth of the device time so far + balance; and, until a plan has been in force, a quarter of the device time too, 2 s at most
 *
 * Learning begins only while spent + the expected time of one more lesson <= allowance. The first lesson is on credit, once ops have waited for copies long
 * enough that a plan would win the lesson back (account_is_worth_it()). How long ops wait for copies is estimated from above, as the smaller of two times:
 * that of all copies, and that of all ops together less the sum of each op's own (one op in eight or so is timed alone). Copies that run beside ops keep
 * no op waiting, and a plan too takes a part of the ops' time, which is subtracted. Example: a program of which one iteration in ten does not fit, by a
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
       ACCOUNT_KINDS = 1024, /* kinds of ops, by signature; ops of further signatures count together */
       ACCOUNT_SAMPLES = 512 /* in flight: enough for a host some 4,000 ops ahead of the device; with fewer, only ops that the host waits for, the long ones, would be timed */ };

struct account_edge {
    CUevent at;
    bool made;
};

/* An op timed alone: the two events stand right around the op, after its waits for copies. */
struct account_sample {
    struct account_edge from, to;
    bool awaited;
    uint32_t kind;
};

/* Ops of one signature that ran while memory was held by swapping; `n_timed` of them took `timed_ns` of device time together. */
struct account_kind {
    uint64_t sig, n_ops, n_begun, n_timed, timed_ns;
};

struct account {
    struct account_edge base, latest; /* ends of the device time so far; `awaited`: the device may not have passed `latest` yet */
    /* ends of a run of ops without a plan, memory held by swapping. The run begins one or two iterations before the latest op: a program's first iterations copy less */
    struct account_edge swap_from, swap_mid, swap_to;
    bool awaited, swaps;
    uint64_t swap_from_op, swap_mid_op, swap_from_bytes, swap_mid_bytes;
    uint64_t ticked_op, base_op, ticked_bytes, base_bytes;
    uint64_t total_ns, total_ops, total_bytes; /* from `base` to the latest edge that the device has passed; total_bytes: copied meanwhile, either way */
    uint64_t swap_ns, swap_ops;       /* device time that so many ops took while memory was held by swapping; 0: not known */
    uint64_t swap_bytes;              /* copied during swap_ns, either way; 0: not known */
    struct account_kind kind[ACCOUNT_KINDS + 1]; /* by a hash of the signature; the last counts all signatures that found no place */
    uint64_t n_sampled;               /* ops timed alone while memory was held by swapping */
    struct account_sample sample[ACCOUNT_SAMPLES];
    unsigned latest_sample, oldest_sample; /* numbers of samples, from 0: the next to begin; the oldest still awaited */
    uint64_t lesson_ns;               /* the longest lesson so far */
    uint64_t learnt_before_ns;        /* learning_ns when the latest lesson began */
    int64_t balance_ns;
    bool in_force;                    /* a plan has been proved */
    /* the next three: of the installed plan, since it was proved */
    int64_t plan_balance_ns;
    uint64_t whole_ns;
    uint32_t n_whole;                 /* whole iterations in force; whole_ns: their device time */
    struct account_stretch {
        struct account_edge from, to;
        uint64_t begun_op, ops;
        uint64_t begun_bytes, bytes;  /* copied in the stretch, either way */
        bool proved;                  /* under a proved plan: no rehearsal */
        bool whole;                   /* one whole iteration under a plan in force */
        bool left;                    /* begun when the plan was left */
        bool apart;                   /* begun when the plan was left before the first op of an iteration */
        enum { STRETCH_NONE, STRETCH_OPEN, STRETCH_AWAITED } is;
    } stretch[ACCOUNT_STRETCHES];
    unsigned next;
};

/* After each op outside a plan while memory is short: takes the device time so far, now and then. `period`: ops of a possible iteration; 0: not known. */
void account_tick(struct device *d, CUstream stream, uint64_t period);
/* Two events, created, between which the caller times the next op, of this signature, alone. NULL: the next op is not timed. */
struct account_sample *account_sample(struct device *d, uint64_t sig);
/* Device time of an op by itself, the mean over all that ran while memory was held by swapping; 0: not known yet. */
double account_op_ns(const struct device *d);
/* True if one more lesson fits the allowance. */
bool account_may_learn(struct device *d);
/* True if ops have waited for copies long enough so far that a first lesson, of an iteration of `period` ops, would pay. `period` 0: no iteration is known
 * yet, and no lesson pays. Always true where no bound holds. */
bool account_is_worth_it(struct device *d, uint64_t period);
/* A lesson begins, of an iteration of `period` ops, the last of which ran on `stream`: swap_ns is settled. The device has nothing to do. */
void account_learns(struct device *d, uint64_t period, CUstream stream);

/* An earlier run has measured that `swap_ops` ops take `swap_ns` by swapping. A measurement of this run counts before that. */
void account_foretold(struct device *d, uint64_t swap_ns, uint64_t swap_ops);

/* Another plan is installed. */
void account_new_plan(struct device *d);
/* An iteration begins under a plan on stream t. The stretch before it, if one is open, ends as a whole iteration. */
void account_iteration(struct device *d, unsigned t);
/* The plan is left: the stretch under it ends, and the one after the departure begins. */
void account_left(struct device *d, unsigned t);
/* Why the plan that is installed is to be given up; NULL: it is not. */
const char *account_verdict(struct device *d, uint64_t foretold_ns);

#endif
