/* counts.h: the counters of a device, for the statistics and the tests (device.st; stats.h writes them).
 *
 * Threads: under the engine's mutex; a signal handler reads the counters as they stand. Errors: none.
 */
#ifndef REMAT_POLICY_PROCESS_COUNTS_H
#define REMAT_POLICY_PROCESS_COUNTS_H

#include <stddef.h>
#include <stdint.h>

struct stats { /* counters first, then sums of time: stats_write() adds devices up field by field */
    uint64_t peak_physical_bytes, native_peak_bytes, iterations, iterations_enforced, launches, replays, evictions;
    uint64_t swaps_out, swaps_in, divergences, verify_checked, verify_failed;
    uint64_t mem_calls, mem_calls_enforced, swaps_enforced, hook_ns, hook_launches;
    uint64_t iterations_steady; /* iterations under the plan since it was proved, without a trial */
    uint64_t bytes_out, bytes_in, iter_ns_count, tried_ns_count, gave_back_bytes, launches_tried, launches_looked_at;
    uint64_t facts_known, facts_like, facts_unknown; /* launches of lessons, by what was known of them before (learn/facts.h) */
    uint64_t facts_taken, facts_contradicted; /* known launches that were not tried; known launches that did something else */
    uint64_t facts_earlier, plans_earlier; /* patterns, and plans in force, that an earlier run had found */
    uint64_t learning_ns;              /* device time that learning took beside the ops themselves */
    uint64_t lessons_ns;               /* host time of lessons, each from its first launch to its last */
    uint64_t planning_ns;              /* host time while a planner ran, beside the program or not */
    uint64_t plans;                    /* plans that came into force */
    uint64_t host_peak_bytes;          /* the most host memory that was pinned for this device */
    double iter_ns_sum, tried_ns_sum; /* device time of iterations under a plan: of steady ones, and of ones with trials */
    /* the rest is not added up over devices */
    uint64_t native_ns;                 /* device time of the latest lesson's ops, each measured by itself, added up; 0: no lesson */
    uint64_t first_op_ns, planning_since_ns, lesson_since_ns; /* times on the host's clock; 0: no op yet, no planner or lesson under way */
    uint64_t first_enforced_ns;         /* from the first op to the first iteration under a proved plan; 0: no such iteration */
    uint64_t first_enforced_iteration;  /* iterations before the first one under a proved plan */
    uint64_t bound_ns, baseline_ns;     /* the latest plan in force: proved least time of any plan; time without a plan. 0: not known */
};
enum { STATS_COUNTERS = offsetof(struct stats, iter_ns_sum) / sizeof(uint64_t) };

#endif
