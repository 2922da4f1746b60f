#include "offline/solvers/price.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/sim.h"

int price_run(const struct solver *s, const struct graph *exact, const struct as_run *run, const struct solver_opts *opts, struct plan *out,
              struct solver_report *rep)
{
    struct solver_opts o = *opts;
    struct sim_result r;

    o.limit_bytes = as_run_room(run, opts->limit_bytes);
    if (o.limit_bytes <= 0) {
        memset(rep, 0, sizeof *rep);
        plan_reset(out);
        rep->proved_infeasible = 1;
        snprintf(rep->message, sizeof rep->message, "the limit is below what the run needs beside any plan");
        return -ENOSPC;
    }
    if (run->page_bytes)
        setenv("REMAT_PLAN_COPIES", "until-used", 0); /* a run on a device follows copies so: solver.h */
    int rc = solver_run(s, run->g, &o, out, rep);
    if (rc)
        return rc;
    rc = as_run_plan(run, exact, out);
    if (!rc)
        rc = sim_run(exact, out, opts->limit_bytes, &r);
    if (rc)
        return rc;
    if (!r.ok) {
        snprintf(rep->message, sizeof rep->message, "%.200s", r.error);
        return -EPROTO;
    }
    rep->peak_bytes = r.peak_bytes;
    rep->planned_ns = r.ns;
    sim_stamp(exact, out, opts->limit_bytes, &r);
    return 0;
}

int64_t price_floor(const struct as_run *run, int offload, int32_t *op)
{
    if (op)
        *op = as_run_op(run, offload ? run->g->floor_offload_op : run->g->floor_op);
    return as_run_limit(run, offload ? run->g->floor_offload_bytes : run->g->floor_bytes);
}
