/* steady.h: a launch that is the same as an iteration ago, known by its bytes.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_STEADY_H
#define REMAT_POLICY_STEADY_H

#include "policy/plan/cursor.h"

struct steady_op {
    uint32_t op;       /* the first op at or after this one that must come; n_ops: none */
    bool same;         /* the launch captured last can be told by its bytes */
    bool quiet;        /* the plan has nothing to do just before it */
    bool sets_aside;   /* it overwrites a buffer that has values to compare */
    bool begins;       /* it is the first op to write such a buffer, and does not write all of it */
    bool keeps_sides;  /* it changes small state in place, which is saved before the op */
    uint64_t address_changes;
};

/* The next op that must come, n_ops: none is left of the iteration. */
static inline uint32_t steady_next(const struct device *d) { return d->ex->now.steady[d->ex->now.pos].op; }

/* Runs a launch that is the same as an iteration ago, byte for byte. NO: nothing was done, the launch has to be looked at (exec_op_drv).
 * LEFT: the plan has been left before it, and it has not been run. REFUSED: the driver has not taken it, and the plan has been left. */
enum steady { STEADY_NO, STEADY_RAN, STEADY_LEFT, STEADY_REFUSED };
enum steady steady_launch_drv(struct device *d, const struct eng_kernel *k, int *r);
/* A plan was loaded: no launch is known to be the same. */
int steady_plan(struct device *d);
/* Op `at` was captured. `same`: it corresponded, with the arguments of an iteration ago. Decides whether the next launch at `at` can be told by its bytes. */
void steady_note(struct device *d, uint32_t at, const struct rt_op *op, bool same);
/* The op has other arguments than before: it may leave more of its new buffers unwritten, and no comparison may depend on these bytes. */
void steady_may_write_less(struct device *d, uint32_t at);
/* The op overwrites a buffer that has values to compare. */
static inline bool steady_sets_aside(const struct device *d, uint32_t op) { return d->ex->now.steady[op].sets_aside; }

#endif
