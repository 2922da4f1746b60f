/* summary.h: the figures of a run, over all devices, for the statistics' file and the closing line: both take them from here alone.
 *
 * Threads: under the engine's mutex, or in a signal handler, where the counts are read as they stand; allocates nothing. Errors: none.
 */
#ifndef REMAT_POLICY_PROCESS_SUMMARY_H
#define REMAT_POLICY_PROCESS_SUMMARY_H

#include "policy/device.h"

enum { SUMMARY_WHY = 440 };

struct summary {
    struct stats t;          /* counters, added up */
    uint64_t limit_bytes;    /* sum over all devices */
    bool limited, pressed;   /* some device has a limit; some device's limit was felt */
    uint64_t iteration_ps;   /* device time of an iteration, 1e-12 s; 0: not known */
    uint64_t native_ps;      /* device time of an iteration without remat; 0: not known */
    bool native_is_measured; /* native_ps is a measured iteration, since no limit was felt; else the learnt iteration's op times, added up */
    bool has_overhead, has_bound;
    int64_t overhead_ppm, bound_ppm; /* time beyond the native, and the proved least of it, in millionths of the native */
    uint64_t first_enforced_ns;      /* 0: no iteration followed a proved plan */
    char why_not[SUMMARY_WHY];       /* why not every iteration followed a plan; "": every one did */
};

/* An iteration of the device has ended: the counts go to the page of `remat status`. Some hundred nanoseconds, no system call. */
void summary_publish(struct device *d);
void summary_make(struct device *const *devs, unsigned n, struct summary *out);

#endif
