/* exec.h: the recorded iteration and the plan in force.
 *
 * Threads: under the engine's mutex. Errors: *_drv return the driver's code for the program; others 0 or a negative errno.
 */
#ifndef REMAT_POLICY_EXEC_H
#define REMAT_POLICY_EXEC_H

#include "policy/iteration.h"

/* Makes the tables derived from a record that is whole. 0 or -ENOMEM. */
int exec_index(struct device *d);
/* Takes a plan for the record (compile_plan says what is checked). Its slots get no memory yet (install.h). */
int exec_load_plan(struct device *d, const char *path, bool own);
/* Record and plan are forgotten. */
void exec_clear(struct device *d);
/* Runs the program's op under the plan. The plan may be left (leave_plan): before the op, which then has not run, or after an op that did something
 * else than was recorded. */
enum exec_left { EXEC_STAYED, EXEC_LEFT_BEFORE, EXEC_LEFT_AFTER, EXEC_ENDED /* before the op, which belongs to the next iteration, or to none */ };
int exec_op_drv(struct device *d, struct rt_op *op, enum exec_left *left);
/* The program allocates: its planned slot, or NULL. */
struct slot *exec_alloc(struct device *d, uint64_t bytes);
/* The program frees a slot that the plan knows. True: the plan keeps the memory; do not free it. */
bool exec_free(struct device *d, struct slot *s);
/* The iteration's last op has run (now.ended): takes the rest of the plan's steps. Returns what came of the iteration. */
enum exec_end {
    EXEC_END_WHOLE,
    EXEC_END_BANNED,     /* a replay differed in rehearsal: its op is banned, the plan must be made anew */
    EXEC_END_UNPROVABLE, /* after many rehearsals some values could still not be compared */
    EXEC_END_MOVED       /* memory was mapped: something outside the plan holds chunks of the static map, which must be made anew */
};
enum exec_end exec_end_iteration(struct device *d);
/* Out of the plan: does this op begin an iteration that the plan knows? The program holds as much as where the recorded one began, or less
 * (exec_holds_less: gradients that the recorded iteration added to are not there yet), or an iteration like the recorded one has just ended (`after_its_like`). */
bool exec_may_resume(struct device *d, const struct rt_op *op, bool after_its_like);
bool exec_holds_less(const struct device *d);
/* Since the recording, memory that the plan relies on can be reached in ways that no argument shows, or has begun to hold addresses:
 * the plan is of no use any more. */
bool exec_reached_since(const struct device *d);
/* The op of exec_may_resume(), not yet run, begins an iteration under the plan; the cursor is at the begin (cursor_begin). Buffers that it allocated are bound when
 * an op shows them. */
void exec_resume(struct device *d);

#endif
