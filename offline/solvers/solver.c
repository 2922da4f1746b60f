#include "offline/solvers/solver.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "offline/model/sim.h"

/* Table order is the order of help texts and sweeps. A solver whose file is not in the build has address zero. */
#define SOLVER_TABLE(X)                                                                                               \
    X("auto", solver_auto)                                                                                            \
    X("best", solver_best)                                                                                            \
    X("chain", solver_chain)                                                                                          \
    X("chain-float", solver_chain_float)                                                                              \
    X("mincut", solver_mincut)                                                                                        \
    X("anneal", solver_anneal)                                                                                        \
    X("milp", solver_milp)                                                                                            \
    X("chen-sqrt", solver_chen_sqrt)                                                                                  \
    X("chen-greedy", solver_chen_greedy)                                                                              \
    X("revolve", solver_revolve)                                                                                      \
    X("dtr", solver_dtr)                                                                                              \
    X("none", solver_none)

#define INSTANCE_TABLE(X)                                                                                             \
    X(instance_chain)                                                                                                 \
    X(instance_chain_float)                                                                                           \
    X(instance_revolve)                                                                                               \
    X(instance_chen_sqrt)                                                                                             \
    X(instance_chen_greedy)                                                                                           \
    X(instance_mincut)                                                                                                \
    X(instance_milp)                                                                                                  \
    X(instance_milp_lp)                                                                                               \
    X(instance_anneal)

#define SOLVER_DECLARE(name, object) extern const struct solver object __attribute__((weak));
#define INSTANCE_DECLARE(object) extern const struct instance_solver object __attribute__((weak));
SOLVER_TABLE(SOLVER_DECLARE)
INSTANCE_TABLE(INSTANCE_DECLARE)
extern const struct solver solver_exec __attribute__((weak));

#define SOLVER_ROW(name, object) {name, &object},
#define INSTANCE_ROW(object) &object,

static const struct {
    const char *name;
    const struct solver *solver;
} solver_table[] = {SOLVER_TABLE(SOLVER_ROW)};

static const struct instance_solver *const instance_table[] = {INSTANCE_TABLE(INSTANCE_ROW)};

#define SOLVER_COUNT(t) (sizeof(t) / sizeof(*(t)))

struct solver_own {
    struct solver solver;
    struct solver_own *next;
    char name[]; /* "exec:CMD" */
};

static struct {
    pthread_mutex_t lock;
    struct solver_own *first;
} owns = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct solver *solver_own_find(const char *name)
{
    struct solver_own *o;

    if (!&solver_exec)
        return NULL;
    pthread_mutex_lock(&owns.lock);
    for (o = owns.first; o && strcmp(o->name, name); o = o->next)
        ;
    if (!o && (o = malloc(sizeof(*o) + strlen(name) + 1))) {
        strcpy(o->name, name);
        o->solver = solver_exec;
        o->solver.name = o->name;
        o->next = owns.first;
        owns.first = o;
    }
    pthread_mutex_unlock(&owns.lock);
    return o ? &o->solver : NULL;
}

static int solver_is_own(const char *name) { return !strncmp(name, SOLVER_EXEC, strlen(SOLVER_EXEC)) && name[strlen(SOLVER_EXEC)]; }

const struct solver *solver_find(const char *name)
{
    size_t i;

    if (solver_is_own(name))
        return solver_own_find(name);
    for (i = 0; i < SOLVER_COUNT(solver_table); i++)
        if (!strcmp(solver_table[i].name, name))
            return solver_table[i].solver;
    return NULL;
}

int solver_known(const char *name)
{
    size_t i;

    if (solver_is_own(name))
        return 1;
    for (i = 0; i < SOLVER_COUNT(solver_table); i++)
        if (!strcmp(solver_table[i].name, name))
            return 1;
    return 0;
}

const struct solver *solver_at(size_t n)
{
    size_t i;

    for (i = 0; i < SOLVER_COUNT(solver_table); i++)
        if (solver_table[i].solver && !n--)
            return solver_table[i].solver;
    return NULL;
}

const struct instance_solver *solver_instance_at(size_t n)
{
    size_t i;

    for (i = 0; i < SOLVER_COUNT(instance_table); i++)
        if (instance_table[i] && !n--)
            return instance_table[i];
    return NULL;
}

const struct instance_solver *solver_instance_find(const char *format, const char *name)
{
    const struct instance_solver *s;
    size_t i;

    for (i = 0; (s = solver_instance_at(i)); i++)
        if (!strcmp(s->format, format) && (name ? !strcmp(s->name, name) : s->is_default))
            return s;
    return NULL;
}

void solver_memo_free(struct solver_memo *m)
{
    if (m->what)
        m->drop(m->what);
    m->what = NULL;
}

static double clock_s(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct {
    pthread_once_t once;
    int busy;           /* REMAT_PLAN_CLOCK=busy: see solver.h */
    double wall_s, cpu_s; /* both clocks at the first call of solver_now_s */
} first = {.once = PTHREAD_ONCE_INIT};

static void clock_begin(void)
{
    const char *v = getenv("REMAT_PLAN_CLOCK");

    first.busy = v && !strcmp(v, "busy");
    first.wall_s = clock_s(CLOCK_MONOTONIC);
    first.cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

double solver_now_s(void)
{
    enum { SLOWEST = 8 };

    pthread_once(&first.once, clock_begin);
    if (!first.busy)
        return clock_s(CLOCK_MONOTONIC);
    const double wall_s = clock_s(CLOCK_MONOTONIC) - first.wall_s, cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - first.cpu_s;
    const double given_s = cpu_s < wall_s ? cpu_s : wall_s;
    return first.wall_s + (given_s > wall_s / SLOWEST ? given_s : wall_s / SLOWEST);
}

int solver_run(const struct solver *s, const struct graph *g, const struct solver_opts *opts, struct plan *out,
               struct solver_report *rep)
{
    double start = solver_now_s();
    struct sim_result r;
    int rc;

    memset(rep, 0, sizeof(*rep));
    plan_reset(out);
    if (opts->limit_bytes < (opts->offload ? g->floor_offload_bytes : g->floor_bytes)) {
        rep->proved_infeasible = 1;
        snprintf(rep->message, sizeof(rep->message), "the limit is below the floor");
        return -ENOSPC;
    }
    struct solver_opts named = *opts;
    named.name = s->name;
    rc = s->solve(g, &named, out, rep);
    rep->solve_seconds = solver_now_s() - start;
    if (rc)
        return rc;
    rc = sim_run(g, out, opts->limit_bytes, &r);
    if (rc)
        return rc;
    rep->peak_bytes = r.peak_bytes;
    rep->planned_ns = r.ns;
    rep->replays = r.replays;
    rep->offloads = r.offloads;
    if (!r.ok) {
        snprintf(rep->message, sizeof(rep->message), "%.200s", r.error);
        return -EPROTO;
    }
    plan_label(out, s->name);
    sim_stamp(g, out, opts->limit_bytes, &r);
    return 0;
}
