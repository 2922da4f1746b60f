/* compiled.h: a record and a plan as tables by position: what the plan does before op i, and which versions of which buffers that takes and makes.
 *
 * Version v of buffer b is what b holds after v ops have written it; 0: what it held when the iteration began. The pair is the value
 * first_val[b] + v. Position i is before op i; n_ops: after the last one.
 *
 * Written by compile.c (elide.c is a part of that), which gives it away as const: nobody else changes a plan.
 */
#ifndef REMAT_POLICY_COMPILED_H
#define REMAT_POLICY_COMPILED_H

#include "offline/model/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct compiled_value {
    int32_t buf, version;
};

struct compiled {
    /* of the record alone */
    int32_t *in_ver, *out_ver; /* per rec operand; -1 where none */
    uint32_t *made_at;       /* [n_ops + 1] into made */
    struct compiled_value *made; /* the values that op i makes are made_at[i] .. made_at[i + 1] */
    int32_t *first_val;      /* [n_bufs + 1] (buf, version) -> index into producer */
    int32_t *producer;       /* op that makes the value; -1: older than the iteration */
    uint32_t *die_at;        /* [n_ops + 2] into die_list */
    int32_t *die_list;
    bool *used;              /* [first_val[n_bufs]] some op, hold or the next iteration reads the value */

    /* of the plan */
    struct plan as_read;
    uint32_t *step_at;       /* [n_ops + 2] steps before op i are step_at[i] .. step_at[i + 1] */
    struct plan_step *steps; /* without the program's own ops */
    bool *elided;            /* [steps] a replay that only holds ask for: taken in rehearsal, so that it is proved, else left out */
    uint32_t *ref_at;        /* [n_ops + 2] into ref_list: buffers that nothing refers to after the steps before op i */
    int32_t *ref_list;
    int32_t *last_ref;       /* [n_bufs] last position (op index) at which anything refers to it; n_ops: survives */
    int32_t *again_until;    /* [n_ops] last op before which the op may be run again, by the plan or by who leaves it; -1: it never is */
    int32_t *relied;         /* [n_bufs] last op before which a replay, one that is left out included, or a copy uses buffer b; -1: none */
    bool *keep, *rebuilt;    /* [n_bufs] in the plan's keep list; rebuilt by some replay */
    bool *partial;           /* [n_bufs] a value of it that is compared may not be defined in every byte */
    bool *remade;            /* [first_val[n_bufs]] some replay of the plan makes the value again */
    int8_t *check_turn;      /* [first_val[n_bufs]] in which of VERIFY_TURNS iterations it is compared (verify.c); -1 never */
};

#endif
