/* remat plan TRACE --limit SIZE|PCT: find a schedule, judge it, write it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/model/sim.h"
#include "offline/model/trace_read.h"
#include "offline/solvers/milp/milp.h"
#include "offline/solvers/price.h"
#include "offline/solvers/solver.h"
#include "offline/solvers/swapping.h"
#include "tracer/plain.h"

struct plan_request {
    const char *trace, *limit, *solver, *time_limit, *seed, *out;
    int offload, no_offload, json, verbose;
};

/* The trace, and the same as a run has it. */
struct plan_subject {
    struct graph *g;
    struct as_run run;
};

#define PLAN_OP_NAME(g, op) ((op) >= 0 ? PLAIN((g)->ops[op].name) : "the start")

/* The least overhead that is proved. Rounded down to what is printed, so that nobody reads more into it. */
static double plan_bound(const struct graph *g, const struct solver_report *r)
{
    return floor((r->bound_ns / (double)g->total_ns - 1) * 1e6) / 1e6;
}

/* One object on standard output. Numbers and names of our own: nothing to quote but the op's name, left out here. */
static void plan_print_json(const struct plan_subject *on, const char *solver, const struct solver_opts *o, int feasible,
                            const struct solver_report *r)
{
    const struct graph *g = on->g;
    int32_t floor_op;
    int64_t floor = price_floor(&on->run, o->offload, &floor_op);

    printf("{\"solver\": ");
    cli_json(solver);
    printf(", \"feasible\": %s, \"limit_bytes\": %lld, \"floor_bytes\": %lld, \"floor_op\": %d, "
           "\"baseline_peak_bytes\": %lld, \"baseline_ns\": %lld, ",
           feasible ? "true" : "false", (long long)o->limit_bytes, (long long)floor,
           floor_op, (long long)g->baseline_peak_bytes, (long long)g->total_ns);
    if (feasible)
        printf("\"peak_bytes\": %lld, \"planned_ns\": %lld, \"overhead\": %.6f, \"replays\": %lld, \"offloads\": %lld, ",
               (long long)r->peak_bytes, (long long)r->planned_ns,
               g->total_ns ? (double)r->planned_ns / (double)g->total_ns - 1 : 0.0, (long long)r->replays,
               (long long)r->offloads);
    else
        printf("\"peak_bytes\": null, \"planned_ns\": null, \"overhead\": null, \"replays\": null, \"offloads\": null, ");
    if (feasible && r->bound_ns > 0 && g->total_ns)
        printf("\"bound\": %.6f, \"gap\": %.6f, ", plan_bound(g, r), (double)r->planned_ns / (double)g->total_ns - 1 - plan_bound(g, r));
    else
        printf("\"bound\": null, \"gap\": null, ");
    printf("\"solve_seconds\": %.6f, \"proved_optimal\": %s, \"proved_infeasible\": %s}\n", r->solve_seconds,
           r->proved_optimal ? "true" : "false", r->proved_infeasible ? "true" : "false");
}

static void plan_print_text(const struct plan_subject *on, const char *solver, const struct solver_opts *o,
                            const struct solver_report *r, const char *out)
{
    const struct graph *g = on->g;
    char a[32], b[32], c[32];

    printf("%s: peak %s within %s (unconstrained %s), overhead %.2f %%, %lld replays, %lld offloads, %.2f s%s%s%s\n", solver,
           cli_bytes(r->peak_bytes, a, sizeof(a)), cli_bytes(o->limit_bytes, b, sizeof(b)),
           cli_bytes(g->baseline_peak_bytes, c, sizeof(c)),
           g->total_ns ? ((double)r->planned_ns / (double)g->total_ns - 1) * 100 : 0.0, (long long)r->replays,
           (long long)r->offloads, r->solve_seconds, r->proved_optimal ? ", proved optimal" : "", out ? ", plan in " : "",
           out ? out : "");
    if (r->bound_ns > 0 && g->total_ns)
        printf("bound: no plan%s needs less than %.2f %% overhead; this one is within %.2f points of it\n",
               o->offload ? "" : " without copies to the host", plan_bound(g, r) * 100,
               ((double)r->planned_ns / (double)g->total_ns - 1 - plan_bound(g, r)) * 100);
}

