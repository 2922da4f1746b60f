/* The annealer's schedule: the program's ops in order, replays of units between them, and the memory in use at
 * every position, all kept up to date one replay at a time.
 *
 * A schedule is a row of slots. Each slot holds an op of the program, a replay of a unit, or nothing. Where each
 * cell is resident follows from that alone: from each time it is made to its last use before it is made again. So any
 * set of replays is a valid schedule, adding or taking away one touches only the cells of its unit, and every
 * change is a handful of range additions to the memory profile (segtree.h).
 *
 * Threads: a schedule belongs to one thread.
 * Errors: 0 or negative errno.
 */
#ifndef REMAT_OFFLINE_ANNEAL_H
#define REMAT_OFFLINE_ANNEAL_H

#include <stdint.h>

#include "offline/anneal_model.h"
#include "offline/plan.h"
#include "offline/segtree.h"

#define ANNEAL_EMPTY (-1)

/* When a cell is made or used: slot * 2, plus 1 where it is made. Rising; one event a slot and cell. */
struct anneal_events {
    int32_t *at; /* owned */
    int32_t n, cap;
};

struct anneal {
    const struct anneal_model *m;
    int32_t n_slots;
    int32_t *slot;     /* [n_slots] ANNEAL_EMPTY, op index, or n_ops + unit */
    int32_t *op_slot;  /* [n_ops + 1]; the last is the end-of-iteration slot */
    struct anneal_events *ev; /* [n_cells] */
    int32_t *replays;  /* slots that hold replays, in no order */
    int32_t *replay_at; /* [n_slots] index into replays of the replay in this slot */
    int32_t n_replays;
    int64_t replay_ns; /* what the replays cost together */
    struct segtree tree; /* bytes in use by slot */
    struct segtree_soft soft; /* the same in units of soft_unit; kept only if soft_unit > 0 */
    double soft_unit;  /* bytes */
    int32_t cap_slots; /* room in the arrays indexed by slot */
    double *profile;   /* [cap_slots] workspace */
    int32_t *remap;    /* [cap_slots] workspace */
};

struct anneal *anneal_new(const struct anneal_model *m); /* no replays; NULL: no memory */
void anneal_free(struct anneal *a);

/* A schedule without its empty slots: op indices and n_ops + unit, in order. */
struct anneal_seq {
    int32_t *at; /* owned */
    int32_t n, cap;
    int64_t replay_ns, peak_bytes;
};
int anneal_save(const struct anneal *a, struct anneal_seq *seq); /* 0 or -ENOMEM */
/* Make the schedule that of the row at[n], which holds every op in order. Replays that may not stand where they do
 * are left out. 0 or -ENOMEM (the schedule is then unusable but for anneal_free). */
int anneal_load(struct anneal *a, const int32_t *at, int32_t n);
/* The replays of a plan as a row for anneal_load: consecutive replays of a unit's ops become one of the unit. */
int anneal_seq_of_plan(const struct anneal_model *m, const struct plan *p, struct anneal_seq *seq);
void anneal_seq_free(struct anneal_seq *seq);

/* Switch the soft profile on (bytes per unit of the exponent) or off (0). */
int anneal_set_soft(struct anneal *a, double unit_bytes);

/* May unit u be replayed in slot s: the slot is empty, after the unit's last op and before its `until`. */
int anneal_may_add(const struct anneal *a, int32_t u, int32_t s);
/* Put a replay of u into the empty slot s (anneal_may_add), or take the one in s away. 0 or -ENOMEM (nothing
 * changed). */
int anneal_add(struct anneal *a, int32_t u, int32_t s);
void anneal_remove(struct anneal *a, int32_t s);

/* Renumber so that every op and every replay has an empty slot before it again. Invalidates slot numbers. */
int anneal_regrid(struct anneal *a);

/* The nearest empty slot at or before s, but after `after`; -1: none within reach. */
int32_t anneal_empty_before(const struct anneal *a, int32_t s, int32_t after);

static inline int64_t anneal_peak(const struct anneal *a) { return (int64_t)segtree_max(&a->tree); }
static inline int anneal_is_replay(const struct anneal *a, int32_t s) { return a->slot[s] >= a->m->g->n_ops; }
static inline int32_t anneal_unit_at(const struct anneal *a, int32_t s) { return a->slot[s] - a->m->g->n_ops; }

/* Slow re-derivation of everything from the slots; 0 if the incremental state equals it, else -EIO. For tests. */
int anneal_check(const struct anneal *a);

/* The schedule as a plan: every cell leaves memory right after its last use. out is emptied first. */
int anneal_plan(const struct anneal *a, struct plan *out);

#endif
