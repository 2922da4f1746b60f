/* stats.h: the statistics of a run: iterations timed, and one JSON object at the end, which stands in its file from the first work on (stats.c).
 *
 * Threads: under the engine's mutex, but for stats_keep_last(). Errors: a file that cannot be written is said once.
 */
#ifndef REMAT_POLICY_PROCESS_STATS_H
#define REMAT_POLICY_PROCESS_STATS_H

#include "policy/device.h"

#include <time.h>

int stats_init(struct device *d);
/* An iteration begins on stream t: its device time is measured between two such calls. `steady`: counted. */
void stats_boundary(struct device *d, unsigned t, bool steady);
/* The first steady iteration begins: times measured before it do not count. */
void stats_steady_from_here(struct device *d);
/* How long the longest of the latest iterations took the host; 0: not known yet. */
uint64_t stats_wall_ns(const struct device *d);
/* The iteration in progress is no measure of a steady one: its plan was left. */
void stats_not_steady(struct device *d);
/* Nor is it if a launch ran as a trial in it; it is told where there is no other. */
void stats_tried(struct device *d);
/* One object for all devices together: counts are added up. `active`: the engine is (its mode, where no device is in use). Nothing where the
 * configuration names no file. */
void stats_write(const struct config *cfg, struct device *const *devs, unsigned n, bool active);
/* The same of a process in which nothing was counted, and why. */
void stats_write_nothing(const struct config *cfg, const char *mode, const char *why_not);
/* The statistics while the program runs, if it is time: for processes that end without a word. Files alone, no pipe or device. */
void stats_keep(const struct config *cfg, struct device *const *devs, unsigned n, bool active);
/* The same at _exit(): may be called in a signal handler. */
void stats_keep_last(struct device *const *devs, unsigned n, bool active);
void stats_after_fork_child(void); /* the file is the parent's */
static inline uint64_t stats_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
/* What has gone on since *since_ns is over: it is added to *sum_ns. 0: it did not go on. */
static inline void stats_span_ends(uint64_t *since_ns, uint64_t *sum_ns)
{
    *sum_ns += *since_ns ? stats_now_ns() - *since_ns : 0;
    *since_ns = 0;
}
/* Round a launch that goes to the driver, while a launch of the program is timed: the driver's own time is none of ours. */
static inline uint64_t stats_driver_begins(const struct device *d) { return d->timing ? stats_now_ns() : 0; }
static inline void stats_driver_ended(struct device *d, uint64_t began)
{
    if (d->timing)
        d->issue_ns += stats_now_ns() - began;
}

#endif
