/* fsa_row: a schedule of a checkmate graph as a row of slots, and the memory in use at every op, kept up to date one
 * op at a time. The state of FastSA (simulated annealing of rematerialization; see fastsa.h).
 *
 * The row has many more slots than ops. A slot holds a node (it is computed there) or is empty; a node may stand in
 * several slots. A result is in memory from each slot that makes it to its last reader before it is made again. The row alone
 * decides which results are held, so any row in which every reader finds its inputs made is a schedule. Putting a node into
 * a slot, or taking the node out, concerns that node and its inputs alone.
 *
 *   items        slots that are not empty; the rank of an item is its index among them
 *   use[rank]    bytes in memory while the item runs: its inputs, its result, and results held for later
 *   ends[slot]   bytes that leave memory right after the item in that slot
 *   excess       sum over the items of max(0, use - budget)
 *   bends        replays that a node of the same or a smaller number follows: 0 if between first computations (as of the
 *                last fsa_load) everything rises, as Checkmate's stages do
 *
 * FastSA keeps this profile in a range-add/range-max tree over 2^20 slots. Schedules here have hundreds of items, few
 * thousand at most: a plain array over the items takes a range addition in a few vector steps, yields sum and maximum at
 * once, and stays in the first-level cache. Measured on random ranges: 0.55 us an addition in a max tree over 2^20 slots (segtree.h),
 * 0.91 us in its log-add-exp form, 0.33 us here with 1,000 items, their sum included. Numbers are doubles that hold integers below 2^53: sums are exact.
 *
 * Threads: a row belongs to one thread. Errors: 0 or a negative errno; void functions cannot fail.
 */
#ifndef REMAT_OFFLINE_FSA_ROW_H
#define REMAT_OFFLINE_FSA_ROW_H

#include <stdint.h>

#include "offline/solvers/anneal/event_list.h"
#include "offline/solvers/checkmate/checkmate.h"

struct fsa_row {
    const struct checkmate *c; /* borrowed */
    double budget;             /* c->budget - c->fixed */
    int32_t n_slots, n_items, cap_items;
    int32_t *slot;      /* [n_slots] node, or -1: empty */
    int32_t *slot_at;   /* [cap_items] slot of the item with this rank */
    double *use;        /* [cap_items] */
    double *ends;       /* [n_slots] valid where an item stands */
    uint8_t *in_block;  /* [n_slots] items before the slot in its block of 64 slots */
    uint16_t *block;    /* [n_slots / 64] items before the block */
    struct event_list *ev; /* [c->n] when a result is made or read: slot * 2 + 1 or slot * 2; one event a slot */
    int32_t *made;      /* [c->n] how often the node is computed */
    int32_t *first;     /* [c->n] the node's first slot as of the last fsa_load; kept only while this item stays */
    int32_t *spare;     /* [cap_items] workspace */
    double cost, excess;
    int32_t bends;
};

struct fsa_row *fsa_new(const struct checkmate *c, int32_t cap_items); /* cap_items <= FSA_ITEMS_MAX; NULL: no memory */
void fsa_free(struct fsa_row *r);
enum { FSA_ITEMS_MAX = 60000 };

/* Fill the row with the nodes order[n], in this order, spread evenly. -EINVAL: a node lacks an input; -ENOSPC: too many nodes. */
int fsa_load(struct fsa_row *r, const int32_t *order, int32_t n);
int32_t fsa_save(const struct fsa_row *r, int32_t *order); /* nodes of the row into order[cap_items]; returns their number */
int fsa_spread(struct fsa_row *r);                         /* spread evenly again; slot numbers change */

/* Items before slot s. */
static inline int32_t fsa_rank(const struct fsa_row *r, int32_t s) { return r->block[s >> 6] + r->in_block[s]; }
/* An empty slot between the items of ranks k - 1 and k; -1: no slot left. */
int32_t fsa_gap(const struct fsa_row *r, int32_t k);
/* First event of the list after slot s. */
int32_t fsa_after(const struct event_list *e, int32_t s);

/* May v be computed in slot s: slot empty, room for an item, inputs made before s. fsa_add must follow a yes at once. */
int fsa_may_add(struct fsa_row *r, int32_t v, int32_t s);
void fsa_add(struct fsa_row *r, int32_t v, int32_t s);
/* May the item in slot s go: another item computes its node, and every reader of this item finds an earlier one. */
int fsa_may_remove(const struct fsa_row *r, int32_t s);
void fsa_remove(struct fsa_row *r, int32_t s);

double fsa_peak(const struct fsa_row *r); /* max over the items of use; O(items) */

/* Derive everything anew from the slots: 0 if the row's state equals it, else -EIO. For tests. */
int fsa_check(const struct fsa_row *r);

#endif
