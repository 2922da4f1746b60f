/* The simulator: re-executes a plan over values, versions and three clocks. It is the one judge inside the
 * program, and agrees with verify_plan.py byte for byte and nanosecond for nanosecond.
 *
 * Threads: a workspace belongs to one thread; graphs and plans are only read.
 * Errors: 0 when the plan was judged (good or bad: see sim_result.ok), -ENOMEM otherwise.
 */
#ifndef REMAT_OFFLINE_SIM_H
#define REMAT_OFFLINE_SIM_H

#include "offline/model/graph.h"
#include "offline/model/plan.h"

struct sim_result {
    int ok;
    int64_t peak_bytes; /* as far as the plan ran */
    int64_t ns;         /* when compute, copies out and copies in are all done; 0 unless the plan ran through */
    double overhead;    /* ns / total_ns - 1; 0.07 = 7 % */
    int64_t replays, offloads;
    int64_t peak_step;  /* first step at which the peak was reached; -1: before the first */
    int64_t error_step; /* first step that broke a rule; -1: none did (the end state or the limit may still be wrong) */
    char error[256];    /* the first broken rule; "" if ok */
};

struct sim_ws; /* reusable memory: one judgement costs no allocation */
struct sim_ws *sim_ws_new(const struct graph *g); /* NULL: no memory. g must outlive it */
void sim_ws_free(struct sim_ws *ws);

/* Judge plan p. limit_bytes > 0 overrides the plan's own limit_bytes; if both are 0 no limit applies.
 * Cost: O(steps + operands). */
void sim_run_ws(struct sim_ws *ws, const struct plan *p, int64_t limit_bytes, struct sim_result *out);

/* The same with a workspace of its own. */
int sim_run(const struct graph *g, const struct plan *p, int64_t limit_bytes, struct sim_result *out);

/* Memory in use at each step (as counted towards the peak; for steps that are not ops or replays, what is
 * resident after them). use_bytes has room for p->n_steps; clock_ns (may be NULL) gets the compute clock at the
 * end of the step. For reports. */
int sim_profile(const struct graph *g, const struct plan *p, int64_t *use_bytes, double *clock_ns, struct sim_result *out);

/* Fill p->limit_bytes, peak_bytes, baseline_ns, planned_ns, trace from a judgement of it. */
void sim_stamp(const struct graph *g, struct plan *p, int64_t limit_bytes, const struct sim_result *r);

#endif