/* Where a device ran the trace: the limit as `remat run` takes it, what of it no plan gets, and what its copies are reckoned with. */
static void plan_print_run(const struct plan_subject *on, const struct solver_opts *o, const struct solver_report *r)
{
    char a[32], b[32], c[32];

    if (on->run.page_bytes && on->run.is_limits)
        printf("the same for a run: `remat run --limit %lld`; of its %s no plan gets %s%s: small tensors, scratch, what never moves; pages of %s\n",
               (long long)o->limit_bytes, cli_bytes(o->limit_bytes, a, sizeof(a)), on->run.estimated ? "about " : "",
               cli_bytes(on->run.reserve_bytes, b, sizeof(b)), cli_bytes(on->run.page_bytes, c, sizeof(c)));
    if (on->run.page_bytes && r->offloads)
        printf("copies to the host at %.1f GB/s%s\n", on->g->host_bytes_per_s / 1e9,
               on->run.estimated ? ", which is assumed: the trace does not tell the link's speed (meta.host_bytes_per_s); a new one does" : ", as the link was measured");
}

static int plan_infeasible(const struct plan_subject *on, const char *limit, const char *solver, const struct solver_opts *o,
                           const struct solver_report *r)
{
    const struct graph *g = on->g;
    int32_t op;
    int64_t floor = price_floor(&on->run, o->offload, &op);
    char a[32], b[32];

    cli_bytes(o->limit_bytes, a, sizeof(a));
    cli_bytes(floor, b, sizeof(b));
    if (o->limit_bytes < floor && o->limit_bytes <= 100 && limit[strspn(limit, "0123456789")] == 0)
        return cli_infeasible("plan: no plan fits in %s bytes: did you mean %s%%, of the trace's peak, or %sG? The floor is %lld bytes (%s)", limit, limit, limit,
                              (long long)floor, b);
    if (o->limit_bytes < floor)
        return cli_infeasible("plan: no plan fits in %lld bytes (%s): the floor is %lld bytes (%s), set by op %d (%s); raise the "
                              "limit to at least that%s",
                       (long long)o->limit_bytes, a, (long long)floor, b, op, PLAN_OP_NAME(g, op),
                       !o->offload && price_floor(&on->run, 1, NULL) < floor ? ", or leave out --no-offload" : "");
    if (r->proved_infeasible)
        return cli_infeasible("plan: no plan%s fits in %lld bytes (%s), which solver %s has proved, although the floor is lower (%lld "
                              "bytes, %s, set by op %d, %s): raise the limit%s",
                              o->offload ? "" : " without copies to the host", (long long)o->limit_bytes, a, solver, (long long)floor, b,
                              op, PLAN_OP_NAME(g, op), o->offload ? "" : ", or leave out --no-offload");
    return cli_infeasible("plan: solver %s found no plan within %lld bytes (%s)%s%s; the floor is %lld bytes (%s), set by op %d (%s): "
                   "raise the limit or try another solver",
                   solver, (long long)o->limit_bytes, a, r->message[0] ? ": " : "", r->message, (long long)floor, b, op,
                   PLAN_OP_NAME(g, op));
}

static int plan_options(const struct plan_request *q, const struct graph *g, struct solver_opts *o)
{
    int64_t seed = 1;

    memset(o, 0, sizeof(*o));
    if (cli_size(q->limit, g->baseline_peak_bytes, &o->limit_bytes) || o->limit_bytes <= 0)
        return cli_bad("plan: --limit \"%s\" is no size or percentage over zero, such as 12G or 50%%", q->limit);
    if (cli_seconds(q->time_limit, &o->time_limit_s))
        return cli_bad("plan: --time-limit \"%s\" is no number of seconds", q->time_limit);
    if (q->seed && cli_long(q->seed, 0, INT64_MAX, &seed))
        return cli_bad("plan: --seed \"%s\" is no whole number from 0 up", q->seed);
    o->seed = (uint64_t)seed;
    o->offload = !q->no_offload;
    o->progress = !q->json && cli_is_terminal();
    return 0;
}

