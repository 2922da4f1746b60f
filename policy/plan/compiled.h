/* compiled.h: a record and a plan as tables by position: the plan's steps before op i, and the buffer versions that each op takes and makes.
 *
 * Version v of buffer b is b's content after v ops have written it; version 0 is b's content when the iteration began. The value (b, v) has the
 * index first_val[b] + v. Position i is before op i; position n_ops is after the last op.
 *
 * Written by compile.c and its part elide.c, and given away as const: no other file changes a compiled plan.
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
    /* derived from the record alone */
    int32_t *in_ver, *out_ver; /* [n_operands] version that the operand reads, that it makes; -1: none */
    uint32_t *made_at;       /* [n_ops + 1] index into made */
    struct compiled_value *made; /* values that op i makes: made[made_at[i]] .. made[made_at[i + 1] - 1] */
    int32_t *first_val;      /* [n_bufs + 1] index of value (b, 0) in producer, used, remade, check_turn */
    int32_t *producer;       /* [first_val[n_bufs]] op that makes the value; -1: older than the iteration */
    uint32_t *die_at;        /* [n_ops + 2] index into die_list: buffers that are freed just before op i */
    int32_t *die_list;
    bool *used;              /* [first_val[n_bufs]] some op, hold or the next iteration reads the value */

    /* derived from the plan */
    struct plan as_read;
    uint32_t *step_at;       /* [n_ops + 2] steps before op i: steps[step_at[i]] .. steps[step_at[i + 1] - 1] */
    struct plan_step *steps; /* all steps of the plan but the program's own ops */
    bool *elided;            /* [steps] a replay that only holds ask for: run in rehearsal, to prove it, and left out otherwise */
    uint32_t *ref_at;        /* [n_ops + 2] index into ref_list: buffers that nothing refers to after the steps before op i */
    int32_t *ref_list;
    int32_t *last_ref;       /* [n_bufs] last position at which anything refers to buffer b; n_ops if b outlives the iteration */
    int32_t *again_until;    /* [n_ops] last position at which the op may be replayed, by the plan or by leaving it (rebuild.c); -1: never */
    int32_t *relied;         /* [n_bufs] last op before which a replay (elided ones included) or a copy uses buffer b; -1: none */
    bool *keep, *rebuilt;    /* [n_bufs] buffer b is in the plan's keep list; some replay rebuilds b */
    bool *partial;           /* [n_bufs] some value of buffer b that is compared is defined in a part of its bytes only */
    bool *remade;            /* [first_val[n_bufs]] some replay of the plan makes the value again */
    int8_t *check_turn;      /* [first_val[n_bufs]] the one of VERIFY_TURNS iterations in which the value is compared (verify.c); -1: never */
};

#endif
