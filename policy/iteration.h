/* iteration.h: the recorded iteration, which learn/ writes; the plan for it, and where the iteration in progress stands in that, which plan/
 * writes. It is device.ex; the tables are made by plan/compile.c and go with exec_clear().
 */
#ifndef REMAT_POLICY_ITERATION_H
#define REMAT_POLICY_ITERATION_H

#include "offline/model/plan.h"
#include "policy/op/op.h"

struct saved_value { /* a value set aside on the host */
    int32_t buf, version;
    struct host_block *block;
    uint64_t hash[2]; /* of the whole of it; where `hashed` */
    bool hashed;
    struct saved_value *next;
};

struct exec_value {
    int32_t buf, version;
};

struct exec {
    struct record rec;
    struct rt_op *caps;      /* [n_ops] this iteration's calls, as they were made */
    uint32_t n_caps;
    uint32_t *op_of_trace;   /* [n_trace_ops] op here of each op of the trace that users get: holds are not in it */
    uint32_t n_trace_ops;
    uint32_t *elsewhere;     /* [n_elsewhere] before which ops of that trace the program writes device memory that is neither ours nor its own:
                                variables of modules, which kernels know by name */
    uint32_t n_elsewhere, cap_elsewhere;
    uint64_t boundary_live_bytes; /* held by the program when op 0 of the last whole iteration was launched */
    uint64_t swing_bytes;    /* from the least to the most that it holds in the recorded iteration */

    struct plan plan;
    bool have_plan, installed, proved; /* proved: a whole iteration was rehearsed without a difference */
    uint32_t *step_at;       /* [n_ops + 2] steps before op i are step_at[i] .. step_at[i + 1] */
    struct plan_step *steps; /* without the program's own ops */
    int32_t *in_ver, *out_ver; /* per rec operand; -1 where none */
    uint32_t *made_at;       /* [n_ops + 1] into made */
    struct exec_value *made; /* the values that op i makes are made_at[i] .. made_at[i + 1] */
    int32_t *first_val;      /* [n_bufs + 1] (buf, version) -> index into producer */
    int32_t *producer;       /* op that makes the value; -1: older than the iteration */
    uint32_t *die_at;        /* [n_ops + 2] into die_list */
    int32_t *die_list;
    uint32_t *ref_at;        /* [n_ops + 2] into ref_list: buffers that nothing refers to after the steps before op i */
    int32_t *ref_list;
    int32_t *last_ref;       /* [n_bufs] last position (op index) at which anything refers to it; n_ops: survives */
    bool *keep, *rebuilt;    /* [n_bufs] in the plan's keep list; rebuilt by some replay */
    int32_t *relied;         /* [n_bufs] last position of a step that begins from what is in the buffer, or makes it again, or would, where
                                it is left out and the plan is left; -1: none */
    bool *used;              /* [first_val[n_bufs]] some op, hold or the next iteration reads the value */
    int8_t *check_turn;      /* [first_val[n_bufs]] in which of VERIFY_TURNS iterations it is compared (verify.c); -1 never */
    bool *partial;           /* [n_bufs] a value of it that is compared may not be defined in every byte */
    bool *remade;            /* [first_val[n_bufs]] some replay of the plan makes the value again */
    bool *elided;            /* [steps] a replay that only holds ask for: taken in rehearsal, so that it is proved, else left out */
    int32_t *alloc_slot;     /* [n_places] fixed slot of each allocation, -1 none; then of twins */
    int32_t *twin;           /* [n_places] place of another slot, for the next iteration: the buffer that this one made here, or perhaps the
                                one before it, too, is still held when the next one is made; -1 none */
    uint32_t n_places;       /* n_allocs and the twins */
    int32_t **home;          /* [n_places] chunk of each page by the static map, -1 none; NULL for small ones */
    CUdeviceptr *side_scratch; /* [n_operands] where a replay's side operand goes, or one that is read from a copy; 0 elsewhere */
    CUdeviceptr *side_saved; /* [n_operands] small in-place state as the op found it when it ran last; 0: not kept */
    bool *side_is_saved;     /* [n_operands] and it has run */
    struct fence scratch_users; /* replays that used the scratch, launches before which state was kept */
    int32_t *op_banned;      /* [n_ops] its replay differed in rehearsal */
    struct steady_op *steady; /* [n_ops + 1] launches that can be told by their bytes (steady.c) */
    struct left_out *left_out; /* scratch of match.c */
    unsigned char *replay_args, *other_args; /* [OP_MAX_ARG_BYTES] scratch of replay.c, of proof.c */
    struct arg_watch *watch; /* [n_ops] which argument bytes must stay as they are (args.c) */
    uint32_t *alike;         /* [n_ops] all of them, those of the same kernel and shape beside each other (args.c) */

    /* the iteration in progress */
    uint32_t pos, alloc_k;
    uint64_t began_live_bytes; /* held by the program when op 0 was launched */
    bool ended;              /* the last op has run; the next allocation or op begins another iteration */
    bool passed_on;          /* the launch that steady.c took last needed nothing but the driver's call */
    int32_t *bind;           /* [n_bufs] slot id, -1 not yet; bind[b] == id <=> slots[id].plan_buf == b */
    int32_t *res, *cur;      /* [n_bufs] version in memory or on the host, -1 none; the program's version, -1 freed */
    bool *stays;             /* [n_bufs] this iteration holds it for longer than the recorded one did */
    struct saved_value *saved; /* rehearsal and verification: what rebuilt values must equal */
    uint32_t bans;
    uint32_t rebuilt_now, compared_now; /* in rehearsal: values that replays made, and those that were compared */
    uint32_t unproved_rounds;           /* rehearsals in which not all could be */
    uint32_t tried;                     /* launches that ran as trials in this iteration */
    uint64_t proof_calls;               /* driver calls of memory management for launches that wanted proof, in this iteration */
    bool lacks_chunks;                  /* the static map does: steady iterations map memory */
    uint64_t beyond_chunks;             /* of these, what no colouring could have given */
    uint32_t not_in_turn;               /* iterations until what is handed on lies in slots of the static map: those before map memory */
    uint64_t swaps_before, mem_calls_before;
    uint64_t left_op;        /* d->op_count when the plan was last left */
    uint32_t left_at;        /* and at which of its ops */
    bool left_untried;       /* since no trial could tell whether the launch does what it did */
    int code;                /* CUDA result to hand to the program when a value is gone; 0 */
};

#endif
