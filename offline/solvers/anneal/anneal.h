/* The annealer's schedule: the program's ops in order, replays of units between them, and the memory in use at
 * every position, all kept up to date one replay at a time.
 *
 * A schedule is a row of slots. Each slot holds an op of the program, a replay of a unit, or nothing. The row
 * alone decides where a cell is resident: from each time it is made to its last use before it is made again. Hence any
 * set of replays is a valid schedule, adding or taking away a replay touches only the cells of its unit, and every
 * change is a handful of range additions to the memory profile (segtree.h).
 *
 * Cells may also stay on the host for a while (anneal_copies.c). The two copy engines are clocked along the program so that
 * the computation waits for a copy only where its stay says so and pays for it; a stay that cannot be timed so is refused.
 *
 * Threads: a schedule belongs to one thread.
 * Errors: 0 or negative errno.
 */
#ifndef REMAT_OFFLINE_ANNEAL_H
#define REMAT_OFFLINE_ANNEAL_H

#include <stdint.h>

#include "offline/solvers/anneal/anneal_model.h"
#include "offline/solvers/anneal/event_list.h"
#include "offline/model/plan.h"
#include "offline/solvers/anneal/segtree.h"

#define ANNEAL_EMPTY (-1)

/* An event of a cell is slot * 4 + kind: fetched from the host, used, or made. Lists rise. A slot has at most one event of a cell, except
 * that a fetch, which comes before the slot's op, may share its slot while a mutation is under way. */
enum { ANNEAL_FETCHED = 0, ANNEAL_USED = 1, ANNEAL_MADE = 2, ANNEAL_LATEST = 3 };
static inline int32_t anneal_ev(int32_t slot, int32_t kind) { return 4 * slot + kind; }
static inline int32_t anneal_ev_slot(int32_t ev) { return ev >> 2; }
static inline int anneal_ev_made(int32_t ev) { return (ev & 3) != ANNEAL_USED; } /* made or fetched */
static inline int anneal_ev_fetched(int32_t ev) { return (ev & 3) == ANNEAL_FETCHED; }

/* Copies of a stay on the host that the computation waits for where they are late: the copy out, so that the memory is
 * free from a certain slot on; the copy back, so that the memory is free up to a certain slot. */
enum { ANNEAL_WAIT_OUT = 1, ANNEAL_WAIT_IN = 2, ANNEAL_WAIT_BOTH = 3 };

struct anneal_wait {
    int32_t sides;     /* ANNEAL_WAIT_... */
    int32_t free_by;   /* ANNEAL_WAIT_OUT: slot that waits for the copy out; 0: the slot right after the stay's first use */
    int32_t back_from; /* ANNEAL_WAIT_IN: slot before which the copy back does not start; INT32_MAX: the last one before the stay's second use */
};

static inline struct anneal_wait anneal_wait_for(int32_t sides) { return (struct anneal_wait){sides, 0, INT32_MAX}; }

/* A stay on the host (anneal_copies.c): the cell is copied out after it was made, released once the copy is done, and
 * fetched in time for its next use. */
struct anneal_copy {
    int32_t cell;
    struct anneal_wait wait;
    double wait_ns;          /* how long the computation stands still for this stay, as of the last anneal_retime */
    int32_t fetch;           /* slot before which the copy back starts; a FETCHED event of the cell */
    int32_t was;             /* `fetch` before the last anneal_retime */
    int32_t src;             /* slot after which the copy out may start; -1: the host still has the copy of an earlier stay */
    int32_t tail_lo, tail_hi; /* slots that hold the cell only because the copy out is not done */
};

struct anneal_copies {
    struct anneal_copy *at;
    int32_t *out_order, *in_order; /* copies by rising src; by falling next use */
    int32_t *fetch, *tail_lo, *tail_hi, *src, *use; /* [n] workspace of anneal_retime */
    int32_t n, cap;
    int64_t bytes;     /* bytes of all copies at[..], each counted once */
    double wait_ns;    /* how long the computation stands still: sum over at[..].wait_ns */
    double *wait, *out_ns, *in_ns; /* [n] workspace of anneal_retime, as are the next three */
    int32_t *next;     /* [4 n] */
    int32_t *first;    /* [cap_slots] */
    double *diff;      /* [cap_slots + 1] */
    uint16_t *of_cell; /* [n_cells] how many copies a cell has */
    double *when;      /* [cap_slots] compute clock as the slot is reached, ns; as of the last anneal_clock */
    double ns_per_byte;
    int until_used;    /* a copy out starts no sooner than its stay's first use: REMAT_PLAN_COPIES=until-used, see solver.h */
    int may_wait;      /* see anneal_clock */
    int in_turn;       /* 1: a copy back that a use waits for ends before the copies back for later uses are due to begin, so the later ones are in time;
                          0: the later copies begin when the earlier one has ended, and later uses may wait for them */
    int moved;         /* the last anneal_retime did move a fetch: see anneal_retime_back */
    int dirty;         /* an event of a copied cell changed since the last anneal_retime */
};

