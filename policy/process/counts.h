/* counts.h: what a device counts, for the statistics and the tests (device.st; stats.h writes it).
 *
 * Threads: under the engine's mutex; in a signal handler it is read as it stands. Errors: none.
 */
#ifndef REMAT_POLICY_PROCESS_COUNTS_H
#define REMAT_POLICY_PROCESS_COUNTS_H

#include <stddef.h>
#include <stdint.h>

struct stats { /* counters only, then sums of time: stats_write() adds devices up field by field */
    uint64_t peak_physical_bytes, native_peak_bytes, iterations, iterations_enforced, launches, replays, evictions;
    uint64_t swaps_out, swaps_in, divergences, verify_checked, verify_failed;
    uint64_t mem_calls, mem_calls_enforced, swaps_enforced, hook_ns, hook_launches;
    uint64_t iterations_steady; /* enforced, without a trial, since the plan was proved */
    uint64_t bytes_out, bytes_in, iter_ns_count, tried_ns_count, gave_back_bytes, launches_tried, launches_looked_at;
    uint64_t facts_known, facts_like, facts_unknown; /* launches of lessons: what was known of them before (learn/facts.h) */
    uint64_t facts_taken, facts_contradicted; /* of the known ones: were not tried; did something else */
    uint64_t facts_earlier, plans_earlier; /* patterns, and plans in force, that an earlier run had found */
    uint64_t learning_ns;              /* of the device: what learning took beside the ops themselves */
    uint64_t lessons_ns;               /* of the host's clock: an iteration was being learnt, from its first launch to its last */
    uint64_t planning_ns;              /* of the host's clock: a planner ran, beside the program or not */
    uint64_t plans;                    /* that came into force */
    uint64_t host_peak_bytes;          /* the most host memory that was pinned for this device */
    double iter_ns_sum, tried_ns_sum; /* iterations under a plan: steady ones, and those with launches that ran as trials */
    /* not added up */
    uint64_t native_ns;                 /* of the ops of the iteration that was learnt last, each by itself; 0: none was */
    uint64_t first_op_ns, planning_since_ns, lesson_since_ns; /* of the host's clock; 0: not yet, not now */
    uint64_t first_enforced_ns;         /* from the first op to the first iteration under a proved plan; 0: there was none */
    uint64_t first_enforced_iteration;  /* iterations before it */
    uint64_t bound_ns, baseline_ns;     /* of the plan that came into force last: proved, of any plan; without one. 0: not known */
};
enum { STATS_COUNTERS = offsetof(struct stats, iter_ns_sum) / sizeof(uint64_t) };

#endif
