/* share.h: a device of this process as a member of a group (REMAT_GROUP): what the memory room asks before it makes memory and says
 * after it has given it back, and what the campaign asks at its boundaries. Without a group all is granted.
 *
 *   mapped <= reserved = what the ledger counts as ours, see ledger.h (1): share_cover() before, share_settle() after.
 *
 * A process that could not join its group gets no memory at all: run without its group's limit it would be over it.
 *
 * Where the machine sets a total for the user (remat.conf), the process is in that ledger too, as in a second group: what it holds is
 * reserved in both, what is asked for in either is given.
 *
 * Threads: under the engine's mutex; each member has one helper thread, which sleeps until a neighbour asks and then calls
 * back, for a program that is not in any driver call just then. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_SHARE_SHARE_H
#define REMAT_POLICY_SHARE_SHARE_H

#include "policy/device.h"
#include "policy/share/ledger.h"
#include "policy/share/ledger_sums.h"

enum { SHARE_LEDGERS = 2 }; /* the user's group, the machine's total */

struct share_in {
    struct ledger *l;
    const struct ledger_page *page;
    const char *name;              /* for messages */
    uint32_t seen;                 /* asks that were looked at */
    uint64_t wanted, short_op;     /* what was asked for; device.op_count when memory was last refused */
};
struct share {
    unsigned n;                    /* ledgers it is in, with the same bytes reserved in each; 0: it could not join */
    bool owes;                     /* something is still to be given */
    struct share_in in[SHARE_LEDGERS];
};

/* Joins the group of the configuration, where there is one; d->mem.limit_bytes is the process's own so far, and at most the group's
 * afterwards. `called` is run by the helper thread when a neighbour has asked, and again a little later where it
 * returns false; from then on until the process ends. */
int share_init(struct device *d, bool (*called)(void));
/* In a forked child, where nothing is shared. */
void share_after_fork_child(struct device *d);

/* `bytes` more are about to be made: 0 when they are covered. */
int share_cover(struct device *d, uint64_t bytes);
/* Something is gone, or was not made after all: what is reserved beyond what there is goes back. */
void share_settle(struct device *d);
/* Nothing of our own can move any more: waits until the neighbours have given us `bytes` of what we are entitled to. 0: covered.
 * -ENOMEM: not entitled to it, or nothing came for a minute. Holds the mutex: who is short has nothing to give. */
int share_wait(struct device *d, uint64_t bytes);
/* Nobody waits for memory here any more. */
void share_content(struct device *d);

/* A neighbour has asked, and we have not answered in full: about three loads. */
static inline bool share_called(const struct device *d)
{
    const struct share *s = d->share;
    return s && s->n && (s->owes || ledger_asked(s->in[0].page, s->in[0].seen) || (s->n > 1 && ledger_asked(s->in[1].page, s->in[1].seen)));
}
/* What is to be given now, in whole chunks; *blocked: somebody cannot go on without. 0: nothing (more). */
uint64_t share_owed(struct device *d, bool *blocked);

/* What this process could hold now: all it has and all it could reserve; its own limit without a group. */
uint64_t share_ceiling(struct device *d);
/* Sets d->mem.plan_limit_bytes: what it could hold now, but no more than `most`, which is all that it has use for. */
void share_limit_for_plan(struct device *d, uint64_t most_bytes);
/* After an out of memory: how the group stands. */
void share_say_short(struct device *d);

#endif
