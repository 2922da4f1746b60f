/* campaign.h: from the first op to a plan in force, and back. Its parts lie in campaign/.
 *
 *   observe --an iteration is found, and memory was short--> probe --> plan --> rehearse --> enforce
 *      ^                                                      |          |         |            |
 *      +------- nothing to learn, or no plan possible --------+----------+         +- standby --+
 *
 * In standby a plan is installed, and ops run plainly until one begins an iteration that the plan knows. A plan that is left
 * again and again is given up: leaving costs more than swapping. Each failure makes the next attempt later (backoff).
 *
 * The program goes on while a plan is made (--policy plan: it waits). Several plans are asked for in turn, one planner at a time, each for a little less
 * memory, or with copies: the best so far is followed meanwhile (campaign.beside). An answer is taken between two iterations. It is dropped where the
 * recorded iteration has not come again for long, or its tensors are gone.
 *
 * Threads: under the engine's mutex, but for campaign_wait(). Errors: *_drv return the driver's code for the program.
 */
#ifndef REMAT_POLICY_CAMPAIGN_H
#define REMAT_POLICY_CAMPAIGN_H

#include "policy/campaign/modes.h"
#include "policy/op/op.h"

int campaign_init(struct device *d);
/* Before every allocation and op: ends an iteration or a lesson that is over, takes the planner's answer, gives memory that is owed to a group. */
void campaign_turn(struct device *d);
/* The device code is wanted and has not been loaded (learn/hashing.h): a caller that can release the mutex loads it. */
bool campaign_wants_code(struct device *d);
int campaign_op_drv(struct device *d, struct rt_op *op);
/* True: no step of a plan comes before the op, which runs once its operands are in memory. */
bool campaign_runs_plainly(struct device *d, const struct rt_op *op);
/* A neighbour of the group waits for memory that this process holds beyond its share (share.h): gives that memory, at once where no plan is
 * followed or the neighbour cannot go on without; else when the iteration ends. */
void campaign_give(struct device *d);
/* True: the plan in force knows the launch to the byte, and has run it; *r is the result. False: an op must be built of the launch. */
bool campaign_launch_drv(struct device *d, const struct eng_kernel *k, int *r);
/* Something that no plan and no probe can follow is about to happen (a capture, an address that goes where remat cannot see it): a plan or a lesson under way is left. */
void campaign_leave(struct device *d, const char *why);
/* The program writes device memory outside all known buffers: a variable of a module, perhaps, which kernels know by name. A replay
 * after the write would find the variable changed. */
void campaign_writes_elsewhere(struct device *d);
/* campaign_leave() for good: nothing is learnt or planned any more, memory is held by swapping. */
void campaign_stop(struct device *d, const char *why);
/* The record does not tell all: something else changes memory that the recorded iteration reads. The iteration is forgotten, and learnt anew. */
void campaign_distrusts(struct device *d, const char *why);
/* The code of this module, or of this library, is about to go. A recorded iteration that launches it is forgotten, and values that only its
 * kernels can make again are made now: the host waits for them. */
void campaign_unloads(struct device *d, CUmodule module, CUlibrary library);
/* A plan is being followed: it serves allocations and frees too. */
static inline bool campaign_follows_plan(const struct device *d) { return modes_follow_plan(d); }

/* How long to wait for the planner at most, where waiting a moment costs less than running on without a plan; 0: not at all. The engine then waits with its mutex
 * released (planner_wait) and calls campaign_answered(). */
int campaign_wait_ms(struct device *d);
/* After that wait: takes the planner's answer. `op_count`: device.op_count when the wait began: other threads may have launched meanwhile. */
void campaign_answered(struct device *d, uint64_t op_count);

#endif
