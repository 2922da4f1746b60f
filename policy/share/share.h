/* share.h: a device of this process as a member of a group (REMAT_GROUP). memory/ asks here before it makes memory and tells after it has
 * given memory back; the campaign asks at its boundaries. Without a group all is granted.
 *
 *   mapped <= reserved = bytes that the ledger counts as ours, see ledger.h (1): share_cover() before, share_settle() after.
 *
 * A process that could not join its group gets no memory at all: without the group's limit it could run over that limit.
 *
 * Where the machine sets a total for the user (remat.conf), the process is in that ledger too, as in a second group: its bytes are
 * reserved in both ledgers, and it gives the bytes that either asks for.
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
    uint32_t seen;                 /* page->asked at the latest look */
    uint64_t wanted, short_op;     /* wanted: bytes asked of the neighbours, 0 none; short_op: device.op_count when memory was last refused */
};
struct share {
    unsigned n;                    /* ledgers that the process is in, with the same bytes reserved in each; 0: it could not join */
    bool owes;                     /* memory is still to be given to neighbours */
    struct share_in in[SHARE_LEDGERS];
};

/* Joins the group of the configuration, where there is one; d->mem.limit_bytes is the process's own limit before, and at most the group's
 * afterwards. The helper thread runs `called` when a neighbour has asked, and again a little later where `called`
 * returns false; from then on until the process ends. */
int share_init(struct device *d, bool (*called)(void));
/* In a forked child, where nothing is shared. */
void share_after_fork_child(struct device *d);

/* `bytes` more are about to be made. 0: they are reserved. -ENOMEM: no; the neighbours are asked where this process is entitled to more. */
int share_cover(struct device *d, uint64_t bytes);
/* Memory is gone, or was not made after all: bytes reserved beyond the physical ones go back. */
void share_settle(struct device *d);
/* Nothing of our own can move any more: waits until the neighbours have given up `bytes` that this process is entitled to. 0: covered.
 * -ENOMEM: beyond the entitlement, or not covered within a minute. Holds the mutex: a process that is short has nothing to give. */
int share_wait(struct device *d, uint64_t bytes);
/* This process waits for memory no more: withdraws its asks. */
void share_content(struct device *d);

/* A neighbour has asked, and has not been answered in full: about three loads. */
static inline bool share_called(const struct device *d)
{
    const struct share *s = d->share;
    return s && s->n && (s->owes || ledger_asked(s->in[0].page, s->in[0].seen) || (s->n > 1 && ledger_asked(s->in[1].page, s->in[1].seen)));
}
/* Bytes to give to neighbours now, in whole chunks; 0: nothing (more). *blocked: a neighbour cannot go on without them. */
uint64_t share_owed(struct device *d, bool *blocked);

/* Bytes that this process could hold now: all it has and all it could reserve; its own limit without a group. */
uint64_t share_ceiling(struct device *d);
/* Sets d->mem.plan_limit_bytes: the limit; in a group share_ceiling(), but no more than `most_bytes`, all that the process has use for, or than it has now. */
void share_limit_for_plan(struct device *d, uint64_t most_bytes);
/* After an out of memory: logs how the group stands. */
void share_say_short(struct device *d);

#endif
