/* cursor.h: where the iteration in progress stands: the next op, the slots that are bound to its buffers, the versions these hold.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_CURSOR_H
#define REMAT_POLICY_CURSOR_H

#include "policy/iteration.h"
#include "policy/memory/slot.h"
#include "policy/process/check.h"

/* The slot that stands for buffer b in this iteration; NULL while there is none. */
static inline struct slot *cursor_slot(struct device *d, int32_t b) { return d->ex->now.bind[b] >= 0 ? &d->mem.slots[d->ex->now.bind[b]] : NULL; }
/* From now on s stands for b, and no longer. False: one of the two is bound to another (a check says so), and nothing was done; the second: as
 * one that says so, though b is no longer bound. */
bool cursor_bind(struct device *d, int32_t b, struct slot *s);
bool cursor_unbind(struct device *d, int32_t b);
/* The plan takes the buffer for one that nothing changes but what the plan sees; since the recording its slot was pinned, or has begun to hold
 * addresses, which the record knows nothing of. */
static inline bool cursor_reached_since(const struct rec_buf *x, const struct slot *s) { return (s->pins && !x->pinned) || (s->points && !x->points); }
/* The recorded buffer, which outlives iterations, is gone: another one may have its part. */
static inline bool cursor_is_replaced(const struct device *d, const struct rec_buf *x)
{
    const struct slot *s = &d->mem.slots[x->slot_id];
    return x->alloc_ord < 0 && x->dies < 0 && (!s->live || s->serial != x->serial);
}
/* Somebody may look at version v of buffer b after a replay has made it. */
static inline bool cursor_matters(struct device *d, int32_t b, int32_t v)
{
    struct slot *s = cursor_slot(d, b);
    return d->ex->plan->used[d->ex->plan->first_val[b] + v] || (s && s->live);
}
/* The tables of progress.h for the record; they go with cursor_clear(). 0 or -ENOMEM. */
int cursor_make(struct device *d);
void cursor_clear(struct device *d);
/* A new iteration begins with the next op. */
void cursor_begin(struct device *d);
/* No slot stands for the buffer any longer; if the program has freed it, its memory goes. */
void cursor_let_go(struct device *d, int32_t b);
/* The iteration has ended, or is no longer followed: no slot stands for a buffer, and what only the plan kept in memory goes. */
void cursor_unbind_all(struct device *d);
/* The op at ex->now.pos has been issued. */
void cursor_op_done(struct device *d);
/* The recorded iteration was told, at the place where the one in progress is, that the program writes memory which kernels know by name. */
bool cursor_knows_named_write(const struct device *d);
/* b's memory goes, and what is in it with it: until a replay makes it again, it is lost. Nothing is compared. */
void cursor_take_away(struct device *d, int32_t b);

#endif
