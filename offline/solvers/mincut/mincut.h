/* mincut.h: which values to hold and which to rebuild, as a minimum cut.
 *
 * The node-split network of Yu & He (2023, algorithm 1), laid from the reader's side and, beyond the paper, per gap:
 * a value may be held over one gap between its uses and rebuilt after another, wherever the pass turns. Each
 * gap j of value v has a vertex A(j), "v is in memory when the gap ends", and a vertex R(j), "because it was rebuilt":
 *     source -> A(j)  infinite   if the program reads v at the end of the gap (all but tails)
 *     A(j) -> R(j)    hold(j)    v is in memory without being rebuilt: it is held over the gap
 *     R(j) -> P       infinite   v is rebuilt by a replay of its producer; outputs of one op share P
 *     R(j) -> sink    redo(j)    cost of the memory that the rebuilt value takes
 *     P    -> sink    redo(op)   cost of the replay; infinite: banned
 *     P    -> A(i)    infinite   for every input u of the producer: i is the gap of u in which j ends
 * Vertices on the source's side are true. With redo = 0 or infinite and hold in bytes where the backward pass begins
 * this is the paper's cut; with hold and redo both in (priced) time it is the Lagrangian of "least recomputation within
 * the limit".
 *
 * Values are (buffer, version). A version overwritten in place before the gap ends cannot be held, only rebuilt;
 * rebuilding an older version of a buffer forbids holding a newer one over it. Intermediates that the program freed may
 * be held or rebuilt like any other.
 *
 * Threads: one network belongs to one thread. Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_MINCUT_H
#define REMAT_OFFLINE_MINCUT_H

#include <stdint.h>

#include "offline/model/graph.h"
#include "offline/model/sched.h"

/* A gap over which its value may be held, rebuilt, or neither. */
struct mincut_cand {
    int32_t gap, val, op; /* op: the value's producer */
    int32_t from;         /* the op that opens the gap */
    int32_t until;        /* op before which the value is wanted: the gap's end; for a tail the latest such op of values
                             made from it, as far as known beforehand; `from` if none is made */
    int64_t bytes;
    uint8_t demanded;     /* the program itself reads the value at `until` */
    uint8_t holdable, redoable;
    uint8_t active;       /* 0: the next cut leaves the gap as it is and takes the value for available (see mincut_pivot) */
};

enum mincut_state { MINCUT_ABSENT, MINCUT_HELD, MINCUT_REDONE };

struct mincut {
    const struct graph *g;
    const struct sched *s;
    int32_t n;                /* candidates, by rising gap */
    struct mincut_cand *cand;
    int32_t *of_gap;          /* [n_gaps] candidate; -1: nothing to decide */
    struct mincut_net *net;
};

/* Clears `forced` of gaps whose value can be replayed if its producer's inputs are held, which the cut takes care of
 * (a gap is forced where replays alone cannot bring the value back). Decisions that drop the value without holding the
 * inputs then fail with -EDEADLK. Call before mincut_new. */
void mincut_unforce(struct sched *s);

struct mincut *mincut_new(const struct graph *g, const struct sched *s); /* NULL: no memory */
void mincut_free(struct mincut *m);

#define MINCUT_NEVER INT64_MAX /* a cost that must not be paid */

/* Fills turns[] (room for n_ops) with the ops at which the forward pass turns into the backward pass, rising; returns their
 * number. A trace with only one phase turns at its peak. */
int32_t mincut_turns(const struct graph *g, int32_t *turns);

/* Makes active exactly the gaps that are open just before one of the n rising ops. Gaps decided together should be open
 * together: a value rebuilt for the end of one gap, early in its own gap, takes memory for the rest of its gap, and no cut can
 * price that memory. */
void mincut_pivot(struct mincut *m, const int32_t *ops, int32_t n);

/* The cheapest states for hold[n], redo_val[n] (extra cost when candidate k is rebuilt) and redo_op[n_ops], all 0 or
 * more. -EOVERFLOW: the finite costs sum to 2^62 or more. */
int mincut_solve(struct mincut *m, const int64_t *hold, const int64_t *redo_val, const int64_t *redo_op, uint8_t *state,
                 int64_t *value);

/* Gap decisions from states of the active gaps: held values are kept over their gap, rebuilt ones dropped; the other
 * entries of choice[n_gaps] stay. */
void mincut_choose(const struct mincut *m, const uint8_t *state, uint8_t *choice);

#endif
