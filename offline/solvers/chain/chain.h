/* Heterogeneous chains: the model of the Rotor paper (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova: Optimal
 * checkpointing for heterogeneous chains), its dynamic programs, and the classic schedules in the same model.
 *
 * A chain has stages 1..n. Stage l reads a^(l-1) and makes a^l; its backward reads a^(l-1), abar^l and delta^l and makes
 * delta^(l-1). abar^l holds a^l and all else that the backward of l reads. Forward of stage l comes in three kinds:
 * F_all makes abar^l, F_ck makes a^l and leaves a^(l-1) in memory, F_none makes a^l and gives a^(l-1) up.
 * Input a^0 is in memory from the start; delta^n is there when the backward of n starts (a loss is a stage of size 0).
 *
 * Units: sizes in bytes or slots, times in ns or whatever the file uses. Threads: no shared state.
 * Errors: 0 or negative errno; -ENOSPC: no schedule fits.
 */
#ifndef REMAT_OFFLINE_CHAIN_H
#define REMAT_OFFLINE_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#include "offline/model/json_read.h"

/* Index l runs 0..n for a, abar, delta (abar[0] unused) and 1..n for the rest; each array has n + 1 entries. */
struct chain {
    int32_t n;
    int64_t *a, *abar, *delta;
    int64_t *uf, *ub; /* times */
    int64_t *of, *ob; /* memory that F_all and the backward need on top of inputs and outputs */
    int64_t *on;      /* memory that F_ck and F_none need on top; the paper has one o_f for all three */
};

int chain_alloc(struct chain *c, int32_t n); /* zeroed; 0 or -ENOMEM */
void chain_free(struct chain *c);

/* Read an instance of format rotor-chain-v1: the loss becomes stage n = L + 1. *slots is the file's own number of slots (0 if
 * none), *unit_slots is set where sizes are slots already. -EINVAL with the place in err. */
int chain_read(const struct json_doc *doc, struct chain *out, int64_t *budget, int64_t *slots, int *unit_slots, char *err,
               size_t err_len);

enum chain_kind { CHAIN_FALL, CHAIN_FCK, CHAIN_FNONE, CHAIN_BWD, CHAIN_DROP };

/* A step on a stage; CHAIN_DROP gives up a^stage where it is in memory on its own, not within abar. */
struct chain_step {
    int32_t kind, stage;
};

struct chain_schedule {
    struct chain_step *steps; /* owned */
    size_t n, cap;
};

void chain_schedule_free(struct chain_schedule *s);
int chain_push(struct chain_schedule *s, enum chain_kind kind, int32_t stage); /* 0 or -ENOMEM */

struct chain_result {
    int64_t time;  /* makespan */
    int64_t peak;  /* high-water mark, a^0 included */
    size_t bad;    /* first step that breaks a rule; the length of the schedule if the end state is wrong */
};

/* Execute a schedule. -EINVAL if a step reads a value that is not in memory or the end is not reached; *r is filled up to the bad step. */
int chain_replay(const struct chain *c, const struct chain_schedule *s, struct chain_result *r);

/* Sum of all forward and backward times. */
int64_t chain_ideal_time(const struct chain *c);
/* Peak of the schedule that stores everything. */
int64_t chain_store_all_peak(const struct chain *c);

/* Copy the chain with sizes in units of `unit` bytes, rounded up, or to nearest if nearest. */
int chain_scale(const struct chain *c, int64_t unit, int nearest, struct chain *out);

#endif
