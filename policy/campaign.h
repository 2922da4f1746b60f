/* campaign.h: from the first op to a plan in force, and back. What is behind it lies in campaign/.
 *
 *   observe --an iteration is found, and memory was short--> probe --> plan --> rehearse --> enforce
 *      ^                                                      |          |         |            |
 *      +------- nothing to learn, or no plan possible --------+----------+         +- standby --+
 *
 * In standby a plan is installed, and ops run plainly until one begins an iteration that the plan knows. A plan that is left
 * again and again is given up: leaving costs more than swapping. Each failure makes the next attempt later (backoff).
 *
 * The program goes on while a plan is made (--policy plan: it waits). Several are asked for in turn, one planner at a time, each for a little less
 * memory, or with copies: the best so far is followed meanwhile (campaign.beside). An answer is taken between two iterations. It is dropped where the
 * recorded iteration has not come again for long, or the tensors are gone that it works on.
 *
 * Threads: under the engine's mutex, but for campaign_wait(). Errors: *_drv return the driver's code for the program.
 */
#ifndef REMAT_POLICY_CAMPAIGN_H
#define REMAT_POLICY_CAMPAIGN_H

#include "policy/campaign/modes.h"
#include "policy/op/op.h"

int campaign_init(struct device *d);
/* Before every allocation and op: ends what has ended. */
void campaign_turn(struct device *d);
/* The device code is wanted and has not been loaded (learn/hashing.h): whoever can give the mutex back loads it. */
bool campaign_wants_code(struct device *d);
int campaign_op_drv(struct device *d, struct rt_op *op);
/* Nothing of a plan's comes before it: what it touches is brought into memory, and it runs. */
bool campaign_runs_plainly(struct device *d, const struct rt_op *op);
/* A neighbour of the group waits for memory that we hold beyond our share (share.h): gives it, at once where no plan is followed or where
 * it cannot go on without; else when the iteration ends. */
void campaign_give(struct device *d);
/* The launch is one that the plan in force knows to the byte: it has run, *r is its result. False: an op must be built of it. */
bool campaign_launch_drv(struct device *d, const struct eng_kernel *k, int *r);
/* Something that no plan and no probe can follow is about to happen (a capture, an address that leaves our sight). */
void campaign_leave(struct device *d, const char *why);
/* The program writes device memory that is neither ours nor its own: a variable of a module, perhaps, which kernels know by name. A replay
 * after that would find it changed. */
void campaign_writes_elsewhere(struct device *d);
/* The same as campaign_leave(), and for good: nothing is learnt or planned any more, memory is held by swapping. */
void campaign_stop(struct device *d, const char *why);
/* What the recorded iteration was taken to do is not all: somebody else changes memory that it reads. It is forgotten, and learnt anew. */
void campaign_distrusts(struct device *d, const char *why);
/* The code of this module, or of this library, is about to go. A recorded iteration that launches it is forgotten, and what only its
 * kernels can make again is made now: the host waits for that. */
void campaign_unloads(struct device *d, CUmodule module, CUlibrary library);
/* A plan is being followed: allocations and frees are its. */
static inline bool campaign_follows_plan(const struct device *d) { return modes_follow_plan(d); }

/* Waiting a moment for the planner costs less than running on without a plan: how long at most. 0: no. The engine then waits with its mutex
 * released (planner_wait) and calls campaign_answered(). */
int campaign_wait_ms(struct device *d);
/* After that wait: what the planner has said is taken. `op_count`: what it was when the wait began: other threads may have launched meanwhile. */
void campaign_answered(struct device *d, uint64_t op_count);

#endif
