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
/* cursor_bind: from now on s stands for b; false: s or b is bound already (a check says so), and nothing was done. cursor_unbind: no slot stands for b any
 * longer; false: the slot and b did not name each other (a check says so), b is unbound all the same. */
bool cursor_bind(struct device *d, int32_t b, struct slot *s);
bool cursor_unbind(struct device *d, int32_t b);
/* Since the recording, the slot was pinned or has begun to hold addresses. The record knows neither: the plan believes that only what it sees changes the buffer. */
static inline bool cursor_reached_since(const struct rec_buf *x, const struct slot *s) { return (s->pins && !x->pinned) || (s->points && !x->points); }
/* The recorded buffer, which outlives iterations, is gone: another buffer may play its part. */
static inline bool cursor_is_replaced(const struct device *d, const struct rec_buf *x)
{
    const struct slot *s = &d->mem.slots[x->slot_id];
    return x->alloc_ord < 0 && x->dies < 0 && (!s->live || s->serial != x->serial);
}
/* True: version v of buffer b may be looked at after a replay has made it. */
static inline bool cursor_matters(struct device *d, int32_t b, int32_t v)
{
    struct slot *s = cursor_slot(d, b);
    return d->ex->plan->used[d->ex->plan->first_val[b] + v] || (s && s->live);
}
/* Allocates the tables of progress.h for the record; cursor_clear() frees them. 0 or -ENOMEM. */
int cursor_make(struct device *d);
void cursor_clear(struct device *d);
/* A new iteration begins with the next op. */
void cursor_begin(struct device *d);
/* Unbinds the buffer's slot; if the program has freed the slot, its memory goes. */
void cursor_let_go(struct device *d, int32_t b);
/* The iteration has ended, or is no longer followed: all slots are unbound, and buffers that only the plan kept in memory go. */
void cursor_unbind_all(struct device *d);
/* The op at ex->now.pos has been issued. */
void cursor_op_done(struct device *d);
/* The recorded iteration, too, had a write of memory that kernels know by name (a `__device__` variable) at the place where the one in progress is. */
bool cursor_knows_named_write(const struct device *d);
/* b's memory goes, with its content: until a replay makes that again, the buffer is LOST. Nothing is compared. */
void cursor_take_away(struct device *d, int32_t b);

#endif
