/* stats.h: the statistics of a run: iterations timed, and one JSON object at the end. The object is in its file from the first work on (stats.c).
 *
 * Threads: under the engine's mutex, but for stats_keep_last(). Errors: a file that cannot be written is named once.
 */
#ifndef REMAT_POLICY_PROCESS_STATS_H
#define REMAT_POLICY_PROCESS_STATS_H

#include "policy/device.h"

#include <time.h>

int stats_init(struct device *d);
/* An iteration begins on stream t: its device time is measured from this call to the next. `steady`: it counts. */
void stats_boundary(struct device *d, unsigned t, bool steady);
/* The first steady iteration begins: earlier times do not count. */
void stats_steady_from_here(struct device *d);
/* Host time of the longest of the latest iterations; 0: not known yet. */
uint64_t stats_wall_ns(const struct device *d);
/* The iteration in progress does not count as steady: its plan was left. */
void stats_not_steady(struct device *d);
/* A launch of the iteration in progress ran as a trial: the iteration's time is used only where no steady one was measured. */
void stats_tried(struct device *d);
/* Writes one object for all devices together: counts are added up. `active`: the engine's state, for "mode" where no device is in use. Writes
 * nothing if the configuration names no file. */
void stats_write(const struct config *cfg, struct device *const *devs, unsigned n, bool active);
/* stats_write() for a process in which nothing was counted: `why_not` says why. */
void stats_write_nothing(const struct config *cfg, const char *mode, const char *why_not);
/* Writes the statistics while the program runs, if it is time: the process may be killed at any moment. Regular files alone, no pipe or device. */
void stats_keep(const struct config *cfg, struct device *const *devs, unsigned n, bool active);
/* Writes them once more at _exit(): may be called in a signal handler. */
void stats_keep_last(struct device *const *devs, unsigned n, bool active);
void stats_after_fork_child(void); /* the file is the parent's */
static inline uint64_t stats_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
/* A span of time (planning, a lesson) that began at *since_ns is over: its length is added to *sum_ns. *since_ns 0: no span was open. */
static inline void stats_span_ends(uint64_t *since_ns, uint64_t *sum_ns)
{
    *sum_ns += *since_ns ? stats_now_ns() - *since_ns : 0;
    *since_ns = 0;
}
/* Called round a driver call while a launch of the program is timed: the driver's time does not count as remat's. */
static inline uint64_t stats_driver_begins(const struct device *d) { return d->timing ? stats_now_ns() : 0; }
static inline void stats_driver_ended(struct device *d, uint64_t began)
{
    if (d->timing)
        d->issue_ns += stats_now_ns() - began;
}

#endif