/* REMAT_PLAN_BELOW=swapping, as a program that runs sets it for its planner: a plan that takes as long as swapping on the same trace, by the same
 * simulator and the same speed of the link, is none. */
static int plan_is_dearer(const struct graph *g, const struct solver_opts *o, const struct solver_report *r)
{
    const char *below = getenv("REMAT_PLAN_BELOW");
    struct plan swapped = {0};
    struct sim_result x;
    int rc, dearer;

    if (!below || strcmp(below, "swapping"))
        return 0;
    rc = swapping_schedule(g, o->limit_bytes, &swapped, &x);
    plan_free(&swapped);
    dearer = !rc && x.ok && r->planned_ns >= x.ns;
    if (dearer)
        cli_infeasible("plan: swapping takes less: %.3f ms an iteration, and %.3f ms by the plan that solver found; without a limit it takes %.3f ms",
                       (double)x.ns / 1e6, (double)r->planned_ns / 1e6, (double)g->total_ns / 1e6);
    return dearer;
}

static int plan_solve(const struct plan_request *q, const struct plan_subject *on, const struct solver *s, struct plan *p)
{
    struct solver_opts o;
    struct solver_report r;
    char err[512];
    int rc = plan_options(q, on->g, &o);

    if (rc)
        return rc;
    if (o.progress)
        cli_ticker(s->name, o.time_limit_s);
    rc = price_run(s, on->g, &on->run, &o, p, &r);
    cli_progress_end();
    if (rc == -ENOSPC || rc == -ETIME) {
        if (q->json)
            plan_print_json(on, s->name, &o, 0, &r);
        return plan_infeasible(on, q->limit, s->name, &o, &r);
    }
    if (rc)
        return cli_fail("plan: solver %s failed: %s", s->name, r.message[0] ? r.message : milp_error(rc));
    if (plan_is_dearer(on->g, &o, &r))
        return CLI_INFEASIBLE;
    p->bound_ns = r.bound_ns > 0 ? (int64_t)r.bound_ns : 0;
    if (q->out && plan_write(p, q->out, err, sizeof(err)))
        return cli_fail("%s", err);
    if (q->verbose && r.message[0])
        fprintf(stderr, "remat: plan: %s\n", r.message);
    if (q->json)
        plan_print_json(on, s->name, &o, 1, &r);
    else if (!q->out || strcmp(q->out, "-")) {
        plan_print_text(on, s->name, &o, &r, q->out);
        plan_print_run(on, &o, &r);
    }
    return CLI_OK;
}

int cmd_plan(int argc, char **argv)
{
    struct plan_request q = {.solver = "auto"};
    const struct option_bind binds[] = {
        {"limit", &q.limit},
        {"solver", &q.solver},
        {"offload", &q.offload},
        {"no-offload", &q.no_offload},
        {"time-limit", &q.time_limit},
        {"seed", &q.seed},
        {"output", &q.out},
        {"json", &q.json},
        {"verbose", &q.verbose},
        {0}};
    const struct solver *s;
    struct plan_subject on = {0};
    struct plan p = {0};
    char err[512], hint[128];
    size_t n = 0;
    int rc = options_parse(argc, argv, binds, &q.trace, 1, &n);

    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (n != 1 || !q.limit)
        return cli_bad("plan: give a trace and --limit (remat plan --help)");
    if (q.json && q.out && !strcmp(q.out, "-"))
        return cli_bad("plan: --json and -o - both want standard output");
    s = solver_find(q.solver);
    if (!s)
        return cli_bad(solver_known(q.solver) ? "plan: this build has no solver \"%s\"%s" : "plan: no solver \"%s\"%s (remat plan --help)",
                       q.solver, options_hint(q.solver, options_values("plan", "solver"), hint, sizeof(hint)));
    if (trace_read(q.trace, &on.g, err, sizeof(err)))
        return cli_bad("%s", err);
    rc = as_run_make(on.g, &on.run) ? cli_fail("plan: not enough memory") : plan_solve(&q, &on, s, &p);
    plan_free(&p);
    as_run_free(&on.run);
    graph_free(on.g);
    return rc;
}
