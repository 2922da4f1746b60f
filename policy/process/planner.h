/* planner.h: `remat plan` as a child process, without the preload: training goes on while the child plans.
 *
 * Threads: under the engine's mutex, but for planner_wait(). Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_PLANNER_H
#define REMAT_POLICY_PLANNER_H

#include "policy/device.h"
#include "tracer/record.h"

#include <sys/types.h>

int planner_init(struct device *d);
enum planner_state { PLANNER_IDLE, PLANNER_RUNNING, PLANNER_DONE, PLANNER_FAILED };
enum { PLANNER_AT_ONCE = 0 };
/* Writes the trace and starts `remat plan` on it with limit `limit_bytes` and `patience` times the usual seconds (PLANNER_AT_ONCE: less than one
 * second, however many ops there are). 0 or a negative errno; -EBUSY: a planner runs already. */
int planner_start(struct device *d, const struct record *rec, uint64_t limit_bytes, bool offload, unsigned patience);
/* The usual seconds for this record are so many that a plan made at once is followed meanwhile. False where another solver than `best` is named. */
bool planner_is_slow(const struct device *d, const struct record *rec);
/* The planner's state; does not wait. DONE: planner_path() is the plan. DONE and FAILED are returned once, IDLE afterwards. */
enum planner_state planner_poll(struct device *d);
/* Returns when `child` has ended, or after `ms` milliseconds; planner_poll() tells which. Without the mutex. A terminal shows the seconds since
 * `began_ns`. */
void planner_wait(pid_t child, int ms, uint64_t began_ns);
pid_t planner_child(const struct device *d); /* 0: no planner runs */
/* Makes the folder of files exchanged with the planner, if need be. 0 or a negative errno. */
int planner_folder(struct device *d);
const char *planner_path(struct device *d);
/* After FAILED: the planner, or a solver of the user's own (exec:CMD), had not answered in many times its seconds, and was ended. Another plan
 * would take as long. */
bool planner_is_late(const struct device *d);
/* After FAILED: one line with the planner's own words. */
void planner_say_why(struct device *d);
/* Kills the planner if it runs, and removes its files. */
void planner_stop(struct device *d);

#endif
