/* summary.h: what a run came to, over all devices: the one place where the statistics' file and the closing line take their figures from.
 *
 * Threads: under the engine's mutex, or in a signal handler, where the counts are read as they stand; allocates nothing. Errors: none.
 */
#ifndef REMAT_POLICY_PROCESS_SUMMARY_H
#define REMAT_POLICY_PROCESS_SUMMARY_H

#include "policy/device.h"

enum { SUMMARY_WHY = 440 };

struct summary {
    struct stats t;          /* counters, added up */
    uint64_t limit_bytes;    /* of all devices together */
    bool limited, pressed;   /* on some device */
    uint64_t iteration_ps;   /* device time of an iteration, 1e-12 s; 0: not known */
    uint64_t native_ps;      /* the same without remat; 0: not known */
    bool native_is_measured; /* by itself, since no limit was felt; else the times of the learnt iteration's ops, added up */
    bool has_overhead, has_bound;
    int64_t overhead_ppm, bound_ppm; /* of native_ps: millionths */
    uint64_t first_enforced_ns;      /* 0: no iteration followed a proved plan */
    char why_not[SUMMARY_WHY];       /* why not every iteration followed a plan; "": every one did, or there was none */
};

/* An iteration of the device has ended: its page of `remat status` gets what there is of it by now. Some hundred nanoseconds, no system call. */
void summary_publish(struct device *d);
void summary_make(struct device *const *devs, unsigned n, struct summary *out);

#endif
