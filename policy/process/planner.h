/* planner.h: `remat plan` as a child process, without the preload: training goes on while it thinks.
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
/* Writes the trace and starts `remat plan` on it for this many bytes, with `patience` times the usual seconds (PLANNER_AT_ONCE: with less than one
 * second, however many ops there are). 0 or a negative errno. */
int planner_start(struct device *d, const struct record *rec, uint64_t limit_bytes, bool offload, unsigned patience);
/* The usual seconds for this record are so many that a plan made at once is followed meanwhile; not where another solver is named. */
bool planner_is_slow(const struct device *d, const struct record *rec);
/* Where it stands, at once. DONE: planner_path() is the plan. */
enum planner_state planner_poll(struct device *d);
/* Returns when that child has ended, or after so many milliseconds; planner_poll() then tells. Without the mutex. A terminal shows how long it
 * has been since `began_ns`. */
void planner_wait(pid_t child, int ms, uint64_t began_ns);
pid_t planner_child(const struct device *d); /* 0: none runs */
/* The folder of files that are exchanged with it is there. 0 or a negative errno. */
int planner_folder(struct device *d);
const char *planner_path(struct device *d);
/* After FAILED: the planner, or a solver of the user's own (exec:CMD), had not answered in many times its seconds, and was ended. Another question
 * would take as long. */
bool planner_is_late(const struct device *d);
/* After FAILED: one line with the planner's own words. */
void planner_say_why(struct device *d);
/* Nothing more is asked of it: it is ended where it runs, and its files go. */
void planner_stop(struct device *d);

#endif
