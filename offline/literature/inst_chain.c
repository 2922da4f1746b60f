/* rotor-chain-v1 instances for remat solve: the chain methods in the chain's own model. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "offline/solvers/chain/chain.h"
#include "offline/solvers/chain/chain_solve.h"
#include "offline/solvers/solver.h"

/* {"format": "rotor-schedule-1", "steps": [[kind, stage], ...], "makespan", "peak"}. NULL: no memory. */
static json_t *inst_schedule(const struct chain_answer *a)
{
    static const char *const kinds[] = {[CHAIN_FALL] = "F_all", [CHAIN_FCK] = "F_ck", [CHAIN_FNONE] = "F_none",
                                        [CHAIN_BWD] = "B", [CHAIN_DROP] = "drop"};
    json_t *steps = json_array();
    size_t i;

    for (i = 0; steps && i < a->schedule.n; i++)
        if (json_array_append_new(steps, json_pack("[s, i]", kinds[a->schedule.steps[i].kind], a->schedule.steps[i].stage))) {
            json_decref(steps);
            steps = NULL;
        }
    return steps ? json_pack("{s:s, s:o, s:I, s:I}", "format", "rotor-schedule-1", "steps", steps, "makespan",
                             (json_int_t)a->replayed.time, "peak", (json_int_t)a->replayed.peak)
                 : NULL;
}

static int inst_chain(const struct json_doc *doc, const struct solver_opts *opts, enum chain_method method,
                      struct instance_result *out)
{
    struct chain c;
    struct chain_answer a;
    int64_t budget, file_slots;
    int unit_slots, rc;

    out->integral = 1;
    out->bound = NAN;
    out->peak = -1;
    rc = chain_read(doc, &c, &budget, &file_slots, &unit_slots, out->message, sizeof(out->message));
    if (rc)
        return rc;
    out->bound = (double)chain_ideal_time(&c);
    rc = chain_solve(&c, budget, method, opts->slots, &a);
    if (!rc) {
        out->feasible = 1;
        out->value = (double)a.replayed.time;
        out->peak = (double)a.replayed.peak;
        /* The programs are optimal only among the schedules of their class (optimal_in_class); a makespan without recomputation
         * is optimal among all schedules. */
        out->proved_optimal = a.replayed.time == chain_ideal_time(&c);
        if (out->proved_optimal)
            out->bound = out->value;
        out->extra = json_pack("{s:I, s:I, s:b}", "slots", (json_int_t)a.slots_used, "steps", (json_int_t)a.schedule.n,
                               "optimal_in_class", a.exact);
        out->schedule = inst_schedule(&a);
        rc = out->schedule ? 0 : -ENOMEM;
        chain_schedule_free(&a.schedule);
    } else if (rc == -ENOSPC) {
        snprintf(out->message, sizeof(out->message), "no schedule of this method fits in the budget of %lld",
                 (long long)budget);
    }
    chain_free(&c);
    return rc;
}

#define INST_CHAIN(object, text, method, first)                                                                       \
    static int object##_solve(const struct json_doc *doc, const struct solver_opts *opts, struct instance_result *out) \
    {                                                                                                                 \
        return inst_chain(doc, opts, method, out);                                                                    \
    }                                                                                                                 \
    const struct instance_solver object = {"rotor-chain-v1", text, first, object##_solve};

INST_CHAIN(instance_chain, "chain", CHAIN_PERSISTENT, 1)
INST_CHAIN(instance_chain_float, "chain-float", CHAIN_FLOATING, 0)
INST_CHAIN(instance_revolve, "revolve", CHAIN_REVOLVE, 0)
INST_CHAIN(instance_chen_sqrt, "chen-sqrt", CHAIN_CHEN_SQRT, 0)
INST_CHAIN(instance_chen_greedy, "chen-greedy", CHAIN_CHEN_GREEDY, 0)
