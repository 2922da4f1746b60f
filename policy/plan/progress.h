/* progress.h: where the iteration in progress stands in the plan, and what is kept of earlier iterations for the next one.
 *
 * Invariants: bind[b] == id <=> slots[id].plan_buf == b; pos <= n_ops; alloc_k <= n_allocs; res[b], cur[b] are versions of b, or -1.
 *
 * Written by the files of plan/ that walk the iteration; cursor.h has what they share.
 */
#ifndef REMAT_POLICY_PROGRESS_H
#define REMAT_POLICY_PROGRESS_H

#include "policy/memory/fence.h"

#include <stdbool.h>
#include <stdint.h>

struct progress {
    uint32_t pos, alloc_k;
    uint64_t began_live_bytes; /* held by the program when op 0 was launched */
    bool ended;              /* the last op has run; the next allocation or op begins another iteration */
    bool passed_on;          /* the launch that steady.c took last needed the driver's call alone, beside memory that was let go or given to another tensor */
    int32_t *bind;           /* [n_bufs] slot id, -1 not yet */
    int32_t *res, *cur;      /* [n_bufs] version in memory or on the host, -1 none; the program's version, -1 freed */
    bool *held_longer;           /* [n_bufs] this iteration holds the buffer for longer than the recorded one did */
    struct saved_value *saved; /* rehearsal and verification: the values that rebuilt values must equal */
    uint32_t rebuilt_now, compared_now; /* in rehearsal: values that replays made, and those that were compared */
    uint32_t tried;          /* launches that ran as trials in this iteration */
    uint32_t n_beside;       /* ops in this iteration that the recorded one does not have (detour.h) */
    uint32_t n_trail;        /* ops beside the plan since the latest recorded op */
    bool *not_again;         /* [n_ops] the op has not run in this iteration, or an op beside the plan may have changed a buffer that it read or made */
    uint8_t *came;           /* [n_ops] where n_trail > 0: how many of the latest ops beside the plan, in a row, were like the recorded ops up to this one */
    uint32_t alloc_from;     /* alloc_k when the latest recorded op had run */
    uint32_t detour_to;      /* recorded op at which the latest detour ended, or stands; 0: no detour so far */
    uint64_t proof_calls;    /* driver calls of memory management for launches that wanted proof, in this iteration */
    uint64_t swaps_before, mem_calls_before;
    struct fence scratch_users; /* replays that used the scratch, launches before which state was kept */

    /* kept from earlier iterations: under this plan, or, for what launches do, under this record */
    bool have_plan, proved;  /* the compiled plan may be followed; a whole iteration was rehearsed without a difference */
    uint32_t unproved_rounds; /* rehearsals in which some values could not be compared */
    uint32_t bans;
    uint32_t may_lack;       /* how many of the recorded iteration's last ops did not come in an iteration after which the next one began at once */
    int32_t *op_banned;      /* [n_ops] the op's replay differed in rehearsal */
    bool *side_is_saved;     /* [n_operands] the launch has run, and installed.side_saved holds what it found */
    bool *partial;           /* [n_bufs] as compiled.partial; or launches with other arguments may leave a part of the buffer unwritten */
    struct steady_op *steady; /* [n_ops + 1] launches that can be told by their bytes (steady.c) */
    struct arg_watch *watch; /* [n_ops] which argument bytes must stay as they are (args.c) */
    uint32_t *alike;         /* [n_ops] all ops, sorted: ops of the same kernel and shape are neighbours (args.c) */

    /* when the plan was left */
    uint64_t left_op;        /* d->op_count at that time */
    uint32_t left_at;        /* the plan's op at which it was left */
    char left_why[96];       /* the reason */
    uint32_t left_for;       /* recorded op at which the program went on, skipping the ops before it; 0: not known */
    uint32_t looks_back;     /* how many more ops are searched, the plan left, for the place where the program goes on */
    bool left_untried;       /* reason: no trial could tell whether the launch does what it did */
    int code;                /* CUDA result to hand to the program when a value is gone; 0 */

    /* scratch, for one op at a time */
    struct left_out *left_out; /* of match.c */
    unsigned char *replay_args, *other_args; /* [OP_MAX_ARG_BYTES] of replay.c, of proof.c */
};

#endif