struct anneal {
    const struct anneal_model *m;
    int32_t n_slots;
    int32_t stride;    /* after a renumbering, the i-th op or replay stands in slot stride * (i + 1): stride - 1 empty slots
                          before each, more in small graphs, where a chain of replays needs its place at one spot */
    int32_t *slot;     /* [n_slots] ANNEAL_EMPTY, op index, or n_ops + unit */
    int32_t *op_slot;  /* [n_ops + 1]; the last is the end-of-iteration slot */
    struct event_list *ev; /* [n_cells] */
    int32_t *replays;  /* slots that hold replays, in no order */
    int32_t *replay_at; /* [n_slots] index into replays of the replay in this slot */
    int32_t n_replays;
    int64_t replay_ns; /* time of all replays together */
    struct anneal_copies copies;
    struct segtree tree; /* bytes in use by slot */
    struct segtree_soft soft; /* bytes by slot in units of soft_unit; kept only if soft_unit > 0 */
    double soft_unit;  /* bytes */
    double *price_sum; /* [cap_slots] price_sum[s]: price of a byte held in slots 0 .. s-1, ns; see anneal_set_price */
    int priced;        /* prices are on: the trees rest until prices are off again or the slots are renumbered */
    double price_ns;   /* cost of the schedule's memory at these prices, up to a constant */
    int32_t cap_slots; /* room in the arrays indexed by slot */
    double *profile;   /* [cap_slots] workspace */
    int32_t *remap;    /* [cap_slots] workspace */
};

struct anneal *anneal_new(const struct anneal_model *m); /* no replays; NULL: no memory */
void anneal_free(struct anneal *a);

/* A stay on the host in a struct anneal_seq: fetch, free_by and back_from are entries of the row, each standing for the last slot before it. */
struct anneal_stay {
    int32_t cell, fetch;
    struct anneal_wait wait;
};

/* A schedule without its empty slots: op indices and n_ops + unit, in order. */
struct anneal_seq {
    int32_t *at; /* owned */
    int32_t n, cap;
    struct anneal_stay *stays; /* owned */
    int32_t n_stays, cap_stays;
    int64_t replay_ns, peak_bytes, copy_bytes;
    double wait_ns;
};
int anneal_save(const struct anneal *a, struct anneal_seq *seq); /* 0 or -ENOMEM */
/* Load a row, which holds every op in order. Replays and stays that are not allowed where the row has them are left out.
 * 0 or -ENOMEM (the schedule is then unusable but for anneal_free). */
int anneal_load(struct anneal *a, const struct anneal_seq *seq);
/* The replays and stays on the host of a plan as a row for anneal_load: consecutive replays of a unit's ops become one of the unit. */
int anneal_seq_of_plan(const struct anneal_model *m, const struct plan *p, struct anneal_seq *seq);
int anneal_seq_copy(struct anneal_seq *to, const struct anneal_seq *from); /* 0 or -ENOMEM */
void anneal_seq_free(struct anneal_seq *seq);

/* Switch the soft profile on (bytes per unit of the exponent) or off (0). */
int anneal_set_soft(struct anneal *a, double unit_bytes);

/* Price memory instead of bounding it: byte_ns[i] is the price, in ns, of a byte held where memory is highest between op
 * i - 1 and the end of op i. While prices are on, price_ns follows every change in O(1) a stretch and the trees are
 * not kept. NULL: off, trees up to date again. Prices end with anneal_regrid. 0 or -ENOMEM. */
int anneal_set_price(struct anneal *a, const double *byte_ns);
/* The highest memory between op i - 1 and the end of op i, for all i, into bytes[n_ops]. Only right after
 * anneal_regrid. */
void anneal_op_peaks(const struct anneal *a, double *bytes);

/* Memory in slots lo..hi grows by some bytes (or shrinks). */
static inline void anneal_hold(struct anneal *a, int32_t lo, int32_t hi, double bytes)
{
    if (lo > hi)
        return;
    if (a->priced) {
        a->price_ns += bytes * (a->price_sum[hi + 1] - a->price_sum[lo]);
        return;
    }
    segtree_add(&a->tree, (uint32_t)lo, (uint32_t)hi, bytes);
    if (a->soft_unit > 0)
        segtree_soft_add(&a->soft, (uint32_t)lo, (uint32_t)hi, bytes / a->soft_unit);
}

/* May unit u be replayed in slot s: the slot is empty, after the unit's last op and before its `until`. */
int anneal_may_add(const struct anneal *a, int32_t u, int32_t s);
/* Put a replay of u into the empty slot s (anneal_may_add), or take the replay in slot s away. 0 or -ENOMEM (nothing
 * changed). */
int anneal_add(struct anneal *a, int32_t u, int32_t s);
void anneal_remove(struct anneal *a, int32_t s);

/* Renumber the slots: every op and every replay has stride - 1 empty slots before it again. Invalidates slot numbers. */
int anneal_regrid(struct anneal *a);

/* The nearest empty slot at or before s, but after `after`; -1: none within reach. */
int32_t anneal_empty_before(const struct anneal *a, int32_t s, int32_t after);

static inline int64_t anneal_peak(const struct anneal *a) { return (int64_t)segtree_max(&a->tree); }
static inline int anneal_is_replay(const struct anneal *a, int32_t s) { return a->slot[s] >= a->m->g->n_ops; }
static inline int32_t anneal_unit_at(const struct anneal *a, int32_t s) { return a->slot[s] - a->m->g->n_ops; }

/* Slow re-derivation of the memory and the replays from the slots; 0 if the incremental state equals it, else -EIO. For tests. */
int anneal_check(const struct anneal *a);

#endif
