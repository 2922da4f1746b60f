/* Solvers and commands by name.
 *
 * A solver lives in a file of its own and defines one object, `const struct solver solver_NAME`; solver.c holds
 * the table of all names through weak references, so a build without one of the files lacks only that
 * name. Literature-instance solvers (`const struct instance_solver instance_NAME`) and commands
 * (`int cmd_NAME(int argc, char **argv)`, table in main.c) are found in the same way.
 *
 * Threads: a solver runs in its caller's thread and keeps no global state: one process may run several at once.
 * Errors: solve returns 0 (a plan was found, see report), -ENOSPC (no plan within the limit was found;
 * report->proved_infeasible tells whether none exists), -ETIME (no plan in the time allowed), or another negative
 * errno with report->message set.
 */
#ifndef REMAT_OFFLINE_SOLVER_H
#define REMAT_OFFLINE_SOLVER_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "offline/model/graph.h"
#include "offline/model/json_read.h"
#include "offline/model/plan.h"

struct solver_opts {
    int64_t limit_bytes;    /* > 0 */
    double time_limit_s;    /* seconds of the solver_now_s() clock; 0: the solver's default */
    uint64_t seed;
    int offload;            /* host copies allowed */
    int slots;              /* memory slots of the chain programs; 0: chosen by the solver */
    int reorder;            /* the program's own ops may be reordered (instances only; a plan may never) */
    int progress;           /* standard error is a terminal and the user did not ask for silence: see cli_progress */
    const char *name;       /* set by solver_run: the solver's, as on the command line */
    struct solver_memo *memo; /* the caller's, for several limits on one graph: a solver's state from one call
                                 to the next; NULL: none is kept */
};

/* A memo is zeroed by its owner before the first call, used for calls with one graph and options that differ only in the limit, and
 * freed with solver_memo_free before the graph is. */
struct solver_memo {
    void *what;
    void (*drop)(void *what);
};
void solver_memo_free(struct solver_memo *m);

struct solver_report {
    int64_t peak_bytes, planned_ns; /* peak and time of the plan, as sim_run judged it */
    int64_t replays, offloads;
    double solve_seconds;
    int proved_optimal;
    int proved_infeasible;
    double bound_ns;        /* proved lower bound on planned_ns; 0: none */
    char message[256];      /* one line; set on failure, may add facts on success */
};

struct solver {
    const char *name; /* name on the command line */
    const char *what; /* one line for --help */
    /* Fill *out (zeroed or reset by the caller) with a plan that sim_run accepts within opts->limit_bytes. A
     * solver checks its own result with sim_run before it returns 0 and stamps it (sim_stamp). */
    int (*solve)(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep);
};

/* A solver of the user's own is "exec:CMD" (exec/solve_exec.c); solver_find makes one for each CMD, which lives as long as the process. */
#define SOLVER_EXEC "exec:"

const struct solver *solver_find(const char *name); /* NULL: unknown or not built in */
const struct solver *solver_at(size_t i);           /* i-th built-in solver in table order; NULL past the end */
int solver_known(const char *name);                 /* the name exists, whether built in or not */

/* Run a solver and judge its plan again: fills the report's peak, time and seconds, and turns a
 * plan that breaks a rule or the limit into -EPROTO with the simulator's message. */
int solver_run(const struct solver *s, const struct graph *g, const struct solver_opts *opts, struct plan *out,
               struct solver_report *rep);

/* Monotonic wall clock, in seconds. With REMAT_PLAN_CLOCK=busy in the environment, which a running program sets for its
 * planner, the clock advances slower while the machine does not let this process run, down to an eighth: time limits then bound the
 * work done, and a busy machine gets the same plans, later. */
double solver_now_s(void);
/* With REMAT_PLAN_COPIES=until-used in the environment, a copy to the host begins after the last op of the program that touches the buffer before the
 * stay, not earlier: this is how a run follows plans (policy/plan/compile.c). By the rules of plans a copy holds as long as the
 * value does. */

/* ---- literature instances: remat solve ------------------------------------------------------------------ */

struct instance_result {
    double value;   /* makespan (ns or slot units), cut value, or cost */
    double peak;    /* bytes or slots, replayed exactly; < 0: the model has none */
    double bound;   /* proved lower bound on value; equal to value if proved_optimal; NAN: none */
    int feasible;
    int proved_optimal;
    double solve_seconds;
    int integral;   /* value and peak print as integers */
    json_t *extra;  /* optional members for --json (a new reference, handed over); NULL */
    json_t *schedule; /* the schedule itself, for -o (a new reference, handed over); NULL: this solver gives none */
    char message[256];
};

struct instance_solver {
    const char *format; /* the file's "format": rotor-chain-v1, mincut-v1, checkmate-v1 */
    const char *name;   /* as --solver */
    int is_default;     /* taken for this format when no --solver is given */
    /* doc: the parsed file (borrowed). A file that breaks its format is -EINVAL with
     * out->message naming the JSON path (json_fault in json_read.h makes one with line and column). */
    int (*solve)(const struct json_doc *doc, const struct solver_opts *opts, struct instance_result *out);
};

const struct instance_solver *solver_instance_find(const char *format, const char *name); /* name NULL: the default */
const struct instance_solver *solver_instance_at(size_t i);

#endif
