/* What sched.c (decisions into steps) and sched_tighten.c (polishing) share. Private to these two. */
#ifndef REMAT_OFFLINE_SCHED_PRIV_H
#define REMAT_OFFLINE_SCHED_PRIV_H

#include "offline/model/sched.h"

/* Longest chain of values rebuilt one out of the other in one go: a few hundred bytes of stack each. */
#define SCHED_MAX_DEPTH 8000

/* A copy out whose memory may go once the copy is done. */
struct sched_pending {
    int32_t gap;
    double done_ns;
};

/* State of the walk. res, host: value ids, -1 none. While an op's inputs are being gathered, pin[buf] counts who relies
 * on what the buffer holds now; want[val] counts who will ask for the value before the op at hand runs, and holds. */
struct sched_priv {
    int32_t *res, *host, *cur; /* [n_bufs] */
    int32_t *pin;              /* [n_bufs] */
    int32_t *want;             /* [n_vals] */
    int32_t *pos;              /* [n_vals]: uses passed; gap_at[v] + pos[v] is the gap that is open now */
    uint8_t *dead, *keep;      /* [n_bufs] */
    const uint8_t *choice;
    const struct sched_act *act, *act_end; /* orders still to come */
    struct plan *out;
    int32_t next;              /* op about to be launched */
    int64_t replays;
    int32_t depth;             /* of sched_rebuild, which recurses along producers: bounded for the stack's sake */
    int32_t retries;           /* per op: bounds the search for an order of inputs that works */
    double t, out_ns;          /* clocks: compute, copies out */

    struct sched_pending *pending; /* FIFO ring-free: [head, tail) */
    int32_t pending_head, pending_tail;
    int32_t *fetch_first;      /* [n_ops + 1]: first gap to fetch before op i, -1 */
    int32_t *gap_next;         /* [n_gaps]: chains of fetch_first, and of gaps by their end while that is made */
    int32_t *end_first;        /* [n_ops + 1] */
    int64_t *start_ns;         /* [n_ops + 1]: when op i starts with no eviction */
    uint8_t any_offload;

    /* last calls: gaps that end after the last op before which replays alone bring their value back */
    int32_t *last_first;       /* [n_ops + 1]: the first of them by that op; -1: none */
    int32_t *last_next;        /* [n_gaps] */
    int32_t *lasts;            /* [n_vals]: what was found out about the question at hand: its number, yes; minus that, no */
    int32_t question;

    /* polishing */
    uint8_t *need, *hneed;     /* [n_bufs] */
    struct plan_step *rev;     /* steps of the new plan, last first */
    size_t n_rev, cap_rev;
    uint8_t *flags;            /* one per write operand of each replay, one per drop: a stack */
    size_t n_flags, cap_flags;
};

#endif
